//! Calls of functions that the line defines: the body is read again with the arguments in their places.

use rulekeep_types::{Operation, Resource, RiskLevel};

use crate::reading::Act;
use crate::sign::Sign;

use super::lexer::Script;
use super::word::Word;
use super::{Shell, View};

impl Shell<'_, '_> {
    /// Reads a call of a function. Returns whether it is known what is done with each argument.
    pub(super) fn call(&mut self, name: &str, arguments: View<'_>, depth: usize) -> bool {
        let size = self.functions.get(name).map_or(0, |bodies| bodies.iter().map(String::len).sum());
        if self.budget < size {
            self.unclear("nested_command", name);
            return true;
        }
        // A function that calls itself is read only so often.
        self.budget -= size;
        let bodies = self.functions.get(name).cloned().unwrap_or_default();
        let is_whole = |body: &String| (!body.is_empty()).then(|| filled(body, arguments.words)).flatten();
        if let Some(lines) = bodies.iter().map(is_whole).collect::<Option<Vec<String>>>().filter(|all| !all.is_empty())
        {
            self.called.insert(name.to_owned());
            for line in &lines {
                let is_set = |at: usize| at <= self.at;
                let known = self.known.iter().filter(|(_, (_, at))| is_set(*at));
                self.inherited = known.map(|(name, (value, _))| (name.clone(), value.clone())).collect();
                self.line(line, depth + 1);
            }
            return true;
        }
        if arguments.texts.is_empty() {
            return false;
        }
        // The body shows only in part what is done with the arguments.
        let act = Act::new("call", "function", Resource::System, Operation::Execute, 0.6);
        // A flag or a path can make a harmless body dangerous.
        let reaches = arguments.texts.iter().any(|word| word.starts_with(['-', '/', '~']));
        let risk = if reaches { RiskLevel::High } else { RiskLevel::Medium };
        self.reading.push(act.at_risk(risk).marked(Sign::Unclear).told_by(name));
        false
    }

    /// Reads the functions of a line that nothing in it calls: a later line or a trap may.
    pub(super) fn uncalled(&mut self, script: &Script, depth: usize) {
        for (name, body) in &script.functions {
            if !self.called.contains(name) {
                self.line(body, depth + 1);
            }
        }
    }
}

/// The body with each parameter replaced by its argument. One that is known only at run time stays, and so does all that
/// is computed from parameters. `None` for a body that moves its parameters, loops over them or defines functions of its
/// own, for arguments of unknown number, and for a body that would grow too long.
fn filled(body: &str, arguments: &[Word]) -> Option<String> {
    let moves = |word: &str| matches!(word, "shift" | "set" | "getopts" | "function");
    let words = || body.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let loops = || {
        let words: Vec<&str> = words().collect();
        words.windows(3).any(|three| matches!(three, ["for" | "select", _, third] if *third != "in"))
    };
    let splits = |word: &Word| word.dynamic && !word.quoted;
    if words().any(moves) || body.contains("()") || loops() || arguments.iter().any(splits) {
        return None;
    }
    let mut line = String::with_capacity(body.len());
    let mut quote = None;
    let mut rest = body;
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or("");
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (Some('\''), _) => {}
            (_, '\\') => {
                let length = after.chars().next().map_or(0, char::len_utf8);
                line.push_str(rest.get(..1 + length).unwrap_or(rest));
                rest = after.get(length..).unwrap_or("");
                continue;
            }
            (_, '$') => {
                if let Some((parameter, length)) = parameter(after)
                    && let Some(value) = value(parameter, arguments, quote.is_some())
                {
                    line.push_str(&value);
                    rest = after.get(length..).unwrap_or("");
                    if line.len() > LONGEST {
                        return None;
                    }
                    continue;
                }
            }
            _ => {}
        }
        line.push(c);
        rest = after;
    }
    Some(line)
}

/// A parameter of a function.
#[derive(Clone, Copy)]
enum Parameter {
    All,
    At(usize),
}

/// The parameter behind a `$`, and the length of its name: `1`, `{1}`, `@`.
fn parameter(rest: &str) -> Option<(Parameter, usize)> {
    let (name, length) = match rest.strip_prefix('{') {
        Some(inside) => inside.split_once('}').map(|(name, _)| (name, name.len() + 2))?,
        None => (rest.get(..1)?, 1),
    };
    match name {
        "@" | "*" => Some((Parameter::All, length)),
        "0" => None,
        _ => name.parse().ok().map(|place| (Parameter::At(place), length)),
    }
}

/// The text that stands for a parameter; `None` if it is known only at run time.
fn value(parameter: Parameter, arguments: &[Word], is_quoted: bool) -> Option<String> {
    let one = |word: &Word| (!word.dynamic).then(|| escaped(&word.text, is_quoted));
    match parameter {
        Parameter::At(place) => arguments.get(place.checked_sub(1)?).map_or(Some(String::new()), one),
        Parameter::All => {
            let all: Option<Vec<String>> = arguments.iter().map(one).collect();
            all.map(|all| all.join(if is_quoted { "\" \"" } else { " " }))
        }
    }
}

/// The text as a shell reads it back: outside quotes, blanks and wildcards of a parameter split and match.
fn escaped(text: &str, is_quoted: bool) -> String {
    let special = |c: char| {
        let is_plain = c.is_alphanumeric() || " \t\n*?[]_-./=:,@%+~^".contains(c);
        if is_quoted { matches!(c, '"' | '\\' | '$' | '`') } else { !is_plain }
    };
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if special(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// Maximum length of a body with its arguments, in bytes.
const LONGEST: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn filled_with(body: &str, arguments: &[&str]) -> Option<String> {
        let words: Vec<Word> =
            arguments.iter().map(|text| Word { text: (*text).to_owned(), ..Word::default() }).collect();
        filled(body, &words)
    }

    #[test]
    fn parameters_are_replaced_where_a_shell_replaces_them() {
        for (body, arguments, expected) in [
            ("rm -rf \"$1\"", vec!["/srv"], Some("rm -rf \"/srv\"")),
            ("cp ${1} $2", vec!["a b", "c;d"], Some("cp a b c\\;d")),
            ("awk '{print $1}' \"$1\"", vec!["x"], Some("awk '{print $1}' \"x\"")),
            ("run \"$@\"", vec!["a", "b c"], Some("run \"a\" \"b c\"")),
            ("echo \\$1 $1", vec!["x"], Some("echo \\$1 x")),
            ("echo $3", vec!["x"], Some("echo ")),
            ("echo ${1:-y} $#", vec!["x"], Some("echo ${1:-y} $#")),
            ("shift; rm $1", vec!["x", "y"], None),
        ] {
            assert_eq!(filled_with(body, &arguments).as_deref(), expected, "{body}");
        }
    }
}
