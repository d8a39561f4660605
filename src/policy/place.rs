//! Places in a document: from a byte to a line and a column.

/// Where the lines of a text begin, to turn a byte offset into a place.
pub(super) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let after_breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(after_breaks).collect() }
    }

    /// Line and column, both counted from 1; the column counts characters.
    pub(super) fn place(&self, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or(0);
        let before = self.text.as_bytes().get(start..offset.min(self.text.len())).unwrap_or_default();
        // Bytes that continue a character are not counted, so an offset amid one is harmless.
        let characters = before.iter().filter(|byte| (**byte & 0xC0) != 0x80).count();
        (line, characters + 1)
    }

    /// The offset of a line and a column in bytes, both counted from 1.
    pub(super) fn offset(&self, line: usize, byte_column: usize) -> usize {
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(self.text.len());
        (start + byte_column.saturating_sub(1)).min(self.text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_count_from_one() {
        let lines = Lines::of("ab\nüöx\n");
        for (offset, place) in [(0, (1, 1)), (2, (1, 3)), (3, (2, 1)), (7, (2, 3)), (9, (3, 1)), (999, (3, 1))] {
            assert_eq!(lines.place(offset), place, "offset {offset}");
        }
    }
}
