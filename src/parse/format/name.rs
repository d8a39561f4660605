//! Names of tools, functions and actions in any spelling, read by the lexicon.

use crate::model::{Action, Operation, Resource, RiskLevel};
use crate::parse::language::{self, Token};
use crate::parse::lexicon::{Form, Lexicon, Verb};
use crate::parse::reading::{Act, Facts};
use crate::parse::risk;
use crate::parse::sign::Sign;

use super::tools::{own_part, tools};

/// The words of a name in lower case: `mcp__mail__sendEmail` is mail, send, email; `HTTPGet2` is http, get.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut characters = name.chars().take(LONGEST_NAME);
    let mut before = ' ';
    while let Some(c) = characters.next() {
        let mut after = characters.clone();
        let next = after.next();
        // "IDs" is one word, "HTTPGet" are two.
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
        // "get2" is another "get"; "s3" and "v2" are words of their own.
        let stem = word.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        if stem > 2 {
            word.truncate(stem);
        }
    }
    words
}

/// The acts of a tool by the words of its name, the one that it is for first.
pub(super) fn of_tool(name: &str, lexicon: &Lexicon) -> Vec<Act> {
    let own = own_part(name).unwrap_or(name);
    let own_words = spelled_out(&words(own), lexicon);
    let around = || spelled_out(&words(name), lexicon);
    let mut first = act(&own_words, None, lexicon);
    if first.as_ref().is_none_or(|act| act.sure < 0.8) && own.len() < name.len() {
        // "gmail.send", "users.delete": the part before says what is meant.
        let whole = act(&around(), None, lexicon);
        first = match (first, whole) {
            (Some(own), Some(whole)) if changes(own.operation) && !changes(whole.operation) => Some(own),
            (own, whole) => whole.or(own),
        };
    }
    let first = match first.or_else(|| of_verb_alone(&own_words, lexicon)) {
        Some(first) => first,
        None if own.len() < name.len() => match of_verb_alone(&around(), lexicon) {
            Some(first) => first,
            None => return Vec::new(),
        },
        None => return Vec::new(),
    };
    let mut others = riskier(&own_words, &first, lexicon);
    let removes = lexicon.word(&first.verb).and_then(|entry| entry.verb);
    if first.operation == Operation::Admin
        && removes.is_some_and(|(id, _)| lexicon.verb(id).operation == Operation::Delete)
        && lexicon
            .word(&first.noun)
            .and_then(|entry| entry.noun)
            .is_some_and(|id| lexicon.noun(id).resource == Resource::Customer)
    {
        // Who is removed loses the record as well as the access.
        let record =
            Act { resource: Resource::Customer, operation: Operation::Delete, is_entailed: true, ..first.clone() };
        others.push(record);
    }
    if first.operation == Operation::Write && tools().name_word("extracts", &first.verb) {
        // What is taken out is read, all of it.
        let read = Act { operation: Operation::Read, is_entailed: true, ..first.clone() };
        others.push(read.marked(Sign::Bulk));
    }
    others.insert(0, first);
    others
}

/// A verb whose noun says nothing: what is done is known, to what is not.
fn of_verb_alone(words: &[String], lexicon: &Lexicon) -> Option<Act> {
    let verb = words.iter().find_map(|word| lexicon.word(word)?.verb.filter(|&(_, form)| form == Form::Base))?;
    let verb = lexicon.verb(verb.0);
    let noun = words.last().filter(|word| **word != *verb.lemma).map_or("resource", String::as_str);
    let mut act = Act::new(&verb.lemma, noun, Resource::Unknown, verb.operation, 0.5);
    act.signs.add(Sign::Unclear);
    Some(act)
}

/// The words with abbreviations written out, and a verb cut from a noun that is written to it.
fn spelled_out(words: &[String], lexicon: &Lexicon) -> Vec<String> {
    let mut spelled = Vec::with_capacity(words.len() + 2);
    for word in words {
        if let Some(other) = tools().synonyms.get(word.as_str()) {
            spelled.extend(other.split(' ').map(str::to_owned));
        } else if let Some((verb, noun)) = joined(word, lexicon) {
            spelled.extend([verb.to_owned(), noun.to_owned()]);
        } else {
            spelled.push(word.clone());
        }
    }
    spelled
}

/// "sendemail": a verb with its noun, without a mark between them.
fn joined<'w>(word: &'w str, lexicon: &Lexicon) -> Option<(&'w str, &'w str)> {
    if !(7..=32).contains(&word.len()) || lexicon.word(word).is_some() {
        return None;
    }
    (3..word.len() - 2).find_map(|place| {
        let (verb, noun) = word.split_at_checked(place)?;
        let is_verb = lexicon.word(verb)?.verb.is_some_and(|(_, form)| form == Form::Base);
        let is_noun = lexicon.word(noun)?.noun.is_some();
        (is_verb && is_noun).then_some((verb, noun))
    })
}

/// The act that a name says, if its words tell one. `resource` stands in where no noun tells it.
pub(super) fn act(words: &[String], resource: Option<Resource>, lexicon: &Lexicon) -> Option<Act> {
    let line = words.join(" ");
    let tokens = language::tokenise(&line, &line, lexicon);
    let verb_place = verb_place(&tokens, lexicon);
    let mut noun: Option<(&str, Resource, u8)> = None;
    let mut act_signs = crate::parse::sign::Signs::default();
    let (mut is_behind_link, mut has_object) = (false, false);
    for (place, token) in tokens.iter().enumerate() {
        if let Some(sign) = token.cue {
            act_signs.add(sign);
        }
        // "get_user_by_email" is about the user.
        is_behind_link |= place > 0 && tools().name_word("links", token.word);
        if verb_place == Some(place) || is_behind_link && noun.is_some_and(|(_, _, strength)| strength > 1) {
            continue;
        }
        if let Some(found) = token.entry.noun.map(|id| lexicon.noun(id)) {
            // The last noun is the head, unless an earlier one names its resource more surely;
            // what stands before the verb is where it is done: "http get weather".
            let is_object = verb_place.is_some_and(|verb| place > verb);
            let is_first_object = is_object && !has_object && found.strength > 1;
            if is_first_object || noun.is_none_or(|(_, _, strength)| found.strength >= strength) {
                noun = Some((&found.lemma, found.resource, found.strength));
            }
            has_object |= is_object;
        }
    }
    let (name, named) = match (noun, resource) {
        (Some((name, named, strength)), _) if strength > 2 => (name, named),
        (Some((name, ..)), Some(given)) => (name, given),
        (Some((name, named, _)), None) => (name, named),
        (None, Some(given)) => (given.as_str(), given),
        (None, None) => ("", Resource::Unknown),
    };
    let verb = verb_place.and_then(|place| tokens.get(place)?.entry.verb).map(|(id, _)| lexicon.verb(id));
    let Some(verb) = verb else {
        if words.last().is_some_and(|last| tools().name_word("deeds", last)) {
            let last = words.last().map_or("money", String::as_str);
            return Some(Act::new("make", last, Resource::Payment, Operation::Transfer, 0.6));
        }
        // "weather", "calendar_events": a noun alone looks.
        let (name, named, _) = noun?;
        let mut act = Act::new("get", &name.replace([' ', '-'], "_"), named, Operation::Read, 0.45);
        act.signs = act_signs;
        return Some(act);
    };
    let (mut target, mut operation) = (verb.always.unwrap_or(named), verb.operation);
    if let Some((resource, gives, sign)) = ruled(verb, target, name, words, lexicon) {
        (target, operation) = (resource, gives);
        if let Some(sign) = sign {
            act_signs.add(sign);
        }
    }
    let mut sure = 0.9;
    if target == Resource::Unknown {
        target = verb.resource?;
        sure = 0.6;
    }
    let name = if name.is_empty() { target.as_str() } else { name };
    let mut act = Act::new(&verb.lemma, &name.replace([' ', '-'], "_"), target, operation, sure);
    act.signs = act_signs;
    Some(act)
}

/// Which word is the verb: `email_send` and `order_list` end with it, `schedule_meeting` opens with it.
fn verb_place(tokens: &[Token<'_>], lexicon: &Lexicon) -> Option<usize> {
    let is_verb = |token: &Token<'_>| token.entry.verb.is_some_and(|(_, form)| form == Form::Base);
    let is_noun = |token: &Token<'_>| token.entry.noun.is_some_and(|id| lexicon.noun(id).strength > 1);
    let end = tokens
        .iter()
        .enumerate()
        .position(|(place, token)| place > 0 && tools().name_word("links", token.word))
        .unwrap_or(tokens.len());
    let before_link = tokens.get(..end)?;
    let first = before_link.iter().position(is_verb).or_else(|| tokens.iter().position(is_verb))?;
    if !tokens.get(first).is_some_and(is_noun) {
        return Some(first);
    }
    // The word could be the noun: a later one that can only be a verb is the verb then.
    let sure = before_link.iter().enumerate().skip(first + 1);
    if let Some((place, _)) = sure.clone().find(|(_, token)| is_verb(token) && !is_noun(token)) {
        return Some(place);
    }
    if tokens.len() > 1 && before_link.last().is_some_and(|last| tools().name_word("tails", last.word)) {
        return None;
    }
    Some(first)
}

/// What the rules for names, and then the lexicon's, make of a verb and its noun.
fn ruled(
    verb: &Verb,
    target: Resource,
    noun: &str,
    words: &[String],
    lexicon: &Lexicon,
) -> Option<(Resource, Operation, Option<Sign>)> {
    let of_name = tools().rules.iter().rev().find(|rule| {
        rule.verbs.iter().any(|known| **known == *verb.lemma)
            && (rule.nouns.is_empty() || rule.nouns.iter().any(|known| **known == *noun))
            && (rule.with.is_empty() || words.iter().any(|word| rule.with.iter().any(|known| **known == **word)))
    });
    of_name
        .map(|rule| (rule.resource, rule.gives, rule.sign))
        .or_else(|| lexicon.rule(verb, target, noun, "").map(|rule| (rule.resource, rule.gives, rule.sign)))
}

/// The acts of a name's later verbs that change more than its first: `check_and_purge_backups`.
pub(super) fn riskier(words: &[String], first: &Act, lexicon: &Lexicon) -> Vec<Act> {
    let places = words.iter().enumerate().skip(1).filter_map(|(place, word)| {
        let (id, form) = lexicon.word(word)?.verb?;
        let verb = lexicon.verb(id);
        let is_other = form == Form::Base && changes(verb.operation) && verb.operation != first.operation;
        is_other.then_some(place)
    });
    places
        .take(MOST_VERBS)
        .filter_map(|place| {
            // A word that the first act takes for its noun is none: "get_order".
            let is_noun = lexicon.word(words.get(place)?).is_some_and(|entry| entry.noun.is_some());
            let joined =
                place > 0 && words.get(place - 1).is_some_and(|word| matches!(word.as_str(), "and" | "or" | "then"));
            // "get_delete_policy" gets a policy.
            let describes = place == 1 && first.operation == Operation::Read && words.len() > 2;
            if (is_noun || describes) && !joined {
                return None;
            }
            let mut rest = words.get(place..)?.to_vec();
            if rest.len() == 1 {
                rest.push(first.noun.clone());
            }
            let mut act = verb_act(&rest, first, lexicon)?;
            let is_paid = matches!(act.resource, Resource::Payment | Resource::Order | Resource::Booking);
            if act.operation == Operation::Transfer && !is_paid {
                act.resource = Resource::Payment;
            }
            Some(act)
        })
        .collect()
}

/// The act of a verb on what another act names, where its own words name nothing.
pub(super) fn verb_act(words: &[String], on: &Act, lexicon: &Lexicon) -> Option<Act> {
    let (id, _) = lexicon.word(words.first()?)?.verb?;
    let verb = lexicon.verb(id);
    act(words, Some(on.resource).filter(|resource| *resource != Resource::Unknown), lexicon)
        .filter(|act| act.operation == verb.operation || verb.operation != Operation::Read)
        .or_else(|| {
            let mut act = Act::new(&verb.lemma, "resource", Resource::System, verb.operation, 0.5);
            if verb.operation != Operation::Read {
                act.signs.add(Sign::Unclear);
            }
            Some(act)
        })
}

const fn changes(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::Delete | Operation::Execute | Operation::Admin | Operation::Transfer | Operation::Send
    )
}

/// The least risk that an action's name implies: what its own reading risks.
/// Words that are not known imply nothing.
pub(super) fn floor(action: &Action, lexicon: &Lexicon) -> RiskLevel {
    let words: Vec<String> = action.words().map(str::to_owned).collect();
    let Some(mut act) = act(&words, None, lexicon) else { return bare_floor(&words, lexicon) };
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
    if matches!(act.operation, Operation::Read | Operation::Write) && act.sure < 0.8 {
        return RiskLevel::Low;
    }
    risk::assess(&act, &Facts::default()).level
}

/// The floor of a name whose noun is not known: `delete_widgets`, `drop_all`.
fn bare_floor(words: &[String], lexicon: &Lexicon) -> RiskLevel {
    let operation = words
        .iter()
        .filter_map(|word| lexicon.word(word)?.verb)
        .map(|(id, _)| lexicon.verb(id).operation)
        .find(|operation| *operation != Operation::Read);
    let wide = words.iter().any(|word| {
        lexicon.word(word).is_some_and(|entry| matches!(entry.cue, Some(Sign::Bulk | Sign::Production | Sign::Force)))
    });
    match operation {
        Some(Operation::Delete | Operation::Admin | Operation::Transfer) if wide => RiskLevel::High,
        Some(Operation::Delete | Operation::Admin | Operation::Transfer | Operation::Execute) => RiskLevel::Medium,
        Some(_) if wide => RiskLevel::Medium,
        _ => RiskLevel::Low,
    }
}

/// Later verbs of a name that are read.
const MOST_VERBS: usize = 8;
/// Longest name whose words are read, in characters.
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
