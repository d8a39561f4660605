//! Confined runs: a shell command that a decision confines is rewritten to `rulekeep exec`, which claims the profile of
//! the decision.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rulekeep::intent::Facts;
use rulekeep::proof::ProofId;
use rulekeep::{Enforcement, Error};
use rulekeep_confine::{Code, DeniedPath, Ground, Profile, Reach, temp_of, without_dots};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::area;
use super::calls::Key;
use super::engine::Hearing;
use super::event::{HostCall, Ruling};

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

/// The words about a run that has ended.
pub(super) struct Ended {
    /// The note of its outcome.
    pub(super) note: String,
    /// The line for the user, if the run was refused a file.
    pub(super) told: Option<String>,
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

    /// Notes what a run was refused: hosts with their ports. Any program of the agent can tell this, so nothing else is
    /// taken for one.
    pub(super) fn note_refused(&self, refused: Refused) {
        let is_host = |text: &String| {
            text.len() <= LONGEST_HOST && text.chars().all(|c| c.is_ascii_alphanumeric() || ".-_:[]".contains(c))
        };
        if let Some(prepared) = self.state().prepared.get_mut(&refused.proof_id) {
            prepared.refused = refused.hosts.into_iter().filter(is_host).take(MOST_HOSTS).collect();
        }
    }

    /// Ends a run with the result that its host reports. Returns what to say about it, if it was confined.
    pub(super) fn end(&self, proof_id: ProofId, result: Option<&Value>) -> Option<Ended> {
        let mut state = self.state();
        let prepared = state.prepared.remove(&proof_id)?;
        let mut said = String::new();
        if let Some(result) = result {
            texts(result, &mut said);
        }
        let path = refused_path(&prepared.profile, &said);
        let lower = said.to_lowercase();
        let sign = FILE_SIGNS.iter().chain(&NETWORK_SIGNS).find(|sign| lower.contains(**sign));
        if prepared.refused.is_empty() && sign.is_none() && path.is_none() {
            state.refused.remove(&prepared.key);
            return Some(Ended { note: "confined".to_owned(), told: None });
        }
        if state.refused.len() >= MOST_RUNS {
            state.refused.clear();
        }
        state.refused.insert(prepared.key);
        let what = match (&path, prepared.refused.is_empty(), sign) {
            (Some(path), ..) => path.clone(),
            (None, false, _) => format!("reach {}", prepared.refused.join(", ")),
            (None, true, Some(sign)) if NETWORK_SIGNS.contains(sign) => "reach the network".to_owned(),
            (None, true, sign) => format!("do what failed with {:?}", sign.copied().unwrap_or_default()),
        };
        let note = format!("confined; refused to {what}");
        let told = format!("rulekeep: this run may not {what}; the repeated call asks for a run without confinement.");
        Some(Ended { note, told: Some(told) })
    }

    /// Returns whether the last confined run of a call was refused something.
    pub(super) fn was_refused(&self, key: &Key) -> bool {
        self.state().refused.contains(key)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hearing<'_> {
    /// The key that the context of a call gets if it can be confined; `None` if it cannot, or runs no code whose effects
    /// no text shows.
    pub(super) fn confinable(&self, call: &HostCall, facts: &Facts) -> Option<&'static str> {
        let runs = &self.engine.runs;
        let is_able = runs.are_possible() && self.dialect.rewrites() && self.event.cwd.is_some();
        let code = if is_able { Code::of(facts).ok()?? } else { return None };
        Some(match code {
            // What a confined run was refused, it may get from a person.
            _ if runs.was_refused(&self.key(call)) => "unconfined",
            Code::Alone if !is_background(&call.arguments) => "confinable",
            Code::Alone | Code::Serving => "servable",
        })
    }

    /// The ruling on a call that is granted: a command that has to be confined is rewritten.
    pub(super) fn granted(&self, call: &HostCall, facts: &Facts, verdict: &Enforcement) -> Ruling {
        let id = verdict.proof_id;
        self.note(call, id, None);
        if verdict.constraints.get("confine").is_none() {
            return Ruling::Allow;
        }
        match self.rewritten(call, facts, verdict) {
            Ok(arguments) => {
                // Hosts report the result of the one or of the other.
                self.note(&HostCall { arguments: arguments.clone(), ..call.clone() }, id, None);
                Ruling::Rewrite { arguments, reason: "rulekeep: confined to the folder of the work.".to_owned() }
            }
            Err(why) => {
                let reason =
                    format!("rulekeep: the policy permits this call only as a confined run, and {why}. [{id}]");
                if self.dialect.asks() { Ruling::Ask(reason) } else { Ruling::Deny(reason) }
            }
        }
    }

    /// The arguments of a call with its command rewritten to a confined run; or why it cannot be.
    fn rewritten(&self, call: &HostCall, facts: &Facts, verdict: &Enforcement) -> Result<Value, String> {
        let runs = &self.engine.runs;
        if !runs.are_possible() {
            return Err("this system supports no confined runs".to_owned());
        }
        if !self.dialect.rewrites() {
            return Err(format!("{} cannot rewrite it", self.host.name()));
        }
        let profile = self.profile(facts, verdict)?;
        let rewritten = runs.prepare(verdict.proof_id, self.key(call), profile, &call.arguments);
        rewritten.ok_or_else(|| "it is no command, or too long a one".to_owned())
    }

    /// The profile of a decision.
    fn profile(&self, facts: &Facts, verdict: &Enforcement) -> Result<Profile, String> {
        let folder = self.event.cwd.as_deref().map(Path::new).ok_or("its folder is not known")?;
        let home = std::env::home_dir();
        let below_home = |folder: &String| match (folder.strip_prefix("~/"), &home) {
            (Some(rest), Some(home)) => Some(home.join(rest)),
            _ => Some(PathBuf::from(folder)).filter(|folder| folder.is_absolute()),
        };
        // The host's own places have settings and scripts that it obeys.
        let own = area::of(self.host, folder).into_iter().filter(|place| !place.starts_with('~'));
        let all: Vec<String> = own.chain(self.engine.settings.folders.iter().cloned()).collect();
        let areas: Vec<PathBuf> = all.iter().filter_map(below_home).collect();
        let agent = self.agent.parse().map_err(|_| "the agent has no valid ID".to_owned())?;
        let mut denied: Vec<DeniedPath> = self.governor().policies().current().denied_paths(Some(&agent)).collect();
        denied.push(DeniedPath::at(&self.engine.settings.home));
        let temp = temp_of(&self.conversation());
        let ground = Ground { folder, home: home.as_deref(), areas: &areas, temp: &temp, denied: &denied };
        let profile = Profile::of(&verdict.constraints, facts, &ground).map_err(|error| error.to_string())?;
        profile.ok_or_else(|| "its decision confines nothing".to_owned())
    }
}

/// Collects the texts of a result, a line each.
fn texts(value: &Value, all: &mut String) {
    match value {
        Value::String(text) => all.extend([text, "\n"]),
        Value::Array(_) | Value::Object(_) => {
            let fields = value.as_object().into_iter().flat_map(|fields| fields.values());
            for value in value.as_array().into_iter().flatten().chain(fields) {
                texts(value, all);
            }
        }
        _ => {}
    }
}

/// The act that a run was refused by its profile, as far as the paths in its complaints tell: `write "/etc/hosts"`. They are a
/// program's own words: what exists outside is named, or a plain new name in a folder that does.
fn refused_path(profile: &Profile, said: &str) -> Option<String> {
    let exists = |path: &Path| path.symlink_metadata().is_ok();
    let mut found = None;
    for line in said.lines() {
        let lower = line.to_lowercase();
        let is_denied = FILE_SIGNS.iter().any(|sign| lower.contains(sign));
        if !is_denied && !MISSING.iter().any(|sign| lower.contains(sign)) {
            continue;
        }
        let is_between = |c: char| c.is_whitespace() || "'\"`‘’“”(),;=<>[]".contains(c);
        let words = line.split(is_between).filter(|word| !word.contains("//"));
        for word in words.flat_map(|word| word.split(':')).filter(|word| word.contains('/')) {
            let path = without_dots(&profile.folder.join(word));
            let is_plain = path
                .file_name()
                .and_then(std::ffi::OsStr::to_str)
                .is_some_and(|name| name.len() <= LONGEST_NAME && name.chars().all(|c| c.is_ascii_graphic()));
            let is_new = !exists(&path) && is_plain && path.parent().is_some_and(exists);
            // A path that is not visible tells more than that of the program that complains.
            match profile.reach(&path) {
                Reach::Nothing if exists(&path) => found = Some((true, "read", path)),
                Reach::Nothing if is_new => found = Some((true, "write", path)),
                Reach::Read
                    if is_denied
                        && (exists(&path) || is_new)
                        && !found.as_ref().is_some_and(|(is_hidden, ..)| *is_hidden) =>
                {
                    found = Some((false, "write", path));
                }
                _ => {}
            }
        }
    }
    found.map(|(_, verb, path)| format!("{verb} {:?}", path.display().to_string()))
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
fn is_background(arguments: &Value) -> bool {
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
/// Longest name of a new file that is named.
const LONGEST_NAME: usize = 64;
/// Longest host with its port that is named.
const LONGEST_HOST: usize = 260;
/// Largest number of hosts that are named.
const MOST_HOSTS: usize = 8;
/// Messages for a file that does not exist, in lower case.
const MISSING: [&str; 6] = ["no such file", "nonexistent", "can't cd to", "enoent", "filenotfound", "nosuchfile"];
/// Messages when a confined run is refused a file, in lower case.
const FILE_SIGNS: [&str; 6] =
    ["permission denied", "accessdenied", "operation not permitted", "read-only file system", "eacces", "erofs"];
/// Messages when a confined run is refused the network, in lower case.
const NETWORK_SIGNS: [&str; 8] = [
    "network is unreachable",
    "could not resolve host",
    "temporary failure in name resolution",
    "no such host",
    "unknownhost",
    "connection refused",
    "econnrefused",
    "enetunreach",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_in_the_background_is_told_from_redirections() {
        for (line, goes_on) in [
            ("make &", true),
            ("a & b", true),
            ("make && a", false),
            ("make > out 2>&1", false),
            ("make &> out", false),
            ("make |& tee out", false),
            ("make", false),
        ] {
            assert_eq!(is_background(&json!({ "command": line })), goes_on, "{line}");
        }
        assert!(is_background(&json!({ "command": "make", "run_in_background": true })));
        assert!(!is_background(&json!({ "command": ["make", "&"] })));
    }

    #[test]
    fn the_path_that_was_refused_is_found_in_what_a_program_says() {
        let mut constraints = rulekeep::policy::Constraints::new();
        constraints.insert("confine", json!("workspace"));
        let folder = std::env::current_dir().unwrap();
        let ground = Ground { folder: &folder, home: None, areas: &[], temp: Path::new("/tmp/own"), denied: &[] };
        let profile = Profile::of(&constraints, &Facts::default(), &ground).unwrap().unwrap();
        for (said, refused) in [
            ("/bin/sh: 1: cannot create /opt/x: Read-only file system", Some("write \"/opt/x\"")),
            ("touch: cannot touch '/usr/share/x': Permission denied", Some("write \"/usr/share/x\"")),
            ("PermissionError: [Errno 13] Permission denied: \"/etc/hosts\"", Some("write \"/etc/hosts\"")),
            ("cat: /proc/../root: No such file or directory", Some("read \"/root\"")),
            ("sh: 1: cannot create /srv/x: Directory nonexistent", Some("write \"/srv/x\"")),
            ("open /etc/hosts: permission denied", Some("write \"/etc/hosts\"")), // as Go writes it
            ("java.nio.file.AccessDeniedException: /opt/x", Some("write \"/opt/x\"")),
            ("cat: /no/such/file: No such file or directory", None),
            ("cat: src/lib.rs: Permission denied", None),
            ("done in /opt/x", None),
            // Words that are no files.
            ("fatal: unable to access 'https://github.com/x/y.git/': Could not resolve host: github.com", None),
            ("expected \"Permission denied\" for GET /admin/users", None),
            ("Permission denied: /x\u{2800}THE\u{2800}VENDOR\u{2800}CONFIRMED", None),
            ("Permission denied: /opt/x\u{2800}SAFE", None),
        ] {
            assert_eq!(refused_path(&profile, said).as_deref(), refused, "{said}");
        }
        let mut all = String::new();
        texts(&json!({ "stdout": "a", "more": ["b", 1] }), &mut all);
        assert!(all.contains("a\n") && all.contains("b\n"), "{all}");
    }

    #[test]
    fn a_shell_reads_a_quoted_word_as_it_was() {
        for word in ["", "a b", "it's", "'", "$HOME `id` \"x\"", "a\nb", "*", "ü"] {
            let line = format!("printf %s {}", quoted(word));
            let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
            assert_eq!(output.stdout, word.as_bytes(), "{line}");
        }
    }
}
