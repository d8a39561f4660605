//! The home: the folder with configuration, policies, store and sockets, accessible to its owner only.

mod init;

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rulekeep::intent::InputText;
use rulekeep::proof::OpenVerification;
use rulekeep::{Durability, Governor, GovernorBuilder, PolicySet, Tier};
use serde::Deserialize;

use crate::store::checkpoint_key;

pub(crate) use init::{Options as InitOptions, confirm, run as init};

/// The home of the tool.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    root: PathBuf,
}

/// The configuration, `config.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// The point at which a decision is answered.
    #[serde(deserialize_with = "durability")]
    durability: Durability,
    /// The form in which evidence stores the text of a call.
    #[serde(deserialize_with = "input_text")]
    input_text: InputText,
    /// Minutes without a call after which the daemon ends; 0 for never.
    idle_exit_minutes: f64,
    /// The address and port at which the daemon serves HTTP and the console; `None` for neither.
    pub(crate) listen: Option<String>,
    /// The URL at which reviewers reach the daemon, for approval links.
    pub(crate) public_url: Option<String>,
    /// The settings of hooks.
    pub(crate) hooks: HookConfig,
    /// The key that signs checkpoints, if there is one.
    checkpoints: Option<CheckpointConfig>,
}

/// The key that signs checkpoints.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckpointConfig {
    /// The key's name, for example `example.com/agents`.
    name: String,
    /// The file with the 32 secret bytes in hex; a relative path is relative to the home.
    seed: PathBuf,
}

/// The settings of hooks and of other programs that act for agents.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct HookConfig {
    /// The tier of an agent that is seen for the first time.
    #[serde(deserialize_with = "tier")]
    pub(crate) tier: Tier,
    /// The user's words limit the actions taken for them.
    pub(crate) mandates: bool,
    /// Folders that belong to the work area of every task, besides the one in which the host works.
    pub(crate) folders: Vec<String>,
    /// Hosts, recipients and commands that need no words of the user in any task.
    pub(crate) trusted: Vec<String>,
    /// Seconds that a hook waits for a reviewer if the host cannot ask its user; less if the host's own timeout is
    /// shorter.
    pub(crate) wait_seconds: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            durability: Durability::Sync,
            input_text: InputText::Whole,
            idle_exit_minutes: 720.0,
            listen: None,
            public_url: None,
            hooks: HookConfig::default(),
            checkpoints: None,
        }
    }
}

impl Default for HookConfig {
    fn default() -> Self {
        Self { tier: Tier::T3, mandates: true, folders: Vec::new(), trusted: Vec::new(), wait_seconds: 25 }
    }
}

impl Config {
    /// The time without a call after which the daemon ends, from `minutes` or the configuration; `None` for never.
    pub(crate) fn idle_exit(&self, minutes: Option<f64>) -> Result<Option<Duration>, String> {
        let minutes = minutes.unwrap_or(self.idle_exit_minutes);
        if minutes == 0.0 {
            return Ok(None);
        }
        let time = Duration::try_from_secs_f64(minutes * 60.0);
        time.map(Some).map_err(|_| format!("idle exit {minutes}: expected a number of minutes, or 0 for never"))
    }
}

impl Home {
    /// The home that `RULEKEEP_HOME` names, otherwise `.rulekeep` in the user's home folder.
    pub(crate) fn find() -> Result<Self, String> {
        let root = match std::env::var_os("RULEKEEP_HOME").filter(|home| !home.is_empty()) {
            Some(home) => PathBuf::from(home),
            None => std::env::home_dir()
                .filter(|home| home.is_absolute())
                .ok_or("there is no home folder: set RULEKEEP_HOME to a folder of your own")?
                .join(".rulekeep"),
        };
        let root = std::path::absolute(&root).map_err(|error| format!("{}: {error}", root.display()))?;
        Ok(Self { root })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.root.join("store")
    }

    pub(crate) fn policy(&self) -> PathBuf {
        self.root.join("policies").join("policy.toml")
    }

    fn cases(&self) -> PathBuf {
        self.root.join("policies").join("policy.cases.toml")
    }

    pub(crate) fn config_file(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    /// The socket for agents' hooks and gateways.
    pub(crate) fn agent_socket(&self) -> PathBuf {
        self.root.join("agent.sock")
    }

    /// The socket for operators and their programs.
    pub(crate) fn operator_socket(&self) -> PathBuf {
        self.root.join("operator.sock")
    }

    pub(crate) fn daemon_log(&self) -> PathBuf {
        self.root.join("daemon.log")
    }

    /// Reads the configuration. The home must exist and be accessible to its owner only.
    pub(crate) fn config(&self) -> Result<Config, String> {
        self.check()?;
        let file = self.config_file();
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        toml::from_str(&text).map_err(|error| format!("{}: {}", file.display(), error.to_string().trim_end()))
    }

    /// Checks that the home exists, that it belongs to this user, and that nobody else can read or write it.
    pub(crate) fn check(&self) -> Result<(), String> {
        let shown = self.root.display();
        let found =
            fs::metadata(&self.root).map_err(|error| format!("{shown}: {error}; make it with: rulekeep init"))?;
        self.check_owners()?;
        let mode = found.permissions().mode() & 0o777;
        if !found.is_dir() || mode & 0o077 != 0 {
            return Err(format!("{shown}: expected a folder of mode 700, found {mode:o}; run: chmod 700 {shown}"));
        }
        Ok(())
    }

    /// Checks that the home and what governs in it belong to this user, as far as they exist.
    pub(crate) fn check_owners(&self) -> Result<(), String> {
        self.check_owned_by(rustix::process::geteuid().as_raw())
    }

    /// Only the content may belong to root instead, such as a policy that an administrator links to.
    fn check_owned_by(&self, user: u32) -> Result<(), String> {
        let policies = self.root.join("policies");
        let content = [self.config_file(), policies, self.policy(), self.store()];
        for place in [self.root.clone(), self.agent_socket(), self.operator_socket()].iter().chain(&content) {
            let owner = match fs::metadata(place) {
                Ok(found) => found.uid(),
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(format!("{}: {error}", place.display())),
            };
            if owner != user && !(owner == 0 && content.contains(place)) {
                return Err(format!(
                    "{}: belongs to user {owner}, and this program runs as user {user}: run it as the owner of the home, or \
                     set RULEKEEP_HOME to a folder of your own",
                    place.display()
                ));
            }
        }
        Ok(())
    }

    /// Creates a governor's settings from the configuration and the policies of the home.
    pub(crate) fn builder(&self, config: &Config) -> Result<GovernorBuilder, String> {
        let policies = PolicySet::from_file(self.policy()).map_err(|error| error.message())?;
        let builder =
            Governor::builder().durability(config.durability).input_text(config.input_text).policies(policies);
        let builder = builder.verification(OpenVerification::Behind);
        Ok(match &config.checkpoints {
            Some(key) => builder.checkpoints(checkpoint_key(&key.name, &self.root.join(&key.seed))?),
            None => builder,
        })
    }
}

/// Returns the folder of a store: the named one, otherwise the home's.
pub(crate) fn store_of(named: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(folder) = named {
        return Ok(folder.to_owned());
    }
    let home = Home::find()?;
    home.check()?;
    Ok(home.store())
}

/// Creates a folder that only its owner can use.
fn make_private(folder: &Path) -> Result<(), String> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| format!("{}: {error}", folder.display()))
}

fn durability<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Durability, D::Error> {
    parsed(deserializer, "sync, buffered, or sync-from:RISK")
}

fn input_text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<InputText, D::Error> {
    parsed(deserializer, "whole, digest, asked or no")
}

fn tier<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Tier, D::Error> {
    parsed(deserializer, "a tier, T0 to T5")
}

fn parsed<'de, T: std::str::FromStr, D: serde::Deserializer<'de>>(
    deserializer: D,
    expected: &str,
) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| serde::de::Error::custom(format!("{text:?}: expected {expected}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_of_another_user_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home { root: folder.path().to_owned() };
        assert_eq!(home.check_owners(), Ok(()));
        let owner = rustix::process::geteuid().as_raw();
        let refused = home.check_owned_by(owner + 1).unwrap_err();
        assert!(refused.starts_with(&folder.path().display().to_string()), "{refused}");
        assert!(refused.contains(&format!("belongs to user {owner}, and this program runs as user")), "{refused}");
    }
}
