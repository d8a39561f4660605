//! Tests of `policy explain` with everything that an agent could send.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use super::commands::{policy, stdout};

/// Runs `explain --input -` or `--tool -` on a text.
fn explain(option: &str, text: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_rulekeep"))
        .args(["policy", "explain", option, "-", "--tier", "T3", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program may stop reading once the text is too long.
    let _ = child.stdin.take().unwrap().write_all(text);
    child.wait_with_output().unwrap()
}

fn answer(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn any_text_gets_an_explanation_or_a_typed_error() {
    let deep = |levels: usize| format!("{{\"tool\":\"x\",\"arguments\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    for (option, text, expected) in [
        ("--input", b"Delete all customer records".to_vec(), "DENY"),
        ("--input", b"Summarize the meeting notes".to_vec(), "ALLOW"),
        ("--input", Vec::new(), "INVALID_INPUT"),
        ("--input", b" \n\t ".to_vec(), "INVALID_INPUT"),
        ("--input", vec![b'a'; 64 * 1024], "ESCALATE"),
        ("--input", vec![b'a'; 64 * 1024 + 1], "PAYLOAD_TOO_LARGE"),
        ("--input", vec![0xff, 0xfe, 0x00], "INVALID_USE"),
        ("--input", vec![0x01, 0x02, 0x1b], "INVALID_INPUT"),
        ("--input", "Удали все файлы пользователя".into(), "ESCALATE"),
        ("--input", "\u{202e}\u{200b}delete it".into(), "DENY"),
        ("--input", deep(20_000).into_bytes(), "DENY"),
        ("--tool", deep(20_000).into_bytes(), "INVALID_USE"),
        ("--tool", deep(30).into_bytes(), "ESCALATE"),
        ("--tool", b"{\"arguments\": {}}".to_vec(), "INVALID_USE"),
        ("--tool", b"send it".to_vec(), "INVALID_USE"),
        ("--tool", br#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#.to_vec(), "INVALID_USE"),
    ] {
        let output = explain(option, &text);
        let answer = answer(&output);
        let found = answer["decision"].as_str().or_else(|| answer["error"]["code"].as_str());
        let text = String::from_utf8_lossy(&text).chars().take(60).collect::<String>();
        assert_eq!(found, Some(expected), "{option} {text:?}: {}", answer["reasoning"]);
        assert_eq!(output.status.code(), Some(if answer["error"].is_null() { 0 } else { 2 }), "{option} {text:?}");
    }
}

#[test]
fn a_call_is_read_alike_in_every_form() {
    let arguments = json!({ "to": "ann@example.com", "body": "Hi" });
    let params = json!({ "name": "send_email", "arguments": arguments });
    for call in [
        json!({ "tool": "send_email", "arguments": arguments }),
        params.clone(),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }),
    ] {
        let answer = answer(&explain("--tool", call.to_string().as_bytes()));
        let intent = &answer["parse"]["intent"];
        assert_eq!((&intent["parsedAction"], &intent["riskLevel"]), (&json!("send_email"), &json!("MEDIUM")), "{call}");
        assert_eq!(answer["decision"], "ALLOW", "{call}");
        assert_eq!(answer["parse"]["evidence"][0]["capability"], "email:send");
    }
}

#[test]
fn what_was_read_comes_before_the_rules_and_the_context_counts() {
    let call = r#"{"tool": "deploy", "server": "ci", "arguments": {"path": "app/\u001b[31m"}}"#;
    let output = policy(&["explain", "--tool", call, "--agent", "bot-1", "--tier", "T4"]);
    let text = stdout(&output);
    assert!(text.starts_with("read as: ") && text.contains("  tool: \"deploy\"\n  server: \"ci\"\n"), "{text}");
    assert!(text.find("read as").unwrap() < text.find("decided by:").unwrap());
    assert!(!text.contains('\u{1b}'), "a text of the request must not steer the terminal: {text:?}");

    let mail = ["explain", "--input", "Send the agenda to ann@example.com", "--tier", "T4", "--json"];
    let risk = |more: &[&str]| answer(&policy(&[&mail[..], more].concat()))["riskLevel"].clone();
    assert_eq!(risk(&["--context", "floor=3"]), "MEDIUM");
    assert_eq!(risk(&["--context", "environment=production", "--context", "floor=3"]), "HIGH");
}

#[test]
fn the_data_class_is_told_with_what_implies_it() {
    let call = r#"{ "tool": "read_customer", "arguments": { "id": 1 } }"#;
    for (context, class, implied_by, line) in [
        ("a=1", "CONFIDENTIAL", json!(["customer:read"]), "data class CONFIDENTIAL, implied by customer:read"),
        ("dataClassification=PUBLIC", "CONFIDENTIAL", json!(["customer:read"]), "implied by customer:read"),
        (
            "dataClassification=RESTRICTED",
            "RESTRICTED",
            json!([]),
            "data class RESTRICTED, by context.dataClassification",
        ),
    ] {
        let arguments = ["explain", "--tool", call, "--tier", "T4", "--context", context];
        assert!(stdout(&policy(&arguments)).contains(line), "{context}: {}", stdout(&policy(&arguments)));
        let told = answer(&policy(&[&arguments[..], &["--json"]].concat()));
        assert_eq!(told["dataClass"], json!({ "class": class, "impliedBy": implied_by }), "{context}");
    }
}

/// A hook binds a call by the environment that its command names, so a preview of the call has to do so as well.
#[test]
fn the_environment_that_a_command_names_is_that_of_a_hook() {
    let folder = tempfile::tempdir().unwrap();
    let rules = "name = \"clusters\"\n[environments]\nproduction = [\"prod-*\"]\nstaging = [\"stage\"]\n\
                 [[rule]]\nid = \"all\"\neffect = \"allow\"\n\
                 [[rule]]\nid = \"prod\"\neffect = \"escalate\"\nreviewer = \"ann\"\nmatch.environment = [\"production\"]\n";
    let cases = |name: &str, decision: &str| {
        format!(
            "[[case]]\nname = \"{name}\"\nagent = {{ tier = \"T4\" }}\nexpect = {{ decision = \"{decision}\" }}\n\
             input = '''{{\"tool\":\"Bash\",\"arguments\":{{\"command\":\"kubectl --context {name} get pods\"}}}}'''\n"
        )
    };
    std::fs::write(folder.path().join("p.toml"), rules).unwrap();
    std::fs::write(folder.path().join("c.toml"), cases("prod-eu", "ESCALATE") + &cases("stage", "ALLOW")).unwrap();
    let run = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_rulekeep"))
            .current_dir(folder.path())
            .arg("policy")
            .args(arguments)
            .output()
            .unwrap()
    };
    let explained = |command: &str, more: &[&str]| {
        let tool = json!({ "tool": "Bash", "arguments": { "command": command } }).to_string();
        run(&[&["explain", "--policy", "p.toml", "--tier", "T4", "--json", "--tool", &tool], more].concat())
    };
    assert_eq!(answer(&explained("kubectl --context prod-eu get pods", &[]))["decision"], "ESCALATE");
    assert_eq!(answer(&explained("kubectl --context stage get pods", &[]))["decision"], "ALLOW");
    let claimed = explained("kubectl --context prod-eu get pods", &["--context", "environment=staging"]);
    assert_eq!(answer(&claimed)["decision"], "ALLOW");
    let several = explained("kubectl --context prod-eu get pods; kubectl --context stage get pods", &[]);
    assert!(!several.status.success() && String::from_utf8_lossy(&several.stderr).contains("run one command for each"));
    let tested = run(&["test", "p.toml", "c.toml"]);
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stdout));
}
