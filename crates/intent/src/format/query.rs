//! Statements of query languages that no reader parses: SPARQL, Cypher, KQL, SPL, Gremlin, AQL, pipelines.
//!
//! A statement reads only if everything in it that can act is known to read (`data/query.toml`). Text without the marks
//! of a statement is words to search for.

use super::tables;

/// The kind of text that a query argument holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Query {
    /// Words to search for.
    Words,
    /// A statement that only reads.
    Read,
    /// A statement that may change something.
    Open,
}

/// The kind of tool that receives the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taker {
    /// Takes statements of a language.
    Language,
    /// Searches in an engine that has a language: the text may be words.
    Engine,
    /// Searches for words.
    Search,
}

/// Returns whether a name or key names a query language or an engine that has one.
pub(super) fn is_language(word: &str) -> bool {
    tables::query().languages.has(word)
}

/// Returns whether an argument with this key is a statement, besides those whose role says so.
pub(super) fn is_key(key: &str) -> bool {
    tables::query().keys.has(key) || is_language(key)
}

/// Returns whether an operator of a pipeline or a filter runs code or writes.
pub(super) fn is_hostile_operator(key: &str) -> bool {
    key.starts_with('$') && tables::query().operators.has(&key.to_ascii_lowercase())
}

/// Returns whether a stage of an aggregation pipeline is known to read.
pub(super) fn is_calm_stage(key: &str) -> bool {
    tables::query().pipeline.has(&key.to_ascii_lowercase())
}

/// The segment of a service's path that changes something: `/users/_delete_by_query`.
pub(super) fn acting_segment(path: &str) -> Option<&str> {
    if !path.contains('_') || path.contains(char::is_whitespace) {
        return None;
    }
    let path = path.split(['?', '#']).next().unwrap_or(path);
    path.split('/').find(|segment| {
        // `_delete.html.erb` is a file.
        segment.strip_prefix('_').is_some_and(|name| {
            !name.contains('.') && name.split('_').any(|word| tables::query().services.has(&word.to_ascii_lowercase()))
        })
    })
}

/// Judges a text that is given as a query.
pub(super) fn judge(text: &str, taker: Taker) -> Query {
    let bare = unquoted(text);
    let bare = bare.trim();
    let is_structured = bare.contains(['{', '}', '<', '|', ';', '(', ')', '?']);
    // Words to search for may stand in brackets, but not in braces.
    let words: Vec<Word<'_>> = words(bare).collect();
    let opens = is_structured && words.first().is_some_and(Word::is_upper);
    let is_marked = opens || bare.contains(['{', '}', '<', '>', '|']);
    let is_open = dot_command(bare, taker)
        || bare.contains('|') && staged(bare, taker)
        || chained(bare, taker)
        || words.iter().any(|word| word.writes(taker, is_structured, is_marked))
        || taker == Taker::Language && opens_unknown(bare, &words, is_structured);
    match () {
        () if is_open => Query::Open,
        () if is_structured || words.iter().any(Word::is_upper) => Query::Read,
        () => Query::Words,
    }
}

/// A word of a statement, with its neighbors.
struct Word<'t> {
    text: &'t str,
    before: Option<char>,
    after: Option<char>,
    /// Whether a pipe precedes it.
    is_piped: bool,
}

impl Word<'_> {
    fn is_upper(&self) -> bool {
        self.text.len() > 1 && self.text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    }

    /// Returns whether the word is a keyword that changes something, and not a name or a value.
    fn writes(&self, taker: Taker, is_structured: bool, is_marked: bool) -> bool {
        let is_part = |c: char| matches!(c, '.' | ':' | '$' | '?' | '@' | '#' | '=' | '-' | '/' | '"' | '\'' | '`');
        let is_name = self.before.is_some_and(is_part)
            || self.after.is_some_and(|c| matches!(c, ':' | '=' | '(' | '.' | '-' | '/'));
        let lower = self.text.to_ascii_lowercase();
        let counts = match taker {
            Taker::Language => true,
            Taker::Engine => self.is_upper() || is_structured,
            Taker::Search => self.is_upper() && is_marked,
        };
        counts
            && !is_name
            && tables::query().writes.has(&lower)
            && !(self.is_piped && tables::query().piped.has(&lower))
    }
}

fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..)?;
        let start = at + rest.find(is_letter)?;
        let end = text.get(start..)?.find(|c| !is_letter(c)).map_or(text.len(), |length| start + length);
        at = end;
        let before = text.get(..start)?;
        Some(Word {
            text: text.get(start..end)?,
            before: before.chars().next_back(),
            after: text.get(end..)?.chars().next(),
            is_piped: before.trim_end().ends_with('|'),
        })
    })
    .take(MOST_WORDS)
}

/// Returns whether a command with a leading dot does more than show: `.drop table users`.
fn dot_command(text: &str, taker: Taker) -> bool {
    text.split([';', '\n']).any(|part| {
        part.trim_start()
            .strip_prefix('.')
            .and_then(|rest| words(rest).next().filter(|_| rest.starts_with(char::is_alphabetic)))
            .is_some_and(|word| {
                let lower = word.text.to_ascii_lowercase();
                if taker == Taker::Language {
                    !tables::query().dot_commands.has(&lower) && !text.contains('|')
                } else {
                    tables::query().writes.has(&lower)
                }
            })
    })
}

/// Returns whether a stage behind a pipe is not known to read: `index=audit | delete`.
fn staged(text: &str, taker: Taker) -> bool {
    let mut before = ' ';
    let mut rest = text;
    while let Some((head, tail)) = rest.split_once('|') {
        before = head.chars().next_back().unwrap_or(before);
        rest = tail;
        // "a || b" and "|= x" compare.
        if before == '|' && head.is_empty() || tail.starts_with(['|', '=', '~', '.']) {
            before = '|';
            continue;
        }
        let stage = tail.trim_start_matches(['>', ' ', '\n', '\t', '(', '[', '.']);
        let end = stage.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').unwrap_or(stage.len());
        let Some(word) = stage.get(..end).filter(|word| !word.is_empty()) else { continue };
        let lower = word.to_ascii_lowercase();
        let behind = stage.get(end..).unwrap_or("");
        let is_open = match taker {
            // A filter by a label, and a search that runs another one.
            _ if behind.trim_start().starts_with(['=', '!', '<', '>']) => false,
            _ if lower == "map" && behind.starts_with(' ') => true,
            Taker::Search => {
                tail.starts_with(' ') && tables::query().writes.has(&lower) && !tables::query().stages.has(&lower)
            }
            // A field of jq, or an alternative of a pattern.
            _ if !tail.starts_with(char::is_whitespace) && !tail.starts_with('>') => false,
            _ => !tables::query().stages.has(&lower) && !tail.trim_start().starts_with('.'),
        };
        if is_open {
            return true;
        }
    }
    false
}

/// Returns whether a method of a chain is not known to read: `g.V().drop()`.
fn chained(text: &str, taker: Taker) -> bool {
    let is_chain = ["g.", "db."].iter().any(|start| text.starts_with(start));
    if !is_chain && taker != Taker::Language {
        return false;
    }
    words(text).any(|word| {
        word.before == Some('.')
            && word.after == Some('(')
            && !tables::query().calls.has(&word.text.to_ascii_lowercase())
    }) && (is_chain || text.contains(")."))
}

/// Returns whether a statement begins with a word that is not known to open a read.
fn opens_unknown(text: &str, words: &[Word<'_>], is_structured: bool) -> bool {
    let Some(first) = words.first() else { return false };
    let is_expression = !text.starts_with(char::is_alphabetic)
        || first.after.is_none()
        || first.after.is_some_and(|c| !c.is_whitespace())
        || text
            .get(first.text.len()..)
            .is_some_and(|rest| rest.trim_start().starts_with(['|', '=', '<', '>', '!', '+', '-', '*']));
    let is_keyword = first.is_upper() || is_structured;
    is_keyword && !is_expression && !tables::query().openers.has(&first.text.to_ascii_lowercase())
}

/// The text with its quoted parts emptied.
fn unquoted(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    let mut quote = None;
    let mut before = ' ';
    for c in text.chars() {
        match quote {
            Some(open) if c == open && before != '\\' => {
                quote = None;
                bare.push(c);
            }
            Some(_) => {}
            None => {
                // "it's" is an apostrophe.
                if c == '"' || matches!(c, '\'' | '`') && !before.is_alphanumeric() {
                    quote = Some(c);
                }
                bare.push(c);
            }
        }
        before = c;
    }
    bare
}

/// Maximum number of words read from a statement.
const MOST_WORDS: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_reads_only_if_all_of_it_is_known_to_read() {
        use Query::{Open, Read, Words};
        use Taker::{Engine, Language, Search};
        for (text, taker, expected) in [
            ("DELETE WHERE {?s ?p ?o}", Language, Open),
            ("SELECT ?s WHERE {?s ?p ?o} LIMIT 5", Language, Read),
            ("SELECT ?s WHERE {SERVICE <http://evil.example> {?s ?p ?o}}", Language, Open),
            ("MATCH (p:Page) RETURN p.title LIMIT 5", Language, Read),
            ("match (n) detach delete n", Language, Open),
            ("MATCH (n) WHERE n.delete = true RETURN n", Language, Read),
            ("CALL apoc.nodes.delete([1])", Language, Open),
            ("pages | summarize count()", Language, Read),
            ("pages | where title == \"drop it\"", Language, Read),
            (".show tables", Language, Words),
            (".set-or-append users <| x", Language, Open),
            ("g.V().has('name', 'drop').count()", Language, Read),
            ("g.V().drop()", Language, Open),
            ("{ delete { * * * } }", Language, Open),
            ("{ q(func: has(title)) { title } }", Language, Read),
            ("FOR u IN users RETURN u", Language, Words),
            ("FOR u IN users REMOVE u IN users", Language, Open),
            ("KILL QUERY 5", Language, Open),
            ("REBUILD INDEX x", Language, Open),
            ("how many pages are there", Language, Words),
            ("index=web | stats count by host", Engine, Read),
            ("index=web | sendemail to=x", Engine, Open),
            ("| rest /services/users", Engine, Open),
            ("{app=\"web\"} |= \"x\" | json | level=\"error\"", Language, Read),
            ("delete account error", Engine, Words),
            ("action:delete AND user:bob", Engine, Words),
            ("DELETE vs TRUNCATE", Search, Words),
            ("pizza | pasta", Search, Read),
            ("How do I DELETE a (large) table?", Search, Read),
            ("DELETE WHERE {?s ?p ?o}", Search, Open),
        ] {
            let found = judge(text, taker);
            assert!(found == expected || expected != Open && found != Open, "{text}: {found:?}");
        }
    }

    #[test]
    fn a_service_path_that_changes_something_is_told_from_a_file() {
        for (path, expected) in [
            ("users/_delete_by_query", Some("_delete_by_query")),
            ("/users/_close", Some("_close")),
            ("/pages/_all_docs", None),
            ("/pages/_search", None),
            ("app/views/_delete.html.erb", None),
        ] {
            assert_eq!(acting_segment(path), expected, "{path}");
        }
    }
}
