//! Where the links in the paths of a call lead.
//!
//! The parser sees no files. The daemon sees those of the host, and says where links lead in the context of the request,
//! so that rules bind both paths.

use std::path::{Path, PathBuf};

use rulekeep::intent::{Facts, Kind};
use serde_json::{Map, Value};

use super::own::real;
use rulekeep_confine::without_dots;

/// For each path of a call that links lead elsewhere: the path that they lead to. Links above one of the `folders` count
/// for nothing: a whole project may lie behind one.
pub(super) fn of(facts: &Facts, folders: &[PathBuf]) -> Map<String, Value> {
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
