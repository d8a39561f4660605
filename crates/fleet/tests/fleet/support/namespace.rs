//! A network namespace behind a link that loses, delays and reorders packets. Needs root, `ip` and `tc`.

use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;

/// A namespace with two links to that of the tests. It ends with the value, also after a panic.
pub(crate) struct Namespace {
    name: String,
    pub(crate) bad: Ends,
    pub(crate) good: Ends,
}

/// The addresses of a link: in the namespace of the tests, and in the other one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) near: IpAddr,
    pub(crate) far: IpAddr,
}

impl Namespace {
    /// `None`, saying so, where namespaces cannot be made. Both links are good at first.
    pub(crate) fn start() -> Option<Self> {
        let id = std::process::id();
        // Eight addresses for each process, of the range for measurements of networks (RFC 2544).
        let address = |place: u32| IpAddr::V4(Ipv4Addr::from(0xc612_0000 + (id % 0x2000) * 8 + place));
        let ends = |place: u32| Ends { near: address(place), far: address(place + 1) };
        let namespace = Self { name: format!("rk{id}"), bad: ends(1), good: ends(5) };
        match namespace.set_up() {
            Ok(()) => Some(namespace),
            Err(why) => {
                eprintln!("SKIPPED: a network namespace needs root, ip and tc: {why}");
                None
            }
        }
    }

    fn set_up(&self) -> Result<(), String> {
        let name = &self.name;
        said("tc", "-V")?;
        said("ip", &format!("netns add {name}"))?;
        for (kind, Ends { near, far }) in [("b", self.bad), ("g", self.good)] {
            let (here, there) = (format!("{name}{kind}"), format!("{name}{kind}f"));
            said("ip", &format!("link add {here} type veth peer name {there} netns {name}"))?;
            said("ip", &format!("addr add {near}/30 dev {here}"))?;
            said("ip", &format!("link set {here} up"))?;
            said("ip", &format!("-n {name} addr add {far}/30 dev {there}"))?;
            said("ip", &format!("-n {name} link set {there} up"))?;
        }
        said("ip", &format!("-n {name} link set lo up"))?;
        Ok(())
    }

    /// A command that runs a program in the namespace.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }

    /// Makes the bad link lose 10 % of the packets of each direction, delay the others and reorder some. `None`, saying
    /// so, where the kernel can do neither of two ways.
    pub(crate) fn degrade(&self) -> Option<()> {
        for end in self.bad_ends() {
            let netem = tc(&end, "qdisc add", "root netem loss 10% delay 50ms 40ms reorder 25%");
            if let Err(why) = netem.map(drop).or_else(|_| degrade_by_classes(&end)) {
                eprintln!("SKIPPED: this kernel has neither netem nor htb with bpf: {why}");
                return None;
            }
        }
        Some(())
    }

    /// Makes the bad link a good one again. Returns the number of packets that each end has lost.
    pub(crate) fn repair(&self) -> Vec<u64> {
        let mut lost = Vec::new();
        for end in self.bad_ends() {
            let shown = tc(&format!("-s {end}"), "qdisc show", "").expect("it was degraded");
            let dropped =
                shown.split("dropped ").skip(1).filter_map(|rest| rest.split(',').next()?.parse::<u64>().ok());
            lost.push(dropped.max().unwrap_or(0));
            tc(&end, "qdisc del", "root").expect("it was degraded");
        }
        lost
    }

    /// The arguments of `tc` that name the ends of the bad link, with `END` in place of the verb.
    fn bad_ends(&self) -> [String; 2] {
        let name = &self.name;
        [format!("END dev {name}b"), format!("-n {name} END dev {name}bf")]
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let name = &self.name;
        // What was not made is not there. A link ends with either of its ends.
        for undone in [format!("link del {name}b"), format!("link del {name}g"), format!("netns del {name}")] {
            let _ = said("ip", &undone);
        }
    }
}

/// The same without netem, which some kernels lack: a tenth of the packets goes to a queue without room, a quarter to a
/// slow one.
fn degrade_by_classes(end: &str) -> Result<(), String> {
    tc(end, "qdisc add", "root handle 1: htb default 10 r2q 1000")?;
    for (class, rate) in [("1:10", "100mbit"), ("1:20", "100kbit burst 1 cburst 1"), ("1:30", "100mbit")] {
        tc(end, "class add", &format!("parent 1: classid {class} htb rate {rate}"))?;
    }
    tc(end, "qdisc add", "parent 1:30 bfifo limit 1")?;
    // Loads a random number of 32 bits; above 90 % of them: class 1:30; above 65 %: class 1:20; otherwise class 1:10.
    let random = "6,32 0 0 4294963256,37 0 1 3865470565,6 0 0 65584,37 0 1 2791728742,6 0 0 65568,6 0 0 65552";
    let mut filter = Command::new("tc");
    filter.args(end.replacen("END", "filter add", 1).split_whitespace());
    output_of(filter.args(["parent", "1:", "protocol", "all", "bpf", "bytecode", random])).map(drop)
}

/// Runs `tc` at an end of a link.
fn tc(end: &str, verb: &str, rest: &str) -> Result<String, String> {
    said("tc", &format!("{} {rest}", end.replacen("END", verb, 1)))
}

/// Runs a program with arguments, and returns its output.
fn said(program: &str, arguments: &str) -> Result<String, String> {
    output_of(Command::new(program).args(arguments.split_whitespace()))
}

fn output_of(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
