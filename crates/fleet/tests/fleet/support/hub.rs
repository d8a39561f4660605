//! Hubs: in a runtime of their own in this process, or as processes; and what operators and readers ask of them.

use std::io::{BufRead as _, BufReader};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rulekeep_fleet::bundle::Bundle;
use rulekeep_fleet::cosignature::WitnessKey;
use rulekeep_fleet::hub::{Found, Hub, Members, Settings};
use rulekeep_fleet::order::SignedOrder;
use rulekeep_fleet::wire::Standing;
use rulekeep_server::http::Server;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use super::http::{Answered, once, request};
use super::namespace::Namespace;
use super::organisation::{TOKEN, log_key};

/// What differs between the hubs of the tests.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HubOptions {
    pub(crate) database: String,
    pub(crate) publish: Option<PathBuf>,
    /// Names, keys and URLs of witnesses.
    pub(crate) witnesses: Vec<(String, String)>,
    listens: String,
    /// The certificate and its key, both in PEM.
    tls: Option<(String, String)>,
}

impl HubOptions {
    pub(crate) fn new(database: &str) -> Self {
        let listens = "127.0.0.1:0".to_owned();
        Self { database: database.to_owned(), publish: None, witnesses: Vec::new(), listens, tls: None }
    }

    pub(crate) fn publish(mut self, folder: &Path) -> Self {
        self.publish = Some(folder.to_owned());
        self
    }

    pub(crate) fn witness(mut self, key: &WitnessKey, url: &str) -> Self {
        self.witnesses.push((key.to_string(), url.to_owned()));
        self
    }

    /// A free port of another address.
    pub(crate) fn listens(mut self, address: IpAddr) -> Self {
        self.listens = SocketAddr::new(address, 0).to_string();
        self
    }

    /// TLS, with a certificate and its key in PEM.
    pub(crate) fn tls(mut self, certificate: &str, key: &str) -> Self {
        self.tls = Some((certificate.to_owned(), key.to_owned()));
        self
    }

    /// The server of `rulekeep fleet hub`.
    fn server(&self) -> Server {
        let server = Server::new().max_connections(20_000);
        match &self.tls {
            Some((certificate, key)) => server.tls(certificate.as_bytes(), key.as_bytes()).expect("its key"),
            None => server,
        }
    }

    fn settings(&self) -> Settings {
        let witness = |(key, url): &(String, String)| (key.parse().expect("a witness's key"), url.clone());
        Settings {
            database: self.database.clone(),
            database_ca: None,
            key: log_key(),
            witnesses: self.witnesses.iter().map(witness).collect(),
            publish: self.publish.clone(),
            read_token: Some(TOKEN.to_owned()),
        }
    }
}

/// A hub in this process. It ends with the value, in the middle of whatever it does.
pub(crate) struct RunningHub {
    pub(crate) api: Api,
    hub: Hub,
    runtime: Option<Runtime>,
}

impl RunningHub {
    pub(crate) async fn start(options: &HubOptions) -> Self {
        Self::try_start(options).await.expect("the hub starts")
    }

    pub(crate) async fn try_start(options: &HubOptions) -> Result<Self, String> {
        Self::served_by(options.server(), options).await
    }

    /// One behind a server with other settings.
    pub(crate) async fn served_by(server: Server, options: &HubOptions) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let served = runtime.spawn(serve(server, options.clone())).await.expect("no panic");
        match served {
            Ok((address, hub)) => Ok(Self { api: Api(address), hub, runtime: Some(runtime) }),
            Err(why) => {
                runtime.shutdown_background();
                Err(why)
            }
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.api.0
    }

    /// The problem that the hub shows to its operator.
    pub(crate) fn problem(&self) -> Option<String> {
        self.hub.problem()
    }
}

impl Drop for RunningHub {
    fn drop(&mut self) {
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

/// Starts a hub on a free port, in the background.
async fn serve(server: Server, options: HubOptions) -> Result<(SocketAddr, Hub), String> {
    let hub = Hub::start(options.settings()).await.map_err(|error| error.to_string())?;
    let listener = TcpListener::bind(&options.listens).await.expect("a free port");
    let address = listener.local_addr().expect("it listens");
    tokio::spawn(server.serve(listener, hub.router(), std::future::pending()));
    Ok((address, hub))
}

/// A hub as a process of this test program, ended by `kill -9`.
pub(crate) struct HubProcess {
    pub(crate) api: Api,
    child: Child,
}

/// The options of the hub that this process shall be.
const OPTIONS: &str = "RULEKEEP_TEST_HUB";
const LISTENS: &str = "the hub listens on ";

impl HubProcess {
    pub(crate) fn start(options: &HubOptions) -> Self {
        Self::start_by(Command::new(std::env::current_exe().expect("this program")), options)
    }

    /// One that can open so many files.
    pub(crate) fn with_files(files: u32, options: &HubOptions) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -n {files}; exec \"$0\" \"$@\"")]);
        shell.arg(std::env::current_exe().expect("this program"));
        Self::start_by(shell, options)
    }

    /// One in a network namespace.
    pub(crate) fn within(namespace: &Namespace, options: &HubOptions) -> Self {
        Self::start_by(namespace.command(std::env::current_exe().expect("this program")), options)
    }

    fn start_by(mut command: Command, options: &HubOptions) -> Self {
        let mut child = command
            .args(["--exact", "a_hub_for_other_tests", "--nocapture"])
            .env(OPTIONS, serde_json::to_string(options).expect("JSON"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts again");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let mut said =
            lines.map_while(Result::ok).filter_map(|line| line.split_once(LISTENS).map(|(_, rest)| rest.to_owned()));
        let address = said.next().expect("the hub starts").trim().parse().expect("an address");
        Self { api: Api(address), child }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.api.0
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        self.child.wait().expect("a child can be waited for");
    }
}

impl Drop for HubProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs a hub until it is killed, if this process was started to be one.
pub(crate) fn be_a_hub() {
    let Ok(options) = std::env::var(OPTIONS) else { return };
    let options: HubOptions = serde_json::from_str(&options).expect("the parent's options");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (address, _hub) = serve(options.server(), options).await.expect("the hub starts");
        println!("{LISTENS}{address}");
        std::future::pending::<()>().await;
    });
}

/// The calls of operators and readers at a hub.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Api(pub(crate) SocketAddr);

type Refused = (u16, String);

impl Api {
    pub(crate) async fn give(&self, order: &SignedOrder) -> Result<Standing, Refused> {
        self.post("/fleet/v1/orders", &serde_json::to_string(order).expect("JSON")).await?.read()
    }

    pub(crate) async fn standing(&self, seq: u64) -> Result<Standing, Refused> {
        self.get(&format!("/fleet/v1/orders/{seq}")).await?.read()
    }

    pub(crate) async fn orders(&self) -> Result<Vec<SignedOrder>, Refused> {
        self.get("/fleet/v1/orders").await?.read()
    }

    pub(crate) async fn members(&self) -> Result<Members, Refused> {
        self.get("/fleet/v1/members").await?.read()
    }

    pub(crate) async fn find(&self, query: &str) -> Result<Vec<Found>, Refused> {
        self.get(&format!("/fleet/v1/records?{query}")).await?.read()
    }

    pub(crate) async fn bundle(&self, record: &str) -> Result<Bundle, Refused> {
        self.get(&format!("/fleet/v1/bundles/{record}")).await?.read()
    }

    pub(crate) async fn checkpoint(&self) -> Result<String, Refused> {
        let answer = self.get("/checkpoint").await?;
        if answer.status == 200 {
            Ok(String::from_utf8(answer.body).expect("a note"))
        } else {
            Err((answer.status, String::new()))
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Answered, Refused> {
        self.call(&request("GET", path, &format!("authorization: Bearer {TOKEN}\r\n"), "")).await
    }

    pub(crate) async fn post<T: AsRef<str>>(&self, path: &str, body: &T) -> Result<Answered, Refused> {
        self.call(&request("POST", path, &format!("authorization: Bearer {TOKEN}\r\n"), body.as_ref())).await
    }

    pub(crate) async fn call(&self, request: &[u8]) -> Result<Answered, Refused> {
        let answer = tokio::time::timeout(super::member::PATIENCE, once(self.0, request)).await;
        answer.map_err(|_| (0, "no answer in time".to_owned()))?.map_err(|error| (0, error.to_string()))
    }
}

/// The message of a refusal.
pub(crate) fn refusal<T: std::fmt::Debug>(result: Result<T, Refused>, status: u16) -> String {
    match result {
        Err((found, why)) if found == status => why,
        other => panic!("expected a refusal with status {status}, found {other:?}"),
    }
}

/// A member's message, sent as it is.
pub(crate) async fn post<T: DeserializeOwned>(
    address: SocketAddr,
    key: &rulekeep::checkpoint::CheckpointKey,
    path: &str,
    message: &impl Serialize,
) -> Result<T, Refused> {
    Api(address).call(&super::http::signed(key, path, message)).await?.read()
}
