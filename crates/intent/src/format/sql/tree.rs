//! Groups a statement's tokens by brackets, without recursion: the items within one pair of brackets form a group.

use super::known::words;
use super::lex::{Kind, Token};

/// A text, and a statement's tokens in it.
#[derive(Clone, Copy)]
pub(super) struct Source<'t> {
    pub raw: &'t str,
    /// The same bytes in lower case.
    pub lower: &'t str,
    pub tokens: &'t [Token],
}

impl<'t> Source<'t> {
    pub(super) fn kind(&self, token: usize) -> Option<Kind> {
        self.tokens.get(token).map(|token| token.kind)
    }

    /// The text of a token in lower case.
    pub(super) fn lower(&self, token: usize) -> &'t str {
        self.tokens.get(token).and_then(|token| self.lower.get(token.start..token.end)).unwrap_or("")
    }

    /// A keyword or an unquoted name.
    pub(super) fn word(&self, token: usize) -> Option<&'t str> {
        (self.kind(token) == Some(Kind::Word)).then(|| self.lower(token))
    }

    /// A name, quoted or not.
    pub(super) fn name(&self, token: usize) -> Option<&'t str> {
        matches!(self.kind(token), Some(Kind::Word | Kind::Name)).then(|| self.lower(token))
    }

    pub(super) fn is_symbol(&self, token: usize, symbol: &str) -> bool {
        self.kind(token) == Some(Kind::Symbol) && self.lower(token) == symbol
    }

    /// The content of a string token; empty for other tokens.
    pub(super) fn string(&self, token: Option<usize>) -> &'t str {
        token.filter(|&token| self.kind(token) == Some(Kind::Text)).map_or("", |token| self.text(token, token))
    }

    /// The text from the start of one token to the end of another.
    pub(super) fn text(&self, first: usize, last: usize) -> &'t str {
        match (self.tokens.get(first), self.tokens.get(last)) {
            (Some(first), Some(last)) => self.raw.get(first.start..last.end).unwrap_or(""),
            _ => "",
        }
    }
}

/// A token, or a pair of brackets with its content.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    /// The token; for brackets, the opening one.
    pub token: usize,
    pub group: Option<usize>,
}

/// The groups of a statement: the first is the statement itself.
pub(super) struct Tree {
    pub groups: Vec<Vec<Item>>,
    /// Set if the brackets do not match.
    pub broken: bool,
}

impl Tree {
    pub(super) fn of(source: &Source<'_>) -> Self {
        let mut groups = vec![Vec::new()];
        let mut open = vec![0_usize];
        let mut broken = false;
        for (token, kind) in source.tokens.iter().map(|token| token.kind).enumerate() {
            let here = open.last().copied().unwrap_or(0);
            let group = match kind {
                Kind::Open => {
                    groups.push(Vec::new());
                    open.push(groups.len() - 1);
                    Some(groups.len() - 1)
                }
                Kind::Close => {
                    if open.len() > 1 {
                        open.pop();
                    } else {
                        broken = true;
                    }
                    continue;
                }
                _ => None,
            };
            if let Some(items) = groups.get_mut(here) {
                items.push(Item { token, group });
            }
        }
        Self { groups, broken: broken || open.len() > 1 }
    }

    pub(super) fn group(&self, group: usize) -> &[Item] {
        self.groups.get(group).map_or(&[], Vec::as_slice)
    }
}

/// A part of a statement at one bracket level.
#[derive(Clone, Copy)]
pub(super) struct Part<'t> {
    pub source: Source<'t>,
    pub items: &'t [Item],
}

impl<'t> Part<'t> {
    pub(super) fn of(self, items: &'t [Item]) -> Self {
        Self { items, ..self }
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn token(&self, place: usize) -> Option<usize> {
        self.items.get(place).map(|item| item.token)
    }

    pub(super) fn group(&self, place: usize) -> Option<usize> {
        self.items.get(place).and_then(|item| item.group)
    }

    pub(super) fn kind(&self, place: usize) -> Option<Kind> {
        self.token(place).and_then(|token| self.source.kind(token))
    }

    pub(super) fn word(&self, place: usize) -> Option<&'t str> {
        self.token(place).and_then(|token| self.source.word(token))
    }

    pub(super) fn is(&self, place: usize, word: &str) -> bool {
        self.word(place) == Some(word)
    }

    pub(super) fn name(&self, place: usize) -> Option<&'t str> {
        self.token(place).and_then(|token| self.source.name(token))
    }

    pub(super) fn is_symbol(&self, place: usize, symbol: &str) -> bool {
        self.token(place).is_some_and(|token| self.source.is_symbol(token, symbol))
    }

    pub(super) fn find(&self, word: &str) -> Option<usize> {
        (0..self.len()).find(|&place| self.is(place, word))
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.find(word).is_some()
    }

    /// The words at the start that determine the kind of statement, without filler words.
    pub(super) fn head(&self) -> Vec<&'t str> {
        (0..self.len().min(LONGEST_HEAD))
            .map_while(|place| self.word(place))
            .enumerate()
            .filter(|&(place, word)| place == 0 || !words().noise.has(word))
            .map(|(_, word)| word)
            .collect()
    }

    /// The name that starts at a place, with its dots, and the place after it.
    pub(super) fn path(&self, place: usize) -> Option<(Path<'t>, usize)> {
        let first = self.token(place).filter(|&token| self.source.name(token).is_some())?;
        let mut last = first;
        let mut next = place + 1;
        while self.is_symbol(next, ".") {
            // "master..xp_cmdshell"
            while self.is_symbol(next, ".") {
                next += 1;
            }
            match self.token(next).filter(|&token| self.source.name(token).is_some() || self.is_symbol(next, "*")) {
                Some(token) => last = token,
                None => break,
            }
            next += 1;
        }
        let raw = self.source.text(first, last);
        Some((Path { raw, lower: self.lower_text(first, last) }, next))
    }

    fn lower_text(&self, first: usize, last: usize) -> &'t str {
        Source { raw: self.source.lower, ..self.source }.text(first, last)
    }
}

/// A name with its dots.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path<'t> {
    pub raw: &'t str,
    pub lower: &'t str,
}

impl<'t> Path<'t> {
    /// The names between the dots, unquoted.
    pub(super) fn names(&self) -> impl Iterator<Item = &'t str> {
        self.lower.split('.').map(|name| name.trim_matches(['"', '`', '[', ']']))
    }

    pub(super) fn last(&self) -> &'t str {
        self.names().last().unwrap_or("")
    }

    /// The name in the form of a target, without quotes.
    pub(super) fn plain(&self) -> String {
        self.raw.replace(['"', '`', '[', ']'], "")
    }
}

/// Number of items of a statement in which its head is searched.
const LONGEST_HEAD: usize = 12;
