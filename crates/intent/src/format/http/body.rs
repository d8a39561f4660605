//! The pairs of a body or a query, in any notation.

/// A key with its scalar value.
pub(super) type Pair = (String, String);

/// Extracts the pairs of a body in JSON, as a form, or in a programming language's notation of either, at any depth.
/// Works without recursion, and on malformed input.
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

/// Maximum number of pairs.
const MOST_PAIRS: usize = 512;

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
}
