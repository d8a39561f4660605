//! Calls of Python with which code runs a program that it names: `subprocess.run(["git", "log", path])`. The command is
//! read instead of the call.

use std::sync::LazyLock;

use regex::Regex;

/// The commands that a piece of code runs, and the code without these calls.
pub(super) struct Shown {
    pub(super) lines: Vec<String>,
    pub(super) rest: String,
}

/// Returns the commands, if the code has such calls and shows the program of each.
pub(super) fn shown(code: &str) -> Option<Shown> {
    let call = CALL.as_ref()?;
    // What the code changes around its calls, or feeds them, their words do not show.
    if ELSEWHERE.iter().any(|part| code.contains(part)) {
        return None;
    }
    let mut shown = Shown { lines: Vec::new(), rest: String::with_capacity(code.len()) };
    let mut done = 0;
    for found in call.find_iter(code) {
        let (line, end) = command(code, found.end())?;
        let options = call_end(code.get(end..)?)?;
        if CHANGING.iter().any(|part| options.contains(part)) {
            return None;
        }
        if shown.lines.len() >= MOST_CALLS || found.start() < done {
            return None;
        }
        shown.rest.push_str(code.get(done..found.start())?);
        shown.rest.push_str("shown(");
        done = end;
        shown.lines.push(line);
    }
    shown.rest.push_str(code.get(done..)?);
    // What is left of the module's name names no effect: its import, and its constants.
    shown.rest = MODULE.as_ref()?.replace_all(&shown.rest, "shown").into_owned();
    (!shown.lines.is_empty()).then_some(shown)
}

/// Reads the first argument of a call: a text, which a shell reads, or a list of words. Returns the command line and the
/// place behind it.
fn command(code: &str, start: usize) -> Option<(String, usize)> {
    let mut at = start + blanks(code.get(start..)?);
    if !code.get(at..)?.starts_with('[') {
        let (text, behind) = literal(code, at)?;
        let next = code.get(behind..)?.trim_start();
        // A text that is joined to another or filled in is not all of the command.
        return next.starts_with(BEHIND).then_some((text, behind));
    }
    at += 1;
    let mut words: Vec<String> = Vec::new();
    loop {
        at += blanks(code.get(at..)?);
        let rest = code.get(at..)?;
        if rest.starts_with(']') {
            break;
        }
        if words.len() >= MOST_WORDS {
            return None;
        }
        match literal(code, at).filter(|(_, behind)| is_end(code, *behind)) {
            Some((text, behind)) => {
                words.push(format!("'{}'", text.replace('\'', "'\\''")));
                at = behind;
            }
            None if words.is_empty() && rest.starts_with("sys.executable") => {
                words.push("python3".to_owned());
                at += "sys.executable".len();
            }
            // The program itself must be shown.
            None if words.is_empty() => return None,
            None => {
                let filled = rest.strip_prefix('f').and_then(|_| literal(code, at + 1)).map(|(_, behind)| behind);
                at = match filled.filter(|behind| is_end(code, *behind)) {
                    Some(behind) => behind,
                    None => Some(at + VALUE.as_ref()?.find(rest)?.end()).filter(|behind| is_end(code, *behind))?,
                };
                words.push("\"$VALUE\"".to_owned());
            }
        }
        at += blanks(code.get(at..)?);
        if code.get(at..)?.starts_with(',') {
            at += 1;
        }
    }
    let is_all = code.get(at + 1..)?.trim_start().starts_with(BEHIND);
    (is_all && !words.is_empty()).then(|| (words.join(" "), at + 1))
}

/// The rest of a call, up to its bracket. `None` if a text with a bracket stands in it.
fn call_end(rest: &str) -> Option<&str> {
    let mut depth = 0_usize;
    let mut quote = None;
    for (at, c) in rest.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), '(' | ')' | '\\') => return None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')') if depth == 0 => return rest.get(..at),
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// Reads a literal without a prefix. Returns its text and the place behind it.
fn literal(code: &str, at: usize) -> Option<(String, usize)> {
    let rest = code.get(at..)?;
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    if rest.get(1..)?.starts_with(quote) {
        return None;
    }
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((place, c)) = chars.next() {
        match c {
            '\\' => text.extend(chars.next().map(|(_, c)| c)),
            c if c == quote => return Some((text, at + place + 1)),
            '\n' => return None,
            c => text.push(c),
        }
    }
    None
}

fn is_end(code: &str, at: usize) -> bool {
    code.get(at..).is_some_and(|rest| rest.trim_start().starts_with([',', ']']))
}

fn blanks(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

/// Characters that may follow the first argument of a call.
const BEHIND: [char; 2] = [',', ')'];
/// Code that changes where or with what a program runs.
const ELSEWHERE: &[&str] = &["chdir", "environ", "putenv", "communicate(", ".stdin", "getattr", "setattr", "vars("];
/// Options of a call that do so.
const CHANGING: &[&str] =
    &["cwd", "env", "executable", "input", "stdin", "**", "preexec", "open(", "pass_fds", "user", "group"];
const MOST_CALLS: usize = 16;
const MOST_WORDS: usize = 64;

static CALL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\b(?:subprocess\.(?:run|call|check_call|check_output|Popen|getoutput)|os\.(?:system|popen))\(").ok()
});
/// A value of a list that is a name, or a call without texts.
static VALUE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\*?[\w.]+(?:\([\w., ]*\))?\s*").ok());
static MODULE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\bimport\s+(?:[\w.]+\s*,\s*)*subprocess\b|\bsubprocess\.(?:[A-Z][A-Za-z]+)\b|,\s*subprocess\b").ok()
});

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn calls_with_a_shown_program_are_commands() {
        for (code, lines) in [
            ("import subprocess\nsubprocess.run(['git', 'log', path], check=True)", vec!["'git' 'log' \"$VALUE\""]),
            ("import os, subprocess\nsubprocess.check_output([\"uuidgen\"])", vec!["'uuidgen'"]),
            ("subprocess.run(['cat', f'{x}/a', str(y), *more])", vec!["'cat' \"$VALUE\" \"$VALUE\" \"$VALUE\""]),
            ("subprocess.run([sys.executable, '-m', 'pytest'])", vec!["python3 '-m' 'pytest'"]),
            ("os.system('ls -l')\nos.system(\"rm -rf x\")", vec!["ls -l", "rm -rf x"]),
        ] {
            let shown = shown(code).unwrap();
            assert_eq!(shown.lines, lines, "{code}");
            assert!(!shown.rest.contains("subprocess") && !shown.rest.contains("system"), "{}", shown.rest);
        }
    }

    #[test]
    fn a_call_that_hides_its_program_is_a_call() {
        for code in [
            "print('x')",
            "subprocess.run(cmd)",
            "subprocess.run([tool, 'x'])",
            "subprocess.run(['x'] + rest)\nos.system('ls ' + path)",
            "os.system(f'rm {x}')",
            "subprocess.run(['ls', f(x, 'y')])",
            "subprocess.run(['rm'] + ['x'])",
            "subprocess.run(['rm', 'x'], cwd='/srv')",
            "subprocess.run(['bash'], input=b'ls')",
            "os.chdir('/srv'); os.system('ls')",
            "subprocess.run(['rm', 'x'], timeout=f(')'), cwd='/srv')",
            "subprocess.run(['ls'], **{'executable': '/tmp/x'})",
        ] {
            assert!(shown(code).is_none(), "{code}");
        }
        assert!(shown("from subprocess import run\nsubprocess.run(['ls'])").unwrap().rest.contains("subprocess"));
    }
}
