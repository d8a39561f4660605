//! Subcommands without an entry of their own, read by their verb and by the words around it.

use rulekeep_types::{Operation, Resource, RiskLevel};

use crate::format::name;
use crate::format::tables::{Object, verbs};
use crate::lexicon::Lexicon;
use crate::reading::Act;
use crate::sign::Sign;

use super::options::Lexed;

/// The act of a subcommand by its verb: `aws dynamodb delete-item`, `az group list`.
pub(super) fn act(program: &str, resource: Resource, lexed: &Lexed<'_>, lexicon: &Lexicon) -> Option<Act> {
    let plain = lexed.operands.iter().map(|word| word.text.as_str());
    let plain = plain.take_while(|word| is_word(word)).take(MOST_WORDS);
    let parts: Vec<Vec<String>> = plain.map(name::words).collect();
    let words: Vec<&str> = parts.iter().flatten().map(String::as_str).collect();
    let (place, operation) = verb_of(&parts)?;
    let verb = words.get(place).copied().unwrap_or_default();
    let mut others = words.iter().enumerate().filter(|(at, _)| *at != place).map(|(_, word)| *word);
    let object = others.clone().find_map(|word| object(word).map(|found| (word, found)));
    let noun = match object {
        Some((word, _)) => word,
        None => others.next_back().unwrap_or("resource"),
    };
    let mut act = match (object.map(|(_, found)| found), operation) {
        (Some(Object::Secret), Operation::Read) => {
            let lists = matches!(verb, "list" | "describe" | "ls");
            let risk = if lists { RiskLevel::Low } else { RiskLevel::High };
            Act::new(verb, noun, Resource::Credential, Operation::Read, 0.8).at_risk(risk)
        }
        (Some(Object::Secret), Operation::Delete) => {
            Act::new(verb, noun, Resource::Credential, Operation::Delete, 0.8).at_risk(RiskLevel::High)
        }
        (Some(Object::Secret), _) => {
            Act::new(verb, noun, Resource::Credential, Operation::Admin, 0.8).at_risk(RiskLevel::High)
        }
        (Some(Object::Access), Operation::Read) => {
            Act::new(verb, noun, Resource::Permission, Operation::Read, 0.8).at_risk(RiskLevel::Low)
        }
        (Some(Object::Access), _) => {
            Act::new(verb, noun, Resource::Permission, Operation::Admin, 0.8).at_risk(RiskLevel::High)
        }
        (Some(Object::Network), Operation::Write | Operation::Delete | Operation::Admin) => {
            Act::new(verb, noun, Resource::Network, Operation::Admin, 0.8).at_risk(RiskLevel::High)
        }
        (Some(Object::Control), Operation::Write | Operation::Delete | Operation::Execute) => {
            Act::new(verb, noun, Resource::Permission, Operation::Admin, 0.8)
                .at_risk(RiskLevel::High)
                .marked(Sign::Control)
        }
        (_, operation) => {
            let risk = match operation {
                Operation::Read => RiskLevel::Low,
                Operation::Delete | Operation::Admin => RiskLevel::High,
                _ => RiskLevel::Medium,
            };
            let named = lexicon.table().and_then(|table| table.names(noun));
            let is_database = words.iter().any(|word| verbs().objects.of(word) == Some(Object::Database));
            let is_log = words.iter().any(|word| matches!(*word, "log" | "logs"));
            let known = match () {
                () if is_database => Some(Resource::Database),
                () if is_log => Some(Resource::Analytics),
                () => named.filter(|known| matches!(known, Resource::Database | Resource::File)),
            };
            let resource = known.unwrap_or(if operation == Operation::Admin { Resource::Permission } else { resource });
            Act::new(verb, noun, resource, operation, 0.7).at_risk(risk)
        }
    };
    verb.clone_into(&mut act.verb);
    Some(act.told_by(program))
}

/// The place of the verb among the words, and its operation. It begins a part, or ends one with dots, as in
/// `file.remove`. Of two parts that begin with one, the first is a noun: `gh release list`.
fn verb_of(parts: &[Vec<String>]) -> Option<(usize, Operation)> {
    let mut found: Vec<(usize, usize, Operation)> = Vec::new();
    let mut before = 0;
    for (part, words) in parts.iter().enumerate() {
        let first = words.first().and_then(|word| Some((before, part, operation(word)?)));
        let last = || words.last().and_then(|word| Some((before + words.len() - 1, part, operation(word)?)));
        found.extend(first.or_else(last));
        before += words.len();
    }
    match found.as_slice() {
        [(_, 0, _), (place, 1, operation), ..] | [(place, _, operation), ..] => Some((*place, *operation)),
        [] => None,
    }
}

/// The subject of a word of a subcommand, in the singular or the plural.
fn object(word: &str) -> Option<Object> {
    let of = |word: &str| verbs().objects.of(word).filter(|object| *object != Object::Database);
    of(word).or_else(|| of(word.strip_suffix('s')?))
}

/// The operation of a verb of subcommands.
pub(super) fn operation(verb: &str) -> Option<Operation> {
    verbs().deeds.of(verb)
}

/// Returns whether a subcommand begins or ends with a verb of reading, as `list-units`.
pub(super) fn only_reads(sub: &str) -> bool {
    is_word(sub) && verb_of(&[name::words(sub)]).is_some_and(|(_, operation)| operation == Operation::Read)
}

/// Returns whether a word can be part of a subcommand.
fn is_word(word: &str) -> bool {
    word.len() <= LONGEST_WORD
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':' | b'.'))
}

/// Maximum number of words of a subcommand that are read.
const MOST_WORDS: usize = 5;
const LONGEST_WORD: usize = 64;
