//! The files that a command names: secrets that it reads, and files that a redirection writes, whatever the program
//! is.

use crate::format::{access, place};
use crate::reading::Act;
use crate::sign::Sign;
use rulekeep_types::{Operation, Resource, RiskLevel, TargetKind, TargetRole};

use super::Shell;
use super::word::Word;

impl Shell<'_, '_> {
    /// Notes that a word names production.
    pub(super) fn note_production(&mut self, word: &str) {
        if names_production(word) {
            self.reading.facts.signs.add(Sign::Production);
            self.reading.facts.show(Sign::Production, word);
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
        self.in_governing_folder(path);
        self.reading.extend(access::written(path));
    }

    pub(super) fn file(&mut self, path: &str) {
        if let Some(act) = access::read(path) {
            self.reads_secret = true;
            self.reading.push(act);
        }
    }
}

fn names_production(argument: &str) -> bool {
    argument.contains("prod")
        && argument.split(['-', '_', '.', '/', '=', ':', '@']).any(|part| matches!(part, "prod" | "production"))
}
