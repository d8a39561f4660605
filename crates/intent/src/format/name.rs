//! Names of tools, functions and actions in any spelling, read with the word table.

use std::borrow::Cow;

use crate::language;
use crate::learned::{Clause, IntentTable, Vocabulary as _, clauses, weigh};
use crate::lexicon::Lexicon;
use crate::reading::{Act, Facts};
use crate::risk;
use crate::roles::Roles;
use crate::sign::Sign;
use rulekeep_types::{Action, Operation, Resource, RiskLevel};

use super::tools::{own_part, tools};

/// The words of a name in lower case: `mcp__mail__sendEmail` becomes mail, send, email; `HTTPGet2` becomes http, get.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut characters = name.chars().take(LONGEST_NAME);
    let mut before = ' ';
    while let Some(c) = characters.next() {
        let mut after = characters.clone();
        let next = after.next();
        // "IDs" is one word, "HTTPGet" two.
        let is_plural = next == Some('s') && after.next().is_none_or(|c| !c.is_lowercase());
        let is_last_capital =
            c.is_uppercase() && before.is_uppercase() && next.is_some_and(char::is_lowercase) && !is_plural;
        let starts = c.is_uppercase() && (before.is_lowercase() || before.is_ascii_digit()) || is_last_capital;
        if (!c.is_alphanumeric() || starts) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    if !word.is_empty() {
        words.push(word);
    }
    if words.len() > 1 && words.first().is_some_and(|first| first == "mcp") {
        words.remove(0);
    }
    for word in &mut words {
        // "get2" is another "get", but "s3" and "v2" are words of their own.
        let stem = word.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        if stem > 2 {
            word.truncate(stem);
        }
    }
    words
}

/// The acts of a tool by the words of its name, the main one first.
pub(super) fn of_tool(name: &str, lexicon: &Lexicon) -> Vec<Act> {
    let own = own_part(name).unwrap_or(name);
    let own_words = words(own);
    let mut found = acts(&own_words, lexicon);
    let begins_unknown =
        own_words.first().is_some_and(|first| lexicon.table().is_some_and(|table| !table.knows(first)));
    if begins_unknown
        && found.first().is_some_and(|act| act.sure < LEAST_SURE)
        && !own_words.iter().any(|word| lexicon.is_verb(word))
    {
        // "frobnicate_widget": no word says what is done.
        found.clear();
    }
    if own.len() == name.len()
        || found
            .first()
            .is_some_and(|act| act.sure >= PLAIN || changes(act.operation) && act.resource != Resource::Unknown)
    {
        return found;
    }
    // "gmail.send", "users.delete": the prefix names the object, unless the tool's own part does.
    let whole = acts(&words(name), lexicon);
    let surer = |one: &[Act], other: &[Act]| {
        one.first().map_or(0.0, |act| act.sure) > other.first().map_or(0.0, |act| act.sure)
    };
    if found.is_empty() || surer(&whole, &found) { whole } else { found }
}

/// The acts that a name's words state: a name is read like a request.
pub(super) fn acts(words: &[String], lexicon: &Lexicon) -> Vec<Act> {
    let Some(table) = lexicon.table() else { return Vec::new() };
    let split = words.iter().map(|word| joined(word, lexicon)).collect::<Vec<_>>().join(" ");
    let tokens = language::tokenise(&split, &split, lexicon);
    let mut acts = Vec::new();
    for clause in clauses(&tokens, table).iter().take(MOST_CLAUSES) {
        let first = of_clause(clause, table, lexicon);
        let deed = hidden_deed(clause, first.as_ref(), table, lexicon);
        // "elasticsearch_delete_by_query" deletes; "check_backups_and_purge" does both.
        let first = first.filter(|act| deed.is_none() || changes(act.operation));
        for mut act in deed.into_iter().chain(first) {
            language::reach(&mut act, &tokens, clause);
            acts.push(act);
        }
    }
    acts
}

/// The reading of a clause's words; `None` if they mean nothing.
fn of_clause(clause: &Clause<'_>, table: &IntentTable, lexicon: &Lexicon) -> Option<Act> {
    let tells = |word: &str| table.knows(word) && !Roles::of(word).is_small() && word.len() > 1;
    if !clause.words.iter().any(|word| tells(word)) {
        return None;
    }
    let heard = weigh(clause, table).heard(table);
    let word = |place: Option<usize>| place.and_then(|place| clause.words.get(place)).copied();
    let verb =
        word(clause.head.or(heard.told_operation)).map_or(heard.operation.as_str().into(), |word| table.base(word));
    // Where the verb tells the resource, as in "refund_order", the name's own noun still says what is acted on.
    let is_small_noun = |word: &str| tools().name_word("small_nouns", word);
    let is_object = |word: &str| tells(word) && lexicon.is_noun(word) || is_small_noun(word);
    let object = || {
        let behind = clause.head?.saturating_add(1)..clause.words.len();
        behind.rev().find(|place| clause.words.get(*place).is_some_and(|word| is_object(word)))
    };
    let told = heard.told_resource.filter(|place| Some(*place) != clause.head).or_else(object);
    let noun = word(told).unwrap_or(heard.resource.as_str());
    let mut act = Act::new(&verb, noun, heard.resource, heard.operation, heard.sure);
    act.learned = Some(heard.risk.of_name());
    act.others.clone_from(&heard.others);
    let names = |(place, word): (usize, &&str)| Some(place) != clause.head && (tells(word) || is_small_noun(word));
    if clause.head.is_some()
        && (act.sure < PLAIN || tools().name_word("searches", &act.verb))
        && !clause.words.iter().enumerate().any(names)
    {
        // "delete" alone: the operation is known, the object is not.
        (act.resource, act.noun) = (Resource::Unknown, "resource".to_owned());
        act.signs.add(Sign::Unclear);
    }
    if heard.known < LEAST_KNOWN {
        act.signs.add(Sign::Unclear);
    }
    if let Some((verb, _)) =
        clause.words.first().and_then(|word| lexicon.danger(word)).filter(|_| act.operation != Operation::Read)
    {
        act.verb = verb.into_owned();
        act.signs.add(Sign::Danger);
    }
    Some(act)
}

/// An act of the danger floor after the first word, if the clause is not read as it: `check_and_purge_backups`.
fn hidden_deed(clause: &Clause<'_>, first: Option<&Act>, table: &IntentTable, lexicon: &Lexicon) -> Option<Act> {
    let (place, (verb, operation)) = clause.words.iter().enumerate().skip(1).find_map(|(place, word)| {
        let found = lexicon.danger(word).filter(|(_, operation)| changes(*operation))?;
        Some((place, found))
    })?;
    if first.is_some_and(|act| act.operation == operation || act.operation == Operation::Admin) {
        return None;
    }
    // "get_delete_policy" gets a policy.
    let reads =
        clause.words.first().and_then(|word| lexicon.deed(word)).is_some_and(|(found, _)| found == Operation::Read);
    if place == 1 && reads && clause.words.len() > 2 {
        return None;
    }
    let rest = clause.from(place);
    let mut act = of_clause(&rest, table, lexicon)
        .filter(|act| changes(act.operation))
        .unwrap_or_else(|| Act::new(&verb, "resource", Resource::Unknown, operation, 0.5));
    if let Some(first) = first.filter(|_| rest.words.len() == 1 || act.resource == Resource::Unknown) {
        (act.resource, act.noun) = (first.resource, first.noun.clone());
    }
    Some(act.marked(Sign::Danger))
}

/// A word with its verb separated from the noun attached to it: "sendemail".
fn joined<'w>(word: &'w str, lexicon: &Lexicon) -> Cow<'w, str> {
    if !(7..=32).contains(&word.len()) || lexicon.knows(word) {
        return word.into();
    }
    let parted = (3..word.len() - 2).find_map(|place| {
        let (verb, noun) = word.split_at_checked(place)?;
        (lexicon.is_verb(verb) && lexicon.knows(noun)).then(|| format!("{verb} {noun}"))
    });
    parted.map_or(word.into(), Into::into)
}

/// The first act that words state, with `resource` as the default.
pub(super) fn act(words: &[String], resource: Option<Resource>, lexicon: &Lexicon) -> Option<Act> {
    let mut act = acts(words, lexicon).into_iter().next()?;
    let names = |word: &String| lexicon.is_noun(word) && **word != *act.verb;
    if let Some(resource) = resource.filter(|_| !words.iter().any(names)) {
        act.resource = resource;
        resource.as_str().clone_into(&mut act.noun);
        act.signs = act.signs.without(Sign::Unclear);
    }
    Some(act)
}

/// The act of a verb on the object of another act, if its own words name none.
pub(super) fn verb_act(words: &[String], on: &Act, lexicon: &Lexicon) -> Option<Act> {
    lexicon.is_verb(words.first()?).then_some(())?;
    act(words, Some(on.resource).filter(|resource| *resource != Resource::Unknown), lexicon)
}

const fn changes(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::Delete | Operation::Execute | Operation::Admin | Operation::Transfer | Operation::Send
    )
}

/// The risk floor that an action's name implies: the risk of the name's own reading. An unclear name implies nothing.
pub(super) fn floor(action: &Action, lexicon: &Lexicon) -> RiskLevel {
    let words: Vec<String> = action.words().map(str::to_owned).collect();
    let levels = acts(&words, lexicon).into_iter().map(|mut act| {
        if act.operation == Operation::Transfer {
            // Without an amount the rubric says HIGH; a caller's small purchase may be less.
            act.signs.add(Sign::Everyday);
            let mut facts = Facts::default();
            facts.note_amount(1.0, None);
            return risk::assess(&act, &facts).level;
        }
        if act.operation == Operation::Send && act.resource == Resource::Message {
            act.signs.add(Sign::Team);
        }
        if !act.signs.has(Sign::Danger) && (!changes(act.operation) || act.sure < PLAIN) {
            return RiskLevel::Low;
        }
        risk::assess(&act, &Facts::default()).level
    });
    levels.max().unwrap_or(RiskLevel::Low)
}

/// The minimum confidence in a clear name.
const PLAIN: f64 = 0.6;
/// The minimum share of known words of a name that is read with certainty.
const LEAST_KNOWN: f64 = 0.5;
/// The minimum confidence in a name that begins with an unknown word and has no known verb.
const LEAST_SURE: f64 = 0.1;
/// Maximum number of acts read from one name.
const MOST_CLAUSES: usize = 8;
/// Maximum length of a name whose words are read, in characters.
const LONGEST_NAME: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_into_its_words_in_every_spelling() {
        for (name, expected) in [
            ("send_email", "send email"),
            ("sendEmail", "send email"),
            ("send-email", "send email"),
            ("mail.send", "mail send"),
            ("mcp__gmail__send_email", "gmail send email"),
            ("HTTPGet2", "http get"),
            ("getS3Object", "get s3 object"),
            ("listUserIDs", "list user ids"),
        ] {
            assert_eq!(words(name).join(" "), expected, "{name}");
        }
    }

    #[test]
    fn an_actions_floor_follows_its_verb_and_scope() {
        let lexicon = Lexicon::shared().unwrap();
        for (action, least) in [
            ("get_weather", RiskLevel::Low),
            ("frobnicate_widget", RiskLevel::Low),
            ("delete_all_users", RiskLevel::High),
            ("delete_file", RiskLevel::Medium),
            ("transfer_funds", RiskLevel::Medium),
            ("delete_widgets", RiskLevel::Medium),
            ("grant_admin_access", RiskLevel::High),
            ("drop_production_database", RiskLevel::High),
        ] {
            let floor = floor(&action.parse().unwrap(), &lexicon);
            assert!(floor >= least, "{action}: {floor}");
        }
        assert_eq!(floor(&"get_weather".parse().unwrap(), &lexicon), RiskLevel::Low);
    }
}
