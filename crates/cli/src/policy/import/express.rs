//! Expressing permissions as rules: exactly, or narrower if they allow, or wider if they ask and deny.

use super::command;
use super::{Effect, Host, Import, Permission, Subject};
use crate::policy::toml_text;

/// The names of a host's own tools.
pub(super) struct HostTools {
    pub(super) shell: &'static [&'static str],
    pub(super) read: &'static [&'static str],
    pub(super) change: &'static [&'static str],
    pub(super) fetch: &'static [&'static str],
}

impl Host {
    pub(super) const fn tools(self) -> HostTools {
        match self {
            Self::Claude => HostTools {
                shell: &["Bash", "PowerShell"],
                read: &["Read", "Grep", "Glob", "LS", "NotebookRead"],
                change: &["Edit", "MultiEdit", "Write", "NotebookEdit"],
                fetch: &["WebFetch"],
            },
            Self::Codex => HostTools {
                shell: &["Bash", "shell", "local_shell", "exec_command"],
                read: &["view_image"],
                change: &["apply_patch"],
                fetch: &["web_search"],
            },
            Self::Cursor => HostTools {
                shell: &["Shell", "run_terminal_cmd"],
                read: &["Read", "Grep", "read_file", "grep", "list_dir"],
                change: &["Write", "Edit", "Delete", "edit_file", "search_replace", "delete_file"],
                fetch: &["WebFetch", "web_fetch"],
            },
            Self::Gemini => HostTools {
                shell: &["run_shell_command"],
                read: &["read_file", "read_many_files", "list_directory", "glob", "search_file_content", "grep_search"],
                change: &["write_file", "replace"],
                fetch: &["web_fetch"],
            },
            Self::Opencode => HostTools {
                shell: &["bash"],
                read: &["read"],
                change: &["edit", "write", "patch", "multiedit", "apply_patch"],
                fetch: &["webfetch"],
            },
        }
    }
}

/// The rules for a permission.
#[derive(Default)]
pub(super) struct Expressed {
    /// The clauses of each rule.
    pub(super) rules: Vec<String>,
    /// The glob of a command that is allowed. One rule lists them all, because a chain of commands is granted only if
    /// one rule covers each of them.
    pub(super) command: Option<String>,
    /// The difference between the rules and the permission, if any.
    pub(super) note: Option<String>,
}

/// Returns the clauses for some tools.
pub(super) fn tools(names: &[impl AsRef<str>]) -> String {
    format!("match.tools = {}\n", list(names))
}

/// Returns the rules for a permission, or the reason why it is left out.
pub(super) fn rules(import: &Import<'_>, permission: &Permission) -> Result<Expressed, String> {
    let (own, effect) = (import.host.tools(), permission.effect);
    let exactly = |rules: Vec<String>| Ok(Expressed { rules, ..Expressed::default() });
    match &permission.subject {
        Subject::Shell { tools: named, command } => shell(import.host, named, command.as_deref(), permission),
        Subject::Fetch(None) => exactly(vec![tools(own.fetch)]),
        Subject::Fetch(Some(host)) => {
            let clause = hosts(host, effect)?;
            let is_wider = clause.is_empty() && host != "*";
            let note = is_wider.then(|| "it names no host, so it holds for all pages".to_owned());
            Ok(Expressed { rules: vec![tools(own.fetch) + &clause], note, ..Expressed::default() })
        }
        Subject::Tools(names) => exactly(vec![tools(names)]),
        Subject::Server(server, names) => {
            let named = if names == "*" { String::new() } else { tools(&[names]) };
            exactly(vec![on_server(server) + &named])
        }
        Subject::ServerBut(server, but) => {
            exactly(vec![on_server(server) + &format!("match.not.tools = {}\n", list(but))])
        }
        Subject::Files { changed, pattern } => {
            let named = if *changed { own.change } else { own.read };
            // An exception that cannot be expressed is dropped.
            let (except, lost) = match excepted(import, permission) {
                Ok(clause) => (clause, None),
                Err(_) => (String::new(), Some("its exceptions are left out".to_owned())),
            };
            let Some(pattern) = pattern else {
                return Ok(Expressed { rules: vec![tools(named) + &except], note: lost, ..Expressed::default() });
            };
            if effect == Effect::Allow {
                let regex = allowed_paths(import, pattern)?;
                return exactly(vec![tools(named) + &format!("match.context = [{}]\n", on_paths(&regex))]);
            }
            // A command line can read and change files too.
            let named = [named, own.shell].concat();
            let globs = format!("match.paths = {}\n", list(&restricted_paths(import.host, pattern)));
            Ok(Expressed {
                rules: vec![tools(&named) + &globs + &except],
                note: Some("holds for such a path in any folder, and for calls whose files are unknown".to_owned()),
                ..Expressed::default()
            })
        }
        Subject::Other(Some(tool)) if effect < Effect::Allow => Ok(Expressed {
            rules: vec![tools(&[tool])],
            note: Some("rules do not see this part of a call, so it holds for the whole tool".to_owned()),
            ..Expressed::default()
        }),
        Subject::Other(_) => Err(match effect {
            Effect::Allow => "left out: rules have no word for it".to_owned(),
            Effect::Ask | Effect::Deny => "rules have no word for it; keep it in the host's settings".to_owned(),
        }),
    }
}

/// Returns the rules for the commands of a permission.
fn shell(host: Host, named: &[&str], said: Option<&str>, permission: &Permission) -> Result<Expressed, String> {
    let (effect, tool) = (permission.effect, named.first().copied().unwrap_or_default());
    let mut clauses = tools(named);
    let mut notes = Vec::new();
    match said {
        // PowerShell compares names without case, which globs over commands do not.
        Some(_) if named == ["PowerShell"] && effect < Effect::Allow => {
            notes.push("PowerShell ignores case, so it holds for all of its commands".to_owned());
        }
        Some(said) => {
            let command = command::express(host, tool, said, effect)?;
            if effect == Effect::Allow {
                return Ok(Expressed { command: Some(command.glob), ..Expressed::default() });
            }
            clauses = clauses + "match.commands = " + &list(&[&command.glob]) + "\n";
            if let Some(why) = command.wider {
                notes.push(format!("{why}, so it holds for every command with that beginning"));
            }
        }
        None => {}
    }
    // An exception must not be wider than what the host excepts.
    let except = permission.except.iter().map(|said| command::express(host, tool, said, Effect::Allow));
    let (except, lost): (Vec<_>, Vec<_>) = except.partition(Result::is_ok);
    let except: Vec<String> = except.into_iter().flatten().map(|command| command.glob).collect();
    if !lost.is_empty() {
        notes.push("exceptions that rules cannot express are left out".to_owned());
    }
    if !except.is_empty() {
        clauses = clauses + "match.not.commands = " + &list(&except) + "\n";
    }
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    Ok(Expressed { rules: vec![clauses], note, ..Expressed::default() })
}

/// Returns the clause for pages of a host. A restriction also matches the hosts below it.
fn hosts(host: &str, effect: Effect) -> Result<String, String> {
    let host = host.trim().to_ascii_lowercase();
    if host == "*" {
        return Ok(String::new());
    }
    let name = host.trim_start_matches("*.");
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let is_host = !name.is_empty() && name.chars().all(is_name);
    match effect {
        Effect::Allow if is_host => Ok(format!("match.hosts = {}\n", list(&[&host]))),
        Effect::Allow => Err("left out: expected the name of a host, such as docs.rs or *.docs.rs".to_owned()),
        Effect::Ask | Effect::Deny if is_host => {
            Ok(format!("match.hosts = {}\n", list(&[name.to_owned(), format!("*.{name}")])))
        }
        Effect::Ask | Effect::Deny => Ok(String::new()),
    }
}

fn on_server(server: &str) -> String {
    format!("match.servers = {}\n", list(&[server]))
}

/// Returns the paths on which later permissions of the host decide differently.
fn excepted(import: &Import<'_>, permission: &Permission) -> Result<String, String> {
    let regexes = permission.except.iter().map(|pattern| allowed_paths(import, pattern));
    let clauses: Vec<String> = regexes.map(|regex| regex.map(|regex| on_paths(&regex))).collect::<Result<_, _>>()?;
    Ok(if clauses.is_empty() { String::new() } else { format!("match.not.context = [{}]\n", clauses.join(", ")) })
}

fn on_paths(regex: &str) -> String {
    format!("{{ key = \"facts.paths\", matches = {} }}", toml_text(regex))
}

/// Returns a pattern of the host as a regular expression over absolute paths that matches nothing else.
fn allowed_paths(import: &Import<'_>, pattern: &str) -> Result<String, String> {
    if pattern.contains(['[', ']', '{', '}', '!', '\\']) {
        return Err("left out: of patterns only *, ** and ? are understood".to_owned());
    }
    let is_claude = import.host == Host::Claude;
    let (absolute, rest) = match pattern {
        _ if pattern.starts_with('~') || pattern.starts_with('$') => {
            return Err("left out: write the home folder as an absolute path".to_owned());
        }
        _ if is_claude && pattern.starts_with("//") => (true, &pattern[1..]),
        _ if !is_claude && pattern.starts_with('/') => (true, pattern),
        _ => (false, pattern.trim_start_matches("./").trim_start_matches('/')),
    };
    // As in `.gitignore`, a name without a folder matches in any folder.
    let anywhere = if is_claude && !pattern.trim_end_matches('/').contains('/') { "(?:.*/)?" } else { "" };
    let mut regex = match (&import.root, absolute) {
        (_, true) => "^".to_owned(),
        (Some(root), false) => format!("^{}/{anywhere}", escaped(root)),
        (None, false) => return Err("left out: it belongs to a folder that is not known; give --root DIR".to_owned()),
    };
    let mut left = rest;
    while let Some(first) = left.chars().next() {
        let (taken, written) = match left {
            _ if left.starts_with("**/") => (3, "(?:.*/)?".to_owned()),
            _ if left.starts_with("**") => (2, ".*".to_owned()),
            _ if first == '*' => (1, "[^/]*".to_owned()),
            _ if first == '?' => (1, "[^/]".to_owned()),
            _ => (first.len_utf8(), escaped(&first.to_string())),
        };
        regex.push_str(&written);
        left = left.get(taken..).unwrap_or_default();
    }
    if regex.len() > MAX_LENGTH {
        return Err(format!("left out: a pattern has at most {MAX_LENGTH} bytes as a regular expression"));
    }
    Ok(regex + "$")
}

/// Returns a pattern of the host as globs that match it in any folder, whatever it is relative to, and everything
/// below.
fn restricted_paths(host: Host, pattern: &str) -> Vec<String> {
    let is_absolute = pattern.starts_with(if host == Host::Claude { "//" } else { "/" });
    let mut rest = pattern;
    while let Some(shorter) = ["./", "/", "~/", "$HOME/", "**/"].iter().find_map(|start| rest.strip_prefix(start)) {
        rest = shorter;
    }
    // After a character that globs do not support, anything may follow.
    let known = rest.find(['[', '{', '!', '\\']).map_or_else(|| rest.to_owned(), |end| format!("{}*", &rest[..end]));
    let plain = known.replace("**/", "*").replace("**", "*");
    let plain =
        plain.char_indices().nth(MAX_GLOB).map_or_else(|| plain.clone(), |(end, _)| format!("{}*", &plain[..end]));
    let plain = if plain.is_empty() { "*" } else { plain.trim_end_matches('/') };
    let starts: &[&str] = if is_absolute { &["/"] } else { &["", "*/"] };
    starts.iter().flat_map(|start| [format!("{start}{plain}"), format!("{start}{plain}/*")]).collect()
}

const MAX_LENGTH: usize = 1_000;
const MAX_GLOB: usize = 200;

fn escaped(text: &str) -> String {
    text.chars()
        .flat_map(|c| (c.is_ascii_punctuation() && c != '/').then_some('\\').into_iter().chain(Some(c)))
        .collect()
}

pub(super) fn list(names: &[impl AsRef<str>]) -> String {
    format!("[{}]", names.iter().map(|name| toml_text(name.as_ref())).collect::<Vec<_>>().join(", "))
}
