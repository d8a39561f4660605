//! Programs that try to leave a confined run, on the real kernel. Each runs; none may have an effect outside.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // a test fails where it cannot go on

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rulekeep_confine::{DeniedPath, Ground, Network, Profile};
use rulekeep_types::Constraints;
use rulekeep_types::facts::Facts;

/// A folder to work in, one beside it that must stay as it is, and a home with a secret.
struct Place {
    root: tempfile::TempDir,
    neighbor: Child,
}

const SECRET: &str = "the-secret-of-a-neighbor";

impl Place {
    /// `None`, with a line for people, if this system supports no confined runs.
    fn new() -> Option<Self> {
        // Not below /tmp, which a run sees as its own.
        let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for folder in ["work", "outside", "home/.ssh", "work/kept"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        for file in ["outside/data", "home/.ssh/id_ed25519", "home/.bashrc", "home/.gitconfig", "work/kept/.env"] {
            fs::write(root.path().join(file), SECRET).unwrap();
        }
        let tried = Command::new(confined()).arg("attempt").output().unwrap();
        if !tried.status.success() {
            let why = String::from_utf8_lossy(&tried.stderr).into_owned();
            assert!(std::env::var_os("RULEKEEP_REQUIRE_CONFINE").is_none(), "{why}");
            println!("SKIPPED: {why}");
            return None;
        }
        let neighbor = Command::new("sleep").arg("600").env("HELD", SECRET).spawn().unwrap();
        Some(Self { root, neighbor })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn profile(&self, denied: &[DeniedPath]) -> Profile {
        let constraints: Constraints = serde_json::from_str(r#"{ "confine": ["workspace"] }"#).unwrap();
        let (folder, home, temp) = (self.path("work"), self.path("home"), self.path("temp"));
        let ground = Ground { folder: &folder, home: Some(&home), areas: &[], temp: &temp, denied };
        Profile::of(&constraints, &Facts::default(), &ground).unwrap().unwrap()
    }

    fn run(&self, profile: &Profile, script: &str) -> Output {
        self.run_in("work", profile, script)
    }

    fn run_in(&self, folder: &str, profile: &Profile, script: &str) -> Output {
        let file = self.path("profile.json");
        fs::write(&file, serde_json::to_vec(profile).unwrap()).unwrap();
        let mut command = Command::new(confined());
        command.arg(file).args(["sh", "-c", script]).current_dir(self.path(folder)).stdin(Stdio::null());
        command.env("OUT", self.path("outside")).env("HOME", self.path("home"));
        command.env("NEIGHBOR", self.neighbor.id().to_string());
        command.output().unwrap()
    }

    /// All files outside the work, with their contents and kinds.
    fn outside(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut left = vec![self.path("outside"), self.path("home")];
        while let Some(path) = left.pop() {
            let kind = fs::symlink_metadata(&path).unwrap();
            let mut content = format!("{:?} ", kind.permissions()).into_bytes();
            if kind.is_dir() {
                left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else if kind.is_file() {
                content.extend(fs::read(&path).unwrap());
            }
            found.insert(path, content);
        }
        found
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.neighbor.kill();
        let _ = self.neighbor.wait();
    }
}

/// The example that confines.
fn confined() -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("examples/confined")
}

/// Python code that calls the kernel directly.
fn python(code: &str) -> String {
    let head = "import ctypes, os, socket, sys; libc = ctypes.CDLL(None, use_errno=True)";
    format!("python3 -c '{head}\n{code}'")
}

/// Of each escape: its name and a script. `$OUT` is the folder outside, `$NEIGHBOR` a process of the same user.
fn escapes() -> Vec<(&'static str, String)> {
    let shell = [
        ("write outside", "echo a > $OUT/new; echo a >> $OUT/data; : > $HOME/.bashrc; echo a >> $HOME/.gitconfig"),
        ("write outside from a script", "printf 'echo a > $OUT/new' > run.sh; chmod +x run.sh; ./run.sh; sh run.sh"),
        ("remove outside", "rm -rf $OUT; rm -f $HOME/.bashrc"),
        ("change rights and times outside", "chmod 777 $OUT $OUT/data; touch -d 2001-01-01 $OUT/data"),
        ("read the home", "cat $HOME/.ssh/id_ed25519 $OUT/data > leak"),
        ("read through a link", "ln -s $OUT link; cat link/data > leak; echo a > link/new"),
        ("hard link out and in", "ln $OUT/data leak; ln run.sh $OUT/new; cat leak"),
        ("rename across", "mv $OUT/data leak; mkdir made; mv made $OUT/new"),
        ("rename the folder itself", "cd ..; mv work moved; mkdir work; echo a > beside"),
        ("climb with ..", "cat ../outside/data > leak; echo a > ../outside/new"),
        ("the root of a neighbor", "cat /proc/$NEIGHBOR/root$OUT/data > leak; echo a > /proc/$NEIGHBOR/root$OUT/new"),
        ("the folder of a neighbor", "cat /proc/$NEIGHBOR/cwd/Cargo.toml > copied && cp /proc/$NEIGHBOR/environ leak"),
        ("the environment of a neighbor", "tr '\\0' '\\n' < /proc/$NEIGHBOR/environ > leak"),
        ("the root of the first process", "cat /proc/1/root$OUT/data > leak; echo a > /proc/1/root$OUT/new"),
        ("signals", "kill -9 $NEIGHBOR; kill -TERM -1"),
        ("a namespace", "unshare -r sh -c 'mount -t tmpfs none $OUT; echo a > $OUT/new'; unshare -m true"),
        ("a mount", "mount -t tmpfs none /usr; mount --bind /usr kept; umount /proc"),
        ("another root", "chroot / sh -c 'cat $OUT/data' > leak"),
        (
            "a grandchild after its parents",
            "(setsid sh -c 'sleep 0.3; cat $OUT/data > leak; echo a > $OUT/new' &) ; sleep 0.6",
        ),
        ("devices", "mknod disk b 254 0; cat /dev/vda disk > leak; cat /dev/mem; ls /dev/sd* /dev/vd* /dev/nvme*"),
        ("settings of the kernel", "echo a > /proc/sys/kernel/core_pattern; echo 1 > /proc/sys/vm/drop_caches"),
        ("oom score of a neighbor", "echo 1000 > /proc/$NEIGHBOR/oom_score_adj"),
        ("other temporary files", "ls -A /tmp | grep -v rulekeep > listed; cat /tmp/*/data > leak"),
        (
            "copy what runs unasked",
            "cp run.sh $HOME/.profile; mkdir -p $HOME/.config/autostart; echo a > $HOME/.config/autostart/a",
        ),
        (
            "a schedule",
            "echo '* * * * * true' | crontab -; echo true | at now; systemd-run --user true; systemctl --user list-units",
        ),
        ("services of the machine", "ls /run /var/run; docker ps; curl --unix-socket /var/run/docker.sock http://a/"),
        (
            "a set-user-ID program",
            "su -c 'echo a > $OUT/new' < /dev/null; sudo -n sh -c 'echo a > $OUT/new'; ping -c1 127.0.0.1",
        ),
        ("rights and times of what is read", "chmod 4777 $HOME/.gitconfig; touch -d 2001-01-01 $HOME/.gitconfig"),
        (
            "another terminal",
            "for t in /dev/pts/*; do echo a > $t; done; ls /dev/pts | grep -v ptmx > listed; test ! -s listed || cp $OUT/data leak",
        ),
        ("password hashes", "cat /etc/shadow /etc/sudoers > hashes; test ! -s hashes || cp hashes leak"),
    ];
    let mut all: Vec<(&str, String)> = shell.map(|(name, script)| (name, script.to_owned())).to_vec();
    let calls = [
        ("ptrace of a neighbor", "print(libc.ptrace(16, int(os.environ[\"NEIGHBOR\"]), 0, 0), ctypes.get_errno())"),
        (
            "memory of a neighbor",
            "n = os.environ[\"NEIGHBOR\"]\nfor name in (\"mem\", \"maps\", \"syscall\"):\n  try: open(\"leak\", \"wb\").write(open(f\"/proc/{n}/{name}\", \"rb\").read(99) + b\"the-secret-of-a-neighbor\")\n  except OSError as e: print(e)",
        ),
        (
            "process_vm_readv",
            "print(libc.syscall(310, int(os.environ[\"NEIGHBOR\"]), 0, 0, 0, 0, 0), ctypes.get_errno())",
        ),
        (
            "limits of a neighbor",
            "import resource\nn = int(os.environ[\"NEIGHBOR\"])\nfor call in (lambda: resource.prlimit(n, resource.RLIMIT_CPU, (0, 0)), lambda: os.setpriority(0, n, 19)):\n  try: call(); open(\"leak\", \"w\").write(\"the-secret-of-a-neighbor\")\n  except OSError as e: print(e)",
        ),
        (
            "inherited descriptors",
            "for fd in range(3, 256):\n  try: os.write(fd, b\"a\"); open(\"leak\", \"w\").write(\"the-secret-of-a-neighbor\")\n  except OSError: pass",
        ),
        (
            "io_uring",
            "r = libc.syscall(425, 8, ctypes.create_string_buffer(256))\nif r >= 0: open(\"leak\", \"w\").write(\"the-secret-of-a-neighbor\")",
        ),
        (
            "a 32-bit system call",
            "import mmap\nm = mmap.mmap(-1, 4096, prot=7)\nm.write(bytes.fromhex(\"b827000000cd80c3\"))\nctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()\nopen(\"leak\", \"w\").write(\"the-secret-of-a-neighbor\")",
        ),
        (
            "an x32 system call",
            "r = libc.syscall(0x40000000 + 425, 8, ctypes.create_string_buffer(256))\nif r >= 0: open(\"leak\", \"w\").write(\"the-secret-of-a-neighbor\")",
        ),
        (
            "execution from memory",
            "fd = os.memfd_create(\"a\")\nos.write(fd, open(\"/bin/sh\", \"rb\").read())\nos.execv(f\"/proc/self/fd/{fd}\", [\"sh\", \"-c\", \"cat $OUT/data > leak; echo a > $OUT/new\"])",
        ),
        ("a handle of a file", "print(libc.syscall(304, -100, 0, 0), ctypes.get_errno())"),
        (
            "TCP",
            "for a in ((\"127.0.0.1\", int(os.environ[\"TCP\"])), (\"10.0.0.1\", 80), (\"1.1.1.1\", 443)):\n  try: socket.create_connection(a, 1).send(b\"a\"); open(\"leak\", \"w\").write(\"the-secret-of-a-neighbor\")\n  except OSError as e: print(e)",
        ),
        (
            "UDP",
            "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nfor a in ((\"127.0.0.1\", int(os.environ[\"UDP\"])), (\"1.1.1.1\", 53), (\"255.255.255.255\", 9)):\n  try: s.sendto(b\"a\", a)\n  except OSError as e: print(e)",
        ),
        (
            "a name server",
            "try: socket.getaddrinfo(\"example.com\", 443); open(\"leak\", \"w\").write(\"the-secret-of-a-neighbor\")\nexcept OSError as e: print(e)",
        ),
        (
            "raw, packet and vsock sockets",
            "for f, k in ((2, 3), (17, 3), (40, 1), (38, 5)):\n  try: socket.socket(f, k); open(\"leak\", \"w\").write(\"the-secret-of-a-neighbor\")\n  except OSError as e: print(e)",
        ),
        (
            "a socket by its path",
            "s = socket.socket(socket.AF_UNIX)\ntry: s.connect(os.environ[\"OUT\"] + \"/socket\"); s.send(b\"a\")\nexcept OSError as e: print(e)",
        ),
        (
            "an abstract socket",
            "s = socket.socket(socket.AF_UNIX)\ntry: s.connect(\"\\0\" + os.environ[\"ABSTRACT\"]); s.send(b\"a\")\nexcept OSError as e: print(e)",
        ),
        (
            "keys of the session",
            "r = libc.syscall(250, 0, -3, 1)\nif r >= 0: open(\"leak\", \"w\").write(\"the-secret-of-a-neighbor\")",
        ),
        (
            "input for the terminal",
            "import fcntl\ntry: fcntl.ioctl(os.open(\"/dev/tty\", os.O_RDWR), 0x5412, b\"a\"); open(\"leak\", \"w\").write(\"the-secret-of-a-neighbor\")\nexcept OSError as e: print(e)",
        ),
    ];
    all.extend(calls.map(|(name, code)| (name, python(code))));
    all
}

#[test]
fn no_escape_has_an_effect_outside() {
    let Some(place) = Place::new() else { return };
    let abstract_name = format!("rulekeep-{}", std::process::id());
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let unix = UnixListener::bind(place.path("outside/socket")).unwrap();
    let hidden = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&abstract_name).unwrap()).unwrap();
    tcp.set_nonblocking(true).unwrap();
    udp.set_nonblocking(true).unwrap();
    unix.set_nonblocking(true).unwrap();
    hidden.set_nonblocking(true).unwrap();
    place.run(&place.profile(&[]), "true"); // makes the caches of tools
    let before = place.outside();
    let ports = format!(
        "export TCP={} UDP={} ABSTRACT={abstract_name}; ",
        tcp.local_addr().unwrap().port(),
        udp.local_addr().unwrap().port()
    );
    let table = escapes();
    assert!(table.len() >= 40);
    for (name, script) in &table {
        fs::write(place.path("work/run.sh"), "true").unwrap();
        // It begins: a script that does not run escapes nothing.
        let output = place.run(&place.profile(&[]), &format!("{ports} touch began; {script}"));
        let said = format!("{name}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(fs::remove_file(place.path("work/began")).is_ok(), "{said}");
        assert_eq!(place.outside(), before, "{said}");
        assert!(!place.path("beside").exists() && !place.path("moved").exists(), "{said}");
        let leaked = fs::read_to_string(place.path("work/leak")).unwrap_or_default();
        assert!(!leaked.contains(SECRET), "{said}");
        assert!(tcp.accept().is_err() && unix.accept().is_err() && hidden.accept().is_err(), "{said}");
        assert!(udp.recv(&mut [0; 9]).is_err(), "{said}");
        assert!(
            fs::read_to_string(format!("/proc/{}/cmdline", place.neighbor.id())).unwrap().contains("sleep"),
            "{said}"
        );
        fs::remove_dir_all(place.path("work")).unwrap();
        fs::create_dir_all(place.path("work/kept")).unwrap();
    }
}

#[test]
fn the_escapes_work_without_confinement() {
    let Some(place) = Place::new() else { return };
    // The table must be able to fail: some of its scripts, run as they are.
    let mut with_effect = BTreeSet::new();
    for (name, script) in escapes() {
        if !["write outside", "read the home", "hard link out and in", "climb with .."].contains(&name) {
            continue;
        }
        let before = place.outside();
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(place.path("work"));
        command.env("OUT", place.path("outside")).env("HOME", place.path("home")).output().unwrap();
        let leaked = fs::read_to_string(place.path("work/leak")).unwrap_or_default();
        if place.outside() != before || leaked.contains(SECRET) {
            with_effect.insert(name);
        }
        let _ = fs::remove_file(place.path("work/leak"));
    }
    assert_eq!(with_effect.len(), 4, "{with_effect:?}");
}

#[test]
fn a_denied_path_is_kept_in_whatever_way_it_is_written() {
    let Some(place) = Place::new() else { return };
    let denied = [
        DeniedPath { pattern: ".github/*".to_owned(), is_readable: true },
        DeniedPath { pattern: "deep/er/kept/*".to_owned(), is_readable: true },
        DeniedPath { pattern: "*.env".to_owned(), is_readable: false },
    ];
    for exists in [true, false] {
        for (number, script) in [
            "mkdir -p .github; echo a > .github/a",
            "mkdir -p .github/workflows; cp run.sh .github/workflows/a.yml",
            "mv .github moved; mkdir .github; echo a > .github/a",
            "rm -rf .github; mkdir .github; echo a > .github/a",
            "mkdir x; echo a > x/a; mv -T x .github; cp -r x .github/",
            "ln -s x .github; mkdir x; ln -s $PWD/.github y; echo a > y/a",
            "echo a > f; ln f .github/a; ln -sf ../f .github/b",
            "mv deep d; mkdir -p deep/er/kept; echo a > deep/er/kept/a",
            "mv deep/er deep/e; mkdir -p deep/er/kept; echo a > deep/er/kept/a",
            "umount .github; mount --bind x .github; echo a > .github/a",
            "cd ..; mv work w; mkdir -p work/.github; echo a > work/.github/a",
            "python3 -c 'import os; os.makedirs(\".github\", exist_ok=True); open(\".github/a\", \"w\").write(\"a\")'",
            "tar -cf t.tar run.sh; tar -C .github -xf t.tar; dd if=run.sh of=.github/a; touch .github/a; git init -q; sed -i s/a/b/ .github/kept",
            "cat kept/.env > leak; mv kept/.env leak2; mv kept k; cat k/.env > leak3; ln kept/.env leak4",
        ]
        .iter()
        .enumerate()
        {
            let (work, said) = (place.path("work"), format!("{number} {exists}"));
            fs::remove_dir_all(&work).unwrap();
            fs::create_dir_all(work.join("kept")).unwrap();
            fs::write(work.join("run.sh"), "true").unwrap();
            fs::write(work.join("kept/.env"), SECRET).unwrap();
            if exists {
                for folder in [".github", "deep/er/kept"] {
                    fs::create_dir_all(work.join(folder)).unwrap();
                    fs::write(work.join(folder).join("kept"), "a").unwrap();
                }
            }
            let output = place.run(&place.profile(&denied), &format!("touch began; {script}"));
            let said = format!("{said}: {script}: {}", String::from_utf8_lossy(&output.stderr));
            assert!(work.join("began").exists(), "{said}");
            let files = |folder: &str| -> Vec<String> {
                let entries = fs::read_dir(work.join(folder)).into_iter().flatten();
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
            };
            let expected = if exists { vec!["kept".to_owned()] } else { Vec::new() };
            assert_eq!((files(".github"), files("deep/er/kept")), (expected.clone(), expected), "{said}");
            assert!(exists || !work.join(".github").exists(), "the place that was held is gone: {said}");
            assert_eq!(fs::read_to_string(work.join("kept/.env")).unwrap(), SECRET, "{said}");
            for leak in ["leak", "leak2", "leak3", "leak4"] {
                assert!(!fs::read_to_string(work.join(leak)).unwrap_or_default().contains(SECRET), "{said}");
            }
        }
    }
}

#[test]
fn a_run_is_what_it_is_without_confinement() {
    let Some(place) = Place::new() else { return };
    let supervised = [DeniedPath { pattern: "held".to_owned(), is_readable: true }];
    for denied in [&[][..], &supervised] {
        let profile = place.profile(denied);
        let run = |script: &str| place.run(&profile, script);
        assert_eq!(run("exit 7").status.code(), Some(7));
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&run("kill -TERM $$").status), Some(15));
        assert_eq!(run("printf out; printf err >&2").stdout, b"out");
        assert_eq!(run("printf out; printf err >&2").stderr, b"err");
        assert_eq!(run("pwd").stdout, format!("{}\n", place.path("work").display()).as_bytes());
        let loopback = python(
            "s = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen()\nsocket.create_connection(s.getsockname())\nprint(\"met\")",
        );
        assert_eq!(run(&loopback).stdout, b"met\n");
        let made = run(
            "set -e; mkdir -p a/b; echo 1 > a/b/c; ln -s b a/d; mv a/b/c a/e; rm -r a; f=$(mktemp); echo 2 > $f; cat $f",
        );
        assert_eq!(made.stdout, b"2\n", "{made:?}");
    }
    // A terminal of its own, and files that a profile names below /tmp.
    let terminal = place.run(&place.profile(&[]), "python3 -c 'import pty; pty.spawn([\"echo\", \"spoken\"])'");
    assert!(String::from_utf8_lossy(&terminal.stdout).contains("spoken"), "{terminal:?}");
    let named = tempfile::NamedTempFile::with_prefix_in("rulekeep-named-", "/tmp").unwrap();
    fs::write(named.path(), "named").unwrap();
    let mut profile = place.profile(&[]);
    profile.read.insert(named.path().to_owned());
    assert_eq!(place.run(&profile, &format!("cat {}", named.path().display())).stdout, b"named");
    assert_eq!(place.run(&place.profile(&[]), "chmod 777 /tmp").status.code(), Some(0));
    assert_eq!(
        place.run(&place.profile(&[]), "exit 5").status.code(),
        Some(5),
        "the folder for temporary files is mended"
    );
    let mut missing = place.profile(&[]);
    missing.folder = place.path("nowhere");
    let refused = place.run(&missing, "touch began");
    assert!(!refused.status.success() && !place.path("work/began").exists(), "{refused:?}");
}

#[test]
fn a_place_is_held_until_the_last_process_of_its_runs_has_ended() {
    let Some(place) = Place::new() else { return };
    let rule = DeniedPath { pattern: ".github/*".to_owned(), is_readable: true };
    let profile = place.profile(std::slice::from_ref(&rule));
    let made = place.path("work/.github");
    let late =
        "(setsid sh -c 'sleep 0.3; mkdir -p .github; echo a > .github/a' > /dev/null 2>&1 &) ; sleep 0.1; echo ended";
    assert_eq!(place.run(&profile, late).stdout, b"ended\n");
    std::thread::scope(|scope| {
        // The first of two runs ends while the second goes on.
        let first = scope.spawn(|| place.run(&profile, "sleep 0.2"));
        let second = place.run(&profile, "sleep 0.5; mkdir -p .github; echo a > .github/a");
        assert!(!second.status.success() && first.join().unwrap().status.success(), "{second:?}");
    });
    std::thread::sleep(std::time::Duration::from_millis(400)); // time for what should not be there
    assert!(fs::read_dir(&made).map_or(true, |mut entries| entries.next().is_none()));
}

#[test]
fn a_link_on_the_way_to_a_denied_path_stops_the_run() {
    let Some(place) = Place::new() else { return };
    fs::create_dir_all(place.path("work/real")).unwrap();
    for (link, denied) in [(".github", ".github/*"), ("a", "a/conf/*"), ("b", "b/conf/deep")] {
        for target in ["real", "missing"] {
            let path = place.path("work").join(link);
            let _ = fs::remove_file(&path);
            std::os::unix::fs::symlink(target, &path).unwrap();
            let rule = DeniedPath { pattern: denied.to_owned(), is_readable: true };
            let output = place.run(&place.profile(&[rule]), "touch began");
            assert!(!output.status.success() && !place.path("work/began").exists(), "{link} {target}: {output:?}");
            assert!(!place.path("outside/conf").exists() && !place.path("work/missing").exists());
        }
        fs::remove_file(place.path("work").join(link)).unwrap();
    }
    // The folder itself, if it is a link by the time of the run.
    let profile = place.profile(&[]);
    fs::rename(place.path("work"), place.path("moved")).unwrap();
    std::os::unix::fs::symlink(place.path("outside"), place.path("work")).unwrap();
    assert!(!place.run_in("moved", &profile, "touch began").status.success());
    assert!(!place.path("outside/began").exists());
}

#[test]
fn what_runs_unasked_is_not_written() {
    let Some(place) = Place::new() else { return };
    let git = place.path("work/.git");
    fs::create_dir_all(git.join("hooks")).unwrap();
    fs::write(git.join("config"), "[core]").unwrap();
    let script = "echo a >> .git/config; echo a > .git/hooks/pre-commit; mv .git g; mkdir -p .git/hooks; echo a > .git/config; echo a > .git/objects";
    let output = place.run(&place.profile(&[]), script);
    assert_eq!(fs::read_to_string(git.join("config")).unwrap(), "[core]", "{output:?}");
    assert!(fs::read_dir(git.join("hooks")).unwrap().next().is_none() && git.join("objects").exists(), "{output:?}");
}

#[test]
fn the_proxy_admits_the_hosts_of_the_profile_only() {
    let Some(place) = Place::new() else { return };
    let mut profile = place.profile(&[]);
    profile.network = Network::Hosts(BTreeSet::from(["registry.example".to_owned()]));
    let asked = python(
        "from urllib.parse import urlsplit\np = urlsplit(os.environ[\"HTTPS_PROXY\"])\nfor host in (b\"other.example:443\", b\"registry.example:22\", b\"127.0.0.1:443\", b\"registry.example:443\"):\n  s = socket.create_connection((p.hostname, p.port)); s.send(b\"CONNECT \" + host + b\" HTTP/1.1\\r\\n\\r\\n\"); print(s.recv(99).split()[1].decode())\ns = socket.create_connection((p.hostname, p.port)); s.send(b\"GET http://registry.example/ HTTP/1.1\\r\\n\\r\\n\"); print(s.recv(99).split()[1].decode())",
    );
    let output = place.run(&profile, &asked);
    // The name of the permitted host does not resolve.
    assert_eq!(String::from_utf8_lossy(&output.stdout), "403\n403\n403\n502\n405\n", "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("this run may not reach other.example:443; it is not in the profile"), "{told}");
    assert!(Path::new(&profile.temp).exists());
}
