//! Here-documents, whose bodies follow the line that asks for them.

use super::Lexer;
use crate::format::shell::word::Draft;

/// A here-document whose body starts on the next line.
#[derive(Debug)]
pub(super) struct Pending {
    pub delimiter: String,
    /// Set if the substitutions in the body are run.
    pub expands: bool,
    /// Set if leading tabs of the lines are dropped.
    pub strips: bool,
    pub body: usize,
}

impl Lexer<'_> {
    /// Reads the bodies that are due at the start of a line.
    pub(super) fn bodies(&mut self, depth: usize) {
        for pending in std::mem::take(&mut self.pending) {
            let start = self.at;
            let mut close = self.end;
            while self.at < self.end {
                let rest = self.text.get(self.at..self.end).unwrap_or("");
                let line = rest.split('\n').next().unwrap_or("");
                let line_at = self.at;
                self.at = (self.at + line.len() + 1).min(self.end);
                let shown = line.strip_suffix('\r').unwrap_or(line);
                let shown = if pending.strips { shown.trim_start_matches('\t') } else { shown };
                if shown == pending.delimiter {
                    close = line_at;
                    break;
                }
                if line.is_empty() && rest.is_empty() {
                    break;
                }
            }
            let behind = self.at;
            let text = self.text.get(start..close).unwrap_or("").to_owned();
            if pending.expands {
                self.expand(start, close, depth);
            }
            self.at = behind;
            if let Some(body) = self.bodies.get_mut(pending.body) {
                *body = text;
            }
        }
    }

    /// Handles bodies that never came.
    pub(super) fn bodies_at_end(&mut self) {
        self.script.unclear |= !self.pending.is_empty();
        self.pending.clear();
    }

    /// Reads the substitutions of a body.
    fn expand(&mut self, start: usize, close: usize, depth: usize) {
        let end = std::mem::replace(&mut self.end, close);
        self.at = start;
        let mut words = Vec::new();
        while let Some(byte) = self.peek() {
            let mut draft = Draft::default();
            match byte {
                b'\\' => {
                    self.at += 1;
                    self.take_char();
                }
                b'$' => self.dollar(&mut draft, &mut words, depth, false),
                b'`' => self.backquoted(&mut draft, &mut words, depth, false),
                _ => self.at += 1,
            }
        }
        self.end = end;
    }
}
