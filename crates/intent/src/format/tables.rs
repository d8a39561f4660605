//! What the readers know besides programs: places, calls of code, words of command lines and of requests. The tables are
//! the crate's own; a user's lexicon cannot reduce them. A table that does not read is refused before a parser opens.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::table::{self, Sorted, lists};
use rulekeep_types::{Error, Operation, Resource};

/// The tables.
///
/// INVARIANT: every parser has passed [`check`], so the empty tables stand in for none that is used.
fn tables() -> &'static Tables {
    static EMPTY: LazyLock<Tables> = LazyLock::new(Tables::default);
    TABLES.as_ref().unwrap_or(&EMPTY)
}

pub(super) fn places() -> &'static Places {
    &tables().places
}

pub(super) fn verbs() -> &'static Verbs {
    &tables().verbs
}

pub(super) fn calls() -> &'static Code {
    &tables().code
}

pub(super) fn wording() -> &'static Wording {
    &tables().wording
}

pub(super) fn lines() -> &'static Lines {
    &tables().lines
}

pub(super) fn http() -> &'static Http {
    &tables().http
}

pub(super) fn query() -> &'static Query {
    &tables().query
}

/// Refuses tables that do not read.
pub(super) fn check() -> Result<(), Error> {
    TABLES.as_ref().map(|_| ()).map_err(|fault| Error::internal(fault.as_str()))
}

static TABLES: LazyLock<Result<Tables, String>> = LazyLock::new(Tables::load);

#[derive(Debug, Default)]
struct Tables {
    places: Places,
    verbs: Verbs,
    code: Code,
    wording: Wording,
    lines: Lines,
    http: Http,
    query: Query,
}

impl Tables {
    fn load() -> Result<Self, String> {
        Ok(Self {
            places: table::read("places", include_str!("../data/places.toml"))?,
            verbs: table::read("verbs", include_str!("../data/verbs.toml"))?,
            code: table::read("code", include_str!("../data/code.toml"))?,
            wording: table::read("wording", include_str!("../data/wording.toml"))?,
            lines: table::read("lines", include_str!("../data/lines.toml"))?,
            http: table::read("http", include_str!("../data/http.toml"))?,
            query: table::read("query", include_str!("../data/query.toml"))?,
        })
    }
}

lists! {
    /// Paths by what lies there.
    Places {}
    secret_parts secret_names secret_endings secret_words secret_kinds secret_folders secret_roots
    hidden_secrets public_env session_words session_kinds templates shown_to_all setting_endings hook_parts
    build_parts loaded_parts governing_files governing_folders instruction_names calm_home home_settings
    system_roots system_logs trace_files harmless_devices rooted whole_paths open_roots program_roots data_endings
    running_endings control_sockets
}

/// Words of subcommands.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Verbs {
    pub deeds: Sorted<Operation>,
    pub objects: Sorted<Object>,
    pub redis: Sorted<Redis>,
}

/// The subject of a subcommand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Object {
    Secret,
    Access,
    Network,
    Control,
    Database,
}

/// The effect of a command of a key-value store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Redis {
    Read,
    Write,
    Delete,
    Flush,
}

lists! {
    /// Calls and words of code.
    Code {}
    marks deletes empties sends modes runs writes awk_calls database_deletes
    document_reads
}

lists! {
    /// Words that tell a command line from a sentence.
    Wording {}
    request_keys clause_links asking_words text_verbs shared_words never_english filler lone_commands
    make_targets cmdlet_verbs
}

lists! {
    /// Words of command lines, whatever the program.
    Lines {}
    guessed_programs wide_flags secret_options secret_assigned secret_sources secret_inputs secret_variables
    secret_stores usual_variables calm_variables environment_variables environment_options history_switches
    hostile_variables usual_viewers guards administrator_roles root_groups telling_values
}

lists! {
    /// Words of HTTP requests.
    Http {
        pub methods: Sorted<Operation>,
        pub nouns: Sorted<Resource>,
    }
    core_methods override_headers override_keys skipped pages no_verbs whole exports administration commands
    statements queries actions amounts currencies currency_codes ranks high_ranks bounding service_schemes
    control_ports callers page_endings
}

lists! {
    /// Words of query languages other than SQL.
    Query {}
    languages openers writes piped dot_commands stages calls pipeline operators services keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_read_and_a_faulty_one_is_refused() {
        check().unwrap();
        for (text, found) in
            [("read = \"get\"\ndelete = \"get\"", "stands twice"), ("wipe = \"x\"", "not a valid operation")]
        {
            let error = toml::from_str::<Sorted<Operation>>(text).unwrap_err().to_string();
            assert!(error.contains(found), "{error}");
        }
        assert!(toml::from_str::<Verbs>("").unwrap_err().to_string().contains("missing field"));
    }
}
