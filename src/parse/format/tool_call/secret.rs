//! Secrets in content: known beginnings of keys and tokens, and a word such as
//! "password" that hands one over.

use super::known::tools;

/// Whether a text that is written or sent holds a secret.
pub(super) fn holds(text: &str) -> bool {
    begins_a_key(text) || names_a_value(text)
}

/// `ghp_...`, `AKIA...`, `-----BEGIN PRIVATE KEY-----`.
fn begins_a_key(text: &str) -> bool {
    let secrets = tools().secrets();
    let mut before = b' ';
    for (at, byte) in text.bytes().enumerate() {
        let opens_word = !before.is_ascii_alphanumeric() && before != b'-';
        before = byte;
        if !opens_word || !secrets.begin_bytes.has(byte) {
            continue;
        }
        let Some(word) = text.get(at..) else { continue };
        let is_key = secrets.begins.iter().any(|start| {
            let Some(after) = word.strip_prefix(&**start) else { return false };
            if start.starts_with('-') {
                return after.lines().next().is_some_and(|line| line.contains("PRIVATE KEY"));
            }
            let length =
                after.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')).count();
            length >= 12
        });
        if is_key {
            return true;
        }
    }
    false
}

/// `the password is S3cure!pw`, `api_key=abc123`.
fn names_a_value(text: &str) -> bool {
    let links = &tools().secrets().links;
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        // `password:x`, `"api_key"="x"`.
        if let Some(place) = word.find([':', '='])
            && is_name(word.get(..place).unwrap_or(""))
        {
            let after = word.get(place + 1..).unwrap_or("");
            if is_value(after, false) || after.is_empty() && words.peek().is_some_and(|next| is_value(next, false)) {
                return true;
            }
        }
        if is_name(word) && words.peek().is_some_and(|next| links.iter().any(|link| next.eq_ignore_ascii_case(link))) {
            let is_marked = words.next().is_some_and(|link| !link.starts_with(char::is_alphabetic));
            if words.peek().is_some_and(|next| is_value(next, !is_marked)) {
                return true;
            }
        }
    }
    false
}

fn is_name(word: &str) -> bool {
    let secrets = tools().secrets();
    // Most words are settled by their first letter.
    let could_be = |bytes: &[u8]| {
        bytes.iter().find(|byte| byte.is_ascii_alphanumeric()).is_some_and(|first| secrets.name_bytes.has(*first))
    };
    let bytes = word.as_bytes();
    if !could_be(bytes)
        && !bytes.iter().rposition(|byte| *byte == b'.').is_some_and(|dot| could_be(bytes.get(dot..).unwrap_or(&[])))
    {
        return false;
    }
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    let last = word.rsplit('.').next().unwrap_or(word);
    secrets.names.iter().any(|name| {
        last.eq_ignore_ascii_case(name)
            || last.strip_suffix(['s', 'S']).is_some_and(|last| last.eq_ignore_ascii_case(name))
    })
}

/// Whether a word can be a secret; in a sentence only one with a digit or a mark inside.
fn is_value(word: &str, in_sentence: bool) -> bool {
    let word = word.trim_matches(|c: char| matches!(c, '"' | '\'' | '`' | '.' | ',' | ';' | ')' | '('));
    let is_odd = word.chars().any(|c| !c.is_alphabetic());
    word.len() >= 4 && !word.chars().all(|c| matches!(c, '*' | '.' | '-' | '_' | '<' | '>')) && (is_odd || !in_sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_told_from_talk_about_one() {
        for text in [
            "the database password is S3cure!pw42",
            "password: hunter22",
            "API_KEY=abcd1234efgh",
            "use ghp_abcdefghijklmnopqrst please",
            "-----BEGIN RSA PRIVATE KEY-----\nabc",
            "token = 8f2c9d1e",
        ] {
            assert!(holds(text), "{text}");
        }
        for text in [
            "please reset your password",
            "your password is about to expire",
            "the secret is patience",
            "the key to it all",
            "-----BEGIN CERTIFICATE-----",
            "skip the sk-learn part",
            "",
        ] {
            assert!(!holds(text), "{text}");
        }
    }
}
