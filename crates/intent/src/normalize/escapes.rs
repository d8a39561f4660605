//! Escaped characters: HTML entities, percent-encoding, the escapes of programming languages, and quoted-printable.
//! All are undone in a single pass.

/// Undoes the escapes of a text, including nested ones; `None` if there are none.
pub(crate) fn undone(text: &str) -> Option<String> {
    let mut current = once(text)?;
    for _ in 1..DEEPEST {
        match once(&current) {
            Some(next) => current = next,
            None => break,
        }
    }
    Some(current)
}

fn once(text: &str) -> Option<String> {
    if !text.bytes().any(|byte| matches!(byte, b'&' | b'%' | b'\\' | b'=')) {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut changed = false;
    for chunk in text.split_inclusive(char::is_whitespace) {
        changed |= undo_chunk(chunk, &mut out);
    }
    changed.then_some(out)
}

/// Undoes the escapes of a chunk without blanks. Returns whether there were any.
fn undo_chunk(chunk: &str, out: &mut String) -> bool {
    if !chunk.bytes().any(|byte| matches!(byte, b'&' | b'%' | b'\\' | b'=')) {
        out.push_str(chunk);
        return false;
    }
    let address = is_address(chunk);
    let plus_is_blank = !address && chunk.contains('%') && chunk.contains('+');
    let (mut rest, mut changed) = (chunk, false);
    let mut bytes: Vec<u8> = Vec::with_capacity(chunk.len());
    while let Some(c) = rest.chars().next() {
        if let Some((code, length)) = escape(rest, address) {
            match code {
                Code::Byte(byte) => bytes.push(byte),
                Code::Char(c) => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
            }
            changed = true;
            rest = rest.get(length..).unwrap_or("");
            continue;
        }
        let written = if c == '+' && plus_is_blank { ' ' } else { c };
        bytes.extend(written.encode_utf8(&mut [0; 4]).bytes());
        rest = rest.get(c.len_utf8()..).unwrap_or("");
    }
    if changed {
        out.push_str(&String::from_utf8_lossy(&bytes));
    } else {
        out.push_str(chunk);
    }
    changed
}

/// The value of an escape.
enum Code {
    Byte(u8),
    Char(char),
}

/// The escape at the start of a text, and its length in bytes.
fn escape(text: &str, address: bool) -> Option<(Code, usize)> {
    match text.as_bytes().first()? {
        b'%' => {
            let byte = hex_byte(text.get(1..3)?)?;
            // In an address, escapes of characters that would split it are kept; letters, dots and slashes need no
            // escape.
            let kept =
                address && !(byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'/' | b'-' | b'_' | b'~' | b'%'));
            (!kept).then_some((Code::Byte(byte), 3))
        }
        b'=' => {
            let byte =
                text.get(1..3).filter(|hex| !hex.bytes().any(|byte| byte.is_ascii_lowercase())).and_then(hex_byte)?;
            (byte.is_ascii_alphabetic() || byte == b' ').then_some((Code::Byte(byte), 3))
        }
        b'&' => entity(text),
        b'\\' => backslash(text),
        _ => None,
    }
}

fn entity(text: &str) -> Option<(Code, usize)> {
    let end = text.bytes().take(LONGEST_ENTITY).position(|byte| byte == b';');
    let name = text.get(1..end.unwrap_or(0).max(1))?;
    let named = match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        "sol" => Some('/'),
        "bsol" => Some('\\'),
        "period" => Some('.'),
        "hyphen" | "dash" => Some('-'),
        "lowbar" => Some('_'),
        "shy" | "zwnj" | "zwj" | "ZeroWidthSpace" => Some('\u{200b}'),
        _ => None,
    };
    if let Some(c) = named {
        return Some((Code::Char(c), name.len() + 2));
    }
    // Browsers accept "&#100" without the semicolon.
    let digits = text.strip_prefix("&#")?;
    let (digits, radix, lead) = match digits.strip_prefix(['x', 'X']) {
        Some(hex) => (hex, 16, 3),
        None => (digits, 10, 2),
    };
    let length = digits.bytes().take(8).take_while(|&byte| char::from(byte).is_digit(radix)).count();
    let c = u32::from_str_radix(digits.get(..length)?, radix).ok().and_then(char::from_u32)?;
    let closed = usize::from(digits.as_bytes().get(length) == Some(&b';'));
    Some((Code::Char(c), lead + length + closed))
}

fn backslash(text: &str) -> Option<(Code, usize)> {
    let kind = *text.as_bytes().get(1)?;
    let (digits, lead) = match kind {
        b'x' => (text.get(2..4)?, 2),
        b'u' if text.as_bytes().get(2) == Some(&b'{') => {
            let end = text.bytes().take(LONGEST_ENTITY).position(|byte| byte == b'}')?;
            let c = u32::from_str_radix(text.get(3..end)?, 16).ok().and_then(char::from_u32)?;
            return Some((Code::Char(c), end + 1));
        }
        b'u' => (text.get(2..6)?, 2),
        b'U' => (text.get(2..10)?, 2),
        b'0'..=b'3' => {
            let octal = text.get(1..4)?;
            let byte = u8::from_str_radix(octal, 8).ok()?;
            return Some((Code::Byte(byte), 4));
        }
        _ => return None,
    };
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let value = u32::from_str_radix(digits, 16).ok()?;
    let c = char::from_u32(value)?;
    let code = match u8::try_from(value) {
        Ok(byte) if kind == b'x' => Code::Byte(byte),
        _ => Code::Char(c),
    };
    Some((code, lead + digits.len()))
}

fn hex_byte(digits: &str) -> Option<u8> {
    if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) { u8::from_str_radix(digits, 16).ok() } else { None }
}

/// Returns whether a chunk is a web address or a request target.
fn is_address(chunk: &str) -> bool {
    let path = chunk.find('/').unwrap_or(chunk.len());
    let code = chunk.find('%').unwrap_or(chunk.len());
    chunk.contains("://")
        || chunk.starts_with("www.")
        || chunk.contains('?') && chunk.contains('=')
        || path < code && chunk.get(..path).is_some_and(|host| host.contains('.') && !host.starts_with('.'))
}

/// Maximum nesting depth of escapes.
const DEEPEST: usize = 3;
/// Maximum length of an entity or braced escape.
const LONGEST_ENTITY: usize = 18;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_escape_is_undone() {
        for (text, expected) in [
            ("&#100;elete", "delete"),
            ("&#100elete", "delete"),
            ("%64elete", "delete"),
            ("%2564elete", "delete"),
            ("rm%20-rf+%2F", "rm -rf /"),
            ("\\x64elete", "delete"),
            ("\\u0064elete", "delete"),
            ("\\u{64}elete", "delete"),
            ("\\144elete", "delete"),
            ("a &lt;b&gt; c", "a <b> c"),
            ("https://x.example/a%20b/%2e%2e/c", "https://x.example/a%20b/../c"),
        ] {
            assert_eq!(undone(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_escape_stays() {
        for text in
            ["70% of it", "a & b", "C:\\temp\\new", "x=5", "https://x.example/a%20b", "&", "%", "\\u", "&#", "é%é"]
        {
            assert_eq!(undone(text), None, "{text}");
        }
    }
}
