//! PostgreSQL as processes, started by `postgres/cluster` in a temporary folder.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};

use tempfile::TempDir;
use tokio_postgres::NoTls;

/// Fails instead of skipping where PostgreSQL is missing.
const REQUIRED: &str = "RULEKEEP_REQUIRE_POSTGRES";

/// A primary, and perhaps a standby. Everything ends with the value.
pub(crate) struct Cluster {
    folder: PathBuf,
    /// The URL of each node, the first primary first.
    pub(crate) urls: Vec<String>,
    _parent: TempDir,
}

impl Cluster {
    /// Starts a cluster; `None`, saying so, where PostgreSQL is missing.
    pub(crate) fn start(options: &[&str]) -> Option<Self> {
        let parent = tempfile::tempdir().expect("a temporary folder");
        // The server runs as another user when the tests run as root.
        std::fs::set_permissions(parent.path(), std::fs::Permissions::from_mode(0o755)).expect("our own folder");
        let mut cluster = Self { folder: parent.path().join("cluster"), urls: Vec::new(), _parent: parent };
        match cluster.try_run("start", options) {
            Ok(urls) => cluster.urls = urls.lines().map(str::to_owned).collect(),
            Err(why) if why.contains("apt-get install postgresql") && std::env::var_os(REQUIRED).is_none() => {
                eprintln!("SKIPPED: {why}");
                return None;
            }
            Err(why) => panic!("PostgreSQL does not start: {why}"),
        }
        Some(cluster)
    }

    /// Runs a verb of the script.
    pub(crate) fn run(&self, verb: &str, options: &[&str]) {
        self.try_run(verb, options).unwrap_or_else(|why| panic!("{verb}: {why}"));
    }

    fn try_run(&self, verb: &str, options: &[&str]) -> Result<String, String> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/postgres/cluster");
        let mut command = Command::new(script);
        let output = command.arg(verb).arg(&self.folder).args(options).output().expect("the script runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// Stops all processes of the current primary. It is resumed by its processes, because another may be the primary then.
    pub(crate) fn pause_primary(&self) -> Paused {
        let node = self.folder.join(std::fs::read_to_string(self.folder.join("current")).expect("a node").trim());
        self.run("pause", &[]);
        Paused { node }
    }

    /// The folder that the nodes run in.
    pub(crate) fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    /// The URL of whichever node is the primary.
    pub(crate) fn url(&self) -> String {
        let hosts: Vec<&str> = self.urls.iter().map(|url| host(url)).collect();
        format!("postgres://postgres@{}/fleet", hosts.join(","))
    }
}

/// A node whose processes are stopped.
pub(crate) struct Paused {
    node: PathBuf,
}

impl Paused {
    pub(crate) fn resume(self) {
        let all = std::fs::read_dir("/proc").expect("Linux").flatten().map(|entry| entry.path());
        let of_node = all.filter(|path| std::fs::read_link(path.join("cwd")).is_ok_and(|working| working == self.node));
        let ids = of_node.filter_map(|path| path.file_name().map(std::ffi::OsStr::to_owned));
        let status = Command::new("kill").args(["-s", "CONT"]).args(ids).status().expect("kill runs");
        assert!(status.success());
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // There is nothing to stop if it did not start.
        let _ = self.try_run("stop", &[]);
    }
}

/// `host:port` of a URL.
pub(crate) fn host(url: &str) -> &str {
    url.split_once('@').and_then(|(_, rest)| rest.split_once('/')).expect("a URL of the script").0
}

/// A database of its own, on a server that tests running at the same time share.
pub(crate) struct Database {
    pub(crate) url: String,
    cluster: Arc<Cluster>,
}

impl Database {
    /// `None`, saying so, where PostgreSQL is missing.
    pub(crate) async fn new() -> Option<Self> {
        static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let cluster = {
            let mut shared = SHARED.lock().expect("no test panics in here");
            if let Some(cluster) = shared.upgrade() {
                cluster
            } else {
                let cluster = Arc::new(Cluster::start(&["--fast"])?);
                *shared = Arc::downgrade(&cluster);
                cluster
            }
        };
        let name = format!("fleet_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let database = Self { url: format!("{}/{name}", cluster.urls[0].trim_end_matches("/fleet")), cluster };
        sql(&database.cluster.urls[0], &format!("CREATE DATABASE {name}")).await;
        Some(database)
    }
}

/// Runs statements, and returns the first column of the last row.
pub(crate) async fn sql(url: &str, statements: &str) -> Option<String> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the database answers");
    let connection = tokio::spawn(connection);
    let messages = client.simple_query(statements).await.expect("the statements are good");
    drop(client);
    let _ = connection.await;
    messages.iter().rev().find_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    })
}
