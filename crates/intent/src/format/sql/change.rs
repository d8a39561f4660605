//! Statements that change data: rows, tables, and data that leaves or enters by COPY.

use crate::reading::Act;
use crate::sign::Sign;
use rulekeep_types::{Operation, Resource, RiskLevel};

use crate::table::List;

use super::known::{database, unclear, words};
use super::lex::Kind;
use super::statement::Reader;
use super::tree::{Part, Path};
use super::{bound, exposure};

impl<'t> Reader<'_, 't> {
    pub(super) fn insert(&mut self, part: Part<'t>) {
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
        // The result of a whole query that a `REPLACE` uses overwrites existing rows.
        let replaces_all = part.is(0, "replace") && !["values", "value", "set"].iter().any(|word| part.has(word));
        let act = if part.has("overwrite") || replaces_all { act.marked(Sign::Bulk) } else { act };
        self.push(act, part, Some(path));
        // `INSERT INTO FUNCTION url('https://x')`.
        if part.is(at, "function") || self.names_address(part, at..next) {
            self.exports(part);
        }
        if part.has("returning") || part.has("output") {
            self.queries = true;
        }
    }

    /// Adds that rows leave the database for a place that the statement names.
    fn exports(&mut self, part: Part<'t>) {
        let act = Act::new("export", "rows", Resource::File, Operation::Write, 0.9);
        self.push(act.at_risk(RiskLevel::High).marked(Sign::Outside), part, None);
    }

    /// Returns whether one of the texts is an address, as `'s3://bucket/'`.
    fn names_address(&self, part: Part<'t>, mut places: std::ops::Range<usize>) -> bool {
        places.any(|place| self.source.string(part.token(place)).contains("://"))
    }

    pub(super) fn update(&mut self, part: Part<'t>) {
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
        let says = |list: &List| columns.iter().copied().find(|column| list.has(column));
        let act = if let Some(column) = columns.iter().copied().find(|column| exposure::is_secret(column)) {
            Act::new("update", "credential", Resource::Credential, Operation::Admin, 0.8)
                .at_risk(RiskLevel::High)
                .named_by(column)
        } else if let Some(column) = says(&words().access_columns) {
            Act::new("update", "role", Resource::Permission, Operation::Admin, 0.8)
                .at_risk(RiskLevel::High)
                .named_by(column)
        } else if guards_access(path) {
            Act::new("update", "role", Resource::Permission, Operation::Admin, 0.8).at_risk(RiskLevel::High)
        } else if let Some(column) = says(&words().money_columns).filter(|_| !unbounded) {
            database("update", "rows", Operation::Write).at_risk(RiskLevel::High).named_by(column)
        } else {
            database("update", "rows", Operation::Write)
        };
        let act = match act.operation {
            // Everybody at once.
            Operation::Admin if unbounded => act.at_risk(RiskLevel::Critical).marked(Sign::ManyPeople),
            _ if unbounded => act.marked(Sign::Bulk),
            _ => act,
        };
        self.limits(part);
        let target = Self::origin(part, path);
        self.push(act, part, Some(target));
        if part.has("returning") || part.has("output") {
            self.queries = true;
        }
    }

    /// The columns after `SET`.
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

    pub(super) fn delete(&mut self, part: Part<'t>) {
        self.changes = true;
        let at = part.find("from").map_or(1, |place| place + 1);
        let at = if part.is(at, "only") { at + 1 } else { at };
        let path = part.path(at).map(|(path, _)| path);
        let Some(path) = path else {
            self.push(unclear("delete", "rows"), part, None);
            return;
        };
        let audited = path.names().any(|name| words().audit_tables.has(name));
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
        let target = Self::origin(part, path);
        self.push(act, part, Some(target));
        if part.has("returning") || part.has("output") {
            self.queries = true;
        }
    }

    /// The table that an alias stands for: `UPDATE o ... FROM orders o`.
    fn origin(part: Part<'t>, alias: Path<'t>) -> Path<'t> {
        let named = part.find("from").and_then(|place| part.path(place + 1)).filter(|(_, next)| {
            let next = if part.is(*next, "as") { next + 1 } else { *next };
            part.name(next) == Some(alias.lower)
        });
        named.map_or(alias, |(path, _)| path)
    }

    pub(super) fn merge(&mut self, part: Part<'t>) {
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
            for then in (1..part.len()).filter(|&place| part.is(place, "then") && part.is(place + 1, "delete")) {
                let delete = database("delete", "rows", Operation::Delete);
                let unbounded = bound::is_unbounded_branch(part, then, self.tree);
                self.push(if unbounded { delete.marked(Sign::Bulk) } else { delete }, part, Some(path));
            }
        } else {
            self.push(unclear("merge", "rows"), part, None);
        }
    }

    /// Reads `COPY` between a table and the client, a file or a program.
    pub(super) fn copy(&mut self, part: Part<'t>) {
        let path = if part.is(1, "into") { part.path(2) } else { part.path(1) }.map(|(path, next)| {
            self.name_at(part, next - 1);
            path
        });
        let way = (1..part.len()).find(|&place| part.is(place, "from") || part.is(place, "to"));
        // `COPY INTO 's3://bucket/' FROM t`.
        if part.is(1, "into") && self.names_address(part, 2..3) {
            self.exports(part);
        }
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
                self.reading.note_command(self.source.string(part.token(way + 2)));
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

    pub(super) fn alter(part: Part<'t>, act: Act, object: &str) -> Act {
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
            // A constraint or a default can be created again.
            let only_rules = (1..part.len())
                .filter(|&place| part.is(place, "drop"))
                .all(|place| part.word(place + 1).is_some_and(|word| words().remade.has(word)))
                && part.has("drop");
            if only_rules {
                return act;
            }
            return Act::new("drop", "column", Resource::Database, Operation::Delete, 0.9).at_risk(RiskLevel::High);
        }
        if part.has("disable") && part.has("trigger") {
            return act.at_risk(RiskLevel::High).marked(Sign::Control);
        }
        if object == "database" && part.has("set") {
            return Act::new("set", "configuration", Resource::Config, Operation::Write, 0.8).at_risk(RiskLevel::High);
        }
        act
    }

    pub(super) fn create(&mut self, part: Part<'t>, head: &[&str]) {
        if matches!(head.get(1), Some(&"extension"))
            && let Some((path, _)) = (1..part.len())
                .find(|&place| {
                    part.name(place).is_some_and(|word| !matches!(word, "extension" | "if" | "not" | "exists"))
                })
                .and_then(|place| part.path(place))
            && !words().hostile_extensions.has(path.last())
        {
            self.push(Act::new("install", "extension", Resource::Database, Operation::Execute, 0.8), part, Some(path));
        }
        if part.find("as").is_some_and(|place| part.is(place + 1, "select") || part.group(place + 1).is_some()) {
            self.queries |= matches!(head.get(1), Some(&"table"));
        }
        // `CREATE EXTERNAL TABLE t LOCATION 's3://bucket/' AS SELECT`.
        if part.has("as") && self.names_address(part, 0..part.len()) {
            self.exports(part);
        }
        if part.is(1, "or") && part.is(2, "replace") && part.is(3, "table") {
            self.push(
                database("replace", "table", Operation::Delete).at_risk(RiskLevel::High),
                part,
                part.path(4).map(|(path, _)| path),
            );
        }
    }
}

/// Returns whether a table stores permissions.
fn guards_access(path: Path<'_>) -> bool {
    let name = path.last();
    words().access_tables.has(name)
        || name.rsplit('_').next().is_some_and(|last| name.contains('_') && words().access_tables.has(last))
        || words().secret_tables.has(&path.names().collect::<Vec<_>>().join("."))
}
