//! The vocabulary of rows: what an option or a plain word does.

use rulekeep_types::facts::Role;
use rulekeep_types::{Error, RiskLevel};

use super::rule::{self, Rule};
use crate::sign::Signs;

/// A language of code in a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Shell,
    PowerShell,
    Sql,
    Mongo,
    Redis,
    Sed,
    Awk,
    Jq,
    Make,
    Vim,
    Tex,
    Lisp,
    AppleScript,
    /// A general-purpose language, by its name.
    Named(&'static str),
}

impl Language {
    fn read(word: &str) -> Option<Self> {
        Some(match word {
            "shell" => Self::Shell,
            "powershell" => Self::PowerShell,
            "sql" => Self::Sql,
            "mongo" => Self::Mongo,
            "redis" => Self::Redis,
            "sed" => Self::Sed,
            "awk" => Self::Awk,
            "jq" => Self::Jq,
            "make" => Self::Make,
            "vim" => Self::Vim,
            "tex" => Self::Tex,
            "elisp" => Self::Lisp,
            "applescript" => Self::AppleScript,
            "python" => Self::Named("python"),
            "javascript" => Self::Named("node"),
            "perl" => Self::Named("perl"),
            "ruby" => Self::Named("ruby"),
            "php" => Self::Named("php"),
            "lua" => Self::Named("lua"),
            "tcl" => Self::Named("tcl"),
            "r" => Self::Named("r"),
            "go" => Self::Named("go"),
            _ => return None,
        })
    }
}

/// The kind of a value or of a plain word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// A value that says nothing of what is touched.
    Text,
    Name,
    /// The name of what a command is directed at: a cluster, a profile, a workspace, a stage.
    Environment,
    Path {
        role: Role,
        tree: bool,
        remote: bool,
    },
    /// A path whose rights change.
    Changed,
    /// A folder that is made.
    Folder,
    /// The folder in which the program works.
    Cwd,
    /// A command line.
    RunText,
    /// A program that gets the words at the end as its arguments: `docker run --entrypoint`.
    Entry,
    /// A file whose code runs.
    RunFile,
    /// The rest of the words is a command.
    RunRest,
    /// The words up to `;` or `+` are a command.
    RunUntil,
    /// A file whose code runs, with all words behind it as its arguments.
    Script,
    Code(Language),
    Url,
    SendUrl,
    Host,
    SendHost,
    Recipient,
    Table,
    /// An address or a port on which the program listens.
    Listen,
    Secret,
    UserSecret,
    /// A text that is sent, or the file `@file`.
    Data,
    /// The method of an HTTP request.
    Method,
    /// A header of an HTTP request.
    Header,
    /// `key=value`, judged by the row's table of keys.
    Config,
    /// `NAME=value`.
    Assign,
    /// A folder of the host that is made available elsewhere: `/srv:/data`.
    Mount,
    Package,
    Image,
    Service,
    Refspec,
    Mode,
    /// Groups that a user joins.
    Group,
    /// A file that the desktop opens: a program, if its name says so.
    Open,
    /// A file that lists further operands.
    List,
    /// A proxy, which sees what is sent.
    Proxy,
    /// A socket of a service on the host.
    Socket,
    /// The name of what is searched for.
    Seek,
    /// All words from here on are only text.
    Words,
}

impl Takes {
    /// Returns whether the word and all behind it belong together.
    pub(crate) const fn takes_rest(self) -> bool {
        matches!(self, Self::RunRest | Self::RunText | Self::Script | Self::Words | Self::Code(Language::Redis))
    }

    /// Reads the value of an option.
    fn of_option(text: &str) -> Option<Self> {
        let path = |role, rest: &str| match rest {
            "path" => Some(Self::Path { role, tree: false, remote: false }),
            "tree path" => Some(Self::Path { role, tree: true, remote: false }),
            _ => None,
        };
        let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
        Some(match (first, rest) {
            ("read", rest) => path(Role::Read, rest)?,
            ("write", rest) => path(Role::Write, rest)?,
            ("remove", rest) => path(Role::Remove, rest)?,
            ("named", rest) => path(Role::Named, rest)?,
            ("run", "text") => Self::RunText,
            ("run", "file") => Self::RunFile,
            ("entry", "") => Self::Entry,
            ("run", "rest") => Self::RunRest,
            ("run", "until") => Self::RunUntil,
            ("send", "url") => Self::SendUrl,
            ("send", "host") => Self::SendHost,
            ("code", language) => Self::Code(Language::read(language)?),
            ("value", "") => Self::Text,
            ("user-secret", "") => Self::UserSecret,
            ("mount", "") => Self::Mount,
            ("listen", "") => Self::Listen,
            (word, "") => Self::of_slot(word)?,
            _ => return None,
        })
    }

    /// Reads the kind of a plain word.
    fn of_slot(word: &str) -> Option<Self> {
        let path = |role| Self::Path { role, tree: false, remote: false };
        Some(match word {
            "read" => path(Role::Read),
            "write" => path(Role::Write),
            "remove" => path(Role::Remove),
            "named" => path(Role::Named),
            "remote-read" => Self::Path { role: Role::Read, tree: false, remote: true },
            "remote-write" => Self::Path { role: Role::Write, tree: false, remote: true },
            "text" | "number" => Self::Text,
            "name" => Self::Name,
            "environment" => Self::Environment,
            "mode" => Self::Mode,
            "changed" => Self::Changed,
            "folder" => Self::Folder,
            "group" => Self::Group,
            "open" => Self::Open,
            "list" => Self::List,
            "proxy" => Self::Proxy,
            "socket" => Self::Socket,
            "seek" => Self::Seek,
            "url" => Self::Url,
            "send-url" => Self::SendUrl,
            "host" => Self::Host,
            "send-host" => Self::SendHost,
            "recipient" => Self::Recipient,
            "table" => Self::Table,
            "assign" => Self::Assign,
            "package" => Self::Package,
            "image" => Self::Image,
            "service" => Self::Service,
            "refspec" => Self::Refspec,
            "config" => Self::Config,
            "secret" => Self::Secret,
            "method" => Self::Method,
            "data" => Self::Data,
            "header" => Self::Header,
            "cwd" => Self::Cwd,
            "run-file" => Self::RunFile,
            "run" => Self::RunRest,
            "run-text" => Self::RunText,
            "script" => Self::Script,
            "sql" => Self::Code(Language::Sql),
            "words" => Self::Words,
            code => Self::Code(Language::read(code.strip_prefix("code:")?)?),
        })
    }
}

/// The number of plain words of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    Once,
    AtMostOnce,
    Any,
}

/// A place for plain words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) takes: Takes,
    pub(crate) times: Times,
}

impl Slot {
    pub(super) fn read_all(text: &str) -> Result<Vec<Self>, Error> {
        let mut slots = Vec::new();
        let mut is_tree = false;
        for word in text.split_whitespace() {
            if word == "tree" {
                is_tree = true;
                continue;
            }
            let (kind, times) = match (word.strip_suffix('*'), word.strip_suffix('?')) {
                (Some(kind), _) => (kind, Times::Any),
                (_, Some(kind)) => (kind, Times::AtMostOnce),
                _ => (word, Times::Once),
            };
            let mut takes = Takes::of_slot(kind)
                .ok_or_else(|| Error::input("program", format!("{word:?}: expected the kind of an operand")))?;
            if let Takes::Path { tree, .. } = &mut takes {
                *tree = is_tree;
            }
            is_tree = false;
            slots.push(Self { takes, times });
        }
        Ok(slots)
    }
}

/// An effect of an option besides its value.
#[derive(Debug, Clone)]
pub(crate) enum Does {
    /// Determines what is done.
    Act(Rule),
    /// Does this, too.
    Also(Rule),
    /// Raises the risk to at least this level.
    AtLeast(RiskLevel, Signs),
    /// Makes it a trial without effect, at this risk.
    Only(RiskLevel),
    /// Changes what is done to the operands.
    Becomes(Role),
    /// Extends the operands to all below them.
    Tree,
    /// Puts its value in the place of an operand.
    Fills,
    /// Runs code that the folder configures.
    Runs,
    /// Writes to the folder in which it works.
    Writes,
}

/// The meaning of an option.
#[derive(Debug, Clone, Default)]
pub(crate) struct Means {
    pub(crate) takes: Option<Takes>,
    /// A value is taken only if it is joined to the option.
    pub(crate) joined: bool,
    /// The value is the next plain word, never joined: `sh -ce 'ls'`.
    pub(crate) apart: bool,
    /// Further values.
    pub(crate) more: Vec<Takes>,
    pub(crate) does: Vec<Does>,
}

impl Means {
    pub(super) fn calm() -> Self {
        Self::default()
    }

    pub(super) fn value() -> Self {
        Self { takes: Some(Takes::Text), ..Self::default() }
    }

    pub(super) fn read(text: &str) -> Result<Self, Error> {
        let mut means = Self::default();
        if text.trim() == "run until ;" {
            means.takes = Some(Takes::RunUntil);
            return Ok(means);
        }
        for effect in text.split(';').map(str::trim) {
            let (first, rest) = effect.split_once(' ').unwrap_or((effect, ""));
            let does = match (first, rest) {
                ("calm", "") => continue,
                ("apart", "") => {
                    means.apart = true;
                    continue;
                }
                ("act", rule) => Does::Act(Rule::read(rule)?),
                ("also", rule) => Does::Also(Rule::read(rule)?),
                ("becomes", role) => {
                    Does::Becomes(role.parse().map_err(|error| Error::input("program", format!("{effect}: {error}")))?)
                }
                ("tree", "") => Does::Tree,
                ("fills", "") => Does::Fills,
                ("runs", "") => Does::Runs,
                ("writes", "") => Does::Writes,
                ("words", "") => {
                    means.takes = Some(Takes::Words);
                    continue;
                }
                (raised, words) if raised.starts_with('+') => {
                    Does::AtLeast(rule::level(raised.trim_start_matches('+'))?, rule::signs(words.split_whitespace())?)
                }
                (only, "") if only.starts_with('=') => Does::Only(rule::level(only.trim_start_matches('='))?),
                _ => {
                    let takes = Takes::of_option(effect).ok_or_else(|| {
                        Error::input("program", format!("{effect:?}: expected the effect of an option"))
                    })?;
                    match (means.takes, takes) {
                        (None, _) => means.takes = Some(takes),
                        // `-fprintf FILE FORMAT`.
                        (Some(_), takes) => means.more.push(takes),
                    }
                    continue;
                }
            };
            means.does.push(does);
        }
        Ok(means)
    }

    /// Returns whether the option changes nothing.
    pub(crate) fn is_calm(&self) -> bool {
        self.does.is_empty() && matches!(self.takes, None | Some(Takes::Text))
    }
}
