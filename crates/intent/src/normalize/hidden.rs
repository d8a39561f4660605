//! Invisible characters, and characters that change the reading direction: removed from the text, distinguished from
//! their honest uses, and decoded if they carry text.

use rulekeep_types::is_invisible;

/// A text without invisible characters.
pub(super) struct Stripped {
    pub text: String,
    /// Whether an invisible character stood where no honest text has one.
    pub hides: bool,
    /// Texts that the invisible characters spell.
    pub unseen: Vec<String>,
}

/// Returns whether the text is ASCII without control characters, so that nothing has to be removed or folded.
pub(super) fn is_plain(text: &str) -> bool {
    text.is_ascii() && !text.bytes().any(is_control)
}

const fn is_control(byte: u8) -> bool {
    byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0b | 0x0c) || byte == 0x7f
}

/// Removes invisible characters.
pub(super) fn strip(text: &str) -> Stripped {
    let right_to_left = text.chars().any(is_right_to_left);
    let mut out = Stripped { text: String::with_capacity(text.len()), hides: false, unseen: Vec::new() };
    let mut run: Vec<char> = Vec::new();
    let mut before = None;
    for c in text.chars() {
        if is_invisible(c) {
            run.push(c);
            continue;
        }
        if !run.is_empty() {
            out.weigh(&run, before, Some(c), right_to_left);
            run.clear();
        }
        out.text.push(c);
        before = Some(c);
    }
    if !run.is_empty() {
        out.weigh(&run, before, None, right_to_left);
    }
    out
}

impl Stripped {
    /// Judges a run of invisible characters by its surroundings.
    fn weigh(&mut self, run: &[char], before: Option<char>, after: Option<char>, right_to_left: bool) {
        let tags: String = run.iter().filter_map(|&c| tagged(c)).collect();
        let names_region = before == Some(BLACK_FLAG) && tags.len() <= LONGEST_REGION;
        if !tags.is_empty() && !names_region {
            self.spelled(tags);
        }
        let selected: Vec<u8> = run.iter().filter_map(|&c| selected(c)).collect();
        if selected.len() >= FEWEST_SELECTORS {
            self.spelled(String::from_utf8_lossy(&selected).into_owned());
        }
        let touches = before.is_some_and(|c| c.is_ascii_alphanumeric()) && after.is_some()
            || after.is_some_and(|c| c.is_ascii_alphanumeric()) && before.is_some();
        self.hides |= run.iter().any(|&c| match c {
            '\u{202d}' | '\u{202e}' => true,
            // Embeddings, isolates and marks have a purpose only in text with a right-to-left script.
            '\u{200e}' | '\u{200f}' | '\u{61c}' => !right_to_left && touches,
            '\u{202a}'..='\u{202c}' | '\u{2066}'..='\u{2069}' => !right_to_left,
            // A keycap such as "1", or a style chosen for a sign or an ideograph, is honest.
            '\u{fe00}'..='\u{fe0f}' => before.is_some_and(|c| c.is_ascii_alphabetic()),
            c if tagged(c).is_some() || c == '\u{e007f}' => false,
            _ => touches,
        });
    }

    fn spelled(&mut self, text: String) {
        self.hides = true;
        if text.len() > 1 {
            self.unseen.push(text);
        }
    }
}

const fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

/// The ASCII character of a tag character.
fn tagged(c: char) -> Option<char> {
    let code = u32::from(c);
    if (0xe_0020..=0xe_007e).contains(&code) { char::from_u32(code - 0xe_0000) } else { None }
}

/// The byte that a variation selector can carry.
fn selected(c: char) -> Option<u8> {
    let code = u32::from(c);
    let byte = match code {
        0xfe00..=0xfe0f => code - 0xfe00,
        0xe_0100..=0xe_01ef => code - 0xe_0100 + 16,
        _ => return None,
    };
    u8::try_from(byte).ok()
}

/// After it, tag characters spell the region of a flag.
const BLACK_FLAG: char = '\u{1f3f4}';
/// Maximum length of such a region: "gbeng".
const LONGEST_REGION: usize = 7;
/// A single selector chooses a style; this many in a row carry bytes.
const FEWEST_SELECTORS: usize = 4;
