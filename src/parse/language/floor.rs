//! The danger floor: words of destruction, money, rights, secrets and concealment,
//! below whose risk no learned weight can lower a clause that orders them.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::parse::learned::Clause;

/// The place of the first word of danger that a clause orders or names as a deed.
pub(super) fn of(clause: &Clause<'_>) -> Option<usize> {
    let asks = clause.words.last() == Some(&"?") && clause.head.is_none();
    clause.words.iter().enumerate().position(|(place, word)| {
        let named = clause.words.get(place + 1).is_some_and(|next| matches!(*next, "of" | "to"));
        let deed = FLOOR.deeds.contains(*word) || named && FLOOR.nominals.contains(*word);
        let orders = FLOOR.verbs.contains(*word) && (clause.head == Some(place) || ends_up(clause, place));
        (deed && !asks) || orders
    })
}

/// Whether a word names a deed of danger, whatever stands around it.
pub(crate) fn is_danger(word: &str) -> bool {
    FLOOR.verbs.contains(word) || FLOOR.deeds.contains(word)
}

/// "Is to be erased", "get it deleted", "needs wiping": the word tells how things are to end.
fn ends_up(clause: &Clause<'_>, place: usize) -> bool {
    let word = clause.words.get(place).copied().unwrap_or_default();
    let is_result = word.ends_with("ed") || word.ends_with("ing") || IRREGULAR.contains(&word);
    let before = clause.words.get(place.saturating_sub(WINDOW)..place).unwrap_or_default();
    is_result && before.iter().any(|word| LEADS.contains(word))
}

/// The words of the floor that begin with this letter.
pub(crate) fn floor_words(initial: u8) -> impl Iterator<Item = &'static str> {
    let place = initial.checked_sub(b'a').map(usize::from);
    place.and_then(|place| FLOOR.by_initial.get(place)).into_iter().flatten().copied()
}

#[derive(Default)]
struct Floor {
    verbs: HashSet<&'static str>,
    deeds: HashSet<&'static str>,
    /// Names of deeds that are dangerous where what they are done to follows.
    nominals: HashSet<&'static str>,
    /// All of them, by first letter.
    by_initial: [Vec<&'static str>; 26],
}

static FLOOR: LazyLock<Floor> = LazyLock::new(|| {
    let mut floor = Floor::default();
    for line in include_str!("../data/floor.txt").lines().filter(|line| !line.starts_with('#')) {
        let Some((kind, words)) = line.split_once(':') else { continue };
        for word in words.split_whitespace() {
            let list = match kind {
                "deeds" => &mut floor.deeds,
                "nominals" => &mut floor.nominals,
                _ => &mut floor.verbs,
            };
            list.insert(word);
            let place = word.bytes().next().and_then(|initial| initial.checked_sub(b'a')).map(usize::from);
            if let Some(list) = place.and_then(|place| floor.by_initial.get_mut(place)) {
                list.push(word);
            }
        }
    }
    floor
});

/// Words behind which a participle is an order.
const LEADS: &[&str] = &[
    "be", "get", "gets", "have", "having", "needs", "need", "must", "want", "being", "make", "ensure", "see", "leave",
    "keep", "should",
];
/// Participles without an ending.
const IRREGULAR: &[&str] = &["gone", "stolen", "shredded", "overwritten", "hidden", "broken", "undone", "torn"];
/// Words before a participle that are looked at.
const WINDOW: usize = 8;
