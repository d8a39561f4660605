//! Commands missing from the hand-checked program table: the meaning of programs and subcommands, derived from their
//! public descriptions and stored as one compact table.
//!
//! `tools/intent-model` reads the descriptions of completion specifications and packages with the word table and
//! packs the confident results. The descriptions themselves are not shipped.

use std::sync::OnceLock;

use rulekeep_types::{Error, Operation, Resource, RiskLevel};

/// The meaning of a program or subcommand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Described {
    pub resource: Resource,
    pub operation: Operation,
    /// At least MEDIUM, unless the command only reads.
    pub risk: RiskLevel,
    /// Number of subcommand words that it was found by; 0 for the program alone.
    pub words: usize,
}

/// Looks up a program with plain arguments, by the longest subcommand in the table.
pub(crate) fn described(program: &str, plain: &[&str]) -> Option<Described> {
    let map = table().ok()?;
    let mut path = program.to_owned();
    let mut found = map.get(&path).and_then(|value| decoded(value, 0));
    for (place, word) in plain.iter().enumerate().take(LONGEST_SUBCOMMAND) {
        path.push(' ');
        path.push_str(word);
        found = map.get(&path).and_then(|value| decoded(value, place + 1)).or(found);
    }
    found
}

type Map = fst::Map<&'static [u8]>;

fn table() -> Result<&'static Map, Error> {
    static TABLE: OnceLock<Result<Map, Error>> = OnceLock::new();
    let read = || {
        fst::Map::new(include_bytes!("data/commands.table").as_slice())
            .map_err(|error| Error::internal("the table of commands").caused_by(error))
    };
    TABLE.get_or_init(read).as_ref().map_err(Clone::clone)
}

fn decoded(value: u64, words: usize) -> Option<Described> {
    let part = |shift: u32| usize::try_from(value >> shift & 0xFF).ok();
    let operation = *Operation::ALL.get(part(0)?)?;
    let risk = *RiskLevel::ALL.get(part(16)?)?;
    let least = if operation == Operation::Read { RiskLevel::Low } else { RiskLevel::Medium };
    Some(Described { resource: *Resource::ALL.get(part(8)?)?, operation, risk: risk.max(least), words })
}

/// Packs commands and their meanings into the table's format. They must be sorted by bytes, without duplicates.
///
/// # Errors
///
/// [`Error::InvalidInput`] if they are not.
#[cfg(feature = "training")]
pub fn pack<'c>(
    commands: impl IntoIterator<Item = (&'c str, &'c rulekeep_types::Capability, RiskLevel)>,
) -> Result<Vec<u8>, Error> {
    let place = |all: Option<usize>| all.and_then(|place| u64::try_from(place).ok());
    let entries = commands.into_iter().filter_map(|(command, capability, risk)| {
        let operation = place(Operation::ALL.iter().position(|one| Some(*one) == capability.operation()))?;
        let resource = place(Resource::ALL.iter().position(|one| Some(*one) == capability.resource()))?;
        let risk = place(RiskLevel::ALL.iter().position(|one| *one == risk))?;
        Some((command, operation | resource << 8 | risk << 16))
    });
    let map = fst::Map::from_iter(entries).map_err(|error| Error::input("commands", error.to_string()))?;
    Ok(map.into_fst().into_inner())
}

/// Maximum number of subcommand words that are looked up.
const LONGEST_SUBCOMMAND: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole_and_knows_subcommands_before_programs() {
        let map = table().unwrap();
        map.as_fst().verify().unwrap();
        assert!(map.len() > 5_000);
        let deploys = described("flyctl", &["apps", "list", "mine"]).unwrap();
        assert_eq!((deploys.operation, deploys.words), (Operation::Read, 2));
        assert_eq!(described("gatsby", &["clean"]).map(|found| found.operation), Some(Operation::Delete));
        assert_eq!(described("zorp", &["apps"]), None);
    }

    #[test]
    fn what_does_more_than_read_is_medium_at_least() {
        for (_, value) in table().unwrap().stream().into_str_vec().unwrap() {
            let found = decoded(value, 0).unwrap();
            assert!(found.operation == Operation::Read || found.risk >= RiskLevel::Medium);
        }
    }
}
