//! The steps in which a process gives up its rights, and the program that it then executes.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetStatus, Scope, path_beneath_rules,
};
use nix::sched::{CloneFlags, unshare};
use rulekeep_types::without_dots;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};
use rustix::process::{getgid, getuid};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set, set_no_new_privs};

use crate::helper::Helper;
use crate::{Error, Network, Profile, calls, links, temp_of, view};

impl Profile {
    /// Restricts this process to the profile and executes `command`. Returns only if that fails.
    ///
    /// The process must have one thread. Descriptors other than the standard ones are closed, and environment
    /// variables named in `secrets` removed. `this` starts this program again so that it does [`help`](crate::help), if
    /// the run needs that.
    pub fn exec(&self, command: &[OsString], secrets: &[&str], this: Command) -> Error {
        match self.enter(this) {
            Ok(proxy) => self.start(command, secrets, proxy),
            Err(error) => error,
        }
    }

    /// Executes a program in this process, which is confined.
    fn start(&self, command: &[OsString], secrets: &[&str], proxy: Option<u16>) -> Error {
        let Some((program, arguments)) = command.split_first() else {
            return Error::Profile("there is no program to run".to_owned());
        };
        let mut started = Command::new(program);
        started.args(arguments).env("TMPDIR", &self.temp);
        if let Some(port) = proxy {
            let proxy = format!("http://127.0.0.1:{port}");
            for name in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"] {
                started.env(name, &proxy);
            }
            for name in ["NO_PROXY", "no_proxy"] {
                started.env(name, "localhost,127.0.0.1,::1");
            }
            let java = format!("-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={port}");
            for name in ["GRADLE_OPTS", "MAVEN_OPTS"] {
                let given = std::env::var(name).unwrap_or_default();
                started.env(name, format!("{given} {java}").trim_start());
            }
        }
        for secret in secrets {
            started.env_remove(secret);
        }
        let source = started.exec();
        Error::Program { program: program.to_string_lossy().into_owned(), source }
    }

    /// Restricts this process, and all that it starts, to the profile. Returns the port of its proxy, if it has one.
    fn enter(&self, this: Command) -> Result<Option<u16>, Error> {
        let real = fs::canonicalize(&self.folder).map_err(Error::of(self.folder.display().to_string()))?;
        if real != self.folder {
            return Err(Error::Profile(format!("{} is a link by now", self.folder.display())));
        }
        self.check()?;
        self.make_temp()?;
        let mut helper = Helper::start(self, this)?;
        let is_same = |cache: &&PathBuf| links::real(cache) == **self.links.get(*cache).unwrap_or(cache);
        for cache in self.caches.iter().filter(is_same) {
            // Without it, its tool complains.
            let _ = fs::DirBuilder::new().recursive(true).mode(0o700).create(cache);
        }
        namespaces(self.network != Network::Any)?;
        if self.network != Network::Any {
            raise_loopback().map_err(Error::of("a loopback of its own"))?;
        }
        let mut listener = None;
        if let Network::Hosts(_) = self.network {
            listener = Some(TcpListener::bind(("127.0.0.1", 0)).map_err(Error::of("a listener"))?);
        }
        if let Some(helper) = &mut helper {
            helper.ready(listener.as_ref())?;
        }
        self.restrict()?;
        let address = listener.map(|listener| listener.local_addr()).transpose().map_err(Error::of("a listener"))?;
        Ok(address.map(|address| address.port()))
    }

    /// Restricts this process, which is in namespaces of its own.
    fn restrict(&self) -> Result<(), Error> {
        let found = self.existing()?;
        view::make(&found)?;
        set_no_new_privs(true).map_err(|error| Error::of("no new privileges")(error.into()))?;
        found.landlock()?;
        // Executing a program leaves them to root alone.
        if getuid().is_root() {
            drop_capabilities().map_err(Error::of("capabilities"))?;
        }
        calls::forbid()?;
        close_fds::set_fds_cloexec(3, &[]);
        Ok(())
    }

    /// Refuses paths that are not absolute, or that lead out of others by `..`.
    fn check(&self) -> Result<(), Error> {
        let all = self.read.iter().chain(&self.write).chain(&self.devices).chain(&self.caches).chain(&self.named_temp);
        let odd = all.chain([&self.temp]).find(|path| without_dots(path) != **path || !path.is_absolute());
        let stray = || self.caches.iter().find(|cache| !self.write.iter().any(|root| cache.starts_with(root)));
        match odd.or_else(stray) {
            Some(path) => Err(Error::Profile(format!("{} is no path of a profile", path.display()))),
            None => Ok(()),
        }
    }

    /// The profile without paths that do not exist. A link that leads elsewhere than it did is an error.
    fn existing(&self) -> Result<Self, Error> {
        let mut found = self.clone();
        for paths in [&mut found.read, &mut found.write, &mut found.devices] {
            paths.retain(|path| fs::symlink_metadata(path).is_ok());
        }
        for path in found.read.iter().chain(&found.write) {
            let known = self.links.get(path).unwrap_or(path);
            if fs::canonicalize(path).ok().as_ref() != Some(known) {
                return Err(Error::Profile(format!("{} leads elsewhere by now", path.display())));
            }
        }
        found.kept.retain(|path, _| fs::symlink_metadata(path).is_ok());
        Ok(found)
    }

    /// Makes the folder for temporary files, and links to it for the paths that the request names.
    fn make_temp(&self) -> Result<(), Error> {
        let failed = || Error::of(self.temp.display().to_string());
        match fs::DirBuilder::new().mode(0o700).create(&self.temp) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed()(error)),
            _ => {}
        }
        let found = fs::symlink_metadata(&self.temp).map_err(failed())?;
        if found.is_dir() && found.uid() == getuid().as_raw() && found.mode() & 0o777 != 0o700 {
            fs::set_permissions(&self.temp, fs::Permissions::from_mode(0o700)).map_err(failed())?;
        } else if !found.is_dir() || found.uid() != getuid().as_raw() {
            return Err(Error::Profile(format!("{} is not a folder of this user alone", self.temp.display())));
        }
        for path in &self.named_temp {
            let Ok(name) = path.strip_prefix("/tmp") else { continue };
            let Some(first) = name.components().next() else { continue };
            let outer = Path::new("/tmp").join(first);
            if !self.temp.starts_with(&outer) && fs::symlink_metadata(&outer).is_err() {
                symlink(self.temp.join(first), &outer).map_err(failed())?;
            }
        }
        Ok(())
    }

    fn landlock(&self) -> Result<(), Error> {
        let failed = |error: &dyn std::fmt::Display| Error::Unsupported(format!("Landlock: {error}"));
        let made: Result<_, landlock::RulesetError> = (|| {
            let mut ruleset = Ruleset::default()
                .set_compatibility(CompatLevel::HardRequirement)
                .handle_access(AccessFs::from_all(LEAST_ABI))?
                .set_compatibility(CompatLevel::BestEffort)
                .handle_access(AccessFs::from_all(ABI::V7))?
                .scope(BitFlags::<Scope>::all())?
                .create()?;
            let devices = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::ReadDir | AccessFs::IoctlDev;
            let made = [AccessFs::MakeChar, AccessFs::MakeBlock, AccessFs::IoctlDev];
            let write = made.into_iter().fold(AccessFs::from_all(ABI::V7), |all, one| all & !BitFlags::from(one));
            ruleset = ruleset.add_rules(path_beneath_rules(&self.read, AccessFs::from_read(ABI::V7)))?;
            let own = ["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from);
            ruleset = ruleset.add_rules(path_beneath_rules(self.write.iter().chain(&own), write))?;
            let terminals = PathBuf::from("/dev/pts");
            let all = self.devices.iter().chain([&terminals]);
            ruleset = ruleset.add_rules(path_beneath_rules(all, devices))?;
            // The view has no names but those of permitted paths, and of the folders on the way to them.
            ruleset = ruleset.add_rules(path_beneath_rules(["/"], AccessFs::ReadDir))?;
            ruleset.restrict_self()
        })();
        match made {
            Ok(status) if status.ruleset != RulesetStatus::NotEnforced && status.no_new_privs => Ok(()),
            Ok(_) => Err(failed(&"the kernel does not enforce it")),
            Err(error) => Err(failed(&error)),
        }
    }
}

/// Confines this process, which must have one thread, to find out whether it can be.
///
/// # Errors
///
/// [`Error`] with the step that failed.
pub fn attempt() -> Result<(), Error> {
    let folder = PathBuf::from("/usr");
    let profile = Profile {
        read: BTreeSet::from([folder.clone()]),
        folder,
        write: BTreeSet::new(),
        caches: BTreeSet::new(),
        links: BTreeMap::new(),
        devices: BTreeSet::new(),
        kept: BTreeMap::new(),
        temp: temp_of("an attempt"),
        named_temp: BTreeSet::new(),
        network: Network::Own,
    };
    profile.enter(Command::new("true")).map(drop)
}

/// Moves this process to namespaces of its own, in which it keeps its user.
fn namespaces(with_network: bool) -> Result<(), Error> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let mut flags = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC;
    if with_network {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    unshare(flags).map_err(|error| Error::Unsupported(format!("user namespaces: {error}")))?;
    for (file, text) in [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("{user} {user} 1")),
        ("/proc/self/gid_map", format!("{group} {group} 1")),
    ] {
        fs::write(file, text).map_err(Error::of(file))?;
    }
    Ok(())
}

/// Raises the loopback of this network namespace.
fn raise_loopback() -> io::Result<()> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    // SOURCE: rtnetlink(7): a header of 16 bytes (length, type, flags, sequence, port) and an ifinfomsg of 16 bytes
    // (family, type, index, flags, mask of the flags that change).
    let mut message = Vec::with_capacity(32);
    message.extend(32_u32.to_ne_bytes());
    message.extend(RTM_NEWLINK.to_ne_bytes());
    message.extend(NLM_F_REQUEST_ACK.to_ne_bytes());
    message.extend([0; 8]);
    message.extend([0; 4]);
    message.extend(1_u32.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes());
    sendto(&socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = [0_u8; 64];
    let (length, _) = recv(&socket, answer.as_mut_slice(), RecvFlags::empty())?;
    // The error number follows the header; 0 is an acknowledgement.
    match answer.get(16..20).filter(|_| length >= 20) {
        Some([0, 0, 0, 0]) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-i32::from_ne_bytes(code.try_into().unwrap_or([0; 4])))),
        None => Err(io::Error::other("an answer of netlink is too short")),
    }
}

/// Gives up every capability, also those that a program would get from root.
fn drop_capabilities() -> io::Result<()> {
    for capability in CapabilitySet::all().iter() {
        match remove_capability_from_bounding_set(capability) {
            Ok(()) | Err(rustix::io::Errno::INVAL) => {} // the kernel may not know it
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

// SOURCE: linux/rtnetlink.h, linux/netlink.h, linux/if.h
const RTM_NEWLINK: u16 = 16;
const NLM_F_REQUEST_ACK: u16 = 1 | 4;
const IFF_UP: u32 = 1;
/// The oldest Landlock that a run is confined with.
const LEAST_ABI: ABI = ABI::V4;
