//! The work area of a conversation, and the paths that a call creates.

use std::path::Path;

use rulekeep::intent::{Act, Facts, Kind, Operand, Role};

use super::event::Host;

/// The folders of a conversation that starts in `folder`: the folder, the repository around it, and the places in which
/// the host keeps its own notes.
pub(super) fn of(host: Host, folder: &Path) -> Vec<String> {
    let home = home_of(folder);
    let is_home = |path: &Path| home.as_deref().is_some_and(|home| home.starts_with(path));
    let has_repository = |path: &&Path| path.join(".git").exists() && !is_home(path);
    let repository = folder.ancestors().find(has_repository).filter(|path| path.parent().is_some());
    let own = std::iter::once(folder).chain(repository).filter_map(Path::to_str);
    own.chain(notes_of(host).iter().copied()).map(str::to_owned).collect()
}

/// Returns whether a call reads from an address, or a file outside its folder, so that what it writes may be somebody
/// else's.
pub(super) fn brings_in(facts: &Facts) -> bool {
    let base = facts.base.as_deref().map(Path::new);
    let is_foreign = |operand: &Operand| match operand.kind {
        Kind::Url | Kind::Host => operand.role != Role::Named,
        Kind::Path => {
            operand.role == Role::Read && base.is_none_or(|base| !Path::new(&operand.value).starts_with(base))
        }
        _ => false,
    };
    facts.acts.iter().flat_map(|act| &act.operands).any(is_foreign)
}

/// The paths that a call removes, and those to which it moves something with the folders around them.
pub(super) fn removed(facts: &Facts) -> Vec<String> {
    let mut paths = Vec::new();
    for act in facts.acts.iter().filter(|act| act.operands.iter().any(|operand| operand.role == Role::Remove)) {
        for operand in act.operands.iter().filter(|operand| operand.kind == Kind::Path) {
            match operand.role {
                Role::Remove => paths.push(operand.value.clone()),
                Role::Write => {
                    let around = Path::new(&operand.value).ancestors().filter_map(Path::to_str);
                    paths.extend(around.map(str::to_owned));
                }
                _ => {}
            }
        }
    }
    paths
}

/// The paths that the effects of a call write and that do not exist yet, with the missing folders around them.
pub(super) fn fresh(facts: &Facts) -> Vec<String> {
    // What a call moves was there before.
    let moves = |act: &&Act| act.operands.iter().any(|operand| operand.role == Role::Remove);
    let operands = facts.acts.iter().filter(|act| !moves(act)).flat_map(|act| &act.operands);
    let is_written = |operand: &&Operand| {
        operand.kind == Kind::Path && operand.role == Role::Write && !operand.pattern && operand.value.starts_with('/')
    };
    let is_new = |path: &&str| std::fs::symlink_metadata(path).is_err();
    let written = operands.filter(is_written).map(|operand| operand.value.as_str()).filter(is_new);
    let base = facts.base.as_deref().map(Path::new);
    // A folder in which the conversation works is not its own, even if it cannot be seen from here.
    let is_own = |path: &&Path| {
        let is_inside = |base: &Path| path.starts_with(base) && *path != base;
        base.is_some_and(|base| is_inside(base) || !base.starts_with(path) && base.exists())
    };
    let around = |path| Path::new(path).ancestors().skip(1).take_while(is_own).filter_map(Path::to_str);
    written.flat_map(|path| std::iter::once(path).chain(around(path).take_while(is_new))).map(str::to_owned).collect()
}

/// The home of the user whose folder it is.
fn home_of(folder: &Path) -> Option<std::path::PathBuf> {
    let by_name = ["/home", "/Users"].iter().find_map(|root| {
        let user = folder.strip_prefix(root).ok()?.components().next()?;
        Some(Path::new(root).join(user))
    });
    by_name.or_else(std::env::home_dir).filter(|home| home.parent().is_some())
}

/// The places below a home in which a host keeps its plans, notes and scratch files, and the user's skills.
const fn notes_of(host: Host) -> &'static [&'static str] {
    match host {
        Host::Claude => &[
            "~/.claude/plans",
            "~/.claude/projects",
            "~/.claude/todos",
            "~/.claude/tasks",
            "~/.claude/skills",
            "~/.claude/plugins",
        ],
        Host::Codex => &["~/.codex/memories", "~/.codex/plans", "~/.codex/skills", "~/.agents/skills"],
        Host::Gemini => &["~/.gemini/tmp", "~/.gemini/antigravity/brain", "~/.gemini/skills"],
        Host::Cursor => &["~/.cursor/plans"],
        Host::Copilot => &["~/.copilot/session-state", "~/.copilot/skills"],
        Host::Vscode | Host::Goose => &[],
        Host::Opencode => &["~/.local/share/opencode"],
    }
}
