//! The values in the user's words, and the trusted values.

use std::collections::HashSet;

use super::argument::{Part, is_place};
use super::text::{self, Shape};

/// The user's words under a task and the trusted values, in the forms in which values are looked up.
#[derive(Debug, Clone, Default)]
pub(crate) struct Words {
    /// Every text; the first one opened the task.
    texts: Vec<Box<str>>,
    /// The words of all texts, separated by single blanks; texts are separated by a bar.
    spoken: String,
    /// Addresses, paths and tokens.
    atoms: HashSet<Box<str>>,
    numbers: HashSet<Box<str>>,
    /// Account and phone numbers, without grouping characters.
    runs: HashSet<Box<str>>,
    /// Short numbers that are called IDs: "id 13", "#13", "order 8812".
    labeled: HashSet<Box<str>>,
    /// Words that name something by themselves: capitalized, quoted, or after a preposition.
    names: HashSet<Box<str>>,
    /// Names within a sentence or in quotation marks, each of which can refer to an entry by itself.
    leading: HashSet<Box<str>>,
    /// Names and addresses to which the words send something: "to Ann", "tell Bob".
    addressees: HashSet<Box<str>>,
    /// Addresses from which the words only take something: "from ann@example.com".
    sources: HashSet<Box<str>>,
    /// Values trusted by the runtime or endorsed by a reviewer, in their normal form.
    trusted: HashSet<Box<str>>,
    /// The same values as they were given: of a command every character counts.
    exact: HashSet<Box<str>>,
    /// The runtime trusts the working folder, as `.`, so relative paths below it are trusted.
    trusts_working_folder: bool,
}

impl Words {
    /// Creates the words that open a task.
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
            let is_within = !before.is_empty() && !before.ends_with(['.', '!', '?', ':', ';']);
            let bare = piece.trim_matches(|c: char| !c.is_alphanumeric());
            if is_within && bare.starts_with(char::is_uppercase) {
                self.leading.insert(text::folded(bare).as_ref().into());
            }
            before = piece;
        }
        self.add_runs(said);
        self.add_quoted(said);
        self.add_addressees(said);
    }

    /// Adds a value that the runtime trusts, or that a reviewer endorsed.
    pub(crate) fn trust(&mut self, value: &str) {
        if value == "." {
            self.trusts_working_folder = true;
        } else {
            self.trusted.insert(text::normal_value(value).into());
            self.exact.insert(value.into());
        }
    }

    /// Adds the trusted values of another task's words.
    pub(crate) fn trust_as(&mut self, other: &Self) {
        self.trusted.extend(other.trusted.iter().cloned());
        self.exact.extend(other.exact.iter().cloned());
        self.trusts_working_folder |= other.trusts_working_folder;
    }

    /// The user's texts, the first one first.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }

    /// Returns whether exactly this value is trusted: `git push origin :main` is not `git push origin main`.
    pub(super) fn trusts(&self, value: &str) -> bool {
        self.exact.contains(value)
    }

    /// Returns whether the words ask for something by this name, in whatever form of the verb, and do not rule it out:
    /// "push it", "pushing", but not "don't push".
    pub(super) fn wants(&self, name: &str) -> bool {
        self.wants_in(name, &["", "s", "ed", "d", "ing", "es"])
    }

    /// Returns whether the words tell of something that somebody else does: "the script removes it".
    pub(super) fn tell_of(&self, name: &str) -> bool {
        self.spoken.contains(&format!(" {name}s "))
    }

    /// Returns whether the words ask for something, in these forms of the verb and in that of a noun.
    pub(super) fn wants_in(&self, name: &str, endings: &[&str]) -> bool {
        let forms: Vec<String> = endings.iter().map(|ending| format!(" {name}{ending} ")).collect();
        let stem = name.strip_suffix('e').map(|stem| format!(" {stem}ing "));
        let doubled = name.chars().next_back().map(|last| format!(" {name}{last}ing "));
        forms.iter().chain(&stem).chain(&doubled).any(|form| {
            self.spoken.match_indices(&**form).any(|(place, _)| {
                let before = self.spoken.get(..place).unwrap_or_default();
                let clause = before.rsplit('|').next().unwrap_or_default();
                !clause.split(' ').rev().take(NEAR).any(|word| RULING_OUT.contains(&word))
            })
        })
    }

    /// Returns whether the words name this value, or it is trusted.
    pub(super) fn allow(&self, value: &str, part: Part) -> bool {
        self.trusted.contains(&*text::normal_value(value)) || self.name(value, part)
    }

    /// Returns whether the words name this value, in this part of a call.
    pub(super) fn name(&self, value: &str, part: Part) -> bool {
        // An amount is never compared as an account number: "10000000" is not 100,000.00.
        if part == Part::Amount {
            let is_whole = value.rsplit_once('.').is_none_or(|(_, cents)| cents.len() <= 2);
            return is_whole && self.has_number(value);
        }
        match text::shape(value) {
            Shape::Number => {
                let Some(number) = text::number(value) else { return false };
                // A short number is an ID only if the words say so: "at 5" does not name a record 5.
                let is_plain = part != Part::Id || number.len() >= LEAST_PLAIN_ID;
                self.labeled.contains(&*number) || is_plain && self.numbers.contains(&*number)
            }
            Shape::Account => self.runs.contains(&*text::squeezed(value)),
            Shape::Atom => self.has_atom(value, part),
            Shape::Phrase if part == Part::Place || part == Part::Id && (text::is_date(value) || is_title(value)) => {
                false
            }
            // A file name or ID with a hyphen is one token, not words.
            Shape::Phrase if part.is_token() && !value.trim().chars().all(char::is_alphanumeric) => {
                part == Part::Path && self.has_quoted(value) || self.has_atom(value, part)
            }
            Shape::Phrase => {
                let phrase = text::phrase(value);
                match phrase.trim() {
                    "" => false,
                    word if !word.contains(' ') && !matches!(part, Part::Name | Part::Other) => {
                        self.names.contains(word)
                    }
                    _ if self.spoken.contains(&*phrase) => true,
                    // "Los Angeles, CA" is the city that the words name.
                    _ => part == Part::Other && region_left_out(value).is_some_and(|place| self.mention(place)),
                }
            }
        }
    }

    /// Returns whether the words contain this number, in the currency next to it.
    fn has_number(&self, value: &str) -> bool {
        let currency = value.trim().trim_matches(|c: char| !c.is_ascii_alphabetic());
        text::number(value).is_some_and(|number| self.numbers.contains(&*number))
            && (currency.is_empty() || self.mention(currency))
    }

    fn has_atom(&self, value: &str, part: Part) -> bool {
        let atom = text::atom(value);
        self.atoms.contains(&*atom)
            || part.is_path() && self.is_below_named(&atom)
            || part == Part::Path && self.trusts_working_folder && is_relative(value)
            // "pet_friendly" is a choice, written as programs do.
            || part == Part::Other && !value.contains(['@', '/', '.', ':']) && self.mention(value)
    }

    /// Returns whether the words contain exactly this text in quotation marks, such as a file name with blanks.
    fn has_quoted(&self, value: &str) -> bool {
        let marks = [('"', '"'), ('\'', '\''), ('`', '`'), ('“', '”'), ('‘', '’')];
        marks
            .iter()
            .any(|(open, close)| self.texts.iter().any(|text| text.contains(&format!("{open}{}{close}", value.trim()))))
    }

    /// Returns whether the words refer to an entry by the first word of its name: "Sarah" for Sarah Connor.
    pub(super) fn name_by_first_word(&self, name: &str) -> bool {
        let phrase = text::phrase(name);
        let mut words = phrase.split_whitespace();
        let first = words.next().filter(|first| first.len() >= LEAST_LEADING && words.next().is_some());
        first.is_some_and(|first| self.leading.contains(first))
    }

    /// Returns whether the words send something to this value, rather than only mention it. Anything may be sent to a
    /// trusted value.
    pub(super) fn address(&self, value: &str) -> bool {
        let normal = text::normal_value(value);
        if self.trusted.contains(&*normal) {
            return true;
        }
        match text::shape(value) {
            // An address that the user writes down is there to be used.
            Shape::Atom if is_place(value) => self.addressees.contains(&*normal),
            Shape::Atom | Shape::Account => !self.sources.contains(&*normal) || self.addressees.contains(&*normal),
            Shape::Number => true,
            Shape::Phrase => normal.split(' ').all(|word| self.addressees.contains(word)),
        }
    }

    /// Returns whether the words contain these words in a row.
    pub(super) fn mention(&self, value: &str) -> bool {
        let phrase = text::phrase(value);
        phrase.len() > 1 && self.spoken.contains(&*phrase)
    }

    /// Returns whether a text has words, each of which is in the user's words or a trusted value, and no wildcards.
    pub(super) fn cover_all(&self, text: &str) -> bool {
        text.chars().any(char::is_alphanumeric) && !text.contains(['*', '%', '?', ':', '=']) && self.cover(text)
    }

    /// Returns whether every word of a text is in the user's words or a trusted value.
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
        // Splits "www.example.com.They sent", where a blank is missing.
        let mut sentence = piece
            .char_indices()
            .skip(1)
            .filter(|(place, c)| c.is_uppercase() && piece.as_bytes().get(place - 1) == Some(&b'.'));
        if let Some((place, _)) = sentence.next() {
            self.atoms.extend(piece.get(..place).map(|before| text::atom(before).into()));
        }
        // A plain word is not a token: it names something only if the words say so.
        let is_token = atom.chars().any(|c| !c.is_alphabetic()) && atom.chars().any(char::is_alphanumeric);
        if is_token {
            self.atoms.insert(atom.into());
        }
    }

    /// Adds account and phone numbers, however they are grouped: "DE89 3704 0044".
    fn add_runs(&mut self, said: &str) {
        let is_part = |piece: &str| {
            !piece.is_empty()
                && !text::is_date(piece)
                && piece.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '(' | ')' | '+' | '.'))
        };
        let marks = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '(' | ')' | '+');
        let words: Vec<&str> = said.split_whitespace().collect();
        for start in 0..words.len() {
            let mut run = String::new();
            for word in words.iter().skip(start).take(MOST_GROUPS) {
                let piece = word.trim_matches(marks);
                run.push_str(&text::squeezed(piece));
                if !is_part(piece) || run.len() > LONGEST_RUN || self.runs.len() >= MOST_RUNS {
                    break;
                }
                if run.bytes().filter(u8::is_ascii_digit).count() >= LEAST_DIGITS {
                    self.runs.insert(run.as_str().into());
                }
                // Punctuation after a group ends the number.
                if word.trim_start_matches(marks).len() > piece.len() {
                    break;
                }
            }
        }
    }

    /// Adds the addressees of the words. A name is an addressee after a word that marks one, across determiners and
    /// lists, and after "in" in a clause that begins with sending.
    fn add_addressees(&mut self, said: &str) {
        let (mut is_marked, mut is_source, mut sends, mut is_told) = (false, false, false, false);
        let mut is_start = true;
        for piece in pieces(said) {
            let folded = text::folded(piece);
            let word = folded.trim_matches(|c: char| !c.is_alphanumeric());
            if is_start || matches!(word, "and" | "then" | "also" | "please") {
                sends = SENDING.contains(&word) || sends && matches!(word, "and" | "also" | "please");
            } else if SENDING.contains(&word) && !word.ends_with("ed") {
                sends = true;
            }
            is_start = piece.ends_with(['.', '!', '?', ':', ';']);
            is_told = TELLING.contains(&word) || is_told && !matches!(word, "and" | "then" | "please");
            if is_told {
                (is_marked, is_source) = (false, matches!(word, "from" | "by"));
            } else if ADDRESSING.contains(&word) || sends && matches!(word, "in" | "on" | "into" | "at") {
                (is_marked, is_source) = (true, false);
            } else if matches!(word, "from" | "by") {
                (is_marked, is_source) = (false, true);
            } else if !PASSED_OVER.contains(&word) {
                let is_name = piece.trim_matches(|c: char| !c.is_alphanumeric()).starts_with(char::is_uppercase)
                    || self.names.contains(word)
                    || text::shape(piece) != Shape::Phrase;
                if is_name && is_marked {
                    self.addressees.insert(text::atom(piece).into());
                    self.addressees.extend(text::words(&folded).map(Into::into));
                } else if is_name && is_source {
                    self.sources.insert(text::normal_value(&text::atom(piece)).into());
                } else {
                    (is_marked, is_source) = (false, false);
                }
            }
            if is_start {
                (is_marked, is_source, is_told) = (false, false, false);
            }
        }
    }

    /// Adds quoted words, which name something whatever they are.
    fn add_quoted(&mut self, said: &str) {
        for mark in ['"', '\'', '`'] {
            for quoted in said.split(mark).skip(1).step_by(2).filter(|quoted| quoted.len() <= LONGEST_QUOTED) {
                let phrase = text::phrase(quoted);
                let word = phrase.trim();
                if !word.is_empty() && !word.contains(' ') {
                    self.names.insert(word.into());
                    self.leading.insert(word.into());
                }
                self.labeled.extend(text::number(quoted).map(Into::into));
            }
        }
    }

    /// Returns whether a path is below a folder that the words name or the runtime trusts.
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

/// Returns whether a path is plainly below the working folder: without root, home, host, drive, variable or pattern.
fn is_relative(path: &str) -> bool {
    !path.starts_with(['/', '-'])
        && !path.contains([':', '~', '\\', '$', '`', '*', '?', '[', '{', '%', '@'])
        && path.split('/').all(|part| part != "..")
        && path.contains(char::is_alphanumeric)
}

/// Returns whether a value is a capitalized word, which names somebody or something and is not an ID.
fn is_title(value: &str) -> bool {
    value.trim().starts_with(char::is_uppercase) && value.trim().chars().skip(1).all(char::is_lowercase)
}

/// Returns a place without the region after its comma.
fn region_left_out(value: &str) -> Option<&str> {
    let (place, region) = value.split_once(", ")?;
    let is_region = (2..=3).contains(&region.len()) && region.bytes().all(|byte| byte.is_ascii_uppercase());
    (is_region && place.len() > 2).then_some(place)
}

/// Splits a text at blanks, quotation marks, brackets, and commas that do not separate digits.
pub(super) fn pieces(said: &str) -> impl Iterator<Item = &str> {
    let parts = |c: char| c.is_whitespace() || "\"'`“”‘’()<>[]{};".contains(c);
    said.split(parts).filter(|piece| !piece.is_empty()).flat_map(|piece| {
        let is_number = piece.starts_with(|c: char| !c.is_alphabetic()) && piece.contains(|c: char| c.is_ascii_digit());
        piece.split(move |c: char| c == ',' && !is_number).filter(|piece| !piece.is_empty())
    })
}

/// Returns whether a word says that the number after it is an ID.
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

/// Words that rule out what follows, and the number of words between them.
const RULING_OUT: &[&str] = &["not", "don", "dont", "never", "without", "no", "nothing", "before", "avoid"];
const NEAR: usize = 4;
/// Words after which a word in lower case names somebody or something.
const NAMED_BEHIND: &[&str] = &[
    "to", "with", "for", "cc", "bcc", "from", "by", "invite", "tell", "ask", "at", "into", "in", "channel", "user",
    "and",
];
/// Least number of letters of a word that names an entry by itself.
const LEAST_LEADING: usize = 3;
/// Verbs that report what was sent before.
const TELLING: &[&str] = &[
    "sent",
    "wrote",
    "gave",
    "told",
    "said",
    "paid",
    "got",
    "posted",
    "asked",
    "received",
    "emailed",
    "messaged",
    "mentioned",
];
/// Words after which an addressee is named.
const ADDRESSING: &[&str] = &[
    "to",
    "with",
    "cc",
    "bcc",
    "tell",
    "notify",
    "inform",
    "remind",
    "message",
    "email",
    "mail",
    "ask",
    "pay",
    "invite",
    "text",
    "call",
    "refund",
    "reimburse",
    "for",
];
/// Words that begin a clause which sends something.
const SENDING: &[&str] = &[
    "post", "send", "write", "reply", "share", "publish", "message", "email", "forward", "announce", "transfer", "pay",
];
/// Words that may stand between a mark and a name, and between names.
const PASSED_OVER: &[&str] = &[
    "the",
    "a",
    "an",
    "my",
    "our",
    "his",
    "her",
    "their",
    "and",
    "or",
    "also",
    "both",
    "channel",
    "channels",
    "user",
    "users",
    "group",
    "team",
    "colleague",
    "friend",
    "client",
    "address",
    "account",
    "iban",
    "number",
    "email",
    "mr",
    "mrs",
    "ms",
    "dr",
];
/// Least number of digits in an account number.
const LEAST_DIGITS: usize = 8;
/// Largest number of groups in an account number.
const MOST_GROUPS: usize = 10;
/// Largest number of letters and digits in an account number.
const LONGEST_RUN: usize = 40;
/// Largest number of account numbers kept for one task.
const MOST_RUNS: usize = 4096;
/// Least number of digits of a number that is an ID without being called one.
const LEAST_PLAIN_ID: usize = 5;
/// Longest quotation that counts as a name, in bytes.
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
    fn the_working_folder_covers_relative_paths_only() {
        let mut words = Words::new("Fix the failing test");
        words.trust(".");
        for path in ["src/lib.rs", "Cargo.toml", "./tests/a_b-c.rs"] {
            assert!(words.allow(path, Part::Path), "{path}");
        }
        for path in ["/etc/passwd", "../x", "a/../../x", "~/.ssh/id_rsa", "$HOME/x", "host:x", "C:\\x", "src/*", "."] {
            assert!(!words.allow(path, Part::Path), "{path}");
        }
        assert!(!words.allow("src/lib.rs", Part::Other));
        assert!(!words.allow("evil.example", Part::Party) && !words.allow("evil.example", Part::Place));
    }

    #[test]
    fn whom_the_words_speak_of_is_not_whom_they_send_to() {
        let words =
            Words::new("Summarize the article that Bob posted in 'general' channel and send it to Alice and Carol");
        for (value, expected) in [("Alice", true), ("Carol", true), ("Bob", false), ("general", false)] {
            assert_eq!(words.address(value), expected, "{value}");
        }
        let words =
            Words::new("Post it in the 'general' channel, and use ann@x.example, not the mail from bob@x.example");
        for (value, expected) in [("general", true), ("ann@x.example", true), ("bob@x.example", false)] {
            assert_eq!(words.address(value), expected, "{value}");
        }
    }

    #[test]
    fn texts_do_not_run_into_each_other() {
        let mut words = Words::new("Write to Sarah");
        words.say("Connor is late");
        assert!(!words.allow("Sarah Connor", Part::Party));
    }
}
