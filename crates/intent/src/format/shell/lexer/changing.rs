//! Variables whose value at a place of the line the line's order does not show: those of loops, of functions, of branches,
//! and those that a built-in command sets.

use std::collections::{HashMap, HashSet};

/// The variables that may change unseen.
#[derive(Debug, Default)]
pub(super) struct Changing {
    /// A built-in command sets variables that only running the line names.
    pub all: bool,
    /// Set twice, or by a built-in command.
    names: HashSet<String>,
    /// Set by a built-in command.
    pub set: Vec<String>,
}

impl Changing {
    pub(super) fn of(text: &str) -> Self {
        let mut changing = Self::default();
        let mut values: HashMap<&str, &str> = HashMap::new();
        let mut twice: Vec<&str> = Vec::new();
        let (mut setter, mut branches, mut from, mut before) = (None, false, 0, "");
        for (at, bound) in text.char_indices().filter(|(_, c)| is_bound(*c)).chain([(text.len(), '\n')]) {
            let word = text.get(from..at).unwrap_or("");
            from = at + bound.len_utf8();
            if !word.is_empty() {
                branches |= is_start(before) && BRANCHES.contains(&word);
                twice.extend(changing.word(word, before, &mut setter, &mut values));
                before = word;
            }
            let behind = text.as_bytes().get(from);
            match bound {
                '&' | '|' => branches |= behind == text.as_bytes().get(at),
                // A function, or arithmetic.
                '(' => branches |= matches!(behind, Some(b')' | b'(')),
                '{' if text.get(..at).is_some_and(|text| text.ends_with('$')) => {
                    let rest = text.get(from..).unwrap_or("");
                    let name = name_at(rest);
                    let default = rest.get(name.len()..).unwrap_or("");
                    if default.starts_with(":=") || default.starts_with('=') {
                        changing.sets(name);
                    }
                }
                _ => {}
            }
            if matches!(bound, ';' | '|' | '&' | '\n' | '(' | ')' | '{' | '}') {
                setter = None;
                before = "";
            }
        }
        if branches {
            changing.names.extend(twice.into_iter().map(str::to_owned));
        }
        changing
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.all || self.names.contains(name)
    }

    /// Reads a word. Returns a variable that it sets again, to another value.
    fn word<'t>(
        &mut self,
        word: &'t str,
        before: &str,
        setter: &mut Option<&'t str>,
        values: &mut HashMap<&'t str, &'t str>,
    ) -> Option<&'t str> {
        let name = name_at(word);
        let mut behind = word.get(name.len()..).unwrap_or("");
        if let Some((_, after)) = behind.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            behind = after;
        }
        let counts = ["++", "--", "+=", "-="].iter().any(|mark| behind.starts_with(mark));
        if !name.is_empty() && (counts || behind.starts_with('=') && behind.len() < word.len() - name.len()) {
            self.sets(name);
            return None;
        }
        if let Some(value) = behind.strip_prefix('=').filter(|_| !name.is_empty()) {
            let known = values.insert(name, value)?;
            return (known != value || value.is_empty()).then_some(name);
        }
        match *setter {
            None if !is_start(before) => {}
            None if SETTERS.contains(&word) => *setter = Some(word),
            None if matches!(word, "eval" | "source" | ".") => self.all = true,
            Some("printf") if before != "-v" => {}
            Some("declare" | "typeset" | "local") if word.starts_with('-') && word.contains('n') => self.all = true,
            Some(_) if word.starts_with('-') => {}
            Some(_) if word.starts_with('$') => self.all = true,
            // What is exported keeps its value.
            Some(setter) if name == word && !matches!(setter, "export" | "readonly") => self.sets(name),
            _ => {}
        }
        match word {
            "read" => self.sets("REPLY"),
            "mapfile" | "readarray" => self.sets("MAPFILE"),
            "getopts" => ["OPTARG", "OPTIND"].iter().for_each(|name| self.sets(name)),
            _ => {}
        }
        None
    }

    fn sets(&mut self, name: &str) {
        self.names.insert(name.to_owned());
        self.set.push(name.to_owned());
    }
}

/// The name of a variable at the start of a text.
fn name_at(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    text.get(..end).filter(|name| !name.starts_with(|c: char| c.is_ascii_digit())).unwrap_or("")
}

/// Returns whether a command may begin behind a word.
fn is_start(before: &str) -> bool {
    before.is_empty()
        || before.contains('=')
        || matches!(
            before,
            "then" | "do" | "else" | "if" | "elif" | "while" | "until" | "!" | "time" | "builtin" | "command"
        )
}

/// Returns whether a character ends a word or a command.
fn is_bound(c: char) -> bool {
    c.is_whitespace() || matches!(c, ';' | '|' | '&' | '(' | ')' | '{' | '}' | '"' | '\'' | '`')
}

/// Words behind which the order of the line does not show which value holds.
const BRANCHES: &[&str] = &["for", "while", "until", "if", "case", "select", "function"];
/// Built-in commands that set the variables that they name.
const SETTERS: &[&str] = &[
    "read",
    "mapfile",
    "readarray",
    "printf",
    "getopts",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "let",
    "unset",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_may_change_unseen_is_known() {
        for (line, name) in [
            ("c=ls; for i in 1 2; do $c; c=rm; done", "c"),
            ("c=ls; eval c=reboot; $c", "c"),
            ("c=ls; declare -n r=c; r=reboot; $c", "c"),
            ("c=ls; printf -v c reboot; $c", "c"),
            ("c=ls; printf -v \"$1\" reboot; $c", "c"),
            ("c=ls; read c <<< x; $c", "c"),
            ("c=ls; read $X; $c", "c"),
            ("c=ls; c[0]=reboot; if true; then $c; fi", "c"),
            ("c=ls; (( c=1 )); $c", "c"),
            ("c=ls; : ${c:=x}", "c"),
            ("REPLY=a; read; cat $REPLY", "REPLY"),
            ("c=ls; while IFS= read -r c; do $c; done", "c"),
        ] {
            assert!(Changing::of(line).has(name), "{line}");
        }
        for (line, name) in [
            ("c=ls; $c; c=rm; $c", "c"),
            ("c=ls; for i in 1 2; do $c; done", "c"),
            ("c=ls; if [ -r $c ]; then echo \"cannot read the $c\"; fi", "c"),
            ("c=ls; export c; printf '%s' $c", "c"),
            ("if true; then c=ls; fi; $c", "c"),
        ] {
            assert!(!Changing::of(line).has(name), "{line}");
        }
    }
}
