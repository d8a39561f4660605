//! The effects of writing, changing or reading a path beyond the operation itself, one function for each, wherever the
//! path stands: a tool's argument, a patch's header, a redirection, an operand or the value of an option.

use crate::reading::{Act, Reading};
use crate::sign::Sign;
use rulekeep_types::{Operation, Resource, RiskLevel, TargetRole, UnreadKind};

use super::{guard, patch, place};

/// The noun of a file that holds secrets.
pub(super) const SECRET: &str = "secret_file";

/// The acts of writing new text to a path.
pub(super) fn written(path: &str) -> Vec<Act> {
    let mut acts = changed(path);
    if place::is_secret(path) {
        let store = Act::new("write", SECRET, Resource::Credential, Operation::Write, 0.8);
        acts.push(store.at_risk(RiskLevel::High).marked(Sign::Secret).named_by(path));
    }
    if !place::is_system(path)
        && let Some(level) = place::runs_later(path)
    {
        let hook = Act::new("write", "hook", Resource::Config, Operation::Write, 0.8);
        // A build or another program runs it, with rights of its own.
        acts.push(hook.at_risk(level).marked(Sign::Leaves).named_by(path));
    }
    acts
}

/// The acts of changing what is at a path: its text, its rights, or whether it exists.
pub(super) fn changed(path: &str) -> Vec<Act> {
    let mut acts = Vec::new();
    if guard::governs(path) {
        acts.push(guard::write(path));
    }
    if !place::is_system(path) {
        return acts;
    }
    let resolved = place::resolved(path);
    if resolved.contains("sudoers") || resolved.contains("authorized_keys") {
        // These files determine who may log in, and with which rights.
        let resource = if resolved.contains("sudoers") { Resource::Permission } else { Resource::Credential };
        let grant = Act::new("grant", "access", resource, Operation::Admin, 0.8).at_risk(RiskLevel::Critical);
        acts.push(grant.marked(Sign::Control).named_by(path));
    }
    let is_config = resolved.starts_with("/etc") || !resolved.starts_with('/') || resolved.contains("/.");
    let resource = if is_config { Resource::Config } else { Resource::System };
    let system = Act::new("write", "system_file", resource, Operation::Write, 0.8);
    acts.push(system.at_risk(RiskLevel::High).named_by(path));
    acts
}

/// The act of reading a path that holds secrets, or may hold some.
pub(super) fn read(path: &str) -> Option<Act> {
    if place::is_secret(path) {
        let act = Act::new("read", SECRET, Resource::Credential, Operation::Read, 0.8);
        return Some(act.at_risk(RiskLevel::High).named_by(path));
    }
    let level = place::private(path)?;
    let act = Act::new("read", "private_file", Resource::Credential, Operation::Read, 0.6);
    Some(act.at_risk(level).named_by(path))
}

/// Reads a patch: each file that a header names is a target, with the effects of writing or removing it. Returns
/// the files.
pub(super) fn patch<'p>(text: &'p str, reading: &mut Reading) -> Vec<patch::Change<'p>> {
    let changes = patch::changes(text);
    for change in &changes {
        reading.facts.note_literal_path(TargetRole::Write, change.path);
        if change.path.contains('\\') {
            // Git writes some characters of a quoted name as escapes.
            reading.facts.note_unread(UnreadKind::Target, change.path);
        }
        let acts = if change.removes { changed(change.path) } else { written(change.path) };
        // The folder in which a patch is applied is unknown: `patch -d /`.
        let is_rooted = acts.is_empty() && place::is_rooted(change.path);
        let acts = if is_rooted { written(&format!("/{}", change.path)) } else { acts };
        reading.extend(acts);
        if change.removes {
            let delete = Act::new("delete", "file", Resource::File, Operation::Delete, 0.9);
            reading.push(delete.told_by(change.path));
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(acts: &[Act]) -> Vec<String> {
        acts.iter().map(|act| format!("{}:{} {:?}", act.resource, act.operation, act.risk.unwrap())).collect()
    }

    #[test]
    fn a_written_path_has_the_effects_of_its_place() {
        for (path, effects) in [
            ("src/a.py", vec![]),
            (".env.example", vec![]),
            ("/etc/cron.d/x", vec!["config:write High"]),
            ("../../../etc/cron.d/x", vec!["config:write High"]),
            ("/usr/local/bin/ls", vec!["system:write High"]),
            (".git/hooks/pre-commit", vec!["config:write High"]),
            ("docs/claude.md", vec![]),
            ("claude.md", vec!["config:write High"]),
            ("docs/AGENTS.md", vec!["config:write High"]),
            (".github/workflows/ci.yml", vec!["config:write Medium"]),
            (".env", vec!["credential:write High"]),
            (".claude/settings.json", vec!["permission:admin Critical", "config:write High"]),
            (
                "/home/a/.ssh/authorized_keys",
                vec!["credential:admin Critical", "config:write High", "credential:write High"],
            ),
        ] {
            assert_eq!(named(&written(path)), effects, "{path}");
        }
    }
}
