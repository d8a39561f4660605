//! The organisation's log: one Merkle tree (RFC 6962) over one-line JSON leaves, stored as C2SP tiles.
//!
//! Everything here is synchronous and free of I/O. [`append`] takes the newest [`Head`] and new leaves, and returns the
//! tiles to store; [`inclusion`] and [`consistency`] make proofs. They read stored tiles through a [`TileSource`] and
//! verify each of them against the head's root, so that a changed tile never reaches a new root or a proof.
//!
//! `HashMap<TileId, Vec<u8>>` is a source that reports the tiles it lacks as [`LogError::Missing`]: a caller whose store
//! is asynchronous loads those and calls again. Two rounds suffice, because each call here reads once.
// SOURCE: c2sp.org/tlog-tiles for tiles, paths and entry bundles. The tree itself is the crate `tlog_tiles`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rulekeep::checkpoint::Checkpoint;
use rulekeep::proof::Digest;
use rulekeep::system::Timestamp;
use serde::{Deserialize, Serialize};
use tlog_tiles::{Error as TreeError, Hash, HashReader, Tile, TileHashReader, TileReader, stored_hash_index};

use crate::enrolment::EnrolmentProof;

/// An entry of the organisation's log, written as one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
#[non_exhaustive]
#[allow(missing_docs)] // the fields are named in the summary of each kind
pub enum Leaf {
    /// Binds a governor's name to `key`, the verifier key of its checkpoints. Early logs lack the `proof`.
    Enrol {
        governor: String,
        key: String,
        groups: Vec<String>,
        at: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proof: Option<EnrolmentProof>,
    },
    /// Removes a governor from the organisation.
    Retire { governor: String, by: String },
    /// Publishes a signed order. `body` is null where the leaf would be too long; `digest` commits to it.
    Order { seq: u64, digest: Digest, body: Option<String> },
    /// Records `note`, a governor's signed checkpoint, as received by a hub `at` that time.
    Anchor { governor: String, note: String, at: Timestamp },
    /// Lists the last anchored size and root of every enrolled governor, in `parts` leaves counted from 0, so that
    /// absence is provable.
    Roll { at: Timestamp, part: usize, parts: usize, governors: Vec<RollEntry> },
    /// Records contradictory checkpoints of a governor, and `why` they contradict each other.
    Fork { governor: String, why: String, notes: Vec<String> },
    /// Allows a governor again after a fork.
    Readmit { governor: String, by: String },
    /// Names the database that the log continues in, and the note of a `former` log that this one replaces.
    Epoch { system: String, timeline: u64, former: Option<String> },
}

/// The last anchored state of one governor, as listed in [`Leaf::Roll`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::exhaustive_structs)] // the log's format
pub struct RollEntry {
    /// The governor's name.
    pub id: String,
    /// Number of entries in its last anchored checkpoint.
    pub size: u64,
    /// The root of that checkpoint.
    pub root: Digest,
    /// The time of its last beat.
    pub seen: Timestamp,
}

impl Leaf {
    /// Most bytes of a leaf: entry bundles have 16 bits for its length.
    pub const MAX_BYTES: usize = 0xffff;

    /// Returns the [`Leaf::Roll`] leaves of one roll, each of at most 100 governors so that it stays below
    /// [`Leaf::MAX_BYTES`].
    pub fn rolls(at: Timestamp, governors: &[RollEntry]) -> Vec<Self> {
        let parts = governors.len().div_ceil(100);
        let leaf = |(part, governors): (usize, &[_])| Self::Roll { at, part, parts, governors: governors.to_vec() };
        governors.chunks(100).enumerate().map(leaf).collect()
    }

    /// Returns the bytes that are hashed and stored: the leaf's JSON text.
    ///
    /// # Errors
    ///
    /// [`LogError::LongLeaf`] for more than [`Leaf::MAX_BYTES`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, LogError> {
        let bytes = serde_json::to_vec(self)?;
        check_leaf(&bytes)?;
        Ok(bytes)
    }

    /// The word for its kind, as in its JSON.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Enrol { .. } => "enrol",
            Self::Retire { .. } => "retire",
            Self::Order { .. } => "order",
            Self::Anchor { .. } => "anchor",
            Self::Roll { .. } => "roll",
            Self::Fork { .. } => "fork",
            Self::Readmit { .. } => "readmit",
            Self::Epoch { .. } => "epoch",
        }
    }

    /// Parses the text of a leaf.
    ///
    /// # Errors
    ///
    /// [`LogError::Json`] for a text that is not a leaf of a known kind.
    pub fn parse(text: &str) -> Result<Self, LogError> {
        Ok(serde_json::from_str(text)?)
    }
}

/// The number of leaves in a log and the Merkle root over them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::exhaustive_structs)] // a pair
pub struct Head {
    /// Number of leaves.
    pub size: u64,
    /// The Merkle root over the leaves.
    pub root: Digest,
}

impl Head {
    /// The head of an empty log.
    pub const EMPTY: Self = Self { size: 0, root: Digest::new(tlog_tiles::EMPTY_HASH.0) };
}

impl From<&Checkpoint> for Head {
    fn from(checkpoint: &Checkpoint) -> Self {
        Self { size: checkpoint.size(), root: checkpoint.root() }
    }
}

/// The position of a stored tile: up to 256 hashes of the tree's level `8 * level`, from `256 * index` on.
///
/// The tile is stored once, as wide as it has become; a narrower one is its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_structs)] // the coordinates of the specification
pub struct TileId {
    /// Level of the tile, counted from 0 for hashes of leaves.
    pub level: u8,
    /// Position of the tile in its level.
    pub index: u64,
}

/// Read access to stored tiles.
pub trait TileSource {
    /// Returns the bytes of each tile in the order given, each as wide as it is stored.
    ///
    /// # Errors
    ///
    /// [`LogError::Missing`] with all tiles that are not stored or not loaded.
    fn read(&self, tiles: &[TileId]) -> Result<Vec<Vec<u8>>, LogError>;
}

impl<S: std::hash::BuildHasher> TileSource for HashMap<TileId, Vec<u8>, S> {
    fn read(&self, tiles: &[TileId]) -> Result<Vec<Vec<u8>>, LogError> {
        let missing: Vec<_> = tiles.iter().filter(|tile| !self.contains_key(tile)).copied().collect();
        let read = tiles.iter().filter_map(|tile| self.get(tile).cloned());
        if missing.is_empty() { Ok(read.collect()) } else { Err(LogError::Missing(missing)) }
    }
}

/// The reason the log cannot be read or extended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// Tiles that are needed are not stored, or not loaded yet.
    #[error("{} tiles are missing, the first is {:?}", .0.len(), .0.first())]
    Missing(Vec<TileId>),
    /// Stored tiles are too narrow for this head or do not have its root: one of them, or the head, was changed.
    #[error("the stored tiles contradict the root {} of the log of {} leaves", .0.root, .0.size)]
    Contradiction(Head),
    /// A leaf has this many bytes, more than entry bundles can hold.
    #[error("a leaf of {0} bytes, at most {max} are possible", max = Leaf::MAX_BYTES)]
    LongLeaf(usize),
    /// A leaf is not JSON of a known kind.
    #[error("leaf: {0}")]
    Json(#[from] serde_json::Error),
    /// A path is none of C2SP tlog-tiles.
    #[error("{0:?} is not the path of a tile: expected tile/<level>/<index>[.p/<width>], with entries as a level")]
    Path(String),
    /// A size or position is outside the log, or a proof does not verify.
    #[error("the log's tree: {0}")]
    Tree(#[from] TreeError),
}

/// The result of [`append`], to be stored in one transaction before the head is signed.
#[derive(Debug)]
#[non_exhaustive]
pub struct Appended {
    /// The head with the new leaves.
    pub head: Head,
    /// Each tile that is new or has become wider, with all its bytes.
    pub tiles: Vec<(TileId, Vec<u8>)>,
}

/// Appends leaves to the log with this head.
///
/// # Errors
///
/// [`LogError::LongLeaf`]; [`LogError::Missing`] and [`LogError::Contradiction`] for the stored tiles at the log's right
/// edge.
pub fn append(head: &Head, source: &dyn TileSource, leaves: &[Vec<u8>]) -> Result<Appended, LogError> {
    leaves.iter().try_for_each(|leaf| check_leaf(leaf).map(drop))?;
    let size = head.size.saturating_add(leaves.len() as u64);
    check_size(size)?;
    let mut hashes = Hashes::default();
    if head.size > 0 {
        // Complete subtrees, and the hashes in the last tile of each level, which new hashes are added to.
        let mut places = tlog_tiles::sub_tree_index(0, head.size, Vec::new());
        let levels = (0..=6).map(|level| (8 * level, head.size >> (8 * level)));
        places.extend(levels.flat_map(|(at, count)| (count & !0xff..count).map(move |n| stored_hash_index(at, n))));
        let read = with_reader(head, source, |reader| reader.read_hashes(&places))?;
        hashes.0.extend(places.into_iter().zip(read));
    }
    for (index, leaf) in (head.size..).zip(leaves) {
        let completed = tlog_tiles::stored_hashes(index, leaf, &hashes)?;
        hashes.0.extend((stored_hash_index(0, index)..).zip(completed));
    }
    let root = Digest::new(tlog_tiles::tree_hash(size, &hashes)?.0);
    let tiles = Tile::new_tiles(HEIGHT, head.size, size).into_iter();
    let tiles = tiles.map(|tile| Ok((id(&tile), tile.read_data(&hashes)?))).collect::<Result<_, TreeError>>()?;
    Ok(Appended { head: Head { size, root }, tiles })
}

/// Returns the inclusion proof (RFC 6962, 2.1.1) of the leaf at `index` in the log with this head.
///
/// # Errors
///
/// [`LogError::Tree`] for an index outside the log, and the errors of reading tiles.
pub fn inclusion(index: u64, head: &Head, source: &dyn TileSource) -> Result<Vec<Digest>, LogError> {
    with_reader(head, source, |reader| tlog_tiles::prove_record(head.size, index, reader)).map(digests)
}

/// Returns the consistency proof (RFC 6962, 2.1.2) from the log of `old` leaves to this head; no hashes from 0 leaves.
///
/// # Errors
///
/// [`LogError::Tree`] if `old` is above the head's size, and the errors of reading tiles.
pub fn consistency(old: u64, head: &Head, source: &dyn TileSource) -> Result<Vec<Digest>, LogError> {
    if old == 0 {
        return Ok(Vec::new());
    }
    with_reader(head, source, |reader| tlog_tiles::prove_tree(head.size, old, reader)).map(digests)
}

/// Returns the root that the log with this head had at an earlier size.
///
/// # Errors
///
/// [`LogError::Tree`] if `size` is above the head's size, and the errors of reading tiles.
pub fn root(size: u64, head: &Head, source: &dyn TileSource) -> Result<Digest, LogError> {
    if size > head.size {
        return Err(TreeError::IndexesNotInTree.into());
    }
    with_reader(head, source, |reader| tlog_tiles::tree_hash(size, reader)).map(|root| Digest::new(root.0))
}

/// Verifies that `leaf` is at `index` in the log with this head.
///
/// # Errors
///
/// [`LogError::Tree`] if the proof does not show that.
pub fn verify_inclusion(leaf: &[u8], index: u64, head: &Head, path: &[Digest]) -> Result<(), LogError> {
    let leaf = tlog_tiles::record_hash(leaf);
    Ok(tlog_tiles::check_record(&hashes(path), head.size, hash(head.root), index, leaf)?)
}

/// Verifies that the log with the head `new` begins with the log of `old`.
///
/// # Errors
///
/// [`LogError::Tree`] if the proof does not show that.
pub fn verify_consistency(old: &Head, new: &Head, path: &[Digest]) -> Result<(), LogError> {
    if old.size == 0 {
        let begins = *old == Head::EMPTY && path.is_empty();
        return if begins { Ok(()) } else { Err(TreeError::InvalidProof.into()) };
    }
    Ok(tlog_tiles::check_tree(&hashes(path), new.size, hash(new.root), old.size, hash(old.root))?)
}

/// A file of the published log, at its path in C2SP tlog-tiles. Widths are 1 to 256.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // the paths of the specification
pub enum Resource {
    /// `tile/<level>/<index>[.p/<width>]`: the first `width` hashes of a tile.
    Hashes(TileId, u32),
    /// `tile/entries/<index>[.p/<width>]`: the [`entries_bundle`] of the `width` leaves from `256 * index` on.
    Entries(u64, u32),
}

impl FromStr for Resource {
    type Err = LogError;

    fn from_str(path: &str) -> Result<Self, LogError> {
        let wrong = || LogError::Path(path.chars().take(80).collect());
        let (level, rest) = path.strip_prefix("tile/").and_then(|rest| rest.split_once('/')).ok_or_else(wrong)?;
        let is_entries = level == "entries";
        // INVARIANT: `Tile::from_path` panics on a level above 63 and on the width 0.
        let has_level = is_entries || level.parse::<u8>().is_ok_and(|level| level < 64);
        let is_empty = rest.rsplit_once(".p/").is_some_and(|(_, width)| width.parse() == Ok(0_u32));
        if !has_level || is_empty {
            return Err(wrong());
        }
        let level = if is_entries { "data" } else { level };
        let tile = Tile::from_path(&format!("tile/{HEIGHT}/{level}/{rest}")).map_err(|_| wrong())?;
        let (id, width) = (id(&tile), tile.width());
        Ok(if is_entries { Self::Entries(id.index, width) } else { Self::Hashes(id, width) })
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (level, index, width) = match *self {
            Self::Hashes(TileId { level, index }, width) => (level.to_string(), index, width),
            Self::Entries(index, width) => ("entries".to_owned(), index, width),
        };
        let path = Tile::new(HEIGHT, 0, index, width.clamp(1, 256), false).path();
        write!(f, "tile/{level}/{}", path.strip_prefix("tile/8/0/").unwrap_or(&path))
    }
}

/// Returns the entry bundle of up to 256 leaves: each with its length in two bytes before it.
///
/// # Errors
///
/// [`LogError::LongLeaf`] for a leaf above [`Leaf::MAX_BYTES`].
pub fn entries_bundle<L: AsRef<[u8]>>(leaves: &[L]) -> Result<Vec<u8>, LogError> {
    let mut bundle = Vec::new();
    for leaf in leaves.iter().map(AsRef::as_ref) {
        bundle.extend(check_leaf(leaf)?.to_be_bytes());
        bundle.extend(leaf);
    }
    Ok(bundle)
}

/// Stored tiles as `tlog_tiles` reads them. It drops errors of other types, so that of the source is kept here.
struct Tiles<'a> {
    source: &'a dyn TileSource,
    failed: RefCell<Option<LogError>>,
}

impl TileReader for Tiles<'_> {
    fn height(&self) -> u8 {
        HEIGHT
    }

    fn read_tiles(&self, tiles: &[Tile]) -> Result<Vec<Vec<u8>>, TreeError> {
        let read = self.source.read(&tiles.iter().map(id).collect::<Vec<_>>()).map(|mut read| {
            let widths = tiles.iter().map(|tile| tile.width() as usize * tlog_tiles::HASH_SIZE);
            read.iter_mut().zip(widths).for_each(|(bytes, width)| bytes.truncate(width));
            read
        });
        read.map_err(|error| {
            *self.failed.borrow_mut() = Some(error);
            TreeError::InvalidTile
        })
    }

    fn save_tiles(&self, _: &[Tile], _: &[Vec<u8>]) {}
}

fn with_reader<T>(
    head: &Head,
    source: &dyn TileSource,
    read: impl FnOnce(&TileHashReader<'_>) -> Result<T, TreeError>,
) -> Result<T, LogError> {
    check_size(head.size)?;
    let tiles = Tiles { source, failed: RefCell::default() };
    let result = read(&TileHashReader::new(head.size, hash(head.root), &tiles));
    result.map_err(|error| match (tiles.failed.take(), error) {
        (Some(failed), _) => failed,
        // `BadMath` stands for tiles that are too narrow.
        (None, TreeError::InconsistentTile | TreeError::BadMath) => LogError::Contradiction(*head),
        (None, other) => other.into(),
    })
}

/// Hashes of the tree by their storage index.
#[derive(Default)]
struct Hashes(HashMap<u64, Hash>);

impl HashReader for Hashes {
    fn read_hashes(&self, indexes: &[u64]) -> Result<Vec<Hash>, TreeError> {
        indexes.iter().map(|index| self.0.get(index).copied().ok_or(TreeError::IndexesNotInTree)).collect()
    }
}

/// Returns the leaves of an entry bundle; `None` if it is not one.
pub fn leaves_of(bundle: &[u8]) -> Option<Vec<String>> {
    let (mut rest, mut leaves) = (bundle, Vec::new());
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let (leaf, behind) = behind.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        leaves.push(String::from_utf8(leaf.to_vec()).ok()?);
        rest = behind;
    }
    rest.is_empty().then_some(leaves)
}

fn check_leaf(leaf: &[u8]) -> Result<u16, LogError> {
    leaf.len().try_into().map_err(|_| LogError::LongLeaf(leaf.len()))
}

/// INVARIANT: a log has at most 2^48 leaves, so 7 levels of tiles. `tlog_tiles` panics from 2^56 leaves on.
fn check_size(size: u64) -> Result<(), LogError> {
    if size > Checkpoint::MAX_SIZE { Err(TreeError::IndexesNotInTree.into()) } else { Ok(()) }
}

fn id(tile: &Tile) -> TileId {
    TileId { level: tile.level(), index: tile.level_index() }
}

fn hash(digest: Digest) -> Hash {
    Hash(*digest.as_bytes())
}

fn hashes(path: &[Digest]) -> Vec<Hash> {
    path.iter().copied().map(hash).collect()
}

/// Decodes the hashes of a proof, each in base 64; `None` if one is not.
pub(crate) fn read_path<'a>(lines: impl Iterator<Item = &'a str>) -> Option<Vec<Digest>> {
    let read = |line: &str| {
        // The decoder wants room for whole groups of three bytes.
        let mut bytes = [0; 33];
        let length = STANDARD.decode_slice(line, &mut bytes).ok()?;
        bytes.first_chunk().filter(|_| length == 32).copied().map(Digest::new)
    };
    lines.map(read).collect()
}

fn digests(hashes: Vec<Hash>) -> Vec<Digest> {
    hashes.into_iter().map(|hash| Digest::new(hash.0)).collect()
}

/// Levels of the tree in a tile.
const HEIGHT: u8 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn log_of(count: u64) -> (Head, HashMap<TileId, Vec<u8>>) {
        let leaves: Vec<_> = (0..count).map(|index| index.to_string().into_bytes()).collect();
        let appended = append(&Head::EMPTY, &HashMap::new(), &leaves).unwrap();
        (appended.head, appended.tiles.into_iter().collect())
    }

    #[test]
    fn specified_paths_read_back_and_others_are_refused() {
        let tile = |level, index| TileId { level, index };
        let rows = [
            ("tile/0/000", Resource::Hashes(tile(0, 0), 256)),
            ("tile/0/000.p/1", Resource::Hashes(tile(0, 0), 1)),
            ("tile/1/x001/x234/067.p/255", Resource::Hashes(tile(1, 1_234_067), 255)),
            ("tile/63/001", Resource::Hashes(tile(63, 1), 256)),
            ("tile/entries/273.p/112", Resource::Entries(273, 112)),
            ("tile/entries/x001/000", Resource::Entries(1000, 256)),
        ];
        for (path, resource) in rows {
            assert_eq!(path.parse::<Resource>().unwrap(), resource, "{path}");
            assert_eq!(resource.to_string(), path);
        }
        let wrong = "|tile|tile/|tile/0|tile/0/|tile/0/0|tile/0/0000|tile/00/000|tile/+1/000|tile/64/000|tile/255/000|\
            tile/256/000|tile/-1/000|tile/data/000|tile/0/000.p/0|tile/0/000.p/00|tile/0/000.p/256|tile/0/000.p/01|\
            tile/0/000.p/|tile/0/000/|tile/0/x000/001|tile/0/001/002|/tile/0/000|tile/8/0/000|tile/entries/data/000|\
            tile/0/000.p/+1|tile/0/000.p/+0|tile/0/x018/x446/x744/x073/x709/x551/616|tile/entries/000.p/0|checkpoint|\
            tile/0/../000|tile/0/000.p/1/0|tile/0/🦀";
        for path in wrong.split('|') {
            assert!(matches!(path.parse::<Resource>(), Err(LogError::Path(_))), "{path}");
        }
    }

    #[test]
    fn a_log_of_70000_leaves_has_the_specifications_tiles() {
        let (head, tiles) = log_of(70_000);
        assert_eq!((head.size, tiles.len()), (70_000, 273 + 1 + 1 + 1 + 1));
        let width = |level, index| tiles[&TileId { level, index }].len() / 32;
        assert_eq!((width(0, 272), width(0, 273), width(1, 0), width(1, 1), width(2, 0)), (256, 112, 256, 17, 1));
    }

    #[test]
    fn a_changed_cut_or_missing_tile_at_the_edge_stops_an_append() {
        let (head, tiles) = log_of(70_000);
        let leaves = [b"next".to_vec()];
        let edge = [(0, 273), (1, 1), (2, 0)].map(|(level, index)| TileId { level, index });
        let read = RefCell::new(Vec::new());
        let source = Recorded { tiles: &tiles, read: &read };
        append(&head, &source, &leaves).unwrap();
        read.borrow_mut().sort_by_key(|tile: &TileId| tile.level);
        assert_eq!(*read.borrow(), edge);
        for tile in edge {
            for place in [0, tiles[&tile].len() - 1] {
                let mut changed = tiles.clone();
                changed.get_mut(&tile).unwrap()[place] ^= 1;
                assert!(matches!(append(&head, &changed, &leaves), Err(LogError::Contradiction(_))), "{tile:?}");
            }
            let mut cut = tiles.clone();
            cut.get_mut(&tile).unwrap().truncate(tiles[&tile].len() - 32);
            assert!(matches!(append(&head, &cut, &leaves), Err(LogError::Contradiction(_))), "{tile:?}");
            let mut missing = tiles.clone();
            missing.remove(&tile);
            assert!(matches!(append(&head, &missing, &leaves), Err(LogError::Missing(ids)) if ids == [tile]));
        }
        let other = Head { root: Digest::ZERO, ..head };
        assert!(matches!(append(&other, &tiles, &leaves), Err(LogError::Contradiction(_))));
    }

    #[test]
    fn a_proof_takes_two_rounds_from_an_asynchronous_store() {
        let (head, stored) = log_of(70_000);
        let (mut loaded, mut rounds) = (HashMap::new(), 0);
        let path = loop {
            rounds += 1;
            match inclusion(1234, &head, &loaded) {
                Err(LogError::Missing(ids)) => loaded.extend(ids.into_iter().map(|id| (id, stored[&id].clone()))),
                other => break other.unwrap(),
            }
        };
        assert_eq!((rounds, loaded.len()), (2, 5));
        verify_inclusion(b"1234", 1234, &head, &path).unwrap();
        assert!(verify_inclusion(b"1235", 1234, &head, &path).is_err());
        assert!(verify_inclusion(b"1234", 1235, &head, &path).is_err());
    }

    #[test]
    fn what_is_outside_the_log_is_an_error() {
        let (head, tiles) = log_of(3);
        assert!(inclusion(3, &head, &tiles).is_err());
        assert!(inclusion(u64::MAX, &head, &tiles).is_err());
        assert!(consistency(4, &head, &tiles).is_err());
        assert!(root(4, &head, &tiles).is_err());
        assert!(inclusion(0, &Head::EMPTY, &tiles).is_err());
        assert!(consistency(1, &Head::EMPTY, &tiles).is_err());
        let vast = Head { size: u64::MAX, root: head.root };
        assert!(append(&vast, &tiles, &[]).is_err());
        assert!(inclusion(0, &vast, &tiles).is_err());
        assert!(append(&Head::EMPTY, &tiles, &[vec![0; 65_536]]).is_err());
        assert_eq!(append(&Head::EMPTY, &tiles, &[]).unwrap().head, Head::EMPTY);
        assert_eq!(append(&head, &tiles, &[]).unwrap().head, head);
    }

    #[test]
    fn a_log_begins_empty_and_continues_only_itself() {
        let (old, _) = log_of(300);
        let (new, tiles) = log_of(70_000);
        let path = consistency(300, &new, &tiles).unwrap();
        verify_consistency(&old, &new, &path).unwrap();
        verify_consistency(&new, &new, &[]).unwrap();
        verify_consistency(&Head::EMPTY, &new, &[]).unwrap();
        verify_consistency(&Head::EMPTY, &Head::EMPTY, &[]).unwrap();
        assert_eq!(consistency(0, &new, &tiles).unwrap(), []);
        assert_eq!(root(300, &new, &tiles).unwrap(), old.root);
        assert_eq!(root(0, &new, &tiles).unwrap(), Head::EMPTY.root);
        assert!(verify_consistency(&new, &old, &path).is_err());
        assert!(verify_consistency(&Head { root: Digest::ZERO, ..old }, &new, &path).is_err());
        assert!(verify_consistency(&Head { root: Digest::ZERO, size: 0 }, &new, &[]).is_err());
        assert!(verify_consistency(&Head::EMPTY, &new, &path).is_err());
        assert!(verify_consistency(&old, &new, &path[1..]).is_err());
        assert!(verify_consistency(&old, &new, &[path.as_slice(), &path].concat()).is_err());
    }

    #[test]
    fn a_leaf_is_one_line_and_reads_back() {
        let at: Timestamp = "2026-01-31T09:30:00.000Z".parse().unwrap();
        let entry = RollEntry { id: "g\n1".to_owned(), size: 7, root: Digest::ZERO, seen: at };
        let leaves = [
            Leaf::Enrol { governor: "g1".into(), key: "k".into(), groups: vec!["payments".into()], at, proof: None },
            Leaf::Retire { governor: "g1".into(), by: "ann".into() },
            Leaf::Order { seq: 3, digest: Digest::ZERO, body: None },
            Leaf::Anchor { governor: "g1".into(), note: "a\n1\n\n— b".into(), at },
            Leaf::Fork { governor: "g1".into(), why: "smaller".into(), notes: vec!["a".into(), "b".into()] },
            Leaf::Readmit { governor: "g1".into(), by: "ann".into() },
            Leaf::Epoch { system: "7".into(), timeline: 1, former: Some("note".into()) },
        ];
        for leaf in leaves.into_iter().chain(Leaf::rolls(at, &vec![entry.clone(); 201])) {
            let text = String::from_utf8(leaf.to_bytes().unwrap()).unwrap();
            assert!(text.starts_with("{\"kind\":\"") && !text.contains('\n'), "{text}");
            assert_eq!(Leaf::parse(&text).unwrap(), leaf);
            let unknown = format!("{},\"x\":1}}", text.strip_suffix('}').unwrap());
            assert!(matches!(Leaf::parse(&unknown), Err(LogError::Json(_))), "{unknown}");
        }
        let retired = Leaf::Retire { governor: "g1".into(), by: "ann".into() }.to_bytes().unwrap();
        assert_eq!(retired, br#"{"kind":"retire","governor":"g1","by":"ann"}"#);
        let parts = Leaf::rolls(at, &vec![entry; 201]);
        assert!(matches!(&parts[2], Leaf::Roll { part: 2, parts: 3, governors, .. } if governors.len() == 1));
        let body = Some("x".repeat(Leaf::MAX_BYTES));
        assert!(matches!(Leaf::Order { seq: 1, digest: Digest::ZERO, body }.to_bytes(), Err(LogError::LongLeaf(_))));
    }

    #[test]
    fn a_bundle_of_entries_has_each_length_before_its_leaf() {
        assert_eq!(entries_bundle(&["ab", "", "c"]).unwrap(), b"\0\x02ab\0\0\0\x01c");
        assert!(matches!(entries_bundle(&[vec![0; 65_536]]), Err(LogError::LongLeaf(65_536))));
        assert_eq!(entries_bundle(&[vec![0; 65_535]]).unwrap().len(), 65_537);
    }

    struct Recorded<'a> {
        tiles: &'a HashMap<TileId, Vec<u8>>,
        read: &'a RefCell<Vec<TileId>>,
    }

    impl TileSource for Recorded<'_> {
        fn read(&self, tiles: &[TileId]) -> Result<Vec<Vec<u8>>, LogError> {
            self.read.borrow_mut().extend_from_slice(tiles);
            self.tiles.read(tiles)
        }
    }
}
