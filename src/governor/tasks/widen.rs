//! Approvals of calls under a task.

use super::live::Endorsement;
use crate::governor::TaskBook;
use crate::model::{Error, ProofId};

impl TaskBook {
    /// Refuses an approval under a task that is no longer open.
    pub(crate) fn check_task_of(&self, asked: ProofId) -> Result<(), Error> {
        // Unreadable evidence is refused where its other parts are checked.
        let Ok(evidence) = self.base.log.evidence(&asked) else { return Ok(()) };
        let id = evidence.detail.get("task").and_then(|task| task["id"].as_str()?.parse().ok());
        id.map_or(Ok(()), |id| self.live_task(id).map(drop))
    }

    /// Records that a reviewer approved a call. If the approval is for the whole task, the escalated values and, if it
    /// was in doubt, the act are added to the mandates of the task and its ancestors. A task that is no longer open
    /// gains nothing.
    pub(crate) fn endorsed(&self, asked: ProofId, is_for_task: bool) -> Result<(), Error> {
        let asked_under = self.write().asked.remove(&asked);
        let Some(id) = asked_under else { return Ok(()) };
        let Ok(task) = self.live_task(id) else { return Ok(()) };
        let Some(endorsement) = task.lock().endorsements.remove(&asked) else { return Ok(()) };
        for level in task.chain() {
            // An approval counts as one granted call.
            level.lock().made.extend(endorsement.call.map(|call| (call, true)));
        }
        if !is_for_task || endorsement.values.is_empty() && endorsement.acts.is_empty() {
            return Ok(());
        }
        let Endorsement { values, acts, .. } = &endorsement;
        task.chain().try_for_each(|level| self.extend(level.id, "", "widen_task", values, acts).map(drop))
    }
}
