//! Commands that are one call of the sidecar's protocol each: its parameters, and the display of its answer.
//!
//! | file | commands |
//! |---|---|
//! | `agents.rs` | `agents` |
//! | `clock.rs` | `clock` |
//! | `escalations.rs` | `escalations` |
//! | `failed.rs` | failures, with their exit codes |
//! | `keys.rs` | `keys` and `kill-switch` |
//! | `tasks.rs` | `tasks` |
//! | `webhooks.rs` | `webhooks` |

mod agents;
mod clock;
mod escalations;
mod failed;
mod keys;
mod tasks;
mod webhooks;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use rulekeep::trust::Score;
use rulekeep_server::calls::Call;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use agents::{Agents, agents};
pub(crate) use clock::{Clock, clock};
pub(crate) use escalations::{Escalations, details, escalations};
pub(crate) use failed::{Failed, finish};
pub(crate) use keys::{Keys, KillSwitch, keys, kill_switch};
pub(crate) use tasks::{Tasks, tasks};
pub(crate) use webhooks::{Webhooks, webhooks};

use crate::client::Client;
use crate::home::Home;
use crate::output::{self, Column};

/// The display of a list.
pub(crate) struct Table<A, R: 'static> {
    pub(crate) rows: fn(&A) -> &[R],
    /// The page and the total, if there are further pages.
    pub(crate) next: fn(&A) -> Option<(u64, u64)>,
    pub(crate) columns: &'static [Column<R>],
}

impl<A: Serialize, R> Table<A, R> {
    /// Prints a list.
    pub(crate) fn show(&self, answer: &A, json: bool) -> Result<ExitCode, Failed> {
        if json {
            return show(answer, json);
        }
        match (self.rows)(answer) {
            [] => eprintln!("none"),
            rows => {
                output::print(&output::table(rows, self.columns))?;
            }
        }
        if let Some((page, total)) = (self.next)(answer) {
            eprintln!("page {page}, {total} in total; next: --page {}", page + 1);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints an answer: its fields, or JSON.
pub(crate) fn show(answer: &impl Serialize, json: bool) -> Result<ExitCode, Failed> {
    output::print(&if json { output::json(answer) } else { output::fields(answer) })?;
    Ok(ExitCode::SUCCESS)
}

/// The options of a reading command: the store, and the format of the answer.
#[derive(clap::Args, Clone)]
pub(crate) struct Reading {
    /// Reads the store in this folder instead of the one in the home
    #[arg(long, value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,
    /// Prints the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Reading {
    /// Creates a client for reading calls.
    pub(crate) fn client(&self) -> Result<Client, Failed> {
        match &self.store {
            Some(store) => Ok(Client::of_folder(store)?),
            None => Ok(Client::reading(&Home::find()?)?),
        }
    }

    /// Makes a call, and prints its answer.
    pub(crate) fn run<C: Call + Serialize>(&self, call: C) -> Result<ExitCode, Failed> {
        show(&self.client()?.make_json(call)?, self.json)
    }

    fn list<C, R>(&self, call: C, table: &Table<C::Answer, R>) -> Result<ExitCode, Failed>
    where
        C: Call<Answer: DeserializeOwned> + Serialize,
    {
        table.show(&self.client()?.make(call)?, self.json)
    }
}

/// The options of a command that changes something, which needs the operator's key.
#[derive(clap::Args, Clone)]
pub(crate) struct Writing {
    /// Prints the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Writing {
    fn run<C: Call + Serialize>(&self, call: C) -> Result<ExitCode, Failed> {
        show(&Client::operating(&Home::find()?)?.make_json(call)?, self.json)
    }

    /// Prints a remark on an answer for people.
    fn remark(&self, remark: &str) {
        if !self.json {
            eprintln!("{remark}");
        }
    }
}

/// The part of a long list to show.
#[derive(clap::Args)]
pub(crate) struct Page {
    /// The page, counted from 1
    #[arg(long, value_name = "N")]
    pub(crate) page: Option<u64>,
    /// Rows per page, at most 200
    #[arg(long, value_name = "N")]
    pub(crate) page_size: Option<u64>,
}

/// Creates a client on a store that only this process has open, to write to it: the one in a folder, otherwise the
/// home's, which needs the operator's key.
pub(crate) fn holding(
    store: Option<&Path>,
    key: Option<rulekeep::checkpoint::CheckpointKey>,
) -> Result<Client, Failed> {
    let home = Home::find();
    let of_home = home.as_ref().ok().and_then(|home| home.store().canonicalize().ok());
    match store {
        Some(folder) if of_home.is_none() || of_home != folder.canonicalize().ok() => {
            Ok(Client::writing_folder(folder, key)?)
        }
        _ => {
            let home = home?;
            released(&home)?;
            if key.is_some() {
                return Err(Failed::usage(
                    "the key for the home's checkpoints is set in config.toml, under [checkpoints]",
                ));
            }
            Ok(Client::operating(&home)?)
        }
    }
}

/// Checks that no daemon has the home's store open.
pub(crate) fn released(home: &Home) -> Result<(), Failed> {
    home.check()?;
    match Client::daemon(home)? {
        Some(_) => Err("the daemon has the store open; stop it first with: rulekeep down".to_owned().into()),
        None => Ok(()),
    }
}

/// Parses a trust score.
pub(crate) fn score(text: &str) -> Result<Score, String> {
    let number: u64 = text.parse().map_err(|error: std::num::ParseIntError| error.to_string())?;
    Score::try_from(number).map_err(|error| error.to_string())
}

/// Parses one of a list of words, in upper or lower case.
pub(crate) fn upper<T: FromStr<Err: ToString>>(text: &str) -> Result<T, String> {
    text.to_ascii_uppercase().parse().map_err(|error: T::Err| error.to_string())
}
