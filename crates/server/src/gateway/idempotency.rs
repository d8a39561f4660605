//! Stored responses by idempotency key: a client's retry decides and records nothing twice. A governor has a single
//! table, whatever transports serve it.

use rulekeep::extension::Extension;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use rulekeep::Error;
use rulekeep::Governor;
use rulekeep::extension::KeyId;
use rulekeep::extension::Standing;
use rulekeep::proof::ProofId;
use rulekeep::task::TaskId;

/// A request with an idempotency key.
pub(crate) struct Once<'a> {
    pub(crate) key: KeyId,
    /// The name of the call.
    pub(crate) call: &'a str,
    pub(crate) idempotency_key: &'a str,
    pub(crate) body: &'a [u8],
    /// Checks that the API key is still accepted: the body may take time to arrive, and so may the response.
    pub(crate) is_accepted: &'a (dyn Fn() -> Result<(), Error> + Send + Sync),
}

/// A response that was made.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) answer: Vec<u8>,
    /// The records that grant an action now.
    pub(crate) granted: Vec<ProofId>,
    /// The task under which they were granted.
    pub(crate) task: Option<TaskId>,
    /// The response contains a secret, so it is not stored.
    pub(crate) is_secret: bool,
}

/// The response to give.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Given {
    Now(Vec<u8>),
    Again(Vec<u8>),
}

/// The most recent responses by idempotency key.
pub(super) struct Answers {
    /// Maximum number of bytes stored.
    most: usize,
    // Held for a lookup or an insertion; never while a response is made or the clock is read.
    table: Mutex<Table>,
}

/// Maximum number of bytes stored: about 60,000 responses of `/enforce`.
const MOST: usize = 64 << 20;
/// Memory of a stored response besides its text and its grants, in bytes.
// SOURCE: resident memory before and after 60,000 responses of 0, 100 and 700 bytes, 2026-11-22, x86-64: 318 to 399
// each.
const BESIDE: usize = 384;
/// Lifetime of a stored response: one day.
const LASTS: Duration = Duration::from_secs(24 * 3_600);
/// Maximum number of expired responses dropped at once, so that no request waits for all of them.
const AT_ONCE: usize = 64;

impl Answers {
    pub(super) fn new() -> Self {
        Self::of(MOST)
    }

    fn of(most: usize) -> Self {
        Self { most, table: Mutex::default() }
    }

    /// Returns the stored response, or the one that `make` gives now. A request with the same key waits while another
    /// one makes the response.
    ///
    /// # Errors
    ///
    /// * The errors of `make`, and of an API key that is no longer accepted. Nothing is stored then, so the same
    ///   idempotency key may be used again.
    /// * [`Error::Conflict`] if the key was used with another body, if the response contained a secret, or if what it
    ///   granted is no longer valid.
    pub(super) async fn once(
        &self,
        governor: &Governor,
        once: &Once<'_>,
        make: impl Future<Output = Result<Made, Error>>,
    ) -> Result<Given, Error> {
        let (name, asked) = (Name::of(once), Sha256::digest(once.body).into());
        let _making = loop {
            match self.look(Extension::of(governor).clock().monotonic(), &name) {
                Found::Kept(kept) => {
                    (once.is_accepted)()?;
                    return kept.again(governor, &asked).map(Given::Again);
                }
                // An error means that the other request has ended, in either way.
                Found::Making(mut made) => _ = made.changed().await,
                Found::Nothing(making) => break making,
            }
        };
        // INVARIANT: read before the decision, so that a later kill-switch change invalidates the response.
        let standing = Extension::of(governor).standing();
        let made = make.await?;
        let answer = if made.is_secret { None } else { Some(made.answer.as_slice().into()) };
        let kept = Kept { name, key: once.key, asked, standing, granted: made.granted.into(), task: made.task, answer };
        self.keep(Extension::of(governor).clock().monotonic(), kept);
        Ok(Given::Now(made.answer))
    }

    fn look(&self, now: Duration, name: &Name) -> Found<'_> {
        let mut table = self.table();
        table.drop_over(now);
        if let Some(kept) = table.find(now, name) {
            return Found::Kept(kept);
        }
        if let Some(making) = table.making.get(name) {
            return Found::Making(making.clone());
        }
        let (told, making) = watch::channel(());
        table.making.insert(*name, making);
        Found::Nothing(Making { answers: self, name: *name, _told: told })
    }

    fn keep(&self, now: Duration, kept: Kept) {
        let mut table = self.table();
        table.keep(now, kept);
        table.shrink_to(self.most);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing can panic between two related changes.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Identifies a request: a digest of the API key, the call and the idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Name([u8; 32]);

impl Name {
    fn of(once: &Once<'_>) -> Self {
        let mut digest = Sha256::new();
        // None of them contains a zero byte.
        for part in [once.key.to_string().as_str(), once.call, once.idempotency_key] {
            digest.update(part);
            digest.update([0]);
        }
        Self(digest.finalize().into())
    }
}

enum Found<'a> {
    Kept(Arc<Kept>),
    /// Another request is making it.
    Making(watch::Receiver<()>),
    Nothing(Making<'a>),
}

/// The request that makes a response; those waiting for it continue when this is dropped.
struct Making<'a> {
    answers: &'a Answers,
    name: Name,
    _told: watch::Sender<()>,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.answers.table().making.remove(&self.name);
    }
}

/// A stored response.
#[derive(Debug)]
struct Kept {
    name: Name,
    key: KeyId,
    /// The digest of the request body.
    asked: [u8; 32],
    standing: Standing,
    granted: Box<[ProofId]>,
    task: Option<TaskId>,
    /// `None` if the response contained a secret.
    answer: Option<Box<[u8]>>,
}

impl Kept {
    fn again(&self, governor: &Governor, asked: &[u8; 32]) -> Result<Vec<u8>, Error> {
        let conflict = |message: String| Err(Error::Conflict { message });
        if self.asked != *asked {
            return conflict("this idempotency key was used with another body before".to_owned());
        }
        let Some(answer) = &self.answer else {
            let message = "this request was already carried out under this idempotency key, and its secret is shown \
                           only once; if the secret is lost, revoke or remove the object and ask again with another \
                           key";
            return conflict(message.to_owned());
        };
        if let (Some(first), Some(why)) =
            (self.granted.first(), Extension::of(governor).change_since(&self.standing, &self.granted))
        {
            return conflict(format!(
                "this idempotency key was granted by {first}, but {why} since then, so the grant is no longer valid; \
                 ask again with another key"
            ));
        }
        if let (Some(first), Some(task)) = (self.granted.first(), self.task)
            && let Err(error) = governor.tasks().get(task).and_then(|task| task.opened())
        {
            return conflict(format!(
                "this idempotency key was granted by {first}, but the grant is no longer valid: {error}"
            ));
        }
        Ok(answer.to_vec())
    }

    fn bytes(&self) -> usize {
        self.answer.as_ref().map_or(0, |answer| answer.len()) + size_of_val(&*self.granted) + BESIDE
    }
}

/// The stored responses, and those being made.
#[derive(Default)]
struct Table {
    making: HashMap<Name, watch::Receiver<()>>,
    /// By insertion number, oldest first.
    kept: BTreeMap<u64, (Duration, Arc<Kept>)>,
    turns: HashMap<Name, u64>,
    shares: HashMap<KeyId, Share>,
    /// The shares by size, largest last.
    by_bytes: BTreeSet<(usize, KeyId)>,
    bytes: usize,
    last_turn: u64,
}

/// The stored responses of one API key.
#[derive(Default)]
struct Share {
    /// Oldest first.
    turns: VecDeque<u64>,
    bytes: usize,
}

impl Table {
    fn find(&self, now: Duration, name: &Name) -> Option<Arc<Kept>> {
        let (at, kept) = self.kept.get(self.turns.get(name)?)?;
        (!is_over(*at, now)).then(|| Arc::clone(kept))
    }

    fn keep(&mut self, now: Duration, kept: Kept) {
        // The previous response expired.
        if let Some(turn) = self.turns.get(&kept.name) {
            self.remove(*turn);
        }
        self.last_turn += 1;
        let (turn, key, bytes) = (self.last_turn, kept.key, kept.bytes());
        self.turns.insert(kept.name, turn);
        self.kept.insert(turn, (now, Arc::new(kept)));
        self.bytes += bytes;
        self.reshare(key, |share| {
            share.turns.push_back(turn);
            share.bytes += bytes;
        });
    }

    fn remove(&mut self, turn: u64) {
        let Some((_, kept)) = self.kept.remove(&turn) else { return };
        let bytes = kept.bytes();
        self.turns.remove(&kept.name);
        self.bytes -= bytes;
        self.reshare(kept.key, |share| {
            // The numbers are sorted, and it usually is the first.
            if let Ok(place) = share.turns.binary_search(&turn) {
                share.turns.remove(place);
            }
            share.bytes -= bytes;
        });
    }

    fn reshare(&mut self, key: KeyId, change: impl FnOnce(&mut Share)) {
        let share = self.shares.entry(key).or_default();
        self.by_bytes.remove(&(share.bytes, key));
        change(share);
        if share.turns.is_empty() {
            self.shares.remove(&key);
        } else {
            self.by_bytes.insert((share.bytes, key));
        }
    }

    /// Drops some of the expired responses.
    fn drop_over(&mut self, now: Duration) {
        for _ in 0..AT_ONCE {
            match self.kept.first_key_value() {
                Some((turn, (at, _))) if is_over(*at, now) => self.remove(*turn),
                _ => return,
            }
        }
    }

    /// Drops responses above the limit: the oldest ones of the API key that uses the most. A key with many requests
    /// displaces its own first, and no key loses any of an equal share.
    fn shrink_to(&mut self, most: usize) {
        while self.bytes > most
            && let Some((_, key)) = self.by_bytes.last()
            && let Some(turn) = self.shares.get(key).and_then(|share| share.turns.front())
        {
            self.remove(*turn);
        }
    }
}

fn is_over(at: Duration, now: Duration) -> bool {
    now.saturating_sub(at) >= LASTS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn governor() -> Governor {
        Governor::builder().open_in_memory().unwrap()
    }

    fn key(number: u8) -> KeyId {
        KeyId::new(rulekeep::system::Timestamp::from_millis(0), u128::from(number))
    }

    fn once(key: KeyId, idempotency_key: &str) -> Once<'_> {
        Once { key, call: "/v1/enforce", idempotency_key, body: b"{}", is_accepted: &|| Ok(()) }
    }

    /// A response of so many bytes.
    fn kept(governor: &Governor, key: KeyId, idempotency_key: &str, bytes: usize) -> Kept {
        let name = Name::of(&once(key, idempotency_key));
        let answer = Some(vec![b'x'; bytes].into());
        Kept {
            name,
            key,
            asked: [0; 32],
            standing: Extension::of(governor).standing(),
            granted: Box::default(),
            task: None,
            answer,
        }
    }

    fn has(answers: &Answers, key: KeyId, idempotency_key: &str) -> bool {
        answers.table().find(Duration::ZERO, &Name::of(&once(key, idempotency_key))).is_some()
    }

    fn made(answer: &str) -> Made {
        Made { answer: answer.into(), granted: Vec::new(), task: None, is_secret: false }
    }

    #[test]
    fn past_the_room_the_oldest_go_first() {
        let governor = governor();
        let answers = Answers::of(100 * (1_000 + BESIDE));
        for number in 0..10_000 {
            answers.keep(Duration::ZERO, kept(&governor, key(1), &number.to_string(), 1_000));
        }
        for number in 0..10_000 {
            assert_eq!(has(&answers, key(1), &number.to_string()), number >= 9_900, "{number}");
        }
    }

    #[test]
    fn a_key_that_asks_for_much_pushes_out_its_own() {
        let governor = governor();
        let answers = Answers::of(100 * (1_000 + BESIDE));
        for number in 0..50 {
            answers.keep(Duration::ZERO, kept(&governor, key(1), &number.to_string(), 1_000));
        }
        for number in 0..10_000 {
            answers.keep(Duration::ZERO, kept(&governor, key(2), &number.to_string(), 1_000));
        }
        for number in 0..50 {
            assert!(has(&answers, key(1), &number.to_string()), "{number} was pushed out by another's");
            assert!(has(&answers, key(2), &(9_950 + number).to_string()), "{number}");
        }
    }

    #[test]
    fn one_larger_than_all_room_leaves_nothing_behind() {
        let governor = governor();
        let answers = Answers::of(10_000);
        answers.keep(Duration::ZERO, kept(&governor, key(1), "large", 20_000));
        let table = answers.table();
        assert_eq!((table.bytes, table.kept.len(), table.turns.len(), table.shares.len()), (0, 0, 0, 0));
    }

    #[test]
    fn what_is_over_its_day_goes_unasked() {
        let governor = governor();
        let answers = Answers::new();
        for number in 0..40 {
            answers.keep(Duration::ZERO, kept(&governor, key(1), &number.to_string(), 1_000));
        }
        let other = Name::of(&once(key(2), "another"));
        drop(answers.look(LASTS.saturating_sub(Duration::from_millis(1)), &other));
        assert_eq!(answers.table().kept.len(), 40);
        drop(answers.look(LASTS, &other));
        let table = answers.table();
        assert_eq!((table.bytes, table.kept.len(), table.making.len()), (0, 0, 0));
    }

    #[tokio::test]
    async fn who_gives_up_lets_the_next_make_it() {
        let (governor, answers) = (governor(), Answers::new());
        let asked = once(key(1), "k");
        let mut first = Box::pin(answers.once(&governor, &asked, std::future::pending()));
        let second = answers.once(&governor, &asked, async { Ok(made("second")) });
        let mut second = Box::pin(second);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(first.as_mut().poll(&mut context).is_pending());
        assert!(second.as_mut().poll(&mut context).is_pending(), "it waits for the first");
        drop(first);
        assert_eq!(second.await.unwrap(), Given::Now(b"second".to_vec()));
        let again = answers.once(&governor, &asked, std::future::pending()).await;
        assert_eq!(again.unwrap(), Given::Again(b"second".to_vec()));
        assert!(answers.table().making.is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// The slow twin is a list, oldest first.
        #[test]
        fn what_is_kept_is_what_a_list_would_keep(
            steps in proptest::collection::vec((0_u8..4, 0_usize..24, 0_usize..3_000, 0_u64..9_000), 1..200),
        ) {
            const ROOM: usize = 20_000;
            let governor = governor();
            let answers = Answers::of(ROOM);
            let mut list: Vec<(Name, KeyId, Duration, usize)> = Vec::new();
            let mut now = Duration::ZERO;
            for (owner, idempotency_key, bytes, later) in steps {
                now += Duration::from_secs(later);
                let kept = kept(&governor, key(owner), &idempotency_key.to_string(), bytes);
                let (name, bytes) = (kept.name, kept.bytes());
                drop(answers.look(now, &name));
                answers.keep(now, kept);

                list.retain(|(other, _, at, _)| *other != name && !is_over(*at, now));
                list.push((name, key(owner), now, bytes));
                let sum = |list: &[(Name, KeyId, Duration, usize)], owner: Option<KeyId>| -> usize {
                    list.iter().filter(|of| owner.is_none_or(|owner| owner == of.1)).map(|of| of.3).sum()
                };
                while sum(&list, None) > ROOM {
                    let most = list.iter().map(|of| (sum(&list, Some(of.1)), of.1)).max().unwrap().1;
                    list.remove(list.iter().position(|of| of.1 == most).unwrap());
                }
                let table = answers.table();
                let names: Vec<Name> = table.kept.values().map(|(_, kept)| kept.name).collect();
                prop_assert_eq!(names, list.iter().map(|of| of.0).collect::<Vec<_>>());
                prop_assert_eq!(table.bytes, sum(&list, None));
                prop_assert_eq!((table.turns.len(), table.by_bytes.len()), (table.kept.len(), table.shares.len()));
            }
        }
    }
}
