use super::*;
use rulekeep::system::SystemEntropy;

fn key(name: &str) -> CheckpointKey {
    CheckpointKey::generate(name, &SystemEntropy).unwrap()
}

struct Operators {
    ann: CheckpointKey,
    bob: CheckpointKey,
    eve: CheckpointKey,
}

impl Operators {
    fn new() -> Self {
        Self { ann: key("ann"), bob: key("bob"), eve: key("eve") }
    }

    fn founding(&self) -> Command {
        Command::Organisation(Organisation {
            name: "fleet.example.com".to_owned(),
            log: key("fleet.example.com").verifier().to_string(),
            operators: [&self.ann, &self.bob].map(|key| key.verifier().to_string()).to_vec(),
            needed: 1,
            needed_to_loosen: 2,
            permit_seconds: 30,
        })
    }

    fn founded(&self) -> Chain {
        let mut chain = Chain::new(None);
        self.order(&mut chain, self.founding(), 2).unwrap();
        chain
    }

    fn order(&self, chain: &mut Chain, command: Command, signers: usize) -> Result<Order, OrderError> {
        let keys = [self.ann.clone(), self.bob.clone()];
        let order = Order::next(chain, Timestamp::from_millis(1_000), command);
        chain.add(&order.sign(&keys[..signers]).unwrap())
    }
}

fn stop() -> Command {
    Command::Stop { scope: KillSwitchScope::All, groups: vec!["payments".to_owned()], note: "wrong payees".to_owned() }
}

#[test]
fn one_operator_stops_and_two_lift() {
    let operators = Operators::new();
    let mut chain = operators.founded();
    operators.order(&mut chain, stop(), 1).unwrap();
    assert_eq!(chain.stops_for(&["payments".to_owned()])[&2].by, "ann");
    assert!(chain.stops_for(&["search".to_owned()]).is_empty());
    let lift = Command::Lift { order: 2, note: String::new() };
    let refused = operators.order(&mut chain, lift.clone(), 1).unwrap_err();
    assert!(matches!(refused, OrderError::TooFewSignatures { found: 1, needed: 2 }), "{refused}");
    operators.order(&mut chain, lift.clone(), 2).unwrap();
    assert!(chain.stops_for(&["payments".to_owned()]).is_empty());
    assert!(matches!(operators.order(&mut chain, lift, 2), Err(OrderError::Pointless(_))), "it is lifted");
}

#[test]
fn an_order_by_somebody_else_or_with_a_changed_byte_is_refused() {
    let operators = Operators::new();
    let chain = operators.founded();
    let order = Order::next(&chain, Timestamp::from_millis(1_000), stop());
    let by_eve = order.sign(std::slice::from_ref(&operators.eve)).unwrap();
    assert!(matches!(chain.clone().add(&by_eve), Err(OrderError::TooFewSignatures { found: 0, .. })));
    let good = order.sign(std::slice::from_ref(&operators.ann)).unwrap();
    for at in 0..good.body.len() {
        let mut changed = good.clone();
        let mut bytes = changed.body.into_bytes();
        bytes[at] ^= 1;
        let Ok(body) = String::from_utf8(bytes) else { continue };
        changed.body = body;
        assert!(chain.clone().add(&changed).is_err(), "byte {at}");
    }
    let mut in_anns_name = by_eve;
    let signature = in_anns_name.signatures.remove("eve").unwrap();
    in_anns_name.signatures.insert("ann".to_owned(), signature);
    assert!(matches!(chain.clone().add(&in_anns_name), Err(OrderError::BadSignature(name)) if name == "ann"));
}

#[test]
fn orders_are_taken_in_sequence_from_the_trusted_organisation() {
    let operators = Operators::new();
    let founding = Order::next(&Chain::new(None), Timestamp::from_millis(0), operators.founding());
    let signed = founding.sign(&[operators.ann.clone(), operators.bob.clone()]).unwrap();
    let mut chain = Chain::new(Some(signed.digest()));
    chain.add(&signed).unwrap();
    assert!(matches!(chain.add(&signed), Err(OrderError::OutOfSequence { found: 1, expected: 2, .. })));
    let mut other = Chain::new(Some(Digest::new([7; 32])));
    assert!(matches!(other.add(&signed), Err(OrderError::OtherOrganisation { .. })));
    // The same number after another order.
    let mut fork = Order::next(&chain, Timestamp::from_millis(0), stop());
    fork.prev = Digest::new([7; 32]);
    let fork = fork.sign(std::slice::from_ref(&operators.ann)).unwrap();
    assert!(matches!(chain.add(&fork), Err(OrderError::OutOfSequence { .. })));
    assert_eq!(chain.seq(), 1);
}

#[test]
fn a_rollout_reaches_shares_of_governors_never_before_its_time() {
    let operators = Operators::new();
    let mut chain = operators.founded();
    let document =
        "name = \"p\"\n[[rule]]\nid = \"a\"\neffect = \"deny\"\nmatch.capabilities = [\"payment:transfer\"]\n";
    let stage = |mode, percent, soak_seconds| Stage { mode, percent, soak_seconds };
    let plan = vec![stage(Mode::Shadow, 20, 60), stage(Mode::Enforce, 20, 60), stage(Mode::Enforce, 100, 0)];
    let policies = Policies { groups: Vec::new(), document: document.to_owned(), plan };
    operators.order(&mut chain, Command::Policies(policies), 2).unwrap();
    let stage_at = |seconds: i64, reached: usize| {
        let now = Timestamp::from_millis(1_000 + seconds * 1_000);
        let of = |id: usize| chain.policies_for(&format!("g{id}"), &[], &BTreeMap::from([(2, reached)]), now);
        let all: Vec<_> = (0..1_000).map(of).collect();
        let shadow = all.iter().filter(|(_, shadow)| shadow.is_some()).count();
        (all.iter().filter(|(enforced, _)| enforced.is_some()).count(), shadow)
    };
    let (enforced, shadow) = stage_at(0, 2);
    assert!(enforced == 0 && (150..250).contains(&shadow), "{enforced} {shadow}: a hub cannot hurry it");
    let (enforced, shadow) = stage_at(61, 2);
    assert!(shadow == 0 && (150..250).contains(&enforced), "{enforced} {shadow}");
    assert_eq!(stage_at(121, 2), (1_000, 0));
    assert_eq!(stage_at(121, 1).0, enforced, "a hub may hold it back, and the same governors stay in");
    let mut skipped = chain.clone();
    operators.order(&mut skipped, Command::Skip { order: 2, stage: 2 }, 2).unwrap();
    let now = Timestamp::from_millis(1_000);
    assert_eq!(skipped.policies_for("g1", &[], &BTreeMap::new(), now), (Some(2), None));
}

#[test]
fn what_loosens_needs_more_operators() {
    let operators = Operators::new();
    let mut chain = operators.founded();
    let limit = |max| Command::Limit { counter: "refunds/sum of amount/organisation".to_owned(), max };
    assert!(operators.order(&mut chain, limit(5), 1).is_err());
    operators.order(&mut chain, limit(5), 2).unwrap();
    operators.order(&mut chain, limit(4), 1).unwrap();
    assert!(operators.order(&mut chain, limit(5), 1).is_err());
    let offline = |seconds| Command::Offline { group: "search".to_owned(), seconds };
    assert!(operators.order(&mut chain, offline(60), 1).is_err());
    operators.order(&mut chain, offline(60), 2).unwrap();
    operators.order(&mut chain, offline(30), 1).unwrap();
    assert_eq!(chain.offline_for(&["search".to_owned()]), Duration::from_secs(30));
    let both = ["search".to_owned(), "payments".to_owned()];
    assert_eq!(chain.offline_for(&both), Duration::ZERO, "each of its groups must have the rule");
    operators.order(&mut chain, Command::Retire { governor: "g1".to_owned() }, 1).unwrap();
    assert!(chain.is_retired("g1"));
    assert!(operators.order(&mut chain, Command::Readmit { governor: "g1".to_owned() }, 1).is_err());
    operators.order(&mut chain, Command::Readmit { governor: "g1".to_owned() }, 2).unwrap();
    assert!(!chain.is_retired("g1"));
}
