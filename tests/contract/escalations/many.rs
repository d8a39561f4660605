//! Thousands at once: pages stay exact, and ending them costs few syncs.

use rulekeep::escalation::{EscalationQuery, EscalationState};
use rulekeep::kill_switch::KillSwitchScope;

use super::*;

/// So many that no page is made in one go, each agent with as many as it may have.
const AGENTS: u64 = 25;
const OF_EACH: u64 = 100;

fn asked(governor: &Governor) -> Vec<EscalationId> {
    for number in 0..AGENTS {
        governor.agents().register(Agent::new(format!("agent-{number}")).at_tier(Tier::T4)).unwrap();
    }
    let pending: Vec<_> = (0..AGENTS * OF_EACH)
        .map(|number| {
            let mut intent = payment(number);
            intent.agent_id = format!("agent-{}", number % AGENTS).parse().unwrap();
            governor.enforce_pending(&intent).unwrap()
        })
        .collect();
    pending.into_iter().map(|pending| EscalationId::of(pending.wait().unwrap().proof_id)).collect()
}

fn page(governor: &Governor, query: &EscalationQuery) -> (u64, bool, Vec<EscalationId>) {
    let page = governor.escalations().list(query).unwrap();
    (page.total, page.has_more, page.items.iter().map(|item| item.id).collect())
}

#[test]
fn pages_of_many_are_exact_and_ending_them_waits_for_few_syncs() {
    let folder = tempfile::tempdir().unwrap();
    let hand = Hand::at(NOON);
    let open = || with_clock(&hand).durability(rulekeep::Durability::Sync).open(folder.path()).unwrap();
    let governor = open();
    let ids = asked(&governor);
    let newest: Vec<_> = ids.iter().rev().copied().collect();
    let all = AGENTS * OF_EACH;
    let deep = EscalationQuery::all().page_size(200).page(12);
    assert_eq!(page(&governor, &deep), (all, true, newest[2200..2400].to_vec()));
    assert_eq!(page(&governor, &deep.state(EscalationState::Pending)), (all, true, newest[2200..2400].to_vec()));
    let rejected = [ids[3], ids[1500]];
    for id in rejected {
        governor.escalations().reject(id, by("ann")).unwrap();
    }
    let of_state = |state| EscalationQuery::all().state(state);
    assert_eq!(page(&governor, &of_state(EscalationState::Rejected)), (2, false, vec![ids[1500], ids[3]]));
    let theirs: Vec<_> =
        newest.iter().copied().filter(|id| ids.iter().position(|of| of == id).unwrap() % 25 == 3).collect();
    let of_three = EscalationQuery::all().agent("agent-3").page_size(30);
    assert_eq!(page(&governor, &of_three.clone().page(2)), (100, true, theirs[30..60].to_vec()));
    assert_eq!(page(&governor, &of_three.clone().state(EscalationState::Rejected)), (1, false, vec![ids[3]]));
    assert_eq!(
        page(&governor, &of_three.state(EscalationState::Pending).page(4)),
        (99, false, theirs[90..99].to_vec())
    );

    let syncs = || governor.log().journal().syncs;
    let before = syncs();
    let report = governor.kill_switch().set(KillSwitchScope::All, "ann", "").unwrap();
    assert_eq!(report.died, all - 2);
    let took = syncs() - before;
    // Each by itself would be one for each; how many fit into one is up to the disk.
    assert!(took < all / 2, "{took} syncs for {} ends", report.died);
    assert_eq!(page(&governor, &of_state(EscalationState::Expired)).0, all - 2);
    assert_eq!(page(&governor, &of_state(EscalationState::Pending)).0, 0);
    governor.close().unwrap();
    let governor = open();
    assert_eq!(page(&governor, &of_state(EscalationState::Expired)).0, all - 2);
    assert!(governor.verify().unwrap().valid);
}
