//! Decoding of base64 and of hexadecimal and binary digits, if the result is text.

use crate::codes::base64_bytes;

/// Decodes base64, if the result is plain words: ASCII, or ASCII in UTF-16.
pub(super) fn decoded(token: &str) -> Option<String> {
    printable(&base64_bytes(token)?)
}

/// Decodes pairs of hexadecimal digits, if the result is plain words.
pub(super) fn from_hex(digits: &str) -> Option<String> {
    let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_hexdigit).collect();
    let bytes: Vec<u8> = digits
        .chunks_exact(2)
        .filter_map(|pair| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()))
        .collect();
    if digits.len().is_multiple_of(2) { printable(&bytes) } else { None }
}

/// Decodes groups of eight binary digits, if the result is plain words.
pub(super) fn from_binary(digits: &str) -> Option<String> {
    let digits: Vec<u8> = digits.bytes().filter(|byte| matches!(byte, b'0' | b'1')).collect();
    let bytes: Vec<u8> =
        digits.chunks_exact(8).map(|group| group.iter().fold(0, |byte, digit| byte << 1 | (digit - b'0'))).collect();
    if digits.len().is_multiple_of(8) { printable(&bytes) } else { None }
}

/// Converts bytes to words: UTF-8, or UTF-16 that is mostly ASCII. Anything else is data.
pub(super) fn printable(bytes: &[u8]) -> Option<String> {
    let wide = |read: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).filter_map(|pair| <[u8; 2]>::try_from(pair).ok()).map(read);
        char::decode_utf16(units).collect::<Result<String, _>>().ok()
    };
    let zeros = |from: usize| bytes.iter().skip(from).step_by(2).filter(|&&byte| byte == 0).count();
    let words = match (zeros(0) * 8 >= bytes.len(), zeros(1) * 8 >= bytes.len()) {
        (false, true) => wide(u16::from_le_bytes)?,
        (true, false) => wide(u16::from_be_bytes)?,
        _ => String::from_utf8(bytes.to_vec()).ok()?,
    };
    let all = words.chars().count();
    let plain = words.chars().filter(|c| matches!(c, ' '..='~' | '\n' | '\r' | '\t')).count();
    let written = words.chars().filter(|c| !c.is_control()).count();
    let letters = words.bytes().filter(u8::is_ascii_alphabetic).count();
    // A few bytes may be printable by chance. In a longer text, some other characters may be there to hide the rest.
    let is_text = all >= SHORTEST && letters >= 2 && (plain == all || all >= SHORTEST_MIXED && written * 4 >= all * 3);
    is_text.then_some(words)
}

/// Length of the shortest text worth reading: "rm x".
const SHORTEST: usize = 4;
/// Length of the shortest text that may contain other characters among its letters.
const SHORTEST_MIXED: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_out_and_data_does_not() {
        assert_eq!(decoded("cm0gLXJmIC8=").as_deref(), Some("rm -rf /"));
        assert_eq!(decoded("cm0gLXJmIC8").as_deref(), Some("rm -rf /"));
        assert_eq!(decoded("cgBtACAALQByAGYA").as_deref(), Some("rm -rf"));
        assert_eq!(from_hex("726d202d7266").as_deref(), Some("rm -rf"));
        assert_eq!(from_binary("01110010 01101101 00100000 01111000").as_deref(), Some("rm x"));
        assert_eq!(decoded("iVBORw0KGgoAAAANSUhEUg=="), None);
        assert_eq!(from_hex("9fceb02d0ae598e95dc970b74767f19372d61af8"), None);
    }
}
