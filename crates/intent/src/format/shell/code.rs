//! Code passed to an interpreter: always an execution. Within it, the commands it runs, the files it removes and the
//! data it sends are read.

use crate::codes::base64_bytes;
use crate::format::dangers;
use crate::reading::Act;
use rulekeep_types::{Operation, Resource, RiskLevel};

use super::{Shell, base_name};

impl Shell<'_, '_> {
    /// Reads a piece of code.
    pub(super) fn code(&mut self, interpreter: &str, code: &str, depth: usize) {
        if only_computes(code) || calls_only_harmless(interpreter, code) || only_edits(interpreter, code) {
            let act = Act::new("run", "code", Resource::Code, Operation::Execute, 0.8);
            self.reading.push(act.at_risk(RiskLevel::Medium).told_by(code));
            return;
        }
        self.unclear("code", code);
        let lower = code.to_ascii_lowercase();
        let has = |list: &str| dangers::items(list).iter().any(|call| has_word(&lower, call));
        if has("code_deletes") {
            let act = Act::new("delete", "files", Resource::File, Operation::Delete, 0.7);
            self.reading.push(act.at_risk(RiskLevel::High).told_by(code));
        }
        if has("code_empties") {
            let act = Act::new("delete", "records", Resource::Database, Operation::Delete, 0.7);
            self.reading.push(act.at_risk(RiskLevel::High).told_by(code));
        }
        if has("code_sends") {
            self.sends = true;
            let act = Act::new("send", "data", Resource::Web, Operation::Send, 0.7);
            self.reading.push(act.at_risk(RiskLevel::Medium).told_by(code));
        }
        if has("code_modes") {
            let act = Act::new("change", "mode", Resource::Permission, Operation::Admin, 0.7);
            self.reading.push(act.at_risk(RiskLevel::High).told_by(code));
        }
        let runs = has("code_runs") || dangers::calls_code(code);
        for literal in literals(code).into_iter().take(MOST_LITERALS) {
            self.file(&literal);
            let first = literal.split_whitespace().next().unwrap_or("");
            let is_known = self.lexicon.programs.knows(base_name(first));
            if runs && is_known && depth < super::DEEPEST {
                self.line(&literal, depth + 1);
            }
        }
    }

    /// Reads code in an argument: `python -c`, `perl -e`, `powershell` with anything.
    pub(super) fn given_code(&mut self, name: &str, arguments: &[&str], depth: usize) {
        if matches!(name, "iex" | "invoke-expression" | "invoke-command") {
            self.unclear("code", name);
            self.line(&arguments.join(" "), depth + 1);
            return;
        }
        if dangers::holds("powershells", name) {
            self.powershell(name, arguments, depth);
            return;
        }
        for entry in dangers::parts("framework_code", name) {
            self.framework_code(entry, arguments, depth);
        }
        let versioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        if dangers::holds("shells", name)
            || !dangers::holds("interpreters", name) && !dangers::holds("interpreters", versioned)
        {
            return;
        }
        let flags = arguments.iter().take_while(|argument| argument.starts_with('-') || **argument == "eval").count();
        let mut found = false;
        for (place, argument) in arguments.iter().take(flags).enumerate() {
            let (flag, value) = argument.split_once('=').map_or((*argument, None), |(flag, value)| (flag, Some(value)));
            let is_code = dangers::holds("code_flags", &flag.to_ascii_lowercase())
                || dangers::holds("code_flags", flag)
                || *argument == "eval"
                || is_code_cluster(argument);
            if !is_code {
                continue;
            }
            found = true;
            match value.or_else(|| glued(argument)).or_else(|| arguments.get(place + 1).copied()) {
                Some(code) => self.code(name, code, depth),
                None => self.unclear("code", name),
            }
        }
        let is_program = dangers::holds("filters", name) || versioned == "awk";
        if !found && is_program {
            for program in arguments.iter().filter(|program| awk_writes_or_runs(program)) {
                self.unclear("code", program);
                self.awk(program, depth);
            }
        }
    }

    /// Reads `rails runner 'x'` or `artisan tinker --execute=x`: an entry `word:language`, and the code after the
    /// word.
    fn framework_code(&mut self, entry: &str, arguments: &[&str], depth: usize) {
        let Some((word, language)) = entry.split_once(':') else { return };
        let behind = arguments.iter().enumerate().find_map(|(place, argument)| match argument.split_once('=') {
            Some((flag, code)) if flag == word && flag.starts_with('-') => Some(code),
            _ if *argument == word => arguments.get(place + 1).copied(),
            _ => None,
        });
        if let Some(code) = behind {
            self.code(language, code, depth);
        }
    }

    /// Reads `powershell -Command x` or `cmd /c x`: the command, which is always unclear.
    fn powershell(&mut self, name: &str, arguments: &[&str], depth: usize) {
        if arguments.iter().all(|argument| matches!(*argument, "-v" | "-Version" | "--version" | "/?")) {
            return;
        }
        self.unclear("code", name);
        if name == "osascript" {
            for text in arguments {
                for literal in literals(text).into_iter().take(MOST_LITERALS) {
                    if text.contains("shell script") {
                        self.line(&literal, depth + 1);
                    }
                }
            }
            return;
        }
        let is_command = |flag: &str| {
            let flag = flag.to_ascii_lowercase();
            matches!(flag.as_str(), "-c" | "-command" | "/c" | "/k" | "/r" | "-commandwithargs")
        };
        if let Some(place) = arguments.iter().position(|flag| is_command(flag)) {
            let text = arguments.get(place + 1..).unwrap_or(&[]).join(" ");
            self.line(text.trim_matches(['{', '}', '&', ' ']), depth + 1);
        } else if let Some(place) = arguments.iter().position(|word| !word.starts_with(['-', '/'])) {
            // Everything that is not a parameter's value is the command, and is read as such in any case.
            self.line(&arguments.get(place..).unwrap_or(&[]).join(" "), depth + 1);
        }
        let encoded = arguments.iter().position(|flag| {
            flag.len() > 1 && "-encodedcommand".starts_with(&flag.to_ascii_lowercase())
                || flag.eq_ignore_ascii_case("-ec")
        });
        if let Some(bytes) = encoded.and_then(|place| arguments.get(place + 1)).and_then(|text| base64_bytes(text)) {
            let text: String = bytes.iter().filter(|byte| **byte != 0).map(|byte| char::from(*byte)).collect();
            self.line(&text, depth + 1);
        }
    }

    /// Reads the commands in an `awk` program: `system("x")`, `print | "x"`, `"x" | getline`.
    fn awk(&mut self, program: &str, depth: usize) {
        for literal in literals(program).into_iter().take(MOST_LITERALS) {
            let first = literal.split_whitespace().next().unwrap_or("");
            if self.lexicon.programs.knows(base_name(first)) {
                self.line(&literal, depth + 1);
            }
        }
    }
}

/// Returns whether an argument is a flag cluster with code: `-lne`, `-Ic`, `-e'print'`.
fn is_code_cluster(argument: &str) -> bool {
    argument.starts_with('-')
        && !argument.starts_with("--")
        && argument.len() > 2
        && (argument.ends_with(['c', 'e', 'E', 'r']) && argument.len() <= LONGEST_CLUSTER
            || argument.starts_with("-c")
            || argument.starts_with("-e"))
}

/// The code of `-e'print 1'` without the flag.
fn glued(argument: &str) -> Option<&str> {
    argument
        .get(2..)
        .filter(|_| argument.starts_with("-e") || argument.starts_with("-c"))
        .filter(|rest| rest.contains(['(', ' ', ';', '"', '\'']))
}

/// Returns whether code only computes and prints: every name in it is known to be harmless.
fn only_computes(code: &str) -> bool {
    if code.contains(['`', '<', '>', '$', '|', '&']) || code.len() > LONGEST_HARMLESS {
        return false;
    }
    if !code.contains('(') {
        // "1+1"
        return code.bytes().any(|byte| byte.is_ascii_digit()) && !code.bytes().any(|byte| byte.is_ascii_alphabetic());
    }
    let bare = without_literals(code);
    let mut names = bare.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty()).peekable();
    names.peek().is_some()
        && names.all(|name| {
            name.starts_with(|c: char| c.is_ascii_digit()) || name.len() == 1 || dangers::holds("code_harmless", name)
        })
}

/// The same for languages whose calls always have brackets: everything called and imported is known to be harmless,
/// and nothing with a wider reach is named.
fn calls_only_harmless(interpreter: &str, code: &str) -> bool {
    if !dangers::items("bracket_callers").iter().any(|known| interpreter.starts_with(known.as_str()))
        || code.contains(['`', '$'])
        || code.contains("__")
        || !code.contains('(')
        || code.len() > LONGEST_HARMLESS
    {
        return false;
    }
    let bare = without_literals(code);
    let mut is_import = false;
    let mut start = None;
    for (at, c) in bare.char_indices().chain([(bare.len(), ' ')]) {
        if c.is_alphanumeric() || c == '_' {
            start = start.or(Some(at));
            continue;
        }
        let Some(begun) = start.take() else {
            is_import &= c != ';' && c != '\n';
            continue;
        };
        let name = bare.get(begun..at).unwrap_or("");
        let is_called = bare.get(at..).is_some_and(|rest| rest.trim_start().starts_with('('));
        let is_safe = !dangers::holds("code_unsafe", name)
            && (!is_called && !is_import
                || dangers::holds("code_harmless", name)
                || dangers::holds("code_words", name));
        if !is_safe {
            return false;
        }
        is_import = (is_import || matches!(name, "import" | "from")) && c != ';' && c != '\n';
    }
    true
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

/// Returns whether the text contains the call, not as the end of a longer name.
fn has_word(text: &str, call: &str) -> bool {
    text.match_indices(call).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + call.len()..).and_then(|after| after.chars().next());
        before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
            && (call.ends_with('(') || after.is_none_or(|c| !c.is_alphanumeric() && c != '_'))
    })
}

/// Returns whether an `awk` program contains a pipe or a redirection.
pub(super) fn awk_writes_or_runs(program: &str) -> bool {
    let bare = without_literals(&program.replace("||", ""));
    program.contains('{')
        && (bare.contains('|')
            || bare.contains("print >")
            || bare.contains("> ") && bare.contains("print") && program.contains("> \"")
            || program.contains(">\"")
            || dangers::items("awk_calls").iter().any(|call| bare.contains(call.as_str())))
}

const MOST_LITERALS: usize = 16;
const LONGEST_CLUSTER: usize = 6;
const LONGEST_HARMLESS: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_of_a_list_are_one_command() {
        let found = literals("subprocess.run(['rm', '-rf', \"/srv\"])");
        assert!(found.contains(&"rm -rf /srv".to_owned()), "{found:?}");
    }

    #[test]
    fn code_that_only_computes_is_told_from_code_that_may_do_more() {
        for (code, expected) in [
            ("print(2**10)", true),
            ("console.log(Math.max(1, 2))", true),
            ("print(sum(range(10)))", true),
            ("import os", false),
            ("open('x').read()", false),
            ("print(open('x'))", false),
            ("x", false),
        ] {
            assert_eq!(only_computes(code), expected, "{code}");
        }
    }
}
