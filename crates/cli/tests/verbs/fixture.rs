//! A home with records of every kind, created once and copied for each test.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::world;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_rulekeep");
/// The public half of the key that signs the checkpoints of the home.
const SEED: &str = "0303030303030303030303030303030303030303030303030303030303030303";

/// A home, and a work folder with a store and files. The daemon, if started, ends with this value.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
    pub(crate) made: &'static Made,
}

/// The content of every home.
pub(crate) struct Made {
    folder: TempDir,
    pub(crate) key: String,
    /// An ID of each kind, by its prefix.
    pub(crate) ids: BTreeMap<String, String>,
    /// The hub of a fleet, which accepts orders without keeping them.
    hub: world::Hub,
}

impl Place {
    /// Creates a home without a running daemon.
    pub(crate) fn new() -> Self {
        static MADE: OnceLock<Made> = OnceLock::new();
        let made = MADE.get_or_init(Made::new);
        let folder = tempfile::tempdir().unwrap();
        copy(made.folder.path(), folder.path());
        Self { folder, made }
    }

    /// Creates a home with a running daemon.
    pub(crate) fn with_daemon() -> Self {
        let place = Self::new();
        place.ok(&["up"]);
        place
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn id(&self, prefix: &str) -> &str {
        &self.made.ids[prefix]
    }

    /// The program, with the operator's key.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments);
        self.prepare(&mut command);
        command
    }

    pub(crate) fn prepare(&self, command: &mut Command) {
        command.current_dir(self.work()).stdin(Stdio::null());
        command.env("RULEKEEP_HOME", self.home()).env("RULEKEEP_OPERATOR_KEY", &self.made.key).env("HOME", self.work());
        let hub = &self.made.hub;
        command.env("RULEKEEP_FLEET_HUB", &hub.url).env("RULEKEEP_FLEET_TOKEN", world::TOKEN);
        command.env("RULEKEEP_FLEET_ANCHOR", &hub.anchor);
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs a command that must succeed. Returns its output.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command with `--json` that must succeed.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let printed = self.ok(&[arguments, &["--json"]].concat());
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {printed}"))
    }

    /// Runs a command that must end with this code. Returns its output on standard error.
    pub(crate) fn fails(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        said
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.home().join("operator.sock").exists() {
            self.run(&["down"]);
        }
    }
}

impl Made {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (home, work) = (folder.path().join("home"), folder.path().join("work"));
        fs::create_dir(&work).unwrap();
        let run = |arguments: &[&str], input: &str| {
            let mut command = Command::new(PROGRAM);
            command.args(arguments).current_dir(&work).env("RULEKEEP_HOME", &home);
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{arguments:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        let made: Value = serde_json::from_str(&run(&["init", "--yes", "--json"], "")).unwrap();
        let key = made["operatorKey"].as_str().unwrap().to_owned();
        let mut config = fs::read_to_string(home.join("config.toml")).unwrap();
        config.push_str("\n[checkpoints]\nname = \"example.com/agents\"\nseed = \"seed.hex\"\n");
        fs::write(home.join("config.toml"), config).unwrap();
        fs::write(home.join("seed.hex"), SEED).unwrap();

        let answers = run(&["sidecar", "--store", home.join("store").to_str().unwrap()], &calls());
        let store = home.join("store");
        run(&["log", "export", "--store", store.to_str().unwrap(), "--out", "export.jsonl"], "");
        run(&["log", "export", "--store", store.to_str().unwrap(), "--entries", "--out", "entries.jsonl"], "");
        copy(&store, &work.join("store"));
        copy(&store, &work.join("broken"));
        break_store(&work.join("broken"));
        fs::write(work.join("seed.hex"), SEED).unwrap();
        copy(&store, &work.join("signed"));
        let log = |line: &str| run(&[&["log"], line.split(' ').collect::<Vec<_>>().as_slice()].concat(), "");
        log(
            "checkpoint --store signed --checkpoint-name example.com/agents --checkpoint-seed seed.hex --out monday.txt",
        );
        let ids = ids(&answers);
        log(&format!("prove {} --store signed --out proof.tlog-proof", ids["prf_"]));
        for name in ["policy.toml", "policy.cases.toml"] {
            fs::copy(home.join("policies").join(name), work.join(name)).unwrap();
        }
        fs::write(work.join("settings.json"), r#"{"permissions": {"allow": ["Bash(npm run test:*)"]}}"#).unwrap();
        world::write(&work);
        fs::write(work.join("token"), world::TOKEN).unwrap();
        Self { folder, key, ids, hub: world::Hub::start(world::orders(), false) }
    }
}

/// The calls that fill the store.
fn calls() -> String {
    let asked = |text: &str| ("enforce", json!({ "agentId": "support-1", "input": text }));
    let calls = [
        ("agent/register", json!({ "agentId": "support-1", "tier": "T3", "owner": "dana" })),
        ("webhook/add", json!({ "url": "https://audit.example/rulekeep" })),
        ("event/subscribe", json!({ "types": ["proof.recorded"] })),
        asked("Read the file notes.txt"),
        asked("Read the file notes.md"),
        asked("Drop the production database"),
        (
            "enforce",
            json!({
                "agentId": "support-1",
                "input": "Pay 5000 dollars to account 123\n\u{1b}[31m",
                "context": { "memo": "lunch\u{9b}2J\u{202e}" },
            }),
        ),
        ("key/create", json!({ "scope": "agent", "plan": "free" })),
        ("stop/set", json!({ "group": "nobody", "by": "dana" })),
        ("task/open", json!({ "agentId": "support-1", "input": "Read the file notes.txt" })),
    ];
    let lines = calls.iter().enumerate().map(|(id, (method, params))| {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string() + "\n"
    });
    lines.collect()
}

/// Returns the IDs in the answers: the first of each kind; the record is that of the first request.
fn ids(answers: &str) -> BTreeMap<String, String> {
    let mut ids = BTreeMap::new();
    for word in answers.split(|one: char| !(one.is_ascii_alphanumeric() || one == '_')) {
        if word.len() == 30 && word.as_bytes()[3] == b'_' {
            ids.entry(word[..4].to_owned()).or_insert_with(|| word.to_owned());
        }
    }
    let is_question = |line: &&str| line.contains("\"result\"") && line.contains("\"ESCALATE\"");
    let asks = answers.lines().find(is_question).unwrap();
    let asks: Value = serde_json::from_str(asks).unwrap();
    let record = asks["result"]["proofId"].as_str().unwrap();
    ids.insert("esc_".to_owned(), record.replace("prf_", "esc_"));
    ids
}

/// Flips a bit in a record.
pub(crate) fn break_store(store: &Path) {
    let file = fs::read_dir(store.join("journal")).unwrap().map(|entry| entry.unwrap().path()).next().unwrap();
    let mut bytes = fs::read(&file).unwrap();
    let place = bytes.windows(7).position(|seven| seven == b"\"ALLOW\"").unwrap();
    bytes[place + 1] ^= 1;
    fs::write(&file, bytes).unwrap();
}

pub(crate) fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").arg(from.join(".")).arg(made(to)).status().unwrap();
    assert!(done.success());
}

fn made(folder: &Path) -> &Path {
    fs::create_dir_all(folder).unwrap();
    folder
}

/// Waits until another process makes the condition true.
pub(crate) fn until(holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "it did not come about");
        thread::sleep(Duration::from_millis(10));
    }
}
