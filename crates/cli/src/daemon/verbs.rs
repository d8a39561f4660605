//! `rulekeep up`, `down` and `status`.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rulekeep_server::gateway::Gateway;
use rulekeep_server::webhooks::Settings as WebhookSettings;
use serde_json::{Value, json};

use super::console::Console;
use super::server::Server;
use crate::client::Client;
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
    // The daemon may end before it has answered.
    if let Err(failure) = client.call("daemon/stop", json!({}))
        && failure.code != "UNREACHABLE"
    {
        return Err(failure.into());
    }
    if !client.has_ended(LONGEST_START) {
        let log = home.daemon_log();
        return Err(format!("process {pid} has not ended within {LONGEST_START:?}; {} may say why", log.display()));
    }
    println!("the daemon has ended, process {pid}; hooks refuse until: rulekeep up");
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn status(options: &StatusOptions) -> Result<ExitCode, String> {
    let home = Home::find()?;
    let client = Client::reading(&home)?;
    let daemon = if client.is_daemon() { client.call("daemon/status", json!({}))? } else { Value::Null };
    let status = client.call("admin/status", json!({}))?;
    if options.json {
        println!("{}", json!({ "home": home.root(), "daemon": daemon, "status": status }));
    } else {
        match daemon["pid"].as_u64() {
            Some(pid) => println!("daemon    process {pid}, up {} s", daemon["uptimeSeconds"]),
            None => println!("daemon    does not run: hooks refuse; start it with: rulekeep up"),
        }
        println!("home      {}", home.root().display());
        println!("health    {}", if daemon.is_null() { health_of_store(&status) } else { word(&status["status"]) });
        // Without a daemon the store is open read-only, which the first line says already.
        let warnings = status["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for warning in warnings.filter(|warning| !daemon.is_null() || !warning.contains(READ_ONLY)) {
            println!("warning   {}", output::clean(warning));
        }
        for (name, value) in status["metrics"].as_object().into_iter().flatten() {
            if value.is_number() {
                println!("          {name}: {value}");
            }
        }
    }
    Ok(if daemon.is_null() { ExitCode::from(NOT_RUNNING) } else { ExitCode::SUCCESS })
}

/// Returns the worst health of the components that need no daemon.
fn health_of_store(status: &Value) -> &str {
    let components = status["components"].as_object().into_iter().flatten();
    let others = components.filter(|(name, _)| *name != "gateway").map(|(_, health)| word(health));
    let rank = |health: &&str| ["healthy", "degraded"].iter().position(|known| known == health).unwrap_or(2);
    others.max_by_key(rank).unwrap_or("unknown")
}

fn word(health: &Value) -> &str {
    health.as_str().unwrap_or("unknown")
}

/// Returns the process ID of the daemon, if one answers.
fn running(home: &Home) -> Result<Option<u64>, String> {
    if !home.operator_socket().exists() {
        return Ok(None);
    }
    let client = Client::daemon(home)?;
    let Some(client) = client else { return Ok(None) };
    Ok(client.call("daemon/status", json!({}))?["pid"].as_u64())
}

fn serve(home: &Home, idle_exit: Option<f64>) -> Result<ExitCode, String> {
    let config = home.config()?;
    let idle_exit = config.idle_exit(idle_exit)?;
    let governor = home.builder(&config)?.open(home.store()).map_err(describe)?;
    let gateway = Gateway::with_webhooks(&governor, WebhookSettings::default()).map_err(describe)?;
    let hooks = &config.hooks;
    let settings = Settings {
        tier: hooks.tier,
        mandates: hooks.mandates,
        wait: Duration::from_secs(hooks.wait_seconds),
        home: home.root().to_owned(),
    };
    let server = Arc::new(Server::new(gateway.clone(), Engine::new(gateway.clone(), settings), hooks.tier));
    let opened = Arc::clone(&server);
    thread::spawn(move || opened.tidy_up());
    let asked = Arc::clone(&server);
    signals::on_end(move || asked.end())?;
    let console = config.listen.as_deref().map(|listen| Console::start(listen, &gateway)).transpose()?;
    let served = server.run(home, idle_exit);
    drop(console);
    governor.close().map_err(describe)?;
    served.map(|()| ExitCode::SUCCESS)
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
