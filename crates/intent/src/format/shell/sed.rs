//! Scripts of `sed`: whether one of its commands runs or writes something.

/// The command that a script runs; an empty text if it runs what it finds, or writes a file.
pub(super) fn runs_or_writes(script: &str) -> Option<&str> {
    let mut rest = script;
    // INVARIANT: each round takes at least one character.
    loop {
        rest = rest.trim_start_matches([';', '\n', '{', '}', ' ', '\t']);
        rest = behind_address(rest);
        let mut chars = rest.chars();
        match chars.next()? {
            's' => {
                let delimiter = chars.next()?;
                let behind = behind_parts(chars.as_str(), delimiter)?;
                let end = behind.find([';', '\n', '}']).unwrap_or(behind.len());
                let flags = behind.get(..end).unwrap_or("");
                let letters = flags.split_whitespace().next().unwrap_or("");
                if letters.contains(['e', 'w']) && !delimiter.is_alphanumeric() {
                    return Some("");
                }
                rest = behind.get(end..)?;
            }
            'y' => {
                let delimiter = chars.next()?;
                rest = behind_parts(chars.as_str(), delimiter)?;
            }
            'e' => {
                let command = chars.as_str();
                let end = command.find('\n').unwrap_or(command.len());
                let command = command.get(..end).unwrap_or("");
                let is_command = command.is_empty() || command.starts_with([' ', '\t', ';', '}']);
                if is_command {
                    return Some(command.trim_matches([' ', '\t', ';', '}']));
                }
                rest = chars.as_str();
            }
            'w' | 'W' if chars.as_str().starts_with([' ', '/', '\t']) || chars.as_str().is_empty() => return Some(""),
            // Text to the end of the line.
            'a' | 'i' | 'c' | '#' | ':' | 'b' | 't' | 'r' | 'R' => {
                rest = chars.as_str();
                rest = rest.get(rest.find('\n')?..)?;
            }
            _ => rest = chars.as_str(),
        }
    }
}

/// Returns whether the script is a single substitution or translation with harmless flags.
pub(super) fn is_one_substitution(script: &str) -> bool {
    let rest = script.strip_prefix("tr").or_else(|| script.strip_prefix(['s', 'y'])).unwrap_or("");
    let mut chars = rest.chars();
    let Some(delimiter) = chars.next() else { return false };
    behind_parts(chars.as_str(), delimiter).is_some_and(|flags| flags.bytes().all(|flag| b"gimsxor".contains(&flag)))
}

/// The script after an address such as `1,5` or `/x/,$!`.
fn behind_address(script: &str) -> &str {
    let mut rest = script;
    loop {
        let before = rest.len();
        rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ',' | '$' | '!' | '~' | '+' | ' '));
        if let Some(inside) = rest.strip_prefix('/') {
            rest = behind_one(inside, '/').unwrap_or("");
            rest = rest.trim_start_matches(['I', 'M']);
        } else if let Some(inside) = rest.strip_prefix('\\') {
            let mut chars = inside.chars();
            let Some(delimiter) = chars.next() else { return "" };
            rest = behind_one(chars.as_str(), delimiter).unwrap_or("");
        }
        if rest.len() == before {
            return rest;
        }
    }
}

/// The text after `pattern/replacement/`.
fn behind_parts(text: &str, delimiter: char) -> Option<&str> {
    behind_one(behind_one(text, delimiter)?, delimiter)
}

fn behind_one(text: &str, delimiter: char) -> Option<&str> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if c == delimiter && !escaped {
            return text.get(at + c.len_utf8()..);
        }
        escaped = c == '\\' && !escaped;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_runs_or_writes_is_told_from_one_that_edits() {
        for (script, expected) in [
            ("1e id", Some("id")),
            ("s/x/y/e", Some("")),
            ("s/x/y/;s/a/b/w out", Some("")),
            ("w /tmp/x", Some("")),
            ("/x/e rm -rf /", Some("rm -rf /")),
            ("s/we/the/", None),
            ("s/a;e b/c/", None),
            ("s/;w x/;e y/g", None),
            ("/e ;w/d", None),
            ("s|a/e|b|", None),
            ("5,10p", None),
            ("$!N;P;D", None),
            ("a\\ e text", None),
            ("y/abc/wxe/", None),
        ] {
            assert_eq!(runs_or_writes(script), expected, "{script}");
        }
    }
}
