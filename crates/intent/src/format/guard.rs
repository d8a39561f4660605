//! The agent's own governance: the policies, store and sockets of Rulekeep, and the hook settings of hosts. An agent
//! that writes there, or issues an operator's orders, changes who may do what: `permission:admin`, CRITICAL.

use std::sync::LazyLock;

use crate::reading::Act;
use crate::sign::Sign;
use regex::Regex;
use rulekeep_types::{Operation, Resource, RiskLevel};

use super::place::{WILD, any_of, could_be, resolved};
use super::tables::places;

/// The act of writing to the agent's governance.
pub(super) fn write(target: &str) -> Act {
    Act::new("change", "governance", Resource::Permission, Operation::Admin, 0.9)
        .at_risk(RiskLevel::Critical)
        .marked(Sign::Control)
        .named_by(target)
}

/// Returns whether a path is a file that governs the agent, or the folder of one.
pub(super) fn governs(path: &str) -> bool {
    let Some(path) = candidate(path) else { return false };
    let may_hold = path.contains(WILD) || FILES.as_ref().is_none_or(|files| files.is_match(&path));
    may_hold && places().governing_files.iter().any(|part| holds_part(&path, part)) || is_folder(&path)
}

/// Returns whether a relative path in this folder may govern the agent.
pub(super) fn is_governing_folder(path: &str) -> bool {
    candidate(path).is_some_and(|path| is_folder(&path) || governs(&path))
}

/// The first part of a text that names a governing file, for example in code that opens one or in a socket address.
pub(super) fn named_in(text: &str) -> Option<&str> {
    if !text.contains(['.', '$', '/']) {
        return None;
    }
    let parts =
        text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '(' | ')' | ',' | ';' | '=' | '>'));
    parts.filter(|part| part.len() > 4).find(|part| governs(part))
}

/// The resolved path with a final slash, if it can name such a file at all.
fn candidate(path: &str) -> Option<String> {
    // Most arguments are not paths, which is quick to see.
    if path.len() > LONGEST || !path.contains(['.', '$', '/', '\\']) {
        return None;
    }
    let path = path.strip_prefix("file://").unwrap_or(path);
    Some(resolved(path).to_ascii_lowercase() + "/")
}

/// Returns whether a path contains a part, also with wildcards. A part of a file is the start of its name.
fn holds_part(path: &str, part: &str) -> bool {
    if path.match_indices(part).any(|(at, _)| is_start(path, at)) {
        return true;
    }
    if !path.contains(WILD) {
        return false;
    }
    let wanted: Vec<&str> = part.trim_end_matches('/').split('/').collect();
    let found: Vec<&str> = path.trim_end_matches('/').split('/').collect();
    found.windows(wanted.len()).any(|window| {
        let pairs = || window.iter().zip(&wanted);
        // Something besides wildcards must identify the file: `*.json` matches any.
        pairs().any(|(found, wanted)| found.starts_with(wanted) || found.find(WILD).is_some_and(|at| at > 2))
            && pairs().all(|(found, wanted)| found.starts_with(wanted) || may_be(found, wanted))
    })
}

/// Returns whether a name with wildcards can start with `wanted`: `sett*`, `set*.json`, `**`.
fn may_be(found: &str, wanted: &str) -> bool {
    let Some(first) = found.find(WILD) else { return false };
    could_be(found, wanted) || found.get(..first).is_some_and(|start| wanted.starts_with(start))
}

fn is_folder(path: &str) -> bool {
    let path = path.trim_end_matches('/').trim_end_matches("/*");
    places()
        .governing_folders
        .iter()
        .any(|folder| path.ends_with(folder) && { is_start(path, path.len() - folder.len()) })
}

/// Returns whether a name starts there: `x.claude/` is another folder.
fn is_start(path: &str, at: usize) -> bool {
    path.get(..at).is_some_and(|before| before.is_empty() || before.ends_with(['/', '@', ':', '~']))
}

static FILES: LazyLock<Option<Regex>> = LazyLock::new(|| any_of(&places().governing_files));
/// Maximum length of a path, in bytes.
const LONGEST: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_governs_is_known_however_its_path_is_written() {
        for path in [
            "~/.rulekeep/policies/policy.toml",
            "/home/a/.rulekeep",
            "$RULEKEEP_HOME/store/log",
            "${HOME}/.claude/settings.json",
            ".claude/settings.local.json",
            "./x/../.claude//settings.json",
            ".cla*/settings.json",
            ".claude/sett*",
            ".claude/*",
            "~/.claude",
            "C:\\Users\\a\\.claude\\settings.json",
            "~/.codex/hooks.json",
            ".codex/config.toml",
            "~/.gemini/trustedFolders.json",
            ".cursor/hooks.json",
            ".github/hooks/rulekeep.json",
            "~/.copilot/hooks/rulekeep.json",
            "~/.agents/plugins/rulekeep/hooks/hooks.json",
            ".opencode/plugins/rulekeep.js",
            "file:///home/a/.claude/settings.json",
        ] {
            assert!(governs(path), "{path}");
        }
        for path in [
            ".claude/agents/review.md",
            "CLAUDE.md",
            "x.claude/settings.json",
            ".github/workflows/ci.yml",
            ".cursor/rules/a.md",
            "src/settings.json",
            "*",
            "*.json",
            "docs/rulekeep/policy.toml",
            ".codex/prompts/a.md",
        ] {
            assert!(!governs(path), "{path}");
        }
    }
}
