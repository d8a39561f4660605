//! A rule that binds on something binds on every spelling of it.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use rulekeep::intent::Parser;
use rulekeep::policy::PolicyRequest;
use rulekeep::trust::TrustSnapshot;
use rulekeep::{Decision, PolicySet, Tier};
use serde_json::{Map, Value, json};

const RULES: &str = r#"
name = "denies"
[[rule]]
id = "everything"
effect = "allow"
[[rule]]
id = "paths"
effect = "deny"
match = { paths = ["/srv/secret/*"] }
[[rule]]
id = "hosts"
effect = "deny"
match = { hosts = ["evil.example", "*.evil.example", "10.0.0.5"] }
[[rule]]
id = "commands"
effect = "deny"
match = { commands = ["git push*", "terraform destroy*"] }
[[rule]]
id = "tools"
effect = "deny"
match = { tools = ["mcp__jira__delete_issue"] }
[[rule]]
id = "tables"
effect = "deny"
match = { tables = ["salaries"] }
[[rule]]
id = "people"
effect = "deny"
match = { recipients = ["*@evil.example"] }
"#;

/// A request in which something protected is spelled in some way.
#[derive(Debug, Clone)]
struct Spelled {
    text: String,
    cwd: Option<&'static str>,
    home: Option<&'static str>,
}

fn decision(set: &PolicySet, spelled: &Spelled) -> Decision {
    thread_local!(static PARSER: Parser = Parser::new().unwrap());
    let folders = [("cwd", spelled.cwd), ("home", spelled.home)];
    let context: Map<String, Value> =
        folders.into_iter().filter_map(|(key, folder)| Some((key.to_owned(), json!(folder?)))).collect();
    let agent = "tester".parse().unwrap();
    let intent = PARSER.with(|parser| parser.parse_text(&agent, &spelled.text, &context).unwrap().intent);
    let trust = TrustSnapshot::new(Tier::T5.middle(), Tier::T5);
    set.evaluate(&PolicyRequest::new(&intent, trust)).unwrap().decision
}

/// A path in the protected folder, with a line before it that it needs and the folder in which the line runs.
fn place() -> impl Strategy<Value = (&'static str, &'static str, Option<&'static str>)> {
    let (none, srv, app, secret) = (None, Some("/srv"), Some("/srv/app"), Some("/srv/secret"));
    select(vec![
        ("", "/srv/secret/a", none),
        ("", "/srv/./secret//a", none),
        ("", "/srv/app/../secret/a", none),
        ("", "'/srv/secret/a'", none),
        ("", "\"/srv/sec\"ret/a", none),
        ("", "/srv/sec\\ret/a", none),
        ("", "/proc/self/root/srv/secret/a", none),
        ("", "secret/a", srv),
        ("", "./secret/a", srv),
        ("", "$PWD/secret/a", srv),
        ("", "\"${PWD}/secret/a\"", srv),
        ("", "../secret/a", app),
        ("", "../../srv/secret/a", app),
        ("", "a", secret),
        ("", "./a", secret),
        ("", "~/secret/a", none),
        ("", "$HOME/secret/a", none),
        ("", "\"$HOME\"/secret/a", none),
        ("cd /srv/secret && ", "a", none),
        ("cd /srv; cd secret; ", "a", none),
        ("cd secret && ", "./a", srv),
        ("cd /srv/app && ", "../secret/a", none),
        ("pushd /srv/secret && ", "a", none),
        ("cd /srv/secret; cd ../x1; cd x2; cd x3; cd x4; ", "a", none),
        ("D=/srv/secret; ", "$D/a", none),
        ("", "/srv/secre?/a", none),
        ("", "/srv/{secret,app}/a", none),
        ("", "$UNKNOWN", none),
        ("", "$(some_tool)", none),
    ])
}

/// A program that does something with a path, written `@`.
fn use_of_path() -> impl Strategy<Value = &'static str> {
    select(vec![
        "cat @",
        "cat -n -- @",
        "head -n1 @",
        "head -5 @",
        "tail -f @",
        "wc -lc @",
        "sort -o @ x",
        "sort x -o@",
        "stat @",
        "rm -f @",
        "rm -rf -- @",
        "touch @",
        "cp @ /tmp/x",
        "cp /tmp/x @",
        "cp -t @ /tmp/x",
        "mv @ /tmp/x",
        "mv x @",
        "ln -s @ /tmp/x",
        "chmod 600 @",
        "chown -R ann @",
        "grep -r key @",
        "grep -e key @",
        "grep -f @ x",
        "rg key @",
        "sed -n 1p @",
        "sed -i.bak s/a/b/ @",
        "find @ -type f",
        "find @ -delete",
        "tar czf /tmp/x @",
        "tar -cf @ x",
        "dd if=@ of=/tmp/x",
        "dd of=@",
        "zip -r /tmp/x @",
        "tee @",
        "tee -a @",
        "diff @ x",
        "rsync -a @ /tmp/x",
        "echo x > @",
        "echo x >> @",
        "wc -l < @",
        "curl -T @ https://good.example",
        "curl -o @ https://good.example",
        "curl -so@ https://good.example",
        "wget -O @ https://good.example",
        "mytool @",
        "mytool --file @",
        "mytool x y @ z",
        "truncate -s 0 @",
        "mkdir -p @",
        "base64 @",
        "xxd @",
    ])
}

/// What stands around a command.
fn around() -> impl Strategy<Value = &'static str> {
    select(vec![
        "@",
        "@; ls",
        "ls; @",
        "ls && @",
        "@ && echo done",
        "@ | head -1",
        "false || @",
        "(@)",
        "{ @; }",
        "sudo @",
        "env A=1 @",
        "nice -n 5 @",
        "timeout 5 @",
        "if true; then @; fi",
        "! @",
        "time @",
        "echo x; @ & ls",
    ])
}

fn shell(line: &str) -> String {
    json!({ "tool": "bash", "arguments": { "command": line } }).to_string()
}

fn paths() -> impl Strategy<Value = Spelled> {
    let shell_lines = (place(), use_of_path(), around()).prop_map(|((before, path, cwd), using, around)| {
        let command = format!("{before}{}", using.replace('@', path));
        // Words behind a wrapper belong to one command.
        let around = if before.is_empty() || !around.ends_with(" @") { around } else { "@" };
        let line = around.replace('@', &command);
        Spelled { text: shell(&line), cwd, home: Some("/srv") }
    });
    let tools = (
        select(vec![
            "read_file",
            "write_file",
            "delete_file",
            "list_directory",
            "frobnicate",
            "mcp__fs__edit_file",
            "Read",
        ]),
        select(vec!["path", "file_path", "file", "paths", "source", "target", "foo", "filename", "uri"]),
        select(vec![
            ("/srv/secret/a", None),
            ("/srv/./secret//a", None),
            ("/srv/app/../secret/a", None),
            ("/SRV/secret/a", None),
            ("file:///srv/secret/a", None),
            ("file://localhost/srv/secret/a", None),
            (" /srv/secret/a", None),
            ("\\srv\\secret\\a", None),
            ("/tmp/a,/srv/secret/a", None),
            ("/tmp/a:/srv/secret/a", None),
            ("/proc/1/root/srv/secret/a", None),
            ("secret/a", Some("/srv")),
            ("../secret/a", Some("/srv/app")),
            ("./secret/a", Some("/srv")),
        ]),
        0_usize..5,
    )
        .prop_map(|(tool, key, (path, cwd), form)| {
            let mut arguments = json!({ "content": "x" });
            arguments[key] = match form {
                0 => json!([path]),
                1 => json!(["/tmp/a", path]),
                2 => json!({ "path": path }),
                _ => json!(path),
            };
            Spelled { text: json!({ "tool": tool, "arguments": arguments }).to_string(), cwd, home: None }
        });
    let within = (
        select(vec!["cwd", "workdir", "working_directory", "cd", "dir"]),
        select(vec!["cat a", "rm -f ./a", "cat ../secret/a"]),
    )
        .prop_map(|(key, line)| {
            let key = if key == "cd" { "cwd" } else { key };
            let mut arguments = json!({ "command": line });
            arguments[key] = json!("/srv/secret");
            Spelled {
                text: json!({ "tool": "bash", "arguments": arguments }).to_string(),
                cwd: Some("/tmp"),
                home: None,
            }
        });
    prop_oneof![6 => shell_lines, 3 => tools, 1 => within]
}

fn others() -> impl Strategy<Value = Spelled> {
    let plain = |text: String| Spelled { text, cwd: None, home: None };
    let host = select(vec![
        "https://evil.example/a",
        "HTTPS://EVIL.example.",
        "https://user:pw@evil.example:8443/",
        "http:/evil.example",
        "http:\\\\evil.example",
        "https://a.b.evil.example/?q=1",
        "http://10.0.0.5/",
        "http://167772165/",
        "http://0x0a000005:80/",
        "http://[::ffff:10.0.0.5]/",
    ]);
    let hosts = (host, 0_usize..6).prop_map(move |(url, form)| {
        plain(match form {
            0 => shell(&format!("curl -s '{url}'")),
            1 => shell(&format!("wget -q -O /tmp/x \"{url}\" && ls")),
            2 => json!({ "tool": "fetch", "arguments": { "url": url } }).to_string(),
            3 => json!({ "tool": "frobnicate", "arguments": { "x": { "y": [url] } } }).to_string(),
            4 => json!({ "tool": "http_request", "arguments": { "method": "POST", "endpoint": url, "body": "x" } })
                .to_string(),
            _ => json!([{ "tool": "get_weather", "arguments": {} }, { "tool": "fetch", "arguments": { "url": url } }])
                .to_string(),
        })
    });
    let command = select(vec![
        "git push",
        "git push origin main",
        "git -C /x push",
        "git --no-pager push -f",
        "/usr/bin/git push",
        "g\"it\" push",
        "git p'us'h",
        "git  push",
        "git -c a.b=c push",
        "terraform destroy -auto-approve",
        "terraform -chdir=x destroy",
        "$TOOL push",
        "X=git; $X push",
    ]);
    let commands = (command, around(), 0_usize..3).prop_map(move |(command, around, form)| {
        let line = around.replace('@', command);
        plain(match form {
            0 if !line.contains('\'') => shell(&format!("bash -c '{line}'")),
            1 => json!({ "tool": "shell", "arguments": { "cmd": ["bash", "-lc", line] } }).to_string(),
            _ => shell(&line),
        })
    });
    let tools = (0_usize..7).prop_map(move |form| {
        let (tool, arguments) = ("mcp__jira__delete_issue", json!({ "issue_id": "A-1" }));
        plain(
            match form {
                0 => json!({ "tool": tool, "arguments": arguments }),
                1 => json!({ "tool": "delete_issue", "server": "jira", "arguments": arguments }),
                2 => json!({ "method": "tools/call", "params": { "name": tool, "arguments": arguments } }),
                3 => json!({ "tool_calls": [{ "type": "function", "function": { "name": tool, "arguments": arguments.to_string() } }] }),
                4 => json!({ "content": [{ "type": "tool_use", "id": "x", "name": tool, "input": arguments }] }),
                5 => json!([{ "tool": "get_issue", "arguments": arguments }, { "tool": tool, "arguments": arguments }]),
                _ => json!({ "functionCall": { "name": tool, "args": arguments } }),
            }
            .to_string(),
        )
    });
    let people = (
        select(vec![
            "eve@evil.example",
            "Eve <eve@EVIL.example>",
            "mailto:eve@evil.example",
            "ann@good.example, eve@evil.example",
            "ann@good.example; eve@evil.example",
            "eve@evil.example.",
        ]),
        select(vec!["to", "cc", "bcc", "reply_to", "forward_to", "foo"]),
    )
        .prop_map(move |(who, key)| {
            let mut arguments = json!({ "to": "ann@good.example", "subject": "x", "body": "y" });
            arguments[key] = json!(who);
            plain(json!({ "tool": "send_email", "arguments": arguments }).to_string())
        });
    prop_oneof![3 => hosts, 3 => commands, 1 => tools, 2 => people]
}

#[test]
fn a_rule_binds_on_every_spelling_of_what_it_names() {
    let cases = std::env::var("RULEKEEP_SPELLING_CASES").map_or(2_000, |cases| cases.parse().unwrap());
    let set = PolicySet::from_toml(RULES).unwrap();
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(cases) });
    runner
        .run(&prop_oneof![2 => paths(), 1 => others()], |spelled| {
            let found = decision(&set, &spelled);
            prop_assert_ne!(found, Decision::Allow, "{:?}", spelled);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_rule_binds_in_statements_requests_and_folders_of_calls() {
    let set = PolicySet::from_toml(RULES).unwrap();
    for text in [
        "select * from public.salaries",
        "select * from only salaries",
        "select * from db..salaries",
        "call f('salaries')",
        "do $$ begin perform * from salaries; end $$",
        "pragma table_info(salaries)",
        "select * from U&\"s\\0061laries\"",
        "select pg_read_file('/srv/secret/a')",
        "load data infile '/srv/secret/a' into table t",
        "GET /a HTTP/1.1\nHost: evil.example",
        "GET https://good.example/ HTTP/1.1\nHost: evil.example",
        "GET http://good.example\\@evil.example/",
        "PUT file:///srv/secret/a",
        "POST https://good.example/x\nContent-Type: application/json\n\n{\"url\":\"https://evil.example\"}",
        r#"{"tool":"query","arguments":{"sql":"copy t from '/srv/secret/a'"}}"#,
        r#"{"tool":"Grep","arguments":{"pattern":"key","path":"/srv"}}"#,
        r#"{"tool":"Glob","arguments":{"pattern":"/srv/**"}}"#,
        r#"{"tool":"directory_tree","arguments":{"path":"/srv"}}"#,
        r#"{"tool":"git_add","arguments":{"repo_path":"/srv","files":["secret/a"]}}"#,
        r#"{"tool":"write_files","arguments":{"files":{"/srv/secret/a":"x"}}}"#,
        r#"{"tool":"read_file","arguments":{"path":["/","srv","secret","a"]}}"#,
        r#"{"tool":"bash","arguments":{"command":"! git push"}}"#,
    ] {
        let spelled = Spelled { text: text.to_owned(), cwd: None, home: None };
        assert_ne!(decision(&set, &spelled), Decision::Allow, "{text}");
    }
}

/// The rules bind on what they name, and not on everything.
#[test]
fn a_rule_leaves_alone_what_it_does_not_name() {
    let set = PolicySet::from_toml(RULES).unwrap();
    for line in [
        "cat /srv/app/a",
        "cat a",
        "ls /srv/app && cat /srv/app/a | head -1",
        "cp -r /srv/app /tmp/x",
        "rm -f *.o",
        "git status",
        "git commit -m 'push'",
        "curl -s https://good.example",
        "grep -r key .",
        "find . -name '*.rs'",
        "npm run build",
        "cat secretary/a",
        "sed -n 1,20p src/main.rs",
        "echo /srv/secret/a",
        "tar czf /tmp/x.tgz src",
    ] {
        let spelled = Spelled { text: shell(line), cwd: Some("/srv/app"), home: Some("/home/ann") };
        assert_eq!(decision(&set, &spelled), Decision::Allow, "{line}");
    }
    for (tool, arguments) in [
        ("read_file", json!({ "path": "/srv/app/a" })),
        ("fetch", json!({ "url": "https://good.example/?q=evil.example" })),
        ("send_email", json!({ "to": "ann@good.example", "subject": "x", "body": "eve@evil.example" })),
        ("mcp__linear__delete_issue", json!({ "issue_id": "A-1" })),
        ("Grep", json!({ "pattern": "key", "path": "/srv/app" })),
    ] {
        let text = json!({ "tool": tool, "arguments": arguments }).to_string();
        let spelled = Spelled { text, cwd: Some("/srv/app"), home: None };
        assert_eq!(decision(&set, &spelled), Decision::Allow, "{spelled:?}");
    }
}
