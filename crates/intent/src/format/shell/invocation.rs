//! A program with its arguments: the effect of its subcommand and flags.

use crate::commands;
use crate::format::{dangers, name, place};
use crate::lexicon::Lexicon;
use crate::programs::{CommandRule, FlagRule, Program};
use crate::reading::Act;
use crate::sign::Sign;
use rulekeep_types::{Operation, Resource, RiskLevel};

use super::unknown::act_of;

/// A program with its arguments.
pub(super) struct Invocation<'i> {
    pub program: &'i Program,
    pub arguments: &'i [&'i str],
    pub lexicon: &'i Lexicon,
}

impl Invocation<'_> {
    pub(super) fn acts(&self, name: &str) -> Vec<Act> {
        if self.only_asks_for_help() {
            return vec![Act::new("view", "help", Resource::Information, Operation::Read, 0.9).at_risk(RiskLevel::Low)];
        }
        let plain = self.plain();
        let (deciding, is_scoped, least, only) = self.flags(&plain);
        let (deciding, flag) = (deciding.map(|(rule, _)| rule), deciding.map(|(_, flag)| flag));
        let subcommand = self.program.subcommand(&plain);
        let rule = match (subcommand, deciding) {
            (Some(sub), Some(flag)) if is_scoped || flag.risk > sub.risk => Some(flag),
            (Some(sub), _) => Some(sub),
            (None, flag) => flag,
        };
        let mut acts = match rule {
            Some(rule) => from_rule(rule),
            None => match self.described(name, &plain).or_else(|| self.by_words(&plain)) {
                Some(act) => vec![act],
                None => match &self.program.rule {
                    Some(rule) => from_rule(rule),
                    None => vec![Act::unclear_execution(name)],
                },
            },
        };
        self.widen(&mut acts);
        self.administrators(&mut acts);
        let told = match flag.filter(|_| subcommand.is_none() || is_scoped) {
            Some(flag) => Some(flag),
            None => plain.first().copied().filter(|_| subcommand.is_some() || self.program.resource.is_some()),
        };
        let evidence = told.map_or_else(|| name.to_owned(), |told| format!("{name} {told}"));
        let object = plain.iter().find(|argument| Some(**argument) != told).copied().unwrap_or("");
        for act in &mut acts {
            *act = std::mem::replace(act, Act::unknown()).told_by(&evidence).named_by(object);
            if let Some(least) = least {
                act.risk = act.risk.max(Some(least));
                act.signs.add(Sign::Force);
            }
            if let Some(only) = only {
                act.risk = Some(only);
                act.signs.add(Sign::DryRun);
            }
        }
        acts
    }

    /// Returns whether the arguments only ask for help. `-h` is not included: it halts the machine for `shutdown`.
    fn only_asks_for_help(&self) -> bool {
        match self.arguments {
            ["--help" | "--version" | "-version" | "-showversion" | "-V"] => true,
            ["help" | "version"] => self.program.resource.is_some(),
            _ => false,
        }
    }

    /// The arguments that are neither flags nor flag values.
    fn plain(&self) -> Vec<&str> {
        let mut plain = Vec::new();
        let mut skip = false;
        for &argument in self.arguments {
            if skip {
                skip = false;
            } else if argument.starts_with('-') && argument.len() > 1 {
                skip = self.program.takes_value(argument);
            } else {
                plain.push(argument);
            }
        }
        plain
    }

    /// The riskiest deciding flag rule, the minimum risk, and the only risk that flags leave.
    fn flags(&self, plain: &[&str]) -> Decision<'_> {
        let (mut deciding, mut is_scoped, mut least, mut only): Decision<'_> = (None, false, None, None);
        let scopes = self.program.scoped_words().min(plain.len());
        let mut scoped = String::new();
        // After a bare "--" nothing is a flag.
        let before_end = self.arguments.iter().take_while(|argument| **argument != "--");
        for &argument in before_end.filter(|argument| argument.starts_with('-') || argument.contains('=')) {
            let own = (1..=scopes).rev().find_map(|words| {
                scoped.clear();
                for word in plain.iter().take(words) {
                    scoped.push_str(word);
                    scoped.push(' ');
                }
                scoped.push_str(argument);
                self.program.flag(&scoped)
            });
            match own.or_else(|| self.program.flag(argument)) {
                Some(FlagRule::Is(rule)) if deciding.is_none_or(|(known, _)| rule.risk > known.risk) => {
                    (deciding, is_scoped) = (Some((rule, argument)), own.is_some());
                }
                Some(FlagRule::AtLeast(level)) => least = least.max(Some(*level)),
                Some(FlagRule::Only(level)) if !is_switched_off(argument) => only = Some(*level),
                None if self.is_usual_trial(argument) => only = Some(RiskLevel::Low),
                _ => {}
            }
        }
        (deciding, is_scoped, least, only)
    }

    /// Returns whether a flag is a usual trial flag of tools with subcommands. Other programs must be known to have
    /// one.
    fn is_usual_trial(&self, argument: &str) -> bool {
        let name = argument.split('=').next().unwrap_or(argument);
        self.program.resource.is_some()
            && matches!(name, "--dry-run" | "--dryrun" | "--what-if")
            && !is_switched_off(argument)
    }

    /// Raises deleting everything, or by force, to HIGH.
    fn widen(&self, acts: &mut [Act]) {
        let wide = self.arguments.iter().any(|argument| {
            dangers::holds("widening_flags", argument)
                || argument.starts_with("--all-")
                || matches!(*argument, "*" | ".*" | "**")
                || is_forcing_cluster(argument) && !self.program.takes_value(argument)
        });
        for act in acts.iter_mut().filter(|act| act.operation == Operation::Delete && wide) {
            let is_root = self.arguments.iter().any(|argument| !argument.starts_with('-') && place::is_whole(argument));
            act.risk = act.risk.max(Some(if is_root { RiskLevel::Critical } else { RiskLevel::High }));
            act.signs.add(if is_root { Sign::Whole } else { Sign::Force });
        }
    }

    /// Raises a grant of an administrator role or policy to the highest level.
    fn administrators(&self, acts: &mut [Act]) {
        for act in
            acts.iter_mut().filter(|act| (act.resource, act.operation) == (Resource::Permission, Operation::Admin))
        {
            // A flag's value, joined to it or after it.
            let mut values =
                self.arguments.iter().enumerate().filter_map(|(place, argument)| match argument.split_once('=') {
                    Some((flag, value)) if flag.starts_with('-') => Some(value),
                    None if argument.starts_with("--") => self.arguments.get(place + 1).copied(),
                    _ => None,
                });
            if values.any(is_administrator_role) {
                act.signs.add(Sign::Administrator);
                act.risk = Some(RiskLevel::Critical);
            }
        }
    }

    /// Reads a subcommand missing from the program table by its public description.
    fn described(&self, name: &str, plain: &[&str]) -> Option<Act> {
        self.program.resource?;
        commands::described(name, plain).filter(|found| found.words > 0).map(act_of)
    }

    /// Reads a verb and a noun among the subcommands, or a verb as a flag: "az group create", "gh alias list".
    fn by_words(&self, plain: &[&str]) -> Option<Act> {
        let resource = self.program.resource?;
        let mut words: Vec<String> = Vec::new();
        // "doctl compute droplet delete": the first word is an area of the cloud, not an act.
        let skip =
            usize::from(plain.len() > 2 && plain.first().is_some_and(|first| dangers::holds("cloud_areas", first)));
        let plain = plain.get(skip..).unwrap_or(&[]);
        for argument in plain.iter().take(4).filter(|argument| !argument.contains(['/', '.', '=', '_'])) {
            words.extend(name::words(argument));
        }
        let has_verb = |words: &[String]| words.iter().any(|word| self.lexicon.is_verb(word));
        if !has_verb(&words) {
            for flag in self.arguments.iter().filter_map(|argument| argument.strip_prefix("--")).take(8) {
                let flag = name::words(flag.split('=').next().unwrap_or(flag));
                if has_verb(flag.get(..1).unwrap_or(&[])) {
                    words.extend(flag);
                    break;
                }
            }
        }
        if !has_verb(&words) {
            return None;
        }
        words.truncate(MOST_WORDS);
        let mut act = name::act(&words, Some(resource), self.lexicon)?;
        if matches!(act.resource, Resource::Information | Resource::Unknown) {
            act.resource = resource;
        }
        settle(&mut act);
        act.sure = 0.7;
        Some(act)
    }
}

/// The deciding flag rule with its flag, whether it belongs to the subcommand, the minimum risk, and the only risk.
type Decision<'d> = (Option<(&'d CommandRule, &'d str)>, bool, Option<RiskLevel>, Option<RiskLevel>);

/// Corrects "checkout" and "order", which move no money unless the object is a purchase.
pub(super) fn settle(act: &mut Act) {
    let is_trade = matches!(act.resource, Resource::Payment | Resource::Order | Resource::Booking);
    if act.operation == Operation::Transfer && !is_trade {
        act.operation = Operation::Write;
    }
}

/// Returns whether a value is an administrator role: `arn:aws:iam::aws:policy/AdministratorAccess`, `roles/owner`,
/// `cluster-admin`, `Owner`.
fn is_administrator_role(value: &str) -> bool {
    value.len() <= LONGEST_ROLE && {
        let role = value.rsplit('/').next().unwrap_or(value).to_ascii_lowercase();
        dangers::holds("administrator_roles", &role.replace(' ', "-"))
    }
}

/// Returns whether a flag cluster forces or recurses: `-Rf`, `-rvf`, `-r`.
fn is_forcing_cluster(argument: &str) -> bool {
    argument.strip_prefix('-').is_some_and(|letters| {
        letters.contains(['r', 'R', 'f'])
            && letters.chars().all(|c| matches!(c, 'r' | 'R' | 'f' | 'v' | 'i' | 'd' | 'I'))
    })
}

/// Returns whether a flag is switched off: `--dry-run=none`.
fn is_switched_off(argument: &str) -> bool {
    matches!(argument.split_once('='), Some((_, "none" | "false" | "no" | "0" | "off")))
}

pub(super) fn from_rule(rule: &CommandRule) -> Vec<Act> {
    rule.capabilities
        .iter()
        .enumerate()
        .map(|(place, &(resource, operation))| {
            let mut act = Act::new(&rule.verb, &rule.noun, resource, operation, 0.9);
            act.signs = rule.signs;
            // The stated risk is that of the first capability; the others follow the rubric, up to that level.
            if place == 0 { act.at_risk(rule.risk) } else { act.at_risk(RiskLevel::Low) }
        })
        .collect()
}

const LONGEST_ROLE: usize = 256;
/// Maximum number of subcommand words read.
const MOST_WORDS: usize = 16;
