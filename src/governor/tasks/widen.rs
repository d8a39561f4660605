//! Approvals of calls under a task.

use super::super::Governor;
use crate::model::{Error, ProofId};

impl Governor {
    /// Notes that a reviewer approved a call. Where that is for the whole task, what was asked about is added to its mandate and
    /// to those of the tasks that it was delegated from: the values, and the act where it was not sure. A task that is no
    /// longer open gains nothing.
    pub(in crate::governor) fn endorsed(&self, asked: ProofId, is_for_task: bool) -> Result<(), Error> {
        let Some(id) = self.inner.tasks.take_asked(asked) else { return Ok(()) };
        let Ok(task) = self.live_task(id) else { return Ok(()) };
        let Some(endorsement) = task.lock().endorsements.remove(&asked) else { return Ok(()) };
        for level in task.chain() {
            // What is paid by an approval is paid.
            level.lock().made.extend(endorsement.call.map(|call| (call, true)));
        }
        if !is_for_task || endorsement.values.is_empty() && endorsement.acts.is_empty() {
            return Ok(());
        }
        let mut widened = task.chain().map(|level| level.id);
        widened.try_for_each(|level| {
            self.extend(level, "", "widen_task", &endorsement.values, &endorsement.acts).map(drop)
        })
    }
}
