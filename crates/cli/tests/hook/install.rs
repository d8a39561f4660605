//! The hook's entries in the settings of each host: installed, found again, updated and removed.

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum as _;
use proptest::prelude::*;
use rulekeep_cli::hook::dialects::Dialect;
use rulekeep_cli::hook::event::Host;
use rulekeep_cli::hook::install::{Scope, apply, plan_install, plan_uninstall, registered};
use serde_json::Value;
use tempfile::TempDir;

const PROGRAM: &str = "/opt/rulekeep/bin/rulekeep";

/// The hosts whose settings file may hold more than the hook, with the file.
const SHARED: [(Host, &str); 6] = [
    (Host::Claude, ".claude/settings.json"),
    (Host::Codex, ".codex/hooks.json"),
    (Host::Gemini, ".gemini/settings.json"),
    (Host::Cursor, ".cursor/hooks.json"),
    (Host::Copilot, ".github/hooks/rulekeep.json"),
    (Host::Goose, ".agents/plugins/rulekeep/hooks/hooks.json"),
];

#[test]
fn an_installation_writes_documented_text_and_removal_undoes_it() {
    for host in Host::value_variants() {
        let place = Place::new();
        place.install(*host, PROGRAM);
        let files = place.files();
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hook/settings").join(format!("{host:?}.txt"));
        let text = files.iter().map(|(path, text)| format!("== {path}\n{text}")).collect::<Vec<_>>().concat();
        if std::env::var_os("UPDATE_SETTINGS").is_some() {
            fs::write(&golden, &text).unwrap();
        }
        assert_eq!(text, fs::read_to_string(golden).unwrap(), "{host:?}");
        assert_eq!(place.plan(*host, PROGRAM), Ok(0), "a second installation changes nothing on {host:?}");
        place.uninstall(*host);
        assert_eq!(place.files(), [], "{host:?}");
        assert_eq!(plan_uninstall(*host, Scope::Project, place.home(), place.project()), Ok(Vec::new()), "{host:?}");
    }
}

#[test]
fn what_is_installed_is_found_again_with_its_file_and_limits() {
    for host in Host::value_variants() {
        for scope in [Scope::User, Scope::Project] {
            let place = Place::new();
            apply(&plan_install(*host, scope, place.home(), place.project(), PROGRAM).unwrap()).unwrap();
            let found = registered(*host, place.home(), place.project()).unwrap();
            assert!(found.len() >= 3, "{host:?}");
            let folder = if scope == Scope::User { place.home() } else { place.project() };
            for hook in &found {
                assert!(hook.command.starts_with(PROGRAM) && hook.command.contains(" hook --host "), "{hook:?}");
                assert!(hook.unchanged && hook.scope == scope && hook.file.starts_with(folder), "{hook:?}");
            }
            let dialect = Dialect::of(*host);
            let event = dialect.probe_event(&dialect.probes()[0]);
            let name = dialect.read(&event).unwrap().name;
            let gate = found.iter().find(|hook| hook.event.eq_ignore_ascii_case(&name)).unwrap();
            assert_eq!(gate.timeout, Some(dialect.timeout()), "{host:?}");
            let switch = matches!(host, Host::Claude | Host::Cursor | Host::Goose | Host::Opencode);
            assert_eq!(gate.blocks_on_failure, switch, "{host:?}");
        }
    }
}

#[test]
fn an_entry_changed_by_others_is_told_from_an_unchanged_one() {
    let place = Place::new();
    place.install(Host::Claude, PROGRAM);
    let text =
        place.read(".claude/settings.json").replacen("\"timeout\": 600,", "\"timeout\": 600, \"async\": true,", 1);
    place.write(".claude/settings.json", &text);
    for hook in registered(Host::Claude, place.home(), place.project()).unwrap() {
        assert_eq!(hook.unchanged, hook.event != "PreToolUse", "{hook:?}");
    }
}

/// The hosts share one file.
#[test]
fn one_entry_governs_copilot_and_vs_code() {
    let place = Place::new();
    place.install(Host::Copilot, PROGRAM);
    assert_eq!(place.plan(Host::Vscode, PROGRAM), Ok(0));
    assert_eq!(registered(Host::Vscode, place.home(), place.project()).unwrap().len(), 5);
}

/// Settings as people write them. `EVENT` stands for the host's event before a tool runs.
const SETTINGS: [&str; 16] = [
    "",
    "{}",
    "{}\n",
    "{ }",
    "{\n}\n",
    "{\"model\":\"opus\"}",
    "{ \"model\": \"opus\" , \"env\": {\"A\":\"1\"} }\n",
    "{\n  // a comment\n  \"model\": \"opus\", // why\n  \"permissions\": {\n    \"deny\": [\"Bash(rm:*)\"]\n  },\n}\n",
    "{\r\n\t\"model\": \"opus\"\r\n}\r\n",
    "{\n    \"hooks\": {},\n    \"z\": 1,\n    \"a\": 1e3\n}",
    "{\n  \"hooks\": {\n    \"EVENT\": []\n  }\n}\n",
    "{\n  \"hooks\": {\n    \"EVENT\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"./mine.sh\"}]}\n    ]\n  }\n}\n",
    "{\"hooks\":{\"EVENT\":[{\"command\":\"./mine.sh\"}],\"Other\":[{\"command\":\"echo rulekeep hook --host x\"}]}}\n",
    "/* head */\n{\n  \"hooks\": {\n    /* none yet */\n    \"EVENT\": [ // list\n      {\n        \"command\": \"a\"\n      } // last\n    ]\n  }\n}\n// tail\n",
    "{\n  \"hooks\": {\n    \"enabled\": true,\n    \"disabled\": []\n  }\n}\n",
    "{\n  \"A\": {\"hooks\": [1, 2, 3]},\n  \"unknown\": [ 1,2 , 3 ]\n}\n",
];

#[test]
fn settings_keep_what_they_hold_and_get_back_each_byte() {
    for (host, file) in SHARED {
        let event = Dialect::of(host).probe_event(&Dialect::of(host).probes()[0]);
        let event = Dialect::of(host).read(&event).unwrap().name;
        for settings in SETTINGS {
            check_round_trip(host, file, &settings.replace("EVENT", &event));
        }
    }
}

#[test]
fn changes_of_others_since_the_installation_survive_removal() {
    for (host, file) in SHARED {
        let place = Place::new();
        place.write(file, "{ \"model\": \"opus\" }");
        place.install(host, PROGRAM);
        let text = place.read(file).replace("\"opus\"", "\"sonnet\"");
        place.write(file, &text);
        place.uninstall(host);
        let left: Value = serde_json::from_str(&place.read(file)).unwrap();
        assert_eq!(left["model"], "sonnet", "{host:?}");
        assert_eq!(left.get("hooks"), None, "{host:?}: {left}");
        assert_eq!(place.files().len(), 1, "{host:?}: no copy is left");
    }
}

#[test]
fn a_hook_of_others_in_the_same_group_survives() {
    let place = Place::new();
    place.install(Host::Claude, PROGRAM);
    let file = ".claude/settings.json";
    let ours = r#""hooks": ["#;
    let text = place.read(file).replacen(ours, r#""hooks": [{"type": "command", "command": "./mine.sh"}, "#, 1);
    place.write(file, &text);
    place.uninstall(Host::Claude);
    let left: Value = serde_json::from_str(&place.read(file)).unwrap();
    let groups = left["hooks"].as_object().unwrap();
    assert_eq!(groups.len(), 1, "{left}");
    let group = &groups.values().next().unwrap()[0];
    assert_eq!(group["hooks"], serde_json::json!([{"type": "command", "command": "./mine.sh"}]));
}

#[test]
fn first_bytes_come_back_after_another_program_replaced_entries() {
    for (host, file) in SHARED {
        let place = Place::new();
        let settings = "{ \"model\":\"opus\", \"hooks\": { } }";
        place.write(file, settings);
        place.install(host, PROGRAM);
        place.install(host, "/home/dev/My Tools/rulekeep");
        let found = registered(host, place.home(), place.project()).unwrap();
        assert!(found.iter().all(|hook| hook.command.starts_with("\"/home/dev/My Tools/rulekeep\" hook")), "{found:?}");
        place.uninstall(host);
        assert_eq!(place.files(), [(file.to_owned(), settings.to_owned())], "{host:?}");
    }
}

#[test]
fn entries_of_another_version_are_replaced() {
    let place = Place::new();
    let file = ".claude/settings.json";
    place.write(
        file,
        r#"{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"rulekeep hook --host claude"}]}],
        "Gone":[{"hooks":[{"type":"command","command":"rulekeep hook --host claude"}]}]}}"#,
    );
    place.install(Host::Claude, PROGRAM);
    let found = registered(Host::Claude, place.home(), place.project()).unwrap();
    let events: Vec<_> = found.iter().map(|hook| hook.event.as_str()).collect();
    assert_eq!(events, ["PostToolUse", "PostToolUseFailure", "PreToolUse", "SessionEnd", "UserPromptSubmit"]);
    assert!(found.iter().all(|hook| hook.command.starts_with(PROGRAM)));
}

#[test]
fn settings_that_cannot_be_edited_safely_are_refused_and_stay() {
    for (host, text, expected) in [
        (Host::Claude, "{\n  \"model\": opus\n}", "settings.json:2:12"),
        (Host::Claude, "{\"model\": \"opus\"", "settings.json:1:1"),
        (Host::Claude, "[]", "not a JSON object"),
        (Host::Claude, "{\"hooks\": []}", "\"hooks\" is not a JSON object"),
        (Host::Claude, "{\"hooks\": {\"PreToolUse\": {}}}", "\"PreToolUse\" are not a list"),
        (Host::Claude, "{\"hooks\": {}, \"hooks\": {\"PreToolUse\": []}}", "\"hooks\" occurs twice"),
        (Host::Claude, "{\"hooks\": {\"Stop\": [], \"Stop\": []}}", "\"Stop\" occurs twice"),
        (Host::Codex, "{\"version\": 1, \"hooks\": {}}", "\"version\" makes the host ignore the whole file"),
        (Host::Opencode, "export const mine = 1", "rulekeep did not write this plugin"),
    ] {
        let file = match host {
            Host::Claude => ".claude/settings.json",
            Host::Codex => ".codex/hooks.json",
            _ => ".opencode/plugins/rulekeep.js",
        };
        let place = Place::new();
        place.write(file, text);
        let error = place.plan(host, PROGRAM).unwrap_err();
        assert!(error.contains(expected) && error.contains(file), "{error}");
        assert_eq!(place.files(), [(file.to_owned(), text.to_owned())]);
    }
}

#[test]
fn settings_nested_too_deeply_are_refused() {
    let place = Place::new();
    place.write(".claude/settings.json", &format!("{{\"a\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000)));
    let error = place.plan(Host::Claude, PROGRAM).unwrap_err();
    assert!(error.contains("settings.json"), "{}", &error[..200]);
}

#[test]
fn a_plugin_of_others_is_not_removed() {
    let place = Place::new();
    place.write(".opencode/plugins/rulekeep.js", "export const mine = 1");
    place.uninstall(Host::Opencode);
    assert_eq!(place.files().len(), 1);
}

#[test]
fn a_program_that_no_quotes_make_safe_is_refused() {
    let place = Place::new();
    for program in ["", "/a/$(id)/rulekeep", "/a/`id`", "/a/\"b", "/a'b", "/a\nb", "/a;b", "/a&b", "/a%PATH%"] {
        let planned = place.plan(Host::Claude, program);
        // A semicolon is safe in quotes.
        assert_eq!(planned.is_err(), program != "/a;b", "{program:?}: {planned:?}");
    }
}

#[test]
fn a_difference_is_shown_before_it_is_written() {
    let place = Place::new();
    place.write(".claude/settings.json", "{\n  \"model\": \"opus\"\n}\n");
    let changes = plan_install(Host::Claude, Scope::Project, place.home(), place.project(), PROGRAM).unwrap();
    let shown = changes[0].to_string();
    assert!(shown.starts_with("--- "), "{shown}");
    assert!(shown.contains("-  \"model\": \"opus\"\n+  \"model\": \"opus\",\n+  \"hooks\": {"), "{shown}");
}

#[test]
fn nothing_in_a_file_steers_the_terminal_that_shows_the_diff() {
    let place = Place::new();
    place.write(".claude/settings.json", "{ // \u{1B}[8mhidden\r\n\"a\": 1 // \u{9B}2J\n}");
    let changes = plan_install(Host::Claude, Scope::Project, place.home(), place.project(), PROGRAM).unwrap();
    let shown: String = changes.iter().map(ToString::to_string).collect();
    assert!(shown.contains("[8mhidden"), "{shown}");
    assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
}

#[test]
fn a_file_that_changed_since_the_plan_is_not_overwritten() {
    let place = Place::new();
    place.write(".claude/settings.json", "{}");
    let changes = plan_install(Host::Claude, Scope::Project, place.home(), place.project(), PROGRAM).unwrap();
    place.write(".claude/settings.json", "{\"model\": \"opus\"}");
    let error = apply(&changes).unwrap_err();
    assert!(error.contains("has changed"), "{error}");
    assert_eq!(place.read(".claude/settings.json"), "{\"model\": \"opus\"}");
}

#[cfg(unix)]
#[test]
fn permissions_and_links_stay_and_a_copy_is_as_private() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let place = Place::new();
    place.write("dotfiles/claude.json", "{ \"env\": {\"KEY\": \"secret\"} }");
    let real = place.project().join("dotfiles/claude.json");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(place.project().join(".claude")).unwrap();
    let link = place.project().join(".claude/settings.json");
    symlink(&real, &link).unwrap();
    place.install(Host::Claude, PROGRAM);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&real).unwrap().contains("PreToolUse"));
    let copy = place.project().join(".claude/settings.json.before-rulekeep");
    for file in [&real, &copy] {
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600, "{}", file.display());
    }
    place.uninstall(Host::Claude);
    assert_eq!(fs::read_to_string(&real).unwrap(), "{ \"env\": {\"KEY\": \"secret\"} }");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink() && !copy.exists());
}

#[cfg(unix)]
#[test]
fn a_link_to_no_file_yet_stays_and_a_byte_order_mark_goes() {
    let place = Place::new();
    fs::create_dir(place.project().join(".claude")).unwrap();
    let link = place.project().join(".claude/settings.json");
    std::os::unix::fs::symlink("../dotfiles/claude.json", &link).unwrap();
    place.install(Host::Claude, PROGRAM);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(place.read("dotfiles/claude.json").contains("PreToolUse"));
    place.write(".codex/hooks.json", "\u{feff}{\"hooks\": {}}");
    place.install(Host::Codex, PROGRAM);
    let text = place.read(".codex/hooks.json");
    assert!(text.starts_with('{') && text.contains("PreToolUse"), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_settings_get_back_each_byte(settings in objects(), host in prop::sample::select(SHARED.as_slice()), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&settings) } else { serde_json::to_string(&settings) };
        check_round_trip(host.0, host.1, &text.unwrap());
    }
}

/// Installs the hook into settings and removes it again; in between, everything that was there is still there.
fn check_round_trip(host: Host, file: &str, settings: &str) {
    let place = Place::new();
    place.write(file, settings);
    place.install(host, PROGRAM);
    let installed = place.read(file);
    assert!(holds(&value(&installed), &value(settings)), "{host:?}: {settings} became {installed}");
    for comment in ["// a comment", "// why", "/* head */", "/* none yet */", "// list", "// last", "// tail"] {
        assert_eq!(settings.contains(comment), installed.contains(comment), "{host:?}: {installed}");
    }
    assert_eq!(place.plan(host, PROGRAM), Ok(0), "{host:?}: a second installation changes {installed}");
    place.uninstall(host);
    assert_eq!(place.files(), [(file.to_owned(), settings.to_owned())], "{host:?}: from {installed}");
}

/// Returns whether `after` contains everything in `before`, in objects by key and in lists in order.
fn holds(after: &Value, before: &Value) -> bool {
    match (after, before) {
        (Value::Object(after), Value::Object(before)) => {
            before.iter().all(|(key, value)| after.get(key).is_some_and(|after| holds(after, value)))
        }
        (Value::Array(after), Value::Array(before)) => {
            after.len() >= before.len() && after.iter().zip(before).all(|(after, before)| holds(after, before))
        }
        (after, before) => after == before,
    }
}

fn value(text: &str) -> Value {
    let root = jsonc_parser::cst::CstRootNode::parse(text, &jsonc_parser::ParseOptions::default()).unwrap();
    root.to_serde_value().unwrap_or_else(|| serde_json::json!({}))
}

fn objects() -> impl Strategy<Value = Value> {
    let leaf =
        prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), "[ -~é\\n]{0,8}".prop_map(Value::from)];
    let value = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,4}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    // A version field would invalidate the file for Codex.
    prop::collection::btree_map("[a-u]{1,6}", value, 0..4).prop_map(|map| Value::Object(map.into_iter().collect()))
}

/// A home folder and a project folder.
struct Place {
    home: PathBuf,
    project: PathBuf,
    _folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (home, project) = (folder.path().join("home"), folder.path().join("project"));
        fs::create_dir(&home).unwrap();
        fs::create_dir(&project).unwrap();
        Self { home, project, _folder: folder }
    }

    fn home(&self) -> &Path {
        &self.home
    }

    fn project(&self) -> &Path {
        &self.project
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.project().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.project().join(file)).unwrap()
    }

    /// The number of changes that an installation would make.
    fn plan(&self, host: Host, program: &str) -> Result<usize, String> {
        plan_install(host, Scope::Project, self.home(), self.project(), program).map(|changes| changes.len())
    }

    fn install(&self, host: Host, program: &str) {
        apply(&plan_install(host, Scope::Project, self.home(), self.project(), program).unwrap()).unwrap();
    }

    fn uninstall(&self, host: Host) {
        apply(&plan_uninstall(host, Scope::Project, self.home(), self.project()).unwrap()).unwrap();
    }

    /// The files of the project, by their paths, with their texts.
    fn files(&self) -> Vec<(String, String)> {
        let mut files = Vec::new();
        let mut folders = vec![self.project().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path: PathBuf = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(self.project()).unwrap().to_str().unwrap().replace('\\', "/");
                    files.push((name, fs::read_to_string(&path).unwrap()));
                }
            }
        }
        files.sort();
        files
    }
}
