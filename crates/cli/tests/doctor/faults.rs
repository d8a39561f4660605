//! The battery: faults between a host and the hook, and how each is produced.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rulekeep_cli::hook::event::Host;
use serde_json::{Value, json};

use crate::double::{Call, Way};
use crate::world::{REFUSES, Scope, World};

/// One way to produce a fault.
pub(crate) struct Variant {
    pub(crate) name: &'static str,
    pub(crate) scope: Scope,
    pub(crate) inject: Box<dyn Fn(&World)>,
    pub(crate) call: Call,
}

/// The faults of the battery, each with the ways to produce it on a host. A fault without one cannot happen there.
pub(crate) fn battery(host: Host) -> Vec<(&'static str, Vec<Variant>)> {
    vec![
        (
            "crash",
            vec![
                hook("by a signal", "kill -SEGV $$"),
                hook("with an exit code", "echo panicked >&2; exit 101"),
                hook("with exit code 1", "exit 1"),
            ],
        ),
        ("hang", vec![hook("for good", "exec sleep 15")]),
        ("kill", vec![hook("by the system", "kill -KILL $$")]),
        (
            "missing binary",
            vec![
                variant("removed", |world| fs::remove_file(world.bin().join("rulekeep")).unwrap()),
                variant("not executable", |world| {
                    let file = world.bin().join("rulekeep");
                    fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
                }),
            ],
        ),
        (
            "typo in the path",
            vec![variant("in the program's name", |world| {
                let file = world.settings_file(Scope::User);
                world.write(&file, &world.text(&file).unwrap().replace("/bin/rulekeep", "/bin/rulekep"));
            })],
        ),
        (
            "bad JSON",
            vec![
                Variant { call: Call::made(Way::Cut), ..hook("in", CANNOT_READ_HALF) },
                hook(
                    "out: half an answer",
                    r#"cat >/dev/null; printf '{"hookSpecificOutput":{"permissionDecision":"de'"#,
                ),
                hook("out: a text", "cat >/dev/null; echo refused"),
                hook("out: words of another host", r#"cat >/dev/null; echo '{"verdict":"refuse","reason":"no"}'"#),
            ],
        ),
        ("empty stderr", vec![hook("beside exit code 2", "cat >/dev/null; exit 2")]),
        ("byte order mark", vec![Variant { call: Call::made(Way::Bom), ..hook("not read", CANNOT_READ_BOM) }]),
        ("stale trust", stale_trust(host)),
        ("untrusted folder", untrusted(host)),
        ("edited settings", edited(host)),
        (
            "64 in parallel",
            vec![
                Variant { call: Call::made(Way::Parallel), ..hook("one at a time", ONE_AT_A_TIME) },
                Variant { call: Call::made(Way::Parallel), ..variant("a sound hook", |_| {}) },
            ],
        ),
        (
            "sub-agent",
            vec![
                Variant { call: Call::made(Way::Subagent), ..hook("let go", LETS_SUBAGENTS_GO) },
                Variant { call: Call::made(Way::Subagent), ..hook("started", LETS_SUBAGENTS_START) },
            ],
        ),
        (
            "headless",
            if host == Host::Vscode {
                Vec::new()
            } else {
                vec![
                    Variant { call: Call::made(Way::Headless), ..hook("let go", LETS_HEADLESS_GO) },
                    Variant { call: Call::made(Way::Headless), ..hook("asks", ASKS) },
                    Variant { call: Call::made(Way::Headless), ..variant("a sound hook", |_| {}) },
                ]
            },
        ),
        ("other hook", others(host)),
    ]
}

fn variant(name: &'static str, inject: impl Fn(&World) + 'static) -> Variant {
    Variant { name, scope: Scope::User, inject: Box::new(inject), call: Call::made(Way::Plain) }
}

/// Makes the hook's program run `script` instead.
fn hook(name: &'static str, script: &'static str) -> Variant {
    variant(name, move |world| world.hook(&format!("#!/bin/sh\n{}\n", script.replace("REFUSE", refuse()))))
}

/// The working hook, without its first line.
fn refuse() -> &'static str {
    REFUSES.trim_start_matches("#!/bin/sh\n")
}

fn stale_trust(host: Host) -> Vec<Variant> {
    if host != Host::Codex {
        return Vec::new();
    }
    let file = |world: &World| world.settings_file(Scope::User);
    let retimed = move |world: &World| world.edit(&file(world), |all| first(all, "PreToolUse")["timeout"] = json!(601));
    vec![
        variant("the entry was rewritten", retimed),
        variant("never reviewed", |world| fs::remove_file(world.home.join(".codex/config.toml")).unwrap()),
    ]
}

fn untrusted(host: Host) -> Vec<Variant> {
    let project = |inject: fn(&World)| Variant { scope: Scope::Project, ..variant("hook of the project", inject) };
    match host {
        Host::Codex => vec![project(|world| {
            let file = world.home.join(".codex/config.toml");
            world.write(&file, &world.text(&file).unwrap().replace("\"trusted\"", "\"untrusted\""));
        })],
        Host::Gemini => {
            let forget = |world: &World| fs::remove_file(world.home.join(".gemini/trustedFolders.json")).unwrap();
            vec![project(forget), variant("hook of the user", forget)]
        }
        // The others run the hooks of a project without asking, or no session at all.
        _ => vec![project(|_| {})],
    }
}

/// The hook of the first entry on an event.
fn first<'v>(settings: &'v mut Value, event: &str) -> &'v mut Value {
    let entry = &mut settings["hooks"][event][0];
    if entry.get("hooks").is_some() { &mut entry["hooks"][0] } else { entry }
}

fn edited(host: Host) -> Vec<Variant> {
    let event = gate(host);
    let edit = |name: &'static str, change: fn(&mut Value, &str)| {
        variant(name, move |world| {
            world.edit(&world.settings_file(Scope::User), |settings| change(settings, event));
            if host == Host::Codex {
                // The user reviews the rest.
                world.trust();
            }
        })
    };
    if host == Host::Opencode {
        let rewrite = |name, from: &'static str, to: &'static str| {
            variant(name, move |world| {
                let file = world.settings_file(Scope::User);
                world.write(&file, &world.text(&file).unwrap().replace(from, to));
            })
        };
        return vec![
            rewrite("broken", "export const", "export konst"),
            rewrite("another event", "\"tool.execute.before\": async", "\"tool.execute.befor\": async"),
            rewrite("a failure ignored", "else refuse(reason)", "else resolve()"),
            variant("removed", |world| fs::remove_file(world.settings_file(Scope::User)).unwrap()),
        ];
    }
    let mut all = vec![
        edit("removed", |settings, event| settings["hooks"][event] = json!([])),
        edit("another event", |settings, event| {
            let entry = settings["hooks"][event].take();
            settings["hooks"]["Stop"] = entry;
        }),
        edit("another command", |settings, event| {
            let hook = first(settings, event);
            let field = if hook.get("bash").is_some() { "bash" } else { "command" };
            hook[field] = json!("true hook --host claude");
        }),
        edit("a failure ignored", |settings, event| {
            let hook = first(settings, event);
            let field = if hook.get("bash").is_some() { "bash" } else { "command" };
            hook[field] = json!(format!("{} || true", hook[field].as_str().unwrap()));
        }),
        variant("half a file", |world| {
            let file = world.settings_file(Scope::User);
            let text = world.text(&file).unwrap();
            world.write(&file, &text[..text.len() - 3]);
        }),
    ];
    if host != Host::Vscode {
        all.push(edit("a narrower matcher", |settings, event| settings["hooks"][event][0]["matcher"] = json!("Write")));
    }
    all.extend(match host {
        Host::Claude => vec![
            edit("all hooks off", |settings, _| settings["disableAllHooks"] = json!(true)),
            edit("decides nothing", |settings, event| first(settings, event)["async"] = json!(true)),
            edit("a matcher that is no pattern", |settings, event| {
                settings["hooks"][event][0]["matcher"] = json!("mcp__");
            }),
        ],
        Host::Codex => vec![
            edit("a field that Codex does not know", |settings, _| settings["version"] = json!(1)),
            variant("hooks off", |world| {
                let file = world.home.join(".codex/config.toml");
                world.write(&file, &(world.text(&file).unwrap() + "[features]\nhooks = false\n"));
            }),
        ],
        Host::Gemini => vec![
            edit("hooks off", |settings, _| settings["hooksConfig"] = json!({"enabled": false})),
            edit("off by name", |settings, event| {
                let command = first(settings, event)["command"].clone();
                settings["hooksConfig"] = json!({"disabled": [command]});
            }),
            edit("a time limit of one millisecond", |settings, event| first(settings, event)["timeout"] = json!(1)),
        ],
        Host::Cursor => vec![
            edit("no version", |settings, _| drop(settings.as_object_mut().unwrap().remove("version"))),
            edit("a lower time limit and no switch", |settings, event| {
                let hook = first(settings, event);
                hook["timeout"] = json!(0.001);
                hook["failClosed"] = json!(false);
            }),
        ],
        Host::Goose => vec![variant("plugin off", |world| {
            world.write(&world.home.join(".agents/settings.json"), r#"{"disabledPlugins":["rulekeep"]}"#);
        })],
        Host::Vscode => vec![edit("no version", |settings, _| {
            drop(settings.as_object_mut().unwrap().remove("version"));
        })],
        _ => Vec::new(),
    });
    all
}

/// Another hook that allows every call, after ours.
fn others(host: Host) -> Vec<Variant> {
    let allow = r#"{"decision":"allow","permission":"allow","permissionDecision":"allow","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}"#;
    if host == Host::Opencode {
        let plugin = "export const Other = async () => ({ \"tool.execute.before\": async () => {} });\n";
        return vec![variant("a plugin", move |world| {
            world.write(&world.home.join(".config/opencode/plugins/zz-other.js"), plugin);
        })];
    }
    vec![variant("that allows", move |world| {
        world.script("other", &format!("#!/bin/sh\ncat >/dev/null\necho '{allow}'\n"));
        let file = world.settings_file(Scope::User);
        world.edit(&file, |settings| {
            let mut entry = settings["hooks"][gate(host)][0].clone();
            let hook = if entry.get("hooks").is_some() { &mut entry["hooks"][0] } else { &mut entry };
            for field in ["command", "bash", "powershell"] {
                if hook.get(field).is_some() {
                    hook[field] = json!(world.bin().join("other"));
                }
            }
            settings["hooks"][gate(host)].as_array_mut().unwrap().push(entry);
        });
        if host == Host::Codex {
            world.trust();
        }
    })]
}

const fn gate(host: Host) -> &'static str {
    match host {
        Host::Gemini => "BeforeTool",
        Host::Cursor | Host::Copilot | Host::Vscode => "preToolUse",
        _ => "PreToolUse",
    }
}

const CANNOT_READ_HALF: &str = r#"input=$(cat)
case "$input" in *'}') ;; *) echo "unexpected end" >&2; exit 1 ;; esac
printf %s "$input" | (REFUSE)
exit 2"#;
const CANNOT_READ_BOM: &str = r#"input=$(cat)
case "$input" in '{'*) ;; *) exit 0 ;; esac
printf %s "$input" | (REFUSE)
exit 2"#;
const ONE_AT_A_TIME: &str = r#"lock="$HOME/lock"
mkdir "$lock" 2>/dev/null || { echo "the daemon is busy" >&2; exit 1; }
sleep 0.05
rmdir "$lock"
REFUSE"#;
const LETS_SUBAGENTS_GO: &str = r#"input=$(cat)
case "$input" in *agent_id*|*agentId*|*look*around*) exit 0 ;; esac
printf %s "$input" | (REFUSE)
exit 2"#;
/// Like a policy that forbids only the probe.
const LETS_SUBAGENTS_START: &str = r#"input=$(cat)
case "$input" in *rulekeep-doctor-probe*) ;; *) exit 0 ;; esac
printf %s "$input" | (REFUSE)
exit 2"#;
const LETS_HEADLESS_GO: &str = r#"input=$(cat)
case "$input" in *bypassPermissions*) exit 0 ;; esac
printf %s "$input" | (REFUSE)
exit 2"#;
const ASKS: &str = r#"cat >/dev/null
echo '{"permission":"ask","permissionDecision":"ask","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"sure?"}}'"#;
