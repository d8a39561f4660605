//! The OpenAPI document and the server, checked against each other by an independent tool: `schemathesis` from `PyPI`
//! generates valid and invalid requests from the document and checks the responses of a live server.
//! `schemathesis.toml` lists the intended deviations.
//!
//! If Python or `PyPI` is missing, the test prints this to standard error and is skipped; with
//! `RULEKEEP_REQUIRE_PEERS` set it fails instead. `RULEKEEP_EXAMPLES` sets the number of requests for each path.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rulekeep::system::{Clock, SystemClock, Timestamp};
use rulekeep::{Agent, Governor, Tier};
use rulekeep_server::gateway::{Gateway, KeyDraft, Plan, Scope};
use rulekeep_server::http::{Server, router};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::common::{self, programs};
use crate::nightly;

const VERSION: &str = "schemathesis==4.32.5";

/// A clock a thousand times faster than real time, so that rejected keys do not affect one another.
struct Hasty;

impl Clock for Hasty {
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    fn monotonic(&self) -> Duration {
        SystemClock.monotonic() * 1000
    }
}

#[test]
fn schemathesis_finds_nothing() {
    if !nightly() {
        return;
    }
    let python = match programs::python(VERSION) {
        Ok(python) => python,
        Err(why) => return programs::pass_over(&why),
    };
    let folder = programs::kept(VERSION);
    let governor = common::builder().clock(Hasty).auto_register().open_in_memory().unwrap();
    fill(&governor);
    let gateway = Gateway::new(&governor).unwrap();
    let plan = Plan::enterprise(60_000_000, 1_000_000).unwrap();
    let key = gateway.keys().create(KeyDraft::new(Scope::Admin, plan)).unwrap();
    let (end, ended) = oneshot::channel::<()>();
    let runtime = Runtime::new().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let router = router(&gateway);
    let served = runtime.spawn(Server::new().serve(listener, router, async move { drop(ended.await) }));
    let examples = std::env::var("RULEKEEP_EXAMPLES").unwrap_or_else(|_| "15".to_owned());
    let mut program = Command::new(python.with_file_name("schemathesis"));
    program
        .arg("--config-file")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/schemathesis.toml"))
        .args(["run", &format!("http://{address}/openapi.json"), "--no-color", "--continue-on-failure"])
        .args(["--max-examples", &examples, "--seed", "1"])
        .args(["--header", &format!("Authorization: Bearer {}", key.key.expose())])
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .env("PYTHONPATH", Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("HYPOTHESIS_STORAGE_DIRECTORY", folder.join("hypothesis"))
        .current_dir(&folder);
    let deadline = programs::LATER * examples.parse::<u32>().unwrap().div_ceil(15);
    let output = programs::ended(&mut program, &[], deadline);
    end.send(()).unwrap();
    runtime.block_on(served).unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(governor.verify().unwrap().valid);
    let counted = said.lines().filter(|line| line.contains(" generated")).collect::<Vec<_>>().join("; ");
    let _ = writeln!(std::io::stderr(), "schemathesis:{counted}");
}

/// Creates one object of each kind.
fn fill(governor: &Governor) {
    governor.agents().register(Agent::new("support-1").at_tier(Tier::T4)).unwrap();
    for _ in 0..3 {
        common::decide(governor, "support-1");
        governor.enforce(&common::intent("support-1", &["email:send"])).unwrap();
    }
}
