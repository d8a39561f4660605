use super::*;
use rulekeep::Governor;

#[test]
fn conversations_whose_tasks_are_over_are_forgotten() {
    let governor = Governor::builder().open_in_memory().unwrap();
    let settings = Settings { mandates: true, ..settings(Tier::T3) };
    let engine = Engine::new(Gateway::new(&governor).unwrap(), settings);
    for session in ["s1", "s2"] {
        let event = json!({
            "hook_event_name": "UserPromptSubmit", "session_id": session, "cwd": "/home/u/shop",
            "prompt": "Run the test suite",
        });
        engine.answer(HookRequest { host: Host::Claude, agent: None, event });
    }
    let known = || Extension::of(&governor).states(&[CONVERSATION]);
    let [over, open] = [&known()[0], &known()[1]].map(Clone::clone);
    governor.tasks().get(over.1.trim_matches('"').parse().unwrap()).unwrap().close(None).unwrap();
    engine.forget_ended();
    assert_eq!(known(), [open]);
}

/// The answer of Claude Code's hook on a command.
fn command(engine: &Engine, cwd: &Path, line: &str) -> String {
    call(engine, &json!(cwd), "Bash", &json!({ "command": line }))
}

fn call(engine: &Engine, cwd: &Value, tool: &str, arguments: &Value) -> String {
    let event = json!({
        "hook_event_name": "PreToolUse", "session_id": "s1", "cwd": cwd, "tool_name": tool,
        "tool_input": arguments, "tool_use_id": "t1",
    });
    match engine.answer(HookRequest { host: Host::Claude, agent: None, event }) {
        HookAnswer { exit: 2, .. } => "deny".to_owned(),
        HookAnswer { stdout, .. } if stdout.is_empty() => "allow".to_owned(),
        HookAnswer { stdout, .. } => {
            let answer: Value = serde_json::from_str(&stdout).unwrap();
            answer["hookSpecificOutput"]["permissionDecision"].as_str().unwrap_or("allow").to_owned()
        }
    }
}

fn settings(tier: Tier) -> Settings {
    let (folders, trusted) = (Vec::new(), Vec::new());
    let (wait, home) = (Duration::ZERO, PathBuf::from("/home/u/.rulekeep"));
    Settings { tier, mandates: false, folders, trusted, wait, home, confining: None }
}

fn engine(rules: &str) -> Engine {
    engine_at(Tier::T3, rules)
}

fn engine_at(tier: Tier, rules: &str) -> Engine {
    let policies = rulekeep::PolicySet::from_toml(rules).unwrap();
    let governor = Governor::builder().policies(policies).open_in_memory().unwrap();
    Engine::new(Gateway::new(&governor).unwrap(), settings(tier))
}

#[test]
fn a_rule_binds_where_links_of_a_path_lead() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let (project, secret) = (root.join("project"), root.join("secret"));
    std::fs::create_dir_all(&secret).unwrap();
    std::fs::create_dir_all(&project).unwrap();
    std::fs::create_dir_all(secret.join("deep")).unwrap();
    std::os::unix::fs::symlink(secret.join("deep"), project.join("deep")).unwrap();
    std::os::unix::fs::symlink(&secret, project.join("data")).unwrap();
    std::os::unix::fs::symlink(secret.join("new"), project.join("new")).unwrap();
    std::os::unix::fs::symlink(&project, root.join("other")).unwrap();
    let engine = engine(&format!(
        "name = \"t\"\n[[rule]]\nid = \"all\"\neffect = \"allow\"\n[[rule]]\nid = \"d\"\neffect = \"deny\"\n\
         match.paths = [\"{}/*\"]",
        secret.display()
    ));
    for (cwd, line, refused) in [
        (&project, "cat data/a", true),
        (&project, "cat data/*", true),
        (&project, "cat deep/../a", true),
        (&project, "echo a > new", true),
        (&project, "cat a", false),
        (&root.join("other"), "cat data/a", true),
        (&root.join("other"), "cat a", false),
    ] {
        assert_eq!(command(&engine, cwd, line) == "deny", refused, "{line}");
    }
}

#[test]
fn a_question_names_the_part_of_the_call_that_it_is_about() {
    let engine = engine(
        "name = \"t\"\n[[rule]]\nid = \"all\"\neffect = \"allow\"\n[[rule]]\nid = \"e\"\neffect = \"escalate\"\n\
         reviewer = \"host-user\"\nmatch.risk = { min = \"HIGH\" }",
    );
    let event = json!({
        "hook_event_name": "PreToolUse", "session_id": "s1", "cwd": "/w", "tool_name": "Bash",
        "tool_input": { "command": "cargo test && rm -rf src; git status" }, "tool_use_id": "t1",
    });
    let answer = engine.answer(HookRequest { host: Host::Claude, agent: None, event });
    assert!(answer.stdout.contains("`rm -rf src` is file:delete at HIGH risk."), "{}", answer.stdout);
}

#[test]
fn a_call_past_a_limit_runs_within_it_if_the_host_rewrites() {
    let rules = "name = \"t\"\n[[rule]]\nid = \"few\"\neffect = \"allow\"\nconstraints = { maxRecords = 50 }";
    let event = |name: &str| {
        json!({
            "hook_event_name": name, "session_id": "s1", "cwd": "/w", "tool_name": "mcp__desk__list_tickets",
            "tool_input": { "query": "open", "limit": 5000 }, "tool_use_id": "t1", "conversation_id": "c1",
        })
    };
    let answer = |host, event| engine(rules).answer(HookRequest { host, agent: None, event });
    let claude = answer(Host::Claude, {
        let mut event = event("PreToolUse");
        event.as_object_mut().unwrap().remove("conversation_id");
        event
    });
    let said: Value = serde_json::from_str(&claude.stdout).unwrap();
    assert_eq!(said["hookSpecificOutput"]["updatedInput"], json!({ "query": "open", "limit": 50 }));
    let gemini = answer(Host::Gemini, event("BeforeTool"));
    let said: Value = serde_json::from_str(&gemini.stdout).unwrap();
    assert_eq!(said["hookSpecificOutput"]["tool_input"]["limit"], 50);
    let cursor = answer(Host::Cursor, event("preToolUse"));
    assert!(cursor.exit == 2 && cursor.stderr.contains("limit = 50"), "{cursor:?}");
}

#[test]
fn a_folder_around_the_home_is_not_removed() {
    let rules = "name = \"t\"\n[[rule]]\nid = \"all\"\neffect = \"allow\"\n[[rule]]\nid = \"d\"\n\
                 effect = \"deny\"\nmatch.actions = [\"change_governance\"]";
    let engine = engine(rules);
    let cwd = Path::new("/home/u/shop");
    for (line, refused) in [
        ("rm -rf /home/u", true),
        ("rm -rf ..", true),
        ("cd .. && rm -rf *", true),
        ("gfind /home -name x -delete", true),
        ("mv /home/u /home/v", true),
        ("rm -rf /home/u/shop", false),
        ("cd .. && rm -rf shop/target", false),
        ("gfind /home -name x", false),
        ("cat > a_test.go <<'E'\n// rm -rf is not run here\nE", false),
        ("grep -rl session /home/u/.rulekeep", false),
        ("./x.sh /home/u/.rulekeep/config.toml", true),
        ("python3 x.py /home/u/.rulekeep/config.toml", true),
        ("ln -s /home/u/.rulekeep/policies x; echo a > x/policy.toml", true),
        ("P=/home/u/.rulekeep/policies; ./x.sh $P", true),
        ("for f in /home/u/.rulekeep/policies/*; do ./x.sh $f; done", true),
        ("find /home/u/.rulekeep -name x | xargs ./x.sh", true),
        ("cp a.txt /home/u/.rulekeep/config.toml", true),
        ("sed -i s/a/b/ /home/u/.rulekeep/config.toml", true),
        ("python3 -c \"open('/home/u/.rulekeep/config.toml','w')\"", true),
    ] {
        assert_eq!(command(&engine, cwd, line) == "deny", refused, "{line}");
    }
}

#[test]
fn a_call_that_cannot_be_read_is_asked_about_when_repeated() {
    let engine = engine(
        "name = \"t\"\n[[rule]]\nid = \"all\"\neffect = \"allow\"\n[[rule]]\nid = \"e\"\neffect = \"escalate\"\n\
         reviewer = \"host-user\"\nmatch.hosts = [\"evil.example\"]",
    );
    let cwd = Path::new("/w");
    for (line, answer) in [
        ("curl https://ok.example/", "allow"),
        ("curl $URL", "deny"),
        ("curl https://ok.example/", "allow"),
        ("curl $URL", "deny"),
        ("curl \"$URL\"", "ask"),
        ("curl https://evil.example/", "ask"),
    ] {
        assert_eq!(command(&engine, cwd, line), answer, "{line}");
    }
}

/// The cases are those of the library, of the server and of the gateway.
#[test]
fn a_first_rule_binds_the_calls_of_a_host() {
    let file: Value = serde_json::from_str(include_str!("../../../../../tests/data/newcomer.json")).unwrap();
    let mut seen = 0;
    for case in file["cases"].as_array().unwrap() {
        let (input, context) = (&case["input"], &case["context"]);
        let Some(tool) = input["tool"].as_str().filter(|_| context.get("environment").is_none()) else { continue };
        let tool = match input["server"].as_str() {
            Some(server) => format!("mcp__{server}__{tool}"),
            None => tool.replace("bash", "Bash"),
        };
        let tier = case["tier"].as_str().unwrap_or("T4").parse().unwrap();
        let engine = engine_at(tier, file["policies"].as_str().unwrap());
        let answer = match case["decision"].as_str().unwrap() {
            "ALLOW" => "allow",
            "ESCALATE" => "ask",
            _ => "deny",
        };
        assert_eq!(call(&engine, &context["cwd"], &tool, &input["arguments"]), answer, "{case}");
        seen += 1;
    }
    assert!(seen >= 15, "{seen} cases are calls");
}

fn event_of(host: Host, tool: &str, arguments: &Value) -> Value {
    let name = if host == Host::Gemini { "BeforeTool" } else { "PreToolUse" };
    json!({
        "hook_event_name": name, "session_id": "s1", "cwd": "/w/shop", "tool_name": tool, "tool_input": arguments,
        "tool_use_id": "t1",
    })
}

/// An engine on a system that can confine commands.
fn confining(rules: &str) -> Engine {
    let policies = rulekeep::PolicySet::from_toml(rules).unwrap();
    let governor = Governor::builder().policies(policies).open_in_memory().unwrap();
    let settings = Settings { confining: Some(PathBuf::from("/opt/rule keep")), ..settings(Tier::T3) };
    Engine::new(Gateway::new(&governor).unwrap(), settings)
}

fn confined(host: Host, rules: &str, tool: &str, arguments: &Value) -> HookAnswer {
    confining(rules).answer(HookRequest { host, agent: None, event: event_of(host, tool, arguments) })
}

const CONFINED: &str = "name = \"t\"\n[[rule]]\nid = \"all\"\neffect = \"allow\"\n\
                        constraints = { confine = \"workspace\", timeoutMs = 5000 }\n";

#[test]
fn a_granted_command_is_confined_however_it_was_granted() {
    // Narrowed as well, because its timeout is longer than the rule permits.
    let narrowed = confined(Host::Claude, CONFINED, "Bash", &json!({ "command": "make 'a b'", "timeout": 60_000 }));
    let said: Value = serde_json::from_str(&narrowed.stdout).unwrap();
    let input = &said["hookSpecificOutput"]["updatedInput"];
    let line = input["command"].as_str().unwrap();
    assert!(line.starts_with("'/opt/rule keep' exec --decision prf_"), "{line}");
    assert!(line.ends_with(r"sh -c 'make '\''a b'\'''") && input["timeout"] == 5000, "{narrowed:?}");
    // A host that sends words gets words.
    let words = confined(Host::Codex, CONFINED, "shell", &json!({ "command": ["make", "it's"] }));
    let said: Value = serde_json::from_str(&words.stdout).unwrap();
    let command = &said["hookSpecificOutput"]["updatedInput"]["command"];
    assert_eq!((&command[0], &command[1], &command[4]), (&json!("/opt/rule keep"), &json!("exec"), &json!("--")));
    assert_eq!((&command[5], &command[6]), (&json!("make"), &json!("it's")));
    // Approved by an operator, on a host that cannot ask its user.
    let asks =
        "[[rule]]\nid = \"ask\"\neffect = \"escalate\"\nreviewer = \"operator\"\nmatch.commands = [\"make *\"]\n";
    let engine = confining(&format!("{CONFINED}{asks}"));
    let event = event_of(Host::Codex, "shell", &json!({ "command": ["make", "x"] }));
    let answer = || engine.answer(HookRequest { host: Host::Codex, agent: None, event: event.clone() });
    let refused = answer().stderr;
    let ticket = refused.split("Ticket ").nth(1).and_then(|rest| rest.split(':').next()).unwrap();
    let id: EscalationId = ticket.parse().unwrap();
    engine.gateway.governor().escalations().approve(id, Review::by("operator")).unwrap();
    let approved = answer();
    assert!(approved.stdout.contains("--decision"), "{approved:?}");
}

#[test]
fn what_cannot_run_confined_does_not_run() {
    for (tool, arguments) in
        [("Read", json!({ "file_path": "/w/shop/a" })), ("Bash", json!({ "command": "'".repeat(40_000) }))]
    {
        let asked = confined(Host::Claude, CONFINED, tool, &arguments);
        assert!(asked.stdout.contains("\"ask\"") || asked.exit == 2, "{tool}: {asked:?}");
    }
    let cursor = json!({
        "hook_event_name": "preToolUse", "session_id": "s1", "conversation_id": "c1", "cwd": "/w/shop",
        "tool_name": "Shell", "tool_input": { "command": "make" }, "tool_use_id": "t1",
    });
    let answer = confining(CONFINED).answer(HookRequest { host: Host::Cursor, agent: None, event: cursor });
    assert!(answer.exit == 2 && answer.stderr.contains("cannot rewrite it"), "{answer:?}");
    // A part of a command cannot be run alone.
    let part = "name = \"t\"\n[[rule]]\nid = \"part\"\neffect = \"degrade\"\nto = [\"file:read\"]\n\
                constraints = { confine = \"workspace\" }\n";
    let refused = confined(Host::Claude, part, "Bash", &json!({ "command": "cat a; make" }));
    assert!(refused.exit == 2 && refused.stdout.is_empty(), "{refused:?}");
}

#[test]
fn a_rule_binds_in_the_environment_that_a_command_names() {
    let engine = engine(
        "name = \"t\"\n[environments]\nproduction = [\"prod\", \"prod-*\"]\nstaging = [\"stage-*\"]\n[[rule]]\n\
         id = \"all\"\neffect = \"allow\"\n[[rule]]\nid = \"d\"\neffect = \"deny\"\n\
         match = { environment = [\"production\"] }",
    );
    for (line, refused) in [
        ("kubectl --context prod-eu get pods", true),
        ("kubectl --context PROD get pods", true),
        ("AWS_PROFILE=prod aws s3 ls", true),
        ("kubectl --context stage-1 get pods", false),
        ("kubectl --context other get pods", false),
        ("kubectl get pods", false),
        // Two environments have no common answer.
        ("kubectl --context stage-1 get pods; kubectl --context prod get pods", true),
        // Nor have one that is listed and one that may be any.
        ("kubectl --context stage-1 get pods; kubectl --context $X get pods", true),
        ("kubectl --context stage-1 get pods; kubectl get pods", true),
        ("kubectl --context stage-1 --context other get pods", true),
        ("STAGE=stage-1 kubectl get pods", true),
        (
            "kubectl --context stage-1 get pods --context a --context b --context c --context d --context e --context f \
          --context g --context prod",
            true,
        ),
        ("kubectl --context stage-1 get pods; echo done", false),
        ("docker --context prod ps", true),
        ("export APP_ENV=prod; php artisan migrate", true),
        ("kubectl config use-context stage-1", false),
    ] {
        assert_eq!(command(&engine, Path::new("/w"), line) == "deny", refused, "{line}");
    }
}
