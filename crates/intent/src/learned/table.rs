//! The word table: for every key a row of small integers, one for each operation and resource. A clause's scores are
//! sums of rows, so they are the same on every machine.
//!
//! Layout of the file, written by `tools/intent-model`: the magic bytes, the length of the header as four bytes
//! (little-endian), the header as JSON, the keys as an `fst` map, and the rows.

use std::sync::{Arc, OnceLock};

use fst::Streamer as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::clause::Vocabulary;
use super::rows::Row;
use crate::table::Table;
use rulekeep_types::{Capability, Error, Operation, Resource, RiskLevel};

/// The first bytes of a table.
const MAGIC: &[u8; 8] = b"RKINTENT";
/// The supported version of the layout.
const VERSION: u32 = 1;

/// The header of the table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Header {
    pub version: u32,
    /// SHA-256 of the labeled rows it was trained on, in hex.
    pub data: String,
    /// SHA-256 of keys and rows, in hex.
    pub digest: String,
    /// The columns: operations, resources, `none`, then the risk levels from MEDIUM up.
    pub columns: Vec<String>,
    /// The value of one unit of a row, for operations and resources, and for risk.
    pub scale: f64,
    pub risk_scale: f64,
    /// The capabilities that a clause can be read as.
    pub pairs: Vec<Pair>,
    /// The score for asking for nothing, before any word counts.
    pub none: f64,
    /// The intercepts of the risk levels from MEDIUM up.
    pub risk: [f64; 3],
    /// The factor on the scores that calibrates the probabilities.
    pub sharpness: f64,
    /// For a probability of 0, 0.1, ... 1 of the best capability, the share of requests for which it is right.
    pub shares: [f64; 11],
    /// Length of the keys, in bytes.
    pub keys: usize,
}

/// A capability, and its score before any word counts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Pair {
    pub capability: String,
    pub bias: f64,
    /// The contribution to each risk level from MEDIUM up.
    pub risk: [f64; 3],
}

/// A capability in the form that scoring uses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub operation: Operation,
    pub resource: Resource,
    operation_column: usize,
    resource_column: usize,
    bias: f64,
    risk: [f64; 3],
}

/// The weights of the words: those of the file, and those that a user's own rows changed.
#[derive(Debug, Clone)]
pub(crate) struct IntentTable {
    file: Arc<TableFile>,
    own: Table<Box<[i8]>>,
    /// SHA-256 of the user's rows, in hex.
    own_digest: Option<Arc<str>>,
}

/// A loaded and checked file of weights.
#[derive(Debug)]
struct TableFile {
    header: Header,
    digest: Arc<str>,
    candidates: Vec<Candidate>,
    /// The row number of each key, unpacked from the file's `fst` because a sentence looks up a hundred keys.
    keys: Table<u32>,
    rows: Vec<i8>,
}

/// Maximum number of columns of a table; the sums of a clause are kept on the stack.
pub(super) const MOST_COLUMNS: usize = 48;
/// The sums of the rows of a clause.
pub(super) type Sums = [i32; MOST_COLUMNS];

impl IntentTable {
    /// Returns the built-in table, loaded and checked on first use.
    pub(crate) fn shared() -> Result<Arc<Self>, Error> {
        static BUILTIN: OnceLock<Result<Arc<IntentTable>, Error>> = OnceLock::new();
        BUILTIN.get_or_init(|| Self::read(include_bytes!("../data/intents.table")).map(Arc::new)).clone()
    }

    /// Loads a table.
    ///
    /// # Errors
    ///
    /// [`Error::Internal`] if the bytes are not a table of this version, or were changed.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Error> {
        let broken = |what: &str| Error::internal(format!("the table of intents: {what}"));
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| broken("its first bytes are others than expected"))?;
        let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(|| broken("it ends within its header"))?;
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let header = rest.get(..length).ok_or_else(|| broken("it ends within its header"))?;
        let body = rest.get(length..).unwrap_or_default();
        let header: Header = serde_json::from_slice(header).map_err(|error| broken(&error.to_string()))?;
        if header.version != VERSION {
            return Err(broken(&format!("version {}; expected {VERSION}", header.version)));
        }
        if digest_of(body) != header.digest {
            return Err(broken("its digest is another than it says"));
        }
        let keys = body.get(..header.keys).ok_or_else(|| broken("it ends within its keys"))?;
        let rows: Vec<i8> = body.get(header.keys..).unwrap_or_default().iter().map(|byte| byte.cast_signed()).collect();
        let packed = fst::Map::new(keys).map_err(|error| broken(&error.to_string()))?;
        let mut keys = Table::with_capacity_and_hasher(packed.len(), std::hash::BuildHasherDefault::default());
        let mut stream = packed.stream();
        while let Some((key, place)) = stream.next() {
            let key = std::str::from_utf8(key).map_err(|error| broken(&error.to_string()))?;
            keys.insert(key.into(), u32::try_from(place).map_err(|error| broken(&error.to_string()))?);
        }
        let width = header.columns.len();
        if width > MOST_COLUMNS || keys.len().checked_mul(width) != Some(rows.len()) {
            return Err(broken("keys and rows do not belong together"));
        }
        let candidates = header
            .pairs
            .iter()
            .map(|pair| {
                Candidate::of(pair, &header.columns)
                    .ok_or_else(|| broken(&format!("{:?} is not a capability", pair.capability)))
            })
            .collect::<Result<_, _>>()?;
        let file = Arc::new(TableFile { digest: header.digest.as_str().into(), header, candidates, keys, rows });
        Ok(Self { file, own: Table::default(), own_digest: None })
    }

    /// The digests of the table's keys and rows, and of the user's own rows.
    pub(crate) fn digests(&self) -> (Arc<str>, Option<Arc<str>>) {
        (Arc::clone(&self.file.digest), self.own_digest.clone())
    }

    /// The digest of the rows it was trained on.
    #[cfg(feature = "training")]
    pub(super) fn trained_on(&self) -> &str {
        &self.file.header.data
    }

    pub(super) fn candidates(&self) -> &[Candidate] {
        &self.file.candidates
    }

    /// Returns the same table without a user's own rows.
    pub(super) fn without_own(&self) -> Self {
        Self { file: Arc::clone(&self.file), own: Table::default(), own_digest: None }
    }

    /// Makes these words possible starts of an order.
    pub(super) fn open_with(&mut self, words: impl Iterator<Item = String>) {
        for word in words {
            let key = format!("{HEAD}{word}");
            if self.row(&key).is_none() {
                self.own.insert(key.into(), vec![0; self.file.header.columns.len()].into());
            }
        }
    }

    /// Records the rows that the table was adapted to.
    pub(super) fn mark(&mut self, rows: &[Row]) {
        let mut digest = Sha256::new();
        for row in rows {
            digest.update(format!("{}\0{:?}\0{}\n", row.text, row.capabilities, row.risk));
        }
        self.own_digest = Some(hex::encode(digest.finalize()).into());
    }

    /// The place of a capability among the candidates.
    pub(super) fn place_of(&self, capability: &Capability) -> Option<usize> {
        let wanted = (capability.operation()?, capability.resource()?);
        self.file.candidates.iter().position(|one| (one.operation, one.resource) == wanted)
    }

    pub(super) fn is_builtin(&self, key: &str) -> bool {
        self.file.keys.contains_key(key)
    }

    /// The changes of the columns needed for a clause to be read as this candidate with this risk; `None` if it
    /// clearly is already.
    pub(super) fn steps(
        &self,
        sums: &Sums,
        words: usize,
        likely: &Likely,
        target: usize,
        risk: RiskLevel,
    ) -> Option<Vec<f64>> {
        let candidate = self.file.candidates.get(target)?;
        let levels = self.risk(sums, words, candidate);
        let wanted =
            [RiskLevel::Medium, RiskLevel::High, RiskLevel::Critical].map(|level| f64::from(u8::from(risk >= level)));
        let is_apart = |(level, wanted): (&f64, f64)| (level - wanted).abs() > 0.4;
        let is_read = likely.of.get(target).is_some_and(|likely| *likely >= SETTLED);
        if is_read && !levels.iter().zip(wanted).any(is_apart) {
            return None;
        }
        let mut steps = vec![0.0; self.file.header.columns.len()];
        let mut add = |column: usize, step: f64| {
            if let Some(known) = steps.get_mut(column) {
                *known += step;
            }
        };
        for (place, (one, likely)) in self.file.candidates.iter().zip(&likely.of).enumerate() {
            let step = f64::from(u8::from(place == target)) - likely;
            add(one.operation_column, step * STEP);
            add(one.resource_column, step * STEP);
        }
        add(NONE, -likely.none * STEP);
        for (place, (level, wanted)) in levels.iter().zip(wanted).enumerate() {
            add(NONE + 1 + place, (wanted - level) * STEP);
        }
        Some(steps)
    }

    /// Moves the row of a key by a share of these steps.
    pub(super) fn shift(&mut self, key: &str, steps: &[f64], share: f64) {
        let width = self.file.header.columns.len();
        let base: Box<[i8]> = self.row(key).map_or_else(|| vec![0; width].into(), Into::into);
        let moved = base.iter().zip(steps).map(|(weight, step)| {
            #[expect(clippy::cast_possible_truncation, reason = "clamped to the range, as just before")]
            let moved = (f64::from(*weight) + step * share).round().clamp(-127.0, 127.0) as i8;
            moved
        });
        self.own.insert(key.into(), moved.collect());
    }

    /// The row of a key.
    pub(super) fn row(&self, key: &str) -> Option<&[i8]> {
        if let Some(row) = self.own.get(key) {
            return Some(row);
        }
        let place = usize::try_from(*self.file.keys.get(key)?).ok()?;
        let width = self.file.header.columns.len();
        self.file.rows.get(place.checked_mul(width)?..)?.get(..width)
    }

    /// The row of a word, or of the word it is a form of.
    pub(super) fn word(&self, word: &str) -> Option<&[i8]> {
        self.row(word).or_else(|| {
            FORMS.iter().find_map(|(ending, base)| {
                let stem = word.strip_suffix(ending).filter(|stem| stem.len() > 1)?;
                let row =
                    |stem: &str| if base.is_empty() { self.row(stem) } else { self.row(&format!("{stem}{base}")) };
                // "Shipped", "shipping": the doubled letter is dropped.
                row(stem).or_else(|| {
                    let mut letters = stem.chars().rev();
                    let (last, before) = (letters.next()?, letters.next()?);
                    (base.is_empty() && last == before)
                        .then(|| self.row(stem.get(..stem.len() - last.len_utf8())?))
                        .flatten()
                })
            })
        })
    }

    /// The resource that a word clearly names by itself.
    pub(crate) fn names(&self, word: &str) -> Option<Resource> {
        let row = self.word(word)?.get(FIRST_RESOURCE..NONE)?;
        let (best, weight) = row.iter().enumerate().max_by_key(|(_, weight)| **weight)?;
        let next = row.iter().enumerate().filter(|(place, _)| *place != best).map(|(_, weight)| *weight).max()?;
        let is_plain = i32::from(*weight) - i32::from(next) >= NAMES;
        let column = FIRST_RESOURCE + best;
        let candidate = self.file.candidates.iter().find(|one| one.resource_column == column);
        candidate.filter(|_| is_plain).map(|one| one.resource)
    }

    /// The base form of a word that may start an order: "deleting" and "deleted" become "delete".
    pub(crate) fn base<'w>(&self, word: &'w str) -> std::borrow::Cow<'w, str> {
        let bases = FORMS.iter().filter_map(|(ending, base)| Some((word.strip_suffix(ending)?, base)));
        let opening = bases.map(|(stem, base)| format!("{stem}{base}")).find(|base| base.len() > 2 && self.opens(base));
        opening
            .filter(|_| !self.opens(word) || word.ends_with("ing") || word.ends_with("ed"))
            .map_or(word.into(), Into::into)
    }

    /// The singular of a plural: "ticket" for "tickets", "city" for "cities".
    pub(super) fn singular<'w>(&'w self, word: &'w str) -> Option<&'w str> {
        let plurals = [("ies", "y"), ("es", ""), ("s", "")];
        plurals.into_iter().find_map(|(ending, base)| {
            let stem = word.strip_suffix(ending).filter(|stem| stem.len() > 1)?;
            self.file.keys.get_key_value(&*format!("{stem}{base}")).map(|(key, _)| &**key)
        })
    }

    /// Adds the weights of a word, relative to the mean of each kind, to a direction.
    pub(super) fn add_direction(&self, word: &str, weight: f64, direction: &mut Vec<f64>) {
        let Some(row) = self.word(word) else { return };
        direction.resize(NONE, 0.0);
        for (kind, share) in [(0..FIRST_RESOURCE, OPERATIONS), (FIRST_RESOURCE..NONE, 1.0)] {
            let own = row.get(kind.clone()).unwrap_or_default();
            let all: i32 = own.iter().map(|&weight| i32::from(weight)).sum();
            let mean = f64::from(all) / f64::from(u32::try_from(own.len().max(1)).unwrap_or(1));
            for (sum, own) in direction.get_mut(kind).unwrap_or_default().iter_mut().zip(own) {
                *sum += weight * share * (f64::from(*own) - mean);
            }
        }
    }

    /// Returns whether a word is a form of another one that may start an order: "deletes", "deleting", "deleted".
    pub(crate) fn is_inflected(&self, word: &str) -> bool {
        let third = |ending: &str, base: &str| {
            word.strip_suffix(ending).is_some_and(|stem| stem.len() > 1 && self.opens(&format!("{stem}{base}")))
        };
        third("ies", "y") || third("es", "") || third("s", "") || self.base(word) != word
    }

    /// The verb of a word in the third person or the present participle: "deletes", "deleting".
    pub(crate) fn base_of_deed(&self, word: &str) -> Option<String> {
        let forms = FORMS.iter().filter(|(ending, _)| ending.ends_with('s') || *ending == "ing");
        let bases = forms.filter_map(|(ending, base)| Some(format!("{}{base}", word.strip_suffix(ending)?)));
        bases
            .flat_map(|base| {
                // "Dropping": the doubled letter is dropped.
                let single = base.get(..base.len().saturating_sub(1)).filter(|_| doubles(&base)).map(str::to_owned);
                [Some(base), single]
            })
            .flatten()
            .find(|base| base.len() > 1 && self.opens(base))
    }

    /// The row of a word that starts a request.
    pub(super) fn head(&self, word: &str) -> Option<&[i8]> {
        self.marked(HEAD, word)
    }

    /// The row of another word that starts a clause.
    pub(super) fn start(&self, word: &str) -> Option<&[i8]> {
        self.marked(START, word)
    }

    fn marked(&self, mark: char, word: &str) -> Option<&[i8]> {
        joined([mark.encode_utf8(&mut [0; 4]), word], |key| self.row(key))
    }

    /// Returns the likelihood of each candidate, and of none, for a clause of `words` words with these sums.
    pub(super) fn likely(&self, sums: &Sums, words: usize) -> Likely {
        let header = &self.file.header;
        let unit = header.scale / root(words);
        let columns = sums.map(|sum| f64::from(sum) * unit);
        let column = |place: usize| columns.get(place).copied().unwrap_or_default();
        let candidates = &self.file.candidates;
        let mut scores = Vec::with_capacity(candidates.len() + 1);
        scores.extend(
            candidates
                .iter()
                .map(|one| (column(one.operation_column) + column(one.resource_column) + one.bias) * header.sharpness),
        );
        scores.push((column(NONE) + header.none) * header.sharpness);
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Apart from the sum, whose order counts, so that the compiler takes several at once.
        for score in &mut scores {
            *score = exp(*score - most);
        }
        let total = scores.iter().fold(0.0, |total, score| total + score);
        for score in &mut scores {
            *score /= total;
        }
        let none = scores.pop().unwrap_or_default();
        Likely { none, of: scores }
    }

    /// The confidence in a reading with this probability: the share of correct readings on texts by authors outside
    /// the training data.
    pub(super) fn sure(&self, likely: f64) -> f64 {
        let place = (likely.clamp(0.0, 1.0) * 10.0).min(9.999);
        let (below, between) = (place.floor(), place.fract());
        let at = (0_u8..10).find(|at| f64::from(*at) >= below).map_or(0, usize::from);
        let share = |at: usize| self.file.header.shares.get(at).copied().unwrap_or_default();
        share(at) + (share(at + 1) - share(at)) * between
    }

    /// The probabilities that the risk is at least MEDIUM, HIGH and CRITICAL, for a clause read as this candidate.
    pub(super) fn risk(&self, sums: &Sums, words: usize, candidate: &Candidate) -> [f64; 3] {
        let unit = self.file.header.risk_scale / root(words);
        let mut levels = [0.0; 3];
        for (place, level) in levels.iter_mut().enumerate() {
            let weight = f64::from(sums.get(NONE + 1 + place).copied().unwrap_or_default()) * unit;
            let own = candidate.risk.get(place).copied().unwrap_or_default();
            let intercept = self.file.header.risk.get(place).copied().unwrap_or_default();
            *level = 1.0 / (1.0 + exp(-(weight + own + intercept)));
        }
        levels
    }
}

impl Vocabulary for IntentTable {
    /// True if the word has a row as the head of a clause.
    fn opens(&self, word: &str) -> bool {
        self.head(word).is_some()
    }

    /// True if the word or its base form has a row.
    fn knows(&self, word: &str) -> bool {
        self.word(word).is_some()
    }
}

/// The probability of each candidate, and of asking for nothing.
#[derive(Debug)]
pub(super) struct Likely {
    pub none: f64,
    /// In the order of the table's candidates.
    pub of: Vec<f64>,
}

impl Candidate {
    fn of(pair: &Pair, columns: &[String]) -> Option<Self> {
        let (resource, operation) = pair.capability.split_once(':')?;
        let column = |name: &str| columns.iter().position(|known| known == name);
        Some(Self {
            operation: operation.parse().ok()?,
            resource: resource.parse().ok()?,
            operation_column: column(operation)?,
            resource_column: column(resource)?,
            bias: pair.bias,
            risk: pair.risk,
        })
    }

    pub(super) const fn columns(&self) -> (usize, usize) {
        (self.operation_column, self.resource_column)
    }
}

/// The first column of a resource, after 7 operations.
const FIRST_RESOURCE: usize = 7;
/// The column for asking for nothing, after 7 operations and 27 resources.
const NONE: usize = 34;
/// Prefix of the key of a word that starts a request.
const HEAD: char = '^';
/// Prefix of the key of any other word that starts a clause.
const START: char = '<';

/// The weight of an operation relative to a resource in the direction of words.
const OPERATIONS: f64 = 0.7;
/// The minimum lead of a resource over every other for a word to name it by itself, in units of a row.
const NAMES: i32 = 12;
/// The probability of a user's label at which adaptation stops, and the step of a word, in units of a row.
const SETTLED: f64 = 0.75;
const STEP: f64 = 40.0;

/// Word endings, and their replacements in the base form.
const FORMS: &[(&str, &str)] = &[
    ("ies", "y"),
    ("ied", "y"),
    ("es", ""),
    ("s", ""),
    ("ed", ""),
    ("ed", "e"),
    ("ing", ""),
    ("ing", "e"),
    ("er", "e"),
    ("er", ""),
];

/// Calls `ask` with joined pieces, built on the stack if they are short.
fn joined<const N: usize, T>(pieces: [&str; N], ask: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    let mut key = smallvec::SmallVec::<[u8; 64]>::new();
    for piece in pieces {
        key.extend_from_slice(piece.as_bytes());
    }
    ask(std::str::from_utf8(&key).ok()?)
}

/// Returns whether a word ends in a doubled letter.
fn doubles(word: &str) -> bool {
    matches!(word.as_bytes(), [.., one, other] if one == other)
}

fn root(words: usize) -> f64 {
    f64::from(u32::try_from(words.max(1)).unwrap_or(u32::MAX)).sqrt()
}

/// `e` to the power of `x`, by arithmetic only, which IEEE 754 makes identical on every machine.
fn exp(x: f64) -> f64 {
    // e^x = (e^(x/1024))^1024, the inner one by its series; the error is below 1e-12 where it matters.
    const THIRD: f64 = 1.0 / 3.0;
    const FIFTH: f64 = 1.0 / 5.0;
    let is_nothing = x < LEAST_EXPONENT;
    let x = x.min(-LEAST_EXPONENT) * (1.0 / 1024.0);
    let mut power = 1.0 + x * (1.0 + x * 0.5 * (1.0 + x * THIRD * (1.0 + x * 0.25 * (1.0 + x * FIFTH))));
    for _ in 0..10 {
        power *= power;
    }
    if is_nothing { 0.0 } else { power }
}

/// Below this exponent a power of `e` is less than a millionth and counts as zero.
const LEAST_EXPONENT: f64 = -14.0;

/// The digest of keys and rows, in hex.
pub(super) fn digest_of(body: &[u8]) -> String {
    hex::encode(Sha256::digest(body))
}

/// Assembles a table from header, keys and rows. The header's digest and key length are set here.
#[cfg(feature = "training")]
pub(super) fn bytes_of(mut header: Header, keys: &[u8], rows: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    let body = [keys, rows].concat();
    header.digest = digest_of(&body);
    header.keys = keys.len();
    let header = serde_json::to_vec(&header)?;
    let length = u32::try_from(header.len()).unwrap_or(u32::MAX).to_le_bytes();
    Ok([MAGIC.as_slice(), &length, &header, &body].concat())
}
