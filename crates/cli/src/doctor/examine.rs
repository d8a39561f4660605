//! The examination of one host: its settings, and probes sent through the registered command.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::fire::{End, Machine, version};
use super::model::{Behavior, Fault, Model, ProjectHooks};
use super::report::{Cell, Finding, Report, State, Verdict};
use super::settings::{Entry, Settings, place};
use super::{codex, gemini};
use crate::hook::dialects::{Dialect, Probe};
use crate::hook::event::Host;
use crate::hook::install::{Scope, events, moved, registered};

/// Returns whether the host has been used here, or Rulekeep is registered with it.
pub(super) fn is_here(host: Host, machine: &Machine) -> bool {
    let model = Model::of(host);
    let has = |path: &String| place(path, &machine.home, &machine.project).0.exists();
    model.here.iter().any(has) || !Settings::read(host, model, &machine.home, &machine.project).ours.is_empty()
}

/// Examines one host.
#[must_use]
pub fn examine(host: Host, machine: &Machine) -> Report {
    let model = Model::of(host);
    let settings = Settings::read(host, model, &machine.home, &machine.project);
    let seen = model.program.as_ref().is_some_and(|(program, seen)| machine.version(program) >= version(seen));
    let mut examination =
        Examination { host, model, machine, settings, seen, findings: Vec::new(), probes: Vec::new() };
    examination.settings();
    examination.trust();
    if examination.fire_tools() {
        // A hook that does not refuse the plain probe is not examined further.
        examination.fire_faults();
        examination.fire_many();
        examination.subagents();
    }
    examination.report()
}

struct Examination<'m> {
    host: Host,
    model: &'static Model,
    machine: &'m Machine,
    settings: Settings,
    /// The host's version is known to behave as the model says.
    seen: bool,
    findings: Vec<Finding>,
    probes: Vec<(String, bool)>,
}

impl Examination<'_> {
    fn find(&mut self, fault: Fault, verdict: Verdict, text: impl Into<String>) {
        self.findings.push(Finding { fault, verdict, text: text.into(), remedy: fault.remedy().to_owned() });
    }

    /// Checks the entries in the settings.
    fn settings(&mut self) {
        for problem in std::mem::take(&mut self.settings.problems) {
            self.find(Fault::Edited, Verdict::Red, problem);
        }
        let variable = |name: &str| match &self.machine.environment {
            Some(environment) => environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()),
            None => std::env::var_os(name),
        };
        let moved = moved(self.host, &self.machine.home, variable);
        if let Some(moved) = moved {
            self.find(Fault::Edited, Verdict::Red, format!("{moved}; the hook is not read there"));
        }
        if self.settings.ours.is_empty() {
            let name = Dialect::of(self.host).host().name();
            self.findings.push(Finding {
                fault: Fault::Edited,
                verdict: Verdict::Red,
                text: format!("no Rulekeep hook is in effect on {}", self.model.gate),
                remedy: format!("run `rulekeep hook install --host {name}`"),
            });
            return;
        }
        let entries = registered(self.host, &self.machine.home, &self.machine.project).unwrap_or_default();
        for entry in entries.iter().filter(|entry| !entry.unchanged) {
            let (file, event) = (entry.file.display(), &entry.event);
            let text = format!("{file}: the entry on {event} differs from what `rulekeep hook install` writes");
            self.find(Fault::Edited, Verdict::NotProven, text);
        }
        let lacks = |event: &&str| !entries.iter().any(|entry| entry.event == *event);
        for event in events(self.host).filter(lacks).collect::<Vec<_>>() {
            self.find(Fault::Edited, Verdict::NotProven, format!("no Rulekeep hook is registered on {event}"));
        }
        if self.model.closes.is_some() && !self.settings.ours.iter().any(|entry| entry.closes) {
            let field = self.model.closes.as_deref().unwrap_or_default();
            self.find(
                Fault::Crash,
                Verdict::Red,
                format!("the entry lacks {field:?}: a failed hook lets the call run"),
            );
        }
        if let Some(entry) = self.settings.ours.iter().find(|entry| entry.limit < SHORTEST_LIMIT) {
            let limit = entry.limit.as_secs_f32();
            self.find(Fault::Hang, Verdict::Red, format!("the time limit of the entry is {limit} s: less than 5 s"));
        }
        if self.model.cells.get(&Fault::Other) == Some(&Behavior::Runs)
            && let Some(file) = self.settings.others.first()
        {
            let text = format!("{}: another hook on {} may overrule a refusal", file.display(), self.model.gate);
            self.find(Fault::Other, Verdict::Red, text);
        }
    }

    /// Checks the host's trust, without which it does not run the hook.
    fn trust(&mut self) {
        let entries = self.settings.ours.clone();
        if entries.is_empty() {
            return;
        }
        match self.host {
            Host::Codex => {
                if let Err((verdict, text)) = codex::trusts(self.machine, &entries) {
                    self.find(Fault::Trust, verdict, text);
                }
            }
            Host::Gemini => {
                if let Err(text) = gemini::trusts(&self.machine.home, &self.machine.project) {
                    self.find(Fault::Folder, Verdict::Red, text);
                }
            }
            _ if self.model.project == ProjectHooks::Unknown
                && !entries.iter().any(|entry| entry.scope == Scope::User) =>
            {
                let text = "it is unknown whether the host runs this project's hooks before it trusts the folder";
                self.find(Fault::Folder, Verdict::NotProven, text);
            }
            _ => {}
        }
    }

    /// Sends a probe for each tool. Returns whether all were refused.
    fn fire_tools(&mut self) -> bool {
        let mut refused = !self.settings.ours.is_empty();
        for probe in Dialect::of(self.host).probes() {
            let entries = self.covering(probe.tool);
            if entries.is_empty() && !self.settings.ours.is_empty() {
                let text = format!("the matcher leaves out the tool {}", probe.tool);
                self.find(Fault::Edited, Verdict::Red, text);
            }
            let nonce = Nonce::new();
            let fired = self.refused(&entries, &self.event(probe, &nonce, &Map::new()), &nonce.0, &[]);
            self.probes.push((probe.tool.to_owned(), fired.is_ok()));
            let Err(text) = fired else { continue };
            refused = false;
            if !entries.is_empty() {
                if text.contains("rulekeep up") {
                    let (fault, verdict) = (Fault::Crash, Verdict::Red);
                    let text = format!("the daemon does not run, so the hook refuses every call: {text}");
                    self.findings.push(Finding { fault, verdict, text, remedy: "run `rulekeep up`".to_owned() });
                    return false;
                }
                self.find(
                    Fault::Crash,
                    Verdict::Red,
                    format!("the probe of {} was not refused by the daemon: {text}", probe.tool),
                );
                break;
            }
        }
        refused
    }

    /// Sends the probe under faults: half an event, a byte order mark, a sub-agent, no user, no daemon.
    fn fire_faults(&mut self) {
        let none = Map::new();
        let (sub, headless) = (self.model.sub.clone(), self.model.headless.clone());
        let Some((probe, entries)) = self.first() else { return };
        let nonce = Nonce::new();
        let whole = self.event(probe, &nonce, &none);
        let half: String = whole.chars().take(whole.chars().count() / 2).collect();
        let nowhere = self.machine.home.join("rulekeep-doctor-probe-has-no-daemon");
        for (fault, event, reason, more) in [
            (Fault::Json, half, "", &[][..]),
            (Fault::Bom, format!("\u{feff}{whole}"), nonce.0.as_str(), &[]),
            (Fault::Subagent, self.event(probe, &nonce, &sub), &nonce.0, &[]),
            (Fault::Headless, self.event(probe, &nonce, &headless), &nonce.0, &[]),
            (Fault::Missing, whole.clone(), "", &[("RULEKEEP_HOME", nowhere.as_path())]),
        ] {
            if let Err(text) = self.refused(&entries, &event, reason, more) {
                let what = if fault == Fault::Missing { "without a daemon" } else { fault.title() };
                self.find(fault, Verdict::Red, format!("{what}: the probe was not refused: {text}"));
            }
        }
    }

    /// Sends 64 probes at once, or one after another if the host queues them, within one time limit.
    fn fire_many(&mut self) {
        let Some((probe, entries)) = self.first() else { return };
        let fire = || {
            let nonce = Nonce::new();
            self.refused(&entries, &self.event(probe, &nonce, &Map::new()), &nonce.0, &[])
        };
        let started = Instant::now();
        let outcome: Result<(), String> = if self.model.queue {
            (0..MANY).try_for_each(|_| fire())
        } else {
            thread::scope(|scope| {
                let fired: Vec<_> = (0..MANY).map(|_| scope.spawn(fire)).collect();
                let ended = fired.into_iter().map(|thread| thread.join().map_err(|_| "a thread of the doctor failed"));
                ended.collect::<Vec<_>>().into_iter().try_for_each(|one| one.map_err(ToOwned::to_owned)?)
            })
        };
        let took = started.elapsed();
        let limit = entries.iter().map(|entry| entry.limit).min().unwrap_or_default();
        let outcome = outcome.and_then(|()| {
            let late = format!("they took {:.1} s, more than the time limit", took.as_secs_f32());
            if took < limit { Ok(()) } else { Err(late) }
        });
        if let Err(text) = outcome {
            self.find(Fault::Parallel, Verdict::Red, format!("of {MANY} calls at once, one got through: {text}"));
        }
    }

    /// Checks that starting a sub-agent is refused if the calls of sub-agents may not reach a hook.
    fn subagents(&mut self) {
        if self.model.asks && self.seen {
            return;
        }
        for tool in &self.model.subagents {
            let arguments = r#"{"description":"look around","prompt":"Answer OK.","subagent_type":"general"}"#;
            let probe = Probe { tool, arguments };
            let entries = self.covering(tool);
            let event = self.event(&probe, &Nonce(String::new()), &Map::new());
            if let Err(text) = self.refused(&entries, &event, "", &[]) {
                let text = format!("calls of sub-agents may not reach the hook, and {tool} starts a sub-agent: {text}");
                // An untested version may ask all the same.
                let verdict = if self.model.asks { Verdict::NotProven } else { Verdict::Red };
                let version = match &self.model.program {
                    Some((program, seen)) if self.model.asks => {
                        format!("put {program} {seen} or later on the path; or ")
                    }
                    _ => String::new(),
                };
                let remedy = version + Fault::Subagent.remedy();
                self.findings.push(Finding { fault: Fault::Subagent, verdict, text, remedy });
                return;
            }
        }
    }

    /// Returns the first probe and the entries that see it.
    fn first(&self) -> Option<(&'static Probe, Vec<Entry>)> {
        let probe = Dialect::of(self.host).probes().first()?;
        Some((probe, self.covering(probe.tool)))
    }

    fn covering(&self, tool: &str) -> Vec<Entry> {
        self.settings.ours.iter().filter(|entry| entry.covers(self.model.matcher, tool)).cloned().collect()
    }

    /// Builds the event of a probe as the host writes it, with fields of the host's state.
    fn event(&self, probe: &Probe, nonce: &Nonce, state: &Map<String, Value>) -> String {
        let mut event = Dialect::of(self.host).probe_event(probe);
        let cwd = json!(self.machine.project);
        for (field, value) in self.model.event.iter().chain(state) {
            event[field] = if value == "@tool" { probe.tool.into() } else { value.clone() };
        }
        event["cwd"] = cwd;
        // Without a nonce it is not a probe, which the daemon would refuse for that reason alone.
        let mark =
            if nonce.0.is_empty() { "rulekeep-doctor".to_owned() } else { format!("{}-{}", Probe::MARK, nonce.0) };
        event.to_string().replace(Probe::MARK, &mark)
    }

    /// Checks that one of the entries refuses the event; one refusal is enough for every host.
    fn refused(&self, entries: &[Entry], event: &str, reason: &str, more: &[(&str, &Path)]) -> Result<(), String> {
        let mut failure = "no entry covers it".to_owned();
        for entry in entries {
            let end: End = self.machine.fire(&self.model.shell, &entry.command, event, entry.limit, more);
            match end.refusal(self.model.denies.as_deref(), reason) {
                Ok(()) => return Ok(()),
                Err(text) => failure = text,
            }
        }
        Err(failure)
    }

    /// Returns whether a failed hook blocks the call.
    fn closes(&self) -> bool {
        self.settings.ours.iter().any(|entry| entry.closes) && (self.model.program.is_none() || self.seen)
    }

    fn report(self) -> Report {
        let cells = self.model.cells.iter().map(|(fault, behavior)| {
            let finding = self.findings.iter().find(|finding| finding.fault == *fault);
            let state = match behavior {
                Behavior::None => State::Impossible,
                _ if finding.is_some_and(|finding| finding.verdict == Verdict::Red) => State::Runs,
                _ if finding.is_some() => State::NotProven,
                Behavior::Fired if self.probes.is_empty() || self.probes.iter().any(|(_, refused)| !refused) => {
                    State::NotProven
                }
                Behavior::Blocked | Behavior::Fired => State::Blocked,
                Behavior::Scope if self.settings.ours.iter().any(|entry| entry.runs_anywhere(self.model)) => {
                    State::Blocked
                }
                Behavior::Closes if self.closes() => State::Blocked,
                Behavior::Seen if self.seen => State::Blocked,
                Behavior::Runs | Behavior::Scope | Behavior::Closes | Behavior::Seen => State::Runs,
            };
            let remedy = match (state, &self.model.program) {
                (State::Blocked | State::Impossible, _) => String::new(),
                (_, Some((program, seen))) if matches!(behavior, Behavior::Seen | Behavior::Closes) => {
                    format!("put {program} {seen} or later on the path, and run `rulekeep hook install`")
                }
                _ => fault.remedy().to_owned(),
            };
            Cell { fault: *fault, state, remedy }
        });
        let verdict = self.findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Green);
        Report { host: self.host, verdict, cells: cells.collect(), findings: self.findings, probes: self.probes }
    }
}

/// The mark of one probe, which its refusal must repeat.
struct Nonce(String);

impl Nonce {
    fn new() -> Self {
        Self(hex::encode(rand::random::<[u8; 8]>()))
    }
}

/// Number of simultaneous calls.
const MANY: usize = 64;
/// A shorter time limit leaves a busy daemon no time.
const SHORTEST_LIMIT: Duration = Duration::from_secs(5);
