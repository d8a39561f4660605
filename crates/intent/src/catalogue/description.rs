//! Reads a tool's description: its first sentence, and later sentences that state an act, parsed as requests.

use crate::format::tools;
use crate::language;
use crate::lexicon::Lexicon;
use crate::reading::Act;
use crate::roles::{Role, Roles};
use crate::sign::Sign;
use rulekeep_types::{Operation, Resource};

/// The acts of a description: those of its first sentence, whether a verb starts it, and further ones.
#[derive(Debug, Default)]
pub(super) struct Described {
    pub acts: Vec<Act>,
    pub is_verb: bool,
    /// The first word is a verb of reading: "Returns", "Finds".
    pub looks: bool,
    pub also: Vec<Act>,
}

/// Reads a description.
pub(super) fn read(description: &str, lexicon: &Lexicon) -> Described {
    let mut described = Described::default();
    for (number, sentence) in sentences(description).take(MOST_SENTENCES).enumerate() {
        let told = Told::of(opened(sentence), lexicon);
        if told.is_advice {
            continue;
        }
        let mut acts = acts(&told.request, lexicon).into_iter();
        if number == 0 {
            described.is_verb = told.opens_with_verb;
            let first = told.request.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty());
            let deed = first.and_then(|first| lexicon.deed(&first.to_lowercase()));
            described.looks = deed.is_some_and(|(operation, _)| operation == Operation::Read);
            described.acts.extend(acts.next());
        }
        // "Delete them first" instructs the caller; "Deletes the sessions" and "Also deletes them" describe the tool.
        let changes = |act: &Act| {
            !matches!(act.operation, Operation::Read | Operation::Unknown)
                && (does_so(act) >= LEAST_SURE || act.signs.has(Sign::Danger))
        };
        if number == 0 || told.is_of_tool {
            described.also.extend(acts.take(MOST_DEEDS).filter(changes));
        }
        described.also.extend(told.suffered);
    }
    described
}

/// The probability of an act's operation, whatever its resource is.
fn does_so(act: &Act) -> f64 {
    let others = act.others.iter().filter(|(_, operation, _)| *operation == act.operation);
    act.sure + others.map(|(.., likely)| likely).sum::<f64>()
}

/// A sentence of a description, as a request.
struct Told {
    /// The sentence with its verbs as orders: "Searches tickets, deleting the old ones" becomes "search tickets, and
    /// delete the old ones".
    request: String,
    opens_with_verb: bool,
    /// The sentence says what the tool does, not what the caller should do.
    is_of_tool: bool,
    /// "Use x to delete it", "See also".
    is_advice: bool,
    /// Acts in the passive: "the document is deleted afterwards".
    suffered: Vec<Act>,
}

impl Told {
    fn of(sentence: &str, lexicon: &Lexicon) -> Self {
        let mut told = Self {
            request: String::with_capacity(sentence.len()),
            opens_with_verb: false,
            is_of_tool: false,
            is_advice: false,
            suffered: Vec::new(),
        };
        // Whether a verb may stand here, and whether the following words are a condition, a question or somebody
        // else's act.
        let (mut is_start, mut is_left_out, mut is_denied) = (true, false, false);
        let mut passive = 0;
        let mut pieces = sentence.split_whitespace().take(MOST_WORDS).peekable();
        while let Some(piece) = pieces.next() {
            let bare = piece.trim_matches(|c: char| !c.is_alphanumeric());
            let lower = bare.to_lowercase();
            let word = lower.as_str();
            let next = pieces.peek().map(|next| next.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase());
            let is_first = told.request.is_empty();
            if is_start && (is_first || !is_left_out) && tools().name_word("advice", word) {
                (told.is_advice, is_left_out) = (told.is_advice || is_first, true);
            }
            is_left_out |= !is_first && tools().name_word("subordinating", word);
            let is_denial = Roles::of(word).has(Role::Negation);
            is_denied |= is_denial || matches!(word, "without" | "no" | "nothing");
            let verb = if is_left_out || is_denied { None } else { verb(word, next.as_deref(), is_start, lexicon) };
            if let Some(verb) = &verb {
                told.opens_with_verb |= is_first;
                told.is_of_tool |= **verb != *word && !word.ends_with("ing");
            }
            if passive > 0
                && !is_left_out
                && !is_denied
                && let Some((verb, operation)) = lexicon.danger(word).filter(|(verb, _)| **verb != *word)
            {
                let deed = Act::new(&verb, "resource", Resource::Unknown, operation, 0.6).told_by(bare);
                told.suffered.push(deed.marked(Sign::Danger));
            }
            passive = if matches!(word, "is" | "are" | "gets" | "get") { REACH } else { passive.saturating_sub(1) };
            if !is_left_out {
                if word.ends_with("ing") && verb.is_some() && !is_first {
                    told.request.push_str("and ");
                }
                match &verb {
                    _ if bare.is_empty() => told.request.push_str("and"),
                    Some(verb) => told.request.push_str(&piece.replace(bare, verb)),
                    // Code in backquotes is an argument, not a command.
                    None => told.request.push_str(&piece.replace('`', "")),
                }
                told.request.push(' ');
            }
            let ends = piece.ends_with([',', ';', ':', ')']) || bare.is_empty();
            let leads = matches!(word, "and" | "or" | "then" | "but" | "also" | "which" | "it" | "by")
                || is_start && (Roles::of(word).is_small() || word.ends_with("ly"));
            (is_left_out, is_denied) = (is_left_out && !ends, is_denied && !ends);
            is_start = ends || leads;
        }
        told
    }
}

/// The base form of a word that can state a tool's act: in the third person, as "deleting", or in base form at a
/// start.
fn verb(word: &str, next: Option<&str>, is_start: bool, lexicon: &Lexicon) -> Option<String> {
    if !is_start {
        return None;
    }
    if lexicon.is_verb(word) {
        return Some(word.to_owned());
    }
    let base = lexicon.table()?.base_of_deed(word)?;
    // "Lists reviews and comments": a noun, unless an object follows.
    let governs = next.is_some_and(|next| {
        !next.is_empty() && !matches!(next, "and" | "or" | "is" | "are" | "can" | "may" | "of" | "in")
    });
    (governs && lexicon.is_verb(&base)).then_some(base)
}

fn acts(sentence: &str, lexicon: &Lexicon) -> Vec<Act> {
    let lower = sentence.to_ascii_lowercase();
    language::read(sentence, &lower, lexicon).reading.into_acts().into_iter().filter(|act| !act.is_unknown()).collect()
}

/// The sentences, each cut to the length that is read.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', '!'])
        .flat_map(|line| line.split(". "))
        .map(|sentence| sentence.trim().trim_end_matches('.'))
        .filter(|sentence| !sentence.is_empty())
        .map(|sentence| {
            let end = (0..=sentence.len().min(LONGEST_SENTENCE)).rev().find(|&end| sentence.is_char_boundary(end));
            sentence.get(..end.unwrap_or(0)).unwrap_or("")
        })
}

/// The sentence without its introductory words.
fn opened(sentence: &str) -> &str {
    let mut rest = sentence.trim_start_matches(|c: char| !c.is_alphanumeric());
    loop {
        let lower = rest.to_ascii_lowercase();
        let opening =
            tools().openings.iter().filter(|opening| opens_with(&lower, opening)).map(|opening| opening.len()).max();
        let Some(length) = opening else { return rest };
        rest = rest.get(length..).unwrap_or("").trim_start();
    }
}

fn opens_with(text: &str, opening: &str) -> bool {
    text.strip_prefix(opening).is_some_and(|rest| rest.starts_with(' '))
}

/// Maximum number of sentences, words of each, and further acts.
const MOST_SENTENCES: usize = 9;
const MOST_WORDS: usize = 64;
const MOST_DEEDS: usize = 8;
/// The minimum confidence in a further act.
const LEAST_SURE: f64 = 0.5;
/// Number of words after "is" among which a participle is searched.
const REACH: usize = 2;
/// Maximum length of a sentence, in bytes.
const LONGEST_SENTENCE: usize = 300;
