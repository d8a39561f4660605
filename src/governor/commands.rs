//! Commands: programs that an agent asks to start, which run within their decisions.

use std::ffi::OsStr;
use std::path::{self, Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, io};

use rulekeep_confine::{Code, DeniedPath, Ground, Profile, links_of, temp_of};
use serde_json::{Map, Value, json};

use crate::governor::{Governor, GuardError, Guarded};
use crate::model::{AgentId, Capability, Constraints, Decision, Digest, Error, Input, Intent, ProofId, TaskId};
use crate::proof::Evidence;

/// A program that an agent asks to start, with its arguments and the folder in which it starts.
#[derive(Debug, Clone)]
pub struct AgentCommand {
    words: Vec<String>,
    folder: PathBuf,
    context: Map<String, Value>,
    task: Option<TaskId>,
}

/// The program `rulekeep`, which confines commands, on a system where it can.
#[derive(Debug, Clone)]
pub struct Confiner {
    program: PathBuf,
    hidden: Vec<PathBuf>,
}

impl AgentCommand {
    /// Describes a program and its arguments, started in a folder that exists.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] without a program, and for a folder that does not exist or whose path is not UTF-8.
    pub fn new<T: Into<String>>(folder: impl AsRef<Path>, words: impl IntoIterator<Item = T>) -> Result<Self, Error> {
        let words: Vec<String> = words.into_iter().map(Into::into).collect();
        if words.first().is_none_or(String::is_empty) {
            return Err(Error::input("command", "expected a program and its arguments"));
        }
        let folder = folder.as_ref();
        let real = fs::canonicalize(folder).ok().filter(|folder| folder.is_dir() && folder.to_str().is_some());
        let expected = || Error::input("folder", format!("expected a folder that exists, not {}", folder.display()));
        Ok(Self { words, folder: real.ok_or_else(expected)?, context: Map::new(), task: None })
    }

    /// Sets the caller's context of the request. `cwd` and `home` are added to it.
    #[must_use]
    pub fn context(mut self, context: Map<String, Value>) -> Self {
        self.context = context;
        self
    }

    /// Sets the task that the command belongs to, whose mandate it must keep to.
    #[must_use]
    pub const fn under(mut self, task: TaskId) -> Self {
        self.task = Some(task);
        self
    }

    /// The arguments of the call that the command is decided on as.
    pub(crate) fn arguments(&self) -> Value {
        json!({ "command": self.words })
    }

    /// The call that the command is decided on as: the JSON of a tool call over the wire, because its text is compared.
    fn call(&self) -> String {
        format!("{{\"tool\":\"{TOOL}\",\"arguments\":{}}}", self.arguments())
    }
}

impl Confiner {
    /// Takes the program `rulekeep`, by its path or by its name in the absolute folders of `PATH`, and has it confine
    /// itself, to find out whether the system can. That starts a process.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] if there is no such program, or this system supports no confined runs.
    pub fn attempt(program: impl AsRef<OsStr>) -> Result<Self, Error> {
        let name = Path::new(&program);
        let failed = |message: String| Error::Conflict { message: format!("commands cannot be confined: {message}") };
        let found = program_at(name, &env::var_os("PATH").unwrap_or_default());
        let program = found.ok_or_else(|| failed(format!("there is no program {}", name.display())))?;
        let mut attempt = Command::new(&program);
        attempt.args(["exec", "--attempt"]).stdin(Stdio::null());
        let attempted = attempt.output().map_err(|error| failed(format!("{}: {error}", program.display())))?;
        if !attempted.status.success() {
            return Err(failed(String::from_utf8_lossy(&attempted.stderr).trim().to_owned()));
        }
        Ok(Self { program, hidden: Vec::new() })
    }

    /// Adds a folder that no confined command reads or writes. The folder of the governor's store is one without it.
    #[must_use]
    pub fn hiding(mut self, folder: impl Into<PathBuf>) -> Self {
        self.hidden.push(folder.into());
        self
    }

    /// The path of the program.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }
}

impl Governor {
    /// Decides on a command of an agent, has `run` start it as far as the decision permits, and reports the outcome as
    /// [`Governor::guard`] does.
    ///
    /// The command is decided on as a call of the tool `exec`. If the governor has a [`Confiner`], the context has
    /// `confinable` (or `servable`) for a command that runs code whose effects no text shows, so that a rule can permit
    /// it as a confined run. `run` gets a command whose standard streams and environment are its to set, and which
    /// `rulekeep exec` confines if the decision has the constraint `confine`. A command of which only a part is granted
    /// does not run.
    ///
    /// ```
    /// use rulekeep::grant::AgentCommand;
    /// use rulekeep::{Agent, Governor, Tier};
    ///
    /// let governor = Governor::builder().open_in_memory()?;
    /// governor.agents().register(Agent::new("desk-1").at_tier(Tier::T4))?;
    /// let command = AgentCommand::new(std::env::current_dir()?, ["cargo", "--version"])?;
    /// let done = governor.guard_command("desk-1", &command, |command| command.output())?;
    /// assert!(done.value.status.success());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Governor::guard`]. [`GuardError::Failed`] also for a decision that permits only a confined run
    /// without a confiner, and for a profile that cannot be kept; nothing has run then.
    pub fn guard_command<T>(
        &self,
        agent_id: &str,
        command: &AgentCommand,
        run: impl FnOnce(&mut Command) -> io::Result<T>,
    ) -> Result<Guarded<T>, GuardError<io::Error>> {
        let context = self.command_context(agent_id, command).map_err(GuardError::Undecided)?;
        let text = command.call();
        let input = Input::new(&text).context(&context);
        let decided = match command.task {
            Some(task) => {
                self.inner.here().and_then(|here| here.tasks.enforce_input_under(task, Some(agent_id), input))
            }
            None => self.enforce_input(agent_id, input),
        };
        let decided = decided.map_err(GuardError::Undecided)?;
        let intent = &decided.parse.intent;
        let line = self.command_line(command, intent, &decided.enforcement.constraints);
        let needed = intent.required_capabilities.clone();
        self.inner.decider.guard_decided(decided, |grant| {
            for capability in &needed {
                grant.check_capability(capability.as_str()).map_err(io::Error::other)?;
            }
            let line = line.map_err(|error| io::Error::other(error.message()))?;
            let (program, arguments) = line.split_first().ok_or_else(|| io::Error::other("there is no program"))?;
            run(Command::new(program).args(arguments).current_dir(&command.folder))
        })
    }

    /// The context that a command is decided under.
    pub(crate) fn command_context(&self, agent_id: &str, command: &AgentCommand) -> Result<Map<String, Value>, Error> {
        let mut context = command.context.clone();
        context.insert("cwd".to_owned(), json!(command.folder));
        if let Some(home) = env::home_dir().filter(|home| home.to_str().is_some()) {
            context.insert("home".to_owned(), json!(home));
        }
        // Only what is seen here counts.
        for key in ["links", "confinable", "servable", "unconfined"] {
            context.remove(key);
        }
        let facts = self.parse(agent_id, Input::new(&command.call()).context(&context))?.intent.facts();
        let folders: Vec<PathBuf> = env::home_dir().into_iter().chain([command.folder.clone()]).collect();
        let links = links_of(&facts, &folders);
        if !links.is_empty() {
            context.insert("links".to_owned(), links.into());
        }
        if self.inner.confiner.is_some() {
            match Code::of(&facts).map_err(unfit)? {
                Some(Code::Alone) => drop(context.insert("confinable".to_owned(), true.into())),
                Some(Code::Serving) => drop(context.insert("servable".to_owned(), true.into())),
                None => {}
            }
        }
        Ok(context)
    }

    /// The words with which a granted command starts, so that it does no more than was decided.
    pub(crate) fn command_line(
        &self,
        command: &AgentCommand,
        intent: &Intent,
        constraints: &Constraints,
    ) -> Result<Vec<String>, Error> {
        let Some(profile) = self.profile(command, intent, constraints)? else { return Ok(command.words.clone()) };
        let needed = "the decision permits this command only as a confined run, and the governor confines none";
        let confiner = self.inner.confiner.as_ref().ok_or_else(|| Error::Conflict { message: needed.to_owned() })?;
        let program = confiner.program.to_str().ok_or_else(|| Error::input("program", "its path is not UTF-8"))?;
        let given = serde_json::to_string(&profile)
            .map_err(|error| unfit(rulekeep_confine::Error::Profile(error.to_string())))?;
        if given.len() > LONGEST_PROFILE {
            let message = "the command cannot be confined: too many files match what rules deny".to_owned();
            return Err(Error::Conflict { message });
        }
        let mut line = [program, "exec", "--profile", &given, "--"].map(str::to_owned).to_vec();
        line.extend(command.words.iter().cloned());
        Ok(line)
    }

    /// The words with which a command starts that was decided on under this record.
    pub(crate) fn command_of(&self, proof_id: &ProofId, command: &AgentCommand) -> Result<Vec<String>, Error> {
        let unlike = |message: &str| Error::Conflict { message: format!("{proof_id}: {message}") };
        let record = self.log().record(proof_id)?;
        let text = self.inner.intake.inputs.digest_of_id(record.intent_id);
        if text.is_none_or(|text| text != Digest::of(command.call().as_bytes())) {
            return Err(unlike("another command was decided under this record, or too long ago"));
        }
        let Evidence { intent, detail, .. } = self.log().evidence(proof_id)?;
        let intent = Intent::from_json(&intent)?;
        if intent.context.get("cwd").and_then(Value::as_str).map(Path::new) != Some(&command.folder) {
            return Err(unlike("the command was decided on in another folder"));
        }
        let part = |name: &str| detail.get(name).cloned().unwrap_or_default();
        let granted: Vec<Capability> = serde_json::from_value(part("grantedCapabilities")).unwrap_or_default();
        let is_whole = intent.required_capabilities.iter().all(|needed| granted.contains(needed));
        if !matches!(record.decision, Decision::Allow | Decision::Degrade) || !is_whole {
            return Err(unlike("the decision does not grant the whole command"));
        }
        let constraints: Constraints =
            serde_json::from_value(part("constraints")).map_err(|_| unlike("its constraints cannot be read"))?;
        self.command_line(command, &intent, &constraints)
    }

    /// The profile of a granted command; `None` if its constraints do not confine it.
    fn profile(
        &self,
        command: &AgentCommand,
        intent: &Intent,
        constraints: &Constraints,
    ) -> Result<Option<Profile>, Error> {
        let agent: &AgentId = &intent.agent_id;
        let mut denied: Vec<DeniedPath> = self.policies().current().denied_paths(Some(agent)).collect();
        let hidden = self.inner.confiner.iter().flat_map(|confiner| &confiner.hidden).chain(&self.inner.folder);
        denied.extend(hidden.map(|path| DeniedPath::at(path)));
        let (home, temp) = (env::home_dir(), temp_of(&command.folder.to_string_lossy()));
        let ground =
            Ground { folder: &command.folder, home: home.as_deref(), areas: &[], temp: &temp, denied: &denied };
        Profile::of(constraints, &intent.facts(), &ground).map_err(unfit)
    }
}

/// The absolute path of a program that is given by its path, or by its name in a list of folders. A relative folder in
/// the list is passed over: it would be one of the working folder, where an agent writes.
fn program_at(name: &Path, folders: &OsStr) -> Option<PathBuf> {
    let listed = || env::split_paths(folders).filter(|folder| folder.is_absolute()).map(|folder| folder.join(name));
    let is_name = name.components().count() == 1;
    let found = if is_name { listed().find(|path| path.is_file()) } else { path::absolute(name).ok() };
    found.filter(|path| path.is_file())
}

#[expect(clippy::needless_pass_by_value, reason = "it is handed to `map_err`")]
fn unfit(error: rulekeep_confine::Error) -> Error {
    Error::Conflict { message: error.to_string() }
}

/// Largest size of a profile, in bytes: a system takes no longer argument than 128 KiB.
const LONGEST_PROFILE: usize = 120_000;
/// The tool that a command is a call of.
pub(crate) const TOOL: &str = "exec";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_in_absolute_folders_only() {
        let place = tempfile::tempdir_in(".").unwrap();
        let relative = place.path().file_name().unwrap();
        fs::write(place.path().join("own"), "").unwrap();
        let absolute = place.path().canonicalize().unwrap();
        let folders = |folders: &[&OsStr]| env::join_paths(folders).unwrap();
        assert_eq!(program_at(Path::new("own"), &folders(&[relative])), None);
        assert_eq!(program_at(Path::new("own"), &folders(&[OsStr::new("")])), None);
        let found = absolute.join("own");
        assert_eq!(program_at(Path::new("own"), &folders(&[relative, absolute.as_os_str()])), Some(found.clone()));
        assert_eq!(program_at(&Path::new(relative).join("own"), OsStr::new("")), Some(found));
        assert_eq!(program_at(&absolute.join("other"), absolute.as_os_str()), None);
    }
}
