//! Redirections.

use super::heredoc::Pending;
use super::{Lexer, State, Text};
use crate::format::shell::word::Draft;

impl Lexer<'_> {
    /// The length of `<name>` if it is a documentation placeholder rather than two redirections.
    pub(super) fn placeholder(&self) -> Option<usize> {
        let rest = self.text.get(self.at + 1..self.end)?;
        rest.bytes().next().filter(u8::is_ascii_alphabetic)?;
        let length = rest.bytes().take(LONGEST_PLACEHOLDER).position(|byte| {
            !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b' ' | b'.' | b':' | b'|'))
        })?;
        let inside = rest.get(..length)?;
        let closes = rest.as_bytes().get(length) == Some(&b'>') && !inside.ends_with([' ', '|']);
        let goes_on = rest.as_bytes().get(length + 1).is_none_or(|byte| !matches!(byte, b'>' | b'&' | b'('));
        (closes && goes_on).then_some(length + 2)
    }

    /// Reads one redirection, starting at its `<` or `>`.
    pub(super) fn redirection(&mut self, state: &mut State, depth: usize) {
        let start = self.at;
        while matches!(self.peek(), Some(b'<' | b'>')) && self.at - start < 3 {
            if self.at > start && self.peek_at(1) == Some(b'(') {
                break;
            }
            self.at += 1;
        }
        let operator = self.text.get(start..self.at).unwrap_or("");
        let is_document = operator == "<<";
        let strips = is_document && self.peek() == Some(b'-');
        if strips || self.peek() == Some(b'|') && operator == ">" {
            self.at += 1;
        }
        let duplicates = self.peek() == Some(b'&') && !is_document;
        if duplicates {
            self.at += 1;
        }
        self.skip_blanks();
        let mut words = Vec::new();
        let mut draft = Draft::default();
        self.scan_word(&mut draft, &mut words, depth);
        draft.end(&mut words);
        let Some(word) = words.into_iter().next() else {
            self.script.unclear = true;
            return;
        };
        if is_document {
            let body = self.bodies.len();
            self.bodies.push(String::new());
            state.command.texts.push(Text { text: String::new(), body: Some(body) });
            self.pending.push(Pending { delimiter: word.text, expands: !word.quoted, strips, body });
        } else if operator == "<<<" {
            state.command.texts.push(Text { text: word.text, body: None });
        } else if duplicates
            && (word.text == "-" || word.text.trim_end_matches('-').bytes().all(|b| b.is_ascii_digit()))
        {
            // Another name of an open descriptor.
        } else {
            if operator.contains('>') {
                state.command.writes.push(word.clone());
            }
            if operator.contains('<') {
                state.command.reads.push(word);
            }
        }
    }
}

const LONGEST_PLACEHOLDER: usize = 40;
