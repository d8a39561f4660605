//! The thread that copies records: those that the organisation wants, once a checkpoint that covers them is anchored.

use std::sync::PoisonError;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rulekeep::Governor;
use rulekeep::event::{EventData, EventType};
use rulekeep::extension::Extension;
use rulekeep::proof::Sequence;
use serde_json::value::to_raw_value;

use super::{CopyRule, Shared};
use crate::wire::{Copied, Copy, Records};

impl Shared {
    /// Copies records until the membership or the governor ends.
    pub(super) fn copy_until_it_ends(&self) {
        // Everything before is copied, as far as this thread knows.
        let mut copied = None;
        loop {
            let state = self.state();
            let is_idle = |state: &super::State| {
                let (known, anchored) = (copied.unwrap_or(0).max(state.session.copied()), state.session.anchored());
                !state.is_leaving && (known >= anchored || self.settings.copies == CopyRule::Nothing)
            };
            let waited = self.changed.wait_timeout_while(state, RETRY, |state| is_idle(state));
            let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if state.is_leaving {
                return;
            }
            let (from, anchored) = (copied.unwrap_or(0).max(state.session.copied()), state.session.anchored());
            if from >= anchored {
                // The answer that said so may have been lost.
                state.copy_problem = None;
            }
            drop(state);
            let Some(governor) = self.governor.upgrade() else { return };
            if from >= anchored || self.settings.copies == CopyRule::Nothing {
                continue;
            }
            let result = self.copy(&governor, from, anchored);
            drop(governor);
            let mut state = self.state();
            match result {
                Ok(until) => {
                    copied = Some(until);
                    state.copy_problem = None;
                }
                Err(why) => {
                    // The hub says in the next answer how far it has got.
                    copied = None;
                    state.copy_problem = Some(format!("records are not copied: {why}"));
                    drop(self.changed.wait_timeout_while(state, RETRY, |state| !state.is_leaving));
                }
            }
        }
    }

    /// Copies the records of the entries from one place to the anchored size.
    fn copy(&self, governor: &Governor, from: u64, anchored: u64) -> Result<u64, String> {
        let extension = Extension::of(governor);
        let mut events = extension.events_from(Sequence::new(from), &[EventType::Recorded], None);
        let mut batch =
            Records { governor: self.key.name().to_owned(), size: anchored, until: from, records: Vec::new() };
        loop {
            let event = events.poll().map_err(|error| error.message())?;
            let next = event.filter(|event| event.id.sequence().get() < anchored);
            let is_last = next.is_none();
            if let Some(event) = next {
                let index = event.id.sequence().get();
                batch.until = index + 1;
                if let EventData::Recorded(record) = &event.data
                    && self.settings.copies.wants(record)
                {
                    let path = extension.inclusion(index, anchored).map_err(|error| error.message())?;
                    let path = path.iter().map(|hash| STANDARD.encode(hash.as_bytes())).collect();
                    let record = to_raw_value(record).map_err(|error| error.to_string())?;
                    batch.records.push(Copy { record, path });
                }
            }
            if is_last {
                batch.until = anchored;
            }
            if is_last || batch.records.len() >= BATCH {
                let copied: Copied = self
                    .link
                    .call(&self.key, "/fleet/v1/records", &batch, TIMEOUT)
                    .map_err(|error| error.to_string())?;
                batch.records.clear();
                if is_last {
                    return Ok(copied.copied);
                }
            }
        }
    }
}

const BATCH: usize = 100;
const TIMEOUT: Duration = Duration::from_secs(30);
const RETRY: Duration = Duration::from_secs(10);
