//! Members that only beat. They sign each beat, and compare orders with those that were given: the cost of verifying
//! them would be that of ten thousand machines.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use rulekeep::checkpoint::CheckpointKey;
use rulekeep::system::{Clock as _, Entropy as _, SystemClock, SystemEntropy};
use rulekeep_fleet::enrolment::Enrol;
use rulekeep_fleet::order::{Command, SignedOrder};
use rulekeep_fleet::wire::{Answer, Beat};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use crate::support::governor::Log;
use crate::support::http::{self, Connection};
use crate::support::hub::{Api, HubProcess};
use crate::support::organisation::Organisation;

/// The time that hubs may hold a beat.
const WAIT: Duration = Duration::from_secs(10);
const CALL: Duration = Duration::from_secs(5);
const ANCHOR_EVERY: Duration = Duration::from_secs(300);
const ACKNOWLEDGE_WITHIN: Duration = Duration::from_secs(1);
/// Enrolments at the same time.
const ENROLLING: usize = 256;
/// The longest that anything may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// All members. They end with the value.
pub(crate) struct Fleet {
    shared: Arc<Shared>,
    organisation: Mutex<Organisation>,
    tasks: Vec<JoinHandle<()>>,
}

struct Shared {
    hubs: Vec<SocketAddr>,
    orders: RwLock<Vec<SignedOrder>>,
    members: Vec<State>,
    admitted: watch::Sender<usize>,
    beats: AtomicU64,
    /// Counts events that somebody waits for.
    changes: watch::Sender<u64>,
    failure: Mutex<String>,
}

/// What a member tells.
struct State {
    hub: AtomicUsize,
    beats: AtomicU64,
    order: AtomicU64,
    /// The time at which the newest order arrived.
    arrived: Mutex<Option<Instant>>,
    /// The time of the newest permit, of which it lasts for 30 s, and of its answer.
    permit: Mutex<Option<(Instant, Instant)>>,
    /// Whether there was a time without a permit since this was last cleared.
    had_gap: AtomicBool,
}

impl Fleet {
    /// Starts members, spread over the hubs.
    pub(crate) fn start(count: usize, organisation: Organisation, hubs: Vec<SocketAddr>) -> Self {
        let state = |n: usize| State {
            hub: AtomicUsize::new(n % hubs.len()),
            beats: AtomicU64::new(0),
            order: AtomicU64::new(0),
            arrived: Mutex::default(),
            permit: Mutex::default(),
            had_gap: AtomicBool::new(false),
        };
        let shared = Arc::new(Shared {
            members: (0..count).map(state).collect(),
            hubs,
            orders: RwLock::new(organisation.orders.clone()),
            admitted: watch::Sender::new(0),
            beats: AtomicU64::new(0),
            changes: watch::Sender::new(0),
            failure: Mutex::default(),
        });
        let invitation: Arc<str> = organisation.invitation(&["payments"], 1_000_000).into();
        let enrolling = Arc::new(Semaphore::new(ENROLLING));
        let start = |n| tokio::spawn(Member::new(n, &shared).live(Arc::clone(&invitation), Arc::clone(&enrolling)));
        let tasks = (0..count).map(start).collect();
        Self { shared, organisation: Mutex::new(organisation), tasks }
    }

    pub(crate) async fn until_all_are_admitted(&self) {
        let count = self.tasks.len();
        let mut admitted = self.shared.admitted.subscribe();
        let waited = tokio::time::timeout(PATIENCE, admitted.wait_for(|admitted| *admitted == count)).await;
        assert!(
            waited.is_ok(),
            "{} of {count} are admitted; the last failure: {}",
            *self.shared.admitted.borrow(),
            self.failure()
        );
    }

    /// Waits until each member has got two more answers, so that their beats are spread again.
    pub(crate) async fn until_all_have_beaten_again(&self) {
        let count = |member: &State| member.beats.load(Ordering::Relaxed);
        let before: Vec<u64> = self.shared.members.iter().map(count).collect();
        self.until(|| self.shared.members.iter().zip(&before).all(|(member, before)| count(member) >= before + 2))
            .await;
    }

    async fn until(&self, is_so: impl Fn() -> bool) {
        let mut changes = self.shared.changes.subscribe();
        let waited = tokio::time::timeout(PATIENCE, async {
            while !is_so() {
                changes.changed().await.expect("members live");
                // Looking at all members for each of their beats would take all the time there is.
                tokio::time::sleep(Duration::from_millis(50)).await;
                changes.mark_unchanged();
            }
        });
        assert!(waited.await.is_ok(), "in vain; the last failure: {}", self.failure());
    }

    /// Number of answers to beats.
    pub(crate) fn beats(&self) -> u64 {
        self.shared.beats.load(Ordering::Relaxed)
    }

    pub(crate) fn organisation(&self) -> Organisation {
        self.organisation.lock().expect("no panic").clone()
    }

    fn failure(&self) -> String {
        self.shared.failure.lock().expect("no panic").clone()
    }

    /// Gives an order, and waits until all members have it and have acknowledged it.
    pub(crate) async fn give(&self, api: Api, command: Command) -> Given {
        let order = {
            let mut organisation = self.organisation.lock().expect("no panic");
            let order = organisation.sign(command, 2);
            organisation.keep(&order);
            order
        };
        self.shared.orders.write().expect("no panic").push(order.clone());
        let seq = self.shared.orders.read().expect("no panic").len() as u64;
        let began = Instant::now();
        api.give(&order).await.expect("the hub takes the order");
        let stored = began.elapsed();
        let count = self.tasks.len() as u64;
        let (mut acknowledged_99, mut acknowledged) = (None, 0);
        while acknowledged < count {
            assert!(
                began.elapsed() < PATIENCE,
                "{acknowledged} of {count} have acknowledged; the last failure: {}",
                self.failure()
            );
            acknowledged = api.standing(seq).await.map_or(0, |standing| standing.acknowledged);
            if acknowledged * 100 >= count * 99 {
                acknowledged_99.get_or_insert(began.elapsed().as_secs_f64());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let acknowledged = began.elapsed().as_secs_f64();
        let arrived = |member: &State| member.arrived.lock().expect("no panic").map(|at| at - began);
        let delivered = Spread::of(self.shared.members.iter().filter_map(arrived).collect());
        Given { stored, delivered, acknowledged_99: acknowledged_99.unwrap_or(acknowledged), acknowledged }
    }

    /// Kills a hub, and waits until its members have a permit from another.
    pub(crate) async fn move_off(&self, hub: &mut HubProcess) -> Moved {
        let place = self.shared.hubs.iter().position(|address| *address == hub.address()).expect("one of the hubs");
        let of_hub: Vec<&State> = self
            .shared
            .members
            .iter()
            .filter(|member| member.hub.load(Ordering::Relaxed) % self.shared.hubs.len() == place)
            .collect();
        self.shared.members.iter().for_each(|member| member.had_gap.store(false, Ordering::Relaxed));
        let began = Instant::now();
        hub.kill();
        let answered = |member: &&State| {
            let permit = *member.permit.lock().expect("no panic");
            permit.filter(|(sent, _)| *sent > began).map(|(_, answered)| answered - began)
        };
        // The first permit that was asked for after the kill counts.
        let times: Vec<Mutex<Option<Duration>>> = of_hub.iter().map(|_| Mutex::default()).collect();
        self.until(|| {
            for (member, time) in of_hub.iter().zip(&times) {
                let mut time = time.lock().expect("no panic");
                *time = time.or_else(|| answered(member));
            }
            times.iter().all(|time| time.lock().expect("no panic").is_some())
        })
        .await;
        let ended = self.shared.members.iter().filter(|member| member.had_gap.load(Ordering::Relaxed)).count();
        Moved {
            moved: Spread::of(times.into_iter().filter_map(|time| time.into_inner().expect("no panic")).collect()),
            ended,
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

struct Member {
    n: usize,
    key: CheckpointKey,
    boot: String,
    log: Log,
    number: u64,
    nonce: Option<String>,
    connection: Option<Connection>,
    anchored: u64,
    continues: Option<u64>,
    report: Option<u64>,
    anchor_at: Instant,
    shared: Arc<Shared>,
}

impl Member {
    fn new(n: usize, shared: &Arc<Shared>) -> Self {
        let key = CheckpointKey::generate(&format!("governor-{n}"), &SystemEntropy).expect("a good name");
        let mut log = Log::new(key.clone());
        log.grow(3, "first");
        let boot = format!("{:032x}", SystemEntropy.bits());
        let anchor_at = Instant::now() + ANCHOR_EVERY.mul_f64((n % 1000) as f64 / 1000.0);
        Self {
            n,
            key,
            boot,
            log,
            number: 0,
            nonce: None,
            connection: None,
            anchored: 0,
            continues: None,
            report: None,
            anchor_at,
            shared: Arc::clone(shared),
        }
    }

    fn state(&self) -> &State {
        &self.shared.members[self.n]
    }

    async fn live(mut self, invitation: Arc<str>, enrolling: Arc<Semaphore>) {
        let permit = enrolling.acquire().await.expect("it is never closed");
        let request = Enrol::accept(&invitation, &self.key, None).expect("an invitation");
        let request = http::signed(&self.key, "/fleet/v1/enrol", &request);
        let mut failures = 0;
        while self.call::<()>(&request, CALL).await.is_err() {
            failures += 1;
            back_off(failures).await;
        }
        drop(permit);
        let (mut failures, mut is_admitted, mut shows) = (0, false, false);
        loop {
            let wait = if failures == 0 && is_admitted { WAIT } else { Duration::ZERO };
            match self.beat(wait, shows).await {
                Ok(answer) => {
                    failures = 0;
                    shows = answer.show;
                    if is_admitted && !answer.orders.is_empty() {
                        // As members do: acknowledgments do not stand in the way of members behind.
                        tokio::time::sleep(ACKNOWLEDGE_WITHIN.mul_f64(rand::random())).await;
                    }
                    if answer.permit.is_some() && !is_admitted {
                        is_admitted = true;
                        self.shared.admitted.send_modify(|admitted| *admitted += 1);
                    }
                }
                Err(why) => {
                    failures += 1;
                    *self.shared.failure.lock().expect("no panic") = why;
                    self.state().hub.fetch_add(1, Ordering::Relaxed);
                    back_off(failures).await;
                }
            }
        }
    }

    fn head(&self, order: u64) -> rulekeep::proof::Digest {
        let orders = self.shared.orders.read().expect("no panic");
        let place = usize::try_from(order).expect("few orders").checked_sub(1);
        place.map_or(rulekeep::proof::Digest::ZERO, |place| orders[place].digest())
    }

    async fn beat(&mut self, wait: Duration, shows: bool) -> Result<Answer, String> {
        let sent = Instant::now();
        self.number += 1;
        let is_due = sent >= self.anchor_at;
        if is_due {
            self.log.grow(1, "more");
            self.anchor_at = sent + ANCHOR_EVERY;
        }
        let order = self.state().order.load(Ordering::Relaxed);
        let beat = Beat {
            governor: self.key.name().to_owned(),
            boot: self.boot.clone(),
            number: self.number,
            nonce: self.nonce.clone(),
            order,
            head: self.head(order),
            refused: [].into(),
            open: 0,
            log: (!shows && self.nonce.is_some()).then(|| self.log.head()),
            anchor: (shows || is_due).then(|| self.log.anchor(self.anchored, self.continues)),
            wait_ms: u64::try_from(wait.as_millis()).expect("a short time"),
            returned: Vec::new(),
            report: self.report.map(|epoch| rulekeep_fleet::budget::Report {
                epoch,
                boot: self.boot.clone(),
                grants: Vec::new(),
            }),
            is_leaving: false,
            at: SystemClock.now(),
        };
        let request = http::signed(&self.key, "/fleet/v1/beat", &beat);
        let answer: Answer = self.call(&request, wait + CALL).await?;
        let now = Instant::now();
        if let Some(why) = &answer.refused {
            return Err(why.clone());
        }
        self.nonce = Some(answer.nonce.clone());
        self.anchored = answer.anchored;
        self.continues = Some(answer.head).filter(|head| answer.show && *head > answer.anchored);
        self.report = answer.report;
        let state = self.state();
        if !answer.orders.is_empty() {
            let orders = self.shared.orders.read().expect("no panic");
            let from = usize::try_from(order).expect("few orders");
            assert_eq!(answer.orders, orders[from..from + answer.orders.len()], "orders are those that were given");
            state.order.fetch_add(answer.orders.len() as u64, Ordering::Relaxed);
            *state.arrived.lock().expect("no panic") = Some(now);
        }
        if let Some(term) = answer.permit {
            let mut permit = state.permit.lock().expect("no panic");
            if permit.is_some_and(|(sent, _)| now > sent + Duration::from_millis(term.term_ms)) {
                state.had_gap.store(true, Ordering::Relaxed);
            }
            *permit = Some((sent, now));
        }
        state.beats.fetch_add(1, Ordering::Relaxed);
        self.shared.beats.fetch_add(1, Ordering::Relaxed);
        self.shared.changes.send_modify(|changes| *changes += 1);
        Ok(answer)
    }

    async fn call<T: serde::de::DeserializeOwned>(&mut self, request: &[u8], patience: Duration) -> Result<T, String> {
        let hub = self.shared.hubs[self.state().hub.load(Ordering::Relaxed) % self.shared.hubs.len()];
        let called = tokio::time::timeout(patience, async {
            let mut connection = match self.connection.take() {
                Some(connection) => connection,
                None => Connection::open(hub).await.map_err(|error| error.to_string())?,
            };
            let answer = connection.call(request).await.map_err(|error| error.to_string())?;
            self.connection = Some(connection);
            answer.read().map_err(|(status, why)| format!("{status} {why}"))
        });
        called.await.map_err(|_| "no answer in time".to_owned())?
    }
}

/// Waits as members do after failures.
async fn back_off(failures: u32) {
    let most = 100_u64.saturating_mul(1 << failures.min(6)).min(5_000);
    let spread = u64::try_from(SystemEntropy.bits() % u128::from(most)).expect("a small number");
    tokio::time::sleep(Duration::from_millis(most / 2 + spread / 2)).await;
}

/// Times of many members.
pub(crate) struct Spread(Vec<Duration>);

impl Spread {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// The time within which so many percent are, in seconds.
    pub(crate) fn at(&self, percent: usize) -> f64 {
        let place = (self.0.len() * percent).div_ceil(100).saturating_sub(1);
        self.0.get(place).map_or(0.0, Duration::as_secs_f64)
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p50 {:.3} s, p99 {:.3} s, max {:.3} s of {}", self.at(50), self.at(99), self.at(100), self.0.len())
    }
}

/// How an order spread.
pub(crate) struct Given {
    stored: Duration,
    pub(crate) delivered: Spread,
    pub(crate) acknowledged_99: f64,
    acknowledged: f64,
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stored, delivered, acknowledged_99, acknowledged } = self;
        write!(f, "stored in {:.3} s, delivered {delivered}; ", stored.as_secs_f64())?;
        write!(f, "acknowledged p99 {acknowledged_99:.3} s, all {acknowledged:.3} s")
    }
}

/// How members moved to another hub.
pub(crate) struct Moved {
    moved: Spread,
    /// Members that were without a permit for some time.
    pub(crate) ended: usize,
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "permits from the other {}; {} were without one meanwhile", self.moved, self.ended)
    }
}
