//! A statement, read by its words: what each of its clauses that can stand as a
//! statement does. What is not known is an execution that could not be read.

use crate::model::{Operation, Resource, RiskLevel};
use crate::parse::reading::{Act, Reading};
use crate::parse::sign::Sign;

use super::bound;
use super::dynamic;
use super::exposure::{self, Call};
use super::known;
use super::lex::Kind;
use super::tree::{Part, Path, Source, Tree};

/// What holds from one statement to the next.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// `USE production` stands before.
    pub production: bool,
}

/// Reads one statement into acts. Returns whether its brackets are in order.
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
    /// Tokens that stand before a bracket and call nothing.
    names: &'r mut [bool],
    session: &'r mut Session,
    pub reading: &'r mut Reading,
    /// A query stands somewhere in it.
    queries: bool,
    /// Something stands in it whose expressions are computed at once.
    changes: bool,
}

impl<'r, 't> Reader<'r, 't> {
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
            // Brackets in brackets: `((SELECT 1))`.
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
                self.reading.push(act.from_operation(name));
            }
        }
        if self.queries {
            self.holdings();
        }
    }

    /// The pieces of a group that begin with a word that can begin a statement.
    fn clauses(&mut self, part: Part<'t>) {
        let mut starts = vec![0];
        let head = part.word(0).unwrap_or("");
        let mut current = head;
        let mut lists_privileges = matches!(head, "grant" | "revoke" | "deny");
        for place in 1..part.len() {
            let Some(word) = part.word(place) else { continue };
            lists_privileges &= word != "on";
            if !lists_privileges && known::holds("starters", word) && begins_statement(part, place, current) {
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

    /// `WITH t (n) AS (...)`: the names are no calls; the queries are read as their own groups.
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
        let from = part.find("from").and_then(|place| part.path(place + 1)).map(|(path, _)| path);
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
    }

    fn insert(&mut self, part: Part<'t>) {
        self.changes = true;
        let at = part.find("into").or_else(|| part.find("overwrite")).map_or(1, |place| place + 1);
        let at = (at..part.len()).find(|&place| !part.is(place, "table")).unwrap_or(at);
        let Some((path, next)) = part.path(at) else {
            self.push(unclear("insert", "rows"), part, None);
            return;
        };
        self.name_at(part, next - 1);
        let act = if guards_access(path) {
            Act::new("grant", "role", Resource::Permission, Operation::Admin, 0.8).at_risk(RiskLevel::High)
        } else {
            database("insert", "rows", Operation::Write)
        };
        let act = if part.has("overwrite") { act.marked(Sign::Bulk) } else { act };
        self.push(act, part, Some(path));
        if part.has("returning") || part.has("output") {
            self.queries = true;
        }
    }

    fn update(&mut self, part: Part<'t>) {
        self.changes = true;
        let skipped = ["only", "low_priority", "ignore", "top", "or", "rollback", "abort", "replace", "fail"];
        let at = (1..part.len()).find(|&place| {
            part.group(place).is_none() && !part.word(place).is_some_and(|word| skipped.contains(&word))
        });
        let Some(((path, _), set)) = at.and_then(|at| part.path(at)).zip(part.find("set")) else {
            self.push(unclear("update", "rows"), part, None);
            return;
        };
        let columns = self.assigned(part, set);
        let unbounded = bound::is_unbounded(part, self.tree);
        let says = |list: &str| columns.iter().copied().find(|column| known::holds(list, column));
        let act = if let Some(column) = columns.iter().copied().find(|column| exposure::is_secret(column)) {
            Act::new("update", "credential", Resource::Credential, Operation::Admin, 0.8)
                .at_risk(RiskLevel::High)
                .from_resource(column)
        } else if let Some(column) = says("access_columns") {
            Act::new("update", "role", Resource::Permission, Operation::Admin, 0.8)
                .at_risk(RiskLevel::High)
                .from_resource(column)
        } else if guards_access(path) {
            Act::new("update", "role", Resource::Permission, Operation::Admin, 0.8).at_risk(RiskLevel::High)
        } else if let Some(column) = says("money_columns").filter(|_| !unbounded) {
            database("update", "rows", Operation::Write).at_risk(RiskLevel::High).from_resource(column)
        } else {
            database("update", "rows", Operation::Write)
        };
        let act = match act.operation {
            // Everyone at once.
            Operation::Admin if unbounded => act.at_risk(RiskLevel::Critical).marked(Sign::ManyPeople),
            _ if unbounded => act.marked(Sign::Bulk),
            _ => act,
        };
        self.limits(part);
        let target = self.origin(part, path);
        self.push(act, part, Some(target));
        if part.has("returning") || part.has("output") {
            self.queries = true;
        }
    }

    /// The columns behind `SET`.
    fn assigned(&self, part: Part<'t>, set: usize) -> Vec<&'t str> {
        let end = (set..part.len()).find(|&place| part.is(place, "where")).unwrap_or(part.len());
        (set + 1..end)
            .filter(|&place| {
                part.is_symbol(place + 1, "=")
                    && (place == set + 1 || part.is_symbol(place - 1, ",") || part.is_symbol(place - 1, "."))
                    || part.group(place).is_some() && part.is_symbol(place + 1, "=")
            })
            .flat_map(|place| match part.group(place) {
                Some(group) => {
                    self.tree.group(group).iter().filter_map(|item| self.source.name(item.token)).collect::<Vec<_>>()
                }
                None => part.name(place).into_iter().collect(),
            })
            .collect()
    }

    fn delete(&mut self, part: Part<'t>) {
        self.changes = true;
        let at = part.find("from").map_or(1, |place| place + 1);
        let at = if part.is(at, "only") { at + 1 } else { at };
        let path = part.path(at).map(|(path, _)| path);
        let Some(path) = path else {
            self.push(unclear("delete", "rows"), part, None);
            return;
        };
        let audited = path.names().any(|name| known::holds("audit_tables", name));
        let act = if guards_access(path) {
            Act::new("delete", "role", Resource::Permission, Operation::Admin, 0.8)
                .at_risk(RiskLevel::High)
                .marked(Sign::TakesAccess)
        } else {
            database("delete", "rows", Operation::Delete)
        };
        let unbounded = bound::is_unbounded(part, self.tree);
        let act = if audited { act.at_risk(RiskLevel::High).marked(Sign::Control) } else { act };
        let act = if unbounded { act.marked(Sign::Bulk) } else { act };
        self.limits(part);
        let target = self.origin(part, path);
        self.push(act, part, Some(target));
        if part.has("returning") || part.has("output") {
            self.queries = true;
        }
    }

    /// `UPDATE o ... FROM orders o`: the table that the alias stands for.
    fn origin(&self, part: Part<'t>, alias: Path<'t>) -> Path<'t> {
        let named = part.find("from").and_then(|place| part.path(place + 1)).filter(|(_, next)| {
            let next = if part.is(*next, "as") { next + 1 } else { *next };
            part.name(next) == Some(alias.lower)
        });
        named.map_or(alias, |(path, _)| path)
    }

    fn merge(&mut self, part: Part<'t>) {
        self.changes = true;
        let at = part.find("into").map_or(1, |place| place + 1);
        let path = part.path(at).map(|(path, _)| path);
        if let Some(path) = path {
            for place in 1..part.len() {
                if part.is(place, "insert") || part.is(place, "into") {
                    self.name_at(part, place);
                }
            }
            if part.has("insert") || part.has("update") {
                self.push(database("merge", "rows", Operation::Write), part, Some(path));
            }
            if (1..part.len()).any(|place| part.is(place - 1, "then") && part.is(place, "delete")) {
                self.push(database("delete", "rows", Operation::Delete), part, Some(path));
            }
        } else {
            self.push(unclear("merge", "rows"), part, None);
        }
    }

    /// `COPY`: between a table and the client, a file or a program.
    fn copy(&mut self, part: Part<'t>) {
        let path = if part.is(1, "into") { part.path(2) } else { part.path(1) }.map(|(path, next)| {
            self.name_at(part, next - 1);
            path
        });
        let way = (1..part.len()).find(|&place| part.is(place, "from") || part.is(place, "to"));
        let Some(way) = way else {
            self.push(unclear("copy", "rows"), part, path);
            return;
        };
        let into = part.is(way, "from");
        let end = part.word(way + 1);
        let is_file = part.kind(way + 1) != Some(Kind::Word);
        let program = Act::new("run", "command", Resource::System, Operation::Execute, 0.9);
        let rows =
            if into { database("load", "rows", Operation::Write) } else { database("export", "rows", Operation::Read) };
        match end {
            Some("program") => {
                self.push(program.at_risk(RiskLevel::High).marked(Sign::Downloaded), part, path);
                dynamic::command(self.source.string(part.token(way + 2)), self.reading);
            }
            Some("stdin" | "stdout") => {}
            _ if into && is_file => {
                let act = Act::new("read", "file", Resource::File, Operation::Read, 0.9);
                self.push(act.at_risk(RiskLevel::High), part, path);
            }
            _ => {
                let act = Act::new("export", "rows", Resource::File, Operation::Write, 0.9);
                self.push(act.at_risk(RiskLevel::High).marked(Sign::Outside), part, path);
            }
        }
        let rows = if into { rows } else { rows.at_risk(RiskLevel::Low) };
        self.push(rows, part, path);
        self.queries |= !into;
    }

    /// Statements that their first words tell.
    fn by_head(&mut self, part: Part<'t>) {
        let head = part.head();
        let Some(rule) = known::statement(&head) else {
            self.push(unclear("run", "statement"), part, None);
            return;
        };
        let mut act = rule.act();
        let first = head.first().copied().unwrap_or("");
        let path = self.named(part, first);
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
                    path.is_some_and(|path| path.last().split(['_', '-']).any(|part| known::holds("scratch", part)));
                if scratch && act.risk == Some(RiskLevel::Critical) {
                    act.risk = Some(RiskLevel::High);
                }
            }
            "alter" => act = self.alter(part, act, head.get(1).copied().unwrap_or("")),
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
                known::holds("unlimited", word)
                    && !(word == "all" && part.is(place + 1, "tables")
                        || word == "all" && part.is(place + 1, "sequences"))
            })
        });
        if act.operation == Operation::Admin && act.resource == Resource::Permission && unlimited && first != "drop" {
            act = act.at_risk(RiskLevel::Critical).marked(Sign::Administrator);
        }
        self.push(act, part, path);
    }

    fn alter(&mut self, part: Part<'t>, act: Act, object: &str) -> Act {
        if act.resource != Resource::Database {
            return act;
        }
        let disables = ["disable", "no"].iter().any(|word| part.has(word));
        if part.has("security") && part.has("row") && disables {
            let act = Act::new("disable", "row_security", Resource::Permission, Operation::Admin, 0.9);
            return act.at_risk(RiskLevel::Critical).marked(Sign::Control);
        }
        if part.has("owner") || part.has("authorization") {
            return Act::new("alter", "owner", Resource::Permission, Operation::Admin, 0.9).at_risk(RiskLevel::High);
        }
        if (1..part.len()).any(|place| part.is(place, "drop") || part.is(place, "truncate") || part.is(place, "purge"))
        {
            // A constraint or a default can be made again.
            let only_rules = (1..part.len()).filter(|&place| part.is(place, "drop")).all(|place| {
                part.word(place + 1).is_some_and(|word| {
                    matches!(
                        word,
                        "constraint"
                            | "default"
                            | "not"
                            | "index"
                            | "foreign"
                            | "primary"
                            | "check"
                            | "identity"
                            | "expression"
                    )
                })
            }) && part.has("drop");
            if only_rules {
                return act;
            }
            return Act::new("drop", "column", Resource::Database, Operation::Delete, 0.9).at_risk(RiskLevel::High);
        }
        if object == "database" && part.has("set") {
            return Act::new("set", "configuration", Resource::Config, Operation::Write, 0.8).at_risk(RiskLevel::High);
        }
        act
    }

    fn create(&mut self, part: Part<'t>, head: &[&str]) {
        if matches!(head.get(1), Some(&"extension"))
            && let Some((path, _)) = (1..part.len())
                .find(|&place| {
                    part.name(place).is_some_and(|word| !matches!(word, "extension" | "if" | "not" | "exists"))
                })
                .and_then(|place| part.path(place))
            && !known::holds("hostile_extensions", path.last())
        {
            self.push(Act::new("install", "extension", Resource::Database, Operation::Execute, 0.8), part, Some(path));
        }
        if part.find("as").is_some_and(|place| part.is(place + 1, "select") || part.group(place + 1).is_some()) {
            self.queries |= matches!(head.get(1), Some(&"table"));
        }
    }

    /// The procedure that is run: some run programs.
    fn procedure(&mut self, part: Part<'t>) {
        let known = (1..part.len()).filter_map(|place| part.name(place)).find_map(known::call);
        if let Some(rule) = known {
            let act = rule.act();
            if act.resource == Resource::System {
                let text = (1..part.len()).find(|&place| part.kind(place) == Some(Kind::Text));
                dynamic::command(self.source.string(text.and_then(|place| part.token(place))), self.reading);
            }
            self.push(act, part, None);
        }
    }

    fn client(&mut self, part: Part<'t>) {
        if let Some(token) = part.token(0) {
            super::client::read(self.source.text(token, token), self.reading);
        }
    }

    /// What a statement by its head names: the first name that is no keyword of its head.
    fn named(&self, part: Part<'t>, first: &str) -> Option<Path<'t>> {
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
            "load" => part.find("table").and_then(|place| part.path(place + 1)).map(|(path, _)| path),
            _ => {
                let place = (1..part.len().min(MOST_HEAD)).find(|&place| match part.word(place) {
                    Some(word) => !is_head_word(word),
                    None => part.kind(place) == Some(Kind::Name),
                })?;
                part.path(place).map(|(path, _)| path)
            }
        }
    }

    /// `LIMIT 50`, `TOP 10`, `FETCH FIRST 5 ROWS`.
    fn limits(&mut self, part: Part<'t>) {
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

    /// What the columns and tables of a query hold.
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
                self.reading.push(act.from_operation("SELECT").from_resource(name));
            }
        }
        if let Some(name) = found.person {
            self.reading.facts.signs.add(Sign::Sensitive);
            self.reading.facts.show(Sign::Sensitive, name);
            let act = database("query", "table", Operation::Read).at_risk(RiskLevel::Medium).marked(Sign::Sensitive);
            self.reading.push(act.from_resource(name));
        }
    }

    fn name_at(&mut self, part: Part<'t>, place: usize) {
        if let Some(name) = part.token(place).and_then(|token| self.names.get_mut(token)) {
            *name = true;
        }
    }

    /// Adds an act with what told it.
    fn push(&mut self, act: Act, part: Part<'t>, path: Option<Path<'t>>) {
        let mut act = act.from_operation(told(part));
        if let Some(path) = path {
            self.reading.facts.note_target(&path.plain());
            act = act.from_resource(path.raw);
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

/// What could not be read with certainty.
pub(super) fn unclear(verb: &str, noun: &str) -> Act {
    let mut act = Act::unclear_execution(noun);
    act.verb = verb.to_owned();
    act.resource = Resource::Database;
    act
}

fn database(verb: &str, noun: &str, operation: Operation) -> Act {
    Act::new(verb, noun, Resource::Database, operation, 0.9)
}

/// `EXPLAIN` that runs nothing.
fn is_plan(part: Part<'_>, tree: &Tree) -> bool {
    if !part.is(0, "explain") || part.len() < 2 {
        return false;
    }
    let runs = |word: &str| matches!(word, "analyze" | "analyse" | "profile" | "execute");
    let start = (1..part.len())
        .find(|&place| part.word(place).is_some_and(|word| known::holds("starters", word)))
        .unwrap_or(part.len());
    let options = part.items.iter().take(start).filter_map(|item| item.group);
    !(0..=start).any(|place| part.word(place).is_some_and(runs))
        && !options.flat_map(|group| tree.group(group)).any(|item| part.source.word(item.token).is_some_and(runs))
}

/// Whether a group in brackets is a statement of its own.
fn opens_statement(part: Part<'_>) -> bool {
    match part.word(0) {
        Some("select" | "with" | "values" | "table") => part.len() > 1,
        Some("insert" | "update" | "delete" | "merge" | "replace" | "from") => part.len() > 1 && part.name(1).is_some(),
        Some(_) => false,
        None => false,
    }
}

/// Whether the word at a place begins another statement: an operand ends before it and
/// what follows fits.
fn begins_statement(part: Part<'_>, place: usize, head: &str) -> bool {
    let word = part.word(place).unwrap_or("");
    let follows = match part.word(place - 1) {
        Some("as") => matches!(head, "create" | "prepare" | "explain" | "alter"),
        Some("then") => head != "merge",
        Some("do") => head != "insert",
        Some("execute" | "exec") => false,
        Some(before) => !known::holds("connectors", before),
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
        _ if after.is_some_and(|after| known::holds("not_after", after)) => false,
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
    if known::holds("hostile_pragmas", path.last()) {
        return act.at_risk(RiskLevel::High);
    }
    if known::holds("reading_pragmas", path.last()) && !sets {
        return Act::new("show", "database", Resource::Database, Operation::Read, 0.9).at_risk(RiskLevel::Low);
    }
    act
}

/// Tables that hold who may do what.
fn guards_access(path: Path<'_>) -> bool {
    let name = path.last();
    known::holds("access_tables", name)
        || name.rsplit('_').next().is_some_and(|last| name.contains('_') && known::holds("access_tables", last))
        || known::holds("secret_tables", &path.names().collect::<Vec<_>>().join("."))
}

fn names_production(path: Path<'_>) -> bool {
    path.names().any(|name| name.split(['_', '-']).any(|part| known::holds("production", part)))
}

/// The words that told an act: the first, and the second where it belongs to it.
fn told<'t>(part: Part<'t>) -> &'t str {
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
    known::holds("head", word) || known::holds("noise", word)
}

/// Items of a statement in which its name is looked for.
const MOST_HEAD: usize = 16;
/// Words of a statement that are shown as what told its operation.
const MOST_TOLD: usize = 4;
