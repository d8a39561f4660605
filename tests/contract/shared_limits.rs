//! Limits of the organisation: a use is taken before it is granted, and returned when it is not granted in the end.

use crate::common;

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use common::{code, error};
use rulekeep::escalation::{EscalationId, PreApproval, Review};
use rulekeep::extension::{Extension, Share, SharedLimits, SharedUse, Taken};
use rulekeep::intent::DenialClass;
use rulekeep::kill_switch::KillSwitchScope;
use rulekeep::{Agent, Decision, Enforcement, Governor, Intent, Outcome, PolicySet, RiskLevel, Tier};
use serde_json::json;

const POLICIES: &str = r#"
name = "shared"
[[rule]]
id = "pay"
effect = "allow"
match.capabilities = ["payment:transfer"]
limit = { sum = "amount", max = 500, per = "1d", by = "organisation" }
[[rule]]
id = "mail"
effect = "allow"
match.capabilities = ["email:send"]
limit = { count = 3, per = "1h", by = "organisation", share = "lease", over = "escalate", reviewer = "ann" }
[[rule]]
id = "delete"
effect = "allow"
match.capabilities = ["file:delete"]
limit = { count = 2, per = "1h", by = "organisation" }
[[rule]]
id = "delete-asks"
effect = "escalate"
reviewer = "ann"
match.capabilities = ["file:delete"]
[[rule]]
id = "local"
effect = "allow"
match.capabilities = ["document:read"]
limit = { count = 100, per = "1h", by = "all" }
"#;
const PAY: &str = "pay/sum of amount/organisation";
const MAIL: &str = "mail/count/organisation";
const DELETE: &str = "delete/count/organisation";

/// What happens while a decision waits.
type Meanwhile = Box<dyn Fn() + Send + Sync>;

/// An organisation that gives what it has.
#[derive(Default)]
struct Treasury {
    left: Mutex<i64>,
    taken: Mutex<Vec<(String, String, i64)>>,
    given_back: Mutex<Vec<String>>,
    meanwhile: Mutex<Option<Meanwhile>>,
}

impl Treasury {
    fn of(millionths: i64) -> Arc<Self> {
        Arc::new(Self { left: Mutex::new(millionths), ..Self::default() })
    }

    fn meanwhile(&self, does: impl Fn() + Send + Sync + 'static) {
        *self.meanwhile.lock().unwrap() = Some(Box::new(does));
    }

    fn counts(&self) -> (usize, usize) {
        (self.taken.lock().unwrap().len(), self.given_back.lock().unwrap().len())
    }
}

impl SharedLimits for Treasury {
    fn take(&self, request: &str, uses: &[SharedUse<'_>]) -> Taken {
        if let Some(does) = self.meanwhile.lock().unwrap().take() {
            does();
        }
        let mut left = self.left.lock().unwrap();
        for used in uses {
            if used.amount > *left {
                return Taken::Short { counter: used.counter.into() };
            }
            *left -= used.amount;
            self.taken.lock().unwrap().push((request.to_owned(), used.counter.to_owned(), used.amount));
        }
        Taken::All
    }

    fn give_back(&self, request: &str) {
        self.given_back.lock().unwrap().push(request.to_owned());
    }
}

fn registered(governor: Governor) -> Governor {
    for agent in ["a", "b"] {
        governor.agents().register(Agent::new(agent).at_tier(Tier::T4)).unwrap();
    }
    governor
}

fn policies() -> PolicySet {
    PolicySet::from_toml(POLICIES).unwrap()
}

fn governor() -> Governor {
    registered(Governor::builder().policies(policies()).open_in_memory().unwrap())
}

fn with(treasury: &Arc<Treasury>) -> Governor {
    let governor = governor();
    Extension::of(&governor).share_limits(Arc::clone(treasury) as Arc<dyn SharedLimits>);
    governor
}

fn paying(amount: f64) -> Intent {
    Intent::new("a", "pay", RiskLevel::Low, ["payment:transfer"]).unwrap().with_context("amount", amount)
}

fn of(agent: &str, capability: &str) -> Intent {
    Intent::new(agent, "act", RiskLevel::Low, [capability]).unwrap()
}

fn enforced(governor: &Governor, intent: &Intent) -> Enforcement {
    governor.enforce(intent).unwrap()
}

#[test]
fn a_use_is_taken_before_it_is_granted() {
    let treasury = Treasury::of(500_000_000);
    let governor = with(&treasury);
    for amount in [120.5, 79.5] {
        assert_eq!(enforced(&governor, &paying(amount)).decision, Decision::Allow);
    }
    let taken = treasury.taken.lock().unwrap().clone();
    let amounts: Vec<(&str, i64)> = taken.iter().map(|(_, counter, amount)| (&**counter, *amount)).collect();
    assert_eq!(amounts, [(PAY, 120_500_000), (PAY, 79_500_000)]);
    assert_ne!(taken[0].0, taken[1].0, "each decision has a request of its own");
    assert_eq!(treasury.counts().1, 0, "nothing is given back");
}

#[test]
fn one_intent_that_is_decided_twice_takes_under_two_names() {
    let treasury = Treasury::of(500_000_000);
    let governor = with(&treasury);
    let mut intent = paying(1.0);
    intent.id = Some(governor.parse("a", "Read the notes").unwrap().intent.id.unwrap());
    let intents = [intent.clone(), intent];
    for intent in &intents {
        drop(governor.enforce(intent));
    }
    let mut names: Vec<String> = treasury.taken.lock().unwrap().iter().map(|(name, ..)| name.clone()).collect();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn past_a_shared_limit_the_rule_denies() {
    let treasury = Treasury::of(100_000_000);
    let governor = with(&treasury);
    let denied = enforced(&governor, &paying(100.000_001));
    assert_eq!((denied.decision, denied.denial_class), (Decision::Deny, Some(DenialClass::Limit)));
    let told = "The organisation has no room left in the limit of rule \"pay\" (500 of amount per 1d for the whole \
                organisation).";
    assert!(denied.reasoning.contains(told), "{}", denied.reasoning);
    // What the limit never allows is not asked for.
    let denied = enforced(&governor, &paying(501.0));
    assert!(denied.reasoning.contains("ever allows"), "{}", denied.reasoning);
    assert_eq!(treasury.counts(), (0, 0));
    assert_eq!(enforced(&governor, &paying(100.0)).decision, Decision::Allow);
}

#[test]
fn past_a_shared_limit_escalation_and_approval_ask_no_hub() {
    let treasury = Treasury::of(1_000_000);
    let governor = with(&treasury);
    let mail = of("a", "email:send");
    assert_eq!(enforced(&governor, &mail).decision, Decision::Allow);
    let asked = enforced(&governor, &mail);
    assert_eq!(asked.decision, Decision::Escalate);
    assert!(asked.reasoning.contains("The organisation has no room left"), "{}", asked.reasoning);
    let id = EscalationId::of(asked.proof_id);
    governor.escalations().approve(id, Review::by("ann")).unwrap();
    assert_eq!(governor.escalations().claim(id, &mail).unwrap().decision, Decision::Allow);
    assert_eq!(treasury.counts(), (1, 0));
}

#[test]
fn nobody_who_shares_them_leaves_them_used_up() {
    let governor = governor();
    assert_eq!(enforced(&governor, &paying(1.0)).denial_class, Some(DenialClass::Limit));
    assert_eq!(enforced(&governor, &paying(0.0)).decision, Decision::Deny, "also what uses nothing");
    assert_eq!(enforced(&governor, &of("a", "email:send")).decision, Decision::Escalate);
    assert_eq!(enforced(&governor, &of("a", "document:read")).decision, Decision::Allow);
}

#[test]
fn what_a_decision_does_not_charge_in_the_end_is_given_back() {
    let treasury = Treasury::of(500_000_000);
    let governor = with(&treasury);
    let other = governor.clone();
    treasury.meanwhile(move || {
        let none = PolicySet::from_toml(
            "name = \"none\"\n[[rule]]\nid = \"no\"\neffect = \"deny\"\nmatch.capabilities = [\"*:*\"]",
        );
        other.policies().load(none.unwrap()).unwrap();
    });
    assert_eq!(enforced(&governor, &paying(1.0)).decision, Decision::Deny);
    let (taken, given_back) = (treasury.taken.lock().unwrap().clone(), treasury.given_back.lock().unwrap().clone());
    assert_eq!((taken.len(), &given_back), (1, &vec![taken[0].0.clone()]));
}

#[test]
fn other_charges_than_those_taken_are_taken_anew() {
    let treasury = Treasury::of(500_000_000);
    let governor = with(&treasury);
    let other = governor.clone();
    treasury.meanwhile(move || {
        let renamed = POLICIES.replace("id = \"pay\"", "id = \"paying\"");
        other.policies().load(PolicySet::from_toml(&renamed).unwrap()).unwrap();
    });
    assert_eq!(enforced(&governor, &paying(1.0)).decision, Decision::Allow);
    let taken = treasury.taken.lock().unwrap().clone();
    assert_eq!(taken[1].1, "paying/sum of amount/organisation");
    assert_ne!(taken[0].0, taken[1].0);
    assert_eq!(*treasury.given_back.lock().unwrap(), [taken[0].0.clone()]);
}

#[test]
fn a_kill_switch_during_a_wait_denies_and_returns_the_use() {
    let treasury = Treasury::of(500_000_000);
    let governor = with(&treasury);
    let other = governor.clone();
    treasury.meanwhile(move || drop(other.kill_switch().set(KillSwitchScope::All, "ann", "").unwrap()));
    assert_eq!(enforced(&governor, &paying(1.0)).denial_class, Some(DenialClass::KillSwitch));
    assert_eq!(treasury.counts(), (1, 1));
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
#[test]
fn a_permit_ending_during_a_wait_denies_and_returns_the_use() {
    use rulekeep::extension::Permit;
    use rulekeep::system::Timestamp;

    let treasury = Treasury::of(500_000_000);
    let governor = with(&treasury);
    let (until, wall_until) = (Duration::MAX, Timestamp::from_millis(i64::MAX));
    Extension::of(&governor).require_permit().unwrap();
    Extension::of(&governor).grant_permit(Permit {
        until,
        offline_until: until,
        wall_until,
        offline_wall_until: wall_until,
    });
    let other = governor.clone();
    treasury.meanwhile(move || Extension::of(&other).revoke_permit());
    assert_eq!(enforced(&governor, &paying(1.0)).denial_class, Some(DenialClass::NoPermit));
    assert_eq!(treasury.counts(), (1, 1));
}

/// An organisation that answers when it is told to.
struct Slow {
    asked: SyncSender<()>,
    goes_on: Mutex<Receiver<()>>,
}

impl SharedLimits for Slow {
    fn take(&self, _: &str, _: &[SharedUse<'_>]) -> Taken {
        self.asked.send(()).unwrap();
        self.goes_on.lock().unwrap().recv().unwrap();
        Taken::All
    }

    fn give_back(&self, _: &str) {}
}

#[test]
fn nobody_waits_for_a_decision_that_waits_for_the_organisation() {
    let governor = governor();
    let ((asked, is_asked), (go_on, goes_on)) = (sync_channel(0), sync_channel(0));
    Extension::of(&governor).share_limits(Arc::new(Slow { asked, goes_on: Mutex::new(goes_on) }));
    thread::scope(|scope| {
        let waits = scope.spawn(|| enforced(&governor, &paying(1.0)).decision);
        is_asked.recv().unwrap();
        // Another agent's limited decision, the same agent's, and a change of that agent.
        for agent in ["b", "a"] {
            assert_eq!(enforced(&governor, &of(agent, "document:read")).decision, Decision::Allow);
        }
        governor.trust().adjust("a", Tier::T3.middle(), "waiting").unwrap();
        go_on.send(()).unwrap();
        assert_eq!(waits.join().unwrap(), Decision::Allow);
    });
}

#[test]
fn an_approval_takes_what_its_rule_limits() {
    let treasury = Treasury::of(1_000_000);
    let governor = with(&treasury);
    let deletion = of("a", "file:delete");
    let asked: Vec<EscalationId> = (0..2)
        .map(|_| {
            let asked = enforced(&governor, &deletion);
            assert_eq!(asked.decision, Decision::Escalate, "{}", asked.reasoning);
            EscalationId::of(asked.proof_id)
        })
        .collect();
    assert_eq!(treasury.counts(), (0, 0), "a question takes nothing");
    governor.escalations().approve(asked[0], Review::by("ann")).unwrap();
    assert_eq!(treasury.counts(), (1, 0));
    let refused = error(governor.escalations().approve(asked[1], Review::by("ann")));
    assert_eq!(refused.code(), "CONFLICT");
    assert!(refused.to_string().contains(DELETE), "{refused}");
}

#[test]
fn a_pre_approval_takes_from_the_limit_and_asks_without_room() {
    let treasury = Treasury::of(1_000_000);
    let governor = with(&treasury);
    let approval: PreApproval = serde_json::from_value(json!({
        "agentId": "a", "capabilities": ["file:delete"], "rules": ["delete-asks"], "maxRisk": "CRITICAL",
        "until": rulekeep::system::Timestamp::from_millis(
            rulekeep::system::Clock::now(&rulekeep::system::SystemClock).as_millis() + 3_600_000),
    }))
    .unwrap();
    governor.escalations().pre_approve(approval, Review::by("ann")).unwrap();
    let deletion = of("a", "file:delete");
    let granted = enforced(&governor, &deletion);
    assert_eq!(granted.decision, Decision::Allow, "{}", granted.reasoning);
    assert_eq!(enforced(&governor, &deletion).decision, Decision::Escalate);
    assert_eq!(treasury.counts().0, 1);
}

#[test]
fn a_preview_takes_nothing_and_shows_the_limit_unused() {
    let treasury = Treasury::of(0);
    let governor = with(&treasury);
    let ahead = governor.policies().preview(&paying(1.0)).unwrap();
    assert_eq!((ahead.decision, ahead.limits[0].used), (Decision::Allow, 0));
    assert_eq!(governor.policies().explain(&paying(1.0)).unwrap().preview.decision, Decision::Allow);
    assert_eq!(treasury.counts(), (0, 0));
}

#[test]
fn a_failure_returns_nothing_and_a_restart_takes_nothing_again() {
    let folder = tempfile::tempdir().unwrap();
    let treasury = Treasury::of(500_000_000);
    let open = || Governor::builder().policies(policies()).open(folder.path()).unwrap();
    let governor = registered(open());
    Extension::of(&governor).share_limits(Arc::clone(&treasury) as Arc<dyn SharedLimits>);
    let first = enforced(&governor, &paying(1.5));
    governor.report(&first.proof_id, Outcome::Failure).unwrap();
    assert_eq!(treasury.counts(), (1, 0), "the payer gives back, not the agent");
    governor.close().unwrap();
    drop(governor);
    assert!(open().verify().unwrap().valid);
    assert_eq!(treasury.counts(), (1, 0));
}

#[test]
fn the_shared_limits_of_a_set_are_listed() {
    let terms = policies().shared_limits();
    let listed: Vec<_> =
        terms.iter().map(|terms| (&*terms.counter, terms.most, terms.window.as_secs(), terms.share)).collect();
    assert_eq!(
        listed,
        [
            (PAY, 500_000_000, 86_400, Share::Reserve),
            (MAIL, 3_000_000, 3_600, Share::Lease),
            (DELETE, 2_000_000, 3_600, Share::Reserve),
        ]
    );
}

#[test]
fn a_share_without_an_organisation_is_refused_with_advice() {
    for (limit, told) in [
        (r#"{ count = 1, per = "1h", share = "lease" }"#, "only a limit with by = \"organisation\" has a share"),
        (r#"{ count = 1, per = "1h", by = "organisation", share = "leas" }"#, "lease"),
        (r#"{ sum = "a/b", max = 1, per = "1h", by = "organisation" }"#, "cannot contain a slash"),
    ] {
        let text = format!(
            "name = \"x\"\n[[rule]]\nid = \"r\"\neffect = \"allow\"\nmatch.capabilities = [\"email:send\"]\nlimit = {limit}"
        );
        let refused = error(PolicySet::from_toml(&text));
        assert!(code::<()>(Err(refused.clone())) == "POLICY_ERROR" && refused.to_string().contains(told), "{refused}");
    }
}
