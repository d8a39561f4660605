//! A real agent host: npm installs it, and the model in `model.py` makes its calls.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::programs;

/// One entry of `hosts.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Host {
    package: String,
    program: String,
    arguments: Vec<String>,
    tool: String,
    #[serde(default = "command")]
    argument: String,
    #[serde(default)]
    extra: Map<String, Value>,
    pub(crate) faults: BTreeMap<String, Reaction>,
    environment: BTreeMap<String, String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
}

/// The reaction of a host to a call whose hook fails.
#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Reaction {
    Blocks,
    Runs,
}

/// A user's home and a folder for the agent to work in.
pub(crate) struct Place<'a> {
    pub(crate) home: &'a Path,
    pub(crate) work: &'a Path,
}

/// The hosts by the names that `rulekeep hook --host` takes.
pub(crate) fn all() -> BTreeMap<String, Host> {
    toml::from_str(include_str!("hosts.toml")).unwrap()
}

impl Host {
    /// The host's program, which npm installs once below the build folder.
    ///
    /// # Errors
    ///
    /// Says why the host cannot run here.
    pub(crate) fn program(&self) -> Result<PathBuf, String> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err(format!("{} is for Linux on x86-64", self.package));
        }
        for program in ["node", "npm", "python3"] {
            programs::found(program)?;
        }
        let folder = programs::kept(&self.package.replace(['@', '/'], "-"));
        let program = folder.join("node_modules").join(&self.program);
        if !program.exists() {
            let install =
                ["install", "--silent", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"];
            let mut npm = Command::new("npm");
            programs::done(npm.args(install).arg(&folder).arg(&self.package), programs::LATER)?;
        }
        if program.exists() { Ok(program) } else { Err(format!("{} has no {}", self.package, self.program)) }
    }

    /// Writes the host's own settings. The hook is registered in them afterwards.
    pub(crate) fn write_settings(&self, place: &Place<'_>) {
        for (name, text) in &self.files {
            let path = place.home.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    /// Runs the host with a model that calls the shell commands one after another. Returns the result of each as the
    /// model got it.
    pub(crate) fn run(&self, program: &Path, place: &Place<'_>, commands: &[String]) -> Vec<String> {
        let calls: Vec<_> = commands.iter().map(|command| self.call(command)).collect();
        let model = Model::start(&json!(calls));
        for name in self.files.keys() {
            let path = place.home.join(name);
            let text = fs::read_to_string(&path).unwrap();
            fs::write(path, text.replace("{port}", &model.port)).unwrap();
        }
        let mut host = Command::new(program);
        host.args(&self.arguments).current_dir(place.work).env_clear();
        for name in ["PATH", "LANG"] {
            host.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        host.env("HOME", place.home).env("RULEKEEP_HOME", place.home.join("home"));
        host.envs([("NO_COLOR", "1"), ("CI", "1"), ("DO_NOT_TRACK", "1")]);
        // Other connections of a host end on this machine.
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "npm_config_registry"] {
            host.env(name, "http://127.0.0.1:9");
        }
        host.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        host.envs(self.environment.iter().map(|(name, value)| (name, value.replace("{port}", &model.port))));
        let ended = programs::ended(&mut host, &[], Duration::from_secs(5 * 60));
        let results = model.results();
        let output = [ended.stdout, ended.stderr].concat();
        assert_eq!(
            results.len(),
            commands.len(),
            "{}: {results:?}\n{}",
            self.package,
            String::from_utf8_lossy(&output)
        );
        results
    }

    fn call(&self, command: &str) -> Value {
        let mut arguments = self.extra.clone();
        arguments.insert(self.argument.clone(), command.into());
        json!({ "name": self.tool, "arguments": arguments })
    }
}

/// The process of `model.py`.
struct Model {
    process: Child,
    output: BufReader<ChildStdout>,
    port: String,
}

impl Model {
    fn start(calls: &Value) -> Self {
        let mut python = Command::new("python3");
        python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hosts/model.py")).arg(calls.to_string());
        let mut process = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut port = String::new();
        output.read_line(&mut port).unwrap();
        Self { process, output, port: port.trim().to_owned() }
    }

    /// Ends the model, and returns the results that the host gave it.
    fn results(mut self) -> Vec<String> {
        drop(self.process.stdin.take());
        let mut lines = String::new();
        self.output.read_to_string(&mut lines).unwrap();
        lines.lines().map(str::to_owned).collect()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn command() -> String {
    "command".to_owned()
}
