//! A machine for one host: a home, a project, the programs on the path, and the hook registered in the host's settings.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rulekeep_cli::hook::event::Host;
pub(crate) use rulekeep_cli::hook::install::Scope;
use rulekeep_cli::hook::install::{apply, plan_install, registered};
use serde_json::{Value, json};

pub(crate) struct World {
    root: tempfile::TempDir,
    pub(crate) host: Host,
    pub(crate) home: PathBuf,
    pub(crate) project: PathBuf,
}

impl World {
    /// A correct installation: the hook is registered, reviewed and in a trusted folder, and refuses every call.
    pub(crate) fn installed(host: Host, scope: Scope) -> Self {
        let root = tempfile::tempdir().unwrap();
        let at = root.path().canonicalize().unwrap();
        let world = Self { root, host, home: at.join("home"), project: at.join("project") };
        for folder in ["home", "project", "bin"] {
            fs::create_dir(at.join(folder)).unwrap();
        }
        world.hook(REFUSES);
        let program = world.bin().join("rulekeep");
        let program = program.to_str().unwrap();
        apply(&plan_install(host, scope, &world.home, &world.project, program).unwrap()).unwrap();
        world.version(NEWEST);
        match host {
            Host::Codex => world.trust(),
            Host::Gemini => {
                let trusted = json!({&*world.project.to_string_lossy(): "TRUST_FOLDER"});
                world.write(&world.home.join(".gemini/trustedFolders.json"), &trusted.to_string());
            }
            _ => {}
        }
        world
    }

    /// Puts the program of the host on the path, with its version, and with Codex's answers about hooks.
    pub(crate) fn version(&self, version: &str) {
        let script = CODEX.replace("VERSION", version);
        for name in ["claude", "codex", "gemini", "copilot", "goose", "opencode"] {
            self.script(name, &script);
        }
    }

    /// Lets the user review all hooks of Codex and trust the project.
    pub(crate) fn trust(&self) {
        let trusts = |world: &Self, states: &str| {
            let project = world.project.display();
            let text = format!("[projects.\"{project}\"]\ntrust_level = \"trusted\"\n{states}");
            world.write(&world.home.join(".codex/config.toml"), &text);
        };
        trusts(self, "");
        let listed: Value = serde_json::from_str(&crate::double::list_hooks(self)).unwrap();
        let mut states = String::new();
        for hook in listed["result"]["data"][0]["hooks"].as_array().unwrap() {
            writeln!(states, "[hooks.state.{}]\ntrusted_hash = {}", hook["key"], hook["currentHash"]).unwrap();
        }
        trusts(self, &states);
    }

    /// Makes `codex app-server` on the path answer as the host would now.
    pub(crate) fn settle(&self) {
        if self.host == Host::Codex {
            self.write(&self.home.join("hooks-list.json"), &(crate::double::list_hooks(self) + "\n"));
        }
    }

    /// Replaces the program that the settings name.
    pub(crate) fn hook(&self, script: &str) {
        self.script("rulekeep", script);
    }

    pub(crate) fn script(&self, name: &str, text: &str) {
        let file = self.bin().join(name);
        // Written as a new file, because the old one may still be running.
        drop(fs::remove_file(&file));
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn bin(&self) -> PathBuf {
        self.home.with_file_name("bin")
    }

    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.bin().display());
        vec![("HOME".to_owned(), self.home.display().to_string()), ("PATH".to_owned(), path)]
    }

    /// The file of our entry.
    pub(crate) fn settings_file(&self, scope: Scope) -> PathBuf {
        registered(self.host, &self.home, &self.project)
            .unwrap()
            .into_iter()
            .find_map(|hook| (hook.scope == scope).then_some(hook.file))
            .unwrap()
    }

    pub(crate) fn text(&self, file: &Path) -> Option<String> {
        assert!(file.starts_with(self.home.parent().unwrap()));
        fs::read_to_string(file).ok()
    }

    /// Reads a settings file like a host that accepts only objects.
    pub(crate) fn json(&self, file: &Path) -> Option<Value> {
        serde_json::from_str(&self.text(file)?).ok().filter(Value::is_object)
    }

    pub(crate) fn write(&self, file: &Path, text: &str) {
        assert!(file.starts_with(self.root.path().canonicalize().unwrap()));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Changes a JSON settings file.
    pub(crate) fn edit(&self, file: &Path, change: impl FnOnce(&mut Value)) {
        let mut settings = self.json(file).unwrap_or_else(|| json!({}));
        change(&mut settings);
        self.write(file, &settings.to_string());
    }
}

/// A version that is at least the one observed of every host.
pub(crate) const NEWEST: &str = "99.0.0";

/// A hook that refuses every call, like the daemon refuses the doctor's, and everything it cannot read.
pub(crate) const REFUSES: &str = r#"#!/bin/sh
nonce=$(sed -n 's/.*rulekeep-doctor-probe-\([0-9a-f]*\).*/\1/p')
echo "rulekeep doctor probe $nonce: refused" >&2
exit 2
"#;

/// A host's program: its version, and `codex app-server` as far as `hooks/list`.
const CODEX: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo "VERSION"; exit; }
[ "$1" = app-server ] || exit 64
while read -r line; do
  case "$line" in
    *'"initialize"'*) echo '{"id":1,"result":{"userAgent":"codex/0.169.0"}}' ;;
    *'"hooks/list"'*) cat "$HOME/hooks-list.json" ;;
  esac
done
"#;
