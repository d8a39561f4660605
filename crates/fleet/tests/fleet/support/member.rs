//! A member over a real connection around a real [`Session`], with a governor that only pretends to decide.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rulekeep::checkpoint::CheckpointKey;
use rulekeep::proof::Digest;
use rulekeep::system::{Clock as _, SystemClock, SystemEntropy};
use rulekeep_fleet::budget::Report;
use rulekeep_fleet::enrolment::Enrol;
use rulekeep_fleet::order::Chain;
use rulekeep_fleet::permit::{Deadlines, Moment};
use rulekeep_fleet::session::{Session, Task};
use rulekeep_fleet::wire::{Answer, Beat, Copied, Records};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::checker::Journal;
use super::governor::Log;
use super::http::{self, Connection};
use super::organisation::Organisation;

/// The longest that a test waits for what must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// The longest that a member waits for an answer, besides the time that the hub may hold it.
const CALL: Duration = Duration::from_secs(2);

pub(crate) fn now() -> Moment {
    Moment { boot: SystemClock.since_boot().expect("tests run on Linux"), wall_ms: SystemClock.now().as_millis() }
}

/// A member that beats when it is told to.
pub(crate) struct Member {
    pub(crate) key: CheckpointKey,
    pub(crate) boot: String,
    pub(crate) log: Log,
    pub(crate) session: Session,
    /// Whether a checkpoint goes with the next beat even if it is not asked for.
    pub(crate) anchors: bool,
    pub(crate) hubs: Vec<SocketAddr>,
    trust_anchor: Digest,
    connection: Option<Connection>,
    /// The answer to the last beat.
    pub(crate) answer: Answer,
}

impl Member {
    /// One that is not enrolled yet, with a log of a few entries.
    pub(crate) fn new(name: &str, organisation: &Organisation, hubs: &[SocketAddr]) -> Self {
        let key = CheckpointKey::generate(name, &SystemEntropy).expect("a good name");
        let mut log = Log::new(key.clone());
        log.grow(3, name);
        let (boot, session) = run(name, Vec::new(), organisation.trust_anchor(), (0, Digest::ZERO), BTreeSet::new());
        Self {
            key,
            boot,
            log,
            session,
            anchors: false,
            hubs: hubs.to_vec(),
            trust_anchor: organisation.trust_anchor(),
            connection: None,
            answer: Answer::default(),
        }
    }

    /// One that is enrolled and has shown its log.
    pub(crate) async fn admitted(
        name: &str,
        groups: &[&str],
        organisation: &Organisation,
        hubs: &[SocketAddr],
    ) -> Self {
        let mut member = Self::new(name, organisation, hubs);
        member.enrol(&organisation.invitation(groups, 1_000_000)).await.expect("a good invitation");
        member.admit().await;
        member
    }

    /// Beats until it has a permit.
    pub(crate) async fn admit(&mut self) {
        for _ in 0..3 {
            self.beat(Duration::ZERO).await.expect("the hub answers");
            if self.answer.permit.is_some() {
                return;
            }
        }
        panic!("no permit: {:?}", self.answer);
    }

    /// A copy of the process and of the folder.
    pub(crate) fn copied(&self) -> Self {
        let groups = self.session.groups().to_vec();
        let (_, session) = run(self.key.name(), groups, self.trust_anchor, (0, Digest::ZERO), BTreeSet::new());
        Self {
            key: self.key.clone(),
            boot: self.boot.clone(),
            log: self.log.clone(),
            session,
            anchors: false,
            hubs: self.hubs.clone(),
            trust_anchor: self.trust_anchor,
            connection: None,
            answer: self.answer.clone(),
        }
    }

    /// Starts the process again. It remembers the order in force and its kill switches.
    pub(crate) fn restart(&mut self) {
        let chain = self.session.chain();
        let stops = chain.stops().keys().copied().collect();
        let (groups, least) = (self.session.groups().to_vec(), (chain.seq(), chain.head()));
        (self.boot, self.session) = run(self.key.name(), groups, self.trust_anchor, least, stops);
        self.connection = None;
    }

    pub(crate) async fn enrol(&mut self, invitation: &str) -> Result<(), (u16, String)> {
        let request = Enrol::accept(invitation, &self.key, None).expect("an invitation");
        super::hub::post::<()>(self.hubs[0], &self.key, "/fleet/v1/enrol", &request).await?;
        let start = ((0, Digest::ZERO), BTreeSet::new());
        (self.boot, self.session) = run(self.key.name(), request.groups, self.trust_anchor, start.0, start.1);
        Ok(())
    }

    /// A beat that continues this run, to be sent as it is or changed.
    pub(crate) fn next_beat(&mut self, wait: Duration) -> (u64, Beat) {
        let (number, mut beat) = self.session.beat(now(), wait);
        if self.session.must_show() || self.anchors {
            beat.anchor = Some(self.log.anchor(self.session.anchored(), self.session.continues()));
        }
        beat.log = self.session.is_shown().then(|| self.log.head());
        beat.report =
            self.session.must_report().map(|epoch| Report { epoch, boot: self.boot.clone(), grants: Vec::new() });
        (number, beat)
    }

    /// Sends a beat, takes the answer, and carries everything out.
    pub(crate) async fn beat(&mut self, wait: Duration) -> Result<Vec<Task>, String> {
        let (number, beat) = self.next_beat(wait);
        let request = http::signed(&self.key, "/fleet/v1/beat", &beat);
        let answer = tokio::time::timeout(wait + CALL, self.call(&request)).await;
        if !matches!(answer, Ok(Ok(_))) {
            // An answer that comes later belongs to no request any more.
            self.connection = None;
        }
        self.answer = answer.map_err(|_| "no answer in time".to_owned())??;
        let tasks = self.session.answered(number, &self.answer, SystemClock.now());
        for task in &tasks {
            self.session.done(task, Ok(()), now());
        }
        Ok(tasks)
    }

    async fn call(&mut self, request: &[u8]) -> Result<Answer, String> {
        let hub = *self.hubs.first().ok_or("no hub")?;
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(hub).await.map_err(|error| error.to_string())?,
        };
        let answer = connection.call(request).await.map_err(|error| error.to_string())?;
        self.connection = Some(connection);
        answer.read().map_err(|(status, why)| format!("{status} {why}"))
    }

    /// The next call goes to the first of these hubs.
    pub(crate) fn go_to(&mut self, hubs: &[SocketAddr]) {
        self.connection = None;
        self.hubs = hubs.to_vec();
    }

    /// The next call goes to the next hub.
    fn turn(&mut self) {
        self.connection = None;
        self.hubs.rotate_left(1);
    }

    /// Copies records under the anchored checkpoint.
    pub(crate) async fn copy(
        &self,
        records: Vec<rulekeep_fleet::wire::Copy>,
        until: u64,
    ) -> Result<Copied, (u16, String)> {
        let batch = Records { governor: self.key.name().to_owned(), size: self.session.anchored(), until, records };
        super::hub::post(self.hubs[0], &self.key, "/fleet/v1/records", &batch).await
    }

    /// Lets it beat by itself, asking hubs to hold a beat for `wait`.
    pub(crate) fn start(self, wait: Duration, rule: Rule) -> Running {
        let id = self.key.name().to_owned();
        let gate = Arc::new(Gate { state: Mutex::default(), view: watch::Sender::new(View::default()) });
        let task = tokio::spawn(beat_for_ever(self, wait, rule, Arc::clone(&gate)));
        Running { id, gate, task }
    }
}

fn run(
    name: &str,
    groups: Vec<String>,
    trust_anchor: Digest,
    least: (u64, Digest),
    stops: BTreeSet<u64>,
) -> (String, Session) {
    let boot = format!("{:032x}", rulekeep::system::Entropy::bits(&SystemEntropy));
    let session = Session::new(name, &boot, groups, Chain::new(Some(trust_anchor)), least, stops, OFFLINE_AT_MOST);
    (boot, session)
}

/// How a member counts its permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// As the session says: from the sending of the beat.
    Sent,
    /// From the receipt of the answer. This is wrong.
    Received,
}

/// A member that beats by itself. It ends with the value.
pub(crate) struct Running {
    pub(crate) id: String,
    pub(crate) gate: Arc<Gate>,
    task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Running {
    /// The number of permits that it got.
    pub(crate) fn permits(&self) -> u64 {
        self.gate.view.borrow().permits
    }

    /// Waits until something is so.
    pub(crate) async fn until(&self, is_so: impl FnMut(&View) -> bool) {
        let mut view = self.gate.view.subscribe();
        let waited = tokio::time::timeout(PATIENCE, view.wait_for(is_so)).await;
        assert!(waited.is_ok(), "{} is still {:?}", self.id, *self.gate.view.borrow());
    }
}

/// What a member's governor decides by, and what it has decided.
pub(crate) struct Gate {
    state: Mutex<State>,
    view: watch::Sender<View>,
}

#[derive(Default)]
struct State {
    permit: Option<Deadlines>,
    stops: BTreeSet<u64>,
    journal: Journal,
}

/// What is known of a member from outside.
#[derive(Debug, Clone, Default)]
pub(crate) struct View {
    /// The number of permits that it got.
    pub(crate) permits: u64,
    pub(crate) is_permitted: bool,
    pub(crate) order: u64,
    pub(crate) anchored: u64,
    pub(crate) refused: Option<String>,
    pub(crate) problem: Option<String>,
}

impl Gate {
    /// Decides on an action and on a read of LOW risk, at one moment.
    pub(crate) fn decide(&self) {
        let mut state = self.state.lock().expect("no panic");
        let now = now();
        let is_stopped = !state.stops.is_empty();
        let (mut all, mut low) = (false, false);
        if let Some(permit) = &state.permit {
            (all, low) = (permit.allows(now), permit.allows_low_read(now));
        }
        state.journal.decided(now.boot, all && !is_stopped, low && !is_stopped);
    }

    /// Whether it would allow a read of LOW risk now.
    pub(crate) fn would_allow(&self) -> bool {
        let state = self.state.lock().expect("no panic");
        state.stops.is_empty() && state.permit.is_some_and(|permit| permit.allows_low_read(now()))
    }

    pub(crate) fn journal(&self) -> Journal {
        self.state.lock().expect("no panic").journal.clone()
    }
}

async fn beat_for_ever(mut member: Member, wait: Duration, rule: Rule, gate: Arc<Gate>) {
    let mut failures = 0;
    let mut is_permitted = false;
    loop {
        let is_at_ease =
            failures == 0 && is_permitted && !member.session.must_show() && member.session.must_report().is_none();
        let result = member.beat(if is_at_ease { wait } else { Duration::ZERO }).await;
        let order = member.session.chain().seq();
        let mut view = gate.view.borrow().clone();
        match &result {
            Ok(tasks) => {
                let mut state = gate.state.lock().expect("no panic");
                state.journal.follows(order);
                for task in tasks {
                    match task {
                        Task::Stop(order, _) => _ = state.stops.insert(*order),
                        Task::Lift(order) => _ = state.stops.remove(order),
                        Task::Permit(deadlines) => {
                            state.permit = Some(match rule {
                                Rule::Sent => *deadlines,
                                Rule::Received => from_now(&member.answer),
                            });
                            (is_permitted, view.refused) = (true, None);
                            view.permits += 1;
                        }
                        Task::Refused(why) => {
                            state.permit = None;
                            (is_permitted, view.refused) = (false, Some(why.clone()));
                        }
                        _ => {}
                    }
                }
                (failures, view.problem) = (0, None);
            }
            Err(why) => {
                failures += 1;
                view.problem = Some(why.clone());
                member.turn();
            }
        }
        (view.order, view.anchored, view.is_permitted) = (order, member.session.anchored(), is_permitted);
        gate.view.send_replace(view);
        if failures > 0 || !(is_permitted || member.session.must_show()) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// A permit that counts from now.
fn from_now(answer: &Answer) -> Deadlines {
    let term = answer.permit.expect("an answer with a permit");
    let (all, low) = (Duration::from_millis(term.term_ms), Duration::from_millis(term.term_ms + term.offline_ms));
    let Moment { boot, wall_ms } = now();
    let wall = |time: Duration| wall_ms + i64::try_from(time.as_millis()).expect("a short time");
    Deadlines {
        until: boot + all,
        offline_until: boot + low,
        wall_until_ms: wall(all),
        offline_wall_until_ms: wall(low),
    }
}

/// The offline term that members accept at most.
const OFFLINE_AT_MOST: Duration = Duration::from_secs(3600);
