//! What an operator settles of tools is in the log: pins and overrides outlive a restart and an archive.

use crate::common;

use common::{builder, code, error, in_folder};
use rulekeep::catalogue::{ToolChange, ToolClassification, ToolOverride};
use rulekeep::{Error, Governor, RiskLevel};
use serde_json::{Value, json};

const SERVER: Option<&str> = Some("wiki");

fn tool(name: &str, description: &str) -> Value {
    json!({ "name": name, "description": description })
}

fn load(governor: &Governor, tools: &[Value]) -> Vec<String> {
    governor.tools().load(&json!(tools), SERVER).unwrap().changed
}

fn one(governor: &Governor, name: &str) -> ToolClassification {
    governor.tools().list().into_iter().find(|tool| tool.name == name).unwrap()
}

fn risk_of_call(governor: &Governor, name: &str) -> RiskLevel {
    governor.parse("a", &json!({ "name": name, "arguments": {} }).to_string()).unwrap().intent.risk_level
}

fn low(reason: &str) -> ToolOverride {
    ToolOverride::because(reason).risk(RiskLevel::Low)
}

#[test]
fn a_pin_and_an_override_outlive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let tools = [tool("read_page", "Reads a page."), tool("delete_cache", "Deletes the page cache.")];
    let governor = in_folder(dir.path());
    load(&governor, &tools);
    governor.tools().pin("read_page", SERVER).unwrap();
    governor.tools().override_tool("delete_cache", low("it fills itself again")).unwrap();
    let before = governor.tools().list();
    governor.close().unwrap();

    let governor = in_folder(dir.path());
    assert!(governor.tools().list().is_empty(), "definitions are not kept");
    assert!(load(&governor, &tools).is_empty());
    assert_eq!(governor.tools().list(), before);
    assert!(one(&governor, "read_page").pinned && !one(&governor, "read_page").changed);
    assert_eq!(risk_of_call(&governor, "delete_cache"), RiskLevel::Low);
}

#[test]
fn a_tool_changed_between_runs_is_told_and_its_calls_are_high() {
    let dir = tempfile::tempdir().unwrap();
    let governor = in_folder(dir.path());
    load(&governor, &[tool("lookup", "Reads a document."), tool("clean", "Deletes a cache."), tool("other", "Reads.")]);
    governor.tools().pin("lookup", SERVER).unwrap();
    governor.tools().override_tool("clean", low("a sandbox")).unwrap();
    let pinned = one(&governor, "lookup");
    governor.close().unwrap();

    let governor = in_folder(dir.path());
    let changed =
        [tool("lookup", "Reads the weather."), tool("clean", "Deletes the database."), tool("other", "Writes.")];
    assert_eq!(load(&governor, &changed), ["lookup", "clean"]);
    let now = one(&governor, "lookup");
    assert_eq!(
        (&now.capabilities, now.risk_level, now.digest, now.pinned, now.changed),
        (&pinned.capabilities, pinned.risk_level, pinned.digest, true, true),
        "its classification is the one that was pinned"
    );
    for name in ["lookup", "clean"] {
        assert!(risk_of_call(&governor, name) >= RiskLevel::High, "{name}");
    }
    // Another restart on top knows the same; pinned again, the new definition is the accepted one.
    governor.close().unwrap();
    let governor = in_folder(dir.path());
    assert_eq!(load(&governor, &changed), ["lookup", "clean"]);
    assert!(!governor.tools().pin("lookup", SERVER).unwrap().changed);
    governor.close().unwrap();
    let governor = in_folder(dir.path());
    assert_eq!(load(&governor, &changed), ["clean"]);
}

#[test]
fn what_is_unpinned_or_removed_stays_so_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let first = [tool("a", "Reads a page."), tool("b", "Reads a page."), tool("c", "Reads a page.")];
    let governor = in_folder(dir.path());
    load(&governor, &first);
    governor.tools().change(&["a", "b", "c"].map(ToolChange::pin)).unwrap();
    governor.tools().unpin("a", SERVER).unwrap();
    governor.tools().remove("b", SERVER).unwrap();
    governor.close().unwrap();

    let governor = in_folder(dir.path());
    // One that is not loaded any more is removed by its exact name.
    assert_eq!(code(governor.tools().remove("c", None)), "INVALID_INPUT");
    assert!(governor.tools().remove("c", SERVER).unwrap().pinned);
    assert_eq!(code(governor.tools().remove("c", SERVER)), "INVALID_INPUT");
    let others = [tool("a", "Deletes it."), tool("b", "Deletes it."), tool("c", "Deletes it.")];
    for time in ["at once", "after another restart"] {
        let governor = if time == "at once" { governor.clone() } else { in_folder(dir.path()) };
        assert!(load(&governor, &others).is_empty(), "{time}");
        assert!(governor.tools().list().iter().all(|tool| !tool.pinned), "{time}");
        governor.close().unwrap();
    }
}

#[test]
fn changes_of_a_batch_are_all_made_or_none() {
    let dir = tempfile::tempdir().unwrap();
    let governor = in_folder(dir.path());
    load(&governor, &[tool("a", "Reads."), tool("b", "Reads.")]);
    let before = governor.tools().list();
    let faulty = [ToolChange::pin("a"), ToolChange::set("b", low(" ")), ToolChange::pin("b")];
    let refused = error(governor.tools().change(&faulty));
    assert!(
        matches!(&refused, Error::InvalidInput { field: "reason", message } if message.starts_with("tool 2: ")),
        "{refused}"
    );
    assert_eq!(governor.tools().list(), before);
    let good = [ToolChange::pin("a"), ToolChange::set("a", low("a test")), ToolChange::unpin("b")];
    let answer = governor.tools().change(&good).unwrap();
    assert_eq!(
        answer.iter().map(|tool| (tool.pinned, tool.risk_level)).collect::<Vec<_>>()[..2],
        [(true, before[0].risk_level), (true, RiskLevel::Low)]
    );
    governor.close().unwrap();
    let governor = in_folder(dir.path());
    load(&governor, &[tool("a", "Reads."), tool("b", "Reads.")]);
    assert_eq!(governor.tools().list().iter().map(|tool| tool.pinned).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn what_is_settled_already_is_not_recorded_again() {
    let governor = builder().open_in_memory().unwrap();
    load(&governor, &[tool("a", "Reads."), tool("b", "Reads.")]);
    let entries = || governor.log().journal().entries;
    let settle = || {
        governor
            .tools()
            .change(&[ToolChange::pin("a"), ToolChange::set("b", low("a test")), ToolChange::pin("a")])
            .unwrap();
    };
    let before = entries();
    settle();
    assert_eq!(entries(), before + 2, "one entry a tool");
    settle();
    assert_eq!(entries(), before + 2);
}

#[test]
fn ten_thousand_tools_are_pinned_at_once_and_stay_pinned() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..10_000).map(|number| format!("get_page_{number}")).collect();
    let tools: Vec<Value> = names.iter().map(|name| tool(name, "Reads a page of the wiki.")).collect();
    let governor = in_folder(dir.path());
    load(&governor, &tools);
    let pins: Vec<ToolChange> = names.iter().map(ToolChange::pin).collect();
    assert!(governor.tools().change(&pins).unwrap().iter().all(|tool| tool.pinned));
    governor.close().unwrap();
    let governor = in_folder(dir.path());
    assert!(load(&governor, &tools).is_empty());
    assert_eq!(governor.tools().list().iter().filter(|tool| tool.pinned).count(), names.len());
}

#[test]
fn a_reason_with_a_secret_is_masked_before_it_is_recorded() {
    let governor = builder().open_in_memory().unwrap();
    load(&governor, &[tool("a", "Reads.")]);
    let reason = "the key is AKIAIOSFODNN7EXAMPLE, for now";
    let set = governor.tools().override_tool("a", low(reason)).unwrap();
    assert!(!set.overridden.as_deref().unwrap().contains("AKIAIOSFODNN7EXAMPLE"), "{set:?}");
    assert_eq!(code(governor.tools().override_tool("a", low(&"x".repeat(5000)))), "INVALID_INPUT");
}

/// What a load finds to look like something else: `name likeness of@server`.
fn resembling(governor: &Governor, server: &str, tools: &[Value]) -> Vec<String> {
    let report = governor.tools().load(&json!(tools), Some(server)).unwrap();
    let said = |one: &rulekeep::catalogue::ToolResemblance| {
        format!("{} {} {}@{}", one.name, one.likeness, one.of, one.of_server.as_deref().unwrap_or("-"))
    };
    report.resembling.iter().map(said).collect()
}

#[test]
fn a_look_alike_of_a_pinned_tool_is_told_also_if_it_is_unloaded() {
    let dir = tempfile::tempdir().unwrap();
    let governor = in_folder(dir.path());
    load(&governor, &[tool("read_page", "Reads a page."), tool("list", "Lists pages.")]);
    governor.tools().change(&["read_page", "list"].map(|name| ToolChange::pin(name).of_server("wiki"))).unwrap();
    governor.close().unwrap();

    let governor = in_folder(dir.path());
    for (server, name, description, told) in [
        ("evil", "read_page", "Reads a page of ours.", "read_page sameName read_page@wiki"),
        ("evil", "Read_Page", "Reads.", "Read_Page lookAlike read_page@wiki"),
        ("wiki", "re\u{430}d_page", "Reads.", "re\u{430}d_page lookAlike read_page@wiki"),
        ("wiki", "fetch_page", "Reads a page.", "fetch_page renamed read_page@wiki"),
    ] {
        assert_eq!(resembling(&governor, server, &[tool(name, description)]), [told]);
    }
    for (server, name, description) in
        [("wiki", "read_page", "Reads a page."), ("evil", "fetch_page", "Reads a page."), ("wiki", "other", "Writes.")]
    {
        assert!(resembling(&governor, server, &[tool(name, description)]).is_empty(), "{name}");
    }
}

#[test]
fn two_look_alike_tools_are_told_until_an_operator_pins_one() {
    let governor = builder().open_in_memory().unwrap();
    let tools = [tool("get_user", "Reads a user."), tool("Get_User", "Deletes a user."), tool("plain", "")];
    assert_eq!(resembling(&governor, "s", &tools), ["get_user lookAlike Get_User@s", "Get_User lookAlike get_user@s"]);
    governor.tools().pin("get_user", Some("s")).unwrap();
    assert_eq!(resembling(&governor, "s", &tools), ["Get_User lookAlike get_user@s"]);
    governor.tools().pin("plain", Some("s")).unwrap();
    // A definition that says nothing is nobody's in particular.
    assert!(resembling(&governor, "s", &[tool("other", "")]).is_empty());
}
