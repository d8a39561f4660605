//! The file system that a run sees: a root of its own, in which only the paths of its profile exist.
//!
//! Landlock decides what may be read and written. The view keeps what Landlock does not restrict from the run: sockets
//! of other programs, names and sizes of files, and paths that are denied within permitted ones.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::pivot_root;
use rulekeep_types::without_dots;
use rustix::fs::{StatVfsMountFlags, statvfs};

use crate::helper::{has_link, linked};
use crate::{Error, Profile};

/// Replaces the root of this process, which is in a mount namespace of its own, by the view of a profile.
pub(crate) fn make(profile: &Profile) -> Result<(), Error> {
    let failed = |what: &'static str| move |error: nix::Error| Error::of(what)(error.into());
    let plan = Plan::of(profile)?;
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).map_err(failed("private mounts"))?;
    // The old root is reached under OLD, also what `/tmp` covers there.
    let held = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), "/tmp", Some("tmpfs"), held, Some("mode=755")).map_err(failed("a root of its own"))?;
    for folder in ["/tmp/old", "/tmp/new"] {
        fs::create_dir(folder).map_err(Error::of(folder))?;
    }
    pivot_root("/tmp", "/tmp/old").map_err(failed("the first change of the root"))?;
    std::env::set_current_dir("/").map_err(Error::of("the root"))?;
    mount(Some("tmpfs"), NEW, Some("tmpfs"), held, Some("mode=755")).map_err(failed("a root of its own"))?;
    fill(profile, &plan)?;
    std::env::set_current_dir(NEW).map_err(Error::of(NEW))?;
    pivot_root(".", ".").map_err(failed("the second change of the root"))?;
    umount2(".", MntFlags::MNT_DETACH).map_err(failed("the old root"))?;
    std::env::set_current_dir(&profile.folder).map_err(Error::of(profile.folder.display().to_string()))
}

/// Makes the paths of a profile visible below [`NEW`].
fn fill(profile: &Profile, plan: &Plan) -> Result<(), Error> {
    fs::create_dir_all(Path::new(EMPTY).join("folder")).map_err(Error::of("an empty folder"))?;
    fs::write(Path::new(EMPTY).join("file"), "").map_err(Error::of("an empty file"))?;
    for path in &plan.seen {
        place(path, 0).map_err(Error::of(path.display().to_string()))?;
    }
    devices().map_err(Error::of("/dev"))?;
    temp(profile).map_err(Error::of(profile.temp.display().to_string()))?;
    lock_the_rest(plan).map_err(Error::of("paths that are only read"))?;
    for folder in &plan.around {
        bind(&below(NEW, folder), &below(NEW, folder)).map_err(Error::of(folder.display().to_string()))?;
    }
    for (path, is_readable) in &plan.kept {
        withhold(path, *is_readable).map_err(Error::of(path.display().to_string()))?;
    }
    Ok(())
}

/// Makes all mounts read-only but those of paths that may be written: Landlock does not govern rights, owners and times.
fn lock_the_rest(plan: &Plan) -> io::Result<()> {
    let mounts = fs::read_to_string(below(OLD, Path::new("/proc/self/mountinfo")))?;
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    for place in places.map(unescaped) {
        let Ok(path) = place.strip_prefix(NEW).map(|path| Path::new("/").join(path)) else { continue };
        // The innermost path of the profile decides.
        let depth = |roots: &[PathBuf]| {
            roots.iter().filter(|root| path.starts_with(root)).map(|root| root.components().count()).max()
        };
        if path.parent().is_some() && depth(&plan.written).is_none_or(|written| depth(&plan.read) > Some(written)) {
            match read_only(&place) {
                // Another mount covers it, so that the run does not see it.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
                done => done?,
            }
        }
    }
    Ok(())
}

/// A path of `mountinfo`, in which spaces and the like are octal.
fn unescaped(text: &str) -> PathBuf {
    let mut parts = text.split('\\');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.split_at_checked(3).unwrap_or((part, ""));
        bytes.extend(u8::from_str_radix(code, 8).ok());
        bytes.extend(rest.as_bytes());
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

/// Makes a path visible, with the links on the way to it. A path that does not exist is left out.
fn place(path: &Path, depth: usize) -> io::Result<()> {
    let mut at = PathBuf::from("/");
    let mut rest = path.components();
    while let Some(part) = rest.next() {
        if part == Component::RootDir {
            continue;
        }
        let next = at.join(part);
        let Ok(found) = fs::symlink_metadata(below(OLD, &next)) else { return Ok(()) };
        let seen = below(NEW, &next);
        let is_new = fs::symlink_metadata(&seen).is_err();
        if found.is_symlink() {
            let link = fs::read_link(below(OLD, &next))?;
            if is_new {
                symlink(&link, &seen)?;
            }
            if depth > MOST_LINKS {
                return Err(io::Error::other("too many links"));
            }
            return place(&without_dots(&at.join(link).join(rest.as_path())), depth + 1);
        }
        if is_new && found.is_dir() {
            fs::create_dir(&seen)?;
        } else if is_new {
            fs::write(&seen, "")?;
        }
        at = next;
    }
    if at.parent().is_none() {
        return Err(io::Error::other("a profile cannot contain the root"));
    }
    bind(&below(OLD, &at), &below(NEW, &at))
}

/// The links and folders of `/dev` that programs expect.
fn devices() -> io::Result<()> {
    let dev = below(NEW, Path::new("/dev"));
    fs::create_dir_all(&dev)?;
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        symlink(target, dev.join(name))?;
    }
    symlink("pts/ptmx", dev.join("ptmx"))?;
    fs::create_dir(dev.join("shm"))?;
    fs::create_dir(dev.join("pts"))?;
    let none = None::<&str>;
    let held = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(none, &dev.join("shm"), Some("tmpfs"), held, Some("mode=1777"))?;
    // Terminals of its own: those of others are theirs.
    let held = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    Ok(mount(none, &dev.join("pts"), Some("devpts"), held, Some("newinstance,ptmxmode=0666,mode=620"))?)
}

/// The run's own folder in the places for temporary files. What the request names there stays what it is.
fn temp(profile: &Profile) -> io::Result<()> {
    for place in ["/tmp", "/var/tmp"] {
        let target = below(NEW, Path::new(place));
        fs::create_dir_all(&target)?;
        // Folders of the profile that are themselves below /tmp stay visible.
        let inner: Vec<&PathBuf> = profile.read.union(&profile.write).filter(|path| path.starts_with(place)).collect();
        let existing: Vec<&PathBuf> = inner.into_iter().filter(|path| below(OLD, path).exists()).collect();
        bind(&below(OLD, &profile.temp), &target)?;
        for path in existing {
            let seen = below(NEW, path);
            // The run can have made links there.
            if has_link(&target, &seen) {
                return Err(io::Error::other("a link is in the way"));
            }
            if below(OLD, path).is_dir() {
                fs::create_dir_all(&seen)?;
            } else if let Some(folder) = seen.parent() {
                fs::create_dir_all(folder)?;
                fs::OpenOptions::new().create(true).append(true).open(&seen)?;
            }
            bind(&below(OLD, path), &seen)?;
        }
    }
    Ok(())
}

/// Makes a visible path read-only, or covers it with an empty file or folder.
fn withhold(path: &Path, is_readable: bool) -> io::Result<()> {
    let seen = below(NEW, path);
    let Ok(found) = fs::symlink_metadata(&seen) else { return Ok(()) };
    if is_readable {
        bind(&seen, &seen)?;
    } else {
        bind(&Path::new(EMPTY).join(if found.is_dir() { "folder" } else { "file" }), &seen)?;
    }
    read_only(&seen)
}

/// The mounts of a view, planned while the paths are still those of the machine.
struct Plan {
    /// The paths to make visible. A folder comes before what is in it, which is left out if it is as writable.
    seen: Vec<PathBuf>,
    /// The places in which something is written, without links.
    written: Vec<PathBuf>,
    /// The paths that are only read, without links.
    read: Vec<PathBuf>,
    /// The folders around paths that are kept from the run, the outermost first. They become mounts, so that none of
    /// them can be renamed to make room for another one.
    around: Vec<PathBuf>,
    /// The paths that are kept from the run, without links, and whether they are readable.
    kept: Vec<(PathBuf, bool)>,
}

impl Plan {
    fn of(profile: &Profile) -> Result<Self, Error> {
        let written = || profile.write.iter().chain(&profile.devices);
        let mut all: Vec<(&PathBuf, bool)> = profile.read.iter().map(|path| (path, false)).collect();
        all.extend(written().map(|path| (path, true)));
        all.sort_by_key(|(path, is_written)| (path.components().count(), !is_written));
        let mut seen: Vec<(&PathBuf, bool)> = Vec::new();
        for (path, is_written) in all {
            if !seen.iter().any(|(root, covers)| path.starts_with(root) && (*covers || !is_written)) {
                seen.push((path, is_written));
            }
        }
        let real = |path: &PathBuf| fs::canonicalize(path).ok();
        let roots: Vec<PathBuf> = profile.write.iter().filter_map(real).collect();
        let (mut kept, mut around) = (Vec::new(), BTreeSet::new());
        for (path, keep) in &profile.kept {
            let root =
                profile.write.iter().filter(|root| path.starts_with(root)).max_by_key(|root| root.components().count());
            if keep.is_ruled && root.is_some_and(|root| has_link(root, path)) {
                return Err(Error::Profile(linked(path)));
            }
            let Some(path) = real(path) else { continue };
            let is_inside = |folder: &&Path| roots.iter().any(|root| folder != root && folder.starts_with(root));
            let folders = path.ancestors().skip(1).filter(is_inside);
            around.extend(folders.map(|folder| (folder.components().count(), folder.to_owned())));
            kept.push((path, keep.is_readable));
        }
        // A folder is covered before what is in it, which is then not there.
        kept.sort_by_key(|(path, _)| path.components().count());
        let own = ["/tmp", "/var/tmp", "/dev/shm", "/dev/pts"].map(PathBuf::from);
        Ok(Self {
            seen: seen.into_iter().map(|(path, _)| path.clone()).collect(),
            written: written().filter_map(real).chain(own).collect(),
            read: profile.read.iter().filter_map(real).collect(),
            around: around.into_iter().map(|(_, folder)| folder).collect(),
            kept,
        })
    }
}

fn below(root: &str, path: &Path) -> PathBuf {
    Path::new(root).join(path.strip_prefix("/").unwrap_or(path))
}

fn bind(source: &Path, target: &Path) -> io::Result<()> {
    let none = None::<&str>;
    Ok(mount(Some(source), target, none, MsFlags::MS_BIND | MsFlags::MS_REC, none)?)
}

/// Makes a mount read-only and keeps its other flags, which a user namespace may not drop.
fn read_only(path: &Path) -> io::Result<()> {
    let has = statvfs(path)?.f_flag;
    let mut flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
    for (kept, flag) in [
        (StatVfsMountFlags::NOSUID, MsFlags::MS_NOSUID),
        (StatVfsMountFlags::NODEV, MsFlags::MS_NODEV),
        (StatVfsMountFlags::NOEXEC, MsFlags::MS_NOEXEC),
        (StatVfsMountFlags::NOATIME, MsFlags::MS_NOATIME),
        (StatVfsMountFlags::NODIRATIME, MsFlags::MS_NODIRATIME),
        (StatVfsMountFlags::RELATIME, MsFlags::MS_RELATIME),
    ] {
        if has.contains(kept) {
            flags |= flag;
        }
    }
    let none = None::<&str>;
    Ok(mount(none, path, none, flags, none)?)
}

/// The old root, while the view is made.
const OLD: &str = "/old";
/// The root of the view, while it is made.
const NEW: &str = "/new";
/// A folder with an empty file and an empty folder, outside the view.
const EMPTY: &str = "/empty";
const MOST_LINKS: usize = 40;
