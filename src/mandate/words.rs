//! What the user's words and the values that the runtime vouches for say.

use std::collections::HashSet;

use super::argument::Part;
use super::text::{self, Shape};

/// The user's words under a task, and the values that the runtime vouches for, in the forms in which values are looked
/// for in them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Words {
    /// Every text, the first one being what opened the task.
    texts: Vec<Box<str>>,
    /// The words of all texts with one blank between; a bar parts texts.
    spoken: String,
    /// Addresses, paths and tokens.
    atoms: HashSet<Box<str>>,
    numbers: HashSet<Box<str>>,
    /// Short numbers that are said to be ids: "id 13", "#13", "order 8812".
    labeled: HashSet<Box<str>>,
    /// Words that name something by themselves: capitalized, quoted, or behind a preposition.
    names: HashSet<Box<str>>,
    /// Values that the runtime vouches for, and those that a reviewer endorsed, in their normal form.
    trusted: HashSet<Box<str>>,
}

impl Words {
    /// The words that open a task.
    pub(crate) fn new(text: &str) -> Self {
        let mut words = Self { spoken: " ".to_owned(), ..Self::default() };
        words.say(text);
        words
    }

    /// Adds further words of the user.
    pub(crate) fn say(&mut self, said: &str) {
        self.texts.push(said.into());
        self.spoken.push('|');
        self.spoken.push_str(&text::phrase(said));
        let mut before = "";
        for piece in pieces(said) {
            self.add_piece(piece, before);
            before = piece;
        }
        self.add_quoted(said);
    }

    /// Adds a value that the runtime vouches for, or that a reviewer endorsed.
    pub(crate) fn trust(&mut self, value: &str) {
        self.trusted.insert(text::normal_value(value).into());
    }

    /// The texts that were said, the first one first.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }

    /// Whether the words name this value, or the runtime vouches for it.
    pub(super) fn allow(&self, value: &str, part: Part) -> bool {
        self.trusted.contains(&*text::normal_value(value)) || self.name(value, part)
    }

    /// Whether the words name this value in that part of a call.
    pub(super) fn name(&self, value: &str, part: Part) -> bool {
        match text::shape(value) {
            Shape::Number => {
                let Some(number) = text::number(value) else { return false };
                // A short number is an id only where the words say so: "at 5" names no record 5.
                let is_plain = part != Part::Id || number.len() >= LEAST_PLAIN_ID;
                self.labeled.contains(&*number) || is_plain && self.numbers.contains(&*number)
            }
            Shape::Account => self.has_run(&text::squeezed(value)),
            Shape::Atom => {
                let atom = text::atom(value);
                self.atoms.contains(&*atom) || part.is_path() && self.is_below_named(&atom)
            }
            Shape::Phrase => {
                let phrase = text::phrase(value);
                match phrase.trim() {
                    "" => false,
                    word if !word.contains(' ') => self.names.contains(word),
                    _ => self.spoken.contains(&*phrase),
                }
            }
        }
    }

    /// Whether the words mention these words in a row, as a phrase of any kind.
    pub(super) fn mention(&self, value: &str) -> bool {
        let phrase = text::phrase(value);
        phrase.len() > 1 && self.spoken.contains(&*phrase)
    }

    /// Whether every word of a text stands in the words or in a trusted value.
    pub(super) fn cover(&self, text: &str) -> bool {
        let folded = text::folded(text);
        text::words(&folded).all(|word| {
            let number = text::number(word);
            self.spoken.contains(&format!(" {word} "))
                || self.trusted.iter().any(|value| text::words(value).any(|known| known == word))
                || number.is_some_and(|number| self.numbers.contains(&*number))
        })
    }

    fn add_piece(&mut self, piece: &str, before: &str) {
        let label = text::folded(before).trim_matches(|c: char| !c.is_alphanumeric() && c != '#').to_owned();
        let atom = text::atom(piece);
        if let Some(number) = text::number(piece) {
            let is_labeled = piece.starts_with('#') || is_label(&label);
            if is_labeled {
                self.labeled.insert(number.clone().into());
            }
            self.numbers.insert(number.into());
        }
        let bare = piece.trim_matches(|c: char| !c.is_alphanumeric());
        let is_name =
            bare.starts_with(char::is_uppercase) || NAMED_BEHIND.contains(&&*label) || piece.starts_with(['#', '@']);
        if is_name {
            // "Ann's" names Ann.
            let folded = text::folded(bare);
            self.names.extend(text::words(&folded).next().map(Into::into));
        }
        // "www.example.com.They sent" where a blank is missing.
        let mut sentence = piece
            .char_indices()
            .skip(1)
            .filter(|(place, c)| c.is_uppercase() && piece.as_bytes().get(place - 1) == Some(&b'.'));
        if let Some((place, _)) = sentence.next() {
            self.atoms.extend(piece.get(..place).map(|before| text::atom(before).into()));
        }
        self.atoms.insert(atom.into());
    }

    /// Words in quotation marks name something, whatever they are.
    fn add_quoted(&mut self, said: &str) {
        for mark in ['"', '\'', '`'] {
            for quoted in said.split(mark).skip(1).step_by(2).filter(|quoted| quoted.len() <= LONGEST_QUOTED) {
                let phrase = text::phrase(quoted);
                let word = phrase.trim();
                if !word.is_empty() && !word.contains(' ') {
                    self.names.insert(word.into());
                }
                self.labeled.extend(text::number(quoted).map(Into::into));
            }
        }
    }

    /// Whether words in a row, written together, are this run of letters and digits.
    fn has_run(&self, run: &str) -> bool {
        let words: Vec<&str> = self.spoken.split([' ', '|']).filter(|word| !word.is_empty()).collect();
        let begins_here = |place: usize| {
            let mut rest = run;
            for word in words.get(place..).unwrap_or_default() {
                match rest.strip_prefix(word) {
                    Some("") => return true,
                    Some(more) => rest = more,
                    None => return false,
                }
            }
            false
        };
        !run.is_empty() && (0..words.len()).any(begins_here)
    }

    /// Whether a path lies below a folder that the words or the runtime name.
    fn is_below_named(&self, path: &str) -> bool {
        if path.split(['/', '\\']).any(|part| part == "..") {
            return false;
        }
        let mut folder = path;
        while let Some(end) = folder.rfind('/') {
            folder = folder.get(..end).unwrap_or_default();
            let is_folder = folder.len() > 1 && (self.atoms.contains(folder) || self.trusted.contains(folder));
            if is_folder {
                return true;
            }
        }
        false
    }
}

/// The pieces of a text between blanks, quotation marks, brackets, and commas that part no digits.
fn pieces(said: &str) -> impl Iterator<Item = &str> {
    let parts = |c: char| c.is_whitespace() || "\"'`“”‘’()<>[]{};".contains(c);
    said.split(parts).filter(|piece| !piece.is_empty()).flat_map(|piece| {
        let is_number = piece.starts_with(|c: char| !c.is_alphabetic()) && piece.contains(|c: char| c.is_ascii_digit());
        piece.split(move |c: char| c == ',' && !is_number).filter(|piece| !piece.is_empty())
    })
}

/// Whether a word says that the number behind it is an id.
fn is_label(word: &str) -> bool {
    matches!(
        word,
        "id" | "ids"
            | "no"
            | "nr"
            | "number"
            | "#"
            | "order"
            | "ticket"
            | "invoice"
            | "issue"
            | "case"
            | "transaction"
            | "booking"
            | "account"
            | "file"
            | "event"
            | "email"
    )
}

/// Words behind which a word in lower case names somebody or something.
const NAMED_BEHIND: &[&str] = &[
    "to", "with", "for", "cc", "bcc", "from", "by", "invite", "tell", "ask", "at", "into", "in", "channel", "user",
    "and",
];
/// Digits of a number that is an id without being called one.
const LEAST_PLAIN_ID: usize = 5;
/// Longest quotation that is taken for a name, in bytes.
const LONGEST_QUOTED: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_named_in_whatever_form_it_is_written() {
        let words = Words::new(
            "Pay $1,250.50 to DE89 3704 0044 0532 0130 00 for order 8812, tell Ann (ann@example.com), and put it on \
             our website www.our-company.com.They sent the file 'notes.txt' to bob.",
        );
        for (value, part) in [
            ("1250.5", Part::Amount),
            ("DE89370400440532013000", Part::Party),
            ("ann@example.com", Part::Party),
            ("https://www.our-company.com/", Part::Place),
            ("notes.txt", Part::Path),
            ("8812", Part::Id),
            ("Ann", Part::Party),
            ("bob", Part::Party),
        ] {
            assert!(words.allow(value, part), "{value}");
        }
        for (value, part) in [
            ("125050", Part::Amount),
            ("DE89370400440532013001", Part::Party),
            ("ann@example.co", Part::Party),
            ("www.our-company.com/upload", Part::Place),
            ("881", Part::Id),
            ("website", Part::Party),
            ("", Part::Party),
        ] {
            assert!(!words.allow(value, part), "{value}");
        }
    }

    #[test]
    fn a_number_that_is_no_id_names_no_record() {
        let words = Words::new("Move the meeting to 5 and delete event 24, also ID '13'");
        assert!(!words.allow("5", Part::Id) && words.allow("24", Part::Id) && words.allow("13", Part::Id));
        assert!(words.allow("5", Part::Amount));
    }

    #[test]
    fn a_folder_that_is_vouched_for_covers_what_is_below_it() {
        let mut words = Words::new("Fix the failing test");
        words.trust("/home/ann/project");
        assert!(words.allow("/home/ann/project/src/lib.rs", Part::Path));
        for path in ["/home/ann/projects/x", "/home/ann/project/../.ssh/id_rsa", "/etc/passwd"] {
            assert!(!words.allow(path, Part::Path), "{path}");
        }
    }

    #[test]
    fn texts_do_not_run_into_each_other() {
        let mut words = Words::new("Write to Sarah");
        words.say("Connor is late");
        assert!(!words.allow("Sarah Connor", Part::Party));
    }
}
