//! The table of folders, devices and tools in `tools.toml`.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::Deserialize;

use crate::Error;

/// The table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    pub(crate) system: Vec<String>,
    pub(crate) devices: Vec<String>,
    pub(crate) hidden: Vec<String>,
    pub(crate) settings: Vec<String>,
    /// Files of a project that run or are obeyed unasked.
    pub(crate) unasked: Vec<String>,
    /// Programs that talk to others.
    pub(crate) outgoing: Vec<String>,
    /// Programs that serve others.
    pub(crate) serving: Vec<String>,
    /// Programs that run scripts by their names.
    pub(crate) runners: Vec<String>,
    /// Names of scripts that serve others.
    pub(crate) scripts: Vec<String>,
    pub(crate) tool: Vec<Tool>,
}

/// A build tool or package manager.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tool {
    pub(crate) programs: Vec<String>,
    #[serde(default)]
    pub(crate) read: Vec<String>,
    #[serde(default)]
    pub(crate) write: Vec<String>,
    /// Caches of earlier versions, writable where they exist.
    #[serde(default)]
    pub(crate) older: Vec<String>,
    /// The hosts of its registry.
    #[serde(default)]
    pub(crate) hosts: Vec<String>,
}

impl Tool {
    /// Returns whether one of its programs is in `PATH`.
    pub(crate) fn is_installed(&self) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| self.programs.iter().any(|program| folder.join(program).is_file()))
    }
}

/// The table; an error if it does not load, which a test rules out.
pub(crate) fn table() -> Result<&'static Table, Error> {
    static TABLE: OnceLock<Result<Table, String>> = OnceLock::new();
    let loaded = TABLE.get_or_init(|| toml::from_str(include_str!("tools.toml")).map_err(|error| error.to_string()));
    loaded.as_ref().map_err(|error| Error::Profile(error.clone()))
}

/// The path of an entry; `None` if it is in an unknown home.
pub(crate) fn expand(entry: &str, home: Option<&Path>) -> Option<PathBuf> {
    match entry.strip_prefix('~') {
        Some(rest) => home.map(|home| home.join(rest.trim_start_matches('/'))),
        None => Some(PathBuf::from(entry)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_of_the_table_is_a_path_or_a_bare_host() {
        let table = table().unwrap();
        let tools = table.tool.iter().flat_map(|tool| tool.read.iter().chain(&tool.write).chain(&tool.older));
        for entry in tools.chain(&table.system).chain(&table.devices).chain(&table.hidden).chain(&table.settings) {
            let path = expand(entry, Some(Path::new("/home/u"))).unwrap();
            assert!(path.is_absolute() && path != Path::new("/home/u") && path.parent().is_some(), "{entry}");
        }
        for tool in &table.tool {
            assert!(!tool.programs.is_empty(), "{tool:?}");
            assert!(tool.hosts.iter().all(|host| host.contains('.') && !host.contains([':', '/', '*'])), "{tool:?}");
        }
    }
}
