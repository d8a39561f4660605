//! The hook in real agent hosts: npm installs them, a model on 127.0.0.1 makes their calls, and no call that Rulekeep
//! refuses may run.
//!
//! npm downloads some 1.5 GB, so the tests run only where `RULEKEEP_NIGHTLY` is set; `RULEKEEP_HOSTS=claude,codex` limits
//! them to some hosts. Where npm, Node or Python is missing, the tests print SKIPPED; with `RULEKEEP_REQUIRE_PEERS` set
//! they fail instead.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

#[path = "../../../server/tests/common/programs.rs"]
mod programs;
#[path = "../setup/mod.rs"]
mod setup;

mod host;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use host::{Host, Place, Reaction};
use serde_json::json;
use setup::Setup;

const POLICY: &str = r#"
name = "hosts"
description = "Everything but deleting."

[[rule]]
id = "nothing-is-deleted"
effect = "deny"
reason = "Nothing is deleted here."
match = { capabilities = ["*:delete"] }

[[rule]]
id = "all-else"
effect = "allow"
reason = "Anything else is allowed here."
match = { risk = { max = "HIGH" } }
"#;

/// The faults of a hook: its action on a call, and its action on the events before the call. A late hook refuses in
/// the end, so its call runs only if the host enforces its time limit.
const FAULTS: [(&str, &str, &str); 6] = [
    ("silent", "exit 2", ""),
    ("crash", "echo trouble >&2; exit 1", ""),
    ("missing", "", "rm -f \"$0\""),
    ("killed", "kill -KILL $$", ""),
    ("late", "sleep 20 >/dev/null 2>&1; echo refused >&2; exit 2", ""),
    ("garbage", "echo 'all is well'", ""),
];

#[test]
fn a_refused_call_does_not_run_in_any_host_but_an_allowed_does() {
    each(|name, host, program| {
        let setup = Setup::new();
        fs::write(setup.home().join("policies/policy.toml"), POLICY).unwrap();
        let _up = setup.up();
        let folder = tempfile::tempdir().unwrap();
        let place = Place { home: setup.home().parent().unwrap(), work: folder.path() };
        host.write_settings(&place);
        let installed = setup.run(&["hook", "install", "--host", name, "--yes"]);
        assert_eq!(installed.code, 0, "{installed:?}");
        let [kept, made] = ["kept", "made"].map(|name| folder.path().join(name));
        fs::write(&kept, "").unwrap();
        let results =
            host.run(program, &place, &[format!("rm {}", kept.display()), format!("touch {}", made.display())]);
        assert!(kept.exists(), "{name} ran a call that was refused; the model got {results:?}");
        assert!(made.exists(), "{name} did not run a call that was allowed; the model got {results:?}");
        assert!(results[0].contains("Nothing is deleted here"), "{name} did not say why: {results:?}");
        let records = setup.ask("proof/query", &json!({ "entityId": name }));
        let decisions: Vec<_> = records["items"].as_array().unwrap().iter().map(|item| &item["decision"]).collect();
        assert_eq!(decisions, ["ALLOW", "DENY"], "{name}: {records}");
    });
}

#[test]
fn hosts_do_with_a_failed_hook_what_the_documentation_says() {
    each(|name, host, program| {
        let found = host.faults.keys().map(|fault| (fault.clone(), reaction(name, host, program, fault))).collect();
        assert_eq!(host.faults, found, "{name}: expected (left) as in hosts.toml");
    });
}

/// The reaction of the host to a call whose hook has the fault.
fn reaction(name: &str, host: &Host, program: &Path, fault: &str) -> Reaction {
    let (home, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let place = Place { home: home.path(), work: work.path() };
    host.write_settings(&place);
    let hook = home.path().join("hook");
    let (_, call, other) = FAULTS.iter().find(|(name, ..)| *name == fault).unwrap();
    let script = format!("#!/bin/sh\ncase \"$(cat)\" in\n*touch*) {call};;\n*) {other};;\nesac\n");
    fs::write(&hook, script).unwrap();
    fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).unwrap();
    for (path, text) in plan(name, &place, &hook) {
        let is_manifest = path.ends_with("plugin.json");
        let text = if fault == "late" && !is_manifest { hurried(name, &text) } else { text };
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let made = work.path().join("made");
    host.run(program, &place, &[format!("touch {}", made.display())]);
    if made.exists() { Reaction::Runs } else { Reaction::Blocks }
}

/// The paths and texts of the files that register the hook.
fn plan(name: &str, place: &Place<'_>, hook: &Path) -> Vec<(PathBuf, String)> {
    use rulekeep_cli::hook::event::Host;
    use rulekeep_cli::hook::install::{Scope, plan_install};
    let host = <Host as clap::ValueEnum>::from_str(name, false).unwrap();
    let changes = plan_install(host, Scope::User, place.home, place.work, hook.to_str().unwrap()).unwrap();
    changes.into_iter().filter_map(|change| Some((change.path, change.after?))).collect()
}

/// The settings with a time limit of 2 seconds for calls.
fn hurried(name: &str, text: &str) -> String {
    let (before, after) = match name {
        "gemini" => ("\"timeout\": 60000", "\"timeout\": 2000"),
        "copilot" => ("\"timeoutSec\": 30", "\"timeoutSec\": 2"),
        "goose" => ("\"timeout\": 30", "\"timeout\": 2"),
        "opencode" => (", 600)", ", 2)"),
        _ => ("\"timeout\": 600", "\"timeout\": 2"),
    };
    assert!(text.contains(before), "{name} has another time limit: {text}");
    text.replace(before, after)
}

/// Runs a trial with each host that can be installed. One test at a time, because a child process of one could hold a script
/// open that another wants to start.
fn each(trial: impl Fn(&str, &Host, &Path)) {
    static ALONE: Mutex<()> = Mutex::new(());
    if std::env::var_os("RULEKEEP_NIGHTLY").is_none() {
        return;
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let wanted = std::env::var("RULEKEEP_HOSTS").unwrap_or_default();
    for (name, host) in host::all() {
        if !wanted.is_empty() && !wanted.split(',').any(|wanted| wanted == name) {
            continue;
        }
        match host.program() {
            Ok(program) => trial(&name, &host, &program),
            Err(why) => programs::pass_over(&why),
        }
    }
}
