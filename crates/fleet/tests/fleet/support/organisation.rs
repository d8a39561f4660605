//! An organisation: its operators, its log's key, and the chain of orders that they have signed.

use rulekeep::checkpoint::CheckpointKey;
use rulekeep::kill_switch::KillSwitchScope;
use rulekeep::proof::Digest;
use rulekeep::system::{Clock as _, SystemClock, SystemEntropy, Timestamp};
use rulekeep_fleet::enrolment::Invitation;
use rulekeep_fleet::order::{Chain, Command, Order, Organisation as Founded, Policies, SignedOrder};

pub(crate) const NAME: &str = "fleet.example.com";
/// The token of callers that read.
pub(crate) const TOKEN: &str = "readers";

/// An organisation of two operators; one signs what tightens, two what loosens.
#[derive(Clone)]
pub(crate) struct Organisation {
    pub(crate) operators: Vec<CheckpointKey>,
    pub(crate) chain: Chain,
    pub(crate) orders: Vec<SignedOrder>,
    permit_seconds: u64,
}

impl Organisation {
    /// One whose first order is signed, and not given yet.
    pub(crate) fn founded(permit_seconds: u64) -> Self {
        let operators = [("ann", 1), ("bob", 2)].map(|(name, seed)| key(name, seed)).to_vec();
        let mut organisation = Self { operators, chain: Chain::new(None), orders: Vec::new(), permit_seconds };
        let founding = organisation.sign(Command::Organisation(organisation.itself()), 2);
        organisation.keep(&founding);
        organisation
    }

    pub(crate) fn itself(&self) -> Founded {
        Founded {
            name: NAME.to_owned(),
            log: log_key().verifier().to_string(),
            operators: self.operators.iter().map(|operator| operator.verifier().to_string()).collect(),
            needed: 1,
            needed_to_loosen: 2,
            permit_seconds: self.permit_seconds,
        }
    }

    /// The next order, signed by the first `signers` operators.
    pub(crate) fn sign(&self, command: Command, signers: usize) -> SignedOrder {
        Order::next(&self.chain, SystemClock.now(), command)
            .sign(&self.operators[..signers])
            .expect("an order can be signed")
    }

    /// Notes that an order was taken.
    pub(crate) fn keep(&mut self, order: &SignedOrder) {
        self.chain.add(order).expect("it is the next order");
        self.orders.push(order.clone());
    }

    /// The digest of the first order, which members trust.
    pub(crate) fn trust_anchor(&self) -> Digest {
        self.orders[0].digest()
    }

    pub(crate) fn invitation(&self, groups: &[&str], uses: u32) -> String {
        self.invitation_until(groups, uses, Timestamp::from_millis(SystemClock.now().as_millis() + 3_600_000))
    }

    pub(crate) fn invitation_until(&self, groups: &[&str], uses: u32, expires_at: Timestamp) -> String {
        let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        let own = CheckpointKey::generate("invitation", &SystemEntropy).expect("a good name");
        let invitation =
            Invitation { organisation: NAME.to_owned(), key: own.verifier().to_string(), groups, uses, expires_at };
        invitation.sign(&own, &self.operators[0])
    }
}

/// The key that signs the organisation's log.
pub(crate) fn log_key() -> CheckpointKey {
    key(NAME, 9)
}

pub(crate) fn key(name: &str, seed: u8) -> CheckpointKey {
    CheckpointKey::from_seed(name, &[seed; 32]).expect("a good name")
}

/// A kill switch for all agents of some groups of governors; of all if there are none.
pub(crate) fn stop(groups: &[&str]) -> Command {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    Command::Stop { scope: KillSwitchScope::All, groups, note: "test".to_owned() }
}

/// An order that allows reads, and payments within a limit of the organisation that a rule names.
pub(crate) fn limited(rule: &str, share: &str, max: i64, window: &str) -> Command {
    let document = format!(
        r#"
        name = "limits"
        [[rule]]
        id = "reads"
        effect = "allow"
        match.capabilities = ["document:read"]
        [[rule]]
        id = "{rule}"
        effect = "allow"
        match.capabilities = ["payment:transfer"]
        limit = {{ sum = "amount", max = {max}, per = "{window}", by = "organisation", share = "{share}" }}
        "#
    );
    Command::Policies(Policies { groups: Vec::new(), document, plan: Vec::new() })
}
