//! Invisible characters, and characters that change how text is displayed.

/// Returns whether a character is invisible or only changes the direction of text.
///
/// SOURCE: Unicode 16, default-ignorable code points and bidirectional controls (UAX #9, UTS #39).
pub const fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        | '\u{0}'..='\u{8}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{9f}')
}

/// Returns whether a character is a bidirectional control character.
pub const fn turns_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns whether a character could break a line of text or disguise its content: control characters, line separators,
/// invisible characters and bidirectional controls.
pub fn hides_or_breaks(c: char) -> bool {
    c.is_control()
        || turns_direction(c)
        || matches!(c, '\u{200b}'..='\u{200d}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}' | '\u{feff}')
}

/// The text with a U+FFFD in the place of each invisible character, for people who decide on what they see. Blanks and
/// line ends stay.
pub fn visible(text: &str) -> String {
    text.chars().map(|c| if is_invisible(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}
