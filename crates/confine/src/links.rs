//! Where links lead: those in the paths of a request, and those on the way to the paths of a profile.
//!
//! The parser sees no files. Who sees them says where links lead in the context of the request, so that rules bind both
//! paths.

use std::path::{Component, Path, PathBuf};

use rulekeep_types::facts::{Facts, Kind};
use rulekeep_types::without_dots;
use serde_json::{Map, Value};

/// For each path of a call that links lead elsewhere: the path that they lead to. Links above one of the `folders` count
/// for nothing: a whole project may lie behind one.
#[must_use]
pub fn links_of(facts: &Facts, folders: &[PathBuf]) -> Map<String, Value> {
    let base = facts.base.as_deref().map(Path::new);
    let folders: Vec<(PathBuf, &PathBuf)> = folders.iter().map(|folder| (real(folder), folder)).collect();
    let operands = facts.acts.iter().flat_map(|act| &act.operands);
    let mut links = Map::new();
    for operand in operands.filter(|operand| operand.kind == Kind::Path && operand.value.starts_with('/')) {
        let written = operand.value.as_str();
        // `a/..` is the folder above the one to which a link `a` leads.
        let sent = operand.original.as_deref().filter(|sent| sent.contains("..")).map(Path::new);
        let whole = sent.and_then(|sent| base.map(|base| base.join(sent)));
        let whole = whole.filter(|whole| without_dots(whole) == Path::new(written));
        let found = real(whole.as_deref().unwrap_or(Path::new(written)));
        let below = |(real, folder): &(PathBuf, &PathBuf)| Some(folder.join(found.strip_prefix(real).ok()?));
        let found = folders.iter().find_map(below).unwrap_or(found);
        if found != Path::new(written)
            && let Some(found) = found.to_str()
        {
            links.insert(written.to_owned(), found.into());
        }
    }
    links
}

/// Resolves links and dots in a path, as far as it exists.
#[must_use]
pub fn real(path: &Path) -> PathBuf {
    real_within(path, MOST_LINKS)
}

fn real_within(path: &Path, links: usize) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => {
                plain.push(part);
                if let Ok(found) = plain.canonicalize() {
                    plain = found;
                } else if let (Ok(next), Some(links)) = (plain.read_link(), links.checked_sub(1)) {
                    // What it leads to does not exist yet.
                    plain =
                        real_within(&plain.parent().map_or_else(|| next.clone(), |folder| folder.join(&next)), links);
                }
            }
        }
    }
    plain
}

/// Largest number of links that lead to one another without leading to a file.
const MOST_LINKS: usize = 8;
