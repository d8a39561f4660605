//! The feature `sql`: a grammar in addition to the tokens. If the two disagree on the effect of a statement, the
//! stricter one counts. Only what the tokens could not determine, a call or statement missing from their lists, may
//! become milder.
//!
//! The parser crate has pitfalls: derived code that recurses, and inputs that made it panic or stall. So nothing of
//! its tree is cloned or displayed, its tokens are counted first, and long texts are parsed on a thread with a large
//! stack.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use sqlparser::ast::{
    AlterTableOperation, CopyTarget, Expr, MergeAction, ObjectName, ObjectType, Query, Select, Set, Statement,
    TableFactor, Visit, Visitor,
};
use sqlparser::dialect::{
    BigQueryDialect, ClickHouseDialect, DatabricksDialect, Dialect, DuckDbDialect, GenericDialect, HiveDialect,
    MsSqlDialect, MySqlDialect, OracleDialect, PostgreSqlDialect, RedshiftSqlDialect, SQLiteDialect, SnowflakeDialect,
};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token as Piece, Tokenizer};

use crate::reading::{Act, Reading};
use crate::sign::Sign;
use rulekeep_types::{Operation, Resource, RiskLevel};

use super::known::{self, unclear};
use super::lex::{self, Kind, Token};

/// Refines the reading by tokens: it becomes stricter, or more certain, by the grammar.
pub(super) fn refined(text: &str, mut reading: Reading) -> Reading {
    let lexed = lex::lex(text, lex::STANDARD);
    let commands = lexed.tokens.iter().any(|token| token.kind == Kind::Client);
    if commands || lexed.tokens.is_empty() || lexed.tokens.len() > MOST_TOKENS {
        // Not SQL, or too long for a parser that cannot be interrupted: the tokens' reading stands.
        return reading;
    }
    let Some(said) = parsed(text, lexed.tokens.len()) else {
        let sure = reading.acts.iter().all(|act| !act.signs.has(Sign::Unclear));
        if sure && !is_beyond(text, &lexed.tokens) {
            reading.push(unclear("run", "sql").told_by(text));
        }
        return reading;
    };
    said.apply(&mut reading, text);
    reading
}

/// Returns whether a text is a single statement that databases support and the grammar does not.
fn is_beyond(text: &str, tokens: &[Token]) -> bool {
    let word = |place: usize| {
        let token = tokens.get(place).filter(|token| token.kind == Kind::Word)?;
        text.get(token.start..token.end).map(str::to_ascii_lowercase)
    };
    let (Some(first), second) = (word(0), word(1).unwrap_or_default()) else { return false };
    let is_one = tokens.iter().rposition(|token| token.kind == Kind::End).is_none_or(|place| place + 1 == tokens.len());
    is_one
        && (known::holds("beyond_grammar", &first) || known::holds("beyond_grammar", &[&first, "_", &*second].concat()))
}

/// The combined meaning in all dialects that can parse a text; `None` if none can.
fn parsed(text: &str, tokens: usize) -> Option<Meaning> {
    if tokens <= MOST_TOKENS_INLINE {
        match by_dialects(text, DEEPEST_INLINE) {
            Err(Refusal::TooDeep) => {}
            Err(Refusal::Unread) => return None,
            Ok(said) => return Some(said),
        }
    }
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(LARGE_STACK)
            .spawn_scoped(scope, || by_dialects(text, DEEPEST).ok())
            .ok()
            .and_then(|thread| thread.join().ok())
            .flatten()
    })
}

/// The reason for no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// More nesting than allowed.
    TooDeep,
    Unread,
}

fn by_dialects(text: &str, deepest: usize) -> Result<Meaning, Refusal> {
    let usual: [&dyn Dialect; 5] =
        [&GenericDialect {}, &MySqlDialect {}, &PostgreSqlDialect {}, &MsSqlDialect {}, &SQLiteDialect {}];
    let rarer: [&dyn Dialect; 8] = [
        &BigQueryDialect {},
        &SnowflakeDialect {},
        &DuckDbDialect {},
        &ClickHouseDialect {},
        &HiveDialect {},
        &DatabricksDialect {},
        &RedshiftSqlDialect {},
        &OracleDialect {},
    ];
    let mut refusal = Refusal::Unread;
    let mut worst: Option<Meaning> = None;
    for dialect in usual {
        match by_dialect(dialect, text, deepest) {
            Ok(said) => {
                worst = Some(match worst {
                    Some(known) => known.and(said),
                    None => said,
                });
            }
            // If one dialect needs a deeper stack, all of them get it.
            Err(Refusal::TooDeep) => refusal = Refusal::TooDeep,
            Err(Refusal::Unread) => {}
        }
    }
    if refusal == Refusal::TooDeep {
        return Err(refusal);
    }
    worst.or_else(|| rarer.iter().find_map(|dialect| by_dialect(*dialect, text, deepest).ok())).ok_or(refusal)
}

/// Parses a text in one dialect. A panic counts as no result.
fn by_dialect(dialect: &dyn Dialect, text: &str, deepest: usize) -> Result<Meaning, Refusal> {
    catch_unwind(AssertUnwindSafe(|| {
        let tokens = Tokenizer::new(dialect, text).tokenize().map_err(|_| Refusal::Unread)?;
        let count = tokens.iter().filter(|token| !matches!(token, Piece::Whitespace(_))).count();
        if count > MOST_TOKENS {
            return Err(Refusal::Unread);
        }
        let statements =
            Parser::new(dialect).with_recursion_limit(deepest).with_tokens(tokens).parse_statements().map_err(
                |error| match error {
                    ParserError::RecursionLimitExceeded => Refusal::TooDeep,
                    _ => Refusal::Unread,
                },
            )?;
        let mut said = Meaning { statements: statements.len(), ..Meaning::default() };
        for statement in &statements {
            let _: ControlFlow<()> = statement.visit(&mut said);
        }
        Ok(said)
    }))
    .unwrap_or(Err(Refusal::Unread))
}

/// The findings of a grammar in a text.
#[derive(Debug, Default)]
struct Meaning {
    statements: usize,
    does: Vec<Effect>,
    unknown_call: bool,
    unknown_statement: bool,
    disagree: bool,
    /// The depth inside an `EXPLAIN` that runs nothing.
    planned: usize,
}

/// The effect of a statement, as far as the risk depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Effect {
    resource: Resource,
    operation: Operation,
    unbounded: bool,
}

impl Meaning {
    /// The worst of two dialects.
    fn and(mut self, other: Self) -> Self {
        self.disagree |= other.disagree || self.statements != other.statements;
        self.does.extend(other.does);
        self.unknown_call |= other.unknown_call;
        self.unknown_statement |= other.unknown_statement;
        self
    }

    fn apply(self, reading: &mut Reading, text: &str) {
        let lowers = |act: &Act| {
            act.resource == Resource::Database
                && act.signs.has(Sign::Unclear)
                && (!self.unknown_call && (act.verb.as_str(), act.noun.as_str()) == ("call", "function")
                    || !self.unknown_statement && (act.verb.as_str(), act.noun.as_str()) == ("run", "statement"))
        };
        if !self.disagree && self.statements > 0 {
            reading.acts.retain(|act| !lowers(act));
        }
        for effect in &self.does {
            let stands = reading.acts.iter().any(|act| {
                act.operation == effect.operation
                    && (act.signs.has(Sign::Bulk) || act.risk.is_some() || !effect.unbounded)
            });
            if !stands {
                reading.push(effect.act().told_by(text));
            }
        }
        let is_unclear = |act: &Act| act.signs.has(Sign::Unclear);
        let unsure = self.disagree || self.unknown_call || self.unknown_statement;
        if unsure && !reading.acts.iter().any(is_unclear) || reading.acts.is_empty() {
            reading.push(unclear("run", "sql").told_by(text));
        }
    }

    fn note(&mut self, operation: Operation, resource: Resource, unbounded: bool) {
        let effect = Effect { resource, operation, unbounded };
        if !self.does.contains(&effect) {
            self.does.push(effect);
        }
    }

    fn call(&mut self, name: &ObjectName) {
        let mut parts =
            name.0.iter().rev().filter_map(|part| part.as_ident()).map(|part| part.value.to_ascii_lowercase());
        let Some(last) = parts.next() else { return };
        let own = parts.next().is_none_or(|schema| matches!(schema.as_str(), "pg_catalog" | "sys" | "safe"));
        if let Some(rule) = known::call(&last) {
            let act = rule.act();
            self.note(act.operation, act.resource, false);
        } else if !own || !known::only_computes(&last) {
            self.unknown_call = true;
        }
    }

    fn statement(&mut self, statement: &Statement) {
        use Operation as O;
        use Resource as R;
        match statement {
            Statement::Query(_) => self.note(O::Read, R::Database, false),
            Statement::Insert(_) | Statement::LoadData { .. } => self.note(O::Write, R::Database, false),
            Statement::Update(update) => {
                let unbounded = update.selection.is_none() && update.limit.is_none();
                self.note(O::Write, R::Database, unbounded);
            }
            Statement::Delete(delete) => {
                // `TOP (1)` is a limit that the tree does not contain.
                let unbounded = delete.selection.is_none() && delete.limit.is_none() && delete.using.is_none();
                self.note(O::Delete, R::Database, unbounded);
            }
            Statement::Merge(merge) => {
                for clause in &merge.clauses {
                    match clause.action {
                        MergeAction::Delete { .. } => self.note(O::Delete, R::Database, false),
                        MergeAction::Insert(_) | MergeAction::Update(_) => self.note(O::Write, R::Database, false),
                        MergeAction::DoNothing { .. } => {}
                    }
                }
            }
            Statement::Truncate(_) => self.note(O::Delete, R::Database, true),
            Statement::Drop { object_type, .. } => match object_type {
                ObjectType::Role | ObjectType::User => self.note(O::Admin, R::Permission, false),
                _ => self.note(O::Delete, R::Database, false),
            },
            Statement::DropFunction(_)
            | Statement::DropTrigger(_)
            | Statement::DropProcedure { .. }
            | Statement::DropDomain(_)
            | Statement::DropExtension(_)
            | Statement::DropSecret { .. } => {
                self.note(O::Delete, R::Database, false);
            }
            Statement::AlterTable(alter) => {
                let drops = alter.operations.iter().any(|operation| {
                    matches!(
                        operation,
                        AlterTableOperation::DropColumn { .. } | AlterTableOperation::DropPartitions { .. }
                    )
                });
                self.note(if drops { O::Delete } else { O::Write }, R::Database, false);
            }
            Statement::CreateTable(_)
            | Statement::CreateView(_)
            | Statement::CreateIndex(_)
            | Statement::CreateSchema { .. }
            | Statement::CreateDatabase { .. }
            | Statement::CreateSequence { .. }
            | Statement::CreateType { .. }
            | Statement::CreateDomain(_)
            | Statement::CreateVirtualTable { .. }
            | Statement::AlterView { .. }
            | Statement::AlterIndex { .. }
            | Statement::RenameTable(_) => {
                self.note(O::Write, R::Database, false);
            }
            Statement::Grant(_)
            | Statement::Revoke(_)
            | Statement::Deny(_)
            | Statement::CreateRole(_)
            | Statement::CreateUser(_)
            | Statement::AlterUser(_)
            | Statement::AlterRole { .. }
            | Statement::CreatePolicy(_)
            | Statement::AlterPolicy(_)
            | Statement::DropPolicy(_)
            | Statement::Set(Set::SetRole { .. } | Set::SetSessionAuthorization(_)) => {
                self.note(O::Admin, R::Permission, false);
            }
            Statement::Copy { target, to, .. } => match target {
                CopyTarget::Program { .. } => self.note(O::Execute, R::System, true),
                CopyTarget::File { .. } => self.note(if *to { O::Write } else { O::Read }, R::File, true),
                CopyTarget::Stdin | CopyTarget::Stdout => {
                    self.note(if *to { O::Read } else { O::Write }, R::Database, false);
                }
            },
            quiet if is_quiet(quiet) => {}
            _ => self.unknown_statement = true,
        }
    }
}

/// Returns whether the tokens say enough about a statement.
fn is_quiet(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Explain { .. }
            | Statement::ExplainTable { .. }
            | Statement::StartTransaction { .. }
            | Statement::Commit { .. }
            | Statement::Rollback { .. }
            | Statement::Savepoint { .. }
            | Statement::ReleaseSavepoint { .. }
            | Statement::Set(_)
            | Statement::Use(_)
            | Statement::Pragma { .. }
            | Statement::Analyze(_)
            | Statement::Vacuum(_)
            | Statement::OptimizeTable { .. }
            | Statement::Lock(_)
            | Statement::LockTables { .. }
            | Statement::UnlockTables
            | Statement::Deallocate { .. }
            | Statement::Fetch { .. }
            | Statement::Close { .. }
            | Statement::Discard { .. }
            | Statement::Reset(_)
            | Statement::LISTEN { .. }
            | Statement::UNLISTEN { .. }
            | Statement::NOTIFY { .. }
            | Statement::Flush { .. }
            | Statement::Kill { .. }
            | Statement::Comment { .. }
            | Statement::Print(_)
            | Statement::WaitFor(_)
            | Statement::ShowFunctions { .. }
            | Statement::ShowVariable { .. }
            | Statement::ShowStatus { .. }
            | Statement::ShowVariables { .. }
            | Statement::ShowCreate { .. }
            | Statement::ShowColumns { .. }
            | Statement::ShowCatalogs { .. }
            | Statement::ShowDatabases { .. }
            | Statement::ShowProcessList { .. }
            | Statement::ShowSchemas { .. }
            | Statement::ShowCharset(_)
            | Statement::ShowObjects(_)
            | Statement::ShowTables { .. }
            | Statement::ShowViews { .. }
            | Statement::ShowCollation { .. }
            | Statement::List(_)
    )
}

/// Returns whether a statement is an `EXPLAIN` that runs nothing. Options in brackets may make it run.
fn only_plans(statement: &Statement) -> bool {
    matches!(statement, Statement::Explain { analyze: false, options: None, .. })
}

impl Visitor for Meaning {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        if only_plans(statement) {
            self.planned += 1;
        } else if self.planned == 0 {
            self.statement(statement);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        if only_plans(statement) {
            self.planned = self.planned.saturating_sub(1);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        if self.planned == 0 {
            self.note(Operation::Read, Resource::Database, false);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        if select.into.is_some() && self.planned == 0 {
            self.note(Operation::Write, Resource::Database, false);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expression
            && self.planned == 0
        {
            self.call(&function.name);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } = factor
            && self.planned == 0
        {
            self.call(name);
        }
        ControlFlow::Continue(())
    }
}

impl Effect {
    fn act(self) -> Act {
        use Operation as O;
        let (verb, noun) = match self.operation {
            O::Read => ("query", "table"),
            O::Write => ("update", "rows"),
            O::Delete => ("delete", "rows"),
            O::Admin => ("change", "privileges"),
            _ => ("run", "command"),
        };
        let act = Act::new(verb, noun, self.resource, self.operation, 0.8);
        match self.operation {
            O::Read if self.resource == Resource::Database => act.at_risk(RiskLevel::Low),
            O::Admin | O::Execute | O::Send => act.at_risk(RiskLevel::High),
            _ if self.resource == Resource::File => act.at_risk(RiskLevel::High),
            _ if self.unbounded => act.marked(Sign::Bulk),
            _ => act,
        }
    }
}

/// Maximum number of tokens passed to the parser. SOURCE: measured on version 0.63, see docs/reference/parsing.md.
const MOST_TOKENS: usize = 2000;
/// Maximum number of tokens for which the usual stack of a thread suffices, even without optimization; a test ensures
/// it.
const MOST_TOKENS_INLINE: usize = 200;
/// The stack of the thread for longer texts, in bytes.
const LARGE_STACK: usize = 16 << 20;
/// Maximum nesting for which the usual stack suffices without optimization; deeper texts go to the thread.
const DEEPEST_INLINE: usize = 12;
/// Nesting at which the parser gives up.
const DEEPEST: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_text_that_is_parsed_in_place_fits_a_usual_stack() {
        for piece in [
            "(",
            "SELECT (",
            "NOT ",
            "- ",
            "1 AND ",
            "SELECT 1 UNION ",
            "a(",
            "CASE ",
            "(SELECT ",
            "WITH x AS (",
            "a.",
            "[",
            "EXPLAIN ",
            "a -> ",
            "INTERVAL ",
            "ARRAY[",
            "CAST(",
            "{a:",
        ] {
            for (start, end) in [("", ""), ("SELECT ", " 1"), ("SELECT * FROM t WHERE ", " 1")] {
                let mut text = start.to_owned();
                while lex::lex(&text, lex::STANDARD).tokens.len() < MOST_TOKENS_INLINE - 8 {
                    text.push_str(piece);
                }
                text.push_str(end);
                // An abort would end the whole test run.
                let _ = by_dialects(&text, DEEPEST_INLINE);
            }
        }
    }

    #[test]
    fn the_longest_text_fits_the_large_stack() {
        for piece in ["1 AND ", "SELECT 1 UNION ", "NOT ", "(", "- ", "a = 1 OR ", "a || ", "x PIVOT ", "a.", "CASE "] {
            let mut text = "SELECT ".to_owned();
            while lex::lex(&text, lex::STANDARD).tokens.len() < MOST_TOKENS - 8 {
                text.push_str(piece);
            }
            text.push_str(" 1");
            let _ = parsed(&text, MOST_TOKENS);
        }
    }

    #[test]
    fn nested_statements_are_found_and_plans_are_not_run() {
        for (text, operation, expected) in [
            ("WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x", Operation::Delete, true),
            ("EXPLAIN ANALYZE DELETE FROM t", Operation::Delete, true),
            ("EXPLAIN DELETE FROM t", Operation::Delete, false),
            ("SELECT * FROM t", Operation::Delete, false),
        ] {
            let said = by_dialects(text, DEEPEST_INLINE).unwrap();
            assert_eq!(said.does.iter().any(|effect| effect.operation == operation), expected, "{text}");
        }
    }
}
