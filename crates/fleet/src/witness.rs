//! A witness: it cosigns the checkpoints of logs that it knows, and only such that continue what it cosigned before.
//!
//! [`Witness::add_checkpoint`] answers the call `add-checkpoint` of C2SP tlog-witness; the HTTP server is the caller's.
//! The newest checkpoint of each log is a file in the folder of the witness, replaced before the cosignature is returned.
// SOURCE: c2sp.org/tlog-witness.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rulekeep::checkpoint::{Checkpoint, CheckpointError, VerifierKey};
use rulekeep::proof::Digest;
use rulekeep::system::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::cosignature::{CosignatureError, WitnessKey, cosign};
use crate::log::{Head, read_path, verify_consistency};

/// A witness with its key and what it has cosigned. One process at a time can open its folder.
pub struct Witness {
    key: WitnessKey,
    seed: zeroize::Zeroizing<[u8; 32]>,
    folder: PathBuf,
    logs: BTreeMap<String, Log>,
    _lock: File,
}

struct Log {
    key: VerifierKey,
    file: String,
    /// INVARIANT: as in the log's file.
    kept: Option<Head>,
}

/// The reason a witness does not cosign. [`status`](Self::status) is the HTTP status to answer with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WitnessError {
    /// The request does not have the form of the specification.
    #[error("request: expected {0}")]
    Malformed(&'static str),
    /// The checkpoint has an error in its text.
    #[error("checkpoint: {0}")]
    Checkpoint(#[source] CheckpointError),
    /// The witness does not know the log.
    #[error("the log {0:?} is unknown here")]
    UnknownLog(String),
    /// The checkpoint is not signed by the log.
    #[error("checkpoint: {0}")]
    NotSigned(#[source] CheckpointError),
    /// The request starts from another size than this one, that of the last cosigned checkpoint.
    #[error("a proof from another size than {0}, that of the last cosigned checkpoint")]
    OtherSize(u64),
    /// The checkpoint has the size of the last cosigned one and another root: the log shows two histories.
    #[error("a root other than {}, that of the last cosigned checkpoint, which also has {} leaves", .0.root, .0.size)]
    OtherRoot(Head),
    /// The proof does not show that the log continues the last cosigned checkpoint.
    #[error("the log is not shown to continue the last cosigned checkpoint, of {} leaves", .0.size)]
    NotConsistent(Head),
    /// A file in the folder of the witness cannot be used. Nothing was cosigned.
    #[error("{}: {}", .0.display(), .1)]
    Folder(PathBuf, #[source] io::Error),
    /// The name of the witness is invalid.
    #[error(transparent)]
    Key(#[from] CosignatureError),
}

impl WitnessError {
    /// The HTTP status that the specification names for this error.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Malformed(_) | Self::Checkpoint(_) => 400,
            Self::NotSigned(_) => 403,
            Self::UnknownLog(_) => 404,
            Self::OtherSize(_) | Self::OtherRoot(_) => 409,
            Self::NotConsistent(_) => 422,
            Self::Folder(..) | Self::Key(_) => 500,
        }
    }

    /// The size to send as the body of a 409 answer, in decimal with a newline and the type `text/x.tlog.size`.
    pub const fn kept_size(&self) -> Option<u64> {
        match self {
            Self::OtherSize(size) | Self::OtherRoot(Head { size, .. }) => Some(*size),
            _ => None,
        }
    }
}

/// Returns the body of an `add-checkpoint` request: a proof that the log of `old` leaves is a prefix of the checkpoint.
pub fn request(old: u64, path: &[Digest], note: &str) -> String {
    let path: String = path.iter().map(|hash| STANDARD.encode(hash.as_bytes()) + "\n").collect();
    format!("old {old}\n{path}\n{note}")
}

impl Witness {
    /// Opens a witness with the seed of its Ed25519 key (RFC 8032) for the logs of these keys. A new folder is created.
    ///
    /// # Errors
    ///
    /// [`WitnessError::Key`] for an invalid name; [`WitnessError::Folder`] if another process has the folder open, or a
    /// file in it is damaged. A log whose file is damaged is never taken for a new one.
    pub fn open(folder: &Path, name: &str, seed: &[u8; 32], logs: &[VerifierKey]) -> Result<Self, WitnessError> {
        let key = WitnessKey::from_seed(name, seed)?;
        fs::create_dir_all(folder).map_err(failed(folder))?;
        let path = folder.join("LOCK");
        let lock = File::create(&path).map_err(failed(&path))?;
        fs4::FileExt::try_lock(&lock).map_err(|error| failed(&path)(error.into()))?;
        let logs = logs.iter().map(|key| Ok((key.name().to_owned(), Log::open(folder, key)?)));
        let logs = logs.collect::<Result<_, WitnessError>>()?;
        Ok(Self { key, seed: (*seed).into(), folder: folder.to_owned(), logs, _lock: lock })
    }

    /// The public key of the witness.
    pub const fn key(&self) -> &WitnessKey {
        &self.key
    }

    /// The last cosigned size and root of a log; `None` for an unknown log and one that was never cosigned.
    pub fn kept(&self, origin: &str) -> Option<Head> {
        self.logs.get(origin)?.kept
    }

    /// Answers an `add-checkpoint` request: returns the signature line of the witness once the checkpoint is on disk.
    ///
    /// # Errors
    ///
    /// [`WitnessError`], each with the HTTP status of the specification.
    pub fn add_checkpoint(&mut self, body: &str, now: Timestamp) -> Result<String, WitnessError> {
        let (old, path, note) = parse(body).map_err(WitnessError::Malformed)?;
        let origin = Checkpoint::read_unverified(note).map_err(WitnessError::Checkpoint)?.origin().to_owned();
        let Some(log) = self.logs.get_mut(&origin) else { return Err(WitnessError::UnknownLog(origin)) };
        let new = Head::from(&Checkpoint::open(note, &log.key).map_err(WitnessError::NotSigned)?);
        let kept = log.kept.unwrap_or(Head::EMPTY);
        if old > new.size {
            return Err(WitnessError::Malformed("an old size of at most that of the checkpoint"));
        } else if old != kept.size {
            return Err(WitnessError::OtherSize(kept.size));
        } else if old == new.size && new.root != kept.root {
            return Err(WitnessError::OtherRoot(kept));
        }
        verify_consistency(&kept, &new, &path).map_err(|_| WitnessError::NotConsistent(kept))?;
        let at = u64::try_from(now.as_millis() / 1000).unwrap_or(0);
        let line = cosign(note, self.key.name(), &self.seed, at)?;
        replace(&self.folder, &log.file, note).map_err(failed(&self.folder.join(&log.file)))?;
        log.kept = Some(new);
        Ok(line)
    }
}

impl Log {
    fn open(folder: &Path, key: &VerifierKey) -> Result<Self, WitnessError> {
        // Names of logs contain slashes.
        let file = hex::encode(Sha256::digest(key.name())) + ".checkpoint";
        let path = folder.join(&file);
        let kept = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            read => {
                let opened = read.and_then(|note| Checkpoint::open(&note, key).map_err(io::Error::other));
                Some(Head::from(&opened.map_err(failed(&path))?))
            }
        };
        Ok(Self { key: key.clone(), file, kept })
    }
}

/// The old size, the hashes of the proof and the note of a request; otherwise what was expected.
fn parse(body: &str) -> Result<(u64, Vec<Digest>, &str), &'static str> {
    let (head, note) = body.split_once("\n\n").ok_or("an empty line before the checkpoint")?;
    let mut lines = head.split('\n');
    let size = lines.next().and_then(|line| line.strip_prefix("old ")).unwrap_or_default();
    let old: u64 = size.parse().ok().filter(|old: &u64| old.to_string() == size).ok_or("old <size>")?;
    let path = read_path(lines).filter(|path| path.len() <= 63).ok_or("at most 63 lines of 32 bytes in base 64")?;
    Ok((old, path, note))
}

/// Replaces a file so that after a crash either the old or the new one is there.
fn replace(folder: &Path, file: &str, text: &str) -> io::Result<()> {
    let new = folder.join(format!("{file}.new"));
    let mut written = File::create(&new)?;
    written.write_all(text.as_bytes())?;
    written.sync_all()?;
    fs::rename(&new, folder.join(file))?;
    #[cfg(unix)] // elsewhere folders cannot be synced
    File::open(folder)?.sync_all()?;
    Ok(())
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> WitnessError {
    let path = path.to_owned();
    move |source| WitnessError::Folder(path, source)
}
