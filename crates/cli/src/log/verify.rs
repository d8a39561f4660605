//! `rulekeep log verify` and `check`.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;

use rulekeep::Governor;
use rulekeep::checkpoint::VerifierKey;
use rulekeep::maintenance::{verify_archive, verify_signed_archive};
use rulekeep::proof::{VerifyOptions, verify_export, verify_export_against};

use super::work::{Progress, open};
use super::{Kept, folder};
use crate::operate::{Failed, show};

/// The log to verify.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The folder of the store (default: the one in the home)
    #[arg(value_name = "DIR")]
    store: Option<PathBuf>,
    /// The same, with the name that other commands use
    #[arg(long = "store", value_name = "DIR", conflicts_with = "store")]
    named: Option<PathBuf>,
    /// An archive of earlier entries, oldest first; can be given several times
    #[arg(long = "archive", value_name = "FILE", conflicts_with = "checkpoint")]
    archives: Vec<PathBuf>,
    #[command(flatten)]
    kept: Kept,
    /// Prints the result as JSON
    #[arg(long)]
    json: bool,
}

/// The file to verify.
#[derive(clap::Args)]
pub(crate) struct Check {
    /// The export or the archive
    file: PathBuf,
    /// The public key that must have signed the archive's checkpoint
    #[arg(long, value_name = "KEY")]
    key: Option<VerifierKey>,
    #[command(flatten)]
    kept: Kept,
    /// Prints the result as JSON
    #[arg(long)]
    json: bool,
}

/// Verifies the log from its files, even while a daemon writes to it.
pub(super) fn run(options: &Options) -> Result<ExitCode, Failed> {
    let kept = options.kept.read()?;
    let store = folder(options.store.as_ref().or(options.named.as_ref()))?;
    let progress = Progress::new("verifying");
    let governor = Governor::open_read_only(&store)?;
    let shown = progress.clone();
    let settings = VerifyOptions::new().on_progress(move |so_far| shown.set(so_far.done, so_far.of));
    let verification = match kept {
        Some((note, key)) => governor.log().verify_with_checkpoint(&settings, &note, key),
        None if options.archives.is_empty() => governor.log().verify(&settings),
        None => governor.log().verify_with_archives(&options.archives),
    }?;
    progress.end();
    governor.close()?;
    show(&verification, options.json)?;
    if let Some(found) = &verification.index_differed {
        eprintln!(
            "the index in {} lies: {found}; the next opening rebuilds it; find out who changed the folder",
            store.join("view").display()
        );
        return Ok(ExitCode::FAILURE);
    }
    if verification.valid {
        if !verification.checked.is_index_compared {
            eprintln!("the index was not compared: another process has the store open, or it has no index yet");
        }
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!(
        "the log does not verify and is read-only; stop the process that has it open, keep a copy, then run: rulekeep \
         log repair {}",
        store.display()
    );
    Ok(ExitCode::FAILURE)
}

/// Verifies a file by itself.
pub(super) fn check(options: &Check) -> Result<ExitCode, Failed> {
    let file = &options.file;
    let mut beginning = Vec::new();
    open(file)?.take(ARCHIVE.len() as u64).read_to_end(&mut beginning).map_err(|error| error.to_string())?;
    let kept = options.kept.open()?;
    if kept.is_some() && beginning == ARCHIVE {
        return Err(Failed::usage("--checkpoint is for exports; an archive has its own, which --key verifies"));
    }
    match (&options.key, beginning == ARCHIVE) {
        (Some(key), true) => show(&verify_signed_archive(file, key)?, options.json),
        (None, true) => show(&verify_archive(file)?, options.json),
        (Some(_), false) => Err(Failed::usage("--key is for archives; for exports there is --checkpoint")),
        (None, false) => {
            let progress = Progress::new("reading");
            let (mut export, mut shown) = (open(file)?, |_, bytes| progress.bytes(bytes));
            let report = match &kept {
                Some(checkpoint) => verify_export_against(&mut export, checkpoint, &mut shown)?,
                None => verify_export(&mut export, &mut shown)?,
            };
            progress.end();
            show(&report, options.json)
        }
    }
}

/// The first bytes of an archive.
const ARCHIVE: &[u8] = b"RKarch01";
