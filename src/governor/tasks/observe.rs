//! Results that are observed under a task, and their loss.

use serde_json::Value;

use super::call::Called;
use super::live::Running;
use crate::governor::{TaskBook, conflict};
use crate::mandate::{self, Area, Observed};
use crate::model::{Error, Facts, Input, Operation, ProofId, Resource, TaskId, TaskState, ToolCall};
use crate::parse::{self, Parser, conceal_text};

impl TaskBook {
    /// Records the result of a call under its task and that task's ancestors.
    pub(super) fn observe_result(&self, id: TaskId, call: &ToolCall, result: &Value) -> Result<(), Error> {
        let task = self.live_task(id)?;
        let text = match result {
            Value::String(text) => text.clone(),
            result => result.to_string(),
        };
        if text.len() > LONGEST_RESULT {
            return Err(Error::PayloadTooLarge { what: "result", size: text.len(), limit: LONGEST_RESULT });
        }
        let digest = Called::digest(task.salt, &call.name, &call.arguments);
        let was_granted = {
            let running = task.lock();
            running.made.get(&digest.key()).copied().or_else(|| running.loose.contains(&*call.name).then_some(false))
        };
        let Some(was_granted) = was_granted else {
            let name = crate::governor::states::masked(&call.name);
            return conflict(format!("no call of {name:.60?} with these arguments was decided under the task {id}"));
        };
        let parsed = self.intake.read_input(task.agent_id.as_str(), Input::new(&call.to_text()), Parser::parse)?;
        let capabilities = parsed.result.intent.required_capabilities;
        let called = Called { tool: call.name.clone(), arguments: call.arguments.clone() };
        let catalogue = self.intake.tools.load_full();
        let resource = capabilities.first().and_then(crate::model::Capability::resource).unwrap_or(Resource::Unknown);
        let has_id = called.arguments.keys().any(|key| key == "id" || key.ends_with("_id") || key.ends_with("Id"));
        // The content of a record, unless it is from an address book, is external text, even if it looks structured.
        let is_book = mandate::is_address_book(resource);
        let writes = capabilities.iter().any(|one| one.operation() == Some(Operation::Write));
        let only_reads = capabilities.iter().all(|one| one.operation() == Some(Operation::Read));
        for piece in pieces(&text) {
            let masked = conceal_text(piece);
            let orders = self.intake.parser.orders_in(piece);
            for level in task.chain() {
                let mut running = level.lock();
                let is_read = only_reads
                    || running.fit(&self.intake.parser, &catalogue, &call.name).is_some_and(|rated| rated.is_read);
                let observed = Observed {
                    tool: &call.name,
                    resource,
                    is_making: was_granted && writes && !has_id,
                    is_effect: !is_read,
                    // A piece of a long result has no structure of its own.
                    is_content: is_read && (called.reads_by_place() || has_id && !is_book) || piece.len() < text.len(),
                    text: piece,
                    masked: masked.as_deref().unwrap_or(piece),
                };
                let Running { words, memory, .. } = &mut *running;
                memory.observe(observed, words);
                for parse::Order { address, text, effects } in &orders {
                    let shown = if text.starts_with(&**address) { text } else { &format!("{address}: {text}") };
                    let shown = crate::model::excerpt(&crate::governor::states::masked(shown));
                    running.add_order(Some(mandate::Order::new(shown, text, effects.clone())));
                }
            }
        }
        Ok(())
    }

    /// Adds what an escalated call needed to the mandate, in memory only.
    pub(super) fn presume_agreement(&self, id: TaskId, escalated: ProofId) -> Result<(), Error> {
        let task = self.live_task(id)?;
        let mut running = task.lock();
        let Some(endorsement) = running.endorsements.remove(&escalated) else { return Ok(()) };
        for value in &endorsement.values {
            running.words.trust(value);
            if value.starts_with('/') {
                running.area.add_project(value);
            }
        }
        Ok(())
    }

    /// Notes paths that granted calls of a task created.
    pub(super) fn note_created<T: AsRef<str>>(
        &self,
        id: TaskId,
        paths: impl IntoIterator<Item = T>,
        is_own_text: bool,
    ) -> Result<(), Error> {
        self.note_paths(id, paths, |area, path| area.own(path, is_own_text))
    }

    /// Takes back paths that were noted as created.
    pub(super) fn note_disowned<T: AsRef<str>>(
        &self,
        id: TaskId,
        paths: impl IntoIterator<Item = T>,
    ) -> Result<(), Error> {
        self.note_paths(id, paths, Area::disown)
    }

    /// Changes the area of a task, and of those that it was delegated from, by paths. Without any it looks up nothing.
    fn note_paths<T: AsRef<str>>(
        &self,
        id: TaskId,
        paths: impl IntoIterator<Item = T>,
        note: impl Fn(&mut Area, &str),
    ) -> Result<(), Error> {
        let mut paths = paths.into_iter().peekable();
        if paths.peek().is_none() {
            return Ok(());
        }
        let task = self.live_task(id)?;
        for path in paths {
            task.chain().for_each(|level| note(&mut level.lock().area, path.as_ref()));
        }
        Ok(())
    }

    /// Returns whether the riskiest parts of a call only remove or run what the task created.
    pub(super) fn is_own_work(&self, id: TaskId, facts: &Facts) -> Result<bool, Error> {
        Ok(self.live_task(id)?.lock().area.is_own_work(facts))
    }

    /// Forgets the results observed under open tasks, and ends the tasks whose words were erased.
    pub(crate) fn forget_observed(&self) -> Result<(), Error> {
        let live: Vec<_> = self.read().live.values().cloned().collect();
        for task in live {
            task.lock().memory.lose();
            let record = self.record(task.id)?;
            let is_erased = record
                .proofs
                .iter()
                .any(|proof| matches!(self.base.log.evidence(proof), Err(Error::EvidenceErased { .. })));
            if is_erased {
                self.end_task(task.id, TaskState::Ended, Some("its words were erased".to_owned()), None)?;
            }
        }
        Ok(())
    }
}

/// The pieces in which a result is read; one if it is short enough.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = (0..=rest.len().min(LONGEST_PIECE)).rev().find(|&end| rest.is_char_boundary(end))?;
        let (piece, behind) = rest.split_at(end);
        rest = behind;
        Some(piece)
    })
}

/// Maximum size of a result in bytes.
const LONGEST_RESULT: usize = 8 << 20;
/// Maximum size of a piece in bytes.
const LONGEST_PIECE: usize = 1 << 20;
