//! API keys: their text, their description, and their stored form.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use rulekeep::Error;
use rulekeep::agent::AgentId;
use rulekeep::extension::KeyId;
use rulekeep::extension::closed_words;
use rulekeep::intent::InvalidValue;
use rulekeep::proof::Digest;
use rulekeep::system::Timestamp;

closed_words! {
    /// The permissions of an API key.
    pub enum Scope("scope") {
        /// Calls of an agent: parse, enforce, report outcomes, and read its own records.
        Agent = "agent",
        /// Calls of one reviewer: list and read escalations, and answer them in the name of the key's reviewer.
        Reviewer = "reviewer",
        /// All calls, including administration.
        Admin = "admin",
    }
}

/// The request limits of an API key: a sustained rate and a burst.
///
/// Serialized as `free` or `pro`, in any case, or as `{"perMinute": 6000, "burst": 500}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "PlanText", into = "PlanText")]
pub enum Plan {
    /// 60 requests per minute, burst of 10.
    Free,
    /// 600 requests per minute, burst of 100.
    Pro,
    /// Individual limits; see [`Plan::enterprise`].
    Enterprise {
        /// Sustained requests per minute.
        per_minute: NonZeroU32,
        /// Burst size in requests.
        burst: NonZeroU32,
    },
}

impl Plan {
    /// The highest rate per minute and burst of an enterprise plan: a million requests per second, and as many at
    /// once.
    pub const MOST: (u32, u32) = (60_000_000, 1_000_000);

    /// Creates an enterprise plan: 1 to 60,000,000 requests per minute, and a burst of 1 to 1,000,000.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] outside these ranges.
    pub fn enterprise(per_minute: u32, burst: u32) -> Result<Self, Error> {
        let within = |value: u32, most: u32| NonZeroU32::new(value).filter(|value| value.get() <= most);
        match (within(per_minute, Self::MOST.0), within(burst, Self::MOST.1)) {
            (Some(per_minute), Some(burst)) => Ok(Self::Enterprise { per_minute, burst }),
            _ => Err(Error::input("plan", "expected perMinute of 1 to 60000000 and burst of 1 to 1000000")),
        }
    }

    /// Sustained requests per minute.
    pub const fn per_minute(self) -> NonZeroU32 {
        match self {
            Self::Free => MINUTE,
            Self::Pro => TEN_A_SECOND,
            Self::Enterprise { per_minute, .. } => per_minute,
        }
    }

    /// The number of requests that can be made at once.
    pub const fn burst(self) -> NonZeroU32 {
        match self {
            Self::Free => TEN,
            Self::Pro => HUNDRED,
            Self::Enterprise { burst, .. } => burst,
        }
    }

    /// The name: `free`, `pro` or `enterprise`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Pro => "pro",
            Self::Enterprise { .. } => "enterprise",
        }
    }
}

impl utoipa::PartialSchema for Plan {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Type};

        let whole = |most: u32| ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(most));
        let agreed = ObjectBuilder::new()
            .property("perMinute", whole(Self::MOST.0))
            .required("perMinute")
            .property("burst", whole(Self::MOST.1))
            .required("burst");
        OneOfBuilder::new()
            .description(Some("The rate limit of a key: `free`, `pro`, or a custom one."))
            .item(rulekeep::extension::words(["free", "pro"]))
            .item(agreed)
            .into()
    }
}

impl utoipa::ToSchema for Plan {}

const MINUTE: NonZeroU32 = NonZeroU32::MIN.saturating_add(59);
const TEN_A_SECOND: NonZeroU32 = NonZeroU32::MIN.saturating_add(599);
const TEN: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);
const HUNDRED: NonZeroU32 = NonZeroU32::MIN.saturating_add(99);

/// The serialized form of a plan.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PlanText {
    Named(String),
    #[serde(rename_all = "camelCase")]
    Agreed {
        per_minute: u32,
        burst: u32,
    },
}

impl TryFrom<PlanText> for Plan {
    type Error = String;

    fn try_from(text: PlanText) -> Result<Self, String> {
        match text {
            // The specification capitalizes the names.
            PlanText::Named(name) if name.eq_ignore_ascii_case("free") => Ok(Self::Free),
            PlanText::Named(name) if name.eq_ignore_ascii_case("pro") => Ok(Self::Pro),
            PlanText::Named(_) => Err("expected free, pro, or {perMinute, burst}".to_owned()),
            PlanText::Agreed { per_minute, burst } => {
                Self::enterprise(per_minute, burst).map_err(|error| error.to_string())
            }
        }
    }
}

impl From<Plan> for PlanText {
    fn from(plan: Plan) -> Self {
        match plan {
            Plan::Free | Plan::Pro => Self::Named(plan.name().to_owned()),
            Plan::Enterprise { per_minute, burst } => Self::Agreed { per_minute: per_minute.get(), burst: burst.get() },
        }
    }
}

/// The text of an API key: `rkp_<scope>_<64 hex digits><8 hex digits>`, 256 random bits and a CRC-32 of everything
/// before it. The checksum distinguishes a mistyped key from an unknown one, and lets secret scanners find leaked
/// keys.
///
/// The text is shown only once, and `Debug` hides it. Keys cannot be compared, because the time a comparison takes
/// would reveal a common prefix; compare their digests instead.
///
/// ```compile_fail,E0369
/// # fn is_same(one: rulekeep_server::gateway::ApiKey, other: rulekeep_server::gateway::ApiKey) -> bool {
/// one == other
/// # }
/// ```
#[derive(Clone)]
pub struct ApiKey(String);

impl ApiKey {
    pub(super) fn new(scope: Scope, random: [u128; 2]) -> Self {
        let [first, second] = random;
        let body = format!("rkp_{scope}_{first:032x}{second:032x}");
        let checksum = crc32fast::hash(body.as_bytes());
        Self(format!("{body}{checksum:08x}"))
    }

    /// The text of the key, to be passed to its owner.
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub(super) fn digest(&self) -> Digest {
        Digest::new(Sha256::digest(self.0.as_bytes()).into())
    }
}

impl FromStr for ApiKey {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        // The given text may be another kind of secret, so it is not repeated.
        let expected = "rkp_agent_, rkp_reviewer_ or rkp_admin_ and 72 lower-case hex digits that add up";
        let wrong = || InvalidValue::new("API key", "…", expected);
        let (scope, rest) = text.strip_prefix("rkp_").and_then(|rest| rest.split_once('_')).ok_or_else(wrong)?;
        scope.parse::<Scope>().map_err(|_| wrong())?;
        let is_hex = rest.len() == 72 && rest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let (body, checksum) = text.split_at_checked(text.len().saturating_sub(8)).ok_or_else(wrong)?;
        if is_hex && format!("{:08x}", crc32fast::hash(body.as_bytes())) == checksum {
            Ok(Self(text.to_owned()))
        } else {
            Err(wrong())
        }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// The settings of an API key to be created.
#[derive(Debug, Clone)]
#[must_use]
pub struct KeyDraft {
    pub(super) scope: Scope,
    pub(super) plan: Plan,
    pub(super) name: Option<String>,
    pub(super) agents: Vec<String>,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) built_intents: bool,
    pub(super) reviewer: Option<String>,
}

impl KeyDraft {
    /// Creates settings with this scope and plan, for all agents and without expiry.
    pub const fn new(scope: Scope, plan: Plan) -> Self {
        Self { scope, plan, name: None, agents: Vec::new(), expires_at: None, built_intents: false, reviewer: None }
    }

    /// Sets the display name used in lists and alerts: 1 to 256 characters.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Limits the key to this agent, in addition to agents named before; at most 1,000. Only for the scope `agent`.
    pub fn agent(mut self, agent_id: impl Into<String>) -> Self {
        self.agents.push(agent_id.into());
        self
    }

    /// Lets a key that is limited to agents enforce intents that its caller built. Use it for a runtime, never for
    /// the agent itself, whose claims about risk and capabilities would be accepted.
    pub fn built_intents(mut self) -> Self {
        self.built_intents = true;
        self
    }

    /// Sets the reviewer in whose name the key answers escalations. Required for the scope `reviewer`, and only for it.
    pub fn reviewer(mut self, reviewer: impl Into<String>) -> Self {
        self.reviewer = Some(reviewer.into());
        self
    }

    /// Sets the time from which the key is rejected.
    pub fn expires_at(mut self, at: impl Into<Timestamp>) -> Self {
        self.expires_at = Some(at.into());
        self
    }
}

/// The description of an API key, without its text and digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct KeyInfo {
    /// The key's id, which is not secret.
    pub id: KeyId,
    /// The display name of the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The permissions of the key.
    pub scope: Scope,
    /// The request limits of the key.
    pub plan: Plan,
    /// The agents that the key is limited to; empty for all agents.
    pub agents: Vec<AgentId>,
    /// Whether the key may enforce intents that its caller built. A key limited to agents may do so only if it was
    /// created that way.
    pub built_intents: bool,
    /// The reviewer in whose name the key answers escalations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<String>,
    /// The state of the key.
    pub state: KeyState,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The time from which the key is rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The time at which the key was revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    /// The time of the last accepted request since the store was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
}

closed_words! {
    /// The state of an API key.
    pub enum KeyState("key state") {
        /// The key is accepted.
        Active = "active",
        /// The key has expired.
        Expired = "expired",
        /// The key was revoked.
        Revoked = "revoked",
    }
}

/// A newly created API key.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[non_exhaustive]
pub struct NewKey {
    /// The description of the key.
    #[serde(flatten)]
    pub info: KeyInfo,
    /// The text of the key, which is shown only here.
    #[serde(serialize_with = "exposed")]
    #[schema(value_type = String)]
    pub key: ApiKey,
}

fn exposed<S: serde::Serializer>(key: &ApiKey, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(key.expose())
}

/// The stored form of a key.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct KeyRecord {
    pub(super) id: KeyId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    pub(super) scope: Scope,
    pub(super) plan: Plan,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) agents: Vec<AgentId>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) built_intents: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reviewer: Option<String>,
    pub(super) digest: Digest,
    pub(super) created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) revoked_at: Option<Timestamp>,
    /// The key was observed as expired; setting back the clock does not change that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) expired: bool,
}

impl KeyRecord {
    /// Returns whether the key may enforce intents that its caller built. The holder of a key for named agents may be
    /// one of them.
    pub(super) fn takes_built_intents(&self) -> bool {
        self.built_intents || (self.agents.is_empty() && self.scope != Scope::Reviewer)
    }

    pub(super) fn info(&self, last_used_at: Option<Timestamp>) -> KeyInfo {
        let state = match (self.revoked_at, self.expired) {
            (Some(_), _) => KeyState::Revoked,
            (None, true) => KeyState::Expired,
            (None, false) => KeyState::Active,
        };
        KeyInfo {
            id: self.id,
            name: self.name.clone(),
            scope: self.scope,
            plan: self.plan,
            agents: self.agents.clone(),
            built_intents: self.takes_built_intents(),
            reviewer: self.reviewer.clone(),
            state,
            created_at: self.created_at,
            expires_at: self.expires_at,
            revoked_at: self.revoked_at,
            last_used_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back_and_any_changed_character_is_told() {
        let key = ApiKey::new(Scope::Agent, [u128::MAX / 3, 7]);
        assert_eq!(key.expose().parse::<ApiKey>().unwrap().expose(), key.expose());
        for at in 0..key.expose().len() {
            let mut text = key.expose().to_owned().into_bytes();
            text[at] = if text[at] == b'0' { b'1' } else { b'0' };
            let error = String::from_utf8(text).unwrap().parse::<ApiKey>().unwrap_err();
            assert!(!error.to_string().contains(&key.expose()[10..20]), "{error}");
        }
        for other in ["", "rkp_agent_", "é", &key.expose()[1..], &format!("{}0", key.expose())] {
            assert!(other.parse::<ApiKey>().is_err(), "{other:?}");
        }
    }

    #[test]
    fn a_key_is_not_shown_by_debug() {
        let key = ApiKey::new(Scope::Admin, [1, 2]);
        assert_eq!(format!("{key:?}"), "ApiKey(…)");
    }

    #[test]
    fn a_plan_is_written_as_the_protocol_says() {
        let read = |text: &str| serde_json::from_str::<Plan>(text);
        assert_eq!(read("\"free\"").unwrap(), Plan::Free);
        assert_eq!(read("\"pro\"").unwrap().per_minute().get(), 600);
        let agreed = read(r#"{"perMinute":6000,"burst":500}"#).unwrap();
        assert_eq!((agreed.per_minute().get(), agreed.burst().get()), (6000, 500));
        assert_eq!(serde_json::to_string(&agreed).unwrap(), r#"{"perMinute":6000,"burst":500}"#);
        for wrong in ["\"gold\"", r#"{"perMinute":0,"burst":1}"#, r#"{"perMinute":1,"burst":0}"#, r#"{"burst":5}"#, "3"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
