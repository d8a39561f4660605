//! Making text from a log safe to show on a page or a terminal.

use rulekeep::extension::is_invisible;

/// Replaces each character that could move a cursor, end a line or change the direction of text by U+FFFD.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|shown| if is_hidden(shown) { char::REPLACEMENT_CHARACTER } else { shown }).collect()
}

/// Control characters, line and paragraph separators, and characters that hide or reorder text.
pub(crate) fn is_hidden(shown: char) -> bool {
    shown.is_control() || is_invisible(shown) || matches!(shown, '\u{2028}' | '\u{2029}')
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
            ("a\u{61c}\u{ad}\u{e0041}\u{2028}", "a\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(plain(text), shown);
        }
    }
}
