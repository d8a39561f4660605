//! What a command does beside what its program is for: code in a flag, a way out
//! through a pager or a script, a write into the system, an upload of a secret.

use crate::model::{Operation, Resource, RiskLevel};
use crate::parse::format::{dangers, place, sql};
use crate::parse::reading::Act;
use crate::parse::sign::Sign;

use super::lexer::Command;
use super::{Shell, base_name, is_assignment};

impl Shell<'_, '_> {
    /// What the words of one simple command show, whatever the program table says of it.
    pub(super) fn dangers(&mut self, name: &str, arguments: &[&str]) {
        let lower = name.to_ascii_lowercase();
        if runs_given_code(&lower, arguments) || has_way_out(&lower, arguments) {
            self.reading.push(Act::unclear_execution("code"));
        }
        if arguments.iter().any(|argument| argument.contains("/dev/tcp/") || argument.contains("/dev/udp/")) {
            self.reading.push(Act::unclear_execution("network_shell"));
        }
        self.variables(&lower, arguments);
        self.writes(&lower, arguments);
        self.uploads(&lower, arguments);
        self.controls(&lower, arguments);
    }

    /// Assignments before a command that make it run something else.
    pub(super) fn assignments(&mut self, words: &[String]) {
        if words.iter().take_while(|word| is_assignment(word)).any(|word| is_hostile_variable(word)) {
            self.reading.push(Act::unclear_execution("environment"));
        }
    }

    /// What a shell or an interpreter is fed, by a pipe or a redirection.
    pub(super) fn fed(&mut self, command: &Command, depth: usize) {
        let words = command.words.iter().map(String::as_str).skip_while(|word| {
            is_assignment(word) || word.starts_with('-') || dangers::holds("wrappers", base_name(word))
        });
        let words: Vec<&str> = words.collect();
        let Some((first, arguments)) = words.split_first() else { return };
        let name = base_name(first).to_ascii_lowercase();
        if !dangers::holds("shells", &name) && !dangers::holds("interpreters", &name) {
            return;
        }
        let script = arguments.iter().find(|argument| !argument.starts_with('-'));
        let reads_input =
            script.is_none() || arguments.iter().any(|argument| matches!(*argument, "-" | "-s" | "/dev/stdin"));
        let is_filter = matches!(name.as_str(), "awk" | "gawk");
        if command.is_fed && reads_input && !is_filter
            || script.is_some_and(|script| script.contains(['$', '<'])) && !is_filter
        {
            self.reading.push(Act::unclear_execution("piped_program"));
        }
        for text in command.reads.iter().filter(|_| reads_input && !is_filter) {
            self.reading.push(Act::unclear_execution("piped_program"));
            if text.contains(' ') {
                self.line(text, depth + 1);
            }
        }
    }

    /// The texts of a database's client. Returns whether they say all there is to say.
    pub(super) fn statements(&mut self, arguments: &[&str]) -> bool {
        let mut found = false;
        let mut is_text = false;
        for argument in arguments {
            let value =
                argument.split_once('=').filter(|(flag, _)| dangers::holds("sql_flags", flag)).map(|(_, value)| value);
            let statement = match value {
                Some(value) => Some(sql::read_anyway(value)),
                None if is_text
                    || argument.contains(char::is_whitespace)
                    || argument.starts_with(['.', '\\']) && !argument.contains('/') =>
                {
                    Some(sql::read_anyway(argument))
                }
                None => sql::read(argument),
            };
            is_text = dangers::holds("sql_flags", argument);
            if let Some(statement) = statement {
                let format = self.reading.format;
                self.reading.absorb(statement);
                self.reading.format = format;
                found = true;
            }
        }
        found
    }

    fn variables(&mut self, name: &str, arguments: &[&str]) {
        let sets =
            matches!(name, "env" | "export" | "sudo" | "doas" | "declare" | "typeset" | "set" | "setenv" | "alias");
        if sets && arguments.iter().any(|argument| is_assignment(argument) && is_hostile_variable(argument)) {
            self.reading.push(Act::unclear_execution("environment"));
        }
        let shows_all = match name {
            "env" | "printenv" | "export" | "set" | "declare" => {
                arguments.iter().all(|argument| matches!(*argument, "-p" | "-0" | "-x"))
            }
            _ => false,
        };
        let names_secret = arguments
            .iter()
            .any(|argument| (argument.contains('$') || name == "printenv") && names_secret_variable(argument));
        if shows_all || names_secret {
            let act = Act::new("read", "environment", Resource::Credential, Operation::Read, 0.7);
            self.reading.push(act.at_risk(RiskLevel::High));
        }
    }

    fn writes(&mut self, name: &str, arguments: &[&str]) {
        let plain = || arguments.iter().copied().filter(|argument| !argument.starts_with('-'));
        let mut targets: Vec<&str> = Vec::new();
        let edits = matches!(name, "sed" | "perl" | "gsed")
            && arguments.iter().any(|a| a.starts_with("-i") || a.starts_with("--in-place"));
        if edits || dangers::holds("writes_all", name) {
            targets.extend(plain());
        } else if dangers::holds("writes_last", name) {
            targets.extend(plain().next_back());
            // A move takes its source away.
            targets.extend(plain().filter(|_| name == "mv"));
        }
        for pair in arguments.windows(2) {
            if let [flag, value] = pair
                && dangers::holds("write_flags", flag)
                && value.contains(['/', '~'])
                && !matches!(name, "ssh" | "git" | "sudo" | "grep" | "docker" | "env" | "make")
            {
                targets.push(value);
            }
        }
        for argument in arguments {
            match argument.split_once('=') {
                Some(("of", value)) => targets.push(value),
                Some((flag, value)) if dangers::holds("write_flags", flag) => targets.push(value),
                _ => {}
            }
        }
        for target in targets.into_iter().filter(|target| place::is_system(target)) {
            self.system_write(target);
        }
    }

    /// A write into the system or into what a shell runs.
    pub(super) fn system_write(&mut self, target: &str) {
        let resource = match place::resolved(target) {
            path if path.starts_with("/etc") || !path.starts_with('/') || path.contains("/.") => Resource::Config,
            _ => Resource::System,
        };
        self.reading.push(Act::new("write", "system_file", resource, Operation::Write, 0.8).at_risk(RiskLevel::High));
    }

    fn uploads(&mut self, name: &str, arguments: &[&str]) {
        if !matches!(
            name,
            "curl" | "wget" | "http" | "https" | "scp" | "rsync" | "sftp" | "nc" | "ncat" | "netcat" | "mail" | "mutt"
        ) {
            return;
        }
        let mut files: Vec<&str> = Vec::new();
        for (place, argument) in arguments.iter().enumerate() {
            let value = arguments.get(place + 1).copied().unwrap_or("");
            match *argument {
                "-T" | "--upload-file" | "--post-file" | "--body-file" => files.push(value),
                other => {
                    if let Some((_, file)) = other.split_once('@').filter(|_| matches!(name, "curl" | "http" | "https"))
                    {
                        files.push(file);
                    } else if let Some(("--post-file" | "--body-file" | "--upload-file", file)) = other.split_once('=')
                    {
                        files.push(file);
                    } else if matches!(name, "scp" | "rsync")
                        && arguments.iter().any(|part| part.contains(':'))
                        && !other.contains(':')
                    {
                        files.push(other);
                    }
                }
            }
        }
        if matches!(name, "curl" | "wget" | "http" | "https") && !files.is_empty() {
            self.reading
                .push(Act::new("upload", "file", Resource::Web, Operation::Send, 0.7).at_risk(RiskLevel::Medium));
        }
        if files.iter().any(|file| place::is_secret(file)) {
            let act = Act::new("upload", "secret", Resource::Web, Operation::Send, 0.8).at_risk(RiskLevel::Critical);
            self.reading.push(act.marked(Sign::Secret).marked(Sign::Outside));
        } else if matches!(name, "curl" | "wget") && files.iter().any(|file| place::is_system(file)) {
            let act = Act::new("upload", "system_file", Resource::Web, Operation::Send, 0.8).at_risk(RiskLevel::High);
            self.reading.push(act.marked(Sign::Sensitive));
        }
    }

    /// Security controls that are taken down, and what stops a whole machine.
    fn controls(&mut self, name: &str, arguments: &[&str]) {
        let has = |list: &str| {
            arguments.iter().any(|argument| {
                let word = argument.to_ascii_lowercase();
                dangers::holds(list, word.trim_start_matches('-').trim_end_matches(".service"))
            })
        };
        let kills = matches!(name, "kill" | "pkill" | "killall");
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
        let every_process = name == "kill" && arguments.len() > 1 && arguments.last() == Some(&"-1");
        let opens = matches!(name, "chmod" | "chown" | "chgrp" | "setfacl" | "chattr")
            && (arguments.iter().any(|argument| place::is_whole(argument) || place::is_system(argument))
                || opens_to_all(arguments));
        let stops_machine = matches!(name, "shutdown" | "reboot" | "halt" | "telinit" | "init")
            && !arguments.iter().any(|argument| matches!(*argument, "-c" | "--help" | "--show"));
        if stops_machine {
            let act = Act::new("halt", "system", Resource::System, Operation::Execute, 0.9);
            self.reading.push(act.at_risk(RiskLevel::High));
        }
        if every_process {
            self.reading
                .push(Act::new("kill", "process", Resource::System, Operation::Execute, 0.9).at_risk(RiskLevel::High));
        }
        if opens {
            self.reading
                .push(Act::new("change", "mode", Resource::Permission, Operation::Admin, 0.9).at_risk(RiskLevel::High));
        }
        if matches!(name, "rm" | "rmdir" | "unlink" | "truncate" | "shred")
            && arguments.iter().any(|argument| place::is_system(argument) || place::is_secret(argument))
        {
            self.reading
                .push(Act::new("delete", "file", Resource::File, Operation::Delete, 0.9).at_risk(RiskLevel::High));
        }
    }
}

/// Code in an argument: `python -c`, `perl -e`, `powershell` with anything.
fn runs_given_code(name: &str, arguments: &[&str]) -> bool {
    if dangers::holds("powershells", name) {
        return arguments.iter().any(|argument| !matches!(*argument, "-v" | "-Version" | "--version"));
    }
    if matches!(name, "eval" | "iex" | "invoke-expression" | "invoke-command") {
        return true;
    }
    let versioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if !dangers::holds("interpreters", name) && !dangers::holds("interpreters", versioned) {
        return false;
    }
    let is_shell = dangers::holds("shells", name);
    arguments.iter().take_while(|argument| argument.starts_with('-') || matches!(**argument, "eval")).any(|argument| {
        let flag = argument.split('=').next().unwrap_or(argument).to_ascii_lowercase();
        // A shell's own "-c" is read as a command; clusters end in or begin with the letter.
        !is_shell && (dangers::holds("code_flags", &flag) || *argument == "eval" || is_code_cluster(argument))
    })
}

/// `-lne`, `-Ic`, `-e'print'`.
fn is_code_cluster(argument: &str) -> bool {
    argument.starts_with('-')
        && !argument.starts_with("--")
        && (argument.ends_with(['c', 'e', 'E', 'r']) || argument.starts_with("-c") || argument.starts_with("-e"))
}

/// A flag or a script by which a program that only looks runs or writes.
fn has_way_out(name: &str, arguments: &[&str]) -> bool {
    let by_argument = arguments.iter().any(|argument| {
        let flag = argument.split('=').next().unwrap_or(argument);
        let lower = argument.to_ascii_lowercase();
        dangers::holds_of("escape_flags", name, |known| known == flag)
            || dangers::holds_of("escape_parts", name, |part| lower.contains(part))
    });
    let script = match name {
        "sed" | "gsed" => arguments.iter().any(|argument| sed_writes_or_runs(argument)),
        "awk" | "gawk" | "mawk" | "nawk" => arguments.iter().any(|argument| awk_writes_or_runs(argument)),
        "git" => arguments.iter().take_while(|argument| argument.starts_with('-')).any(|argument| *argument == "-c"),
        "rsync" => {
            arguments.windows(2).any(|pair| matches!(pair, ["-e" | "--rsh", shell] if !shell.starts_with("ssh")))
        }
        _ => false,
    };
    by_argument || script
}

/// The `e` and `w` commands of `sed` and of its substitution.
fn sed_writes_or_runs(script: &str) -> bool {
    if script.starts_with('-') {
        return false;
    }
    script.split([';', '\n', '{', '}']).any(|piece| {
        let piece =
            piece.trim().trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ',' | '$' | '!' | '~' | ' '));
        let piece = if piece.starts_with('/') { piece.rsplit('/').next().unwrap_or("").trim() } else { piece };
        let mut chars = piece.chars();
        match (chars.next(), chars.next()) {
            (Some('s'), Some(delimiter)) if !delimiter.is_alphanumeric() => {
                let plain = piece.replace(['\\'], "");
                plain.splitn(4, delimiter).nth(3).is_some_and(|flags| flags.contains(['e', 'w']))
            }
            (Some('e' | 'w' | 'W'), None) => true,
            (Some('e' | 'w' | 'W'), Some(next)) => next.is_whitespace() || next == '/',
            _ => false,
        }
    })
}

/// A pipe or a redirection inside an `awk` program.
fn awk_writes_or_runs(program: &str) -> bool {
    let program = program.replace("||", "");
    program.contains('{')
        && (program.contains('|') || program.contains("print >") || program.contains(">\"") || program.contains("> \""))
}

fn is_hostile_variable(assignment: &str) -> bool {
    let name = assignment.split('=').next().unwrap_or("").to_ascii_lowercase();
    dangers::items("hostile_variables")
        .iter()
        .any(|known| name == *known || known.ends_with('_') && name.starts_with(known.as_str()))
        || dangers::items("hostile_variable_ends").iter().any(|end| name.ends_with(end.as_str()))
}

fn names_secret_variable(word: &str) -> bool {
    ["SECRET", "TOKEN", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "PRIVATE_KEY", "ACCESS_KEY", "CREDENTIAL"]
        .iter()
        .any(|part| word.contains(part))
}

/// `777`, `o+w`, `u+s`: more than the owner, or more than a user.
fn opens_to_all(arguments: &[&str]) -> bool {
    arguments.iter().any(|argument| {
        let digits = argument.len() >= 3 && argument.chars().all(|c| c.is_ascii_digit());
        digits && (argument.ends_with(['7', '6', '2']) || argument.len() == 4 && !argument.starts_with(['0', '1']))
            || matches!(argument.split_once('+'), Some((who, what)) if what.contains('s') || matches!(who, "o" | "a" | "") && what.contains('w'))
    })
}
