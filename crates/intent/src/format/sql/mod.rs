//! SQL in many dialects, read by tokens, conservatively: what is unknown is an execution on a database, at least HIGH.
//!
//! `opening` tells a statement from a sentence, `lex` makes tokens by the rules of a dialect family, `tree` groups them by
//! brackets, and `statement` and `change` read them into acts with `bound` (conditions), `exposure` (functions,
//! columns) and `client` (client commands). `embedded` finds SQL in a sentence. The data is in `data/sql.toml`.

mod bound;
mod change;
mod client;
mod cover;
mod dynamic;
mod embedded;
mod exposure;
mod known;
mod lex;
mod opening;
mod statement;
mod tree;

use crate::reading::{Format, Reading};

pub(super) use known::check as check_table;
use known::unclear;
use lex::{Kind, Lexed, Rules, Token};
use statement::Session;
use tree::Source;

/// Reads a text that is clearly SQL; `None` for other texts.
pub(super) fn read(text: &str) -> Option<Reading> {
    opening::is_sql(text.trim()).then(|| read_anyway(text))
}

/// Reads the SQL within an English text that is to be run.
pub(super) fn embedded(text: &str) -> Option<Reading> {
    embedded::find(text).map(read_anyway)
}

/// Reads a text as SQL, whatever it looks like, and the texts that it runs.
pub(super) fn read_anyway(text: &str) -> Reading {
    let mut reading = Reading::new(Format::Sql);
    let mut waiting = vec![(text.to_owned(), 0)];
    while let Some((text, depth)) = waiting.pop() {
        let strings = one_text(&text, &mut reading);
        if depth < DEEPEST {
            waiting.extend(strings.into_iter().map(|string| (string, depth + 1)));
        }
    }
    cover::note(text, &mut reading);
    reading
}

/// Reads one text by each family of dialects that may read it differently. Returns the strings in it that may be run
/// as SQL.
fn one_text(text: &str, reading: &mut Reading) -> Vec<String> {
    let lower = text.to_ascii_lowercase();
    let (first, strings) = family(text, &lower, lex::STANDARD, reading);
    let mut families = vec![first];
    if first.disputed {
        families.push(family(text, &lower, lex::MYSQL, reading).0);
    }
    if first.nested {
        families.push(family(text, &lower, lex::PLAIN, reading).0);
    }
    let agree = families.iter().all(|family| family.statements == first.statements);
    // A family that cannot parse the text to its end does not run it; another does.
    let readable = families.iter().any(|family| !family.broken);
    if !agree || !readable || families.iter().any(|family| family.unclear) || reading.acts.is_empty() {
        reading.push(unclear("run", "sql").told_by(text));
    }
    strings
}

/// Maximum depth of strings within strings.
const DEEPEST: u8 = 3;

/// The result of reading a text by one family's rules.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that a family may find")]
struct Family {
    statements: usize,
    broken: bool,
    unclear: bool,
    disputed: bool,
    nested: bool,
}

fn family(text: &str, lower: &str, rules: Rules, reading: &mut Reading) -> (Family, Vec<String>) {
    let Lexed { tokens, unclosed, unclear, disputed, nested } = lex::lex(text, rules);
    let mut session = Session::default();
    let mut family = Family { statements: 0, broken: unclosed, unclear, disputed, nested };
    for tokens in statements(&tokens) {
        family.statements += 1;
        let balanced = statement::read(Source { raw: text, lower, tokens }, &mut session, reading);
        family.broken |= !balanced;
    }
    (family, dynamic::strings(text, lower, &tokens))
}

/// The parts between semicolons; a client command stands alone.
fn statements(tokens: &[Token]) -> impl Iterator<Item = &[Token]> {
    tokens
        .split(|token| token.kind == Kind::End)
        .flat_map(|tokens| tokens.chunk_by(|one, other| one.kind != Kind::Client && other.kind != Kind::Client))
}
