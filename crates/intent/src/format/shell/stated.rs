//! The acts that a row states for a command, and what only the command as a whole shows.

use rulekeep_types::facts::is_rebuilt;
use rulekeep_types::{Operation, Resource, RiskLevel};

use crate::format::place;
use crate::format::tables::{lines, places};
use crate::programs::{Does, Language, Means, Rule, Takes};
use crate::reading::Act;
use crate::sign::{Sign, Signs};

use super::effects::found_name;
use super::options::Lexed;
use super::word::Word;
use super::{Shell, verbs};

impl Shell<'_, '_> {
    /// The acts that the row states for the subcommand and the options.
    pub(super) fn stated(&mut self, name: &str, lexed: &Lexed<'_>, is_wrapper: bool) -> Vec<Act> {
        let row = lexed.row;
        let mut acts: Vec<Act> = Vec::new();
        let mut also: Vec<Act> = Vec::new();
        let (mut least, mut signs, mut only) = (None, Signs::default(), None);
        for given in &lexed.options {
            for does in &given.means.does {
                match does {
                    Does::Act(rule) if given.is_own => acts.extend(rule.acts()),
                    Does::Act(rule) | Does::Also(rule) => also.extend(rule.acts()),
                    Does::AtLeast(level, more) => {
                        least = least.max(Some(*level));
                        signs = signs.with(*more);
                    }
                    Does::Only(_) if given.value.as_ref().is_some_and(is_switched_off) || !is_trial(lexed) => {}
                    Does::Only(level) => only = Some(*level),
                    Does::Becomes(_) | Does::Tree | Does::Fills | Does::Runs | Does::Writes => {}
                }
            }
        }
        let is_query = |takes: Option<Takes>| {
            matches!(takes, Some(Takes::Code(Language::Sql | Language::Mongo | Language::Redis)))
        };
        let has_query = lexed.options.iter().any(|given| is_query(given.means.takes))
            || is_query(lexed.rest.map(|(_, takes)| takes))
            || lexed.slots().into_iter().any(is_query);
        // Statements determine what a database client does.
        if acts.is_empty() && !is_wrapper && !has_query {
            let is_bare = lexed.operands.is_empty() && lexed.rest.is_none() && lexed.left.is_empty();
            let says_nothing = lexed.options.iter().all(|given| given.means.does.is_empty());
            let by_verb = || {
                let act = verbs::act(name, lexed.program.verbs?, lexed, self.lexicon)?;
                // A subcommand that only reads may have others of its own: `heroku config set`.
                (lexed.sub.is_empty() || row.only_reads() && act.operation != Operation::Read).then_some(act)
            };
            if is_bare && says_nothing && !row.bare.is_empty() && self.is_elsewhere {
                // The environment of a container, or of another host.
                acts.push(
                    Act::new("show", "environment", Resource::System, Operation::Read, 0.8).at_risk(RiskLevel::Low),
                );
            } else if is_bare && says_nothing && !row.bare.is_empty() {
                acts.extend(row.bare.iter().flat_map(Rule::acts));
            } else if let Some(act) = by_verb() {
                acts.push(act);
            } else if is_unlisted_sub(lexed) {
                let run = Act::new("run", "program", Resource::System, Operation::Execute, 0.6);
                acts.push(run.at_risk(RiskLevel::Medium).marked(Sign::Unclear));
            } else if !row.rules.is_empty() {
                acts.extend(row.rules.iter().flat_map(Rule::acts));
            } else if !lexed.program.rules.is_empty() {
                acts.extend(lexed.program.rules.iter().flat_map(Rule::acts));
            } else {
                acts.push(
                    Act::new("run", "program", Resource::System, Operation::Execute, 0.6).at_risk(RiskLevel::Medium),
                );
            }
        }
        acts.extend(also);
        if lexed.program.verbs.is_some() && names_secret(lexed) {
            for act in
                acts.iter_mut().filter(|act| act.operation == Operation::Read && act.risk <= Some(RiskLevel::Low))
            {
                *act = Act::new("read", "secret", Resource::Credential, Operation::Read, 0.8).at_risk(RiskLevel::High);
            }
        }
        let is_named = |word: &Word| !word.dynamic || !self.sets_variables && word.text.starts_with('$');
        let is_kept_nowhere = |word: &Word| {
            let found = self.roots.as_deref().filter(|_| word.text == "{}");
            let looped = self.looped(word);
            let all =
                |words: &[Word]| !words.is_empty() && words.iter().all(|one| !one.dynamic && is_rebuilt(&one.text));
            is_named(word) && !word.wild && place::is_scratch(&word.text)
                || !word.dynamic && is_rebuilt(&word.text)
                || all(&looped)
                || found.is_some_and(all)
        };
        let is_none_kept =
            || found_name(lexed).is_some() || !lexed.operands.is_empty() && lexed.operands.iter().all(is_kept_nowhere);
        if acts.iter().all(removes_files) && is_none_kept() {
            // Temporary files are not kept anyway, and tools make the others anew.
            least = None;
            for act in acts.iter_mut().filter(|act| act.signs.has(Sign::Bulk)) {
                act.risk = act.risk.min(Some(RiskLevel::Medium));
                act.signs = act.signs.without(Sign::Bulk);
            }
        }
        for act in &mut acts {
            if let Some(least) = least {
                act.risk = act.risk.max(Some(least));
                act.signs = act.signs.with(signs);
                act.signs.add(Sign::Force);
            }
            if let Some(only) = only {
                act.risk = Some(only);
                act.signs.add(Sign::DryRun);
            }
        }
        acts
    }

    /// Adds what only the command as a whole shows: a control that is taken down, everything listed that is removed.
    pub(super) fn settle_acts(&mut self, lexed: &Lexed<'_>, before: usize) {
        let is_remote = self.is_remote;
        if is_remote || lexed.leaves() {
            let is_trial = is_trial(lexed);
            // What is fetched comes here, settings of the program are kept here, and a trial changes nothing.
            let stays = |act: &Act| {
                matches!(act.verb.as_str(), "download" | "clone" | "fetch")
                    || matches!(act.resource, Resource::Config | Resource::Credential | Resource::File)
                    || is_trial
            };
            // An act may be one that an earlier command of the line had, too.
            let step = self.reading.step_set();
            let is_fresh = |place: usize, act: &Act| place >= before || act.steps.meets(step);
            let fresh = self.reading.acts.iter_mut().enumerate().filter(|(place, act)| is_fresh(*place, act));
            for (_, act) in fresh.filter(|(_, act)| act.operation != Operation::Read && (is_remote || !stays(act))) {
                act.signs.add(Sign::Leaves);
            }
        }
        let fresh = self.reading.acts.get(before..).unwrap_or(&[]);
        let changes = fresh.iter().any(|act| act.operation != Operation::Read);
        self.sends |= fresh.iter().any(|act| act.operation == Operation::Send);
        let telling = lexed.values().find(|value| {
            let value = value.to_ascii_lowercase().replace(' ', "");
            lines().telling_values.iter().any(|part| value.contains(part))
        });
        let tells = telling.filter(|_| lexed.program.is_loose).map(str::to_owned);
        let is_service = lexed.places().iter().any(|slot| slot.takes == Takes::Service);
        let given = lexed.options.iter().filter(|given| given.means.takes == Some(Takes::Service));
        let is_service = is_service || given.clone().next().is_some();
        let given = given.filter_map(|given| given.value.as_ref());
        let guard = lexed.operands.iter().chain(given).find(|word| {
            let name = word.text.to_ascii_lowercase();
            lines().guards.has(name.trim_end_matches(".service"))
        });
        let starts = lexed.sub.split(' ').next_back().is_some_and(|sub| {
            matches!(sub, "start" | "enable" | "status" | "restart" | "reload" | "unmask" | "install")
        }) || lexed
            .operands
            .iter()
            .any(|word| matches!(word.text.as_str(), "start" | "restart" | "status" | "reload"));
        if let Some(guard) = guard.filter(|_| changes && is_service && !starts) {
            let act = Act::new("disable", "control", Resource::System, Operation::Admin, 0.9);
            self.reading.push(act.marked(Sign::Control).named_by(&guard.text));
        }
        if let Some(found) = tells {
            let act = Act::new("change", "rights", Resource::Permission, Operation::Admin, 0.7);
            self.reading.push(act.at_risk(RiskLevel::High).told_by(&found));
        }
        let takes_all = lexed.operands.iter().any(|word| {
            let text = word.text.as_str();
            matches!(text, "*" | ".*" | "**") || text.contains("://") && text.ends_with('*')
        });
        let deletes_whole = lexed.operands.iter().any(|word| place::is_whole(&word.text));
        for act in self.reading.acts.iter_mut().skip(before) {
            if act.operation == Operation::Delete && takes_all {
                act.risk = act.risk.max(Some(RiskLevel::High));
                act.signs.add(Sign::Bulk);
            }
            let is_wide = matches!(act.risk, Some(RiskLevel::High | RiskLevel::Critical));
            if act.operation == Operation::Delete && act.resource == Resource::File && deletes_whole && is_wide {
                act.risk = Some(RiskLevel::Critical);
                act.signs.add(Sign::Whole);
            }
            if (act.resource, act.operation) == (Resource::Permission, Operation::Admin)
                && lexed.values().any(is_administrator_role)
            {
                act.signs.add(Sign::Administrator);
                act.risk = Some(RiskLevel::Critical);
            }
        }
    }

    /// Deleting everything listed is a bulk deletion.
    pub(super) fn takes_all_listed(&mut self, before: usize) {
        for act in self.reading.acts.iter_mut().skip(before) {
            use Resource::{Account, Credential, Database, File};
            if act.operation == Operation::Delete && matches!(act.resource, Database | Credential | Account | File) {
                act.risk = act.risk.max(Some(RiskLevel::High));
                act.signs.add(Sign::Bulk);
            }
        }
    }
}

fn removes_files(act: &Act) -> bool {
    (act.resource, act.operation) == (Resource::File, Operation::Delete)
}

/// Returns whether the thing that a subcommand gets is a secret by its name: `kubectl get all,secrets`.
fn names_secret(lexed: &Lexed<'_>) -> bool {
    let gets = lexed.sub.split(' ').any(|sub| matches!(sub, "get" | "describe" | "show" | "view" | "print" | "export"));
    let first = lexed.operands.first().filter(|word| gets && !word.text.contains("://"));
    first.is_some_and(|word| {
        let parts = word.text.split([',', '/', '_', '-', ':', '.']).map(str::to_ascii_lowercase);
        parts.filter(|part| part.len() > 3).any(|part| places().secret_words.has(part.trim_end_matches('s')))
    })
}

/// Returns whether the first plain word is a subcommand of which neither the row nor its verb says what it does. The calm
/// act of the row is that of other subcommands then.
fn is_unlisted_sub(lexed: &Lexed<'_>) -> bool {
    let takes_names = lexed.program.slots.first().is_none_or(|slot| matches!(slot.takes, Takes::Name | Takes::Text));
    let is_calm = lexed.program.rules.iter().all(|rule| rule.risk == RiskLevel::Low);
    lexed.sub.is_empty()
        && lexed.program.has_subs()
        && takes_names
        && !lexed.program.has_keys
        && is_calm
        && lexed.operands.first().is_some_and(|word| !verbs::only_reads(&word.text))
}

/// Returns whether a value is an administrator role: `arn:aws:iam::aws:policy/AdministratorAccess`, `roles/owner`,
/// `cluster-admin`, `Owner`.
fn is_administrator_role(value: &str) -> bool {
    value.len() <= LONGEST_ROLE && {
        let role = value.rsplit('/').next().unwrap_or(value).to_ascii_lowercase();
        lines().administrator_roles.has(&role.replace(' ', "-"))
    }
}

/// Returns whether an option makes the command a trial, and no word takes it back: `--dry-run --no-dry-run`.
fn is_trial(lexed: &Lexed<'_>) -> bool {
    let tries = |means: &Means| means.does.iter().any(|does| matches!(does, Does::Only(_)));
    let takes_back = |word: &str| {
        let rest = word.strip_prefix("--no-").filter(|rest| !rest.is_empty());
        let is_trial = |name: &str, rest: &str| name.strip_prefix("--").is_some_and(|name| name.starts_with(rest));
        rest.is_some_and(|rest| {
            let options = lexed.row.options().chain(lexed.program.options());
            options.into_iter().any(|(name, means)| tries(means) && is_trial(name, rest))
        })
    };
    lexed.options.iter().any(|given| tries(given.means))
        && !lexed.options.iter().any(|given| takes_back(given.key))
        && !lexed.left.iter().any(|word| takes_back(&word.text))
}

/// Returns whether an option is switched off: `--dry-run=none`.
fn is_switched_off(value: &Word) -> bool {
    matches!(value.text.as_str(), "none" | "false" | "no" | "0" | "off")
}

const LONGEST_ROLE: usize = 256;
