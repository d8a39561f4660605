//! `rulekeep log`: reading and maintaining the log of the home or of any store.
//!
//! | file | commands |
//! |---|---|
//! | `read.rs` | `query`, `stats`, `show` |
//! | `tail.rs` | `tail` |
//! | `verify.rs` | `verify`, `check` |
//! | `export.rs` | `export`, `import` |
//! | `checkpoint.rs` | `checkpoint`, `prove`, `check-proof` |
//! | `maintain.rs` | `archive`, `erase`, `repair` |
//! | `work.rs` | progress, Ctrl-C, and files that are written completely or not at all |

mod checkpoint;
mod export;
mod maintain;
mod read;
mod tail;
mod verify;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use rulekeep::checkpoint::{Checkpoint, VerifierKey};

use crate::operate::{Failed, finish};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Lists records, newest first
    #[command(
        after_help = "Examples:\n  rulekeep log query\n  rulekeep log query --agent support-1 --decision deny\n  rulekeep log query --from 2026-01-01 --risk high --page-size 200 --json\n  rulekeep log query --from yesterday --csv"
    )]
    Query(read::Query),
    /// Counts the records of an agent, or of all agents
    #[command(
        after_help = "Examples:\n  rulekeep log stats\n  rulekeep log stats support-1\n  rulekeep log stats support-1 --from 7d --json"
    )]
    Stats(read::Stats),
    /// Shows the newest records, and with -f new ones as they come
    #[command(after_help = "Examples:\n  rulekeep log tail\n  rulekeep log tail -n 50 --json")]
    Tail(tail::Options),
    /// Shows a record
    #[command(after_help = "Examples:\n  rulekeep log show prf_01m89vy2x6z7e9r8r000000003 --evidence")]
    Show(read::Show),
    /// Verifies the whole log; the exit code is 1 if it is broken
    #[command(after_help = "Examples:\n  rulekeep log verify\n  rulekeep log verify store --json")]
    Verify(verify::Options),
    /// Verifies an export or an archive from the file alone
    #[command(
        after_help = "Examples:\n  rulekeep log check export.jsonl\n  rulekeep log check entries.jsonl --checkpoint monday.txt --checkpoint-key example.com/agents+b9a83f13+Ae1JKMYo0cLG6ukDOJBZlWEpWSc6XGP5NjbBRhSshzfR"
    )]
    Check(verify::Check),
    /// Exports the log as lines that can be verified without this program
    #[command(
        after_help = "Examples:\n  rulekeep log export --out log.jsonl\n  rulekeep log export --store store --agent support-1 --no-evidence --out support-1.jsonl\n  rulekeep log export --from 2026-01-01 --to yesterday --out year.jsonl"
    )]
    Export(export::Options),
    /// Creates a store from an export with all entries
    #[command(after_help = "Examples:\n  rulekeep log import --store imported entries.jsonl")]
    Import(export::Import),
    /// Proves that a record is in the log of a checkpoint, or that the log only grew; only reads the store
    #[command(
        after_help = "Examples:\n  rulekeep log prove prf_01m89vy2x6z7e9r8r000000003 --checkpoint monday.txt --out record.tlog-proof\n  rulekeep log prove --from-size 1 --to-size 3"
    )]
    Prove(checkpoint::Prove),
    /// Verifies a proof of `log prove` from files alone; the exit code is 1 if it does not hold
    #[command(
        after_help = "Examples:\n  rulekeep log check-proof export.jsonl proof.tlog-proof --key example.com/agents+b9a83f13+Ae1JKMYo0cLG6ukDOJBZlWEpWSc6XGP5NjbBRhSshzfR"
    )]
    CheckProof(checkpoint::CheckProof),
    /// Signs a checkpoint of the log, to be kept elsewhere
    #[command(
        after_help = "Examples:\n  rulekeep log checkpoint --out checkpoint.txt\n  rulekeep log checkpoint --store store --checkpoint-name example.com/agents --checkpoint-seed seed.hex"
    )]
    Checkpoint(checkpoint::Create),
    /// Moves old entries to an archive file
    #[command(after_help = "Examples:\n  rulekeep log archive --before 2026-01-01 --out 2025.rka")]
    Archive(maintain::Archive),
    /// Replaces a broken log by a new one, keeping the old one
    #[command(after_help = "Examples:\n  rulekeep log repair broken --suspend-all")]
    Repair(maintain::Repair),
    /// Erases the evidence of records for good; the records stay
    #[command(
        after_help = "Examples:\n  rulekeep log erase --record prf_01m89vy2x6z7e9r8r000000003 --cause \"asked for by the customer\" --yes\n  rulekeep log erase --store store --agent support-1 --before 90d --cause \"the contract ended\" --yes"
    )]
    Erase(maintain::Erase),
}

/// Runs a subcommand.
pub(crate) fn run(command: Command) -> ExitCode {
    let done = match command {
        Command::Query(options) => read::query(options),
        Command::Stats(options) => read::stats(options),
        Command::Tail(options) => tail::run(&options),
        Command::Show(options) => read::show(options),
        Command::Verify(options) => verify::run(&options),
        Command::Check(options) => verify::check(&options),
        Command::Export(options) => export::run(&options),
        Command::Import(options) => export::import_file(&options),
        Command::Prove(options) => checkpoint::prove(&options),
        Command::CheckProof(options) => checkpoint::check(&options),
        Command::Checkpoint(options) => checkpoint::create(&options),
        Command::Archive(options) => maintain::archive(&options),
        Command::Repair(options) => maintain::repair(&options),
        Command::Erase(options) => maintain::erase(&options),
    };
    finish("log", done)
}

/// A checkpoint of the log that was kept elsewhere.
#[derive(clap::Args)]
pub(crate) struct Kept {
    /// A signed checkpoint of the log that was kept elsewhere, to verify against
    #[arg(long, value_name = "FILE", requires = "checkpoint_key")]
    checkpoint: Option<PathBuf>,
    /// The public key that signed the checkpoint, as text
    #[arg(long, value_name = "KEY", requires = "checkpoint")]
    checkpoint_key: Option<VerifierKey>,
}

impl Kept {
    pub(crate) fn read(&self) -> Result<Option<(String, &VerifierKey)>, String> {
        let (Some(file), Some(key)) = (&self.checkpoint, &self.checkpoint_key) else { return Ok(None) };
        let note = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(Some((note, key)))
    }

    /// The checkpoint, with a valid signature.
    fn open(&self) -> Result<Option<Checkpoint>, String> {
        let Some((note, key)) = self.read()? else { return Ok(None) };
        Checkpoint::open(&note, key).map(Some).map_err(|error| format!("the checkpoint: {error}"))
    }
}

/// Returns the folder of a store: the named one, otherwise the home's.
fn folder(named: Option<&PathBuf>) -> Result<PathBuf, Failed> {
    Ok(crate::home::store_of(named.map(PathBuf::as_path))?)
}
