//! The danger floor: words of destruction, money, rights, secrets and concealment. No learned weight can rate a
//! clause that orders one of them below MEDIUM.

use std::sync::LazyLock;

use crate::learned::Clause;
use crate::roles::Role;
use crate::table::Words;

/// The place of the first danger word that a clause orders, or names as an act.
pub(super) fn of(clause: &Clause<'_>) -> Option<usize> {
    let asks = clause.words.last() == Some(&"?") && clause.head.is_none();
    clause.words.iter().enumerate().position(|(place, word)| {
        let Some(form) = FLOOR.forms.get(*word) else { return false };
        let next = clause.words.get(place + 1).copied().unwrap_or_default();
        let is_wished = || is_led(clause, place);
        match form {
            _ if clause.head == Some(place) => *form != Form::Deed || !asks,
            Form::Deed => !asks,
            Form::Nominal => matches!(next, "of" | "to"),
            // "Take care of the drop of the table".
            Form::Base => next == "of" && is_wished(),
            // "Would you mind wiping the disk", "the overwriting of the disk".
            Form::Gerund => next == "of" || is_wished() && (clause.has(place + 1, Role::Firm) || ends(clause, place)),
            Form::Participle => is_wished() && ends(clause, place),
            Form::Other => false,
        }
    })
}

/// Returns whether a word, in any form, names a dangerous act.
pub(crate) fn is_danger(word: &str) -> bool {
    FLOOR.forms.get(word).is_some_and(|form| *form != Form::Nominal)
}

/// Returns whether a word that asks for a state or an act stands a few words before: "is to be erased", "needs
/// wiping".
fn is_led(clause: &Clause<'_>, place: usize) -> bool {
    (place.saturating_sub(WINDOW)..place).any(|place| clause.has(place, Role::Wishes))
}

/// Returns whether no noun follows a participle that it could describe: "get the files deleted by noon", not "deleted
/// files".
fn ends(clause: &Clause<'_>, place: usize) -> bool {
    place + 1 == clause.words.len() || clause.has(place + 1, Role::Ends)
}

/// The words of the floor that begin with this letter, each with its letters.
pub(crate) fn floor_words(initial: u8) -> impl Iterator<Item = (&'static str, Letters)> {
    let place = initial.checked_sub(b'a').map(usize::from);
    let words = place.and_then(|place| FLOOR.by_initial.get(place));
    words.into_iter().flatten().map(|(word, letters)| (word.as_str(), *letters))
}

/// The lower-case letters that a word has: a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Letters(u32);

impl Letters {
    pub(crate) fn of(word: &str) -> Self {
        let places = word.bytes().filter(u8::is_ascii_lowercase).map(|byte| u32::from(byte - b'a'));
        Self(places.fold(0, |letters, place| letters | 1 << place))
    }

    /// Number of letters that one word has and the other has not. An edit changes it by two at most.
    pub(crate) const fn apart(self, other: Self) -> u32 {
        (self.0 ^ other.0).count_ones()
    }
}

/// The grammatical form of a word of the floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Base,
    Gerund,
    Participle,
    /// The third person.
    Other,
    /// A noun that names the act if its object follows.
    Nominal,
    /// A noun that names the act by itself.
    Deed,
}

#[derive(Default)]
struct Floor {
    forms: Words<Form>,
    /// All of them, by first letter.
    by_initial: [Vec<(String, Letters)>; 26],
}

impl Floor {
    fn add(&mut self, word: String, form: Form) {
        let place = word.bytes().next().and_then(|initial| initial.checked_sub(b'a')).map(usize::from);
        if let Some(list) = place.and_then(|place| self.by_initial.get_mut(place)) {
            list.push((word.clone(), Letters::of(&word)));
        }
        self.forms.entry(word).or_insert(form);
    }

    /// Adds the regular forms of a verb.
    fn add_verb(&mut self, verb: &str) {
        let ending = verb.as_bytes();
        let vowel = |byte: &u8| b"aeiou".contains(byte);
        let stem = match ending {
            [.., b'e'] => verb.get(..verb.len() - 1).unwrap_or(verb).to_owned(),
            // "Drop" doubles its last letter, "reboot" does not.
            [.., before, middle, last] if !vowel(before) && vowel(middle) && !vowel(last) && DOUBLED.contains(last) => {
                format!("{verb}{}", char::from(*last))
            }
            _ => verb.to_owned(),
        };
        self.add(format!("{stem}ing"), Form::Gerund);
        self.add(format!("{verb}s"), Form::Other);
        let past = verb.strip_suffix('y').filter(|_| !matches!(ending, [.., b'a' | b'e' | b'o', b'y']));
        self.add(past.map_or(format!("{stem}ed"), |past| format!("{past}ied")), Form::Participle);
        self.add(verb.to_owned(), Form::Base);
    }
}

static FLOOR: LazyLock<Floor> = LazyLock::new(|| {
    let mut floor = Floor::default();
    for line in include_str!("../data/floor.txt").lines().filter(|line| !line.starts_with('#')) {
        let Some((kind, words)) = line.split_once(':') else { continue };
        for word in words.split_whitespace() {
            match kind {
                "deeds" => floor.add(word.to_owned(), Form::Deed),
                "nominals" => floor.add(word.to_owned(), Form::Nominal),
                "gerunds" => floor.add(word.to_owned(), Form::Gerund),
                "participles" => floor.add(word.to_owned(), Form::Participle),
                _ => floor.add_verb(word),
            }
        }
    }
    floor
});

/// Number of words before the act that are looked at.
const WINDOW: usize = 9;
/// Last letters that double in the forms of a short verb.
const DOUBLED: &[u8] = b"bdgmnpt";
