//! Distinguishes SQL from English by what follows the first word: `delete from users;` is SQL, "delete from my cart
//! the shoes" is not.

use super::client;
use super::known::holds;
use super::lex::{self, Kind};
use super::tree::{Part, Source, Tree};

/// Returns whether a text clearly is SQL.
pub(super) fn is_sql(text: &str) -> bool {
    client::opens_text(text) || has_shape(text, Tail::None)
}

/// Returns whether a text starts with a statement in capitals, whatever follows.
pub(super) fn begins_sql(text: &str) -> bool {
    has_shape(text, Tail::Words)
}

/// The text that may follow a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tail {
    None,
    /// The rest of an English sentence.
    Words,
}

fn has_shape(text: &str, tail: Tail) -> bool {
    let first = text.trim_start_matches(['(', ' ', '\n', '\t', '\r']);
    let word = first.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or("");
    if opens_english(first, word) {
        return false;
    }
    if !holds("openers", &word.to_ascii_lowercase()) && !first.starts_with("/*") && !first.starts_with("--") {
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
    let closed = end.is_some();
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
    Shape { part, tail, closed, tree: &tree }.fits()
}

/// Returns whether a function word follows that no statement has there: "Show me", "delete the".
fn opens_english(text: &str, word: &str) -> bool {
    let second = text.get(word.len()..).unwrap_or("").split_whitespace().next().unwrap_or("");
    !word.bytes().all(|byte| byte.is_ascii_uppercase())
        && [
            "the", "a", "an", "my", "me", "our", "your", "this", "these", "those", "his", "her", "their", "us", "it",
            "up",
        ]
        .contains(&second)
}

struct Shape<'t> {
    part: Part<'t>,
    tail: Tail,
    /// Whether a `;` follows.
    closed: bool,
    tree: &'t Tree,
}

impl Shape<'_> {
    fn fits(&self) -> bool {
        let Some(first) = self.part.word(0) else { return false };
        if self.tail == Tail::Words
            && !(self.is_upper(0) && (self.is_upper(1) || first == "select" || first == "update"))
        {
            return false;
        }
        match first {
            "select" => self.select(),
            "with" => self.with(),
            "insert" | "replace" => self.insert(first),
            "update" => self.update(),
            "delete" => self.delete(),
            "merge" => self
                .path(1 + usize::from(self.is(1, "into")))
                .is_some_and(|next| self.is(next, "using") || self.is(next + 1, "using") || self.is(next + 2, "using")),
            "drop" => self.drop(),
            "truncate" => self.truncate(),
            "alter" => self.alter(),
            "create" => self.create(),
            "grant" | "revoke" | "deny" => self.grant(),
            "explain" => self.explain(),
            "copy" => self.copy(),
            "load" => self.is(1, "data") || self.is(1, "xml"),
            "values" => self.part.group(1).is_some(),
            "call" => {
                self.calls(1) || self.marked() && self.path(1).is_some_and(|next| self.part.group(next).is_some())
            }
            "exec" | "execute" => self.execute(),
            "set" => self.set(),
            "show" => {
                self.second_in("shown") && (self.is_upper(0) && self.is_upper(1) || self.closed || self.part.len() == 2)
            }
            "describe" | "desc" | "use" | "table" => self.marked() && self.names_one(),
            "begin" | "start" | "commit" | "rollback" | "end" | "savepoint" => self.transaction(),
            "pragma" => self.marked() || self.part.is_symbol(2, "=") || self.part.group(2).is_some(),
            "attach" => self.part.kind(1 + usize::from(self.is(1, "database"))) == Some(Kind::Text),
            "do" => self.part.kind(1) == Some(Kind::Text) && self.part.len() <= 4,
            "prepare" => self.path(1).is_some_and(|next| self.is(next, "from") || self.is(next, "as")),
            "declare" => self.starts_with_variable(1),
            "delimiter" => self.is_upper(0),
            "if" => self.is_upper(0) && (self.is(1, "exists") || self.is(1, "not") || self.starts_with_variable(1)),
            _ => self.by_head(),
        }
    }

    fn is(&self, place: usize, word: &str) -> bool {
        self.part.is(place, word)
    }

    fn is_upper(&self, place: usize) -> bool {
        self.part.token(place).is_some_and(|token| {
            let raw = self.part.source.text(token, token);
            self.part.kind(place) == Some(Kind::Word)
                && raw.len() > 1
                && !raw.bytes().any(|byte| byte.is_ascii_lowercase())
        })
    }

    /// Returns whether the first word is in capitals, or a `;` ends the statement.
    fn marked(&self) -> bool {
        self.is_upper(0) || self.closed
    }

    fn second_in(&self, list: &str) -> bool {
        self.part.word(1).is_some_and(|word| holds(list, word))
    }

    fn is_determiner(&self, place: usize) -> bool {
        self.part.word(place).is_some_and(|word| holds("determiners", word))
    }

    fn is_clause(&self, place: usize) -> bool {
        self.part.word(place).is_some_and(|word| holds("clauses", word))
    }

    /// The place after a name at a place; "the list" is not a name.
    fn path(&self, place: usize) -> Option<usize> {
        let (_, next) = self.part.path(place)?;
        let english = self.is_determiner(place) && self.part.kind(next) == Some(Kind::Word) && !self.is_clause(next);
        (!english).then_some(next)
    }

    /// Returns whether the statement ends there, or an English sentence may continue.
    fn ends(&self, place: usize) -> bool {
        place >= self.part.len() || self.tail == Tail::Words
    }

    /// Returns whether a part of a condition occurs.
    fn compares(&self, from: usize) -> bool {
        (from..self.part.len()).any(|place| match self.part.kind(place) {
            Some(Kind::Symbol) => {
                ["=", "<", ">", "<=", ">=", "<>", "!="].iter().any(|symbol| self.part.is_symbol(place, symbol))
            }
            Some(Kind::Word) => self.part.word(place).is_some_and(|word| {
                matches!(word, "in" | "exists") && self.part.group(place + 1).is_some()
                    || matches!(word, "like" | "between") && self.part.kind(place + 1) != Some(Kind::Word)
                    || word == "is" && (self.is(place + 1, "null") || self.is(place + 1, "not"))
                    || matches!(word, "true" | "false")
            }),
            Some(Kind::Number) => self.part.len() == place + 1,
            _ => false,
        })
    }

    /// Returns whether `WHERE` has a condition, or is in capitals.
    fn condition(&self, place: usize) -> bool {
        self.is_upper(place) || self.compares(place + 1)
    }

    fn select(&self) -> bool {
        let from = self.part.find("from");
        let list = from.unwrap_or(self.part.len());
        if self.is_determiner(1) && !self.is(1, "all") && self.part.name(2).is_some() && !self.is(2, "from") {
            return false;
        }
        if self.bare_run(1, list) > 2 {
            return false;
        }
        let Some(from) = from else {
            let literal = (1..list).any(|place| {
                matches!(self.part.kind(place), Some(Kind::Text | Kind::Number | Kind::Open))
                    || self.starts_with_variable(place)
            });
            return literal && (self.marked() || list == 2)
                || self.is_upper(0) && list == 2 && self.part.name(1).is_some()
                || self.calls(1);
        };
        if from == 1 {
            return false;
        }
        let next = match self.part.group(from + 1) {
            Some(_) => from + 2,
            None if self.is(from + 1, "only") || self.is(from + 1, "lateral") => from + 3,
            None => match self.path(from + 1) {
                Some(next) => next,
                // FROM 'file.csv'
                None if self.part.kind(from + 1) == Some(Kind::Text) => from + 2,
                None => return false,
            },
        };
        let next = if self.part.group(next).is_some() { next + 1 } else { next };
        let next = if self.is(next, "as") { next + 1 } else { next };
        let aliased = self.part.name(next).is_some() && !self.is_clause(next) && !self.starts_another(next);
        let after = if aliased { next + 1 } else { next };
        let after = if aliased && self.part.group(after).is_some() { after + 1 } else { after };
        let goes_on = self.is_clause(after) || self.part.is_symbol(after, ",") || self.starts_another(after);
        if !goes_on && !self.ends(after) || aliased && self.is_determiner(from + 1) {
            return false;
        }
        if self.is(after, "where") && !self.condition(after) {
            return false;
        }
        self.is_upper(0) && self.is_upper(from) || self.closed || self.has_marks(after)
    }

    /// Returns whether a function is called there: the bracket directly follows the name, and no sentence continues
    /// after it.
    fn calls(&self, place: usize) -> bool {
        let Some((_, next)) = self.part.path(place) else { return false };
        let (Some(name), Some(open)) =
            (next.checked_sub(1).and_then(|last| self.part.token(last)), self.part.token(next))
        else {
            return false;
        };
        let is_close =
            self.part.group(next).is_some() && !self.part.source.text(name, open).contains(char::is_whitespace);
        let after = next + 1;
        is_close
            && (after >= self.part.len()
                || self.part.kind(after) == Some(Kind::Symbol)
                || self.is(after, "as") && after + 2 >= self.part.len())
    }

    /// Returns whether another statement starts there.
    fn starts_another(&self, place: usize) -> bool {
        self.part.word(place).is_some_and(|word| holds("starters", word))
    }

    /// The longest run of names with nothing between them.
    fn bare_run(&self, from: usize, to: usize) -> usize {
        let mut longest = 0;
        let mut run = 0;
        for place in from..to {
            let bare = self.part.name(place).is_some()
                && !self.part.word(place).is_some_and(|word| {
                    holds("connectors", word) && !matches!(word, "of" | "to" | "for" | "with" | "only" | "on" | "by")
                        || holds("phrase_parts", word)
                });
            run = if bare { run + 1 } else { 0 };
            longest = longest.max(run);
        }
        longest
    }

    /// Returns whether marks occur that English does not have between words.
    fn has_marks(&self, after: usize) -> bool {
        (1..self.part.len()).any(|place| {
            matches!(self.part.kind(place), Some(Kind::Symbol | Kind::Name | Kind::Open))
                || self.part.name(place).is_some_and(|name| name.contains(['_', '@']))
        }) || ["group", "order"].iter().any(|word| self.is(after, word) && self.is(after + 1, "by"))
            || self.is(after, "limit") && self.part.kind(after + 1) == Some(Kind::Number)
    }

    fn with(&self) -> bool {
        let name = 1 + usize::from(self.is(1, "recursive"));
        let Some(next) = self.path(name) else { return false };
        let next = if self.part.group(next).is_some() { next + 1 } else { next };
        let body = (next + 1..next + 4).find_map(|place| self.part.group(place));
        self.is(next, "as")
            && body.is_some_and(|group| {
                let body = self.part.of(self.tree.group(group));
                body.word(0).is_some_and(|word| holds("openers", word)) || body.group(0).is_some()
            })
    }

    fn insert(&self, first: &str) -> bool {
        let into = (1..4).find(|&place| self.is(place, "into") || self.is(place, "overwrite"));
        let at = match into {
            Some(into) => into + 1 + usize::from(self.is(into + 1, "table")),
            None if first == "insert" && self.is_upper(0) => 1,
            None => return false,
        };
        if into.is_some_and(|into| into > 1)
            && !self.second_in("noise")
            && !self.is(1, "delayed")
            && !self.is(1, "high_priority")
        {
            return false;
        }
        let Some(next) = self.path(at) else { return false };
        if self.part.group(next).is_some() {
            return self.part.word(next + 1).is_none_or(|word| {
                matches!(
                    word,
                    "values" | "value" | "select" | "with" | "output" | "overriding" | "default" | "table" | "as"
                )
            });
        }
        let next = if self.is(next, "as") { next + 2 } else { next };
        self.part.word(next).is_some_and(|word| match word {
            "values" | "value" => self.part.group(next + 1).is_some(),
            "select" | "default" | "with" | "output" | "partition" => self.is_upper(0) || self.part.len() > next + 1,
            "set" => self.compares(next),
            _ => false,
        })
    }

    fn update(&self) -> bool {
        let at = (1..6).find(|&place| self.part.group(place).is_none() && !self.second_word_of_update(place));
        let Some(next) = at.and_then(|at| self.path(at)) else { return false };
        // Up to the assignment: an alias, or joined tables.
        let limit = if self.is_upper(0) { self.part.len() } else { next + 12 };
        (next..limit).find(|&place| self.is(place, "set")).is_some_and(|set| {
            if self.part.group(set + 1).is_some() {
                return self.part.is_symbol(set + 2, "=");
            }
            self.part
                .path(set + 1)
                .is_some_and(|(_, next)| self.part.is_symbol(next, "=") || self.part.is_symbol(next + 1, "="))
        })
    }

    fn second_word_of_update(&self, place: usize) -> bool {
        self.part.word(place).is_some_and(|word| {
            matches!(
                word,
                "only" | "low_priority" | "ignore" | "top" | "or" | "rollback" | "abort" | "replace" | "fail"
            )
        })
    }

    fn delete(&self) -> bool {
        let from = (1..5).find(|&place| self.is(place, "from"));
        let Some(from) = from else {
            // SQL Server needs no FROM: `DELETE users WHERE id = 1`.
            return self.is_upper(0)
                && !self.is_upper(1)
                && self.path(1).is_some_and(|next| {
                    next == self.part.len() && (self.part.len() == 2 || self.part.kind(1) == Some(Kind::Name))
                        || self.is(next, "where") && self.condition(next)
                });
        };
        let joins =
            ["where", "join", "inner", "left", "using"].iter().any(|word| self.part.has(word)) && self.compares(from);
        if from > 1 && !self.is(1, "top") && !self.is_upper(from) && !joins {
            return false;
        }
        let Some(next) = self.path(from + 1 + usize::from(self.is(from + 1, "only"))) else { return false };
        if self.is_determiner(from + 1) && self.part.kind(from + 1) == Some(Kind::Word) {
            return false;
        }
        let is_all_lower = self.part.token(0).is_some_and(|token| self.part.source.text(token, token) == "delete");
        if self.ends(next) {
            return self.is_upper(0) && self.is_upper(from) || self.closed || is_all_lower;
        }
        let next = if self.is(next, "as") { next + 1 } else { next };
        let after = if self.part.name(next).is_some() && !self.is_clause(next) && !self.starts_another(next) {
            next + 1
        } else {
            next
        };
        match self.part.word(after) {
            Some("where") => self.condition(after),
            Some("using" | "limit" | "order" | "returning" | "output" | "join" | "inner" | "left") => {
                self.is_upper(0) || self.compares(after) || self.closed
            }
            _ => {
                self.is_upper(0) && self.starts_another(after)
                    || after == self.part.len() && self.is_upper(0) && self.is_upper(from)
            }
        }
    }

    /// The place after the kind of object and `IF EXISTS`.
    fn object(&self) -> Option<usize> {
        if !self.second_in("objects") {
            return None;
        }
        let is_head = |word: &str| holds("head", word) || holds("noise", word) || holds("objects", word);
        let next =
            (2..self.part.len()).find(|&place| !self.part.word(place).is_some_and(is_head)).unwrap_or(self.part.len());
        Some(next)
    }

    fn drop(&self) -> bool {
        let Some(mut next) = self.object().and_then(|at| self.path(at)) else { return false };
        while self.part.is_symbol(next, ",") {
            match self.path(next + 1) {
                Some(after) => next = after,
                None => return false,
            }
        }
        self.ends(next)
            || self.part.group(next).is_some()
            || self.starts_another(next) && self.is_upper(0)
            || self.part.is_symbol(next, "@")
            || self.part.word(next).is_some_and(|word| matches!(word, "cascade" | "restrict" | "purge" | "force"))
            || self.is(next, "on")
                && self.part.name(next + 1).is_some()
                && (self.marked() || self.part.len() == next + 2)
    }

    fn truncate(&self) -> bool {
        let is_table = self.is(1, "table");
        let at = 1 + usize::from(is_table);
        let Some(mut next) = self.path(at + usize::from(self.is(at, "only"))) else { return false };
        while self.part.is_symbol(next, ",") {
            match self.path(next + 1) {
                Some(after) => next = after,
                None => return false,
            }
        }
        let ends = self.ends(next)
            || self
                .part
                .word(next)
                .is_some_and(|word| matches!(word, "restart" | "continue" | "cascade" | "restrict" | "drop" | "reuse"));
        ends && (is_table || self.marked())
    }

    fn alter(&self) -> bool {
        let Some(at) = self.object() else { return false };
        if self.is_upper(0) && self.is_upper(1) {
            return at < self.part.len() || self.is(1, "system");
        }
        self.path(at).is_some_and(|next| {
            self.part.word(next).is_some_and(|word| holds("alterations", word)) && self.part.len() > next + 1
        })
    }

    fn create(&self) -> bool {
        let Some(at) = self.object() else { return false };
        if self.is_upper(0) && self.is_upper(1) {
            return true;
        }
        let Some(next) = self.path(at) else { return false };
        match self.part.word(1) {
            _ if self.closed && self.ends(next) => true,
            Some("table" | "view" | "temporary" | "temp" | "or" | "materialized") => {
                self.part.group(next).is_some()
                    || self.is(next, "as")
                        && (self.part.group(next + 1).is_some()
                            || self.starts_another(next + 1)
                            || self.is(next + 1, "with"))
            }
            Some("index" | "unique") => {
                (self.is(next, "on") || self.part.group(next).is_some())
                    && (next..self.part.len()).any(|place| self.part.group(place).is_some())
            }
            _ => (next..self.part.len()).any(|place| {
                self.part.word(place).is_some_and(|word| holds("definitions", word) && word != "on" && word != "as")
            }),
        }
    }

    /// Recognizes `GRANT SELECT ON t TO bob`; a role needs capitals.
    fn grant(&self) -> bool {
        let way = if self.is(0, "revoke") { "from" } else { "to" };
        let Some(way) = self.part.find(way) else { return false };
        if self.is_upper(0) && self.is_upper(way) && self.part.len() > way + 1 {
            return true;
        }
        let on = self.part.find("on").unwrap_or(way);
        let all_privileges = (1..on.min(way)).all(|place| match self.part.word(place) {
            Some(word) => holds("privileges", word) || word == "privileges",
            None => self.part.group(place).is_some() || self.part.is_symbol(place, ","),
        });
        all_privileges
            && on > 1
            && on < way
            && self.part.name(way + 1).or(self.part.kind(way + 1).map(|_| "")).is_some()
    }

    fn explain(&self) -> bool {
        let start = (1..self.part.len().min(10))
            .find(|&place| self.part.word(place).is_some_and(|word| holds("explained", word)));
        let Some(start) = start else { return false };
        let options = (1..start).all(|place| {
            self.part.group(place).is_some()
                || self.part.is_symbol(place, "=")
                || self.part.word(place).is_some_and(|word| holds("explain_options", word))
        });
        options
            && self.part.items.get(start..).is_some_and(|items| {
                Shape { part: self.part.of(items), tail: self.tail, closed: self.closed, tree: self.tree }.explained()
            })
    }

    /// Recognizes the statement after EXPLAIN, which is not another EXPLAIN.
    fn explained(&self) -> bool {
        !self.is(0, "explain") && self.fits()
    }

    fn copy(&self) -> bool {
        let next = if self.part.group(1).is_some() { Some(2) } else { self.path(1 + usize::from(self.is(1, "into"))) };
        let Some(next) = next else { return false };
        let next = if self.part.group(next).is_some() { next + 1 } else { next };
        if !self.is(next, "from") && !self.is(next, "to") {
            return false;
        }
        match self.part.kind(next + 1) {
            Some(Kind::Word) => self
                .part
                .word(next + 1)
                .is_some_and(|word| matches!(word, "stdin" | "stdout" | "program") || word.starts_with('@')),
            Some(Kind::Text) => self.is_upper(0) || self.part.group(1).is_some() || self.closed,
            _ => false,
        }
    }

    fn execute(&self) -> bool {
        let own = self.part.path(1).is_some_and(|(path, _)| {
            let name = path.last();
            ["xp_", "sp_"].iter().any(|start| name.starts_with(start))
        });
        let takes_variable = self.path(1).is_some_and(|next| self.starts_with_variable(next));
        if own || takes_variable || self.is(1, "immediate") && self.part.kind(2) != Some(Kind::Word) {
            return true;
        }
        self.is_upper(0)
            && (self.part.group(1).is_some()
                || self.path(1).is_some_and(|next| {
                    self.part.len() == next
                        || self.part.kind(next) != Some(Kind::Word)
                        || self.starts_with_variable(next)
                }))
    }

    fn set(&self) -> bool {
        if self.starts_with_variable(1) {
            return self.compares(2);
        }
        let assigned = self.part.path(1 + usize::from(self.second_in("head"))).is_some_and(|(_, next)| {
            self.part.is_symbol(next, "=") || self.is(next, "to") && self.part.len() <= next + 8
        });
        let kind = matches!(
            self.part.word(1),
            Some(
                "role"
                    | "password"
                    | "session"
                    | "global"
                    | "persist"
                    | "default"
                    | "transaction"
                    | "names"
                    | "local"
                    | "constraints"
            )
        );
        self.is_upper(0) && (assigned || kind && self.part.len() > 2) || self.closed && assigned && self.part.len() <= 8
    }

    fn transaction(&self) -> bool {
        let kind = self.part.word(1).is_some_and(|word| {
            matches!(word, "transaction" | "work" | "tran" | "immediate" | "deferred" | "exclusive" | "prepared" | "to")
        });
        match self.part.len() {
            1 => self.marked() && !(self.is(0, "start") || self.is(0, "end") && !self.closed),
            2 => kind && self.part.len() == 2 || self.is(0, "savepoint") && self.marked(),
            _ => kind && self.marked() || self.is_upper(0) && self.starts_another(1),
        }
    }

    /// Recognizes a single name and nothing else.
    fn names_one(&self) -> bool {
        self.path(1).is_some_and(|next| next == self.part.len()) && !self.is_determiner(1)
    }

    fn starts_with_variable(&self, place: usize) -> bool {
        self.part.name(place).is_some_and(|name| name.starts_with('@'))
    }

    /// Recognizes rarer statements: in capitals, with the arguments that they take.
    fn by_head(&self) -> bool {
        let second = match self.part.kind(1) {
            None => self.closed || self.is(0, "shutdown"),
            Some(Kind::Word) if self.is(0, "shutdown") => {
                self.is(1, "with") || self.is(1, "immediate") || self.is(1, "nowait")
            }
            Some(Kind::Word) => {
                self.part.word(1).is_some_and(|word| holds("head", word) || holds("noise", word)) && self.is_upper(1)
                    || self.names_one() && !self.is_upper(1)
            }
            Some(Kind::Text | Kind::Name | Kind::Number | Kind::Open) => true,
            _ => false,
        };
        let exact = self.closed && self.part.len() <= 2;
        (self.is_upper(0) || exact) && second
    }
}

/// Maximum number of bytes of a text that are checked.
const MOST_BYTES: usize = 2048;
