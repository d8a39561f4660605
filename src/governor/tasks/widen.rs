//! Approvals that widen the mandate of a task.

use super::super::Governor;
use crate::model::{Error, ProofId};

impl Governor {
    /// Adds what a reviewer approved for the whole task to its mandate: the values that were asked about, and the act where
    /// it was not sure. A task that is no longer open gains nothing.
    pub(in crate::governor) fn widen_task(&self, asked: ProofId) -> Result<(), Error> {
        let Some(id) = self.inner.tasks.take_asked(asked) else { return Ok(()) };
        let Ok(task) = self.live_task(id) else { return Ok(()) };
        let Some(endorsement) = task.lock().endorsements.remove(&asked) else { return Ok(()) };
        if endorsement.values.is_empty() && endorsement.acts.is_empty() {
            return Ok(());
        }
        self.extend(id, "", "widen_task", &endorsement.values, &endorsement.acts).map(drop)
    }
}
