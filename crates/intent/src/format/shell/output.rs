//! The output of a pipeline whose text is in the line itself: `echo rm`, `printf '%s' x | base64 -d`. A decoder
//! before a shell then hides nothing.

use crate::codes::base64_bytes;

use super::lexer::{Command, Feed};
use super::word::unescaped;

/// The output of a list of commands that is a single pipeline; `first` is the place of its first command.
pub(super) fn of_list(commands: &[Command], first: usize) -> Option<String> {
    if commands.len() > MOST_COMMANDS {
        return None;
    }
    let mut text: Option<String> = None;
    for (offset, command) in commands.iter().enumerate() {
        match (offset, command.feed) {
            (0, Feed::None) => {}
            (_, Feed::From(place)) if place + 1 == first + offset => {}
            _ => return None,
        }
        if !command.writes.is_empty() {
            return None;
        }
        text = Some(of_command(command, text.as_deref())?);
    }
    Some(text.unwrap_or_default())
}

/// The output of the command at this place, with its piped input.
pub(super) fn of_place(commands: &[Command], place: usize) -> Option<String> {
    let mut first = place;
    for _ in 0..MOST_COMMANDS {
        match commands.get(first)?.feed {
            Feed::From(before) if before + 1 == first => first = before,
            Feed::From(_) | Feed::Group => return None,
            Feed::None => return of_list(commands.get(first..=place)?, first),
        }
    }
    None
}

/// The text that the command at this place writes to its file.
pub(super) fn written(commands: &[Command], place: usize) -> Option<String> {
    let command = commands.get(place)?;
    let input = match command.feed {
        Feed::None => None,
        Feed::From(before) => Some(of_place(commands, before)?),
        Feed::Group => return None,
    };
    of_command(command, input.as_deref())
}

/// Returns whether a program changes how a text is encoded.
pub(super) fn is_decoder(name: &str) -> bool {
    matches!(name, "base64" | "base32" | "xxd" | "openssl" | "rev" | "tr")
}

fn of_command(command: &Command, input: Option<&str>) -> Option<String> {
    let words: Vec<&str> = command
        .words
        .iter()
        .map(|word| if word.dynamic { None } else { Some(word.text.as_str()) })
        .collect::<Option<_>>()?;
    if !command.reads.is_empty() {
        return None;
    }
    let input = command.texts.last().map(|text| text.text.as_str()).or(input);
    let (&program, arguments) = words.split_first()?;
    match super::base_name(program) {
        "echo" => Some(echo(arguments)),
        "printf" => printf(arguments),
        "cat" if arguments.is_empty() || arguments == ["-"] => input.map(str::to_owned),
        "base64" if arguments.iter().any(|flag| matches!(*flag, "-d" | "-D" | "--decode" | "-di")) => decoded(input?),
        "openssl" if arguments.contains(&"base64") || arguments.contains(&"-base64") => decoded(input?),
        "xxd" if arguments.iter().any(|flag| flag.starts_with("-r") || *flag == "-pr" || *flag == "-p") => {
            from_hex(input?)
        }
        "rev" if arguments.is_empty() => {
            Some(input?.trim_end_matches('\n').lines().map(|line| line.chars().rev().collect::<String>()).collect())
        }
        "tr" => translated(arguments, input?),
        "mktemp" => fresh_file(arguments),
        _ => None,
    }
}

/// A name that stands for the file or folder that `mktemp` makes in the folder for temporary files.
fn fresh_file(arguments: &[&str]) -> Option<String> {
    let is_calm = |word: &&str| matches!(*word, "-d" | "-q" | "-u" | "-dq" | "-t" | "--directory" | "--quiet");
    let template = arguments.iter().find(|word| !is_calm(word));
    let is_there = |name: &str| {
        !name.starts_with('-') && !name.split('/').any(|part| part == "..") && {
            name.starts_with("/tmp/") || !name.contains('/') && arguments.contains(&"-t")
        }
    };
    template.is_none_or(|name| is_there(name)).then(|| "/tmp/tmp.fresh".to_owned())
}

fn echo(arguments: &[&str]) -> String {
    let mut escapes = false;
    let flags = arguments.iter().take_while(|flag| {
        flag.len() > 1 && flag.starts_with('-') && flag.bytes().skip(1).all(|b| b"neE".contains(&b))
    });
    let mut skipped = 0;
    for flag in flags {
        escapes |= flag.contains('e');
        skipped += 1;
    }
    let text = arguments.get(skipped..).unwrap_or(&[]).join(" ");
    if escapes { unescaped(&text) } else { text }
}

/// Formats `%s`, `%b` and escapes; other directives are not supported.
fn printf(arguments: &[&str]) -> Option<String> {
    let arguments = arguments.strip_prefix(&["--"]).unwrap_or(arguments);
    let (&format, values) = arguments.split_first()?;
    let mut values = values.iter();
    let mut out = String::new();
    loop {
        let left = values.len();
        let mut chars = format.chars().peekable();
        let mut plain = String::new();
        while let Some(c) = chars.next() {
            if c != '%' {
                plain.push(c);
                continue;
            }
            out.push_str(&unescaped(&std::mem::take(&mut plain)));
            match chars.next()? {
                '%' => out.push('%'),
                's' => out.push_str(values.next().copied().unwrap_or("")),
                'b' => out.push_str(&unescaped(values.next().copied().unwrap_or(""))),
                _ => return None,
            }
        }
        out.push_str(&unescaped(&plain));
        if values.len() == 0 || values.len() == left || out.len() > LONGEST {
            return Some(out);
        }
    }
}

/// Decodes base64, with or without padding; `None` if the result is not text.
pub(super) fn decoded(text: &str) -> Option<String> {
    String::from_utf8(base64_bytes(text)?).ok()
}

fn from_hex(text: &str) -> Option<String> {
    let digits: Vec<u32> =
        text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits
        .chunks_exact(2)
        .map(|pair| pair.iter().fold(0, |sum, digit| sum * 16 + digit))
        .map(u8::try_from)
        .collect::<Result<_, _>>()
        .ok()?;
    String::from_utf8(bytes).ok()
}

/// Applies `tr a-z n-za-m`.
fn translated(arguments: &[&str], input: &str) -> Option<String> {
    let [from, to] = arguments else { return None };
    let (from, to) = (ranges(from)?, ranges(to)?);
    let last = to.last().copied()?;
    Some(
        input
            .chars()
            .map(|c| match from.iter().position(|known| *known == c) {
                Some(place) => to.get(place).copied().unwrap_or(last),
                None => c,
            })
            .collect(),
    )
}

fn ranges(set: &str) -> Option<Vec<char>> {
    if set.starts_with('-') || set.contains("[:") {
        return None;
    }
    let chars: Vec<char> = unescaped(set).chars().take(MOST_SET).collect();
    let mut out = Vec::new();
    let mut rest = chars.as_slice();
    while let Some((&first, after)) = rest.split_first() {
        if let ['-', last, behind @ ..] = after
            && first <= *last
            && u32::from(*last) - u32::from(first) < 256
        {
            out.extend(first..=*last);
            rest = behind;
        } else {
            out.push(first);
            rest = after;
        }
    }
    Some(out)
}

/// Maximum number of commands of a pipeline that are followed.
const MOST_COMMANDS: usize = 6;
const LONGEST: usize = 65_536;
const MOST_SET: usize = 128;

#[cfg(test)]
mod tests {
    use super::super::lexer::split;
    use super::*;

    #[test]
    fn the_text_of_a_pipeline_is_told_where_it_stands_in_the_line() {
        for (line, expected) in [
            ("echo rm", Some("rm")),
            ("echo -e '\\x72m'", Some("rm")),
            ("printf 'r%s' m", Some("rm")),
            ("printf '\\162\\155'", Some("rm")),
            ("echo cm0gLXJmIC8= | base64 -d", Some("rm -rf /")),
            ("echo 726d | xxd -r -p", Some("rm")),
            ("echo mr | rev", Some("rm")),
            ("echo ez | tr a-z n-za-m", Some("rm")),
            ("cat <<< rm", Some("rm")),
            ("date", None),
        ] {
            assert_eq!(of_list(&split(line).commands, 0).as_deref(), expected, "{line}");
        }
    }
}
