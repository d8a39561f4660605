//! What a body or a query says: its pairs, whatever its notation, and GraphQL's fields.

/// A key with its scalar value.
pub(super) type Pair = (String, String);

/// The pairs of a body in JSON, in a form, or in a programming language's notation of
/// either, at any depth. Read without recursion; nothing has to be well-formed.
pub(super) fn pairs(body: &str) -> Vec<Pair> {
    let mut found: Vec<Pair> = Vec::new();
    let mut key: Option<String> = None;
    let mut assigned = false;
    let mut chars = body.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let scalar = match c {
            '"' | '\'' | '`' => {
                let mut text = String::new();
                while let Some((_, inner)) = chars.next() {
                    match inner {
                        '\\' => match chars.next() {
                            Some((_, 'n')) => text.push('\n'),
                            Some((_, 't')) => text.push('\t'),
                            Some((_, escaped)) => text.push(escaped),
                            None => {}
                        },
                        inner if inner == c => break,
                        inner => text.push(inner),
                    }
                }
                Some(text)
            }
            ':' | '=' => {
                assigned = key.is_some();
                None
            }
            c if is_scalar(c) => {
                let mut end = at + c.len_utf8();
                while let Some(&(next, c)) = chars.peek() {
                    if !is_scalar(c) {
                        break;
                    }
                    end = next + c.len_utf8();
                    chars.next();
                }
                body.get(at..end).map(str::to_owned)
            }
            c if c.is_whitespace() => continue,
            _ => {
                (key, assigned) = (None, false);
                None
            }
        };
        let Some(scalar) = scalar else { continue };
        if assigned && let Some(name) = key.take() {
            if found.len() < MOST_PAIRS {
                found.push((name.to_ascii_lowercase(), super::address::decoded(&scalar)));
            }
            assigned = false;
        } else {
            key = Some(scalar);
        }
    }
    found
}

fn is_scalar(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$' | '%' | '+' | '@' | '/')
}

/// The operations of a GraphQL document: whether each is a mutation, and its fields.
pub(super) fn fields(document: &str) -> Vec<(bool, String)> {
    let mut found = Vec::new();
    let mut depth = 0_usize;
    let mut brackets = 0_usize;
    let mut mutation = false;
    let mut word = String::new();
    let mut in_string = false;
    let mut in_fragment = false;
    let mut flush = |word: &mut String, depth: usize, mutation: &mut bool, in_fragment: &mut bool, alias: bool| {
        let name = std::mem::take(word);
        if name.is_empty() || alias {
            return;
        }
        match depth {
            0 => match name.as_str() {
                "mutation" => (*mutation, *in_fragment) = (true, false),
                "query" | "subscription" => (*mutation, *in_fragment) = (false, false),
                "fragment" => *in_fragment = true,
                _ => {}
            },
            1 if !*in_fragment && found.len() < MOST_FIELDS => found.push((*mutation, name)),
            _ => {}
        }
    };
    for c in document.chars() {
        if in_string {
            in_string = c != '"';
            continue;
        }
        match c {
            '"' => in_string = true,
            '(' => {
                flush(&mut word, depth, &mut mutation, &mut in_fragment, brackets > 0);
                brackets += 1;
            }
            ')' => {
                word.clear();
                brackets = brackets.saturating_sub(1);
            }
            _ if brackets > 0 => {}
            '{' => {
                flush(&mut word, depth, &mut mutation, &mut in_fragment, false);
                depth += 1;
            }
            '}' => {
                flush(&mut word, depth, &mut mutation, &mut in_fragment, false);
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    (mutation, in_fragment) = (false, false);
                }
            }
            ':' => flush(&mut word, depth, &mut mutation, &mut in_fragment, true),
            c if c.is_alphanumeric() || c == '_' => word.push(c),
            _ => flush(&mut word, depth, &mut mutation, &mut in_fragment, false),
        }
    }
    found
}

/// Whether a text is a GraphQL document.
pub(super) fn is_graphql(text: &str) -> bool {
    let text = text.trim_start();
    text.contains('{')
        && ["mutation", "query", "subscription", "fragment"].iter().any(|word| {
            text.strip_prefix(word)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_whitespace() || matches!(c, '{' | '(' | '@')))
        })
        || text.strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with(|c: char| c.is_alphabetic()))
}

/// Pairs that are read.
const MOST_PAIRS: usize = 512;
/// Fields that are read.
const MOST_FIELDS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_found_in_every_notation() {
        for body in [
            "{\"a\": 1, \"b\": {\"c\": \"x y\"}}",
            "{ a: 1, b: { 'c': 'x y' } }",
            "a=1&b[c]=x%20y&c=x%20y",
            "json={\"a\": 1, \"c\": \"x y\"}",
        ] {
            let pairs = pairs(body);
            for expected in [("a", "1"), ("c", "x y")] {
                assert!(
                    pairs.iter().any(|(key, value)| (key.as_str(), value.as_str()) == expected),
                    "{body}: {pairs:?}"
                );
            }
        }
    }

    #[test]
    fn graphql_is_read_to_its_first_level() {
        let found = fields(
            "query A { users(first: 3, name: \"} mutation {\") { id } } mutation B($x: Int) { a: deleteUser(id: $x) { id } add }",
        );
        let named: Vec<(bool, &str)> = found.iter().map(|(mutation, name)| (*mutation, name.as_str())).collect();
        assert_eq!(named, [(false, "users"), (true, "deleteUser"), (true, "add")]);
    }
}
