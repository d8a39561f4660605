//! The danger floor: words of destruction, money, rights, secrets and concealment,
//! below whose risk no learned weight can lower a clause that orders them.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::parse::learned::Clause;

/// The place of the first word of danger that a clause orders or names as a deed.
pub(super) fn of(clause: &Clause<'_>) -> Option<usize> {
    let asks = clause.words.last() == Some(&"?") && clause.head.is_none();
    clause.words.iter().enumerate().position(|(place, word)| {
        let deed = FLOOR.deeds.contains(*word);
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

struct Floor {
    verbs: HashSet<String>,
    deeds: HashSet<String>,
}

static FLOOR: LazyLock<Floor> = LazyLock::new(|| {
    let mut floor = Floor { verbs: HashSet::new(), deeds: HashSet::new() };
    for line in include_str!("../data/floor.txt").lines().filter(|line| !line.starts_with('#')) {
        let Some((kind, words)) = line.split_once(':') else { continue };
        let list = if kind == "deeds" { &mut floor.deeds } else { &mut floor.verbs };
        list.extend(words.split_whitespace().map(str::to_owned));
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
