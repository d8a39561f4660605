//! Distinguishes command lines from English.

use crate::format::tables::wording;
use crate::lexicon::Lexicon;
use crate::programs::Style;
use crate::roles::{Role, Roles};

use super::{base_name, is_assignment};

/// Returns whether the text clearly is a command line rather than English.
pub(in crate::format) fn is_command(text: &str, lexicon: &Lexicon) -> bool {
    if is_plain_sentence(text, lexicon) {
        return false;
    }
    let line = text.strip_prefix("$ ").unwrap_or(text);
    let opened = behind_redirection(line).trim_start_matches(['(', '!', ' ']);
    let opened = opened.strip_prefix("{ ").unwrap_or(opened);
    let mut words = behind_assignments(opened).split_whitespace();
    if line.starts_with('>') && line.split_whitespace().count() <= 2 && line.contains('/') {
        // "> file" empties the file.
        return true;
    }
    let Some(whole) = words.next() else { return sets_and_goes_on(opened, lexicon) };
    if whole.starts_with('[') && whole.contains("]::") {
        // A method of .NET.
        return true;
    }
    if text.starts_with("$ ") || whole.starts_with("./") || is_script(line) {
        return true;
    }
    // "ls;rm x" and "cat x|sh" need no blanks; quotes and backslashes are not part of a name.
    let cut = whole.find([';', '|', '&', '<', '>']).filter(|&at| at > 0);
    let bare = whole.get(..cut.unwrap_or(whole.len())).unwrap_or(whole).replace(['\'', '"', '\\'], "");
    let first = bare.as_str();
    let has_flag = line.split_whitespace().skip(1).any(|word| is_flag(word) || first == "kill" && is_signal(word));
    let has_operator = cut.is_some()
        || ["&&", "||", " | ", "$(", " > ", " >> ", "2>", " < ", "<(", "|sh", "|bash", ">/", "> /", "<<"]
            .iter()
            .any(|operator| line.contains(operator));
    let has_operator = has_operator || expands(line) || goes_on(line, lexicon);
    let known = lexicon.programs.knows(base_name(first));
    if is_unknown_until_run(whole) {
        let small = line.split_whitespace().filter(|word| is_small_word(word)).count();
        return whole.starts_with("$(")
            || whole.starts_with("${")
            || whole == "\"$@\""
            || whole.contains("IFS")
            || whole.starts_with('{')
            || small == 0 && (has_flag || has_operator || whole.starts_with('$'));
    }
    let assigns = opened.split_whitespace().next().is_some_and(is_assignment);
    if assigns && known
        || is_windows(first, line, lexicon)
        || is_cmdlet(first)
        || stops_the_machine(first, words.clone())
    {
        return true;
    }
    if !known && !has_flag && !has_operator && !first.starts_with(['/', '~']) {
        return false;
    }
    // Quotations and comments are not words of the sentence.
    let (mut is_english, mut length) = (0, 0);
    let unquoted = unquoted(line);
    let mut written = unquoted.split_whitespace().peekable();
    while let Some(word) = written.next() {
        length += 1;
        // No article ends a sentence: "cat a" has a file.
        let is_last = written.peek().is_none();
        is_english += usize::from(is_small_word(word) && !(is_last && matches!(word, "a" | "an")));
    }
    if first.starts_with(['/', '~']) && first.len() > 1 {
        let is_place = first.matches('/').count() > 1 && is_english == 0;
        if known || has_flag || is_place || words.clone().next().is_none() {
            return true;
        }
    }
    if !known {
        let plain =
            first.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-' | '.' | '+'));
        // "how do i use x --force" is a question.
        return plain && is_english == 0 && !Roles::of(first).is_small();
    }
    let is_also_english = lexicon.is_english(first) && !wording().never_english.has(base_name(first));
    let builds = first == "make" && words.clone().all(|target| wording().make_targets.has(target));
    let only_word = words.next().is_none();
    if builds && !only_word {
        return true;
    }
    if has_flag || has_operator {
        // A long command line may contain some English words; a sentence is full of them.
        return !is_also_english || is_english < 3 || is_english * 5 < length;
    }
    if wording().filler.has(first) {
        return false;
    }
    if is_also_english {
        // "find restaurants" is English, "kill 4711" and "head path/to/file" are not.
        let arguments: Vec<&str> = line.split_whitespace().skip(1).collect();
        let looks_technical = |word: &&str| word.contains(['/', '=', '_']) || word.chars().all(|c| c.is_ascii_digit());
        let has_subcommand = || lexicon.programs.get(first).is_some_and(|program| program.begins_with_sub(&arguments));
        return is_english == 0 && (arguments.iter().any(looks_technical) || has_subcommand())
            || only_word && (first.len() <= 4 || wording().lone_commands.has(first));
    }
    is_english == 0 || only_word || {
        // "aws s3 sync a b": no sentence starts with a program and its subcommand.
        let arguments: Vec<&str> = line.split_whitespace().skip(1).take(MOST_SUBCOMMAND).collect();
        arguments.len() > 1 && lexicon.programs.get(first).is_some_and(|program| program.begins_with_sub(&arguments))
    }
}

/// Returns whether the text is a plain sentence: a capital, an English word, and nothing special to a shell. This
/// answers most sentences quickly.
fn is_plain_sentence(text: &str, lexicon: &Lexicon) -> bool {
    let first = text.split_whitespace().next().unwrap_or("");
    let is_capitalised = first.starts_with(|c: char| c.is_ascii_uppercase())
        && first.bytes().skip(1).all(|byte| byte.is_ascii_lowercase() || matches!(byte, b',' | b'\''));
    is_capitalised
        && !lexicon.programs.knows(first)
        && (!text.contains(':') || !is_windows(first, text, lexicon))
        && !text
            .bytes()
            .any(|byte| matches!(byte, b'|' | b'&' | b';' | b'<' | b'>' | b'$' | b'`' | b'\\' | b'{' | b'=' | b'\n'))
        && !text.as_bytes().windows(2).any(|pair| pair == b" -" || pair == b" /")
        && !matches!(first, "Shutdown" | "Reboot" | "Halt" | "Poweroff")
}

/// The line after the variables that are set for its first command. A value in quotes may have blanks.
fn behind_assignments(line: &str) -> &str {
    let mut rest = line;
    // INVARIANT: each round takes at least one word.
    loop {
        let word = rest.split_whitespace().next().unwrap_or("");
        if !is_assignment(word) {
            return rest;
        }
        let value = word.find('=').map_or(word.len(), |at| at + 1);
        let quoted = rest.get(value..).and_then(|value| value.strip_prefix(['"', '\'']).zip(value.chars().next()));
        let end = match quoted.and_then(|(inside, mark)| inside.find(mark)) {
            Some(close) => value + 1 + close + 1,
            None => word.len(),
        };
        let behind = rest.get(end..).unwrap_or("");
        rest = behind.trim_start();
    }
}

/// The line after a leading redirection: `> out ls`.
fn behind_redirection(line: &str) -> &str {
    let bare = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let Some(rest) = bare.strip_prefix(['>', '<']) else { return line };
    let rest = rest.trim_start_matches(['>', '<', '&', ' ']);
    rest.split_once(' ').map_or(line, |(_, rest)| rest.trim_start())
}

/// The line without quoted text and comments.
fn unquoted(line: &str) -> String {
    let mut bare = String::with_capacity(line.len());
    let mut open: Option<char> = None;
    let mut before = ' ';
    for c in line.chars() {
        match open {
            Some(quote) if c == quote => open = None,
            Some(_) => {}
            None if matches!(c, '\'' | '"') && !before.is_alphanumeric() => open = Some(c),
            None if c == '#' && before.is_whitespace() => break,
            None => bare.push(c),
        }
        before = c;
    }
    bare
}

/// Returns whether the line contains a variable: `"$X"`, `${x}`.
fn expands(line: &str) -> bool {
    line.match_indices('$').any(|(at, _)| {
        line.get(at + 1..)
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '{' | '@')))
    })
}

/// Returns whether a command follows a semicolon or pipe: a program that is not an English word, or one known only at
/// run time.
fn goes_on(line: &str, lexicon: &Lexicon) -> bool {
    line.split([';', '\n', '\r', '|', '&']).skip(1).take(MOST_PARTS).any(|part| {
        let first = part.split_whitespace().next().unwrap_or("");
        first.starts_with('$') && is_unknown_until_run(first)
            || lexicon.programs.knows(base_name(first))
                && first.len() > 1
                && (!lexicon.is_english(first) || wording().never_english.has(first))
    })
}

/// Returns whether an assignment is used at once: `a=rm;$a`.
fn sets_and_goes_on(line: &str, lexicon: &Lexicon) -> bool {
    let mut parts = line.split([';', '\n', '\r', '&']);
    parts.next().is_some_and(is_assignment)
        && parts.take(MOST_PARTS).any(|part| {
            let first = part.split_whitespace().next().unwrap_or("");
            first.starts_with('$') || lexicon.programs.knows(base_name(first))
        })
}

/// Returns whether the shell expands the first word to another one. A sum of money is not expanded.
fn is_unknown_until_run(first: &str) -> bool {
    let is_money = first.strip_prefix('$').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    !is_money
        && (first.contains(['$', '`', '*'])
            || first.contains('{') && first.contains(',') && first.contains('}')
            || first.contains(['?', '[']) && !first.ends_with(['?', ']'])
            || first.starts_with('/') && first.contains('?')
            || first.len() <= 3 && first.ends_with('?'))
}

/// Returns whether the command stops the machine: `reboot`, `shutdown now`, `halt +5`.
fn stops_the_machine<'w>(first: &str, mut words: impl Iterator<Item = &'w str>) -> bool {
    matches!(base_name(first), "shutdown" | "reboot" | "halt" | "poweroff")
        && words.next().is_none_or(|next| next == "now" || next.starts_with(['+', '-']))
}

/// Number of words in which a subcommand is searched.
const MOST_SUBCOMMAND: usize = 4;
/// Number of parts of a line in which a command is searched.
const MOST_PARTS: usize = 16;

/// Returns whether a word has the form of a PowerShell command: `Get-Item`.
fn is_cmdlet(word: &str) -> bool {
    let starts_upper = |part: &str| part.starts_with(|c: char| c.is_ascii_uppercase()) && part.len() > 1;
    word.split_once('-').is_some_and(|(verb, noun)| {
        starts_upper(verb)
            && starts_upper(noun)
            && noun.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && wording().cmdlet_verbs.has(&verb.to_ascii_lowercase())
    })
}

/// Returns whether a word is a signal such as `-9`.
fn is_signal(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns whether the line is a Windows command: `del /s`, `format c:`, `schtasks /create`, `reg delete HKLM`.
fn is_windows(first: &str, line: &str, lexicon: &Lexicon) -> bool {
    let name = first.to_ascii_lowercase();
    let Some(program) = lexicon.programs.exact(&name).filter(|program| program.style == Style::Windows) else {
        return false;
    };
    let is_drive =
        |word: &str| word.len() == 2 && word.ends_with(':') && word.starts_with(|c: char| c.is_ascii_alphabetic());
    // "move /photos to the album" is English.
    let is_long = |rest: &str| lexicon.programs.knows(&name) && rest.bytes().all(|byte| byte.is_ascii_alphabetic());
    let is_switch = |word: &str| word.strip_prefix('/').is_some_and(|rest| rest.len() == 1 || is_long(rest));
    let arguments: Vec<&str> = line.split_whitespace().skip(1).collect();
    program.begins_with_sub(&arguments) || arguments.iter().any(|word| is_drive(word) || is_switch(word))
}

/// Returns whether the line contains a loop, condition or function of the shell.
fn is_script(line: &str) -> bool {
    line.contains("; do ") && line.contains("done")
        || line.starts_with("if ") && line.contains("; then ")
        || line.starts_with("case ") && line.contains(" in") && line.contains(')') && line.ends_with("esac")
        || line.contains("(){")
        || line.contains("() {") && line.contains(';') && !line.contains("function")
}

fn is_flag(word: &str) -> bool {
    let letters = word.trim_start_matches('-');
    word.starts_with('-')
        && letters.len() < word.len()
        && word.len() - letters.len() <= 2
        && letters.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// Returns whether a word is an English function word that command lines hardly ever contain.
fn is_small_word(word: &str) -> bool {
    Roles::of(word).has_any(&[Role::Determiner, Role::Pronoun, Role::Modal, Role::Auxiliary, Role::Preposition])
        && !wording().shared_words.has(word)
}
