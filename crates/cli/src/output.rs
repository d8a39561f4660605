//! Printing answers: a table or fields for people, one line of JSON for programs.
//!
//! Texts in the log come from agents. No control character in them reaches a terminal, and no text of several lines
//! can look like a field of its own.

use std::fmt::Write as _;
use std::io::{BufWriter, ErrorKind, StdoutLock, Write};

use console::{Style, Term, measure_text_width, pad_str, style, truncate_str};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::plain::is_hidden;

/// A column of a table: its heading, and its text in a row.
pub(crate) type Column<R> = (&'static str, fn(&R) -> String);

/// Prints a line on standard output. Returns false if the reader has gone, which is not an error.
pub(crate) fn print(text: &str) -> Result<bool, String> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true).map_err(|error| format!("standard output: {error}")),
    }
}

/// Standard output for a long text. A failed write is told apart from the other failures of what writes it.
pub(crate) struct Standard {
    out: BufWriter<StdoutLock<'static>>,
    failure: Option<std::io::Error>,
}

impl Standard {
    pub(crate) fn new() -> Self {
        Self { out: BufWriter::new(std::io::stdout().lock()), failure: None }
    }

    /// The result of what was written; `None` if the reader has gone, which is not an error.
    pub(crate) fn end<T, E: From<String>>(mut self, written: Result<T, E>) -> Result<Option<T>, E> {
        let flushed = self.out.flush();
        match self.failure.or(flushed.err()) {
            Some(error) if error.kind() == ErrorKind::BrokenPipe => Ok(None),
            Some(error) => Err(format!("standard output: {error}").into()),
            None => written.map(Some),
        }
    }

    fn noted<T: Clone>(&mut self, written: std::io::Result<T>) -> std::io::Result<T> {
        written.map_err(|error| {
            let kind = error.kind();
            self.failure.get_or_insert(error);
            kind.into()
        })
    }
}

impl Write for Standard {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(bytes);
        self.noted(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let flushed = self.out.flush();
        self.noted(flushed)
    }
}

/// Returns JSON on one line, with every control character escaped.
pub(crate) fn json(value: &impl Serialize) -> String {
    escaped(&json!(value).to_string(), |text, character| {
        let mut units = [0; 2];
        for unit in character.encode_utf16(&mut units) {
            let _ = write!(text, "\\u{unit:04x}");
        }
    })
}

/// Returns rows under headings, aligned. On a terminal the last column is cut at the end of the line.
pub(crate) fn table<R>(rows: &[R], columns: &[Column<R>]) -> String {
    let cells: Vec<Vec<String>> = rows.iter().map(|row| columns.iter().map(|(_, cell)| cell(row)).collect()).collect();
    let widths: Vec<usize> = (0..columns.len())
        .map(|at| {
            let found = cells.iter().filter_map(|row| row.get(at)).map(|cell| measure_text_width(cell));
            found.chain(columns.get(at).map(|(heading, _)| heading.len())).max().unwrap_or_default()
        })
        .collect();
    let width = Term::stdout().size_checked().map(|(_, width)| usize::from(width));
    let line = |row: &[String], shown: &dyn Fn(&str, &str) -> String| {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let padded = if at + 1 == row.len() { cell.clone() } else { pad_to(cell, *width) };
            let _ = write!(line, "{}{}", if at > 0 { "  " } else { "" }, shown(cell, &padded));
        }
        width.map_or_else(|| line.clone(), |width| truncate_str(&line, width, "…").into_owned())
    };
    let headings: Vec<String> = columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
    let mut lines = vec![line(&headings, &|_, padded| style(padded).bold().to_string())];
    lines.extend(cells.iter().map(|row| line(row, &|cell, padded| colored(cell, padded))));
    lines.join("\n")
}

/// Returns a number with its noun, as in "1 agent" and "2,000 agents".
pub(crate) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Formats a number with a comma between groups of three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Writes rows under headings as CSV (RFC 4180). A spreadsheet computes no cell of it.
pub(crate) fn csv<R>(out: impl Write, rows: &[R], columns: &[Column<R>]) -> Result<(), String> {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(out);
    let mut write = |cells: Vec<String>| writer.write_record(cells).map_err(|error| error.to_string());
    write(columns.iter().map(|(heading, _)| (*heading).to_owned()).collect())?;
    for row in rows {
        write(columns.iter().map(|(_, cell)| inert(cell(row))).collect())?;
    }
    writer.flush().map_err(|error| error.to_string())
}

/// Returns a text that a spreadsheet does not take for a formula.
fn inert(text: String) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t']) { format!("'{text}") } else { text }
}

/// Returns the fields of an object, one per line; nested fields are below their name.
pub(crate) fn fields(value: &impl Serialize) -> String {
    let (value, none) = (json!(value), Map::new());
    named(value.as_object().unwrap_or(&none).iter().map(|(name, value)| (name.as_str(), value)))
}

/// Returns values under their names, in this order; nested values are below their name.
pub(crate) fn named<'a>(values: impl Iterator<Item = (&'a str, &'a Value)> + Clone) -> String {
    let width = values.clone().map(|(name, _)| name.len()).max().unwrap_or_default();
    let mut lines = Vec::new();
    for (name, value) in values {
        let name = style(pad_to(name, width)).bold();
        let is_nested = matches!(value, Value::Object(_)) || value.as_array().is_some_and(|items| !is_flat(items));
        let text = if is_nested {
            serde_json::to_string_pretty(value).unwrap_or_default()
        } else {
            value.as_str().map_or_else(|| shown(value), str::to_owned)
        };
        let text: Vec<String> = text.lines().map(clean).collect();
        match text.as_slice() {
            [one] if !is_nested => lines.push(format!("{name}  {}", colored(one, one))),
            several => {
                lines.push(name.to_string());
                lines.extend(several.iter().map(|line| format!("  | {line}")));
            }
        }
    }
    lines.join("\n")
}

/// Returns the fields of an object as text, one per line, with the path of each nested field: `facts.tool: Bash`.
pub(crate) fn flat(value: &impl Serialize) -> String {
    let mut lines = Vec::new();
    flatten("", &json!(value), &mut lines);
    lines.join("\n")
}

fn flatten(path: &str, value: &Value, lines: &mut Vec<String>) {
    let below = |name: &str| if path.is_empty() { clean(name) } else { format!("{path}.{}", clean(name)) };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| flatten(&below(name), value, lines)),
        Value::Array(items) if !is_flat(items) => {
            items.iter().enumerate().for_each(|(at, item)| flatten(&below(&at.to_string()), item, lines));
        }
        value => lines.push(format!("{path}: {}", shown(value))),
    }
}

/// Returns a text in which control characters and direction marks are shown as numbers.
pub(crate) fn clean(text: &str) -> String {
    escaped(text, |text, character| {
        let _ = write!(text, "{}", character.escape_unicode());
    })
}

fn escaped(text: &str, escape: impl Fn(&mut String, char)) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        if is_hidden(character) {
            escape(&mut clean, character);
        } else {
            clean.push(character);
        }
    }
    clean
}

/// Returns a value as the text of a cell.
pub(crate) fn cell(value: &impl Serialize) -> String {
    shown(&json!(value))
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => clean(text),
        Value::Array(items) if is_flat(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => clean(&other.to_string()),
    }
}

fn is_flat(items: &[Value]) -> bool {
    !items.iter().any(|item| item.is_object() || item.is_array())
}

fn pad_to(text: &str, width: usize) -> String {
    pad_str(text, width, console::Alignment::Left, None).into_owned()
}

/// Colors a word that describes a result. `console` omits the colors without a terminal, and if `NO_COLOR` is set.
fn colored(word: &str, text: &str) -> String {
    let style = match word {
        "ALLOW" | "SUCCESS" | "active" | "approved" | "true" => Style::new().green(),
        "DENY" | "FAILURE" | "suspended" | "retired" | "revoked" | "rejected" | "CRITICAL" | "broken" => {
            Style::new().red()
        }
        "ESCALATE" | "DEGRADE" | "ESCALATED" | "pending" | "expired" | "HIGH" => Style::new().yellow(),
        _ => return text.to_owned(),
    };
    style.apply_to(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_control_character_comes_through() {
        let hostile = "a\u{1b}[31mb\u{9b}2Jc\u{7}d\u{202e}e\r\nid  forged";
        for shown in [
            table(&[hostile], &[("text", cell)]),
            fields(&json!({ "text": hostile, "nested": { "text": hostile } })),
            json(&json!({ "text": hostile })),
        ] {
            assert!(!shown.chars().any(|one| one != '\n' && is_hidden(one)), "{shown:?}");
        }
        assert_eq!(fields(&json!({ "text": "x\nid  forged" })), "text\n  | x\n  | id  forged");
        let nested = json!({ "a": { "b\n": "x\ny: forged", "c": [{ "d": [1, 2] }] } });
        assert_eq!(flat(&nested), "a.b\\u{a}: x\\u{a}y: forged\na.c.0.d: 1, 2");
        let read: Value = serde_json::from_str(&json(&json!({ "text": hostile }))).unwrap();
        assert_eq!(read["text"], hostile);
    }

    #[test]
    fn one_of_a_kind_is_singular_and_thousands_are_grouped() {
        let shown = [0, 1, 2, 999, 1_000, 1_234_567].map(|number| counted(number, "agent"));
        assert_eq!(shown, ["0 agents", "1 agent", "2 agents", "999 agents", "1,000 agents", "1,234,567 agents"]);
    }

    #[test]
    fn a_spreadsheet_computes_no_cell() {
        let columns: &[Column<&str>] = &[("text", |row| cell(row)), ("more", |_| "a \"b\", c".to_owned())];
        let mut out = Vec::new();
        csv(&mut out, &["=1+1", "+1", "-1", "@x", "a=1"], columns).unwrap();
        let more = ",\"a \"\"b\"\", c\"\r\n";
        let expected = ["text,more\r\n", "'=1+1", more, "'+1", more, "'-1", more, "'@x", more, "a=1", more].concat();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn columns_are_aligned_by_what_is_shown() {
        let rows = [("日本", Some(1), vec![]), ("abcdef", None, vec!["x", "y"])];
        let shown =
            table(&rows, &[("id", |row| cell(&row.0)), ("n", |row| cell(&row.1)), ("list", |row| cell(&row.2))]);
        assert_eq!(shown, "id      n  list\n日本    1  \nabcdef     x, y");
    }
}
