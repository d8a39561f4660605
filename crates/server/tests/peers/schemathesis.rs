//! The OpenAPI document and the server, held against each other by a hand that is not ours: `schemathesis` from `PyPI`
//! makes requests out of the document, good ones and bad ones, and looks at what a live server answers.
//! `schemathesis.toml` says what it finds on purpose.
//!
//! Where there is no Python or `PyPI` this is said on standard error, and the test is passed over; with
//! `RULEKEEP_REQUIRE_PEERS` set it fails instead. `RULEKEEP_EXAMPLES` says how many requests each path gets.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rulekeep::{Agent, Clock, Governor, SystemClock, Tier, Timestamp};
use rulekeep_server::gateway::{Gateway, KeyDraft, Plan, Scope};
use rulekeep_server::http::{Server, router};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::common::{self, programs};
use crate::nightly;

const VERSION: &str = "schemathesis==4.32.5";

/// Limits of rates see a thousand seconds for one: refused keys do not get in each other's way.
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

/// Something of each kind, so that there is something to be found.
fn fill(governor: &Governor) {
    governor.register_agent(Agent::new("support-1").at_tier(Tier::T4)).unwrap();
    for _ in 0..3 {
        common::decide(governor, "support-1");
        governor.enforce(&common::intent("support-1", &["email:send"])).unwrap();
    }
}
