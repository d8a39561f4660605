//! Approvals of calls under a task.

use super::super::Governor;
use super::live::Endorsement;
use crate::model::{Error, ProofId};

impl Governor {
    /// Refuses what was approved under a task that is no longer open.
    pub(in crate::governor) fn check_task_of(&self, asked: ProofId) -> Result<(), Error> {
        // Evidence that cannot be read is refused where the rest of it is looked at.
        let Ok(evidence) = self.inner.log.evidence(&asked) else { return Ok(()) };
        let id = evidence.detail.get("task").and_then(|task| task["id"].as_str()?.parse().ok());
        id.map_or(Ok(()), |id| self.live_task(id).map(drop))
    }

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
        let Endorsement { values, acts, .. } = &endorsement;
        task.chain().try_for_each(|level| self.extend(level.id, "", "widen_task", values, acts).map(drop))
    }
}
