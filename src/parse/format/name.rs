//! Names of tools, functions and actions in any spelling, read by the lexicon.

use crate::model::{Action, Operation, Resource, RiskLevel};
use crate::parse::language;
use crate::parse::lexicon::{Form, Lexicon, Verb};
use crate::parse::reading::{Act, Facts};
use crate::parse::risk;
use crate::parse::sign::Sign;

/// The words of a name in lower case: `mcp__mail__sendEmail` is mail, send, email.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for c in name.chars().take(LONGEST_NAME) {
        if (!c.is_alphanumeric() || (c.is_uppercase() && was_lower)) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
    }
    if !word.is_empty() {
        words.push(word);
    }
    if words.first().is_some_and(|first| first == "mcp") {
        words.remove(0);
    }
    words
}

/// The act that a name says, if its words tell one. `resource` stands in where no noun tells it.
pub(super) fn act(words: &[String], resource: Option<Resource>, lexicon: &Lexicon) -> Option<Act> {
    let line = words.join(" ");
    let tokens = language::tokenise(&line, &line, lexicon);
    let mut verb: Option<&Verb> = None;
    let mut noun: Option<(&str, Resource, u8)> = None;
    let mut act_signs = crate::parse::sign::Signs::default();
    for token in &tokens {
        if let Some(sign) = token.cue {
            act_signs.add(sign);
        }
        if verb.is_none()
            && let Some((id, _)) = token.entry.verb.filter(|&(_, form)| form == Form::Base)
        {
            verb = Some(lexicon.verb(id));
            continue;
        }
        if let Some(found) = token.entry.noun.map(|id| lexicon.noun(id)) {
            // The last noun is the head, unless an earlier one names its resource more surely.
            if noun.is_none_or(|(_, _, strength)| found.strength >= strength) {
                noun = Some((&found.lemma, found.resource, found.strength));
            }
        }
    }
    let (name, named) = match (noun, resource) {
        (Some((name, named, strength)), _) if strength > 2 => (name, named),
        (Some((name, ..)), Some(given)) => (name, given),
        (Some((name, named, _)), None) => (name, named),
        (None, Some(given)) => (given.as_str(), given),
        (None, None) => ("", Resource::Unknown),
    };
    let Some(verb) = verb else {
        // "weather", "calendar_events": a noun alone looks.
        let (name, named, _) = noun?;
        let mut act = Act::new("get", &name.replace([' ', '-'], "_"), named, Operation::Read, 0.45);
        act.signs = act_signs;
        return Some(act);
    };
    let (mut target, mut operation) = (verb.always.unwrap_or(named), verb.operation);
    if let Some(rule) = lexicon.rule(verb, target, name, "") {
        (target, operation) = (rule.resource, rule.gives);
        if let Some(sign) = rule.sign {
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
            if is_noun && !joined {
                return None;
            }
            let mut rest = words.get(place..)?.to_vec();
            if rest.len() == 1 {
                rest.push(first.noun.clone());
            }
            verb_act(&rest, first, lexicon)
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
            act.signs.add(Sign::Unclear);
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
        return risk::assess(&act, &Facts { amount: Some(1.0), ..Facts::default() }).level;
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
            ("HTTPGet2", "httpget2"),
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
