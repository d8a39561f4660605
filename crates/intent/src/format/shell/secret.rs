//! Secrets in a command line: a password after a flag (`-u bob:x`), in a variable (`PGPASSWORD=x`), or in piped text
//! (`echo bob:x | chpasswd`). They are recorded while the line is read and masked at the end, so that neither
//! evidence nor targets show them.

use crate::format::tables::lines;
use crate::programs::Input;

use super::lexer::{Command, Script};
use super::{Shell, assigned, base_name, feed};

impl Shell<'_, '_> {
    /// Records the secrets among a program's arguments that are known by the names around them. A row tells the others.
    pub(super) fn note_secrets(&mut self, arguments: &[&str]) {
        for (place, argument) in arguments.iter().enumerate() {
            if !argument.starts_with('-') {
                self.note_variable(argument);
                continue;
            }
            let (flag, joined) = match argument.split_once('=') {
                Some((flag, value)) => (flag, Some(value)),
                None => (*argument, None),
            };
            if flag.len() > 4
                && flag.starts_with("--")
                && lines().secret_options.has(flag)
                && let Some(value) = joined.or_else(|| arguments.get(place + 1).copied())
            {
                self.note_value(false, value);
            }
        }
    }

    /// Records the secret in `DB_PASSWORD=x` or `$password="x"`.
    pub(super) fn note_variable(&mut self, word: &str) {
        let Some((name, value)) = word.split_once('=') else { return };
        if name.starts_with(|c: char| c.is_ascii_uppercase()) {
            let is_secret = || lines().secret_variables.iter().any(|part| name.contains(part));
            if assigned(word).is_some() && is_secret() {
                self.note_secret(value);
            }
        } else if value.len() >= SHORT && lines().secret_assigned.has(name.trim_start_matches('$')) {
            self.note_secret(value);
        }
    }

    /// Records text written to a file that stores secrets: `echo x > ~/.vault-token`.
    pub(super) fn note_kept(&mut self, words: &[&str]) {
        let is_printer = words.first().is_some_and(|first| matches!(base_name(first), "echo" | "printf"));
        for text in words.iter().skip(1).filter(|text| is_printer && !text.starts_with('-')).take(MOST_WORDS) {
            let mut parts = text.split_whitespace().take(MOST_WORDS).peekable();
            let is_whole = !text.contains(char::is_whitespace);
            while let Some(part) = parts.next() {
                let (name, value) = part.split_once(['=', ':']).unwrap_or((part, ""));
                if lines().secret_assigned.has(&name.to_ascii_lowercase()) {
                    self.note_secret(if value.is_empty() { parts.peek().unwrap_or(&"") } else { value });
                } else if is_whole {
                    self.note_secret(if value.is_empty() { part } else { value });
                }
            }
        }
    }

    /// Records the input of a program that reads a password: `echo bob:x | chpasswd`, `echo x | sudo -S ls`.
    pub(super) fn note_fed(&mut self, script: &Script, place: usize, command: &Command, words: &[&str]) {
        let mut words = words.iter().take(MOST_WORDS);
        let Some(reader) = words.find(|word| {
            if word.starts_with('-') {
                lines().secret_inputs.has(word)
            } else {
                self.lexicon.programs.exact(base_name(word)).is_some_and(|row| row.input == Input::Secret)
            }
        }) else {
            return;
        };
        let takes_pairs = !reader.starts_with('-');
        let piped = feed::piped(script, place).map(|(text, _)| text);
        for text in command.texts.iter().map(|text| text.text.as_str()).chain(piped.as_deref()) {
            for line in text.lines().take(MOST_SECRETS) {
                self.note_secret(line.split_once(':').filter(|_| takes_pairs).map_or(line, |(_, secret)| secret));
            }
        }
    }

    /// Records the secret in an option's value: all of it, or the part after the user name.
    pub(super) fn note_value(&mut self, has_user: bool, value: &str) {
        if let Some((source, secret)) = value.split_once(':')
            && lines().secret_sources.has(source)
        {
            // "pass:x" is a secret; "file:x" and "env:x" only say where one is.
            if source == "pass" {
                self.note_secret(secret);
            }
            return;
        }
        if !has_user {
            self.note_secret(value);
        } else if let Some((_, secret)) = value.split_once([':', '%', ',', '/']) {
            self.note_secret(secret);
        }
    }

    fn note_secret(&mut self, secret: &str) {
        let secret = secret.trim();
        let is_one = !secret.is_empty() && !secret.starts_with(['$', '<', '@']) && secret != "-";
        if is_one && self.secrets.len() < MOST_SECRETS && !self.secrets.iter().any(|known| known == secret) {
            self.secrets.push(secret.to_owned());
        }
    }

    /// Returns whether a word contains a recorded secret.
    pub(super) fn shows_secret(&self, word: &str) -> bool {
        self.secrets.iter().any(|secret| word.contains(secret.as_str()))
    }

    /// Masks the recorded secrets.
    pub(super) fn hide_secrets(&mut self) {
        // The longest first, because one may be part of another.
        self.secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        for secret in &self.secrets {
            for act in &mut self.reading.acts {
                hide_in(&mut act.found.operation, secret);
                hide_in(&mut act.found.resource, secret);
                if act.noun == *secret {
                    "secret".clone_into(&mut act.noun);
                }
            }
            for (_, found) in &mut self.reading.facts.shown {
                if let Some(hidden) = hidden(found, secret) {
                    *found = hidden.into();
                }
            }
            for text in self.reading.facts.quoted_mut() {
                if let Some(hidden) = hidden(text, secret) {
                    *text = hidden;
                }
            }
        }
        self.reading.facts.secrets.append(&mut self.secrets);
    }
}

fn hide_in(found: &mut Option<Box<str>>, secret: &str) {
    if let Some(text) = found
        && let Some(hidden) = hidden(text, secret)
    {
        *text = hidden.into();
    }
}

/// Masks a secret in a text, also if it is cut off at the text's end; `None` if it does not occur.
fn hidden(text: &str, secret: &str) -> Option<String> {
    if secret.len() < SHORT {
        // A secret this short is part of many words, so it is masked only where it is a whole word.
        let mut parts = text.split([' ', ':', '=']);
        let ends = |rest: &str| rest.strip_prefix('-').is_some_and(|flag| flag.get(1..) == Some(secret));
        return parts.any(|part| part == secret || ends(part)).then(|| "***".to_owned());
    }
    if text.contains(secret) {
        return Some(text.replace(secret, "***"));
    }
    let lengths = (SHORT..secret.len().min(text.len() + 1)).rev();
    let mut cuts = lengths.filter_map(|length| secret.get(..length));
    let cut = cuts.find(|start| text.ends_with(start))?;
    text.strip_suffix(cut).map(|before| format!("{before}***"))
}

/// Maximum number of secrets remembered from one line.
const MOST_SECRETS: usize = 16;
/// Maximum number of words of a command with piped input that are checked.
const MOST_WORDS: usize = 16;
/// A secret with fewer bytes may be part of any word.
const SHORT: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_hidden_whole_and_cut_off() {
        for (text, secret, expected) in [
            ("curl bob:hunter2", "hunter2", Some("curl bob:***")),
            ("mysql -phunter2", "hunter2", Some("mysql -p***")),
            ("a long text with hunt", "hunter2", Some("a long text with ***")),
            ("sshpass -p x", "x", Some("***")),
            ("sshpass", "s", None),
            ("hunting", "hunter2", None),
        ] {
            assert_eq!(hidden(text, secret).as_deref(), expected, "{text}");
        }
    }
}
