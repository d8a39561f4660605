//! PowerShell commands, read by verb and noun: `Get-*` reads, `Remove-*` removes.

use crate::format::dangers;
use crate::reading::Act;
use crate::sign::Sign;
use rulekeep_types::{Operation, Resource, RiskLevel};

use super::{Shell, View};

impl Shell<'_, '_> {
    /// Reads `ri -r -fo x`: a PowerShell alias that may be another program's name too. Its parameters decide.
    pub(super) fn aliased_cmdlet(&mut self, name: &str, arguments: View<'_>, depth: usize) -> bool {
        let tells = |flag: &&str| is_parameter(flag, "-recurse") || is_parameter(flag, "-force");
        if name.len() > LONGEST_ALIAS || !arguments.texts.iter().take(MOST_PARAMETERS).any(tells) {
            return false;
        }
        let [cmdlet, ..] = dangers::parts("cmdlet_aliases", name) else { return false };
        self.cmdlet(cmdlet, arguments, depth)
    }

    /// Reads a command of the form `Verb-Noun`. Returns whether it is one.
    pub(super) fn cmdlet(&mut self, whole: &str, arguments: View<'_>, depth: usize) -> bool {
        let Some((verb, noun)) = parts(whole) else { return false };
        let (verb, noun) = (verb.to_ascii_lowercase(), noun.to_ascii_lowercase());
        let Some(operation) = operation(&verb) else { return false };
        self.arguments(whole, arguments);
        let name = format!("{verb}-{noun}");
        if dangers::holds("cmdlet_code", &name) {
            self.unclear("code", whole);
            self.line(arguments.texts.join(" ").trim_matches(['{', '}', '&', ' ']), depth + 1);
            return true;
        }
        let resource = resource(&noun);
        let mut act = Act::new(&verb, &noun, resource, operation, 0.8).told_by(whole);
        let flags = arguments.texts.iter().map(|flag| flag.to_ascii_lowercase());
        let has = |flags: &[&str]| {
            arguments.texts.iter().any(|flag| flags.iter().any(|known| flag.eq_ignore_ascii_case(known)))
        };
        if operation == Operation::Execute {
            act.risk = Some(RiskLevel::Medium);
        }
        if operation == Operation::Delete
            && (has(&["-all"])
                || arguments.texts.iter().any(|flag| is_parameter(flag, "-recurse") || is_parameter(flag, "-force")))
        {
            act.risk = Some(RiskLevel::High);
            act.signs.add(Sign::Force);
        }
        if dangers::holds("cmdlet_high", &name) {
            act.risk = Some(RiskLevel::High);
        }
        if dangers::holds("cmdlet_critical", &name) {
            act.risk = Some(RiskLevel::Critical);
            act.operation = Operation::Delete;
            act.signs.add(Sign::Whole);
        }
        let takes_down = dangers::holds("cmdlet_controls", &noun)
            && operation != Operation::Read
            && (matches!(verb.as_str(), "disable" | "remove" | "stop")
                || flags.into_iter().any(|flag| flag.starts_with("-disable")));
        if takes_down {
            act.operation = Operation::Admin;
            act.risk = Some(RiskLevel::Critical);
            act.signs.add(Sign::Control);
        }
        if has(&["-whatif"]) {
            act.risk = Some(RiskLevel::Low);
            act.signs.add(Sign::DryRun);
        }
        let value = |parameter: &str| {
            let mut words = arguments.texts.iter().skip_while(|flag| !flag.eq_ignore_ascii_case(parameter));
            words.nth(1).map(|value| super::base_name(value))
        };
        if verb == "start" && arguments.texts.iter().any(|word| self.downloads.contains(super::base_name(word))) {
            act.risk = Some(RiskLevel::High);
            act.signs.add(Sign::Downloaded);
        }
        if noun == "webrequest" || noun == "restmethod" || noun == "bitstransfer" {
            self.downloads.extend(value("-outfile").or_else(|| value("-destination")).map(str::to_owned));
        }
        if noun == "webrequest" || noun == "restmethod" {
            let sends = has(&["-body", "-infile", "post", "put", "patch", "delete"]);
            act.operation = if sends { Operation::Send } else { Operation::Read };
            act.risk = Some(if sends { RiskLevel::Medium } else { RiskLevel::Low });
            self.sends |= sends;
        }
        self.reading.push(act);
        true
    }
}

/// Returns whether a flag is a parameter in full, or an unambiguous start of it: `-r`, `-Rec`, `-fo`, `-Force:$true`.
fn is_parameter(flag: &str, parameter: &str) -> bool {
    if !flag.starts_with('-') {
        return false;
    }
    let name = flag.split(':').next().unwrap_or(flag);
    let least = if parameter == "-recurse" { 2 } else { 3 };
    name.len() >= least && parameter.get(..name.len()).is_some_and(|start| name.eq_ignore_ascii_case(start))
}

/// Returns whether a word has this form with a known PowerShell verb.
pub(super) fn is_cmdlet(word: &str) -> bool {
    parts(word).is_some_and(|(verb, _)| operation(&verb.to_ascii_lowercase()).is_some())
}

fn parts(word: &str) -> Option<(&str, &str)> {
    let (verb, noun) = word.split_once('-')?;
    let starts_upper = |part: &str| part.starts_with(|c: char| c.is_ascii_uppercase()) && part.len() > 1;
    (starts_upper(verb) && starts_upper(noun) && noun.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        .then_some((verb, noun))
}

fn operation(verb: &str) -> Option<Operation> {
    [
        ("cmdlet_reads", Operation::Read),
        ("cmdlet_writes", Operation::Write),
        ("cmdlet_deletes", Operation::Delete),
        ("cmdlet_runs", Operation::Execute),
        ("cmdlet_admins", Operation::Admin),
        ("cmdlet_sends", Operation::Send),
    ]
    .into_iter()
    .find_map(|(list, operation)| dangers::holds(list, verb).then_some(operation))
}

/// The resource of a noun: its own entry, or that of its ending (`LocalUser` is a user).
fn resource(noun: &str) -> Resource {
    dangers::items("cmdlet_nouns")
        .iter()
        .filter_map(|entry| entry.split_once(':'))
        .find(|(known, _)| noun.ends_with(known))
        .and_then(|(_, resource)| resource.parse().ok())
        .unwrap_or(Resource::System)
}

/// Number of arguments among which the parameters that identify an alias are searched.
const MOST_PARAMETERS: usize = 32;
const LONGEST_ALIAS: usize = 5;
