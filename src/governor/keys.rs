//! What the log keeps of API keys, and the doors for whoever checks them. What the states mean is the edge's to know;
//! here they are kept whole, also by a program that was built without the gateway.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::model::{Error, Sequence};
use crate::proof::StateDraft;

/// What the keys of their states start with.
pub(crate) const KEY_PREFIX: &str = "key/";
/// The state of one that is kept no longer.
const FORGOTTEN: &str = "null";

/// The API keys of a governor.
#[derive(Default)]
pub(crate) struct Keys {
    /// The last state of each. Held while one is put in order, so that what is kept is what the journal says.
    states: Mutex<BTreeMap<String, String>>,
    #[cfg(feature = "gateway")]
    desk: std::sync::OnceLock<std::sync::Arc<dyn std::any::Any + Send + Sync>>,
}

impl Keys {
    /// As the log has them.
    pub(super) fn restored(states: &[(String, Vec<u8>)]) -> Self {
        let ours = states.iter().filter(|(key, value)| key.starts_with(KEY_PREFIX) && value != FORGOTTEN.as_bytes());
        let texts = ours.map(|(key, value)| (key.clone(), String::from_utf8_lossy(value).into_owned()));
        Self {
            states: Mutex::new(texts.collect()),
            #[cfg(feature = "gateway")]
            desk: std::sync::OnceLock::new(),
        }
    }

    /// Puts every state in order again, and their keys to `keys`.
    pub(super) fn rerecord(
        &self,
        mut order: impl FnMut(StateDraft) -> Result<Sequence, Error>,
        keys: &mut BTreeSet<String>,
    ) -> Result<(), Error> {
        for (key, value) in &*self.states() {
            order(StateDraft::new(key.clone(), value.clone()))?;
            keys.insert(key.clone());
        }
        Ok(())
    }

    fn states(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(feature = "gateway")]
mod doors {
    use std::any::Any;
    use std::sync::Arc;

    use super::{Error, FORGOTTEN, StateDraft};
    use crate::governor::Governor;
    use crate::system::Clock;

    impl Governor {
        /// What checks keys, made when it is first asked for: one for all who ask, so that a key that one of them
        /// revokes is revoked for all.
        pub(crate) fn key_desk(
            &self,
            make: impl FnOnce() -> Result<Arc<dyn Any + Send + Sync>, Error>,
        ) -> Result<Arc<dyn Any + Send + Sync>, Error> {
            let desk = &self.inner.keys.desk;
            if let Some(desk) = desk.get() {
                return Ok(Arc::clone(desk));
            }
            let made = make()?;
            Ok(Arc::clone(desk.get_or_init(|| made)))
        }

        /// The states of keys, by the keys of these.
        pub(crate) fn key_states(&self) -> Vec<(String, String)> {
            self.inner.keys.states().iter().map(|(key, value)| (key.clone(), value.clone())).collect()
        }

        /// Keeps a state of a key, and waits until it is on disk, whatever the log promises for decisions: a key that was
        /// said to be revoked must not be one again after a crash.
        pub(crate) fn keep_key(&self, key: String, value: String, cause: &str) -> Result<(), Error> {
            self.inner.log.wait_verified()?;
            let mut states = self.inner.keys.states();
            let draft = StateDraft::new(key.clone(), value.clone());
            let sequence = self.inner.log.set_state(self.inner.clock.now(), draft, cause.to_owned())?;
            states.insert(key, value);
            drop(states);
            self.inner.log.settle_in_any_case(sequence)
        }

        /// Keeps a key no longer.
        pub(crate) fn forget_key(&self, key: &str) -> Result<(), Error> {
            let mut states = self.inner.keys.states();
            let gone = StateDraft::new(key.to_owned(), FORGOTTEN.to_owned());
            self.inner.log.set_state(self.inner.clock.now(), gone, "an API key was forgotten".to_owned())?;
            states.remove(key);
            Ok(())
        }

        /// Where the time comes from.
        pub(crate) fn time(&self) -> &Arc<dyn Clock> {
            &self.inner.clock
        }

        /// Whether a decision comes back before it is on disk, whatever its risk.
        #[cfg(feature = "http")]
        pub(crate) fn answers_at_once(&self) -> bool {
            self.inner.log.takes_at_once()
        }

        /// 128 random bits.
        pub(crate) fn random_bits(&self) -> u128 {
            self.inner.entropy.bits()
        }
    }
}
