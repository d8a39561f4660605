//! Reads clauses: the score sums of each clause, the capability they indicate, the confidence, and the decisive
//! words.

use smallvec::SmallVec;

use rulekeep_types::{Operation, Resource, RiskLevel};

use super::clause::Clause;
use super::table::{Candidate, IntentTable, Likely, MOST_COLUMNS, Sums};

/// The risk that the words of a clause indicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LearnedRisk {
    /// The highest level that is more likely than not; `None` leaves the level to the rubric.
    pub likely: Option<RiskLevel>,
    /// The highest level that is clear: likely enough to count well above the rubric's.
    pub plain: RiskLevel,
}

impl LearnedRisk {
    /// The same for a tool's name. Its few words can lower the risk; the arguments show how far a call reaches.
    pub(crate) fn of_name(self) -> Self {
        Self { likely: self.likely.filter(|likely| *likely == RiskLevel::Low), plain: RiskLevel::Low }
    }
}

/// The reading of a clause.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub operation: Operation,
    pub resource: Resource,
    /// The probability that the reading is right, from 0 to 1.
    pub sure: f64,
    /// The probability that the clause asks for nothing.
    pub none: f64,
    /// The risk that the words indicate, in addition to the rubric.
    pub risk: LearnedRisk,
    /// Other capabilities that may be meant, most likely first.
    pub others: Vec<(Resource, Operation, f64)>,
    /// The places in the clause of the words that determined the operation and the resource.
    pub told_operation: Option<usize>,
    pub told_resource: Option<usize>,
    /// The keys with the most weight, strongest first.
    pub told: SmallVec<[Told; MOST_TOLD]>,
    /// The share of its words that the table knows.
    pub known: f64,
}

/// A key and what it indicates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Told {
    /// The place in the clause of its word; for a pair, of the second word.
    pub place: usize,
    pub is_pair: bool,
    /// The name of the operation or resource.
    pub points_to: &'static str,
}

/// The keys that a clause is weighed by: its words, its pairs of words, and its head.
pub(super) fn keys_of(clause: &Clause<'_>) -> Vec<String> {
    let words = clause.words.iter().map(|&word| word.to_owned());
    let pairs = clause.words.iter().zip(clause.words.iter().skip(1)).map(|(one, other)| format!("{one} {other}"));
    let mark = if clause.head.is_some() { '^' } else { '<' };
    let head = clause.words.get(clause.head.unwrap_or(0)).map(|word| format!("{mark}{word}"));
    words.chain(pairs).chain(head).collect()
}

/// The row of a key, with the place of its word.
#[derive(Clone, Copy)]
struct KeyRow<'t> {
    place: usize,
    is_pair: bool,
    row: &'t [i8],
}

/// The rows of a clause's words, and their sums.
pub(crate) struct Weighed<'t> {
    rows: SmallVec<[KeyRow<'t>; 32]>,
    pub(super) sums: Sums,
    words: usize,
    known: u32,
}

/// Looks up the words of a clause.
pub(crate) fn weigh<'t>(clause: &Clause<'_>, table: &'t IntentTable) -> Weighed<'t> {
    let mut rows: SmallVec<[KeyRow<'_>; 32]> = SmallVec::new();
    let mut known = 0_u32;
    let (mut before, mut pair): (Option<&str>, _) = (None, String::with_capacity(USUAL_PAIR));
    for (place, word) in clause.words.iter().enumerate() {
        if let Some(row) = table.word(word) {
            rows.push(KeyRow { place, is_pair: false, row });
            known += 1;
        }
        if let Some(before) = before {
            pair.clear();
            pair.extend([before, " ", *word]);
            if let Some(row) = table.row(&pair) {
                rows.push(KeyRow { place, is_pair: true, row });
            }
        }
        before = Some(word);
    }
    let opening = match clause.head {
        Some(head) => clause.words.get(head).and_then(|word| table.head(word)),
        None => clause.words.first().and_then(|word| table.start(word)),
    };
    if let Some(row) = opening {
        rows.push(KeyRow { place: clause.head.unwrap_or(0), is_pair: false, row });
    }
    let mut sums: Sums = [0; MOST_COLUMNS];
    for key in &rows {
        for (sum, weight) in sums.iter_mut().zip(key.row) {
            *sum += i32::from(*weight);
        }
    }
    Weighed { rows, sums, words: clause.words.len(), known }
}

impl Weighed<'_> {
    /// Reads the clause by its own words only, so that no surrounding words dilute it.
    pub(crate) fn heard(&self, table: &IntentTable) -> Heard {
        let likely = table.likely(&self.sums, self.words);
        let (best, candidate, sure) = best(table, &likely);
        let (operation, resource) = candidate.columns();
        let operations = margins(&self.rows, operation, 0..7);
        let resources = margins(&self.rows, resource, 7..34);
        Heard {
            operation: candidate.operation,
            resource: candidate.resource,
            sure: table.sure(sure),
            none: likely.none,
            risk: level(self.risk(table, &likely, sure)),
            others: others(table, &likely, best),
            told_operation: first(&operations),
            told_resource: first(&resources),
            told: strongest([(&operations, candidate.operation.as_str()), (&resources, candidate.resource.as_str())]),
            known: f64::from(self.known) / f64::from(u32::try_from(self.words.max(1)).unwrap_or(u32::MAX)),
        }
    }
}

impl Weighed<'_> {
    /// The probabilities of at least MEDIUM, HIGH and CRITICAL, averaged over the plausible capabilities; `most` is the
    /// probability of the likeliest one.
    fn risk(&self, table: &IntentTable, likely: &Likely, most: f64) -> [f64; 3] {
        let (mut levels, mut total) = ([0.0; 3], 0.0);
        for (candidate, &likely) in table.candidates().iter().zip(&likely.of) {
            if likely >= most * LEAST_COUNTED {
                total += likely;
                for (sum, level) in levels.iter_mut().zip(table.risk(&self.sums, self.words, candidate)) {
                    *sum += likely * level;
                }
            }
        }
        levels.map(|sum| sum / f64::max(total, f64::MIN_POSITIVE))
    }
}

impl IntentTable {
    /// The operation and resource of a word that starts an order, by itself.
    pub(crate) fn deed(&self, verb: &str) -> Option<(Operation, Resource)> {
        let alone = Clause { words: vec![verb], at: vec![0], head: Some(0), first: Some(0), ..Clause::default() };
        let likely = self.likely(&weigh(&alone, self).sums, 1);
        let of = |operation: Operation| -> f64 {
            let both = self.candidates().iter().zip(&likely.of);
            both.filter(|(one, _)| one.operation == operation).map(|(_, likely)| likely).sum()
        };
        let (_, candidate, _) = best(self, &likely);
        let operation = Operation::ALL.iter().copied().max_by(|one, other| of(*one).total_cmp(&of(*other)))?;
        let resource = if candidate.operation == operation { candidate.resource } else { Resource::Unknown };
        Some((operation, resource))
    }
}

/// The most likely candidate; of equals, the first in the table.
fn best<'t>(table: &'t IntentTable, likely: &Likely) -> (usize, &'t Candidate, f64) {
    let mut found = (0, 0.0);
    for (place, likely) in likely.of.iter().copied().enumerate() {
        if likely > found.1 {
            found = (place, likely);
        }
    }
    // INVARIANT: a table without candidates is refused when it is loaded.
    let candidates = table.candidates();
    let (place, likely) = found;
    (place, candidates.get(place).unwrap_or(&candidates[0]), likely)
}

fn others(table: &IntentTable, likely: &Likely, best: usize) -> Vec<(Resource, Operation, f64)> {
    let asks = (1.0 - likely.none).max(f64::MIN_POSITIVE);
    let mut others: Vec<_> = table
        .candidates()
        .iter()
        .zip(&likely.of)
        .enumerate()
        // Most are too unlikely by far, and need no division to tell.
        .filter(|&(place, (_, &likely))| {
            place != best && likely >= asks * (LEAST_OTHER / 2.0) && likely / asks >= LEAST_OTHER
        })
        .map(|(_, (one, &likely))| (one.resource, one.operation, likely))
        .collect();
    others.sort_by(|one, other| other.2.total_cmp(&one.2));
    others.truncate(MOST_OTHERS);
    others
}

/// The margin of a key's weight for a column over the mean of its kind.
#[derive(Clone, Copy)]
struct Margin {
    place: usize,
    is_pair: bool,
    by: i32,
}

/// The keys that favor a column, sorted by place.
fn margins(rows: &[KeyRow<'_>], column: usize, kind: std::ops::Range<usize>) -> SmallVec<[Margin; 32]> {
    let count = i32::try_from(kind.len()).unwrap_or(1);
    let mut margins: SmallVec<[Margin; 32]> = SmallVec::new();
    for &KeyRow { place, is_pair, row } in rows {
        let own = i32::from(row.get(column).copied().unwrap_or_default());
        let all: i32 = row.get(kind.clone()).unwrap_or_default().iter().map(|&weight| i32::from(weight)).sum();
        let by = own - all / count;
        // The word that starts the clause has two rows, and the second comes after all others.
        match margins.iter_mut().find(|known| (known.place, known.is_pair) == (place, is_pair)) {
            Some(known) => known.by += by,
            None => margins.push(Margin { place, is_pair, by }),
        }
    }
    margins.retain(|margin| margin.by > 0);
    margins
}

/// The place of the word that favors the result most, with its pairs; of equals, the first.
fn first(margins: &[Margin]) -> Option<usize> {
    let words = margins.chunk_by(|one, other| one.place == other.place);
    let sums = words.filter_map(|word| Some((word.first()?.place, word.iter().map(|margin| margin.by).sum::<i32>())));
    sums.max_by_key(|&(place, by)| (by, std::cmp::Reverse(place))).map(|(place, _)| place)
}

/// The strongest keys of both kinds.
fn strongest(of_both: [(&[Margin], &'static str); 2]) -> SmallVec<[Told; MOST_TOLD]> {
    let mut strongest: SmallVec<[(Margin, &'static str); MOST_TOLD]> = SmallVec::new();
    let rank = |margin: &Margin| (std::cmp::Reverse(margin.by), margin.place, margin.is_pair);
    for (margins, points_to) in of_both {
        for margin in margins {
            let at = strongest.partition_point(|(known, _)| rank(known) <= rank(margin));
            if at < MOST_TOLD {
                strongest.truncate(MOST_TOLD - 1);
                strongest.insert(at, (*margin, points_to));
            }
        }
    }
    let told = |(Margin { place, is_pair, .. }, points_to)| Told { place, is_pair, points_to };
    strongest.into_iter().map(told).collect()
}

/// The likely and clear levels; LOW is likely only if little contradicts it.
fn level(levels: [f64; 3]) -> LearnedRisk {
    let [medium, high, _] = levels;
    let above = |least: f64| {
        let place = levels.iter().rposition(|level| *level >= least).map_or(0, |place| place + 1);
        RiskLevel::ALL.get(place).copied().unwrap_or(RiskLevel::Critical)
    };
    let unruled = medium >= LEAST_MEDIUM || high >= LEAST_HIGH;
    LearnedRisk {
        likely: Some(above(0.5).max(if unruled { RiskLevel::Medium } else { RiskLevel::Low })),
        plain: above(PLAIN),
    }
}

/// The minimum probability, relative to the best reading, for a reading to count for the risk.
const LEAST_COUNTED: f64 = 0.3;
/// The minimum probability of a clear level.
const PLAIN: f64 = 0.7;
/// The probabilities of MEDIUM and HIGH that rule out LOW.
const LEAST_MEDIUM: f64 = 0.5;
const LEAST_HIGH: f64 = 0.3;
/// The minimum probability of another capability that is listed.
const LEAST_OTHER: f64 = 0.05;
/// Bytes that most pairs of words fit in.
const USUAL_PAIR: usize = 48;
/// Keys that an explanation names.
const MOST_TOLD: usize = 3;
/// Maximum number of other capabilities.
const MOST_OTHERS: usize = 4;
