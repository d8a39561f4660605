//! The acts that a tool's name states.

use crate::lexicon::Lexicon;
use crate::reading::Act;
use crate::sign::Sign;

use super::tools::{own_part, tools};
use super::{driver, name};

/// The acts of a tool by its name: the main one first, then further ones that the name states. Empty if the name
/// states nothing.
pub(crate) fn acts(tool: &str, lexicon: &Lexicon) -> Vec<Act> {
    let acts = of_program(tool, lexicon).unwrap_or_else(|| name::of_tool(tool, lexicon));
    acts.into_iter().map(|act| act.told_by(tool).named_by(tool)).collect()
}

/// Returns the acts of a called tool. Its name is remembered, unlike other texts of a request that may be names.
pub(super) fn acts_of_called(tool: &str, lexicon: &Lexicon) -> Vec<Act> {
    lexicon.names.acts(tool, || acts(tool, lexicon))
}

/// `git_push` is what `git push` is, where the program's table is sure of it.
fn of_program(tool: &str, lexicon: &Lexicon) -> Option<Vec<Act>> {
    let words = name::words(own_part(tool).unwrap_or(tool));
    let is_program = words.len() > 1 && words.first().is_some_and(|first| tools().name_word("programs", first));
    let acts = is_program.then(|| driver::command(&words.join(" "), lexicon))?.into_acts();
    let is_sure = acts.iter().all(|act| act.sure > 0.5 && !act.signs.has(Sign::Unclear));
    (is_sure && !acts.is_empty()).then_some(acts)
}

/// The tool's own name and its server: `mcp__server__tool` is `tool` of `server`.
pub(super) fn split(name: &str) -> (&str, Option<&str>) {
    let name = name.trim();
    // Prefixes that hosts put before every name.
    let name = name.strip_prefix("functions.").or_else(|| name.strip_prefix("default_api.")).unwrap_or(name);
    match name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
        Some((server, tool)) if !server.is_empty() && !tool.is_empty() => (tool, Some(server)),
        _ => (name, None),
    }
}
