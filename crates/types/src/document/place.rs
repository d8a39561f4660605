//! Positions in a document: from byte offsets to lines and columns.

/// The starts of a text's lines, to convert byte offsets.
pub struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        let after_breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(after_breaks).collect() }
    }

    /// Line and column of a byte offset, both counted from 1; the column counts characters.
    pub fn place(&self, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or(0);
        let before = self.text.as_bytes().get(start..offset.min(self.text.len())).unwrap_or_default();
        // Continuation bytes are not counted, so an offset within a character is harmless.
        let characters = before.iter().filter(|byte| (**byte & 0xC0) != 0x80).count();
        (line, characters + 1)
    }

    /// The offset of a byte of a string's value, whose text starts with its quotes at `at`. If the string contains
    /// escapes, the offset of the string itself.
    pub fn within(&self, at: usize, value: &str, byte: usize) -> usize {
        let text = self.text.get(at..).unwrap_or("");
        let mark = text.bytes().next().filter(|mark| matches!(mark, b'"' | b'\''));
        let marks = text.bytes().take(3).take_while(|byte| Some(*byte) == mark).count();
        let mut length = if marks == 3 { 3 } else { marks.min(1) };
        if marks == 3 {
            // A line break right after three quotes is not part of the value.
            let rest = text.get(3..).unwrap_or("");
            length += if rest.starts_with("\r\n") { 2 } else { usize::from(rest.starts_with('\n')) };
        }
        if text.get(length..).is_some_and(|rest| rest.starts_with(value)) { at + length + byte } else { at }
    }

    /// The byte offset of a line and a byte column, both counted from 1.
    pub(crate) fn offset(&self, line: usize, byte_column: usize) -> usize {
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(self.text.len());
        (start + byte_column.saturating_sub(1)).min(self.text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_within_a_string_is_found_unless_escapes_move_it() {
        let text = "a = \"one two\"\nb = \"\"\"\nx\"\"\"\nc = \"o\\u006ee\"";
        let lines = Lines::of(text);
        assert_eq!(lines.within(4, "one two", 4), 9);
        assert_eq!(lines.within(18, "x", 0), 22);
        assert_eq!(lines.within(31, "one", 2), 31);
    }

    #[test]
    fn columns_count_characters_and_lines_count_from_one() {
        let lines = Lines::of("ab\nüöx\n");
        for (offset, place) in [(0, (1, 1)), (2, (1, 3)), (3, (2, 1)), (7, (2, 3)), (9, (3, 1)), (999, (3, 1))] {
            assert_eq!(lines.place(offset), place, "offset {offset}");
        }
    }
}
