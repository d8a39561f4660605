//! Data that leaves the machine, and downloads that a line then runs.

use crate::format::{dangers, place};
use crate::programs::Program;
use crate::reading::Act;
use crate::sign::Sign;
use rulekeep_types::{Operation, Resource, RiskLevel};

use super::{Shell, View, base_name};

/// Returns whether a target is on another machine: `host:path`, `rsync://host/x`, but not a Windows drive.
fn is_remote(target: &str) -> bool {
    target.split_once(':').is_some_and(|(host, _)| host.len() > 1 && !host.contains('/') && !host.starts_with('-'))
}

impl Shell<'_, '_> {
    pub(super) fn uploads(&mut self, name: &str, arguments: View<'_>) {
        if !dangers::holds("senders", name) {
            return;
        }
        let is_request = dangers::holds("requesters", name);
        let is_copy = matches!(name, "scp" | "rsync" | "sftp" | "rclone");
        let mut files: Vec<&str> = Vec::new();
        let mut takes_data = false;
        let mut sends = !is_request && !is_copy;
        for (place, argument) in arguments.texts.iter().enumerate() {
            let (flag, value) = match argument.split_once('=').filter(|_| argument.starts_with("--")) {
                Some((flag, value)) => (flag, Some(value)),
                None => (*argument, None),
            };
            if takes_data {
                takes_data = false;
                files.extend(named_file(argument));
                continue;
            }
            if is_request && dangers::holds("file_flags", flag) {
                sends = true;
                match value {
                    Some(value) => files.push(value),
                    None => files.extend(arguments.texts.get(place + 1)),
                }
            } else if is_request && dangers::holds("data_flags", flag) {
                sends = true;
                match value {
                    Some(value) => files.extend(named_file(value)),
                    None => takes_data = true,
                }
            } else if is_request
                && dangers::items("data_letters")
                    .iter()
                    .any(|known| argument.starts_with(known.as_str()) && !argument.starts_with("--"))
            {
                // "-d@file", "-Fx=@file".
                sends = true;
                files.extend(argument.split_once('@').map(|(_, file)| file));
            } else if matches!(name, "http" | "https" | "xh" | "xhs") && !argument.starts_with('-') {
                if let Some((field, file)) = argument.split_once('@').filter(|_| !argument.contains("://")) {
                    sends = true;
                    if !field.contains('.') {
                        files.push(file);
                    }
                }
            } else if is_copy && !argument.starts_with('-') && !argument.contains(':') {
                files.push(argument);
            }
        }
        if is_copy {
            sends = arguments.texts.last().is_some_and(|last| is_remote(last));
            if sends {
                let act = Act::new("send", "files", Resource::File, Operation::Send, 0.7).at_risk(RiskLevel::Medium);
                self.reading.push(act.marked(Sign::Outside).told_by(name));
            } else {
                files.clear();
            }
        }
        self.sends |= sends;
        if is_request && !files.is_empty() {
            let act = Act::new("upload", "file", Resource::Web, Operation::Send, 0.7).at_risk(RiskLevel::Medium);
            self.reading.push(act.told_by(name).named_by(files.first().copied().unwrap_or("")));
        }
        if let Some(secret) = files.iter().find(|file| place::is_secret(file)) {
            let act = Act::new("upload", "secret", Resource::Web, Operation::Send, 0.8).at_risk(RiskLevel::Critical);
            self.reading.push(act.marked(Sign::Secret).marked(Sign::Outside).told_by(name).named_by(secret));
        } else if let Some(file) = files.iter().find(|file| is_request && place::is_system(file)) {
            let act = Act::new("upload", "system_file", Resource::Web, Operation::Send, 0.8).at_risk(RiskLevel::High);
            self.reading.push(act.marked(Sign::Sensitive).told_by(name).named_by(file));
        }
    }

    /// Records the file names of a download.
    pub(super) fn note_downloads(&mut self, arguments: &[&str]) {
        let mut is_name = false;
        for argument in arguments.iter().take(MOST_ARGUMENTS) {
            if std::mem::take(&mut is_name) {
                self.downloads.insert(base_name(argument).to_owned());
            } else if argument.contains("://") {
                let path = argument.split(['?', '#']).next().unwrap_or("");
                let last =
                    path.split_once("://").map_or("", |(_, rest)| rest).rsplit_once('/').map_or("", |(_, last)| last);
                if !last.is_empty() {
                    self.downloads.insert(last.to_owned());
                }
            } else if argument.starts_with('-') && !argument.starts_with("--") && argument.ends_with(['o', 'O'])
                || matches!(*argument, "--output" | "--output-document" | "--out")
            {
                is_name = true;
            } else if let Some((_, value)) = argument.split_once('=').filter(|_| argument.starts_with("--output")) {
                self.downloads.insert(base_name(value).to_owned());
            }
        }
    }

    /// Reads a program, or an interpreter's script, that the same line has downloaded.
    pub(super) fn runs_download(&mut self, whole: &str, arguments: View<'_>) {
        if self.downloads.is_empty() {
            return;
        }
        let name = base_name(whole);
        let runs = dangers::holds("interpreters", name)
            || dangers::holds("shells", name)
            || name == "chmod"
            || dangers::holds("installers", name);
        let downloads = &self.downloads;
        let is_download = downloads.contains(name)
            || runs && arguments.texts.iter().take(MOST_ARGUMENTS).any(|word| downloads.contains(base_name(word)));
        if is_download {
            let act = Act::new("run", "download", Resource::System, Operation::Execute, 0.8).at_risk(RiskLevel::High);
            self.reading.push(act.marked(Sign::Downloaded).told_by(whole));
        }
    }

    /// Reads code that a program fetches from an address instead of its registry, and runs.
    pub(super) fn runs_remote(&mut self, name: &str, program: &Program, arguments: &[&str]) {
        // Most commands contain nothing that could be an address.
        if !arguments.iter().any(|word| word.contains(['@', ':'])) {
            return;
        }
        let runs = dangers::parts("remote_runners", name);
        let installs = dangers::parts("remote_installers", name);
        if runs.is_empty() && installs.is_empty() {
            return;
        }
        let holds = |list: &[String], word: &str| list.iter().any(|known| known == word);
        // The number of further plain words that may be the code: the first after the subcommand, or each.
        let mut left = if holds(runs, "*") {
            1
        } else if holds(installs, "*") {
            usize::MAX
        } else {
            0
        };
        let mut before = "";
        for argument in arguments.iter().copied().take(MOST_ARGUMENTS) {
            let (flag, value) = match argument.split_once('=').filter(|_| argument.starts_with('-')) {
                Some((flag, value)) => (flag, value),
                None if argument.starts_with('-') => ("", ""),
                None => (std::mem::take(&mut before), argument),
            };
            let names_code = dangers::holds("remote_flags", flag);
            let is_plain = value == argument
                && !names_code
                && !program.takes_value(flag)
                && !dangers::holds("address_flags", flag);
            if (names_code || is_plain && left > 0) && is_remote_code(value) {
                let is_code = program
                    .rule
                    .as_ref()
                    .and_then(|rule| rule.capabilities.first())
                    .is_some_and(|(resource, _)| *resource == Resource::Code);
                let resource = if is_code { Resource::Code } else { Resource::System };
                let act = Act::new("run", "download", resource, Operation::Execute, 0.8).at_risk(RiskLevel::High);
                self.reading.push(act.marked(Sign::Downloaded).told_by(name).named_by(value));
                return;
            }
            if is_plain {
                left = if holds(runs, argument) {
                    1
                } else if holds(installs, argument) {
                    usize::MAX
                } else {
                    left.saturating_sub(1)
                };
            }
            before = if argument.starts_with('-') && value.is_empty() { argument } else { "" };
        }
    }
}

/// Returns whether a word is code outside a registry: `https://x/a.ts`, `git+ssh://x`, `github:a/b`,
/// `example.com/x@latest`.
fn is_remote_code(word: &str) -> bool {
    word.contains("://") && !word.starts_with("file:")
        || ["git+", "github:", "gitlab:", "bitbucket:", "gist:"].iter().any(|start| word.starts_with(start))
        || word
            .split_once('@')
            .and_then(|(path, _)| path.split_once('/'))
            .is_some_and(|(host, _)| host.contains('.') && !host.starts_with('.'))
}

/// The file that a value names instead of containing the data: `@file`, `name=@file`, `name=<file`.
fn named_file(value: &str) -> Option<&str> {
    value
        .strip_prefix('@')
        .or_else(|| value.split_once("=@").map(|(_, file)| file))
        .or_else(|| value.split_once("=<").map(|(_, file)| file))
        .filter(|file| *file != "-")
}

const MOST_ARGUMENTS: usize = 64;
