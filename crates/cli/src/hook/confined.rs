//! Confined runs: a shell command that a decision confines is rewritten to `rulekeep exec`, which claims the profile of
//! the decision.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rulekeep::Error;
use rulekeep::proof::ProofId;
use rulekeep_confine::Profile;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::calls::Key;

/// The runs that decisions permit, each once.
#[derive(Default)]
pub(super) struct Runs {
    /// The path of this program; `None` if the system supports no confined runs.
    program: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    prepared: HashMap<ProofId, Prepared>,
    order: VecDeque<ProofId>,
    /// Calls whose confined run was refused something.
    refused: HashSet<Key>,
}

struct Prepared {
    /// The call as the agent sent it.
    key: Key,
    profile: Profile,
    command: Vec<String>,
    is_claimed: bool,
    refused: Vec<String>,
}

/// The request of `rulekeep exec` for the profile of a decision.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Claim {
    pub(crate) proof_id: ProofId,
    pub(crate) command: Vec<String>,
}

/// The report of `rulekeep exec` on what a run was refused.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Refused {
    pub(crate) proof_id: ProofId,
    pub(crate) hosts: Vec<String>,
}

impl Runs {
    /// Creates the runs; `program` is this one if the system supports confined runs.
    pub(super) fn new(program: Option<PathBuf>) -> Self {
        Self { program, state: Mutex::default() }
    }

    /// Returns whether commands can be confined.
    pub(super) const fn are_possible(&self) -> bool {
        self.program.is_some()
    }

    /// The arguments of a call with its command rewritten to a confined run under the decision; `None` if none of the
    /// arguments is a command.
    pub(super) fn prepare(&self, proof_id: ProofId, key: Key, profile: Profile, arguments: &Value) -> Option<Value> {
        let program = self.program.as_ref()?.to_str()?;
        let (name, command) = command_of(arguments)?;
        let (written, command) = match command {
            Value::String(line) => {
                let command = vec![shell().to_owned(), "-c".to_owned(), line.clone()];
                let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
                let program = quoted(program);
                (json!(format!("{program} exec --decision {proof_id} -- {}", words.join(" "))), command)
            }
            words => {
                let command: Vec<String> = serde_json::from_value(words.clone()).ok()?;
                let id = proof_id.to_string();
                let own = [program, "exec", "--decision", &id, "--"].into_iter();
                (own.chain(command.iter().map(String::as_str)).collect(), command)
            }
        };
        if written.as_str().is_some_and(|line| line.len() > LONGEST_LINE) {
            return None;
        }
        let mut rewritten = arguments.clone();
        *rewritten.get_mut(name)? = written;
        let mut state = self.state();
        state.order.push_back(proof_id);
        state.prepared.insert(proof_id, Prepared { key, profile, command, is_claimed: false, refused: Vec::new() });
        while state.order.len() > MOST_RUNS {
            let oldest = state.order.pop_front();
            oldest.map(|oldest| state.prepared.remove(&oldest));
        }
        Some(rewritten)
    }

    /// Hands out the profile of a decision, once, for the command that was decided on.
    pub(super) fn claim(&self, claim: &Claim) -> Result<Profile, Error> {
        let mut state = self.state();
        let forbidden = |message: &str| Error::Forbidden { message: message.to_owned() };
        let prepared = state.prepared.get_mut(&claim.proof_id).ok_or_else(|| {
            forbidden("no confined run was decided under this ID; the hook makes them, and the daemon forgets them when it ends")
        })?;
        if prepared.command != claim.command {
            return Err(forbidden("another command was decided under this ID"));
        }
        if std::mem::replace(&mut prepared.is_claimed, true) {
            return Err(forbidden("this run was started before; a decision permits one run"));
        }
        Ok(prepared.profile.clone())
    }

    /// Notes what a run was refused.
    pub(super) fn note_refused(&self, refused: Refused) {
        if let Some(prepared) = self.state().prepared.get_mut(&refused.proof_id) {
            prepared.refused = refused.hosts;
        }
    }

    /// Ends a run with the result that its host reports. Returns what it was refused, in words, if it was confined.
    pub(super) fn end(&self, proof_id: ProofId, result: Option<&Value>) -> Option<String> {
        let mut state = self.state();
        let prepared = state.prepared.remove(&proof_id)?;
        let said = result.map(Value::to_string).unwrap_or_default();
        let sign = SIGNS.iter().find(|sign| said.contains(**sign));
        if prepared.refused.is_empty() && sign.is_none() {
            state.refused.remove(&prepared.key);
            return Some("confined".to_owned());
        }
        if state.refused.len() >= MOST_RUNS {
            state.refused.clear();
        }
        state.refused.insert(prepared.key);
        let hosts = prepared.refused.join(", ");
        let sign = sign.copied().unwrap_or_default();
        Some(format!("confined; refused: {}", [hosts.as_str(), sign].map(str::trim).join(" ").trim()))
    }

    /// Returns whether the last confined run of a call was refused something.
    pub(super) fn was_refused(&self, key: &Key) -> bool {
        self.state().refused.contains(key)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The folder for temporary files of a conversation.
pub(crate) fn temp_of(conversation: &str) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    conversation.hash(&mut hasher);
    Path::new("/tmp").join(format!("rulekeep-{}-{:016x}", rustix::process::getuid().as_raw(), hasher.finish()))
}

/// The argument that is a command: a line for a shell, or a program and its arguments.
fn command_of(arguments: &Value) -> Option<(&'static str, &Value)> {
    let found = COMMANDS.iter().filter_map(|key| Some((*key, arguments.get(*key)?)));
    let is_command = |value: &Value| match value {
        Value::String(_) => true,
        Value::Array(words) => !words.is_empty() && words.iter().all(Value::is_string),
        _ => false,
    };
    found.into_iter().find(|(_, value)| is_command(value))
}

/// Returns whether a call starts something that goes on without it.
pub(super) fn is_background(arguments: &Value) -> bool {
    let is_wished = |key: &str| arguments.get(key).and_then(Value::as_bool).unwrap_or(false);
    let line = command_of(arguments).and_then(|(_, command)| command.as_str()).unwrap_or_default().as_bytes();
    let at = |index: Option<usize>| index.and_then(|index| line.get(index)).copied().unwrap_or(b' ');
    // Not `&&`, and not the `&` of a redirection.
    let is_job = |index: usize| {
        at(Some(index)) == b'&' && !b"&><|".contains(&at(index.checked_sub(1))) && !b"&>".contains(&at(Some(index + 1)))
    };
    BACKGROUND.iter().any(|key| is_wished(key)) || (0..line.len()).any(is_job)
}

/// A word as a POSIX shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn shell() -> &'static str {
    if ["/bin/bash", "/usr/bin/bash"].iter().any(|path| Path::new(path).exists()) { "bash" } else { "sh" }
}

/// The names that hosts give to the command of a shell call.
const COMMANDS: [&str; 2] = ["command", "cmd"];
/// The names that hosts give to the wish that a command goes on in the background.
const BACKGROUND: [&str; 3] = ["run_in_background", "isBackground", "is_background"];
/// Longest line that a system takes as one argument, with some room, in bytes.
const LONGEST_LINE: usize = 120_000;
/// Largest number of runs and calls that are kept.
const MOST_RUNS: usize = 10_000;
/// Messages of the system when a confined run is refused a file or the network.
const SIGNS: [&str; 10] = [
    "Permission denied",
    "Operation not permitted",
    "Read-only file system",
    "Network is unreachable",
    "Could not resolve host",
    "Temporary failure in name resolution",
    "Connection refused",
    "ECONNREFUSED",
    "EACCES",
    "ENETUNREACH",
];
