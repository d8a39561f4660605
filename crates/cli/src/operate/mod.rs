//! Commands that are one call of the sidecar's protocol each: a clap structure with its parameters, and the display
//! of its answer.
//!
//! | file | commands |
//! |---|---|
//! | `agents.rs` | `agents` |
//! | `escalations.rs` | `escalations` |
//! | `failed.rs` | failures, with their exit codes |
//! | `keys.rs` | `keys` and `kill-switch` |
//! | `tasks.rs` | `tasks`, except for replays |
//! | `webhooks.rs` | `webhooks` |

mod agents;
mod escalations;
mod failed;
mod keys;
mod tasks;
mod webhooks;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use serde::Serialize;
use serde_json::Value;

pub(crate) use agents::{Agents, agents};
pub(crate) use escalations::{Escalations, escalations};
pub(crate) use failed::{Failed, finish};
pub(crate) use keys::{Keys, KillSwitch, keys, kill_switch};
pub(crate) use tasks::{Tasks, tasks};
pub(crate) use webhooks::{Webhooks, webhooks};

use crate::client::Client;
use crate::home::Home;
use crate::output::{self, Column};

/// A call, and the display of its answer.
pub(crate) struct Verb {
    /// The call's name in the sidecar's protocol.
    pub(crate) method: &'static str,
    /// The location of the rows in the answer; `None` if the answer is one object.
    pub(crate) rows: Option<&'static str>,
    pub(crate) columns: &'static [Column],
    /// A remark printed after the answer, on standard error.
    pub(crate) remark: &'static str,
}

impl Verb {
    /// A call whose answer is one object.
    pub(crate) const fn one(method: &'static str) -> Self {
        Self { method, rows: None, columns: &[], remark: "" }
    }

    /// A call whose answer is a list of rows.
    pub(crate) const fn list(method: &'static str, rows: &'static str, columns: &'static [Column]) -> Self {
        Self { method, rows: Some(rows), columns, remark: "" }
    }

    pub(crate) const fn remark(self, remark: &'static str) -> Self {
        Self { remark, ..self }
    }

    /// Makes the call and prints its answer.
    pub(crate) fn run(&self, client: &Client, params: &impl Serialize, json: bool) -> Result<ExitCode, Failed> {
        self.show(&client.call(self.method, parameters(params)?)?, json)
    }

    /// Prints an answer.
    pub(crate) fn show(&self, answer: &Value, json: bool) -> Result<ExitCode, Failed> {
        if json {
            output::print(&output::json(answer))?;
            return Ok(ExitCode::SUCCESS);
        }
        let rows = self.rows.and_then(|rows| answer.pointer(rows)).and_then(Value::as_array);
        if rows.is_some_and(Vec::is_empty) {
            eprintln!("none");
        } else {
            output::print(&rows.map_or_else(|| output::fields(answer), |rows| output::table(rows, self.columns)))?;
        }
        if let (Some(total), Some(page), true) =
            (answer["total"].as_u64(), answer["page"].as_u64(), answer["hasMore"] == true)
        {
            eprintln!("page {page}, {total} in total; next: --page {}", page + 1);
        }
        if !self.remark.is_empty() {
            eprintln!("{}", self.remark);
        }
        Ok(ExitCode::SUCCESS)
    }
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

    fn run(&self, verb: &Verb, params: &impl Serialize) -> Result<ExitCode, Failed> {
        verb.run(&self.client()?, params, self.json)
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
    fn run(&self, verb: &Verb, params: &impl Serialize) -> Result<ExitCode, Failed> {
        verb.run(&Client::operating(&Home::find()?)?, params, self.json)
    }
}

/// The part of a long list to show.
#[derive(clap::Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Page {
    /// The page, counted from 1
    #[arg(long, value_name = "N")]
    page: Option<u64>,
    /// Rows per page, at most 200
    #[arg(long, value_name = "N")]
    page_size: Option<u64>,
}

/// A note that the log keeps.
#[derive(clap::Args, Serialize)]
struct Note {
    /// The reason, for the log
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

/// A call without parameters.
#[derive(Serialize)]
struct Nothing {}

/// The parameters of a call on one object.
#[derive(Serialize)]
struct Id<'a> {
    id: &'a str,
}

/// Returns the parameters of a call, without those that were not given.
pub(crate) fn parameters(params: &impl Serialize) -> Result<Value, Failed> {
    let mut params = serde_json::to_value(params).map_err(|error| error.to_string())?;
    if let Value::Object(fields) = &mut params {
        fields.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty()));
    }
    Ok(params)
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

/// Parses one of a list of words, in upper or lower case.
pub(crate) fn upper<T: FromStr<Err: ToString>>(text: &str) -> Result<T, String> {
    text.to_ascii_uppercase().parse().map_err(|error: T::Err| error.to_string())
}
