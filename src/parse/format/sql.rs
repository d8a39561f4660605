//! SQL: a conservative first reader by statement keywords. What it is not sure
//! of is an execution on a database, at least HIGH.

use crate::model::{Operation, Resource, RiskLevel};
use crate::parse::reading::{Act, Format, Reading};
use crate::parse::sign::Sign;

use super::dangers::{holds, items};

/// Reads a text that is plainly SQL; other texts are none.
pub(super) fn read(text: &str) -> Option<Reading> {
    is_sql(text).then(|| read_anyway(text))
}

/// SQL that stands in an English text behind a statement keyword in capitals.
pub(super) fn embedded(text: &str) -> Option<Reading> {
    let at = [
        "DROP TABLE ",
        "DROP DATABASE ",
        "DELETE FROM ",
        "TRUNCATE TABLE ",
        "INSERT INTO ",
        "ALTER TABLE ",
        "GRANT ALL ",
    ]
    .iter()
    .filter_map(|keyword| text.find(keyword))
    .min()?;
    text.get(at..).map(read_anyway)
}

/// Reads a text as SQL whatever it looks like.
pub(super) fn read_anyway(text: &str) -> Reading {
    let mut reading = Reading::new(Format::Sql);
    let words = words(text);
    if words.conditional_comment {
        // Some servers run what others take for a comment.
        reading.push(unclear());
    }
    for statement in words.words.split(|word| word == ";") {
        if !statement.is_empty() {
            let act = act(statement, &mut reading);
            reading.push(act);
        }
    }
    if reading.acts.is_empty() {
        reading.push(unclear());
    }
    reading
}

fn unclear() -> Act {
    let mut act = Act::unclear_execution("sql");
    act.resource = Resource::Database;
    act
}

fn is_sql(text: &str) -> bool {
    let mut parts = text.split_whitespace();
    let first = parts.next().unwrap_or("");
    let second = parts.next().unwrap_or("").to_ascii_lowercase();
    let is_upper = first.chars().all(|c| c.is_ascii_uppercase());
    let has = |word: &str| text.split_whitespace().take(MOST_WORDS).any(|part| part.eq_ignore_ascii_case(word));
    let marks = text.contains([';', '*', '=', '(']) || is_upper;
    if first.len() > 10 {
        return false;
    }
    match first.to_ascii_lowercase().as_str() {
        "select" => has("from") && marks || is_upper && parts.next().is_none_or(|_| text.contains([',', '(', '*'])),
        "insert" => second == "into" && (has("values") || has("select") || is_upper),
        "delete" => second == "from" && (is_upper || text.contains(';') || has("where") && text.contains('=')),
        "update" => has("set") && text.contains('='),
        "drop" | "create" | "alter" | "truncate" => {
            matches!(
                second.as_str(),
                "table"
                    | "database"
                    | "schema"
                    | "view"
                    | "index"
                    | "user"
                    | "role"
                    | "column"
                    | "function"
                    | "trigger"
            ) && (is_upper || text.contains(';') || text.contains('('))
        }
        "grant" | "revoke" => is_upper && (has("on") || has("to") || has("from")),
        "with" => is_upper && has("as") && text.contains('('),
        "explain" | "merge" | "call" | "copy" | "show" | "describe" | "set" | "begin" | "vacuum" | "attach" => {
            is_upper
                && first.len() > 1
                && parts.all(|part| !part.chars().all(|c| c.is_ascii_lowercase()) || part.len() > 3)
        }
        _ => false,
    }
}

struct Words {
    words: Vec<String>,
    conditional_comment: bool,
}

/// The words in lower case without strings and comments; `;` stands for itself.
fn words(text: &str) -> Words {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut conditional_comment = false;
    let mut chars = text.chars().peekable();
    let flush = |word: &mut String, words: &mut Vec<String>| {
        if !word.is_empty() {
            words.push(std::mem::take(word));
        }
    };
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                flush(&mut word, &mut words);
                while let Some(inner) = chars.next() {
                    if inner == '\\' {
                        // Dialects disagree on backslashes: that is not certain.
                        conditional_comment = true;
                    }
                    if inner == '\'' && chars.next_if_eq(&'\'').is_none() {
                        break;
                    }
                }
                words.push("''".to_owned());
            }
            '-' if chars.peek() == Some(&'-') => {
                flush(&mut word, &mut words);
                chars.by_ref().find(|&inner| inner == '\n');
            }
            '/' if chars.peek() == Some(&'*') => {
                flush(&mut word, &mut words);
                chars.next();
                conditional_comment |= matches!(chars.peek(), Some('!' | 'M'));
                let mut before = ' ';
                for inner in chars.by_ref() {
                    if before == '*' && inner == '/' {
                        break;
                    }
                    before = inner;
                }
            }
            c if c.is_alphanumeric() || matches!(c, '_' | '.' | '*') => word.extend(c.to_lowercase()),
            '"' | '`' | '[' | ']' => {}
            c => {
                flush(&mut word, &mut words);
                if matches!(c, ';' | '=' | '(') {
                    words.push(c.to_string());
                }
            }
        }
    }
    flush(&mut word, &mut words);
    Words { words, conditional_comment }
}

fn act(words: &[String], reading: &mut Reading) -> Act {
    use RiskLevel::{Critical, High, Low, Medium};
    let has = |word: &str| words.iter().any(|known| known == word);
    let after = |word: &str| words.iter().position(|known| known == word).and_then(|place| words.get(place + 1));
    let first = words.first().map_or("", String::as_str);
    let second = words.get(1).map_or("", String::as_str);
    let table = match first {
        "update" | "describe" | "call" => words.get(1),
        "drop" | "alter" | "create" | "truncate" => words
            .iter()
            .skip(2)
            .find(|word| !matches!(word.as_str(), "if" | "exists" | "not" | "table"))
            .or(words.get(1)),
        "insert" => after("into"),
        _ => after("from"),
    };
    if let Some(table) = table {
        reading.facts.note_target(table);
    }
    let secret = words.iter().any(|word| {
        ["password", "passwd", "secret", "api_key", "token", "credential", "ssn", "card_number"]
            .iter()
            .any(|part| word.contains(part))
    });
    let has_part = |list: &str| {
        words.iter().any(|word| {
            word.split(['_', '.']).any(|part| holds(list, part))
                || items(list).iter().any(|part| part.len() > 4 && word.contains(part.as_str()))
        })
    };
    let secret = secret || has_part("sql_secrets");
    let production = words.iter().any(|word| word.split('.').any(|part| matches!(part, "prod" | "production")));
    let hidden_change = ["insert", "update", "delete", "drop", "merge", "outfile", "dumpfile", "program", "into"]
        .iter()
        .any(|word| has(word))
        || words
            .iter()
            .any(|word| ["pg_", "lo_", "xp_", "load_file", "dblink", "sys_"].iter().any(|part| word.starts_with(part)));
    // A function that is not known to compute only may do anything.
    let hidden_change = hidden_change
        || words.windows(2).any(|pair| {
            matches!(pair, [name, bracket] if bracket == "(" && name.starts_with(char::is_alphabetic) && !holds("sql_functions", name))
        });
    let database =
        |verb: &str, operation, risk| Act::new(verb, "database", Resource::Database, operation, 0.9).at_risk(risk);
    let mut act = match first {
        "select" | "with" | "values" | "explain" if hidden_change => {
            let mut act = unclear();
            act.sure = 0.6;
            act
        }
        "select" | "with" | "values" if secret => {
            Act::new("query", "credential", Resource::Credential, Operation::Read, 0.8).at_risk(High)
        }
        "select" | "with" | "values" if has_part("sql_cards") => {
            Act::new("query", "card", Resource::Payment, Operation::Read, 0.8).at_risk(High)
        }
        "select" | "with" | "values" if has_part("sql_persons") => {
            Act::new("query", "customer", Resource::Customer, Operation::Read, 0.8).at_risk(High)
        }
        "select" | "with" | "values" | "explain" | "show" | "describe" | "desc" | "use" | "pragma"
            if !(first == "pragma" && has("=")) =>
        {
            database("query", Operation::Read, Low)
        }
        "insert" => database("insert", Operation::Write, Medium),
        "update" if secret => {
            Act::new("update", "credential", Resource::Credential, Operation::Admin, 0.8).at_risk(High)
        }
        "update" if has("role") || has("is_admin") || has("admin") => {
            Act::new("update", "role", Resource::Permission, Operation::Admin, 0.8).at_risk(High)
        }
        "update" if has("where") && !always_true(words) => database("update", Operation::Write, Medium),
        "update" => database("update", Operation::Write, High).marked(Sign::Bulk),
        "delete" if has("where") && !always_true(words) => database("delete", Operation::Delete, Medium),
        "delete" | "truncate" => database("delete", Operation::Delete, High).marked(Sign::Bulk),
        "drop" if matches!(second, "user" | "role") => {
            Act::new("drop", "role", Resource::Permission, Operation::Admin, 0.9).at_risk(High)
        }
        "drop" if matches!(second, "index" | "view") => database("drop", Operation::Delete, Medium),
        "drop" => database("drop", Operation::Delete, High).marked(Sign::Whole),
        "create" | "alter" if matches!(second, "user" | "role" | "login") => {
            Act::new(first, "role", Resource::Permission, Operation::Admin, 0.9).at_risk(High)
        }
        "create" => database("create", Operation::Write, Medium),
        "alter" if has("drop") => database("alter", Operation::Delete, High),
        "alter" => database("alter", Operation::Write, Medium),
        "grant" | "revoke" => {
            let level = if has("all") || has("superuser") { Critical } else { High };
            Act::new(first, "privileges", Resource::Permission, Operation::Admin, 0.9).at_risk(level)
        }
        "begin" | "commit" | "rollback" | "start" | "end" => database(first, Operation::Execute, Low),
        _ => unclear(),
    };
    if production && act.operation != Operation::Read {
        act.signs.add(Sign::Production);
    }
    act
}

/// `WHERE 1 = 1` bounds nothing.
fn always_true(words: &[String]) -> bool {
    words.windows(3).any(|three| matches!(three, [one, equals, other] if equals == "=" && one == other))
        || words
            .windows(2)
            .any(|two| matches!(two, [w, bound] if matches!(w.as_str(), "where" | "or") && matches!(bound.as_str(), "1" | "true" | "not")))
        || words.last().is_some_and(|last| last == "true")
}

/// Words of a text that are looked at to tell whether it is SQL.
const MOST_WORDS: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_read_by_what_it_changes() {
        use RiskLevel::{High, Low, Medium};
        for (text, operation, risk) in [
            ("SELECT * FROM orders", Operation::Read, Low),
            ("select id from orders where id = 4;", Operation::Read, Low),
            ("DELETE FROM users WHERE id = 3", Operation::Delete, Medium),
            ("DELETE FROM users", Operation::Delete, High),
            ("DELETE FROM users WHERE 1=1", Operation::Delete, High),
            ("DROP TABLE users", Operation::Delete, High),
            ("UPDATE users SET name = 'x'", Operation::Write, High),
            ("WITH x AS (DELETE FROM users RETURNING *) SELECT * FROM x", Operation::Execute, High),
            ("GRANT SELECT ON users TO bob", Operation::Admin, High),
        ] {
            let reading = read(text).unwrap_or_else(|| panic!("{text} was not taken for SQL"));
            assert_eq!((reading.acts[0].operation, reading.acts[0].risk), (operation, Some(risk)), "{text}");
        }
    }

    #[test]
    fn english_is_not_taken_for_sql() {
        for text in [
            "Select a hotel from the list",
            "delete from my list the first item",
            "Update the settings",
            "Create table reservations for four",
            "Drop the idea",
        ] {
            assert!(read(text).is_none(), "{text}");
        }
    }

    #[test]
    fn every_statement_of_a_line_counts_and_comments_do_not_hide() {
        let reading = read_anyway("SELECT 1; /* harmless */ DROP TABLE users -- bye");
        assert!(reading.acts.iter().any(|act| act.operation == Operation::Delete));
        let reading = read_anyway("SELECT 1 /*! UNION DROP */");
        assert!(reading.acts.iter().any(|act| act.signs.has(Sign::Unclear)));
    }
}
