//! `rulekeep tune`: the questions that were asked, by cause, and the smallest changes that would end them.
//!
//! Only questions that the user agreed to whenever an answer is known get a change. A question by a rule gets an
//! exception of that rule for the command or tool; a question by a task's mandate gets an entry in `config.toml`.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use rulekeep::escalation::{EscalationId, EscalationState};
use rulekeep::proof::ProofId;
use rulekeep::{Decision, Governor};
use serde::Serialize;
use serde_json::{Value, json};
use similar::TextDiff;
use toml_edit::{Array, DocumentMut, Item, Table, value};

use super::past::{Past, Store};
use super::suggest;
use crate::home::Home;
use crate::output::clean;
use rulekeep_server::calls::request::StoredIntent;

/// The arguments of `rulekeep tune`.
#[derive(Args)]
pub struct Tuning {
    #[command(flatten)]
    suggestion: suggest::Arguments,
    /// Writes a whole policy that would have allowed the habits in the log, instead of changes
    #[arg(long)]
    whole: bool,
}

/// The cause of a question.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
enum Cause {
    /// A rule of the policy.
    Rule(String),
    /// A fault that the mandate found.
    Mandate(String),
}

/// Questions of one cause about the same thing.
#[derive(Debug, Default, Serialize)]
struct Questions {
    asked: u64,
    /// Approved by a reviewer, or the tool ran after the host's question.
    agreed: u64,
    refused: u64,
    example: Option<ProofId>,
}

/// The subject of a group of questions: the cause, the command or tool, and the values at fault.
type Key = (Cause, String, Vec<String>);

/// Prints the questions and the changes. Returns whether there is a change.
pub fn run(arguments: &Tuning) -> Result<bool, Box<dyn Error>> {
    if arguments.whole {
        return suggest::run(&arguments.suggestion);
    }
    let governor = arguments.suggestion.store.open()?;
    let groups = groups(&arguments.suggestion.store, &governor)?;
    governor.close()?;
    let mut ordered: Vec<(&Key, &Questions)> = groups.iter().collect();
    ordered.sort_by_key(|(_, asked)| std::cmp::Reverse(asked.asked));
    let home = Home::find()?;
    let mut files = Files::read(&home);
    for (key, asked) in &ordered {
        if asked.refused == 0 && asked.agreed > 0 {
            files.end(key);
        }
    }
    let diff = files.diff();
    if arguments.suggestion.json {
        let questions: Vec<Value> = ordered
            .iter()
            .map(|((cause, about, values), asked)| {
                json!({
                    "cause": cause, "about": about, "values": values, "asked": asked.asked, "agreed": asked.agreed,
                    "refused": asked.refused, "example": asked.example,
                })
            })
            .collect();
        super::print_json(&json!({ "questions": questions, "diff": diff }))?;
        return Ok(!diff.is_empty());
    }
    super::print(told(&ordered, &diff))?;
    Ok(!diff.is_empty())
}

/// The questions and the changes, as people read them.
fn told(ordered: &[(&Key, &Questions)], diff: &str) -> String {
    if ordered.is_empty() {
        return "Nobody was asked anything.\n".to_owned();
    }
    let mut text = String::new();
    for ((cause, about, values), asked) in ordered.iter().take(MOST_SHOWN) {
        let cause = match cause {
            Cause::Rule(rule) => format!("rule {rule}"),
            Cause::Mandate(kind) => format!("mandate: {kind}"),
        };
        let values = if values.is_empty() { String::new() } else { format!(": {}", values.join(", ")) };
        let line = format!(
            "{:>4} asked, {} agreed, {} refused  {cause}{values}  {about}",
            asked.asked, asked.agreed, asked.refused
        );
        let _ = writeln!(text, "{}", clean(&line));
    }
    if diff.is_empty() {
        text.push_str("\nNo change would end a question that was always agreed to.\n");
    } else {
        text.push_str("\nThese changes would end the questions that were always agreed to:\n\n");
        text.push_str(diff);
    }
    text
}

fn groups(store: &Store, governor: &Governor) -> Result<BTreeMap<Key, Questions>, Box<dyn Error>> {
    let mut groups: BTreeMap<Key, Questions> = BTreeMap::new();
    let mut open: HashMap<ProofId, Key> = HashMap::new();
    store.range.each(governor, |past| {
        if let Some(key) = past.record.resolves.and_then(|asked| open.remove(&asked)) {
            let asked = groups.entry(key).or_default();
            match past.record.decision {
                Decision::Allow | Decision::Degrade => asked.agreed += 1,
                Decision::Deny | Decision::Escalate => asked.refused += 1,
            }
        } else if past.record.decision == Decision::Escalate
            && let Some(key) = key_of(&past)
        {
            let asked = groups.entry(key.clone()).or_default();
            asked.asked += 1;
            asked.example.get_or_insert(past.record.id);
            open.insert(past.record.id, key);
        }
    })?;
    // A host does not report its user's answer; that the tool ran tells it.
    for (asked, key) in open {
        let Ok(escalation) = governor.escalations().get(EscalationId::of(asked)) else { continue };
        let group = groups.entry(key).or_default();
        match escalation.state {
            EscalationState::Expired if escalation.why.as_deref().is_some_and(|why| why.contains("presumed")) => {
                group.agreed += 1;
            }
            EscalationState::Approved => group.agreed += 1,
            EscalationState::Rejected => group.refused += 1,
            _ => {}
        }
    }
    Ok(groups)
}

/// The group of a question.
fn key_of(past: &Past) -> Option<Key> {
    let said = serde_json::to_value(&past.intent).ok().and_then(|intent| StoredIntent::read(Some(&intent)).said());
    let about = subject(past).or(said)?;
    let faults = past.detail.task.get("faults").and_then(Value::as_array).filter(|faults| !faults.is_empty());
    if let Some(faults) = faults {
        let text = |fault: &Value, key: &str| fault.get(key).and_then(Value::as_str).map(str::to_owned);
        let kind = faults.iter().find_map(|fault| text(fault, "kind"))?;
        let values = faults.iter().filter_map(|fault| text(fault, "value")).take(MOST_VALUES).collect();
        return Some((Cause::Mandate(kind), about, values));
    }
    let rule = past.detail.rules.first()?;
    Some((Cause::Rule(rule.clone()), about, Vec::new()))
}

/// The command or tool that a question is about: the program with its subcommand, or the tool.
fn subject(past: &Past) -> Option<String> {
    let facts = past.intent.facts();
    let risk = |act: &&rulekeep::intent::Act| act.does.iter().map(|does| does.risk).max();
    let act = facts.acts.iter().rev().max_by_key(risk)?;
    match &act.command {
        Some(command) => {
            let plain = |word: &&str| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
            let words: Vec<&str> = command.split_whitespace().take(2).take_while(plain).collect();
            (!words.is_empty()).then(|| format!("{} *", words.join(" ")))
        }
        None => act.tool.clone(),
    }
}

/// The files that a change is made in.
struct Files {
    policy: Changed,
    config: Changed,
}

struct Changed {
    path: PathBuf,
    before: String,
    document: Option<DocumentMut>,
}

impl Files {
    fn read(home: &Home) -> Self {
        Self { policy: Changed::read(home.policy()), config: Changed::read(home.config_file()) }
    }

    /// Changes what ends a group of questions, if anything can.
    fn end(&mut self, (cause, about, values): &Key) {
        match cause {
            Cause::Rule(rule) => {
                // A tool's name has no blank; a command has its pattern behind one.
                let clause = if about.contains(' ') { "commands" } else { "tools" };
                if let Some(document) = &mut self.policy.document {
                    except(document, rule, clause, about);
                }
            }
            Cause::Mandate(kind) if matches!(kind.as_str(), "source" | "leaves" | "removes") => {
                let Some(document) = &mut self.config.document else { return };
                for value in values {
                    // A path stands for its folder; a command and a host for themselves.
                    let (key, value) = match value.strip_prefix('/') {
                        Some(_) => ("folders", Path::new(value).parent().and_then(Path::to_str).unwrap_or(value)),
                        None => ("trusted", value.as_str()),
                    };
                    push(document["hooks"].or_insert(Item::Table(Table::new())), key, value);
                }
            }
            Cause::Mandate(_) => {}
        }
    }

    fn diff(&self) -> String {
        format!("{}{}", self.policy.diff(), self.config.diff())
    }
}

impl Changed {
    fn read(path: PathBuf) -> Self {
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        let document = before.parse().ok().filter(|_| !before.is_empty());
        Self { path, before, document }
    }

    fn diff(&self) -> String {
        let after = self.document.as_ref().map_or_else(|| self.before.clone(), ToString::to_string);
        if after == self.before {
            return String::new();
        }
        let name = self.path.display().to_string();
        TextDiff::from_lines(&self.before, &after).unified_diff().header(&name, &name).to_string()
    }
}

/// Adds an exception to a rule: what it names, the rule leaves alone.
fn except(document: &mut DocumentMut, rule: &str, clause: &str, about: &str) {
    let Some(rules) = document.get_mut("rule").and_then(Item::as_array_of_tables_mut) else { return };
    let Some(table) = rules.iter_mut().find(|table| table.get("id").and_then(Item::as_str) == Some(rule)) else {
        return;
    };
    let matched = table.entry("match").or_insert(Item::Table(Table::new()));
    let Some(matched) = matched.as_table_like_mut() else { return };
    let inline = || Item::Value(toml_edit::Value::InlineTable(toml_edit::InlineTable::new()));
    push(matched.entry("not").or_insert_with(inline), clause, about);
}

/// Adds a text to a list.
fn push(table: &mut Item, key: &str, text: &str) {
    let Some(table) = table.as_table_like_mut() else { return };
    let list = table.entry(key).or_insert_with(|| value(Array::new()));
    if let Some(list) = list.as_array_mut()
        && !list.iter().any(|known| known.as_str() == Some(text))
    {
        list.push(text);
    }
}

/// Number of groups of questions that people are shown.
const MOST_SHOWN: usize = 40;
/// Number of values of a question that its group is told by.
const MOST_VALUES: usize = 4;
