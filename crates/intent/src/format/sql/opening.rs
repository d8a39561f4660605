//! Whether a text is SQL: a statement accounts for each of its words, and a sentence leaves some over.

use super::client;
use super::known::{self, words};
use super::lex::{self, Kind};
use super::tree::{Part, Source, Tree};

/// Returns whether a text clearly is SQL.
pub(super) fn is_sql(text: &str) -> bool {
    client::opens_text(text) || opens(text, true)
}

/// Returns whether a text starts with a statement in capitals, whatever follows.
pub(super) fn begins_sql(text: &str) -> bool {
    opens(text, false)
}

/// Returns whether a text is a statement, or begins with one.
fn opens(text: &str, is_whole: bool) -> bool {
    let first = text.trim_start_matches(['(', ' ', '\n', '\t', '\r']);
    let word = first.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or("");
    // Most texts open with another word, which is quick to see.
    if !is_opener(word) && !first.starts_with("/*") && !first.starts_with("--") {
        return false;
    }
    let end = (0..=text.len().min(MOST_BYTES)).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    let text = text.get(..end).unwrap_or("");
    let lower = text.to_ascii_lowercase();
    let mut lexed = lex::lex(text, lex::STANDARD);
    if lexed.nested {
        lexed = lex::lex(text, lex::PLAIN);
    } else if lexed.unclear && lexed.tokens.iter().all(|token| token.kind == Kind::End) {
        lexed = lex::lex(text, lex::MYSQL);
    }
    let mut tokens = std::mem::take(&mut lexed.tokens);
    let first = tokens.iter().position(|token| token.kind != Kind::End).unwrap_or(0);
    tokens.drain(..first);
    let end = tokens.iter().position(|token| matches!(token.kind, Kind::End | Kind::Client));
    tokens.truncate(end.unwrap_or(tokens.len()));
    let source = Source { raw: text, lower: &lower, tokens: &tokens };
    let tree = Tree::of(&source);
    let mut part = Part { source, items: tree.group(0) };
    // `(SELECT ...) UNION (SELECT ...)`
    if let Some(group) = part.group(0) {
        part = part.of(tree.group(group));
        if !part.is(0, "select") {
            return false;
        }
    }
    let opening = Opening::of(part, end.is_some(), &tree);
    if is_whole { opening.is_statement() } else { opening.begins_statement() }
}

/// The first statement of a text, at the level outside brackets.
struct Opening<'t> {
    part: Part<'t>,
    /// The place of the first word that no clause takes, or the length.
    end: usize,
    /// Whether a `;` follows.
    closed: bool,
    tree: &'t Tree,
}

impl<'t> Opening<'t> {
    fn of(part: Part<'t>, closed: bool, tree: &'t Tree) -> Self {
        let mut opening = Self { part, end: part.len(), closed, tree };
        opening.end = opening.accounted();
        opening
    }

    fn is_statement(&self) -> bool {
        self.end == self.part.len() && self.has_form() && (self.is_plain() || self.is_marked())
    }

    /// Returns whether a statement begins in capitals, behind which a sentence may go on.
    fn begins_statement(&self) -> bool {
        let is_said = self.is_upper(0) && (self.is_upper(1) || matches!(self.part.word(0), Some("select" | "update")));
        is_said
            && self.end > 1
            && !self.part.is_symbol(self.end - 1, ",")
            && self.has_form()
            && (self.is_plain() || self.is_marked())
    }

    /// The place of the first word that belongs to no clause: a third name in a row, or an article or pronoun before a
    /// name.
    fn accounted(&self) -> usize {
        let (mut place, mut room) = (0, MOST_NAMES);
        // In a statement in capitals all of them are keywords.
        let is_shouted = self.is_upper(0) && self.is_upper(1);
        // INVARIANT: each round takes at least one item.
        while place < self.part.len() {
            let Some((_, next)) = self.part.path(place) else {
                room = if self.part.group(place).is_some() || self.is_literal(place) { 1 } else { MOST_NAMES };
                place += 1;
                continue;
            };
            let word = self.part.word(place).unwrap_or("");
            let is_name = place > 0 && (next > place + 1 || !is_keyword(word)) && !(is_shouted && self.is_upper(place));
            let is_article = !is_shouted && words().determiners.has(word) && self.is_name(next);
            if is_name && (room == 0 || is_article) {
                return place;
            }
            room = if is_name { room - 1 } else { MOST_NAMES };
            place = next;
        }
        self.part.len()
    }

    /// Returns whether the statement has what its first word demands.
    fn has_form(&self) -> bool {
        let Some(first) = self.part.word(0) else { return false };
        let (next, second) = (self.path(1), self.part.word(1).unwrap_or(""));
        match first {
            "select" => self.selects(),
            "with" => {
                let body = self.find("as").and_then(|at| (at + 1..at + 4).find_map(|place| self.part.group(place)));
                body.is_some_and(|group| {
                    let body = self.part.of(self.tree.group(group));
                    body.word(0).is_some_and(is_opener) || body.group(0).is_some()
                })
            }
            "insert" | "replace" => {
                let into = self.find("into").or_else(|| self.find("overwrite"));
                let gives = ["values", "value", "select", "with", "set", "default", "table", "partition"];
                let at = into.or_else(|| (first == "insert" && self.is_upper(0)).then_some(0));
                at.is_some_and(|at| {
                    self.part.name(at + 1).is_some()
                        && (at + 2..self.end).any(|place| {
                            self.part.group(place).is_some()
                                || self.part.word(place).is_some_and(|word| gives.contains(&word))
                        })
                })
            }
            "update" => self.find("set").is_some_and(|set| {
                let next = if self.part.group(set + 1).is_some() { Some(set + 2) } else { self.path(set + 1) };
                next.is_some_and(|next| self.part.is_symbol(next, "=") || self.part.is_symbol(next + 1, "="))
            }),
            "delete" => match self.find("from") {
                Some(from) => self.path(from + 1).is_some() && (from == 1 || self.is_upper(from) || self.compares()),
                // SQL Server needs no FROM: `DELETE users WHERE id = 1`.
                None => {
                    self.is_upper(0)
                        && !self.is_upper(1)
                        && next.is_some()
                        && (self.find("where").is_some()
                            || self.part.len() == 2
                            || self.part.kind(1) == Some(Kind::Name))
                }
            },
            "merge" => self.find("using").is_some(),
            "drop" | "alter" | "create" => {
                (words().objects.has(second) || words().noise.has(second))
                    && self.object().is_some_and(|at| self.part.kind(at).is_some_and(|kind| kind != Kind::Symbol))
            }
            "truncate" => next.is_some(),
            "grant" | "revoke" | "deny" => self
                .find(if first == "revoke" { "from" } else { "to" })
                .is_some_and(|to| to > 1 && to + 1 < self.part.len()),
            "explain" => self.explained().is_some(),
            "copy" => {
                let from = self.find("from").or_else(|| self.find("to"));
                from.is_some_and(|from| match self.part.kind(from + 1) {
                    Some(Kind::Word) => {
                        second == "into"
                            || matches!(self.part.word(from + 1), Some("stdin" | "stdout" | "program"))
                            || self.is_variable(from + 1)
                    }
                    kind => kind.is_some(),
                })
            }
            "load" => matches!(second, "data" | "xml"),
            "from" => self.find("select").is_some() || self.part.len() == 2,
            "values" | "call" => self.part.group(1).is_some() || self.calls(1),
            "exec" | "execute" => {
                let is_own = second.starts_with("xp_") || second.starts_with("sp_");
                is_own
                    || self.is_upper(0) && (self.part.group(1).is_some() || next.is_some())
                    || self.is_variable(1)
                    || second == "immediate"
                    || next.is_some_and(|next| self.is_variable(next))
            }
            "set" => {
                let at = 1 + usize::from(words().head.has(second));
                self.path(at).is_some_and(|next| self.part.is_symbol(next, "=") || self.is(next, "to"))
                    || self.is_upper(0) && words().set_kinds.has(second) && self.part.len() > 2
            }
            "show" => words().shown.has(second),
            "describe" | "desc" | "use" | "table" => next == Some(self.part.len()) && !words().determiners.has(second),
            "begin" | "start" | "commit" | "rollback" | "end" | "savepoint" => self.is_transaction(second),
            "attach" => self.part.kind(1 + usize::from(second == "database")) == Some(Kind::Text),
            "do" => self.part.kind(1) == Some(Kind::Text) && self.part.len() <= 4,
            "prepare" => next.is_some_and(|next| self.is(next, "from") || self.is(next, "as")),
            "declare" => self.is_variable(1),
            "delimiter" => self.is_upper(0),
            "if" => self.is_upper(0) && (matches!(second, "exists" | "not") || self.is_variable(1)),
            _ => self.is_rare(),
        }
    }

    fn selects(&self) -> bool {
        let Some(from) = self.find("from") else {
            let is_value =
                |place: usize| self.is_literal(place) || self.part.group(place).is_some() || self.is_variable(place);
            let is_one = self.part.len() == 2 && (is_value(1) || self.is_upper(0) && self.is_name(1));
            return is_one || self.calls(1) || (self.is_upper(0) || self.closed) && (1..self.end).any(is_value);
        };
        let at = from + 1 + usize::from(self.is(from + 1, "only") || self.is(from + 1, "lateral"));
        from > 1 && (self.path(at).is_some() || self.part.group(at).is_some() || self.part.kind(at) == Some(Kind::Text))
    }

    fn is_transaction(&self, second: &str) -> bool {
        let is_kind = words().transactions.has(second);
        match self.part.len() {
            1 => !(self.is(0, "start") || self.is(0, "end") && !self.closed),
            2 => is_kind || self.is(0, "savepoint"),
            _ => is_kind || self.is_upper(0) && words().starters.has(second),
        }
    }

    /// Recognizes rarer statements: in capitals, or closed, with what only a statement has behind its first word.
    fn is_rare(&self) -> bool {
        let first = self.part.word(0).unwrap_or("");
        let is_known = known::statement(&self.part.head()).is_some() || first == "pragma";
        let second = match self.part.kind(1) {
            None => matches!(first, "shutdown" | "checkpoint" | "vacuum"),
            Some(Kind::Word) => {
                let word = self.part.word(1).unwrap_or("");
                let is_part = words().head.has(word)
                    || words().noise.has(word)
                    || known::statement(&[word]).is_some()
                    || matches!(word, "with" | "immediate" | "nowait");
                is_part && self.is_upper(1)
                    || self.path(1) == Some(self.part.len()) && !self.is_upper(1)
                    || first == "pragma"
            }
            Some(Kind::Symbol | Kind::Close | Kind::End | Kind::Client) => false,
            Some(_) => true,
        };
        let is_address = first == "put" && self.is(1, "file");
        is_known && (self.is_upper(0) || self.closed && self.part.len() <= 2) && (second || is_address)
    }

    /// The statement that `EXPLAIN` takes, which is not another one.
    fn explained(&self) -> Option<bool> {
        let start = (1..self.part.len().min(MOST_OPTIONS))
            .find(|&place| self.part.word(place).is_some_and(|word| words().explained.has(word)))?;
        let is_option = |place: usize| {
            self.part.group(place).is_some()
                || self.part.is_symbol(place, "=")
                || self.part.word(place).is_some_and(|word| words().explain_options.has(word))
        };
        let rest = Opening::of(self.part.of(self.part.items.get(start..)?), self.closed, self.tree);
        ((1..start).all(is_option) && rest.end == rest.part.len() && rest.has_form())
            .then(|| rest.is_plain() || rest.is_marked())
    }

    /// Returns whether the statement needs no further mark: no sentence has these words and nothing else.
    fn is_plain(&self) -> bool {
        let only_names = |from: usize, behind: &[&str]| {
            let mut next = self.path(from);
            while let Some(at) = next.filter(|&at| self.part.is_symbol(at, ",")) {
                next = self.path(at + 1);
            }
            next.is_some_and(|next| {
                next >= self.part.len() || self.part.word(next).is_some_and(|word| behind.contains(&word))
            })
        };
        match self.part.word(0).unwrap_or("") {
            "delete" => {
                self.is(1, "from")
                    && self.part.token(0).is_some_and(|token| self.part.source.text(token, token) == "delete")
                    && only_names(2, &[])
            }
            "drop" => self.object().is_some_and(|at| only_names(at, &["cascade", "restrict", "purge", "force"])),
            "truncate" => {
                self.is(1, "table") && only_names(2, &["restart", "continue", "cascade", "restrict", "drop", "reuse"])
            }
            "alter" => self.object().and_then(|at| self.path(at)).is_some_and(|next| {
                self.part.word(next).is_some_and(|word| words().alterations.has(word)) && self.part.len() > next + 1
            }),
            "create" => {
                let next = self.object().and_then(|at| self.path(at)).unwrap_or(self.part.len());
                let has_columns = || {
                    self.part.group(next).is_some()
                        || self.is(next, "as") && (self.part.group(next + 1).is_some() || self.is(next + 1, "select"))
                };
                let is_one = |word: &str| words().definitions.has(word) && !matches!(word, "on" | "as");
                match self.part.word(1) {
                    Some("table" | "view" | "temporary" | "temp" | "or" | "materialized") => has_columns(),
                    Some("index" | "unique") => (next..self.end).any(|place| self.part.group(place).is_some()),
                    _ => (next..self.end).any(|place| self.part.word(place).is_some_and(is_one)),
                }
            }
            "grant" | "revoke" => {
                let on = self.find("on").unwrap_or(0);
                on > 1
                    && (1..on).all(|place| {
                        self.part.word(place).is_none_or(|word| word == "privileges" || words().privileges.has(word))
                    })
            }
            "explain" => self.explained() == Some(true),
            "exec" | "execute" | "declare" | "do" | "attach" | "prepare" => true,
            "show" | "begin" | "start" | "commit" | "rollback" | "end" => self.part.len() == 2,
            _ => false,
        }
    }

    /// Returns whether the statement has what a sentence has not: two keywords in capitals, a `;`, or marks between its
    /// words.
    fn is_marked(&self) -> bool {
        let is_said = |place: usize| self.is_upper(place) && self.part.word(place).is_some_and(is_keyword);
        let keywords = || (1..self.end).filter(|&place| self.part.word(place).is_some_and(is_keyword));
        let is_shouted = self.is_upper(0) && (keywords().any(is_said) || keywords().next().is_none());
        let is_name = |name: &str| name.contains(['_', '@']);
        let has_mark = |place: usize| {
            matches!(self.part.kind(place), Some(Kind::Symbol | Kind::Name | Kind::Open))
                || self.part.name(place).is_some_and(is_name)
                || matches!(self.part.word(place), Some("group" | "order")) && self.is(place + 1, "by")
                || self.is(place, "limit") && self.part.kind(place + 1) == Some(Kind::Number)
        };
        let may_be_marked = self.part.word(0).is_some_and(|word| words().spoken_openers.has(word));
        is_shouted || self.closed || may_be_marked && (self.compares() || (1..self.end).any(has_mark))
    }

    /// Returns whether a part of a condition occurs.
    fn compares(&self) -> bool {
        (1..self.end).any(|place| match self.part.kind(place) {
            Some(Kind::Symbol) => {
                ["=", "<", ">", "<=", ">=", "<>", "!="].iter().any(|mark| self.part.is_symbol(place, mark))
            }
            Some(Kind::Word) => match self.part.word(place) {
                Some("in" | "exists") => self.part.group(place + 1).is_some(),
                Some("like" | "between") => self.part.kind(place + 1).is_some_and(|kind| kind != Kind::Word),
                Some("is") => self.is(place + 1, "null") || self.is(place + 1, "not"),
                _ => false,
            },
            _ => false,
        })
    }

    /// The place behind the kind of object and `IF EXISTS`.
    fn object(&self) -> Option<usize> {
        let is_head = |word: &str| words().head.has(word) || words().noise.has(word) || words().objects.has(word);
        (2..self.part.len()).find(|&place| !self.part.word(place).is_some_and(is_head))
    }

    /// Returns whether a function is called there: the bracket directly follows the name.
    fn calls(&self, place: usize) -> bool {
        self.path(place).is_some_and(|next| {
            let tokens = (next.checked_sub(1).and_then(|last| self.part.token(last)), self.part.token(next));
            let (Some(name), Some(open)) = tokens else { return false };
            self.part.group(next).is_some() && !self.part.source.text(name, open).contains(char::is_whitespace)
        })
    }

    fn is(&self, place: usize, word: &str) -> bool {
        self.part.is(place, word)
    }

    fn find(&self, word: &str) -> Option<usize> {
        self.part.find(word).filter(|&place| place < self.end)
    }

    /// The place behind a name.
    fn path(&self, place: usize) -> Option<usize> {
        self.part.path(place).map(|(_, next)| next)
    }

    fn is_name(&self, place: usize) -> bool {
        self.part.name(place).is_some() && !self.part.word(place).is_some_and(is_keyword)
    }

    fn is_literal(&self, place: usize) -> bool {
        matches!(self.part.kind(place), Some(Kind::Text | Kind::Number))
    }

    fn is_variable(&self, place: usize) -> bool {
        self.part.name(place).is_some_and(|name| name.starts_with('@'))
    }

    fn is_upper(&self, place: usize) -> bool {
        self.part.token(place).is_some_and(|token| {
            let raw = self.part.source.text(token, token);
            self.part.kind(place) == Some(Kind::Word)
                && raw.len() > 1
                && !raw.bytes().any(|byte| byte.is_ascii_lowercase())
        })
    }
}

/// Returns whether a word opens statements.
fn is_opener(word: &str) -> bool {
    words().openers.has(&word.to_ascii_lowercase())
}

/// Returns whether a word stands between the names of a statement.
fn is_keyword(word: &str) -> bool {
    let words = words();
    [
        &words.connectors,
        &words.clauses,
        &words.head,
        &words.noise,
        &words.objects,
        &words.alterations,
        &words.definitions,
        &words.phrase_parts,
        &words.starters,
    ]
    .iter()
    .any(|list| list.has(word))
}

/// Maximum number of bytes of a text that are checked.
const MOST_BYTES: usize = 2048;
/// Maximum number of names in a row: a name and its alias.
const MOST_NAMES: usize = 2;
/// Maximum number of words before the statement that is explained.
const MOST_OPTIONS: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_told_from_a_sentence_by_what_it_leaves_over() {
        for text in [
            "explain analyze delete from users",
            "delete from users",
            "drop table reservations",
            "COPY INTO 's3://bucket/' FROM users",
            "PUT file:///etc/passwd @stage",
            "SYSTEM SHUTDOWN",
            "CREATE USER 'bob'@'%' IDENTIFIED BY 'x'",
            "Grant all privileges on *.* to 'app'@'%' with grant option.",
            "select id from users where id = 1",
        ] {
            assert!(is_sql(text), "{text}");
        }
        for text in [
            "delete from my cart the shoes",
            "select a pizza from the menu",
            "Show all uncommitted changes (including staged ones)",
            "Create session via PUT then verify sizes + HEAD",
            "select items (the red ones)",
            "update my profile",
            "grant access to bob",
        ] {
            assert!(!is_sql(text), "{text}");
        }
    }
}
