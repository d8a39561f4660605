//! Governance with the policies of the tests.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rulekeep::policy::{PolicyFormat, PolicySet};
use rulekeep::{Agent, Governor, ProofQuery, Tier};
use rulekeep_server::Access;
use rulekeep_server::gateway::{Gateway, KeyDraft, Plan, Scope};
use serde_json::{Value, json};

use crate::{CallError, Calls};

const POLICIES: &str = r#"
name = "tests"

[reviewers]
ops = ["ann"]

[[rule]]
id = "reads"
effect = "allow"
match.capabilities = ["*:read", "email:send"]

[[rule]]
id = "no-deletions"
effect = "deny"
match.capabilities = ["*:delete"]

[[rule]]
id = "mail-needs-ops"
effect = "escalate"
match.capabilities = ["email:send"]
reviewer = "ops"
"#;

/// Governance with a key, and calls that a test lets fail.
pub(super) struct Office {
    pub(super) governor: Governor,
    gateway: Gateway,
    key: Access,
    failing: Mutex<Option<&'static str>>,
    /// True if another connection is to pin the next tools first.
    pub(super) is_raced: AtomicBool,
    pub(super) made: Mutex<Vec<String>>,
}

impl Office {
    pub(super) fn in_memory() -> Arc<Self> {
        Self::of(builder().open_in_memory().unwrap())
    }

    /// Governance with other policies and an agent at a tier.
    pub(super) fn with(policies: &str, tier: Tier) -> Arc<Self> {
        let set = PolicySet::parse(policies, PolicyFormat::Toml, "tests.toml").unwrap();
        let governor = Governor::builder().policies(set).open_in_memory().unwrap();
        governor.agents().register(Agent::new("a").at_tier(tier)).unwrap();
        Self::of(governor)
    }

    pub(super) fn in_folder(folder: &Path) -> Arc<Self> {
        Self::of(builder().open(folder).unwrap())
    }

    fn of(governor: Governor) -> Arc<Self> {
        if governor.agents().get("a").is_err() {
            governor.agents().register(Agent::new("a").at_tier(Tier::T5)).unwrap();
        }
        let gateway = Gateway::new(&governor).unwrap();
        let plan = Plan::enterprise(1_000_000, 1_000_000).unwrap();
        let key = gateway.keys().create(KeyDraft::new(Scope::Admin, plan)).unwrap();
        let key = Access::Key(key.key.expose().to_owned());
        Arc::new(Self {
            governor,
            gateway,
            key,
            failing: Mutex::default(),
            is_raced: AtomicBool::default(),
            made: Mutex::default(),
        })
    }

    /// Makes every call of this method fail from now on.
    pub(super) fn fail(&self, method: &'static str) {
        *self.failing.lock().unwrap() = Some(method);
    }

    /// Limits calls granted from now on to this time.
    pub(super) fn hurry(&self, milliseconds: u32) {
        let granting = "effect = \"allow\"\n";
        let text = POLICIES.replace(granting, &format!("{granting}constraints = {{ timeoutMs = {milliseconds} }}\n"));
        let set = PolicySet::parse(&text, PolicyFormat::Toml, "tests.toml").unwrap();
        self.governor.policies().load(set).unwrap();
    }

    /// The outcomes that were recorded, newest first.
    pub(super) fn outcomes(&self) -> Vec<Value> {
        let page = self.governor.query(&ProofQuery::entity("a")).unwrap();
        page.items.iter().map(|record| json!(record.outcome)).collect()
    }

    pub(super) fn count(&self, method: &str) -> usize {
        self.made.lock().unwrap().iter().filter(|made| *made == method).count()
    }
}

impl Calls for Office {
    fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        self.made.lock().unwrap().push(method.to_owned());
        if *self.failing.lock().unwrap() == Some(method) {
            return Err(CallError::new("STORAGE_UNAVAILABLE", "a test took it away"));
        }
        if method == "catalogue/pin" && self.is_raced.swap(false, Ordering::SeqCst) {
            self.key.call(&self.gateway, method, &params.to_string()).unwrap();
            return Err(CallError::new("FORBIDDEN", "the tool was seen before"));
        }
        let answer = self.key.call(&self.gateway, method, &params.to_string()).map_err(|error| {
            CallError::new(error.code(), error.message()).with_details(error.details().unwrap_or_default())
        })?;
        Ok(serde_json::from_str(answer.get()).unwrap())
    }
}

fn builder() -> rulekeep::GovernorBuilder {
    Governor::builder().policies(PolicySet::parse(POLICIES, PolicyFormat::Toml, "tests.toml").unwrap())
}
