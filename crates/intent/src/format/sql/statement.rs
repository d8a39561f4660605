//! Reads a statement by its words: the effect of each clause that could be a statement. What is unknown is an
//! execution that could not be parsed.

use crate::reading::{Act, Reading};
use crate::sign::Sign;
use rulekeep_types::{Operation, Resource, RiskLevel, TargetKind, TargetRole};

use super::exposure::{self, Call};
use super::known::{self, database, unclear, words};
use super::lex::Kind;
use super::tree::{Part, Path, Source, Tree};

/// The state kept from one statement to the next.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// Set after `USE production`.
    pub production: bool,
}

/// Reads a statement into acts. Returns whether its brackets match.
pub(super) fn read(source: Source<'_>, session: &mut Session, reading: &mut Reading) -> bool {
    let tree = Tree::of(&source);
    let mut names = vec![false; source.tokens.len()];
    let mut reader =
        Reader { source, tree: &tree, names: &mut names, session, reading, queries: false, changes: false };
    reader.whole();
    !tree.broken
}

pub(super) struct Reader<'r, 't> {
    pub source: Source<'t>,
    pub tree: &'t Tree,
    /// Tokens that precede a bracket without being a call.
    names: &'r mut [bool],
    session: &'r mut Session,
    pub reading: &'r mut Reading,
    /// Whether the statement contains a query.
    pub queries: bool,
    /// Whether the statement contains expressions that are computed immediately.
    pub changes: bool,
}

impl<'t> Reader<'_, 't> {
    fn whole(&mut self) {
        let tree = self.tree;
        let top = Part { source: self.source, items: tree.group(0) };
        if is_plan(top, tree) {
            self.push(
                Act::new("explain", "query", Resource::Database, Operation::Read, 0.9).at_risk(RiskLevel::Low),
                top,
                None,
            );
            return;
        }
        for (place, items) in tree.groups.iter().enumerate() {
            let part = top.of(items);
            // Nested brackets: `((SELECT 1))`.
            if place == 0 || opens_statement(part) {
                self.clauses(part);
            }
        }
        let is_definition = matches!(top.word(0), Some("create" | "alter"));
        if self.queries || self.changes || is_definition {
            let only_known = is_definition || !self.queries && !self.changes;
            for (call, name) in exposure::calls(self.source, self.names, only_known) {
                let act = match call {
                    Call::Known(rule) => rule.act(),
                    Call::Unknown => unclear("call", "function"),
                };
                self.reading.push(act.told_by(name));
            }
        }
        if self.queries {
            self.holdings();
        }
    }

    /// Reads the parts of a group that start with a word that can start a statement.
    fn clauses(&mut self, part: Part<'t>) {
        let mut starts = vec![0];
        let head = part.word(0).unwrap_or("");
        let mut current = head;
        let mut lists_privileges = matches!(head, "grant" | "revoke" | "deny");
        for place in 1..part.len() {
            let Some(word) = part.word(place) else { continue };
            lists_privileges &= word != "on";
            if !lists_privileges && words().starters.has(word) && begins_statement(part, place, current) {
                starts.push(place);
                current = word;
                lists_privileges = matches!(word, "grant" | "revoke" | "deny");
            }
        }
        starts.push(part.len());
        for pair in starts.windows(2) {
            if let [start, end] = *pair
                && let Some(items) = part.items.get(start..end)
            {
                self.clause(part.of(items));
            }
        }
    }

    fn clause(&mut self, part: Part<'t>) {
        match part.word(0) {
            _ if part.items.is_empty() => {}
            Some("with") => self.common_tables(part),
            Some("select") => self.select(part),
            Some("insert" | "replace") => self.insert(part),
            Some("update") if !part.is(1, "statistics") => self.update(part),
            Some("delete") => self.delete(part),
            Some("merge") => self.merge(part),
            Some("copy") => self.copy(part),
            Some("explain") => {}
            Some(_) => self.by_head(part),
            None if part.group(0).is_some_and(|group| opens_statement(part.of(self.tree.group(group)))) => {}
            None if part.kind(0) == Some(Kind::Client) => self.client(part),
            None => self.push(unclear("run", "statement"), part, None),
        }
    }

    /// Reads `WITH t (n) AS (...)`: the names are not calls, and the queries are read as groups of their own.
    fn common_tables(&mut self, part: Part<'t>) {
        for place in 1..part.len() {
            let opens = part.is(place - 1, "with") || part.is(place - 1, "recursive") || part.is_symbol(place - 1, ",");
            if opens && part.group(place + 1).is_some() {
                self.name_at(part, place);
            }
        }
        if part.find("as").is_none() {
            self.push(unclear("run", "sql"), part, None);
        }
    }

    fn select(&mut self, part: Part<'t>) {
        self.queries = true;
        // `FROM ONLY t`, `JOIN LATERAL t`.
        let table = |place: usize| {
            let is_marked = part.is(place, "only") || part.is(place, "lateral");
            part.path(place + 1).filter(|_| is_marked).or_else(|| part.path(place))
        };
        let from = part.find("from").and_then(|place| table(place + 1)).map(|(path, _)| path);
        let into = part.find("into");
        self.limits(part);
        match into {
            Some(place) if part.is(place + 1, "outfile") || part.is(place + 1, "dumpfile") => {
                let act = Act::new("export", "rows", Resource::File, Operation::Write, 0.9);
                self.push(act.at_risk(RiskLevel::High).marked(Sign::Outside), part, from);
            }
            Some(place) => {
                let path = part.path(place + 1).map(|(path, _)| path);
                self.push(database("create", "table", Operation::Write), part, path);
            }
            None => {}
        }
        if part.len() < 2 {
            self.push(unclear("run", "sql"), part, None);
            return;
        }
        self.push(database("query", "table", Operation::Read).at_risk(RiskLevel::Low), part, from);
        // The further tables: after a comma of the list, and after each join.
        let list_end = (0..part.len()).find(|&place| part.is(place, "where")).unwrap_or(part.len());
        let list = part.find("from").map_or(list_end, |at| at + 1)..list_end;
        let joined = |place: usize| part.is_symbol(place, ",") && list.contains(&place) || part.is(place, "join");
        for (path, _) in (0..part.len()).filter(|&place| joined(place)).filter_map(|place| table(place + 1)) {
            self.reading.facts.note_target_as(TargetKind::Table, TargetRole::Read, &path.plain());
        }
    }

    /// Reads statements that their first words determine.
    fn by_head(&mut self, part: Part<'t>) {
        let head = part.head();
        let Some(rule) = known::statement(&head) else {
            self.push(unclear("run", "statement"), part, None);
            return;
        };
        let mut act = rule.act();
        let first = head.first().copied().unwrap_or("");
        let path = Self::named(part, first);
        match first {
            "use" => {
                self.session.production |= path.is_some_and(|path| names_production(path));
            }
            "table" | "from" => self.queries = true,
            "values" => self.changes = true,
            "drop" if act.resource == Resource::Database => {
                if part.has("temporary") || part.has("temp") {
                    act.risk = Some(RiskLevel::Medium);
                }
                let scratch =
                    path.is_some_and(|path| path.last().split(['_', '-']).any(|part| words().scratch.has(part)));
                if scratch && act.risk == Some(RiskLevel::Critical) {
                    act.risk = Some(RiskLevel::High);
                }
            }
            "alter" => act = Self::alter(part, act, head.get(1).copied().unwrap_or("")),
            "create" => self.create(part, &head),
            "set" => act = set(part, act),
            "pragma" => act = pragma(part, act),
            "vacuum" if part.has("into") => {
                act = Act::new("copy", "database", Resource::File, Operation::Write, 0.9).at_risk(RiskLevel::High);
            }
            "show" if part.has("grants") => {}
            "exec" | "execute" | "call" => self.procedure(part),
            "load" | "bulk" => {
                self.push(database("load", "rows", Operation::Write), part, path);
                if first == "bulk" {
                    let file = Act::new("read", "file", Resource::File, Operation::Read, 0.9);
                    self.push(file.at_risk(RiskLevel::High), part, path);
                }
            }
            _ => {}
        }
        let unlimited = (1..part.len()).any(|place| {
            part.word(place).is_some_and(|word| {
                words().unlimited.has(word)
                    && (word != "all" || !part.is(place + 1, "tables") && !part.is(place + 1, "sequences"))
            })
        });
        if act.operation == Operation::Admin && act.resource == Resource::Permission && unlimited && first != "drop" {
            act = act.at_risk(RiskLevel::Critical).marked(Sign::Administrator);
        }
        self.push(act, part, path);
    }

    /// Reads the procedure that is run; some procedures run programs.
    fn procedure(&mut self, part: Part<'t>) {
        let known = (1..part.len()).filter_map(|place| part.name(place)).find_map(known::call);
        if let Some(rule) = known {
            let act = rule.act();
            if act.resource == Resource::System {
                let text = (1..part.len()).find(|&place| part.kind(place) == Some(Kind::Text));
                self.reading.note_command(self.source.string(text.and_then(|place| part.token(place))));
            }
            self.push(act, part, None);
        }
    }

    fn client(&mut self, part: Part<'t>) {
        if let Some(token) = part.token(0) {
            super::client::read(self.source.text(token, token), self.reading);
        }
    }

    /// The object of a statement: the first name that is not a keyword of its head.
    fn named(part: Part<'t>, first: &str) -> Option<Path<'t>> {
        match first {
            "grant" | "revoke" | "deny" | "comment" => {
                let on = part.find("on")?;
                let on = if part.word(on + 1).is_some_and(|word| {
                    matches!(word, "table" | "column" | "database" | "schema" | "view" | "function")
                }) {
                    on + 1
                } else {
                    on
                };
                part.path(on + 1).map(|(path, _)| path)
            }
            "show" => {
                let of = (1..part.len()).find(|&place| matches!(part.word(place), Some("from" | "table" | "on")))?;
                part.path(of + 1).map(|(path, _)| path)
            }
            "load" => part.find("table").and_then(|place| part.path(place + 1)).map(|(path, _)| path),
            _ => {
                let makes = matches!(first, "create" | "alter" | "drop");
                let place = (1..part.len().min(MOST_HEAD)).find(|&place| match part.word(place) {
                    Some(word) => !(is_head_word(word) || makes && words().objects.has(word)),
                    None => part.kind(place) == Some(Kind::Name),
                })?;
                part.path(place).map(|(path, _)| path)
            }
        }
    }

    /// Reads limits such as `LIMIT 50`, `TOP 10` and `FETCH FIRST 5 ROWS`.
    pub(super) fn limits(&mut self, part: Part<'t>) {
        for place in 0..part.len() {
            let at = match part.word(place) {
                Some("limit" | "top") => place + 1,
                Some("fetch") => place + 2,
                _ => continue,
            };
            let token = match part.group(at) {
                Some(group) => self.tree.group(group).first().map(|item| item.token),
                None => part.token(at),
            };
            let count = token
                .filter(|&token| self.source.kind(token) == Some(Kind::Number))
                .and_then(|token| self.source.lower(token).parse().ok());
            if let Some(count) = count {
                self.reading.facts.note_count(count);
            }
        }
    }

    /// Adds the kinds of data in the columns and tables of a query.
    fn holdings(&mut self) {
        let found = exposure::holdings(self.source);
        let read =
            |noun: &str, resource| Act::new("query", noun, resource, Operation::Read, 0.8).at_risk(RiskLevel::High);
        for (name, act) in [
            (found.secret, read("credential", Resource::Credential)),
            (found.card, read("card", Resource::Payment)),
            (found.identity, read("customer", Resource::Customer)),
        ] {
            if let Some(name) = name {
                self.reading.push(act.told_by("SELECT").named_by(name));
            }
        }
        if let Some(name) = found.person {
            self.reading.facts.signs.add(Sign::Sensitive);
            self.reading.facts.show(Sign::Sensitive, name);
            let act = database("query", "table", Operation::Read).at_risk(RiskLevel::Medium).marked(Sign::Sensitive);
            self.reading.push(act.named_by(name));
        }
    }

    pub(super) fn name_at(&mut self, part: Part<'t>, place: usize) {
        if let Some(name) = part.token(place).and_then(|token| self.names.get_mut(token)) {
            *name = true;
        }
    }

    /// Adds an act with its evidence.
    pub(super) fn push(&mut self, act: Act, part: Part<'t>, path: Option<Path<'t>>) {
        let mut act = act.told_by(told(part));
        if let Some(path) = path {
            let role = match act.operation {
                Operation::Read => TargetRole::Read,
                Operation::Write | Operation::Delete => TargetRole::Write,
                _ => TargetRole::Named,
            };
            let text = path.plain();
            let kind = if text.contains(['/', '\\']) { TargetKind::Path } else { TargetKind::Table };
            self.reading.facts.note_target_as(kind, role, &text);
            act = act.named_by(path.raw);
        }
        let production = self.session.production || path.is_some_and(names_production);
        if production && act.operation != Operation::Read {
            act.signs.add(Sign::Production);
            if let Some(path) = path {
                self.reading.facts.show(Sign::Production, path.raw);
            }
        }
        if act.signs.has(Sign::Bulk) {
            self.reading.facts.show(Sign::Bulk, told(part));
        }
        self.reading.push(act);
    }
}

/// Returns whether a part is an `EXPLAIN` that runs nothing.
fn is_plan(part: Part<'_>, tree: &Tree) -> bool {
    if !part.is(0, "explain") || part.len() < 2 {
        return false;
    }
    let runs = |word: &str| matches!(word, "analyze" | "analyse" | "profile" | "execute");
    let start = (1..part.len())
        .find(|&place| part.word(place).is_some_and(|word| words().starters.has(word)))
        .unwrap_or(part.len());
    let options = part.items.iter().take(start).filter_map(|item| item.group);
    !(0..=start).any(|place| part.word(place).is_some_and(runs))
        && !options.flat_map(|group| tree.group(group)).any(|item| part.source.word(item.token).is_some_and(runs))
}

/// Returns whether a group in brackets is a statement of its own.
fn opens_statement(part: Part<'_>) -> bool {
    match part.word(0) {
        Some("select" | "with" | "values" | "table") => part.len() > 1,
        Some("insert" | "update" | "delete" | "merge" | "replace" | "from") => part.len() > 1 && part.name(1).is_some(),
        _ => false,
    }
}

/// Returns whether the word at a place starts another statement: an operand ends before it, and the following part
/// fits.
fn begins_statement(part: Part<'_>, place: usize, head: &str) -> bool {
    let word = part.word(place).unwrap_or("");
    let follows = match part.word(place - 1) {
        Some("as") => matches!(head, "create" | "prepare" | "explain" | "alter"),
        Some("then") => head != "merge",
        Some("do") => head != "insert",
        Some("execute" | "exec") => false,
        Some(before) => !words().connectors.has(before),
        None => {
            part.group(place - 1).is_some()
                || matches!(part.kind(place - 1), Some(Kind::Name | Kind::Text | Kind::Number | Kind::Client))
        }
    };
    if !follows
        || head == "alter"
            && matches!(word, "drop" | "alter" | "truncate" | "create" | "insert" | "update" | "delete" | "select")
        || head == "show" && word == "create"
        || word == "with"
        || word == "merge" && head == "alter"
    {
        return false;
    }
    let after = part.word(place + 1);
    match word {
        "select" => place + 1 < part.len(),
        "shutdown" | "kill" => true,
        "delete" if after == Some("from") => true,
        _ if after.is_some_and(|after| words().not_after.has(after)) => false,
        "execute" | "exec" | "call" => {
            part.name(place + 1).is_some()
                || part.group(place + 1).is_some()
                || part.kind(place + 1) == Some(Kind::Text)
        }
        _ => part.name(place + 1).is_some() || part.group(place + 1).is_some() && word == "delete",
    }
}

fn set(part: Part<'_>, act: Act) -> Act {
    let shown = part.token(1).map_or("", |token| part.source.lower(token));
    if act.risk == Some(RiskLevel::Low) && (shown.starts_with("@@global") || shown.starts_with("@@persist")) {
        return Act::new("set", "configuration", Resource::Config, Operation::Write, 0.9).at_risk(RiskLevel::High);
    }
    act
}

fn pragma(part: Part<'_>, act: Act) -> Act {
    let Some((path, next)) = part.path(1) else { return act };
    let sets = part.is_symbol(next, "=");
    if words().hostile_pragmas.has(path.last()) {
        return act.at_risk(RiskLevel::High);
    }
    if words().reading_pragmas.has(path.last()) && !sets {
        return Act::new("show", "database", Resource::Database, Operation::Read, 0.9).at_risk(RiskLevel::Low);
    }
    act
}

fn names_production(path: Path<'_>) -> bool {
    path.names().any(|name| name.split(['_', '-']).any(|part| words().production.has(part)))
}

/// The words that determined an act: the first, and the second if it belongs to it.
fn told(part: Part<'_>) -> &str {
    let Some(first) = part.token(0) else { return "" };
    let mut last = first;
    for place in 1..MOST_TOLD {
        match (part.word(place), part.token(place)) {
            (Some(word), Some(token)) if is_head_word(word) => last = token,
            _ => break,
        }
    }
    part.source.text(first, last)
}

fn is_head_word(word: &str) -> bool {
    words().head.has(word) || words().noise.has(word)
}

/// Number of items of a statement in which its name is searched.
const MOST_HEAD: usize = 16;
/// Maximum number of words quoted as evidence of the operation.
const MOST_TOLD: usize = 4;
