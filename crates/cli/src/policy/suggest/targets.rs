//! The targets of a habit: exact ones, folders, domains of addresses.
//!
//! Targets form a tree by folder, or by domain and address. At each node, the share of targets seen on only one day
//! estimates the probability that the next one is new (Good and Turing, with days as samples, so that a burst counts
//! once). If that share, plus the targets too rare to be a habit, is more than [`MISSED`], the node is open and
//! everything below belongs to the habit. Otherwise the targets that were seen are the habit, branch by branch.
// SOURCE: I. J. Good, "The population frequencies of species and the estimation of population parameters", Biometrika 1953.

use std::collections::{BTreeMap, BTreeSet};

use rulekeep::intent::{Kind, Operand, Target, TargetKind};

use super::{LEAST_CALLS, LEAST_DAYS};

/// A target by its path in the tree, root first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// The segments of a path or URL, separated by `/`.
    Path(Vec<String>),
    /// The domain of an address, and the part before the `@`.
    Address(String, String),
    /// A name without a folder, and without a character that would make it a host or a file with an extension.
    Word(String),
    /// Another recipient, account, table or name.
    Name(String),
    /// A target that could not be read.
    Unread,
}

/// A pattern of targets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pattern {
    Exact(String),
    /// Everything with this prefix.
    Below(String),
    /// All addresses of a domain.
    Domain(String),
    /// Any target that is a [`Place::Word`].
    Word,
}

/// The share of new targets that a habit may miss before a node counts as open.
const MISSED: f64 = 0.01;
/// Least number of web sites that make reading any site a habit.
const LEAST_SITES: usize = 5;

impl Place {
    pub(super) fn of(target: &Target) -> Self {
        let value = target.value.to_lowercase();
        let is_plain = |c: char| c.is_alphanumeric() || c == ' ' || c.is_ascii_punctuation() && !matches!(c, '*' | '?');
        if value.len() > MAX_BYTES || !value.chars().all(is_plain) {
            return Self::Unread;
        }
        match (target.kind, value.rsplit_once('@')) {
            (TargetKind::Recipient, Some((name, domain))) if domain.contains('.') => {
                Self::Address(domain.to_owned(), name.to_owned())
            }
            (TargetKind::Path | TargetKind::Host, None) if value.contains('/') => {
                Self::Path(value.split('/').map(str::to_owned).collect())
            }
            (TargetKind::Path, None) if !value.contains(NO_WORD) => Self::Word(value),
            _ => Self::Name(value),
        }
    }

    /// The place of everything below an operand, if it is a tree.
    pub(super) fn below(operand: &Operand) -> Option<Self> {
        let folder = operand.value.trim_end_matches('/').to_lowercase();
        (operand.tree && operand.kind == Kind::Path)
            .then(|| Self::Path(folder.split('/').chain(["*"]).map(str::to_owned).collect()))
    }

    fn branches(&self) -> Vec<&str> {
        match self {
            Self::Path(segments) => std::iter::once("path").chain(segments.iter().map(String::as_str)).collect(),
            Self::Address(domain, name) => vec!["address", domain, name],
            Self::Word(word) => vec!["word", word],
            Self::Name(name) => vec!["name", name],
            Self::Unread => vec!["unread"],
        }
    }

    fn exact(&self) -> Option<Pattern> {
        Some(Pattern::Exact(match self {
            Self::Path(segments) => segments.join("/"),
            Self::Address(domain, name) => format!("{name}@{domain}"),
            Self::Word(text) | Self::Name(text) => text.clone(),
            Self::Unread => return None,
        }))
    }
}

impl Pattern {
    pub(super) fn holds(&self, place: &Place) -> bool {
        match (self, place) {
            (Self::Below(start), Place::Path(segments)) => segments.join("/").starts_with(start.as_str()),
            (Self::Domain(wanted), Place::Address(domain, _)) => wanted == domain,
            (Self::Word, Place::Word(_)) => true,
            (Self::Exact(_), place) => place.exact().as_ref() == Some(self),
            _ => false,
        }
    }

    /// The approximate number of targets that the pattern stands for; 1 for an exact one.
    pub(super) const fn width(&self) -> usize {
        match self {
            Self::Exact(_) => 1,
            Self::Below(_) | Self::Domain(_) => 10,
            Self::Word => 30,
        }
    }

    /// Returns the pattern as a glob; `None` for words, which only a regular expression can match.
    pub(super) fn glob(&self) -> Option<String> {
        match self {
            Self::Exact(text) => Some(text.clone()),
            Self::Below(start) => Some(format!("{start}*")),
            Self::Domain(domain) => Some(format!("*@{domain}")),
            Self::Word => None,
        }
    }

    /// Returns the pattern as a regular expression over a whole target.
    pub(super) fn regex(&self) -> String {
        self.glob().map_or_else(|| format!("[^{NO_WORD_CLASS}]*"), |glob| escaped(&glob).replace("\\*", ".*"))
    }
}

/// Returns the patterns of a habit from its targets and their days, as wide as `may_widen` permits.
pub(super) fn patterns(
    seen: &[(&Place, i64)],
    only_reads: bool,
    may_widen: &dyn Fn(&Pattern) -> bool,
) -> BTreeSet<Pattern> {
    let mut found = BTreeSet::new();
    let all: Vec<(&Place, Vec<&str>, i64)> = seen.iter().map(|(place, day)| (*place, place.branches(), *day)).collect();
    let all: Vec<&(&Place, Vec<&str>, i64)> = all.iter().collect();
    grow(&all, 0, only_reads, may_widen, &mut found);
    found
}

type Seen<'a> = &'a (&'a Place, Vec<&'a str>, i64);

/// Adds the patterns of a node of the tree. Returns the number of its targets that they match.
fn grow(
    all: &[Seen<'_>],
    depth: usize,
    only_reads: bool,
    may_widen: &dyn Fn(&Pattern) -> bool,
    found: &mut BTreeSet<Pattern>,
) -> usize {
    if !is_habit(all) {
        return 0;
    }
    let mut branches: BTreeMap<Option<&str>, Vec<Seen<'_>>> = BTreeMap::new();
    for seen in all {
        branches.entry(seen.1.get(depth).copied()).or_default().push(seen);
    }
    let (mut below, mut held) = (BTreeSet::new(), 0);
    for (branch, list) in &branches {
        held += if branch.is_some() {
            grow(list, depth + 1, only_reads, may_widen, &mut below)
        } else if is_habit(list) {
            below.extend(list.first().and_then(|(place, ..)| place.exact()));
            list.len()
        } else {
            0
        };
    }
    // New targets below the node, plus those that are too rare to be a habit by themselves.
    let missed = unseen(branches.values()) + share(all.len() - held, all.len());
    let wide = wide(all, depth, only_reads, branches.len()).filter(|pattern| missed > MISSED && may_widen(pattern));
    let Some(pattern) = wide else {
        found.extend(below);
        return held;
    };
    found.insert(pattern);
    // A target equal to the node itself is not below it.
    let itself = branches.get(&None).filter(|list| is_habit(list));
    found.extend(itself.and_then(|list| list.first()).and_then(|(place, ..)| place.exact()));
    all.len() - branches.get(&None).filter(|list| !is_habit(list)).map_or(0, Vec::len)
}

fn is_habit(all: &[Seen<'_>]) -> bool {
    let days: BTreeSet<i64> = all.iter().map(|(.., day)| *day).collect();
    all.len() >= LEAST_CALLS && days.len() >= LEAST_DAYS
}

/// The probability that the next target belongs to a branch not seen before.
fn unseen<'a>(branches: impl Iterator<Item = &'a Vec<Seen<'a>>>) -> f64 {
    let days = branches.map(|list| list.iter().map(|(.., day)| day).collect::<BTreeSet<_>>().len());
    let (once, all) = days.fold((0, 0), |(once, all), days| (once + usize::from(days == 1), all + days));
    share(once, all)
}

fn share(part: usize, whole: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let share = part as f64 / whole as f64;
    share
}

/// The pattern of everything below a node of the tree; `None` if that would be everything, or everybody.
fn wide(all: &[Seen<'_>], depth: usize, only_reads: bool, branches: usize) -> Option<Pattern> {
    match (all.first()?.0, depth) {
        (Place::Word(_), 1) => Some(Pattern::Word),
        (Place::Address(domain, _), 2) => Some(Pattern::Domain(domain.clone())),
        (Place::Path(segments), 2..) => {
            let start = segments.get(..depth - 1)?;
            // `/`, `./`, `~/` and the root of a scheme are not anybody's folders.
            let last = start.last()?;
            let is_site = start.first().is_some_and(|first| first.ends_with(':')) && start.len() <= 2;
            let is_folder = !matches!(last.as_str(), "" | "." | ".." | "~") && !last.ends_with(':');
            let is_web = is_site && start.len() == 2 && only_reads && branches >= LEAST_SITES;
            (is_web || is_folder && !is_site).then(|| Pattern::Below(format!("{}/", start.join("/"))))
        }
        _ => None,
    }
}

fn escaped(text: &str) -> String {
    let special = |c: char| "\\.+*?()|[]{}^$#&-~".contains(c);
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain(Some(c))).collect()
}

const MAX_BYTES: usize = 200;
const NO_WORD: [char; 6] = ['/', '@', ':', '~', '.', '\\'];
const NO_WORD_CLASS: &str = "/@:~.\\\\";

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Place {
        Place::Path(text.split('/').map(str::to_owned).collect())
    }

    /// Returns the patterns of targets seen one per day, in this order, as globs; `*` stands for words.
    fn found(places: &[Place], only_reads: bool, refused: &[Place]) -> Vec<String> {
        let seen: Vec<(&Place, i64)> = places.iter().zip(0..).collect();
        let may_widen = |pattern: &Pattern| !refused.iter().any(|place| pattern.holds(place));
        let found = patterns(&seen, only_reads, &may_widen);
        found.iter().map(|pattern| pattern.glob().unwrap_or_else(|| "*".to_owned())).collect()
    }

    #[test]
    fn new_names_become_a_folder_and_repeated_ones_stay_exact() {
        let address = |name: &str, domain: &str| Place::Address(domain.to_owned(), name.to_owned());
        let files = |folder: &str| (1..5).map(|number| path(&format!("{folder}/{number}.rs"))).collect::<Vec<_>>();
        let three = |place: Place| vec![place.clone(), place.clone(), place];
        let mail = vec![address("a", "x.example"), address("b", "x.example"), address("c", "x.example")];
        let sites = |count: u32| {
            (0..count).flat_map(|number| three(path(&format!("https://s{number}.example/a")))).collect::<Vec<_>>()
        };
        for (places, only_reads, refused, expected) in [
            (files("/srv/app/src"), false, vec![], vec!["/srv/app/src/*"]),
            (files("/srv/app/src"), false, vec![path("/srv/app/src/key")], vec![]),
            (three(path("/srv/app/src/a.rs")), false, vec![], vec!["/srv/app/src/a.rs"]),
            (vec![path("/srv/app/src/a.rs"), path("/srv/app/src/a.rs")], false, vec![], vec![]),
            ([files("src"), files("docs")].concat(), false, vec![], vec!["docs/*", "src/*"]),
            (mail.clone(), false, vec![], vec!["*@x.example"]),
            (mail, false, vec![address("d", "x.example")], vec![]),
            ((0..5).map(|number| path(&format!("/{number}"))).collect(), false, vec![], vec![]),
            ((0..5).map(|number| path(&format!("../{number}"))).collect(), true, vec![], vec![]),
            ((0..5).map(|number| Place::Word(number.to_string())).collect(), false, vec![], vec!["*"]),
            ((0..5).map(|number| Place::Name(number.to_string())).collect(), false, vec![], vec![]),
            (vec![Place::Unread, Place::Unread, Place::Unread], true, vec![], vec![]),
            (sites(2), true, vec![], vec!["https://s0.example/a", "https://s1.example/a"]),
            (
                (0..9).map(|number| path(&format!("https://s{number}.example/a"))).collect(),
                true,
                vec![],
                vec!["https://*"],
            ),
            ((0..9).map(|number| path(&format!("https://s{number}.example/a"))).collect(), false, vec![], vec![]),
        ] {
            assert_eq!(found(&places, only_reads, &refused), expected, "{places:?}");
        }
    }

    #[test]
    fn a_pattern_matches_as_its_glob_and_regular_expression_do() {
        let word = Pattern::Word;
        assert!(word.holds(&Place::Word("general".to_owned())) && !word.holds(&Place::Name("a.b".to_owned())));
        let below = Pattern::Below("/srv/a.b/".to_owned());
        assert!(below.holds(&path("/srv/a.b/c/d")) && !below.holds(&path("/srv/a.bc/d")));
        assert_eq!((below.glob().as_deref(), below.regex().as_str()), (Some("/srv/a.b/*"), "/srv/a\\.b/.*"));
        assert_eq!(Pattern::Domain("x.example".to_owned()).regex(), ".*@x\\.example");
    }
}
