//! Profiles: the files and hosts that a run may reach, derived from a decision.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};

use rulekeep_types::facts::{Facts, Kind, Operand, Role};
use rulekeep_types::{Constraints, DeniedPath, Glob, without_dots};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::code::runs;
use crate::links::real;
use crate::table::{Table, expand, table};
use crate::terms::Term;

/// The files that a run may read and write, and the hosts that it may reach.
///
/// A path stands for itself and everything below it. What is neither readable nor writable is not visible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Profile {
    /// The folder in which the run starts.
    pub folder: PathBuf,
    /// Paths that may be read, and whose programs may be run.
    pub read: BTreeSet<PathBuf>,
    /// Paths that may be read, changed, created and removed.
    pub write: BTreeSet<PathBuf>,
    /// Caches among them that are made before the run where they are missing.
    pub caches: BTreeSet<PathBuf>,
    /// The places to which links on the way to these paths lead. One that leads elsewhere at the start stops the run.
    pub links: BTreeMap<PathBuf, PathBuf>,
    /// Devices that may be read and written.
    pub devices: BTreeSet<PathBuf>,
    /// Paths that are kept from the run, whatever contains them.
    pub kept: BTreeMap<PathBuf, Keep>,
    /// The run's own folder for temporary files, which it also sees as `/tmp`.
    pub temp: PathBuf,
    /// Paths below `/tmp` that the request names, and that other programs find there after the run.
    pub named_temp: BTreeSet<PathBuf>,
    /// The network.
    pub network: Network,
}

/// The way in which a path is kept from a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Keep {
    /// True if reading stays permitted.
    pub is_readable: bool,
    /// True if a rule says so: then the place is kept though nothing is there, and no link leads there.
    pub is_ruled: bool,
    /// True if what is kept is a folder, even where nothing is.
    pub is_folder: bool,
}

/// The use that a run can make of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// The path does not exist for the run.
    Nothing,
    /// The run can read it.
    Read,
    /// The run can read and change it.
    Write,
}

/// The network of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Network {
    /// A loopback of its own, which reaches nothing but the run.
    Own,
    /// A loopback of its own, and these hosts through a proxy.
    Hosts(BTreeSet<String>),
    /// The network of the machine.
    Any,
}

/// The circumstances of a run.
#[derive(Debug, Clone, Copy)]
pub struct Ground<'a> {
    /// The folder in which the run starts.
    pub folder: &'a Path,
    /// The user's home.
    pub home: Option<&'a Path>,
    /// Further folders that belong to the work.
    pub areas: &'a [PathBuf],
    /// The run's own folder for temporary files.
    pub temp: &'a Path,
    /// The paths that rules deny.
    pub denied: &'a [DeniedPath],
}

impl Profile {
    /// Derives the profile of a granted request; `None` if its constraints do not confine it.
    ///
    /// Several terms of the constraint `confine` give what all of them permit.
    ///
    /// # Errors
    ///
    /// [`Error::Profile`] for a constraint of another form, for a folder that is not absolute or is the root or a
    /// home, and for denied paths that cannot be kept from the run.
    pub fn of(constraints: &Constraints, facts: &Facts, ground: &Ground<'_>) -> Result<Option<Self>, Error> {
        let Some(value) = constraints.get("confine") else { return Ok(None) };
        let terms = Term::read(value).map_err(Error::Profile)?;
        let table = table()?;
        let folder = real(ground.folder);
        for folder in ground.areas.iter().map(PathBuf::as_path).chain([ground.folder, &folder]) {
            if !is_plain(folder) || holds_home(folder, ground.home) {
                return Err(Error::Profile(format!("{} is no folder to work in", folder.display())));
            }
        }
        let ground = &Ground { folder: &folder, ..*ground };
        let workspace = Workspace::of(table, facts, ground);
        let listed = |term: &Term| term.read.iter().chain(&term.write).flatten().cloned().collect::<Vec<_>>();
        let ruled: BTreeSet<PathBuf> = ground.paths(&terms.iter().flat_map(listed).collect::<Vec<_>>()).collect();
        let mut terms = terms.iter().map(|term| workspace.within(term, ground));
        let first = terms.next().unwrap_or_else(|| workspace.within(&Term::default(), ground));
        let all = terms.fold(first, |all, term| all.and(&term));
        let paths = |entries: &[String]| -> Vec<PathBuf> {
            entries.iter().filter_map(|entry| expand(entry, ground.home)).collect()
        };
        let mut profile = Self {
            folder: ground.folder.to_owned(),
            read: all.read.into_iter().chain(paths(&table.system)).collect(),
            caches: BTreeSet::new(),
            write: all.write,
            links: BTreeMap::new(),
            devices: paths(&table.devices).into_iter().collect(),
            kept: BTreeMap::new(),
            temp: ground.temp.to_owned(),
            named_temp: all.named_temp,
            network: match all.hosts {
                hosts if hosts.contains("*") => Network::Any,
                hosts if hosts.is_empty() => Network::Own,
                hosts => Network::Hosts(hosts),
            },
        };
        let areas: Vec<PathBuf> = ground.areas.iter().cloned().chain([folder.clone()]).collect();
        profile.read.extend(areas.iter().filter_map(|area| repository(area)));
        let unasked = areas.iter().flat_map(|root| table.unasked.iter().map(move |name| root.join(name)));
        let by_table = |is_readable| Keep { is_readable, is_ruled: false, is_folder: false };
        profile.kept.extend(unasked.map(|path| (path, by_table(true))));
        profile.kept.extend(paths(&table.hidden).into_iter().map(|path| (path, by_table(false))));
        profile.follow(&ruled, &areas, ground.home)?;
        for denied in ground.denied {
            profile.subtract(denied, ground.home, &areas, &all.named)?;
        }
        let is_written = |cache: &PathBuf| profile.write.iter().any(|root| cache.starts_with(root));
        let is_open = |cache: &PathBuf| is_written(cache) && profile.reach(cache) == Reach::Write;
        profile.caches = all.caches.into_iter().filter(is_open).collect();
        Ok(Some(profile))
    }

    /// Notes where links lead. A link that an agent can have made opens nothing: in a place where it works, or where the
    /// run writes.
    fn follow(&mut self, ruled: &BTreeSet<PathBuf>, areas: &[PathBuf], home: Option<&Path>) -> Result<(), Error> {
        let places: BTreeSet<&PathBuf> = self.write.iter().chain(areas).collect();
        let is_made = |path: &Path| {
            let is_in = |folder: &Path| {
                let is_open_to_all = ["/tmp", "/var/tmp"].iter().any(|open| folder.starts_with(open));
                let is_own = home.is_some_and(|home| folder.starts_with(home));
                is_open_to_all && !is_own || places.iter().any(|place| folder.starts_with(place))
            };
            let links = path.ancestors().filter(|part| std::fs::symlink_metadata(part).is_ok_and(|it| it.is_symlink()));
            links.filter_map(Path::parent).any(is_in)
        };
        let mut dropped = BTreeSet::new();
        for path in self.read.iter().chain(&self.write) {
            let found = std::fs::canonicalize(path).unwrap_or_else(|_| real(path));
            if found == *path {
                continue;
            }
            if !is_made(path) || found.starts_with(&self.temp) {
                self.links.insert(path.clone(), found);
            } else if ruled.contains(path) {
                return Err(Error::Profile(format!(
                    "a rule permits {}, which is reached through a link",
                    path.display()
                )));
            } else {
                dropped.insert(path.clone());
            }
        }
        self.read.retain(|path| !dropped.contains(path));
        self.write.retain(|path| !dropped.contains(path));
        Ok(())
    }

    /// Keeps denied paths from the run: those that exist now, in any case, and the one that a pattern without wildcards,
    /// or with one only at its end, names. `named` are further places in which a pattern is searched.
    fn subtract(
        &mut self,
        denied: &DeniedPath,
        home: Option<&Path>,
        areas: &[PathBuf],
        named: &BTreeSet<PathBuf>,
    ) -> Result<(), Error> {
        let pattern = match denied.pattern.strip_prefix('~') {
            Some(rest) => home.map_or(format!("*{rest}"), |home| format!("{}{rest}", home.display())),
            None => denied.pattern.clone(),
        };
        let literal = pattern.strip_suffix("/*").unwrap_or(&pattern);
        let keep = Keep { is_readable: denied.is_readable, is_ruled: true, is_folder: literal != pattern };
        let is_absolute = pattern.starts_with('/');
        let is_floating = is_absolute || pattern.starts_with('*');
        let root = [PathBuf::from("/")];
        if !Glob::is_glob(literal) && !literal.is_empty() {
            for root in if is_floating { &root } else { areas } {
                let path = without_dots(&root.join(literal));
                for spelling in spellings(&path, if is_floating { Path::new("/") } else { root }) {
                    self.keep(spelling, Keep { is_ruled: false, ..keep })?;
                }
                self.keep(path, keep)?;
            }
            return Ok(());
        }
        // A rule that restricts compares without case. What is in a folder that fits is denied with it.
        let lower = pattern.strip_prefix("./").unwrap_or(&pattern).to_lowercase();
        let globs = [Glob::new(&lower), Glob::new(lower.strip_suffix("/*").unwrap_or(&lower))];
        let fits = |path: &Path| {
            let of = |path: &Path| {
                let text = path.to_string_lossy().to_lowercase();
                globs.iter().any(|glob| glob.matches(&text))
            };
            if is_floating { of(path) } else { areas.iter().any(|root| path.strip_prefix(root).is_ok_and(of)) }
        };
        let known =
            Path::new(literal).components().take_while(|part| !Glob::is_glob(&part.as_os_str().to_string_lossy()));
        let mut left: Vec<PathBuf> = match is_floating {
            true if is_absolute => spellings(&known.collect::<PathBuf>(), Path::new("/")),
            true => self.write.iter().chain(named).cloned().collect(),
            false => areas.to_vec(),
        };
        let mut seen = 0;
        while let Some(path) = left.pop() {
            seen += 1;
            if seen > MOST_ENTRIES {
                let (found, most) = (&denied.pattern, MOST_ENTRIES);
                return Err(Error::Profile(format!("a rule denies {found:?}, which more than {most} files may match")));
            }
            if fits(&path) {
                self.keep(path, Keep { is_ruled: false, ..keep })?;
            } else if std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
                let entries = std::fs::read_dir(&path).into_iter().flatten();
                left.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
            }
        }
        Ok(())
    }

    /// Returns what the run can do with a path that is written without links.
    #[must_use]
    pub fn reach(&self, path: &Path) -> Reach {
        let depth = |roots: &BTreeSet<PathBuf>| {
            roots.iter().filter(|root| path.starts_with(root)).map(|root| root.components().count()).max()
        };
        let kept = path.ancestors().filter_map(|path| self.kept.get(path));
        let is_temporary = ["/tmp", "/var/tmp", "/dev/shm"].iter().any(|own| path.starts_with(own));
        let written = depth(&self.write).max(depth(&self.devices));
        let permitted = match depth(&self.read) {
            read if written.is_some() && written >= read || is_temporary => Reach::Write,
            Some(_) => Reach::Read,
            None => Reach::Nothing,
        };
        kept.fold(permitted, |most, keep| most.min(if keep.is_readable { Reach::Read } else { Reach::Nothing }))
    }

    /// Keeps a path from the run, at least as strictly as before.
    fn keep(&mut self, path: PathBuf, keep: Keep) -> Result<(), Error> {
        if path.to_str().is_none() {
            return Err(Error::Profile(format!("a rule denies {}, whose name is not UTF-8", path.display())));
        }
        let known = self.kept.entry(path).or_insert(keep);
        known.is_readable &= keep.is_readable;
        known.is_ruled |= keep.is_ruled;
        known.is_folder |= keep.is_folder;
        Ok(())
    }
}

impl Ground<'_> {
    /// The paths of a list in a term.
    fn paths(&self, entries: &[String]) -> impl Iterator<Item = PathBuf> {
        let own = entries.iter().filter_map(|entry| expand(entry, self.home));
        own.map(|path| without_dots(&self.folder.join(path)))
    }
}

/// The existing paths below a folder that are a path but for case.
fn spellings(path: &Path, root: &Path) -> Vec<PathBuf> {
    let Ok(rest) = path.strip_prefix(root) else { return Vec::new() };
    let mut found = vec![root.to_owned()];
    for part in rest.components() {
        let wanted = part.as_os_str().to_string_lossy().to_lowercase();
        let entries = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
        let is_it = |name: &std::ffi::OsStr| name.to_string_lossy().to_lowercase() == wanted;
        let named = found.into_iter().flat_map(entries).filter(|entry| is_it(&entry.file_name()));
        found = named.map(|entry| entry.path()).collect();
    }
    found
}

/// The paths and hosts that a term permits.
#[derive(Debug, Clone)]
struct Workspace {
    read: BTreeSet<PathBuf>,
    write: BTreeSet<PathBuf>,
    caches: BTreeSet<PathBuf>,
    /// The paths that the acts of the request name for reading.
    named: BTreeSet<PathBuf>,
    named_temp: BTreeSet<PathBuf>,
    hosts: BTreeSet<String>,
}

impl Workspace {
    /// The folders of the work, the tools, and what the acts of the request name.
    fn of(table: &Table, facts: &Facts, ground: &Ground<'_>) -> Self {
        let expand = |entry: &String| expand(entry, ground.home);
        let mut write: BTreeSet<PathBuf> = ground.areas.iter().cloned().collect();
        write.extend([ground.folder.to_owned(), ground.temp.to_owned()]);
        let mut read: BTreeSet<PathBuf> = table.settings.iter().filter_map(expand).collect();
        let (mut caches, mut hosts, mut named_temp) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for tool in &table.tool {
            let is_named = facts.acts.iter().any(|act| runs(act, &tool.programs));
            if is_named {
                hosts.extend(tool.hosts.iter().cloned());
            }
            read.extend(tool.read.iter().filter_map(expand));
            let own: Vec<PathBuf> = tool.write.iter().filter_map(expand).collect();
            let missing: Vec<&PathBuf> = own.iter().filter(|cache| !cache.exists()).collect();
            if !missing.is_empty() && (is_named || tool.is_installed()) {
                caches.extend(missing.into_iter().cloned());
            }
            write.extend(own);
            write.extend(tool.older.iter().filter_map(expand));
        }
        // An agent that writes beside a tool's places could make links there.
        let places = table.tool.iter().flat_map(|tool| tool.write.iter().chain(&tool.older)).filter_map(expand);
        let tools: Vec<PathBuf> = read.iter().cloned().chain(places).collect();
        let holds_tools = |folder: &Path| tools.iter().any(|place| place != folder && place.starts_with(folder));
        let mut named = BTreeSet::new();
        for operand in facts.acts.iter().flat_map(|act| &act.operands) {
            match operand.kind {
                Kind::Path => {
                    let Some(path) = literal(operand).filter(|path| path != Path::new("/tmp")) else { continue };
                    let is_new = path.starts_with("/tmp") && !path.exists();
                    let known = real(&path);
                    if is_new {
                        named_temp.insert(path);
                    } else if path.starts_with("/tmp") {
                        write.insert(path); // a program that gets its name may write it
                    } else if holds_home(&known, ground.home) || operand.role == Role::Named {
                        // What is only listed opens nothing, and no call opens the home.
                    } else if matches!(operand.role, Role::Write | Role::Remove) {
                        // A new file needs its folder.
                        let is_fit = |folder: &&Path| !holds_home(folder, ground.home) && !holds_tools(folder);
                        let folder = path.parent().filter(|folder| !path.exists() && is_fit(folder));
                        write.insert(folder.map(Path::to_owned).unwrap_or(path));
                    } else {
                        named.insert(path);
                    }
                }
                Kind::Host if operand.role != Role::Named && !operand.pattern && !is_local(&operand.value) => {
                    hosts.insert(operand.value.clone());
                }
                _ => {}
            }
        }
        read.extend(named.iter().cloned());
        Self { read, write, caches, named, named_temp, hosts }
    }

    /// Returns the paths and hosts that a term permits of the workspace, or instead of it.
    fn within(&self, term: &Term, ground: &Ground<'_>) -> Self {
        let paths = |entries: &[String]| -> BTreeSet<PathBuf> {
            ground.paths(entries).chain([ground.temp.to_owned()]).collect()
        };
        let mut all = self.clone();
        if let Some(write) = &term.write {
            all.write = paths(write);
            all.read.extend([ground.folder.to_owned()]);
        }
        if let Some(read) = &term.read {
            all.read = paths(read);
        }
        if let Some(hosts) = &term.hosts {
            all.hosts = hosts.iter().cloned().collect();
        }
        all
    }

    /// Returns the paths and hosts that both permit.
    fn and(self, other: &Self) -> Self {
        let readable = |one: &Self| -> BTreeSet<PathBuf> { one.read.union(&one.write).cloned().collect() };
        let hosts = match (self.hosts.contains("*"), other.hosts.contains("*")) {
            (true, _) => other.hosts.clone(),
            (_, true) => self.hosts.clone(),
            _ => self.hosts.intersection(&other.hosts).cloned().collect(),
        };
        Self {
            read: common(&readable(&self), &readable(other)),
            write: common(&self.write, &other.write),
            caches: self.caches,
            named: self.named,
            named_temp: self.named_temp,
            hosts,
        }
    }
}

/// The paths that both sets permit.
fn common(one: &BTreeSet<PathBuf>, other: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let inside = |path: &&PathBuf, roots: &BTreeSet<PathBuf>| roots.iter().any(|root| path.starts_with(root));
    let (a, b) = (one.iter().filter(|path| inside(path, other)), other.iter().filter(|path| inside(path, one)));
    a.chain(b).cloned().collect()
}

/// The folder for temporary files of a conversation, or of a folder's work.
#[must_use]
pub fn temp_of(conversation: &str) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    conversation.hash(&mut hasher);
    Path::new("/tmp").join(format!("rulekeep-{}-{:016x}", user(), hasher.finish()))
}

/// The user of this process, to whom its entry in `/proc` belongs.
#[cfg(unix)]
fn user() -> u32 {
    std::fs::metadata("/proc/self").map(|found| std::os::unix::fs::MetadataExt::uid(&found)).unwrap_or_default()
}

#[cfg(not(unix))]
fn user() -> u32 {
    0
}

/// The folder of the repository that a worktree belongs to; `None` for another folder.
fn repository(worktree: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(worktree.join(".git")).ok()?;
    let own = worktree.join(text.strip_prefix("gitdir:")?.trim());
    // The repository knows its worktrees: a file that somebody put there names none.
    let back = std::fs::read_to_string(own.join("gitdir")).ok()?;
    let is_known = Path::new(back.trim()) == worktree.join(".git");
    let common = own.parent().filter(|folder| folder.ends_with("worktrees"))?.parent()?;
    is_known.then(|| common.to_owned())
}

/// The path that an operand names, or the folder in which its pattern begins.
fn literal(operand: &Operand) -> Option<PathBuf> {
    let value = Path::new(&operand.value);
    let is_open = |part: &Component<'_>| part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']);
    let known = value.components().take_while(|part| !operand.pattern || !is_open(part));
    Some(known.collect::<PathBuf>()).filter(|path| is_plain(path))
}

/// Whether a path is the root, the home or around it.
fn holds_home(path: &Path, home: Option<&Path>) -> bool {
    path.parent().is_none() || home.is_some_and(|home| home.starts_with(path) || real(home).starts_with(path))
}

/// Whether a host is this machine.
fn is_local(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// Whether a path is absolute and has no `..`.
fn is_plain(path: &Path) -> bool {
    path.is_absolute() && !path.components().any(|part| part == Component::ParentDir)
}

/// Largest number of files among which denied ones are searched.
const MOST_ENTRIES: usize = 50_000;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn profile(confine: Value, denied: &[DeniedPath]) -> Result<Option<Profile>, Error> {
        let mut constraints = Constraints::new();
        constraints.insert("confine", confine);
        let ground = Ground {
            folder: Path::new("/home/u/shop"),
            home: Some(Path::new("/home/u")),
            areas: &[],
            temp: Path::new("/tmp/own"),
            denied,
        };
        Profile::of(&constraints, &Facts::default(), &ground)
    }

    fn has(paths: &BTreeSet<PathBuf>, path: &str) -> bool {
        paths.contains(Path::new(path))
    }

    #[test]
    fn several_terms_give_what_all_permit() {
        let both = profile(json!(["workspace", "offline"]), &[]).unwrap().unwrap();
        assert_eq!(both.network, Network::Own);
        let own = json!({ "write": ["./out", "~/other", "/srv/data"], "hosts": ["a.example"] });
        let alone = profile(json!([own]), &[]).unwrap().unwrap();
        assert!(has(&alone.write, "/home/u/shop/out") && has(&alone.write, "/srv/data"), "{alone:?}");
        assert!(!has(&alone.write, "/home/u/shop") && has(&alone.read, "/home/u/shop"));
        assert_eq!(alone.network, Network::Hosts(BTreeSet::from(["a.example".to_owned()])));
        let tight = profile(json!([own, "workspace"]), &[]).unwrap().unwrap();
        assert!(has(&tight.write, "/home/u/shop/out") && !has(&tight.write, "/srv/data"), "{tight:?}");
        assert_eq!(tight.network, Network::Own);
        for odd in [json!(null), json!("Workspace"), json!([]), json!({ "wirte": [] }), json!({ "write": "a" })] {
            assert!(profile(odd.clone(), &[]).is_err(), "{odd}");
        }
        let free = Profile::of(
            &Constraints::new(),
            &Facts::default(),
            &Ground { folder: Path::new("/w"), home: None, areas: &[], temp: Path::new("/tmp/own"), denied: &[] },
        );
        assert_eq!(free.unwrap(), None);
    }

    #[test]
    fn denied_paths_are_kept_from_the_run() {
        let denied = |pattern: &str, is_readable| DeniedPath { pattern: pattern.to_owned(), is_readable };
        let rules = [denied(".github/*", true), denied("~/notes/*", false), denied("/home/u/shop/keys", false)];
        let profile = profile(json!("workspace"), &rules).unwrap().unwrap();
        let kept = |path: &str| profile.kept.get(Path::new(path)).map(|keep| (keep.is_readable, keep.is_folder));
        assert_eq!(kept("/home/u/shop/.github"), Some((true, true)));
        assert_eq!(kept("/home/u/notes"), Some((false, true)));
        assert_eq!(kept("/home/u/shop/keys"), Some((false, false)));
        assert_eq!(kept("/home/u/.ssh"), Some((false, false)), "by the table");
        for (path, reach) in [
            ("/home/u/shop/a", Reach::Write),
            ("/home/u/shop/.github/a", Reach::Read),
            ("/home/u/shop/keys/a", Reach::Nothing),
            ("/home/u/other", Reach::Nothing),
            ("/usr/bin/make", Reach::Read),
            ("/tmp/a", Reach::Write),
            ("/dev/null", Reach::Write),
        ] {
            assert_eq!(profile.reach(Path::new(path)), reach, "{path}");
        }
    }

    #[test]
    fn files_that_a_pattern_matches_are_found_without_case() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().canonicalize().unwrap();
        std::fs::create_dir_all(folder.join("a/keys")).unwrap();
        for file in ["a/.ENV", "key1.pem", "a/key1.pem", "a/keys/x"] {
            std::fs::write(folder.join(file), "").unwrap();
        }
        let found = |pattern: &str| {
            let denied = [DeniedPath { pattern: pattern.to_owned(), is_readable: false }];
            let ground = Ground { folder: &folder, home: None, areas: &[], temp: &folder.join("t"), denied: &denied };
            let constraints: Constraints = serde_json::from_value(json!({ "confine": ["workspace"] })).unwrap();
            let profile = Profile::of(&constraints, &Facts::default(), &ground).unwrap().unwrap();
            let below = |path: &PathBuf| Some(path.strip_prefix(&folder).ok()?.to_str()?.to_owned());
            let found = profile.kept.iter().filter(|(path, keep)| !keep.is_readable && path.exists());
            found.filter_map(|(path, _)| below(path)).collect::<Vec<_>>()
        };
        assert_eq!(found("*.env"), ["a/.ENV"]);
        assert_eq!(found("key?.pem"), ["key1.pem"], "a relative pattern begins at the folder");
        assert_eq!(found("a/k*"), ["a/key1.pem", "a/keys"]);
        assert_eq!(found("./a/keys/*"), ["a/keys"]);
    }

    #[test]
    fn a_folder_around_the_home_is_no_folder_to_work_in() {
        for folder in ["/", "/home", "/home/u", "shop", "/home/u/shop/../.."] {
            let mut constraints = Constraints::new();
            constraints.insert("confine", json!("workspace"));
            let (folder, home) = (Path::new(folder), Some(Path::new("/home/u")));
            let ground = Ground { folder, home, areas: &[], temp: Path::new("/tmp/own"), denied: &[] };
            assert!(Profile::of(&constraints, &Facts::default(), &ground).is_err(), "{}", folder.display());
        }
    }

    #[test]
    fn a_worktree_names_its_repository_only_if_that_knows_it() {
        let folder = tempfile::tempdir().unwrap();
        let (common, worktree) = (folder.path().join("main/.git"), folder.path().join("tree"));
        let own = common.join("worktrees/tree");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::create_dir_all(&worktree).unwrap();
        std::fs::write(worktree.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        assert_eq!(repository(&worktree), None, "the file may be anybody's");
        std::fs::write(own.join("gitdir"), format!("{}\n", worktree.join(".git").display())).unwrap();
        assert_eq!(repository(&worktree), Some(common));
        assert_eq!(repository(folder.path()), None);
    }

    #[test]
    fn missing_caches_are_made_for_tools_that_the_call_names() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join(".gradle/caches")).unwrap();
        let mut act = rulekeep_types::facts::Act::default();
        act.command = Some("./gradlew test".to_owned());
        let mut facts = Facts::default();
        facts.acts.push(act);
        let folder = home.path().join("shop");
        let ground =
            Ground { folder: &folder, home: Some(home.path()), areas: &[], temp: Path::new("/tmp/own"), denied: &[] };
        let made = |confine: Value| {
            let mut constraints = Constraints::new();
            constraints.insert("confine", confine);
            Profile::of(&constraints, &facts, &ground).unwrap().unwrap().caches
        };
        let caches = made(json!("workspace"));
        assert!(
            caches.contains(&home.path().join(".gradle/daemon"))
                && !caches.contains(&home.path().join(".gradle/caches"))
        );
        assert!(!caches.contains(&home.path().join(".ccache")), "{caches:?}");
        assert_eq!(made(json!({ "write": ["build"] })), BTreeSet::new());
    }

    #[test]
    fn what_a_rule_denies_is_not_made_and_its_name_must_be_readable() {
        use std::os::unix::ffi::OsStrExt as _;

        let place = tempfile::tempdir().unwrap();
        let home = place.path().canonicalize().unwrap();
        let folder = home.join("shop");
        std::fs::create_dir_all(home.join(".gradle/caches")).unwrap();
        std::fs::create_dir_all(folder.join("odd")).unwrap();
        let facts = json!({ "form": 2, "acts": [{ "command": "./gradlew test" }] });
        let facts: Facts = serde_json::from_value(facts).unwrap();
        let mut constraints = Constraints::new();
        constraints.insert("confine", json!("workspace"));
        let profile = |denied: DeniedPath| {
            let denied = [denied];
            let temp = Path::new("/tmp/own");
            let ground = Ground { folder: &folder, home: Some(&home), areas: &[], temp, denied: &denied };
            Profile::of(&constraints, &facts, &ground).map(Option::unwrap)
        };
        let daemon = home.join(".gradle/daemon");
        let denied = |pattern: &str| DeniedPath { pattern: pattern.to_owned(), is_readable: true };
        assert!(profile(denied("~/other/*")).unwrap().caches.contains(&daemon));
        assert!(!profile(denied("~/.gradle/*")).unwrap().caches.contains(&daemon));

        let odd = folder.join(std::ffi::OsStr::from_bytes(b"odd/key\xff"));
        std::fs::write(&odd, "").unwrap();
        for refused in [denied("odd/key*"), denied("*/key?"), DeniedPath::at(&odd)] {
            let error = profile(refused).unwrap_err();
            assert!(error.to_string().contains("not UTF-8"), "{error}");
        }
        assert_eq!(profile(denied("odd/*")).unwrap().reach(&odd), Reach::Read);
    }

    #[test]
    fn a_link_where_an_agent_works_opens_nothing() {
        let place = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let home = place.path().canonicalize().unwrap();
        let folder = home.join("shop");
        std::fs::create_dir_all(home.join(".cargo/bin")).unwrap();
        std::fs::create_dir_all(home.join("disk/pip")).unwrap();
        std::fs::create_dir(&folder).unwrap();
        for (link, to) in [("shop/out", ".cargo"), ("shop/build", "."), (".cache", "disk")] {
            std::os::unix::fs::symlink(home.join(to), home.join(link)).unwrap();
        }
        let operand = |path: PathBuf| json!({ "kind": "path", "role": "write", "value": path });
        let profile = |confine: Value, path: PathBuf| {
            let facts = json!({ "form": 2, "acts": [{ "operands": [operand(path)] }] });
            let facts: Facts = serde_json::from_value(facts).unwrap();
            let mut constraints = Constraints::new();
            constraints.insert("confine", confine);
            let temp = home.join("own");
            let ground = Ground { folder: &folder, home: Some(&home), areas: &[], temp: &temp, denied: &[] };
            Profile::of(&constraints, &facts, &ground).map(Option::unwrap)
        };
        let made = profile(json!("workspace"), folder.join("out")).unwrap();
        assert!(!made.write.contains(&folder.join("out")), "{:?}", made.write);
        assert!(made.read.contains(&home.join(".cargo")) && !made.write.contains(&home.join(".cargo")));
        // A link of the user's own, in the home, stays.
        assert_eq!(made.links[&home.join(".cache/pip")], home.join("disk/pip"));
        let refused = profile(json!({ "write": ["./build"] }), folder.join("a")).unwrap_err();
        assert!(refused.to_string().contains("through a link"), "{refused}");
        // Beside the places of tools nothing is made.
        let beside = profile(json!("workspace"), home.join(".cargo/new")).unwrap();
        assert!(!beside.write.contains(&home.join(".cargo")), "{:?}", beside.write);
    }

    #[test]
    fn denied_paths_are_found_in_any_case_and_where_the_call_reads() {
        let place = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let root = place.path().canonicalize().unwrap();
        let folder = root.join("work");
        for made in ["work/Secrets", "work/sub/t", "outside/keys"] {
            std::fs::create_dir_all(root.join(made)).unwrap();
        }
        std::fs::write(root.join("outside/prod.env"), "").unwrap();
        let reads = json!({ "kind": "path", "role": "read", "value": root.join("outside") });
        let facts: Facts = serde_json::from_value(json!({ "form": 2, "acts": [{ "operands": [reads] }] })).unwrap();
        let kept = |pattern: String, path: &str| {
            let denied = [DeniedPath { pattern, is_readable: false }];
            let mut constraints = Constraints::new();
            constraints.insert("confine", json!("workspace"));
            let ground =
                Ground { folder: &folder, home: None, areas: &[], temp: Path::new("/tmp/own"), denied: &denied };
            let profile = Profile::of(&constraints, &facts, &ground).unwrap().unwrap();
            profile.reach(&root.join(path)) == Reach::Nothing
        };
        for (pattern, path) in [
            ("secrets/*".to_owned(), "work/Secrets/x"),
            ("SECRETS".to_owned(), "work/Secrets/x"),
            (format!("{}/WORK/secrets/*", root.display()), "work/Secrets/x"),
            (format!("{}/out*", root.display()), "outside/prod.env"),
            (format!("{}/outside/*.env", root.display()), "outside/prod.env"),
            ("*.env".to_owned(), "outside/prod.env"),
            ("*/sub/t/*".to_owned(), "work/sub/t/new"),
        ] {
            assert!(kept(pattern.clone(), path), "{pattern}");
        }
        assert!(!kept("*.pem".to_owned(), "outside/prod.env"));
    }
}
