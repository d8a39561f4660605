//! Where the links in the paths of a call lead.
//!
//! The parser sees no files. The daemon sees those of the host, and says where links lead in the context of the request,
//! so that rules bind both paths.

use std::path::{Path, PathBuf};

use rulekeep::intent::{Facts, Kind};
use serde_json::{Map, Value};

use super::own::real;

/// For each path of a call that links lead elsewhere: the path that they lead to. Links above one of the `folders` count
/// for nothing: a whole project may lie behind one.
pub(super) fn of(facts: &Facts, folders: &[PathBuf]) -> Map<String, Value> {
    let folders: Vec<(PathBuf, &PathBuf)> = folders.iter().map(|folder| (real(folder), folder)).collect();
    let operands = facts.acts.iter().flat_map(|act| &act.operands).filter(|operand| operand.kind == Kind::Path);
    let mut links = Map::new();
    for written in operands.map(|operand| operand.value.as_str()).filter(|path| path.starts_with('/')) {
        let found = real(Path::new(written));
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
