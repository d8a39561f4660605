//! `rulekeep up`, `down` and `status`.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rulekeep::grant::Confiner;
use rulekeep::status::{Components, Health};
use rulekeep::system::{Clock as _, SystemClock};
use rulekeep_server::calls::records::Status;
use rulekeep_server::gateway::Gateway;
use rulekeep_server::webhooks::Settings as WebhookSettings;
use serde::de::IgnoredAny;
use serde_json::json;

use super::console::Console;
use super::server::{DaemonStatus, Server};
use crate::client::{Client, Failure, Line};
use crate::home::Home;
use crate::hook::engine::{Engine, Settings};
use crate::output;
use crate::signals;
use crate::store::describe;

/// The options of `rulekeep up`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  rulekeep up\n  rulekeep up --foreground --idle-exit 0")]
pub(crate) struct UpOptions {
    /// Stays in the foreground
    #[arg(long)]
    foreground: bool,
    /// Minutes without a call after which the daemon ends, instead of the configured number; 0 for never
    #[arg(long, value_name = "MINUTES")]
    idle_exit: Option<f64>,
}

/// The options of `rulekeep down`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  rulekeep down")]
pub(crate) struct DownOptions {}

/// The options of `rulekeep status`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  rulekeep status\n  rulekeep status --json")]
pub(crate) struct StatusOptions {
    /// Prints the status as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn up(options: &UpOptions) -> Result<ExitCode, String> {
    let home = Home::find()?;
    if options.foreground {
        return serve(&home, options.idle_exit);
    }
    home.check()?;
    if let Some(pid) = running(&home)? {
        println!("the daemon runs already, process {pid}");
        return Ok(ExitCode::SUCCESS);
    }
    let log = home.daemon_log();
    let opened = fs::OpenOptions::new().create(true).append(true).open(&log);
    let opened = opened.map_err(|error| format!("{}: {error}", log.display()))?;
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut command = Command::new(program);
    command.args(["up", "--foreground"]).env_remove(crate::client::OPERATOR_KEY);
    if let Some(minutes) = options.idle_exit {
        command.args(["--idle-exit", &minutes.to_string()]);
    }
    let errors = opened.try_clone().map_err(|error| format!("{}: {error}", log.display()))?;
    command.current_dir("/").stdin(Stdio::null()).stdout(opened).stderr(errors).process_group(0);
    let mut child = command.spawn().map_err(|error| format!("cannot start the daemon: {error}"))?;
    let deadline = Instant::now() + LONGEST_START;
    while Instant::now() < deadline {
        if let Some(pid) = running(&home)? {
            println!("the daemon runs, process {pid}");
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Err(format!("the daemon ended, {status}; {} says why:\n{}", log.display(), last_lines(&home)));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Err(format!("the daemon did not answer within {LONGEST_START:?}; {} may say why", log.display()))
}

pub(crate) fn down(_options: &DownOptions) -> Result<ExitCode, String> {
    let home = Home::find()?;
    let Some(pid) = running(&home)? else {
        println!("no daemon runs");
        return Ok(ExitCode::SUCCESS);
    };
    let client = Client::operating(&home)?;
    if let Some(line) = client.line() {
        match line.call::<IgnoredAny>("daemon/stop", &json!({})) {
            // The daemon may end before it has answered.
            Err(failure) if failure.code != "UNREACHABLE" => return Err(failure.into()),
            _ => {}
        }
        if !line.has_ended(LONGEST_START) {
            let log = home.daemon_log();
            return Err(format!("process {pid} has not ended within {LONGEST_START:?}; {} may say why", log.display()));
        }
    }
    println!("the daemon has ended, process {pid}; hooks refuse until: rulekeep up");
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn status(options: &StatusOptions) -> Result<ExitCode, String> {
    let home = Home::find()?;
    let client = Client::reading(&home)?;
    let daemon = client.line().map(daemon_status).transpose()?;
    let status = client.make(Status {})?;
    if options.json {
        println!("{}", json!({ "home": home.root(), "daemon": daemon, "status": status }));
    } else {
        match &daemon {
            Some(DaemonStatus { pid, uptime_seconds, .. }) => {
                println!("daemon    process {pid}, up {uptime_seconds} s");
            }
            None => println!("daemon    does not run: hooks refuse; start it with: rulekeep up"),
        }
        println!("home      {}", home.root().display());
        println!("health    {}", if daemon.is_some() { status.status } else { health_of_store(status.components) });
        // Without a daemon the store is open read-only, which the first line says already.
        for warning in status.warnings.iter().filter(|warning| daemon.is_some() || !warning.contains(READ_ONLY)) {
            println!("warning   {}", output::clean(warning));
        }
        for (name, value) in json!(status.metrics).as_object().into_iter().flatten() {
            if value.is_number() {
                println!("          {name}: {value}");
            }
        }
    }
    Ok(if daemon.is_some() { ExitCode::SUCCESS } else { ExitCode::from(NOT_RUNNING) })
}

/// Returns the worst health of the components that need no daemon.
fn health_of_store(components: Components) -> Health {
    let Components { trust_engine, proof_chain, intent_parser, database, .. } = components;
    trust_engine.max(proof_chain).max(intent_parser).max(database)
}

/// Returns the process ID of the daemon, if one answers.
fn running(home: &Home) -> Result<Option<u32>, String> {
    let line = Line::operator(home)?;
    Ok(line.as_ref().map(daemon_status).transpose()?.map(|status| status.pid))
}

fn daemon_status(line: &Line) -> Result<DaemonStatus, Failure> {
    line.call("daemon/status", &json!({}))
}

fn serve(home: &Home, idle_exit: Option<f64>) -> Result<ExitCode, String> {
    let config = home.config()?;
    let idle_exit = config.idle_exit(idle_exit)?;
    let confiner = confiner(home)?;
    let mut builder = home.builder(&config)?;
    if let Some(confiner) = &confiner {
        builder = builder.confiner(confiner.clone());
    }
    let governor = builder.open(home.store()).map_err(describe)?;
    let webhooks = WebhookSettings { public_url: config.public_url.clone(), ..WebhookSettings::default() };
    let gateway = Gateway::with_webhooks(&governor, webhooks).map_err(describe)?;
    let hooks = &config.hooks;
    let settings = Settings {
        tier: hooks.tier,
        mandates: hooks.mandates,
        folders: hooks.folders.clone(),
        trusted: hooks.trusted.clone(),
        wait: Duration::from_secs(hooks.wait_seconds),
        home: home.root().to_owned(),
        confining: confiner.map(|confiner| confiner.program().to_owned()),
    };
    let server = Arc::new(Server::new(gateway.clone(), Engine::new(gateway.clone(), settings)));
    let opened = Arc::clone(&server);
    thread::spawn(move || opened.tidy_up());
    let asked = Arc::clone(&server);
    signals::on_end(move |signal| asked.end(signal))?;
    let console = config.listen.as_deref().map(|listen| Console::start(listen, &gateway)).transpose()?;
    let served = server.run(home, idle_exit);
    drop(console);
    let ended = served.and(governor.close().map_err(describe));
    ended.map(|()| ExitCode::SUCCESS).map_err(|error| format!("{} the daemon ends: {error}", SystemClock.now()))
}

/// Returns this program as the one that confines commands, if the system can.
fn confiner(home: &Home) -> Result<Option<Confiner>, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    Ok(match Confiner::attempt(program) {
        Ok(confiner) => Some(confiner.hiding(home.root())),
        Err(error) => {
            eprintln!("{}", error.message());
            None
        }
    })
}

fn last_lines(home: &Home) -> String {
    let log = fs::read_to_string(home.daemon_log()).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    lines.get(lines.len().saturating_sub(5)..).unwrap_or_default().join("\n")
}

/// The longest time that a daemon takes to start or to end.
const LONGEST_START: Duration = Duration::from_secs(30);
/// The exit code of `status` if no daemon runs.
const NOT_RUNNING: u8 = 3;
/// Part of the warning that a store is open read-only.
const READ_ONLY: &str = "opened read-only";
