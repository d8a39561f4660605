//! Expressing permissions of commands as globs over the commands of a call.

use rulekeep::intent::Parser;
use serde_json::{Map, json};

use super::{Effect, Host};

/// A glob over commands, and the reason why it matches more than the permission; `None` if it does not.
pub(super) struct Expressed {
    pub(super) glob: String,
    pub(super) wider: Option<&'static str>,
}

/// Returns the glob for a permission of commands, or the reason why a permission that allows is left out. A glob that
/// is not exact matches more, which only a restriction may.
pub(super) fn express(host: Host, tool: &str, said: &str, effect: Effect) -> Result<Expressed, String> {
    let (text, wild) = text_of(host, said, effect);
    let is_literal = said.contains(|c| matches!(c, '*' | '?') && !wild.contains(&c));
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let assigned = words.iter().take_while(|word| is_assignment(word)).count();
    words.drain(..assigned);
    let text = words.join(" ");
    let plain = text.find(UNSEEN).and_then(|end| text.get(..end)).map(str::to_owned);
    let unseen = || text.chars().find_map(why_unseen);
    let wider = if assigned > 0 {
        Some("variables that are set for a command are acts of their own")
    } else {
        unseen().or(is_literal.then_some("a * or ? that the host takes literally is a pattern to rules"))
    };
    let glob = match plain {
        Some(start) => format!("{start}*"),
        None if text.is_empty() => "*".to_owned(),
        None => text,
    };
    if effect == Effect::Allow {
        if let Some(why) = wider {
            return Err(format!("left out: {why}"));
        }
        if glob == "*" && said.trim() != "*" {
            return Err("left out: it names no command".to_owned());
        }
        if glob.chars().count() > MAX_GLOB {
            return Err(format!("left out: a pattern has at most {MAX_GLOB} characters"));
        }
        if !is_one_command(tool, &glob) {
            return Err("left out: it runs another command; an allow must list both".to_owned());
        }
    }
    match glob.char_indices().nth(MAX_GLOB) {
        Some((end, _)) => Ok(Expressed { glob: format!("{}*", &glob[..end]), wider: Some("a pattern is cut there") }),
        None => Ok(Expressed { glob, wider }),
    }
}

/// The reason why rules do not compare a character of a command.
fn why_unseen(c: char) -> Option<&'static str> {
    Some(match c {
        '"' | '\'' | '\\' => "commands are compared without quotes",
        '$' | '`' => "variables and substitutions are not known before the command runs",
        '&' | '|' | ';' | '(' | ')' | '{' | '}' => "each command of a line is compared by itself",
        '<' | '>' => "redirections are acts of their own",
        '#' => "a comment is no part of a command",
        _ => return None,
    })
}

/// The glob that the host's form of a permission means, and the wildcards that the host knows.
fn text_of(host: Host, said: &str, effect: Effect) -> (String, &'static [char]) {
    match host {
        // SOURCE: code.claude.com/docs/en/permissions: `:*` at the end is the same as ` *`.
        Host::Claude => (said.strip_suffix(":*").map_or_else(|| said.to_owned(), |start| format!("{start} *")), &['*']),
        // The first word is the program, and what stands behind a colon are its arguments.
        Host::Cursor => {
            let text = match said.split_once(':') {
                Some((program, arguments)) if !program.contains(char::is_whitespace) => {
                    format!("{} {}", program.trim(), arguments.trim())
                }
                _ if effect < Effect::Allow || !said.contains(char::is_whitespace) => format!("{said} *"),
                _ => said.to_owned(),
            };
            (text, &['*', '?'])
        }
        // Words that a command begins with.
        Host::Codex | Host::Gemini => (format!("{said} *"), &[]),
        Host::Opencode => (said.to_owned(), &['*', '?']),
    }
}

/// Returns whether a command that matches a glob is a single command without wrappers.
fn is_one_command(tool: &str, glob: &str) -> bool {
    let sample = glob.replace(['*', '?'], "x");
    let text = json!({ "tool": tool, "arguments": { "command": sample } }).to_string();
    let parsed = Parser::new().ok().zip("import".parse().ok());
    let parsed = parsed.and_then(|(parser, agent)| parser.parse_text(&agent, &text, &Map::new()).ok());
    let facts = parsed.map(|parsed| parsed.intent.facts());
    facts.is_some_and(|facts| matches!(facts.acts.as_slice(), [act] if act.commands == [sample]))
}

fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Characters that a command as rules see it does not have, or that begin another command.
const UNSEEN: [char; 15] = ['"', '\'', '\\', '`', '$', '&', '|', ';', '<', '>', '(', ')', '{', '}', '#'];
const MAX_GLOB: usize = 200;
