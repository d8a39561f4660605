//! What the tests of a fleet are made of: an organisation, governors that only pretend to decide, and real hubs over a
//! real PostgreSQL.

pub(crate) mod checker;
pub(crate) mod cluster;
pub(crate) mod disk;
pub(crate) mod governor;
pub(crate) mod http;
pub(crate) mod hub;
pub(crate) mod member;
pub(crate) mod namespace;
pub(crate) mod organisation;
pub(crate) mod proxy;
pub(crate) mod witness;

use std::time::Duration;

use rulekeep::checkpoint::Checkpoint;
use rulekeep_fleet::log::{Head, Leaf, Resource, leaves_of};
use rulekeep_fleet::order::Command;
use rulekeep_fleet::wire::Standing;

use cluster::Database;
use hub::{Api, HubOptions, RunningHub};
use member::{Member, PATIENCE};
use organisation::{Organisation, log_key};

/// An organisation with one hub.
pub(crate) struct Fleet {
    pub(crate) organisation: Organisation,
    pub(crate) hub: RunningHub,
    pub(crate) database: Database,
}

impl Fleet {
    /// One whose permits last for 30 seconds; `None`, saying so, where PostgreSQL is missing.
    pub(crate) async fn start() -> Option<Self> {
        let database = Database::new().await?;
        let hub = RunningHub::start(&HubOptions::new(&database.url)).await;
        let organisation = found(hub.api, 30).await;
        Some(Self { organisation, hub, database })
    }

    /// Gives the next order, signed by the first `signers` operators.
    pub(crate) async fn give(&mut self, command: Command, signers: usize) -> Standing {
        give(&mut self.organisation, self.hub.api, command, signers).await
    }

    pub(crate) async fn member(&self, name: &str) -> Member {
        Member::admitted(name, &["payments"], &self.organisation, &[self.hub.address()]).await
    }
}

/// Founds an organisation at a hub that has just started.
pub(crate) async fn found(api: Api, permit_seconds: u64) -> Organisation {
    let organisation = Organisation::founded(permit_seconds);
    until("the hub takes the first order", async || api.give(&organisation.orders[0]).await.is_ok()).await;
    organisation
}

/// Gives the next order, signed by the first `signers` operators.
pub(crate) async fn give(organisation: &mut Organisation, api: Api, command: Command, signers: usize) -> Standing {
    let order = organisation.sign(command, signers);
    let asked = async {
        loop {
            // Hubs may be on their way to another primary.
            match api.give(&order).await {
                Err((503, _)) => tokio::time::sleep(Duration::from_millis(20)).await,
                given => return given,
            }
        }
    };
    let given = tokio::time::timeout(PATIENCE, asked).await.expect("a hub answers");
    organisation.keep(&order);
    given.expect("the hub takes the order")
}

/// Asks again and again until something is so.
pub(crate) async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let asked = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, asked).await.is_ok(), "in vain: {what}");
}

/// The published leaves of the organisation's log, verified against its checkpoint.
pub(crate) async fn leaves(api: Api) -> Vec<Leaf> {
    let note = api.checkpoint().await.expect("a checkpoint is published");
    let head = Head::from(&Checkpoint::open(&note, &log_key().verifier()).expect("the organisation's signature"));
    let mut texts = Vec::new();
    for index in 0..head.size.div_ceil(256) {
        let width = u32::try_from((head.size - index * 256).min(256)).expect("at most 256");
        let answer = api.get(&format!("/{}", Resource::Entries(index, width))).await.expect("the hub answers");
        texts.extend(leaves_of(&answer.body).expect("a bundle of entries"));
    }
    let bytes: Vec<_> = texts.iter().map(|text| text.clone().into_bytes()).collect();
    let again = rulekeep_fleet::log::append(&Head::EMPTY, &std::collections::HashMap::new(), &bytes).expect("leaves");
    assert_eq!(again.head, head, "the leaves are not those of the checkpoint");
    texts.iter().map(|text| Leaf::parse(text).expect("a leaf")).collect()
}

/// Waits until the log has a leaf.
pub(crate) async fn until_leaf(what: &str, api: Api, is_it: impl Fn(&Leaf) -> bool) {
    until(what, async || leaves(api).await.iter().any(&is_it)).await;
}
