//! The work area of a task: the folders that the user works on, and what the task created. Effects that stay in it
//! serve any request; the user's words decide about those that leave it.

use std::collections::HashSet;
use std::net::IpAddr;

use super::argument::Part;
use super::check::{Fault, FaultKind, Finding, Origin};
use super::memory::{MOST_ORIGINS, Memory};
use super::naming;
use super::purpose::{Asked, is_effect};
use super::words::Words;
use crate::model::facts::{Act, Cause, Doing, Facts, Kind, Operand, Role, is_rebuilt};
use crate::model::{Capability, Operation, Resource, RiskLevel};

/// The folders of a task, and the paths that its calls create.
#[derive(Debug, Clone, Default)]
pub(crate) struct Area {
    folders: Vec<Box<str>>,
    /// MCP servers whose tools reach nothing but these folders and this machine.
    servers: Vec<Box<str>>,
    made: HashSet<Box<str>>,
    /// The created paths that were downloaded.
    fetched: HashSet<Box<str>>,
}

impl Area {
    /// Adds a folder: an absolute path below the root, or `~/` and a place below any home. `server:NAME` adds an MCP
    /// server that works on this machine alone.
    pub(crate) fn add(&mut self, folder: &str) {
        if let Some(server) = folder.strip_prefix("server:").filter(|_| self.servers.len() < MOST_FOLDERS) {
            return self.servers.push(server.into());
        }
        let folder = folder.trim_end_matches('/');
        if folder.starts_with(['/', '~']) && folder.len() > 1 && self.folders.len() < MOST_FOLDERS {
            self.folders.push(folder.into());
        }
    }

    /// Adds the project of a path that the user agreed to: the folder beside the area's first one that holds it, or only
    /// the path if they share no more than a home.
    pub(crate) fn add_project(&mut self, path: &str) {
        let parts = |path: &str| path.split('/').map(str::to_owned).collect::<Vec<_>>();
        let (own, other) = (parts(self.folders.first().map_or("", |folder| folder)), parts(path));
        let shared = own.iter().zip(&other).take_while(|(one, other)| one == other).count();
        // Below a home itself, hidden folders hold settings and no projects.
        let is_hidden = other.get(shared).is_none_or(|part| part.starts_with('.'));
        let is_beside = shared >= PARTS_OF_HOME && shared + 1 < other.len() && !is_hidden;
        let project = if is_beside { other.get(..=shared).unwrap_or_default().join("/") } else { path.to_owned() };
        self.add(&project);
    }

    /// Adds the folders of the area around this one.
    pub(crate) fn add_all(&mut self, other: &Self) {
        self.folders.extend_from_slice(&other.folders);
        self.servers.extend_from_slice(&other.servers);
    }

    /// Returns whether a path is one of the folders.
    fn is_folder(&self, path: &str) -> bool {
        self.folders.iter().any(|folder| **folder == *path)
    }

    /// Takes back paths that a call did not create, or removed.
    pub(crate) fn disown(&mut self, path: &str) {
        let path = path.trim_end_matches('/');
        self.made.remove(path);
        self.fetched.remove(path);
    }

    /// Returns whether the tools of a call are the host's own, or of servers of the area.
    pub(crate) fn works_here(&self, facts: &Facts) -> bool {
        let is_here = |server: &str| self.servers.iter().any(|known| **known == *server);
        self.is_known() && facts.acts.iter().all(|act| act.server.as_deref().is_none_or(is_here))
    }

    /// Adds a path that a call is about to create, of its own text or from elsewhere.
    pub(crate) fn own(&mut self, path: &str, is_own_text: bool) {
        let path = path.trim_end_matches('/');
        if self.made.len() < MOST_MADE {
            self.made.insert(path.into());
            if is_own_text {
                self.fetched.remove(path);
            } else {
                self.fetched.insert(path.into());
            }
        }
    }

    /// Returns whether the task has a work area.
    pub(crate) fn is_known(&self) -> bool {
        !self.folders.is_empty()
    }

    /// The form of a path that is outside the area, if any: as written, or where its links lead. Places that nobody keeps
    /// anything in are inside.
    fn outside<'o>(&self, operand: &'o Operand) -> Option<&'o str> {
        let is_in = |path: &str| {
            !path.split('/').any(|part| part == "..")
                && (self.folders.iter().any(|folder| is_in_folder(path, folder)) || is_scratch(path))
        };
        std::iter::once(operand.value.as_str()).chain(operand.real.as_deref()).find(|path| !is_in(path))
    }

    /// Returns whether the riskiest acts of a request only remove or run what the task created.
    pub(crate) fn is_own_work(&self, facts: &Facts) -> bool {
        let is_removal = |doing: &Doing| {
            let resource = doing.capability.resource();
            doing.capability.operation() == Some(Operation::Delete)
                && matches!(resource, Some(Resource::File | Resource::Code))
        };
        let is_run = |doing: &Doing| doing.capability.operation() == Some(Operation::Execute);
        let is_own = |act: &Act| {
            let has = |role| act.operands.iter().any(|operand| operand.role == role);
            let is_known = |operand: &&Operand| matches!(operand.role, Role::Remove | Role::Run);
            let is_mine = |one: &Operand| {
                let is_fetched = || self.fetched.iter().any(|path| is_below(&one.value, path));
                one.kind == Kind::Path && self.made(one) && !(one.role == Role::Run && is_fetched())
            };
            act.does.iter().all(|doing| {
                let is_own = has(Role::Remove) && is_removal(doing) || has(Role::Run) && is_run(doing);
                is_own || doing.risk < RiskLevel::High
            }) && act.operands.iter().filter(is_known).all(is_mine)
                && !act.open.iter().any(|open| open.cause == Cause::Text)
        };
        let mut risky = facts.acts.iter().filter(|act| act.does.iter().any(|doing| doing.risk >= RiskLevel::High));
        risky.next().is_some_and(is_own) && risky.all(is_own)
    }

    /// Returns whether removing a path in the area loses no work.
    fn is_kept_nowhere(&self, operand: &Operand) -> bool {
        if operand.real.is_some() {
            return false;
        }
        let path = operand.value.as_str();
        let below = self.folders.iter().find_map(|folder| path.strip_prefix(&**folder)?.strip_prefix('/'));
        is_scratch(path) || below.is_some_and(is_rebuilt)
    }

    /// Returns whether the task created a path or a folder around it.
    fn made(&self, operand: &Operand) -> bool {
        let mut path = operand.value.trim_end_matches('/');
        if operand.pattern {
            // Whatever a pattern finds is in the folder in front of it.
            let literal = path.split(['*', '?', '[', '{']).next().unwrap_or("");
            path = literal.rsplit_once('/').map_or("", |(folder, _)| folder);
        }
        if path.split('/').any(|part| part == "..") || operand.real.is_some() {
            return false;
        }
        while !path.is_empty() {
            if self.made.contains(path) {
                return true;
            }
            path = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        }
        false
    }
}

/// The parts of an act that leave the area.
#[derive(Default)]
struct Leaving<'a> {
    /// Effects whose kind alone leaves: messages, payments, rights, services elsewhere.
    effects: Vec<&'a Capability>,
    /// Hosts and recipients to which something is sent.
    parties: Vec<&'a Operand>,
    /// Paths outside that are changed, removed or run, or to which links lead there.
    paths: Vec<&'a str>,
    /// Paths inside that are removed and that the task did not create.
    removed: Vec<&'a Operand>,
    /// A target of the effects could not be read.
    is_unread: bool,
}

/// The parts of a request that concern other acts than their own.
struct Around<'a> {
    /// The request makes a link, which leads anywhere.
    links: bool,
    /// The hosts of clients and of their variables: `psql -h db.example -c 'insert ...'`.
    hosts: Vec<&'a Operand>,
}

impl<'a> Around<'a> {
    fn of(facts: &'a Facts) -> Self {
        let makes_link = |act: &Act| act.does.iter().any(|doing| doing.action.as_str() == MAKES_LINK);
        let is_host = |operand: &&Operand| operand.kind == Kind::Host && !is_local(&operand.value);
        let without_effect = facts.acts.iter().filter(|act| act.does.is_empty());
        Self {
            links: facts.acts.iter().any(makes_link),
            hosts: without_effect.flat_map(|act| &act.operands).filter(is_host).collect(),
        }
    }
}

/// Checks the acts of a call of the host's own tools, of which those that stay in the area serve any request.
pub(crate) fn check_acts(words: &Words, asked: &Asked, memory: &Memory, facts: &Facts, area: &Area) -> Finding {
    let mut checking = Checking { words, asked, memory, area, finding: Finding::default() };
    // A folder outside in which the next commands work.
    let mut outside: Option<&str> = None;
    let around = Around::of(facts);
    for act in &facts.acts {
        let effects: Vec<&Capability> =
            act.does.iter().map(|doing| &doing.capability).filter(|one| is_effect(one)).collect();
        let is_path = |operand: &&Operand| operand.kind == Kind::Path;
        let is_changed = |operand: &&Operand| matches!(operand.role, Role::Write | Role::Remove);
        let changes = !effects.is_empty() || act.operands.iter().filter(is_path).any(|operand| is_changed(&operand));
        let mut works_in = outside;
        if act.does.iter().any(|doing| doing.action.as_str() == CHANGES_FOLDER) {
            let mut named = act.operands.iter().filter(is_path).filter(|operand| operand.role == Role::Named);
            works_in = named.find_map(|operand| area.outside(operand));
            // `cd ../other` moves the next commands as well, `git -C ../other` only itself.
            outside = if changes { outside } else { works_in };
        }
        if changes {
            let mut leaving = Leaving::of(act, &effects, area, &around);
            let works_there = act.operands.is_empty() || !act.open.is_empty() || outside != works_in;
            leaving.paths.extend(works_in.filter(|_| works_there && leaving.paths.is_empty()));
            checking.finding.leaves |= leaving.is_any();
            checking.effect(act, &leaving);
        } else {
            checking.fetch(act);
        }
    }
    checking.finding
}

struct Checking<'a> {
    words: &'a Words,
    asked: &'a Asked,
    memory: &'a Memory,
    area: &'a Area,
    finding: Finding,
}

impl Checking<'_> {
    /// Checks a read: an address that nobody gave must not carry observed tokens away.
    fn fetch(&mut self, act: &Act) {
        let is_address = |operand: &&Operand| operand.kind == Kind::Url && !is_local(&operand.value);
        for Operand { value, .. } in act.operands.iter().filter(is_address) {
            let is_given = self.words.allow(value, Part::Place) || self.memory.place_of(value).is_some();
            if !is_given && self.memory.has_token(value, self.words) {
                self.note(FaultKind::Exfiltration, "address", value);
            }
        }
    }

    /// Checks the parts of an effect that leave: the words must name them.
    fn effect(&mut self, act: &Act, leaving: &Leaving<'_>) {
        let said = naming::said(act);
        let is_trusted = self.words.trusts(&said);
        for Operand { kind, value, .. } in &leaving.parties {
            let is_named = || self.words.allow(value, Part::Place) || self.words.allow(value, Part::Party);
            if !is_trusted && !is_named() {
                let carries = self.memory.has_token(&said, self.words);
                self.note(if carries { FaultKind::Exfiltration } else { FaultKind::Source }, kind.as_str(), value);
            }
        }
        for path in &leaving.paths {
            if !is_trusted && !self.words.allow(path, Part::Path) {
                self.note(FaultKind::Source, "path", path);
            }
        }
        let is_asked = || is_trusted || naming::asks_for(self.words, self.asked, act, &leaving.effects);
        if !leaving.effects.is_empty() && leaving.parties.is_empty() && !is_asked() {
            self.note(FaultKind::Leaves, "call", &said);
        }
        let may_remove = leaving.removed.is_empty() || is_trusted || naming::asks_to_remove(self.words, self.asked);
        for path in leaving.removed.iter().filter(|_| !may_remove) {
            let is_agreed = self.words.trusts(&path.value) && !self.area.is_folder(&path.value);
            if !is_agreed && !self.words.mention(&path.value) {
                self.note(FaultKind::Removes, "path", &path.value);
            }
        }
        if leaving.is_unread && !is_trusted {
            self.note(FaultKind::Unread, "call", &said);
        }
    }

    fn note(&mut self, kind: FaultKind, part: &str, value: &str) {
        let looks = self.finding.faults.len() < MOST_ORIGINS && kind != FaultKind::Unread;
        let origin = looks.then(|| self.memory.place_of(value)).flatten().map_or(Origin::Nowhere, Origin::Observed);
        let fault = Fault { kind, argument: Some(part.to_owned()), value: Some(value.to_owned()), origin };
        if !self.finding.faults.contains(&fault) {
            self.finding.faults.push(fault);
        }
    }
}

impl<'a> Leaving<'a> {
    fn is_any(&self) -> bool {
        self.is_unread
            || !(self.effects.is_empty() && self.parties.is_empty() && self.paths.is_empty() && self.removed.is_empty())
    }

    fn of(act: &'a Act, effects: &[&'a Capability], area: &Area, around: &Around<'a>) -> Self {
        let mut leaving = Self::default();
        let does = |operation| effects.iter().any(|one| one.operation() == Some(operation));
        let has_party = |operand: &&Operand| {
            matches!(operand.kind, Kind::Host | Kind::Url | Kind::Recipient | Kind::Account)
                && !act.is_host_of_url(operand)
        };
        // An address in an act that sends, or that a program of unknown effects gets, is where something goes.
        let sends = does(Operation::Send) || does(Operation::Transfer);
        let is_unknown = || act.open.iter().any(|open| open.kinds.has(Kind::Url) && open.cause != Cause::Text);
        let goes = sends || act.leaves || does(Operation::Execute) && is_unknown();
        // What a client changes in a database is on the host that it names.
        let is_of_database = |one: &&Capability| one.resource() == Some(Resource::Database);
        let is_client = effects.iter().any(is_of_database);
        let is_sent_to = |operand: &&Operand| {
            (act.leaves || is_client) && operand.kind == Kind::Host
                || matches!(operand.role, Role::SendTo | Role::Pay)
                || (goes || is_client) && operand.kind == Kind::Url && operand.role != Role::Run
        };
        let parties = act.operands.iter().filter(has_party).filter(is_sent_to);
        let hosts = around.hosts.iter().copied().filter(|host| is_client || host.role == Role::SendTo);
        leaving.parties = parties.filter(|operand| !is_local(&operand.value)).chain(hosts).collect();
        let names_local = act
            .operands
            .iter()
            .any(|operand| matches!(operand.kind, Kind::Host | Kind::Url) && is_local(&operand.value));
        for &capability in effects {
            let (Some(operation), Some(resource)) = (capability.operation(), capability.resource()) else {
                leaving.effects.push(capability);
                continue;
            };
            let stays = match operation {
                Operation::Write | Operation::Execute | Operation::Delete => LOCAL.contains(&resource) && !act.leaves,
                // Rights of files in the area.
                Operation::Admin => act.operands.iter().any(|one| one.kind == Kind::Path && one.role == Role::Write),
                Operation::Send | Operation::Transfer | Operation::Read | Operation::Unknown => false,
            };
            // A request to this machine changes nothing elsewhere.
            let is_local = names_local && !act.leaves && leaving.parties.is_empty();
            if !stays && !is_local {
                leaving.effects.push(capability);
            }
        }
        // Moving to where nothing is kept, or to what the task may remove, is removing.
        let is_moved = |one: &Operand| one.role == Role::Write && (area.is_kept_nowhere(one) || area.made(one));
        let moves = act.operands.iter().any(|one| one.kind == Kind::Path && is_moved(one));
        let removes = does(Operation::Delete) || moves;
        // Of a tool only the effect says that what it changes is gone.
        let by_tool = does(Operation::Delete) && !act.operands.iter().any(|one| one.role == Role::Remove);
        for operand in act.operands.iter().filter(|operand| operand.kind == Kind::Path) {
            let is_changed = match operand.role {
                Role::Write | Role::Remove | Role::Run => true,
                Role::Read | Role::Named | Role::SendTo | Role::Pay => false,
            };
            // Making something outside is an effect outside; removing it again is not.
            let is_own = operand.role != Role::Write && area.made(operand);
            // A virtual environment has links to the program that it was made with.
            let outside = area.outside(operand).filter(|path| operand.role != Role::Run || !is_program(path));
            let outside = outside.filter(|_| is_changed && !is_own);
            if let Some(path) = outside {
                leaving.paths.push(path);
            } else if removes
                && (operand.role == Role::Remove || by_tool && operand.role == Role::Write)
                && (around.links || !area.made(operand) && !area.is_kept_nowhere(operand))
            {
                leaving.removed.push(operand);
            }
        }
        let changes_paths = act.operands.iter().any(|one| matches!(one.role, Role::Write | Role::Remove)) || removes;
        leaving.is_unread = act.open.iter().any(|open| {
            open.cause == Cause::Text
                && (open.kinds.has(Kind::Command) && (open.kinds.has(Kind::Path) || open.found.contains(['$', '`']))
                    || changes_paths && open.kinds.has(Kind::Path)
                    || !leaving.effects.is_empty() && open.kinds.has(Kind::Host))
        });
        leaving
    }
}

/// Returns whether a path is in a folder of the area.
fn is_in_folder(path: &str, folder: &str) -> bool {
    let Some(place) = folder.strip_prefix("~/") else { return is_below(path, folder) };
    let homes = ["/home/", "/Users/"].iter().find_map(|root| path.strip_prefix(root));
    let below = homes.and_then(|rest| rest.split_once('/')).map(|(_, below)| below);
    below
        .or_else(|| path.strip_prefix("/root/"))
        .or_else(|| path.strip_prefix("~/"))
        .is_some_and(|path| is_below(path, place))
}

/// Returns whether a path is a folder or below it.
fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns whether a path is in a folder for temporary files, or a device that keeps nothing.
fn is_scratch(path: &str) -> bool {
    SCRATCH.iter().any(|folder| is_below(path, folder))
}

/// Returns whether a path is a program of the system or of a toolchain.
fn is_program(path: &str) -> bool {
    let is_of_home = ["/home/", "/Users/", "/root/", "/opt/", "~/"].iter().any(|root| path.starts_with(root));
    PROGRAMS.iter().any(|folder| is_below(path, folder))
        || is_of_home && TOOLCHAINS.iter().any(|part| path.contains(part))
}

/// Returns whether an address or host is this machine.
fn is_local(address: &str) -> bool {
    let host = crate::model::facts::host_of(address).unwrap_or_else(|| address.to_owned());
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = |address: IpAddr| address.is_loopback() || address.is_unspecified();
    host == "localhost"
        || host.ends_with(".localhost")
        || host == "host.docker.internal"
        || host.parse().is_ok_and(is_loopback)
}

/// The action of a command that makes a symbolic link.
const MAKES_LINK: &str = "link_file";
/// The action of a command that changes the folder.
const CHANGES_FOLDER: &str = "change_directory";
/// Things that are on this machine.
const LOCAL: &[Resource] = &[
    Resource::File,
    Resource::Document,
    Resource::Media,
    Resource::Code,
    Resource::Config,
    Resource::System,
    Resource::Information,
    Resource::Database,
    Resource::Analytics,
    Resource::Model,
    Resource::Task,
    Resource::Network,
    Resource::Credential,
    Resource::Web,
];
const SCRATCH: &[&str] = &[
    "/tmp",
    "/private/tmp",
    "/var/tmp",
    "/var/folders",
    "/private/var/folders",
    "/dev/null",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/stdin",
    "/dev/tty",
    "/dev/fd",
    "/dev/shm",
];
const PROGRAMS: &[&str] = &[
    "/bin",
    "/usr/bin",
    "/usr/local/bin",
    "/sbin",
    "/usr/sbin",
    "/opt/homebrew",
    "/usr/local/go",
    "/usr/lib",
    "/Library",
    "/Applications",
    "/System",
    "/nix/store",
    "/snap/bin",
];
const TOOLCHAINS: &[&str] = &[
    "/.cargo/bin/",
    "/.rustup/",
    "/go/bin/",
    "/.nvm/",
    "/.pyenv/",
    "/.rbenv/",
    "/.asdf/",
    "/.bun/bin/",
    "/.deno/bin/",
    "/.local/bin/",
    "/.local/share/",
    "/.volta/",
    "/.sdkman/",
    "/miniconda3/",
    "/anaconda3/",
    "/.venv/bin/",
    "/venv/bin/",
    "/.virtualenvs/",
];
/// Parts of the path of a home, `/home/ann`, with the empty one before the first slash.
const PARTS_OF_HOME: usize = 3;
/// Largest number of folders and of created paths.
const MOST_FOLDERS: usize = 64;
const MOST_MADE: usize = 10_000;
