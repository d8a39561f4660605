//! The helper of a run: a process outside the confinement that connects to the hosts of the profile for it, and holds
//! the places of paths that are kept from it and do not exist.
//!
//! The run is the process that was started, so that its exit code, signals and terminal are its own. The helper is
//! started before the run gives up its rights, over a socket pair that no other process has, and ends with the run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde::{Deserialize, Serialize};

use crate::proxy::Proxy;
use crate::{Error, Network, Profile};

/// The work of a helper.
#[derive(Serialize, Deserialize)]
struct Job {
    /// The process that will be the run.
    run: i32,
    hosts: BTreeSet<String>,
    /// The places to hold, and whether a folder holds them.
    places: BTreeMap<PathBuf, bool>,
    /// The writable paths that the places are in.
    roots: BTreeSet<PathBuf>,
}

/// The run's end of the connection to its helper.
pub(crate) struct Helper(UnixStream);

impl Profile {
    /// The paths that rules keep from the run, that do not exist or are empty, and that it could make.
    fn absent(&self) -> BTreeMap<PathBuf, bool> {
        let is_absent = |path: &Path| fs::symlink_metadata(path).map_or(true, |found| is_empty(path, &found));
        let is_inside = |path: &Path| self.write.iter().any(|root| path.starts_with(root) && root.exists());
        let kept = self.kept.iter().filter(|(path, keep)| keep.is_ruled && is_inside(path) && is_absent(path));
        kept.map(|(path, keep)| (path.clone(), keep.is_folder)).collect()
    }
}

impl Helper {
    /// Starts `this` program as a helper, if a run under the profile needs one: it has to call [`help`].
    pub(crate) fn start(profile: &Profile, mut this: Command) -> Result<Option<Self>, Error> {
        let failed = || Error::of("the helper");
        let places = profile.absent();
        let hosts = match &profile.network {
            Network::Hosts(hosts) => hosts.clone(),
            _ if places.is_empty() => return Ok(None),
            _ => BTreeSet::new(),
        };
        let (ours, theirs) = UnixStream::pair().map_err(failed())?;
        // It starts the helper proper and ends, so that the run has no child that it does not know.
        let started = this.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).status().map_err(failed())?;
        if !started.success() {
            return Err(failed()(io::Error::other(started.to_string())));
        }
        let run = i32::try_from(std::process::id()).unwrap_or_default();
        let job = Job { run, hosts, places, roots: profile.write.clone() };
        let text = serde_json::to_vec(&job).map_err(|error| Error::Profile(error.to_string()))?;
        let mut helper = Self(ours);
        helper.0.set_read_timeout(Some(PATIENCE)).map_err(failed())?;
        tell(&mut helper.0, &text).map_err(failed())?;
        helper.heed()?;
        Ok(Some(helper))
    }

    /// Says that the run is in its namespaces, and passes the listener of the proxy.
    pub(crate) fn ready(&mut self, listener: Option<&TcpListener>) -> Result<(), Error> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let given = listener.map(|listener| [listener.as_fd()]);
        if let Some(given) = &given
            && !control.push(SendAncillaryMessage::ScmRights(given))
        {
            return Err(Error::of("the helper")(io::Error::other("a message is too small")));
        }
        let sent = sendmsg(&self.0, &[IoSlice::new(&[0])], &mut control, SendFlags::empty());
        sent.map_err(|error| Error::of("the helper")(error.into()))?;
        self.heed()
    }

    /// Waits for the helper's answer, which is empty unless something failed.
    fn heed(&mut self) -> Result<(), Error> {
        let answer = heard(&mut self.0).map_err(Error::of("the helper"))?;
        if answer.is_empty() { Ok(()) } else { Err(Error::Profile(String::from_utf8_lossy(&answer).into_owned())) }
    }
}

/// Does the work of a helper, whose standard input is its connection to the run. `again` starts this program once more,
/// as the helper proper; without it, this process is that one. `hint` ends the line on standard error that tells of a
/// refused host. Returns, after the run has ended, the hosts that it was refused.
///
/// # Errors
///
/// [`Error`] if the run cannot be helped. It does not start then.
pub fn help(again: Option<Command>, hint: &str) -> Result<Vec<String>, Error> {
    let failed = || Error::of("the helper");
    if let Some(mut again) = again {
        again.process_group(0).spawn().map_err(failed())?;
        return Ok(Vec::new());
    }
    let input = rustix::stdio::stdin().try_clone_to_owned().map_err(failed())?;
    let mut stream = UnixStream::from(input);
    let job: Job =
        heard(&mut stream).and_then(|text| serde_json::from_slice(&text).map_err(io::Error::other)).map_err(failed())?;
    let run = Pid::from_raw(job.run).ok_or_else(|| failed()(io::Error::other("there is no run")))?;
    let handle = pidfd_open(run, PidfdFlags::empty()).map_err(|error| failed()(error.into()))?;
    let mut held = Held::default();
    let answer = held.hold(&job).err().unwrap_or_default();
    tell(&mut stream, answer.as_bytes()).map_err(failed())?;
    if !answer.is_empty() {
        return Ok(Vec::new());
    }
    let listener = received(&stream).map_err(failed())?;
    let namespace = fs::read_link(format!("/proc/{}/ns/user", job.run)).map_err(failed())?;
    // INVARIANT: the namespace is the run's own, because every process of it is ended later.
    if fs::read_link("/proc/self/ns/user").map_err(failed())? == namespace {
        tell(&mut stream, b"the run is not in a namespace of its own").map_err(failed())?;
        return Ok(Vec::new());
    }
    let proxy = listener.map(|listener| Proxy::start(listener, job.hosts, hint.to_owned()));
    tell(&mut stream, &[]).map_err(failed())?;
    drop(stream);
    let mut ended = [PollFd::new(&handle, PollFlags::IN)];
    while poll(&mut ended, None).map_err(|error| failed()(error.into()))? == 0 {}
    if !held.places.is_empty() {
        end_all(&namespace);
    }
    drop(held);
    Ok(proxy.map(|proxy| proxy.refused()).unwrap_or_default())
}

/// Ends the processes of a user namespace: what a run left behind no longer meets the places that were held.
fn end_all(namespace: &Path) {
    for _ in 0..MOST_ROUNDS {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        // One that has ended, and that its parent has not waited for yet, has no program any more.
        let link = |pid: &i32, name: &str| fs::read_link(format!("/proc/{pid}/{name}"));
        let is_left =
            |pid: &i32| link(pid, "ns/user").is_ok_and(|found| found == namespace) && link(pid, "exe").is_ok();
        let left: Vec<i32> = pids.filter(is_left).collect();
        if left.is_empty() {
            return;
        }
        for pid in left.into_iter().filter_map(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns whether a link is on the way from a folder to a path in it.
pub(crate) fn has_link(root: &Path, path: &Path) -> bool {
    let is_link = |part: &Path| fs::symlink_metadata(part).is_ok_and(|found| found.is_symlink());
    path.ancestors().take_while(|part| *part != root).any(is_link)
}

/// The message about a denied path that a link is on the way to.
pub(crate) fn linked(path: &Path) -> String {
    format!("a rule denies {}, which is reached through a link", path.display())
}

/// Empty files and folders that hold places during a run. The last run that needs one removes it.
#[derive(Default)]
struct Held {
    places: Vec<Place>,
}

struct Place {
    path: PathBuf,
    /// Locked while a run needs the place.
    file: File,
    /// Whether this helper made it.
    is_ours: bool,
}

impl Held {
    /// Makes what is missing on the way to each place, and the place.
    fn hold(&mut self, job: &Job) -> Result<(), String> {
        for (path, is_folder) in &job.places {
            let missing: Vec<&Path> = path.ancestors().take_while(|path| fs::symlink_metadata(path).is_err()).collect();
            let is_there = missing.is_empty();
            let around = missing.last().and_then(|first| first.parent()).unwrap_or(path);
            let root =
                job.roots.iter().filter(|root| path.starts_with(root)).max_by_key(|root| root.components().count());
            if root.is_none_or(|root| has_link(root, around)) {
                return Err(linked(path));
            }
            for folder in missing.into_iter().rev() {
                let made = if folder == path && !is_folder {
                    File::create_new(folder).map(drop)
                } else {
                    fs::create_dir(folder)
                };
                if let Err(error) = made
                    && error.kind() != io::ErrorKind::AlreadyExists
                {
                    return Err(format!("{}: {error}", folder.display()));
                }
                self.lock(folder, true)?;
            }
            if is_there {
                self.lock(path, false)?; // another run may hold it
            }
        }
        Ok(())
    }

    fn lock(&mut self, path: &Path, is_ours: bool) -> Result<(), String> {
        let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        flock(&file, FlockOperation::LockShared).map_err(|error| error.to_string())?;
        self.places.push(Place { path: path.to_owned(), file, is_ours });
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for Place { path, file, is_ours } in self.places.drain(..).rev() {
            let is_last = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
            if is_ours && is_last && file.metadata().is_ok_and(|found| is_empty(&path, &found)) {
                let _ = fs::remove_dir(&path).or_else(|_| fs::remove_file(&path));
            }
        }
    }
}

/// Returns whether a file or folder is empty.
fn is_empty(path: &Path, found: &fs::Metadata) -> bool {
    if found.is_dir() {
        return fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    }
    found.is_file() && found.len() == 0
}

fn tell(stream: &mut UnixStream, text: &[u8]) -> io::Result<()> {
    let length = u32::try_from(text.len()).map_err(io::Error::other)?;
    stream.write_all(&length.to_ne_bytes())?;
    stream.write_all(text)
}

fn heard(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut text = Vec::new();
    stream.take(u64::from(u32::from_ne_bytes(length))).read_to_end(&mut text)?;
    Ok(text)
}

/// The listener that the run passes, if it needs a proxy.
fn received(stream: &UnixStream) -> io::Result<Option<TcpListener>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let received = recvmsg(stream, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes == 0 {
        return Err(io::Error::other("the run ended"));
    }
    let mut messages = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok(messages.next().map(TcpListener::from))
}

/// Longest wait for the helper.
const PATIENCE: Duration = Duration::from_secs(10);
/// Number of rounds in which the processes of a run are ended.
const MOST_ROUNDS: usize = 500;
