//! The files that a command names: secrets that it reads, and files that a redirection writes, whatever the program
//! is.

use crate::format::{dangers, place};
use crate::reading::Act;
use crate::sign::Sign;
use rulekeep_types::{Operation, Resource, RiskLevel, TargetKind, TargetRole};

use super::word::Word;
use super::{Shell, View};

impl Shell<'_, '_> {
    /// Reads the files named by the arguments, whatever the program is.
    pub(super) fn arguments(&mut self, name: &str, arguments: View<'_>) {
        #[cfg(test)]
        super::tests::count(arguments.texts.len());
        self.note_secrets(name, arguments.texts);
        let handles_keys = dangers::holds("key_handlers", name);
        let mut is_key = false;
        for argument in arguments.texts {
            if !handles_keys && !is_key {
                self.file(argument);
            }
            is_key = dangers::holds("key_flags", argument);
            if names_production(argument) {
                self.reading.facts.signs.add(Sign::Production);
                self.reading.facts.show(Sign::Production, argument);
            }
        }
    }

    pub(super) fn redirect(&mut self, target: &Word) {
        let text = target.text.as_str();
        let path = place::resolved(text);
        if path.starts_with("/dev/tcp") || path.starts_with("/dev/udp") {
            self.unclear("network_shell", text);
            return;
        }
        if text.starts_with('&') || path.starts_with("/dev/") && !place::is_system(&path) {
            return;
        }
        self.reading.facts.note_target_as(TargetKind::Path, TargetRole::Write, text);
        if text.contains('$') {
            self.reading.facts.signs.add(Sign::Unclear);
        }
        if path.starts_with("/dev/") {
            let act = Act::new("overwrite", "disk", Resource::System, Operation::Delete, 0.9);
            self.reading.push(act.at_risk(RiskLevel::Critical).told_by(">").named_by(text));
            return;
        }
        self.written(text);
        let is_config = path.starts_with("/etc/") || place::is_system(&path) && !path.starts_with('/');
        let mut act = Act::new("write", "file", Resource::File, Operation::Write, 0.9);
        if is_config {
            act.resource = Resource::Config;
            "configuration".clone_into(&mut act.noun);
        }
        if text.contains("authorized_keys") || text.contains("sudoers") {
            act = act.at_risk(RiskLevel::Critical).marked(Sign::Control);
        }
        self.reading.push(act.told_by(">").named_by(text));
    }

    /// Adds what writing a place means besides changing a file.
    pub(super) fn written(&mut self, path: &str) {
        self.governing_write(path);
        if place::is_system(path) {
            self.system_write(path);
        } else if let Some(level) = place::runs_later(path) {
            let act = Act::new("write", "hook", Resource::Config, Operation::Write, 0.8);
            self.reading.push(act.at_risk(level).named_by(path));
        }
    }

    pub(super) fn file(&mut self, path: &str) {
        if place::is_secret(path) {
            self.reads_secret = true;
            let act = Act::new("read", "secret_file", Resource::Credential, Operation::Read, 0.8);
            self.reading.push(act.at_risk(RiskLevel::High).named_by(path));
        }
    }
}

fn names_production(argument: &str) -> bool {
    argument.contains("prod")
        && argument.split(['-', '_', '.', '/', '=', ':', '@']).any(|part| matches!(part, "prod" | "production"))
}
