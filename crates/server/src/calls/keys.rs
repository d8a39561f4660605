//! The calls on API keys.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::call::Call;
use super::params::given;
use super::params::in_whole_numbers;
use super::spec::{Spec, Verb};
use crate::gateway::{Gateway, KeyDraft, KeyInfo, NewKey, Plan, Scope};
use rulekeep::Error;
use rulekeep::agent::AgentId;
use rulekeep::extension::KeyId;
use rulekeep::system::Timestamp;

/// The settings of an API key to create.
// Unknown fields are refused: if a misspelled one were ignored, the key would permit more, or last longer, than
// intended.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Create {
    /// The permissions.
    pub scope: Scope,
    /// The request limits.
    #[serde(deserialize_with = "plan")]
    pub plan: Plan,
    /// The agents that the key is limited to; only for the scope `agent`.
    #[schema(min_items = 1, max_items = 1000, value_type = Option<Vec<AgentId>>)]
    pub agents: Option<Vec<String>>,
    /// The time from which the key is rejected; must be in the future.
    pub expires_at: Option<Timestamp>,
    /// The display name of the key.
    #[schema(schema_with = super::spec::person)]
    pub name: Option<String>,
    /// Whether the key may enforce intents that its caller built. Only with `agents`; keys without `agents` always
    /// may. Never set it for a key that an agent holds itself.
    pub built_intents: Option<bool>,
    /// The reviewer in whose name the key answers escalations; for the scope `reviewer`.
    #[schema(schema_with = super::spec::person)]
    pub reviewer: Option<String>,
}

impl Call for Create {
    const SPEC: Spec = Spec::post("key/create", "/admin/keys", "Creates an API key; only this answer has its text")
        .no_null()
        .secret()
        .errors(&[409]);
    type Answer = NewKey;

    fn run(self, gateway: &Gateway) -> Result<NewKey, Error> {
        if self.agents.as_ref().is_some_and(Vec::is_empty) {
            return Err(Error::input("agents", "expected at least one; omit the field for a key for all agents"));
        }
        let mut draft = given(KeyDraft::new(self.scope, self.plan), self.name, KeyDraft::name);
        draft = given(draft, self.expires_at, KeyDraft::expires_at);
        draft = given(draft, self.reviewer, KeyDraft::reviewer);
        if self.built_intents.unwrap_or_default() {
            draft = draft.built_intents();
        }
        gateway.keys().create(self.agents.into_iter().flatten().fold(draft, KeyDraft::agent))
    }
}

fn plan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Plan, D::Error> {
    let mut plan = Value::deserialize(deserializer)?;
    in_whole_numbers(&mut plan);
    serde_json::from_value(plan)
        .map_err(|_| serde::de::Error::custom("expected free, pro, or perMinute and burst, both whole and above 0"))
}

/// No parameters.
#[derive(Deserialize, Serialize, ToSchema)]
pub struct List {}

impl Call for List {
    const SPEC: Spec = Spec::get("key/list", "/admin/keys", "Lists the API keys");
    type Answer = KeyList;

    fn run(self, gateway: &Gateway) -> Result<KeyList, Error> {
        Ok(KeyList { keys: gateway.keys().list() })
    }
}

/// Every API key, without its text.
#[derive(Deserialize, Serialize, ToSchema)]
pub struct KeyList {
    /// The keys, oldest first.
    pub keys: Vec<KeyInfo>,
}

/// The API key to revoke.
#[derive(Deserialize, Serialize, ToSchema)]
pub struct Revoke {
    /// The key.
    pub id: KeyId,
}

impl Call for Revoke {
    const SPEC: Spec = Spec::of(Verb::Delete, "key/revoke", "/admin/keys/{id}", "Revokes an API key").errors(&[404]);
    type Answer = KeyInfo;

    fn run(self, gateway: &Gateway) -> Result<KeyInfo, Error> {
        gateway.keys().revoke(self.id)
    }
}
