//! Idempotency keys: a `callId` identifies one request of an agent.

use std::sync::Mutex;

use sha2::{Digest as _, Sha256};

use crate::governor::intake::recent::Recent;
use crate::governor::{Decider, Hold as _, Log};
use crate::model::{Digest, Error, Intent, IntentId, ProofRecord, Timestamp};
use crate::proof::ProofQuery;

/// The most recent requests with an idempotency key, by their digests.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    // Held to compare and add a request, so that of two different requests with one key one is refused.
    recent: Mutex<Recent<Digest>>,
}

impl Log<'_> {
    /// Returns the newest record of a request with this idempotency key (`callId`).
    ///
    /// ```
    /// use rulekeep::intent::Input;
    /// use rulekeep::{Governor, Outcome};
    ///
    /// let governor = Governor::builder().auto_register().open_in_memory()?;
    /// let context = serde_json::Map::from_iter([("callId".to_owned(), "call_17".into())]);
    /// governor.enforce_input("support-1", Input::new("Read the file notes.txt").context(&context))?;
    /// // Later, where nobody has kept the record's id:
    /// let record = governor.log().record_of_call("support-1", "call_17")?;
    /// governor.report(&record.id, Outcome::Success)?;
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::ProofNotFound`] when there is none; [`Error::InvalidQuery`] for a malformed agent or call id;
    /// [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when the log cannot be read.
    pub fn record_of_call(self, agent_id: &str, call_id: &str) -> Result<ProofRecord, Error> {
        let query = ProofQuery::entity(agent_id).call(call_id).page_size(1);
        let found = self.governor.query(&query)?.items.into_iter().next();
        found.ok_or_else(|| Error::unknown_proof(call_id))
    }
}

impl Decider {
    /// The intent id that follows from the request's idempotency key, if it has one.
    pub(crate) fn id_of_call(intent: &Intent) -> Result<Option<IntentId>, Error> {
        let Some(call_id) = intent.call_id() else { return Ok(None) };
        let id = IntentId::of_call(&intent.agent_id, call_id);
        match intent.id.filter(|known| *known != id) {
            None => Ok(Some(id)),
            Some(_) => Err(Error::intent(
                "context.callId",
                "expected it together with the parsed input, or an intent without an id",
            )),
        }
    }

    /// The digest of a request with an idempotency key, to be stored with the decision.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] if another request had the key within a day, or among the last 16,384.
    pub(crate) fn noted_call(
        &self,
        intent: &Intent,
        id: Option<IntentId>,
        now: Timestamp,
    ) -> Result<Option<Digest>, Error> {
        let (Some(_), Some(id)) = (intent.call_id(), id) else { return Ok(None) };
        let digest = self.digest_of_call(intent)?;
        let refused = || Error::Conflict { message: "another request had this callId: give each its own".to_owned() };
        let recent = || self.calls.recent.hold();
        let is_known = recent().get(&id).is_some();
        if !is_known && !self.is_free_in_log(intent, id, digest, now)? {
            return Err(refused());
        }
        let mut recent = recent();
        match recent.get(&id) {
            Some(known) if *known == digest => {}
            Some(_) => return Err(refused()),
            None => {
                recent.insert(id, digest);
                if recent.len() > MOST_CALLS {
                    recent.pop_oldest();
                }
            }
        }
        Ok(Some(digest))
    }

    /// Returns whether the log has no request with this key, for example from before a restart, or exactly this one.
    fn is_free_in_log(&self, intent: &Intent, id: IntentId, digest: Digest, now: Timestamp) -> Result<bool, Error> {
        let since = Timestamp::from_millis(now.as_millis().saturating_sub(CALL_WINDOW_MILLIS));
        let query = ProofQuery::entity(intent.agent_id.as_str()).intent(id).from(since).page_size(MOST_RECORDS);
        let earlier = self.base.log.page_so_far(&query)?;
        let is_same = |record: &ProofRecord| {
            self.base.log.evidence_so_far(&record.id).is_ok_and(|evidence| evidence.is_of_call(digest))
        };
        // The answer to an escalation has the same id.
        Ok(earlier.is_empty() || earlier.iter().any(is_same))
    }

    /// A digest of the request text, if known, and of the whole intent.
    fn digest_of_call(&self, intent: &Intent) -> Result<Digest, Error> {
        let mut bare = intent.clone();
        (bare.id, bare.timestamp) = (None, None);
        let json = serde_json::to_vec(&bare)
            .map_err(|error| Error::internal("an intent cannot be serialized").caused_by(error))?;
        let text = self.intake.inputs.digest_of(intent).unwrap_or(Digest::ZERO);
        Ok(Digest::new(Sha256::new().chain_update(text.as_bytes()).chain_update(json).finalize().into()))
    }
}

/// Number of idempotency keys kept in memory.
const MOST_CALLS: usize = 16_384;
/// Number of records of one request that are compared.
const MOST_RECORDS: u64 = 16;
/// The time span of the log that is searched for a key.
const CALL_WINDOW_MILLIS: i64 = 24 * 60 * 60 * 1000;
