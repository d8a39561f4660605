//! Tools that resemble one that an operator accepted: the same name on another server, a name that looks the same, or
//! the definition of a pinned tool under a new name.

use rulekeep_types::parts::ToolResemblanceParts;
use std::collections::{HashMap, HashSet};

use crate::normalize::seen_as;
use rulekeep_types::{Digest, ToolLikeness, ToolResemblance};

use super::load::Definition;

/// A tool that a load is compared with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(super) name: &'a str,
    pub(super) server: Option<&'a str>,
    /// SHA-256 over the description and the schema; `None` if nothing in them distinguishes the tool.
    pub(super) shape: Option<Digest>,
}

/// Finds the tools of a load that nobody accepted and that resemble an accepted tool, or another tool of the load.
///
/// `accepted` are the pinned and overridden tools, loaded or not.
pub(super) fn find(definitions: &[Definition<'_>], accepted: &[Known<'_>]) -> Vec<ToolResemblance> {
    let server = definitions.first().and_then(|definition| definition.server);
    let offered: HashSet<&str> = definitions.iter().map(|definition| definition.name).collect();
    let settled: HashSet<(Option<&str>, &str)> = accepted.iter().map(|known| (known.server, known.name)).collect();
    let beside = definitions.iter().map(|one| Known { name: one.name, server: one.server, shape: None });
    let mut by_look: HashMap<String, Vec<Known<'_>>> = HashMap::new();
    for known in accepted.iter().copied().chain(beside) {
        by_look.entry(seen_as(known.name)).or_default().push(known);
    }
    // A tool that is still offered was not renamed.
    let gone = accepted.iter().filter(|known| known.server == server && !offered.contains(known.name));
    let by_shape: HashMap<Digest, Known<'_>> = gone.filter_map(|known| Some((known.shape?, *known))).collect();
    let resembling = |one: &Definition<'_>| {
        let is_itself = |known: &&Known<'_>| known.name == one.name && known.server == one.server;
        let looks = by_look.get(&seen_as(one.name)).into_iter().flatten().find(|known| !is_itself(known));
        let (of, likeness) = match looks {
            Some(known) if known.name == one.name => (known, ToolLikeness::SameName),
            Some(known) => (known, ToolLikeness::LookAlike),
            None => (by_shape.get(&one.shape?)?, ToolLikeness::Renamed),
        };
        let (of, of_server) = (of.name.to_owned(), of.server.map(str::to_owned));
        Some(ToolResemblance::from(ToolResemblanceParts { name: one.name.to_owned(), of, of_server, likeness }))
    };
    let unsettled = definitions.iter().filter(|one| !settled.contains(&(one.server, one.name)));
    unsettled.filter_map(resembling).collect()
}
