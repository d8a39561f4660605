//! Code passed to an interpreter: always an execution. It is judged by what it names: the commands it runs, the files it
//! removes, the data it sends.

use rulekeep_types::facts::{Cause, Kinds};
use rulekeep_types::{Operation, Resource, RiskLevel};

use crate::codes::base64_bytes;
use crate::format::tables::{Redis, calls, verbs};
use crate::format::{access, guard, place};
use crate::programs::Language;
use crate::reading::Act;
use crate::table::List;

use super::word::Word;
use super::{Shell, base_name};

impl Shell<'_, '_> {
    /// Reads code in a language that a word holds.
    pub(super) fn code_in(&mut self, language: Language, word: &Word, depth: usize) {
        let text = word.text.as_str();
        let is_hidden = word.dynamic && text.starts_with('$') && !text.contains(char::is_whitespace);
        if is_hidden && !matches!(language, Language::Sed | Language::Awk | Language::Jq) {
            return self.unclear("code", text);
        }
        match language {
            Language::PowerShell if is_encoded(text) => self.encoded_command(text, depth),
            Language::Shell | Language::PowerShell => self.shell_code(text, depth),
            Language::Sql | Language::Mongo => self.statement(text),
            Language::Redis => self.redis(text),
            Language::Sed => self.sed(text, depth),
            Language::Awk => self.awk(text, depth),
            Language::Jq => {
                if text.contains("$ENV") || text.split(|c: char| !c.is_alphanumeric()).any(|name| name == "env") {
                    let act = Act::new("read", "environment", Resource::Credential, Operation::Read, 0.7);
                    self.reading.push(act.at_risk(RiskLevel::High).told_by(text));
                }
            }
            Language::Make => self.recipes(text, depth),
            Language::Vim => self.editor_command(text, depth),
            Language::Tex => self.marked_code(text, &["write18", "directlua", "\\input|", "openout"], depth),
            Language::Lisp => {
                let marks = [
                    "shell-command",
                    "call-process",
                    "start-process",
                    "delete-",
                    "make-process",
                    "python-fu",
                    "system",
                ];
                self.marked_code(text, &marks, depth);
            }
            Language::AppleScript => self.marked_code(
                text,
                &["shell script", "delete", "keystroke", "password", "passphrase", "Cookies", "duplicate"],
                depth,
            ),
            Language::Named(name) => self.code(name, text, depth),
        }
    }

    fn shell_code(&mut self, text: &str, depth: usize) {
        if matches!(text, "" | "-") {
            return;
        }
        let act = Act::new("run", "command", Resource::System, Operation::Execute, 0.8).at_risk(RiskLevel::Medium);
        self.reading.push(act.told_by(text));
        self.line(text.trim_matches(['{', '}', '&', ' ']), depth + 1);
    }

    /// Reads a command of a key-value store by its first word.
    fn redis(&mut self, text: &str) {
        let first = text.split_whitespace().next().unwrap_or("").to_ascii_lowercase();
        let (verb, operation, risk) = match verbs().redis.of(&first) {
            Some(Redis::Read) => ("query", Operation::Read, RiskLevel::Low),
            Some(Redis::Write) => ("set", Operation::Write, RiskLevel::Medium),
            Some(Redis::Flush) => ("delete", Operation::Delete, RiskLevel::High),
            Some(Redis::Delete) => ("delete", Operation::Delete, RiskLevel::Medium),
            None => ("run", Operation::Execute, RiskLevel::High),
        };
        self.reading.push(Act::new(verb, "keys", Resource::Database, operation, 0.8).at_risk(risk).told_by(text));
    }

    /// Reads code in which only some words run anything.
    fn marked_code(&mut self, code: &str, marks: &[&str], depth: usize) {
        for literal in literals(code).into_iter().take(MOST_LITERALS) {
            self.file(&literal);
        }
        if !marks.iter().any(|mark| code.contains(mark)) {
            return;
        }
        self.unclear("code", code);
        let groups = code.split(['{', '}']).map(str::to_owned);
        for line in literals(code).into_iter().chain(groups).take(MOST_LITERALS) {
            self.known_line(&line, depth);
        }
    }

    /// Reads a text as a command line if it starts with a program.
    fn known_line(&mut self, line: &str, depth: usize) {
        let first = line.split_whitespace().next().unwrap_or("");
        if self.lexicon.programs.knows(base_name(first)) && depth < super::DEEPEST {
            self.line(line, depth + 1);
        }
    }

    /// Reads the commands in a build file: recipes, values of YAML, and the texts of JSON.
    fn recipes(&mut self, text: &str, depth: usize) {
        let act = Act::new("run", "script", Resource::System, Operation::Execute, 0.8).at_risk(RiskLevel::Medium);
        self.reading.push(act.told_by("build file"));
        let calls = text.split("$(shell ").skip(1).filter_map(|call| call.split(')').next());
        let lines = calls.chain(text.lines()).map(|line| line.split_once(';').map_or(line, |(_, command)| command));
        let lines = lines.chain(text.lines()).map(|line| line.trim_start_matches(['\t', ' ', '@', '-']).to_owned());
        // `run: make all` of a pipeline.
        let values = text.lines().filter_map(|line| Some(line.split_once(": ")?.1.trim().to_owned()));
        for line in lines.chain(values).chain(literals(text)).take(MOST_RECIPES) {
            self.known_line(&line, depth);
        }
    }

    /// Reads a command of an editor: `:!rm x`, `:w /etc/x`, `:py3 import os`.
    fn editor_command(&mut self, text: &str, depth: usize) {
        let command = text.trim_start_matches([':', ' ']);
        if let Some((_, line)) = command.split_once('!').filter(|(before, _)| before.len() < SHORT_COMMAND) {
            self.unclear("code", text);
            return self.line(line, depth + 1);
        }
        // Of a debugger.
        if let Some(line) = ["shell ", "platform shell "].iter().find_map(|start| command.strip_prefix(start)) {
            self.unclear("code", text);
            return self.line(line, depth + 1);
        }
        let (first, rest) = command.split_once(' ').unwrap_or((command, ""));
        let is_code =
            ["py", "lua", "perl", "ruby", "tcl", "call", "let", "exe"].iter().any(|start| first.starts_with(start));
        match first {
            "w" | "wq" | "write" | "saveas" | "sav" => {
                self.path(
                    &Word { text: rest.to_owned(), ..Word::default() },
                    rulekeep_types::facts::Role::Write,
                    false,
                );
            }
            "so" | "source" | "luafile" => self.unclear("code", text),
            _ if is_code || calls_code(command) => {
                self.unclear("code", text);
                self.code("python", rest, depth);
            }
            _ => {}
        }
    }

    /// Reads a script of `sed`, which may run a command or write a file.
    fn sed(&mut self, script: &str, depth: usize) {
        if let Some(command) = super::sed::runs_or_writes(script) {
            self.unclear("code", script);
            self.line(command, depth + 1);
        }
    }

    /// Reads a program of `awk`, which may run commands: `system("x")`, `print | "x"`, `"x" | getline`.
    fn awk(&mut self, program: &str, depth: usize) {
        for literal in literals(program).into_iter().take(MOST_LITERALS) {
            self.file(&literal);
        }
        if !awk_writes_or_runs(program) {
            return;
        }
        self.unclear("code", program);
        for literal in literals(program).into_iter().take(MOST_LITERALS) {
            self.known_line(&literal, depth);
            if place::is_system(&literal) {
                self.reading.extend(access::written(&literal));
            }
        }
    }

    /// Reads a piece of code in a general-purpose language.
    fn code(&mut self, interpreter: &str, code: &str, depth: usize) {
        self.open(Cause::Execution, Kinds::OPERANDS, code);
        self.mentions(&Word { text: code.to_owned(), ..Word::default() });
        let lower = code.to_ascii_lowercase();
        let marks = &calls();
        let has = |list: &List| list.iter().any(|call| has_word(&lower, call));
        let mut acts = Vec::new();
        if has(&marks.deletes) {
            let act = Act::new("delete", "files", Resource::File, Operation::Delete, 0.7);
            acts.push(act.at_risk(RiskLevel::High));
        }
        if has(&marks.empties) {
            let act = Act::new("delete", "records", Resource::Database, Operation::Delete, 0.7);
            acts.push(act.at_risk(RiskLevel::High));
        }
        if has(&marks.sends) {
            self.sends = true;
            let act = Act::new("send", "data", Resource::Web, Operation::Send, 0.7);
            acts.push(act.at_risk(RiskLevel::Medium));
        }
        if has(&marks.modes) {
            let act = Act::new("change", "mode", Resource::Permission, Operation::Admin, 0.7);
            acts.push(act.at_risk(RiskLevel::High));
        }
        let shown = if interpreter == "python" { super::process::shown(code) } else { None };
        let code_of_calls = shown.as_ref().map_or(code, |shown| shown.rest.as_str());
        let lower_of_calls = shown.as_ref().map(|shown| shown.rest.to_ascii_lowercase());
        let lower_of_calls = lower_of_calls.as_deref().unwrap_or(&lower);
        let has_call = |list: &List| list.iter().any(|call| has_word(lower_of_calls, call));
        // Text in backticks is a command line.
        let has_ticks = matches!(interpreter, "ruby" | "perl" | "php") && (code.contains('`') || code.contains("%x"));
        let runs = !only_edits(interpreter, code) && (has_ticks || has_call(&marks.runs) || calls_code(code_of_calls));
        if runs || acts.iter().any(|act| act.risk >= Some(RiskLevel::High)) {
            self.unclear("code", code);
        } else {
            let act = Act::new("run", "code", Resource::Code, Operation::Execute, 0.8);
            acts.push(act.at_risk(RiskLevel::Medium));
        }
        if let Some(path) = guard::named_in(code) {
            // Code that names such a file counts without checking whether it only reads it.
            acts.push(guard::write(path));
        }
        for act in acts {
            self.reading.push(act.told_by(code));
        }
        let writes = has(&marks.writes);
        for literal in literals(code).into_iter().take(MOST_LITERALS) {
            self.file(&literal);
            if writes && literal.len() > 1 && place::is_system(&literal) {
                self.reading.extend(access::written(&literal));
            }
            if runs {
                self.known_line(&literal, depth);
            }
        }
        for line in shown.iter().flat_map(|shown| &shown.lines) {
            self.line(line, depth + 1);
        }
    }

    /// Reads the text that a PowerShell parameter holds encoded.
    fn encoded_command(&mut self, text: &str, depth: usize) {
        let Some(bytes) = base64_bytes(text) else { return self.unclear("code", text) };
        let text: String = bytes.iter().filter(|byte| **byte != 0).map(|byte| char::from(*byte)).collect();
        self.unclear("code", &text);
        self.line(&text, depth + 1);
    }
}

/// Returns whether a text is a command in the encoding of PowerShell.
fn is_encoded(text: &str) -> bool {
    text.len() >= SHORTEST_ENCODED
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='))
}

/// Returns whether `perl -pe 's/a/b/'` is a single substitution that runs nothing.
fn only_edits(interpreter: &str, code: &str) -> bool {
    let code = code.trim().trim_end_matches(';');
    let begins = code.strip_prefix('s').or_else(|| code.strip_prefix("tr")).or_else(|| code.strip_prefix('y'));
    matches!(interpreter, "perl" | "ruby")
        && begins.is_some_and(|rest| rest.starts_with(['/', '|', '#', ',', '!', '@', '~']))
        && !["(?{", "(??{", "@{", "${", "`", "\n", "@["].iter().any(|part| code.contains(part))
        && super::sed::is_one_substitution(code)
}

/// The string literals of a piece of code, with the neighbors of a list joined: `['rm', '-rf', '/']`.
fn literals(code: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut list: Vec<String> = Vec::new();
    let mut chars = code.chars();
    let mut between = String::new();
    let mut lists: Vec<String> = Vec::new();
    while let Some(c) = chars.next() {
        if !matches!(c, '\'' | '"' | '`') {
            between.push(c);
            continue;
        }
        if between.trim() != "," && !list.is_empty() {
            lists.push(std::mem::take(&mut list).join(" "));
        }
        between.clear();
        let mut text = String::new();
        while let Some(inner) = chars.next() {
            match inner {
                '\\' => text.extend(chars.next()),
                inner if inner == c => break,
                inner => text.push(inner),
            }
        }
        list.push(text.clone());
        found.push(text);
    }
    lists.push(list.join(" "));
    found.extend(lists.into_iter().filter(|line| line.contains(' ')));
    found.sort_unstable();
    found.dedup();
    found
}

fn without_literals(code: &str) -> String {
    let mut bare = String::new();
    let mut open: Option<char> = None;
    let mut escaped = false;
    for c in code.chars() {
        match open {
            Some(quote) => {
                if c == quote && !escaped {
                    open = None;
                }
                escaped = c == '\\' && !escaped;
            }
            None if matches!(c, '\'' | '"') => open = Some(c),
            None => bare.push(c),
        }
    }
    bare
}

/// An `awk` program without its regular expressions: `/a|b/` behind an operator, a bracket or the start.
fn without_patterns(program: &str) -> String {
    let mut bare = String::with_capacity(program.len());
    let mut rest = program;
    while let Some((before, behind)) = rest.split_once('/') {
        bare.push_str(before);
        let opens = bare.trim_end().chars().next_back().is_none_or(|c| "~({,;!&|}".contains(c));
        let ends = behind.char_indices().scan(false, |is_escaped, (at, c)| {
            let ends = c == '/' && !*is_escaped;
            *is_escaped = c == '\\' && !*is_escaped;
            Some((ends, at, c))
        });
        let end = ends.take_while(|(.., c)| *c != '\n').find_map(|(ends, at, _)| ends.then_some(at));
        rest = if let Some(end) = end.filter(|_| opens) {
            behind.get(end + 1..).unwrap_or("")
        } else {
            bare.push('/');
            behind
        };
    }
    bare.push_str(rest);
    bare
}

/// Returns whether the text contains the call, not as the end of a longer name.
fn has_word(text: &str, call: &str) -> bool {
    text.match_indices(call).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + call.len()..).and_then(|after| after.chars().next());
        before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
            && (call.ends_with('(') || after.is_none_or(|c| !c.is_alphanumeric() && c != '_'))
    })
}

/// Returns whether a text calls something that runs programs or removes files, in any programming language.
pub(in crate::format) fn calls_code(text: &str) -> bool {
    // Most sentences contain no mark of a call.
    let may_call = text.bytes().any(|byte| matches!(byte, b'(' | b'_'))
        || ["os.", "fs.", "::", "ctypes.", "!!", "!ruby", "py/"].iter().any(|part| text.contains(part));
    if !may_call {
        return false;
    }
    let text = text.to_ascii_lowercase();
    calls().marks.iter().any(|call| {
        text.match_indices(call).any(|(at, _)| {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            // "retrieval(" is not "eval(".
            before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
        })
    })
}

/// Returns whether an `awk` program contains a pipe or a redirection.
pub(super) fn awk_writes_or_runs(program: &str) -> bool {
    let bare = without_patterns(&without_literals(&program.replace("||", "")));
    program.contains('{')
        && (bare.contains('|')
            || bare.contains("print >")
            || bare.contains("> ") && bare.contains("print") && program.contains("> \"")
            || program.contains(">\"")
            || calls().awk_calls.iter().any(|call| bare.contains(call)))
}

const MOST_LITERALS: usize = 16;
/// Minimum length of an encoded command, in bytes.
const SHORTEST_ENCODED: usize = 16;
/// Maximum number of lines of a build file that are read.
const MOST_RECIPES: usize = 64;
/// Maximum length of an editor's command before its exclamation mark.
const SHORT_COMMAND: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_of_a_list_are_one_command() {
        let found = literals("subprocess.run(['rm', '-rf', \"/srv\"])");
        assert!(found.contains(&"rm -rf /srv".to_owned()), "{found:?}");
    }

    #[test]
    fn a_call_that_runs_programs_is_told_from_a_word_ending_like_it() {
        for (text, expected) in [
            ("subprocess.run(['ls'])", true),
            ("require('child_process').exec('x')", true),
            ("Runtime.getRuntime().exec(\"x\")", true),
            ("!!python/object/apply:os.system [id]", true),
            ("the retrieval(x)", false),
            ("run the subprocess", false),
        ] {
            assert_eq!(calls_code(text), expected, "{text}");
        }
    }

    #[test]
    fn a_bar_in_a_pattern_of_awk_is_no_pipe() {
        for (program, expected) in [
            ("/^a|b/ { print $1 }", false),
            ("{ if ($0 ~ /\\.x\\/y|z/) print }", false),
            ("{ n = $1 / 2; print n | \"sh\" }", true),
            ("/a/ { print | \"sh\" } /b/", true),
            ("{ print $1 / $2 | \"sort /x\" }", true),
        ] {
            assert_eq!(awk_writes_or_runs(program), expected, "{program}");
        }
    }
}
