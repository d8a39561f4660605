//! Security controls switched off, permissions opened, machines stopped.

use crate::format::{dangers, place};
use crate::reading::Act;
use crate::sign::Sign;
use rulekeep_types::{Operation, Resource, RiskLevel};

use super::Shell;

impl Shell<'_, '_> {
    /// Reads commands that switch off security controls or stop a machine.
    pub(super) fn controls(&mut self, name: &str, arguments: &[&str]) {
        let has = |list: &str| {
            arguments.iter().any(|argument| {
                let word = argument.to_ascii_lowercase();
                dangers::holds(list, word.trim_start_matches('-').trim_end_matches(".service"))
            })
        };
        let kills = matches!(name, "kill" | "pkill" | "killall");
        let every_process = name == "kill" && arguments.len() > 1 && arguments.last() == Some(&"-1");
        let takes_down = dangers::holds("killers", name) && has("guards") && (kills || has("stops"))
            || matches!(name, "ufw" | "firewall-cmd") && has("stops")
            || name == "setenforce"
                && arguments.iter().any(|argument| matches!(*argument, "0" | "permissive" | "Permissive"))
            || matches!(name, "iptables" | "ip6tables" | "nft" | "auditctl")
                && arguments.iter().any(|argument| matches!(*argument, "-F" | "--flush" | "-D" | "flush"));
        if takes_down {
            self.reading
                .push(Act::new("disable", "control", Resource::System, Operation::Admin, 0.9).marked(Sign::Control));
        }
        let joins_administrators = dangers::holds("member_programs", name)
            && arguments
                .iter()
                .flat_map(|argument| argument.split([',', '=']))
                .any(|group| dangers::holds("root_groups", group));
        if joins_administrators {
            let act = Act::new("add", "administrator", Resource::Permission, Operation::Admin, 0.9);
            self.reading.push(act.marked(Sign::Administrator).told_by(name));
        }
        let opens = matches!(name, "chmod" | "chown" | "chgrp" | "setfacl" | "chattr")
            && (arguments.iter().any(|argument| place::is_whole(argument) || place::is_system(argument))
                || opens_to_all(arguments))
            || matches!(name, "install" | "mkdir" | "mkfifo")
                && given_mode(arguments).is_some_and(|mode| opens_to_all(&[mode]));
        self.empties(name, arguments);
        if name == "git" && arguments.contains(&"push") {
            self.pushes(arguments);
        }
        let destroying = dangers::parts("destroying_words", name);
        if !destroying.is_empty() && arguments.iter().any(|argument| destroying.iter().any(|word| word == argument)) {
            let act = Act::new("destroy", "volume", Resource::System, Operation::Delete, 0.9);
            self.reading.push(act.at_risk(RiskLevel::High).told_by(name));
        }
        if name == "mv" && arguments.last() == Some(&"/dev/null") {
            let act = Act::new("delete", "file", Resource::File, Operation::Delete, 0.9);
            self.reading.push(act.at_risk(RiskLevel::Medium).told_by("mv /dev/null"));
        }
        if every_process {
            self.reading
                .push(Act::new("kill", "process", Resource::System, Operation::Execute, 0.9).at_risk(RiskLevel::High));
        }
        if opens {
            self.reading
                .push(Act::new("change", "mode", Resource::Permission, Operation::Admin, 0.9).at_risk(RiskLevel::High));
        }
        let recurses = name == "rmdir" && arguments.iter().any(|argument| argument.eq_ignore_ascii_case("/s"));
        let reaches = matches!(name, "rm" | "rmdir" | "unlink" | "truncate" | "shred")
            && arguments.iter().any(|argument| place::is_system(argument) || place::is_secret(argument));
        if recurses || reaches {
            let mut act = Act::new("delete", "file", Resource::File, Operation::Delete, 0.9).at_risk(RiskLevel::High);
            if recurses {
                act.signs.add(Sign::Force);
            }
            self.reading.push(act);
        }
    }

    /// Reads commands that replace a file by nothing, or remove traces.
    fn empties(&mut self, name: &str, arguments: &[&str]) {
        let replaces = arguments.contains(&"/dev/null")
            && arguments.last() != Some(&"/dev/null")
            && dangers::holds("empty_sources", name);
        if !replaces && !dangers::holds("trace_removers", name) {
            return;
        }
        if replaces {
            let act = Act::new("truncate", "file", Resource::File, Operation::Delete, 0.8).at_risk(RiskLevel::Medium);
            let target = arguments.last().copied().unwrap_or("");
            self.reading.push(act.told_by("/dev/null").named_by(target));
        }
        if let Some(trace) = arguments.iter().find(|argument| is_trace(argument)) {
            self.hides(name, trace);
        }
    }

    /// Adds the removal of a trace.
    pub(super) fn hides(&mut self, told: &str, trace: &str) {
        let act = Act::new("delete", "traces", Resource::File, Operation::Delete, 0.8).at_risk(RiskLevel::Medium);
        self.reading.facts.show(Sign::Conceal, trace);
        self.reading.push(act.marked(Sign::Conceal).told_by(told).named_by(trace));
    }

    /// Reads `git push origin :branch`, which deletes it, and `+branch`, which overwrites it.
    fn pushes(&mut self, arguments: &[&str]) {
        for refspec in arguments.iter().filter(|argument| argument.len() > 1) {
            if refspec.starts_with(':') {
                let act = Act::new("delete", "branch", Resource::Code, Operation::Delete, 0.9);
                self.reading.push(act.at_risk(RiskLevel::High).told_by("git push").named_by(refspec));
            } else if refspec.starts_with('+') {
                let act = Act::new("force", "push", Resource::Code, Operation::Write, 0.9).marked(Sign::Force);
                self.reading.push(act.at_risk(RiskLevel::High).told_by("git push").named_by(refspec));
            }
        }
    }
}

/// Returns whether a file records past actions: a shell history or a login log.
pub(super) fn is_trace(path: &str) -> bool {
    dangers::holds("trace_files", super::base_name(path))
}

/// The mode that a program is told to set: `-m 4755`, `-m4755`, `--mode=4755`.
fn given_mode<'w>(arguments: &[&'w str]) -> Option<&'w str> {
    arguments.iter().enumerate().find_map(|(place, argument)| match *argument {
        "-m" | "--mode" => arguments.get(place + 1).copied(),
        other => ["--mode=", "-m"].iter().find_map(|flag| other.strip_prefix(flag)),
    })
}

/// Returns whether a mode gives access beyond the owner, or another user's rights: `777`, `o+w`, `u+s`.
fn opens_to_all(arguments: &[&str]) -> bool {
    arguments.iter().any(|argument| {
        let digits = argument.len() >= 3 && argument.chars().all(|c| c.is_ascii_digit());
        digits && (argument.ends_with(['7', '6', '2']) || argument.len() == 4 && !argument.starts_with(['0', '1']))
            || matches!(argument.split_once('+'), Some((who, what)) if what.contains('s') || matches!(who, "o" | "a" | "") && what.contains('w'))
    })
}
