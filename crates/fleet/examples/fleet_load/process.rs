//! Memory and processor time of processes, from `/proc`.

use std::fs;
use std::path::Path;

use crate::support::cluster::Cluster;

/// What was used until now.
pub(crate) struct Usage {
    pub(crate) hubs: Vec<Process>,
    /// Processor time of the database in seconds. Of processes that have ended it is not counted.
    pub(crate) database: f64,
    /// Processor time of this program in seconds.
    pub(crate) own: f64,
}

/// The use of a process.
pub(crate) struct Process {
    pub(crate) mib: f64,
    /// Processor time in seconds.
    pub(crate) seconds: f64,
}

impl Usage {
    pub(crate) fn of(hubs: &[u32], cluster: &Cluster) -> Self {
        Self {
            hubs: hubs.iter().map(|id| process(&format!("/proc/{id}"))).collect(),
            database: processes_in(cluster.folder()).iter().map(|path| process(path).seconds).sum(),
            own: process("/proc/self").seconds,
        }
    }
}

fn process(path: &str) -> Process {
    let read = |file: &str| fs::read_to_string(format!("{path}/{file}")).unwrap_or_default();
    let status = read("status");
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok());
    let stat = read("stat");
    // Fields 14 and 15, in hundredths of a second, counted behind the name of the program.
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let ticks: f64 = fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    Process { mib: kib.unwrap_or(0.0) / 1024.0, seconds: ticks / 100.0 }
}

fn processes_in(folder: &Path) -> Vec<String> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let is_in = |path: &Path| fs::read_link(path.join("cwd")).is_ok_and(|working| working.starts_with(folder));
    all.filter(|path| is_in(path)).map(|path| path.display().to_string()).collect()
}

/// The load of the machine, and its processors.
pub(crate) fn machine() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: Vec<&str> = load.split(' ').take(3).collect();
    let processors = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    format!("{} (1, 5, 15 minutes) on {processors} processors", load.join(", "))
}
