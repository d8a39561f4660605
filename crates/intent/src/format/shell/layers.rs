//! A command as written, behind each wrapper before it, and in normal form.

use rulekeep_types::facts::{Cause, Kind, Kinds};

use super::options::Lexed;
use super::{Shell, View};

impl Shell<'_, '_> {
    /// Records a command as written, behind the wrappers before it.
    pub(super) fn note_layer(&mut self, view: View<'_>) {
        let Some(command) = self.command_text(view.texts) else { return };
        let Some(step) = self.reading.current_step() else { return };
        if step.commands.contains(&command) {
            return;
        }
        if step.commands.len() < MOST_LAYERS {
            step.commands.push(command);
        } else {
            self.open(Cause::Text, Kinds::of(&[Kind::Command]), &command);
        }
    }

    /// Records a command in normal form: the program without its folder and the options before its subcommand, and
    /// the letters of each option sorted.
    pub(super) fn note_normal(&mut self, name: &str, lexed: Option<&Lexed<'_>>, arguments: View<'_>) {
        let sub = lexed.map_or("", |lexed| lexed.sub.as_str());
        let first = sub.split(' ').next().filter(|first| !first.is_empty());
        let begins = first.and_then(|first| arguments.texts.iter().position(|word| *word == first)).unwrap_or(0);
        let words = arguments.texts.iter().skip(begins).map(|word| {
            let is_cluster = word.len() > 1 && word.starts_with('-') && !word.starts_with("--");
            if is_cluster { sorted(word) } else { (*word).to_owned() }
        });
        let words: Vec<String> = std::iter::once(name.to_owned()).chain(words).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let command = self.command_text(&words);
        if let Some(step) = self.reading.current_step() {
            step.command = command;
        }
    }

    fn command_text(&mut self, words: &[&str]) -> Option<String> {
        // The length is computed first, because each wrapper of a long line is recorded with all behind it.
        let mut length = 0;
        let is_long = words.iter().any(|word| {
            length += word.len() + 1;
            length > LONGEST_COMMAND + 1
        });
        if is_long {
            let first = words.first().copied().unwrap_or_default();
            self.open(Cause::Text, Kinds::of(&[Kind::Command]), first);
            return None;
        }
        Some(words.join(" "))
    }
}

/// An option with its letters sorted.
fn sorted(option: &str) -> String {
    let mut letters: Vec<char> = option.chars().skip(1).collect();
    letters.sort_unstable();
    std::iter::once('-').chain(letters).collect()
}

/// Maximum length of a recorded command, in bytes.
const LONGEST_COMMAND: usize = 1024;
/// Maximum number of layers of a command that are recorded.
const MOST_LAYERS: usize = 8;

#[cfg(test)]
mod tests {
    #[test]
    fn a_command_is_recorded_behind_each_wrapper_and_in_normal_form() {
        let lexicon = crate::lexicon::Lexicon::shared().unwrap();
        let reading = super::super::read("sudo /usr/bin/git -C /srv push -fu origin", &lexicon);
        let [step] = reading.steps.as_slice() else { panic!("{:?}", reading.steps) };
        assert_eq!(
            step.commands,
            ["sudo /usr/bin/git -C /srv push -fu origin", "/usr/bin/git -C /srv push -fu origin"]
        );
        assert_eq!(step.command.as_deref(), Some("git push -fu origin"));
    }
}
