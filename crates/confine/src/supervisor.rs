//! Runs that reach hosts, or from which a path is kept that does not exist yet.
//!
//! This process stays as it is: it connects for the run, removes the places that were held, and ends as the run ends.
//! It starts itself once more; [`supervised`] is what that child does, which gets its profile over a socket and gives
//! back one that listens on its own loopback.

use std::ffi::OsString;
use std::fs;
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::enter::{namespaces, raise_loopback};
use crate::proxy::Proxy;
use crate::{Error, Network, Profile};

/// The end of a supervised run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ended {
    /// The status of the program.
    pub status: ExitStatus,
    /// The hosts that it was refused.
    pub refused: Vec<String>,
}

impl Ended {
    /// Ends this process as the program ended: with its exit code, or by its signal.
    pub fn exit(&self) -> ! {
        if let Some(signal) = self.status.signal() {
            let _ = signal_hook::low_level::emulate_default_handler(signal);
            std::process::exit(128 + signal);
        }
        std::process::exit(self.status.code().unwrap_or(1))
    }
}

impl Profile {
    /// Returns whether [`supervise`] has to run a program under this profile, because [`Profile::exec`] cannot.
    pub fn needs_supervisor(&self) -> bool {
        matches!(self.network, Network::Hosts(_)) || self.absent().next().is_some()
    }

    /// The paths that are kept from the run and do not exist.
    fn absent(&self) -> impl Iterator<Item = &PathBuf> {
        let kept = self.locked.iter().chain(&self.hidden);
        kept.filter(|path| self.write.iter().any(|root| path.starts_with(root) && root.exists()))
            .filter(|path| fs::symlink_metadata(path).is_err())
    }

    /// Makes an empty folder in each place that has to stay empty. Returns those that were made, the innermost first.
    fn hold_places(&self) -> Result<Vec<PathBuf>, Error> {
        let mut made = Vec::new();
        for path in self.absent() {
            let missing: Vec<&Path> = path.ancestors().take_while(|path| fs::symlink_metadata(path).is_err()).collect();
            for folder in missing.into_iter().rev() {
                fs::create_dir(folder).map_err(Error::of(folder.display().to_string()))?;
                made.push(folder.to_owned());
            }
        }
        made.reverse();
        Ok(made)
    }
}

/// Runs a program under a profile. `this` starts this program again, so that it calls [`supervised`]; `hint` ends the
/// line on standard error that tells of a refused host.
///
/// # Errors
///
/// [`Error`] if a step of the restriction failed. Then the program was not started.
pub fn supervise(profile: &Profile, mut this: Command, hint: &str) -> Result<Ended, Error> {
    profile.make_temp()?;
    let held = Held(profile.hold_places()?);
    let path = profile.temp.join(format!(".rulekeep-{}", std::process::id()));
    let _ = fs::remove_file(&path);
    let listener = UnixListener::bind(&path).map_err(Error::of(path.display().to_string()))?;
    // Only counted: the terminal sends them to the run as well.
    let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT]).map_err(Error::of("signals"))?;
    let child = this.env(SOCKET, &path).spawn().map_err(Error::of("this program"));
    let stream = child.and_then(|mut child| match admit(&listener, &mut child) {
        Ok(stream) => Ok((child, stream)),
        Err(error) => {
            let _ = child.kill();
            Err(error)
        }
    });
    let _ = fs::remove_file(&path);
    let (mut child, mut stream) = stream?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let passing = signals.handle();
    let passed = thread::spawn(move || {
        for signal in &mut signals {
            let passed = match signal {
                SIGTERM => Signal::TERM,
                SIGHUP => Signal::HUP,
                _ => continue,
            };
            let _ = pid.map(|pid| kill_process(pid, passed));
        }
    });
    let sent = serde_json::to_vec(profile).map_err(|error| Error::Profile(error.to_string()));
    let told = sent.and_then(|text| tell(&mut stream, &text).map_err(Error::of("the profile")));
    let proxy = told.and_then(|()| match &profile.network {
        Network::Hosts(hosts) => {
            let listener = received(&stream).map_err(Error::of("the run's listener"))?;
            Ok(Some(Proxy::start(listener, hosts.clone(), hint.to_owned())))
        }
        _ => Ok(None),
    });
    let proxy = match proxy {
        Ok(proxy) => proxy,
        // The child says on standard error which step failed.
        Err(error) => {
            let status = child.wait().map_err(Error::of("the run"))?;
            return if status.success() { Err(error) } else { Ok(Ended { status, refused: Vec::new() }) };
        }
    };
    let status = child.wait().map_err(Error::of("the run"))?;
    passing.close();
    let _ = passed.join();
    drop(held);
    Ok(Ended { status, refused: proxy.map(|proxy| proxy.refused()).unwrap_or_default() })
}

/// Does the part of the child of [`supervise`]: restricts this process and executes `command`; `None` in any other
/// process. Otherwise it returns only if that fails.
pub fn supervised(command: &[OsString], secrets: &[&str]) -> Option<Error> {
    let path = std::env::var_os(SOCKET)?;
    Some(confined(Path::new(&path), command, secrets).err().unwrap_or_else(|| Error::Profile("nothing ran".to_owned())))
}

fn confined(path: &Path, command: &[OsString], secrets: &[&str]) -> Result<(), Error> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| Error::of("its supervisor")(error.into()))?;
    let mut stream = UnixStream::connect(path).map_err(Error::of("its supervisor"))?;
    let profile: Profile = heard(&mut stream)
        .and_then(|text| serde_json::from_slice(&text).map_err(io::Error::other))
        .map_err(Error::of("the profile"))?;
    namespaces(profile.network != Network::Any)?;
    let mut proxy = None;
    if profile.network != Network::Any {
        raise_loopback().map_err(Error::of("a loopback of its own"))?;
    }
    if let Network::Hosts(_) = profile.network {
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(Error::of("a listener"))?;
        proxy = Some(listener.local_addr().map_err(Error::of("a listener"))?.port());
        give(&stream, &listener).map_err(Error::of("a listener"))?;
    }
    drop(stream);
    profile.restrict()?;
    Err(profile.start(command, &[secrets, &[SOCKET]].concat(), proxy))
}

/// Accepts the child's connection; an error if it ends before.
fn admit(listener: &UnixListener, child: &mut Child) -> Result<UnixStream, Error> {
    let failed = || Error::of("the run did not begin");
    listener.set_nonblocking(true).map_err(failed())?;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).map_err(failed())?;
                return Ok(stream);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(failed()(error)),
        }
        if let Some(status) = child.try_wait().map_err(failed())? {
            return Err(failed()(io::Error::other(status.to_string())));
        }
        thread::sleep(Duration::from_micros(200));
    }
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

/// Passes a listener over a socket.
fn give(stream: &UnixStream, listener: &TcpListener) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let given = [listener.as_fd()];
    if !control.push(SendAncillaryMessage::ScmRights(&given)) {
        return Err(io::Error::other("a message is too small"));
    }
    sendmsg(stream, &[IoSlice::new(&[0])], &mut control, SendFlags::empty())?;
    Ok(())
}

fn received(stream: &UnixStream) -> io::Result<TcpListener> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(stream, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut messages = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    messages.next().map(TcpListener::from).ok_or_else(|| io::Error::other("the run gave none"))
}

/// Folders that hold a place during a run; removed after it if they are empty.
struct Held(Vec<PathBuf>);

impl Drop for Held {
    fn drop(&mut self) {
        for folder in &self.0 {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// The variable with the path of the supervisor's socket.
const SOCKET: &str = "RULEKEEP_SUPERVISOR";
