//! The OpenAPI document and the server, held against each other by a hand that is not ours: `schemathesis` from `PyPI`
//! makes requests out of the document, good ones and bad ones, and looks at what a live server answers.
//! `tests/openapi/schemathesis.toml` says what it finds on purpose.
//!
//! Where there is no Python or `PyPI` this is said on standard error, and the test is passed over; with
//! `RULEKEEP_REQUIRE_PEERS` set it fails instead. `RULEKEEP_EXAMPLES` says how many requests each path gets.
#![cfg(feature = "http")]
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

mod common;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rulekeep::gateway::{Gateway, KeyDraft, Plan, Scope};
use rulekeep::http::{Server, router};
use rulekeep::{Agent, Clock, Governor, SystemClock, Tier, Timestamp};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

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
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(VERSION.replace("==", "-"));
    let program = match environment(&folder) {
        Ok(program) => program,
        Err(why) => return pass_over(&why),
    };
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
    let output = Command::new(program)
        .arg("--config-file")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openapi/schemathesis.toml"))
        .args(["run", &format!("http://{address}/openapi.json"), "--no-color", "--continue-on-failure"])
        .args(["--max-examples", &examples, "--seed", "1"])
        .args(["--header", &format!("Authorization: Bearer {}", key.key.expose())])
        .env("HYPOTHESIS_STORAGE_DIRECTORY", folder.join("hypothesis"))
        .current_dir(&folder)
        .output()
        .unwrap();
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

/// Says why a test is passed over, past the test harness, which keeps what a good test prints to itself.
fn pass_over(why: &str) {
    assert!(std::env::var_os("RULEKEEP_REQUIRE_PEERS").is_none(), "{why}");
    let _ = writeln!(std::io::stderr(), "SKIPPED, nothing was asked: {why}");
}

/// The program: installed once, kept with what is built. Or why there is none.
fn environment(folder: &Path) -> Result<PathBuf, String> {
    let scripts = folder.join(if cfg!(windows) { "Scripts" } else { "bin" });
    let (python, program) = (scripts.join("python"), scripts.join("schemathesis"));
    let is_there = |program: &Path| {
        let asked = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    };
    if is_there(&program) {
        return Ok(program);
    }
    let run = |program: &Path, arguments: &[&str]| match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    };
    let path = folder.to_str().ok_or("the target folder's name is not UTF-8")?;
    run(Path::new("python3"), &["-m", "venv", "--clear", path])
        .map_err(|why| format!("python3 makes no venv: {why}"))?;
    run(&python, &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", VERSION])
        .map_err(|why| format!("pip cannot install {VERSION}: {why}"))?;
    if is_there(&program) { Ok(program) } else { Err(format!("{VERSION} was installed and does not run")) }
}
