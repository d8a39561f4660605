//! Making text from a log safe to show on a page or a terminal.

/// Replaces each character that could move a cursor, end a line or change the direction of text by U+FFFD.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|shown| if is_hidden(shown) { char::REPLACEMENT_CHARACTER } else { shown }).collect()
}

/// Control characters, line and paragraph separators, and format characters that hide or reorder text.
fn is_hidden(shown: char) -> bool {
    shown.is_control()
        || matches!(shown, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_line_ends_and_reordering_are_removed() {
        for (text, shown) in [
            ("read_file", "read_file"),
            ("Grüße, 世界", "Grüße, 世界"),
            ("\u{1b}[2J\u{7}", "\u{fffd}[2J\u{fffd}"),
            ("a\r\nb", "a\u{fffd}\u{fffd}b"),
            ("\u{9b}31m", "\u{fffd}31m"),
            ("pay\u{202e}001\u{2066}", "pay\u{fffd}001\u{fffd}"),
        ] {
            assert_eq!(plain(text), shown);
        }
    }
}
