//! What the integration tests share: a small policy set, intents built by hand,
//! clocks that do as they are told, pictures of a store that can be compared, and
//! child processes.
//!
//! No helper here relies on what a sentence parses to.
#![allow(dead_code)] // every test crate has its own copy of this module and uses a part of it
#![allow(clippy::unwrap_used, clippy::expect_used)] // a helper that cannot go on fails its test

pub(crate) mod generated;

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use rulekeep::proof::ProofId;
use rulekeep::system::{Clock, Timestamp};
use rulekeep::{
    Agent, Decision, Durability, Error, Governor, GovernorBuilder, Intent, Outcome, PolicySet, ProofQuery, ProofRecord,
    RiskLevel, Tier,
};
use serde_json::{Value, json};

/// One rule for each effect. `code:*` is named by none of them.
pub(crate) const POLICIES: &str = r#"
name = "small"

[[rule]]
id = "reading-is-fine"
effect = "allow"
match.capabilities = ["document:read", "file:read"]
constraints = { maxRecords = 100, timeoutMs = 30000 }

[[rule]]
id = "writing-is-fine-within-limits"
effect = "allow"
match.capabilities = ["document:write"]
constraints = { maxRecords = 10, allowedHosts = ["a.example", "b.example"] }

[[rule]]
id = "nobody-deletes-files"
effect = "deny"
reason = "Files are kept."
match.capabilities = ["file:delete"]

[[rule]]
id = "mail-needs-a-person"
effect = "escalate"
reviewer = "mail-lead"
match.capabilities = ["email:send"]

[[rule]]
id = "databases-are-only-read"
effect = "degrade"
to = ["database:read"]
match.capabilities = ["database:*"]
"#;

/// Any time that is not today: 2027-01-15T08:00:00.000Z.
pub(crate) const NOON: i64 = 1_800_000_000_000;

pub(crate) fn policies() -> PolicySet {
    PolicySet::from_toml(POLICIES).expect("the tests' own policies load")
}

/// A builder with the small policies.
pub(crate) fn builder() -> GovernorBuilder {
    Governor::builder().policies(policies())
}

/// A governor in memory with the small policies and the agent `a` at T4.
pub(crate) fn in_memory() -> Governor {
    let governor = builder().open_in_memory().expect("a store in memory opens");
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).expect("a new agent registers");
    governor
}

/// The same in a folder; opened again, the agent is there.
pub(crate) fn in_folder(folder: &Path) -> Governor {
    open_with(builder(), folder)
}

pub(crate) fn open_with(builder: GovernorBuilder, folder: &Path) -> Governor {
    let governor = builder.open(folder).expect("the folder opens");
    if governor.agents().get("a").is_err() {
        governor.agents().register(Agent::new("a").at_tier(Tier::T4)).expect("a new agent registers");
    }
    governor
}

pub(crate) fn intent(agent: &str, capabilities: &[&str]) -> Intent {
    Intent::new(agent, "example_action", RiskLevel::Low, capabilities).expect("the intent is well-formed")
}

/// An intent that the small policies allow.
pub(crate) fn reading(agent: &str) -> Intent {
    intent(agent, &["document:read"])
}

/// Decides on a reading and returns the proof's id.
pub(crate) fn decide(governor: &Governor, agent: &str) -> ProofId {
    governor.enforce(&reading(agent)).expect("a reading is decided").proof_id
}

/// Decisions with much beside each, so that few fill a segment.
pub(crate) fn heavy(governor: &Governor, count: usize, salt: usize) -> Vec<ProofId> {
    let mut ids = Vec::with_capacity(count);
    for number in 0..count {
        // Text that does not pack well, and is the same each time.
        let text: String = (0_u64..2600)
            .scan((number + 1000 * salt) as u64 + 1, |state, _| {
                *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                Some(format!("{state:016x} "))
            })
            .collect();
        ids.push(governor.enforce(&reading("a").with_context("notes", text)).unwrap().proof_id);
    }
    governor.log().flush().unwrap();
    ids
}

/// Waits until every segment but the last is sealed.
pub(crate) fn wait_until_sealed(governor: &Governor) {
    while governor.log().journal().unsealed > 0 {
        std::thread::yield_now();
    }
}

/// Every record of the agents, in the order of the chain.
pub(crate) fn chain(governor: &Governor, agents: &[&str]) -> Vec<ProofRecord> {
    let mut records = Vec::new();
    for agent in agents {
        let mut page = 1;
        loop {
            let found =
                governor.query(&ProofQuery::entity(*agent).page(page).page_size(200)).expect("the query is answered");
            records.extend(found.items);
            if !found.has_more {
                break;
            }
            page += 1;
        }
    }
    records.sort_by_key(|record| record.id.sequence());
    records
}

/// Everything that can be asked about the agents, as one value. Two stores that
/// hold the same give the same picture, provided their clocks show the same.
pub(crate) fn picture(governor: &Governor, agents: &[&str]) -> Value {
    let queries = |agent: &str| {
        let all = ProofQuery::entity(agent).page_size(7);
        let mut answers =
            vec![json!(governor.query(&all).unwrap()), json!(governor.query(&all.clone().page(2)).unwrap())];
        for decision in Decision::ALL {
            answers.push(json!(governor.query(&all.clone().decision(*decision)).unwrap()));
        }
        for outcome in Outcome::ALL {
            answers.push(json!(governor.query(&all.clone().outcome(*outcome)).unwrap()));
        }
        answers
    };
    let of_agent = |agent: &&str| {
        json!({
            "agent": governor.agents().get(agent).unwrap(),
            "records": chain(governor, &[agent]),
            "queries": queries(agent),
            "stats": governor.stats(agent, ..).unwrap(),
        })
    };
    json!({
        "agents": governor.agents().list(),
        "of": agents.iter().map(of_agent).collect::<Vec<_>>(),
        "verification": governor.verify().unwrap(),
        "policies": governor.policies().current().digest(),
        "length": governor.status().metrics.proof_chain_length,
    })
}

/// A store with some of everything, closed cleanly, and what stands in it.
pub(crate) struct Sample {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) picture: Value,
    pub(crate) ids: Vec<ProofId>,
}

/// The agents of a [`Sample`].
pub(crate) const SAMPLE_AGENTS: [&str; 3] = ["a", "b", "c"];

impl Sample {
    /// Three agents with `decisions` decisions in all, every third with an outcome.
    pub(crate) fn new(decisions: usize) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let governor = Self::builder().open(dir.path().join("store")).expect("a new store opens");
        for (agent, tier) in SAMPLE_AGENTS.iter().zip([Tier::T4, Tier::T2, Tier::T5]) {
            governor.agents().register(Agent::new(*agent).at_tier(tier).with_label("sample")).unwrap();
        }
        let asked: [&[&str]; 5] = [
            &["document:read"],
            &["file:delete"],
            &["email:send"],
            &["database:read", "database:write"],
            &["code:write", "document:write"],
        ];
        let mut ids = Vec::new();
        for number in 0..decisions {
            let agent = SAMPLE_AGENTS[number % SAMPLE_AGENTS.len()];
            let id = governor.enforce(&intent(agent, asked[number % asked.len()])).unwrap().proof_id;
            if number % 3 == 1 {
                governor.report(&id, Outcome::ALL[number % Outcome::ALL.len()]).unwrap();
            }
            ids.push(id);
        }
        governor.agents().suspend("c", "a sample of it").unwrap();
        let picture = picture(&governor, &SAMPLE_AGENTS);
        governor.close().expect("a clean close");
        Self { dir, picture, ids }
    }

    /// How the sample was built; opened otherwise, trust would drift with the time.
    pub(crate) fn builder() -> GovernorBuilder {
        builder().clock(Still::at(NOON)).durability(Durability::Buffered)
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    /// A copy that may be harmed.
    pub(crate) fn copy(&self) -> tempfile::TempDir {
        let copy = tempfile::tempdir().expect("a temporary folder");
        copy_folder(&self.folder(), copy.path());
        copy
    }
}

/// The one segment of a small store's journal.
pub(crate) fn journal(folder: &Path) -> PathBuf {
    folder.join("journal").join("0000000000.rkj")
}

pub(crate) fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Every file below a folder, sorted.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            files.extend(files_below(&entry.path()));
        } else {
            files.push(entry.path());
        }
    }
    files.sort();
    files
}

/// Where the frames of a segment start and end, read by the layout that
/// `crates/log/src/store/frame.rs` documents.
pub(crate) fn frames(segment: &[u8]) -> Vec<std::ops::Range<usize>> {
    let number = |at: usize| u32::from_le_bytes(segment[at..at + 4].try_into().unwrap()) as usize;
    let mut frames = Vec::new();
    let mut at = 128;
    while segment.get(at..at + 4) == Some(b"RKf2") {
        let end = at + 64 + number(at + 20) + number(at + 24);
        frames.push(at..end);
        at = end;
    }
    frames
}

/// A clock that stands still.
pub(crate) struct Still(Timestamp);

impl Still {
    pub(crate) fn at(millis: i64) -> Self {
        Self(Timestamp::from_millis(millis))
    }
}

impl Clock for Still {
    fn now(&self) -> Timestamp {
        self.0
    }
}

/// A clock that shows what it was last set to.
#[derive(Clone)]
pub(crate) struct Hand(Arc<AtomicI64>);

impl Hand {
    pub(crate) fn at(millis: i64) -> Self {
        Self(Arc::new(AtomicI64::new(millis)))
    }

    pub(crate) fn set(&self, millis: i64) {
        self.0.store(millis, Ordering::SeqCst);
    }
}

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::SeqCst).unsigned_abs())
    }
}

/// The error that a call must answer. What it answered instead is not shown: it can be very long.
pub(crate) fn error<T>(result: Result<T, Error>) -> Error {
    result.err().expect("expected an error, found a result")
}

/// The code of that error.
pub(crate) fn code<T>(result: Result<T, Error>) -> &'static str {
    error(result).code()
}

/// The variable by which a child process learns which folder is meant.
const CHILD_FOLDER: &str = "RULEKEEP_TEST_CHILD_FOLDER";

/// The folder, in a process that [`ChildProcess::start`] started. Elsewhere a
/// test that is such a process has nothing to do.
pub(crate) fn child_folder() -> Option<PathBuf> {
    std::env::var_os(CHILD_FOLDER).map(PathBuf::from)
}

/// This test executable once more, running one of its tests. Killed when dropped.
pub(crate) struct ChildProcess {
    pub(crate) child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl ChildProcess {
    pub(crate) fn start(test: &str, folder: &Path) -> Self {
        Self::start_with(test, folder, Vec::new())
    }

    /// One that has these in its environment besides.
    pub(crate) fn start_with(test: &str, folder: &Path, environment: Vec<(String, String)>) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(CHILD_FOLDER, folder)
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the test executable starts");
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// What the child says next; `None` when it has ended.
    pub(crate) fn heard(&mut self) -> Option<String> {
        loop {
            let line = self.lines.next()?.ok()?;
            // The test harness writes to the same stream.
            if let Some((_, said)) = line.split_once(SAID) {
                return Some(said.to_owned());
            }
        }
    }

    /// Ends the child at once, as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        // It may have ended by itself; then there is nothing to kill.
        let _ = self.child.kill();
        self.child.wait().expect("a child can be waited for");
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Says a line to the parent, in one write.
pub(crate) fn say(text: &str) {
    use std::io::Write;
    let mut output = std::io::stdout().lock();
    // A parent that has gone hears nothing more; it will have killed this process.
    let _ = output.write_all(format!("{SAID}{text}\n").as_bytes());
    let _ = output.flush();
}

const SAID: &str = "said: ";
