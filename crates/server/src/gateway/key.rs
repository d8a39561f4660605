//! API keys: their text, what is said of one, and what the store keeps.

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
    /// What a key permits.
    pub enum Scope("scope") {
        /// What an agent does: parsing, enforcing, reporting outcomes, and reading its own records.
        Agent = "agent",
        /// Everything.
        Admin = "admin",
    }
}

/// How many requests a key may make: a sustained rate, and how many at once.
///
/// Written `free`, `pro`, in small letters or capitals, or `{"perMinute": 6000, "burst": 500}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "PlanText", into = "PlanText")]
pub enum Plan {
    /// 60 a minute, 10 at once.
    Free,
    /// 600 a minute, 100 at once.
    Pro,
    /// As agreed; see [`Plan::enterprise`].
    Enterprise {
        /// Requests a minute.
        per_minute: NonZeroU32,
        /// Requests at once.
        burst: NonZeroU32,
    },
}

impl Plan {
    /// The highest rate and burst that can be agreed on: a million a second, and as many at once.
    pub const MOST: (u32, u32) = (60_000_000, 1_000_000);

    /// A plan of its own: requests a minute (1 to 60,000,000), and at once (1 to 1,000,000).
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

    /// Requests a minute.
    pub const fn per_minute(self) -> NonZeroU32 {
        match self {
            Self::Free => MINUTE,
            Self::Pro => TEN_A_SECOND,
            Self::Enterprise { per_minute, .. } => per_minute,
        }
    }

    /// Requests at once.
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
            .description(Some("How many requests a key may make: `free`, `pro`, or as agreed."))
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

/// A plan as it is written.
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
            // The contract writes them with capitals.
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

/// The text of a key: `rkp_<scope>_<64 hex digits><8 hex digits>`, 256 random bits and a checksum (CRC-32 of all before
/// it), so that a mistyped or cut key is told from one that is not known, and scanners of leaked secrets find it.
///
/// It is shown once. `Debug` does not show it. It is not compared with others, for how long that takes would say where they
/// part; digests are.
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

    /// The text, to be handed to whom it is for.
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
        // What was given instead may be a secret of another kind, so that it is not repeated.
        let wrong =
            || InvalidValue::new("API key", "…", "rkp_agent_ or rkp_admin_ and 72 lower-case hex digits that add up");
        let rest =
            ["rkp_agent_", "rkp_admin_"].iter().find_map(|prefix| text.strip_prefix(prefix)).ok_or_else(wrong)?;
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

/// A key to be made.
#[derive(Debug, Clone)]
#[must_use]
pub struct KeyDraft {
    pub(super) scope: Scope,
    pub(super) plan: Plan,
    pub(super) name: Option<String>,
    pub(super) agents: Vec<String>,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) built_intents: bool,
}

impl KeyDraft {
    /// A key of that scope and plan, for every agent, that does not expire.
    pub const fn new(scope: Scope, plan: Plan) -> Self {
        Self { scope, plan, name: None, agents: Vec::new(), expires_at: None, built_intents: false }
    }

    /// What people call it, in lists and alerts: 1 to 256 characters.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Limits it to what concerns this agent, and others that are named; at most 1,000. Only for the scope `agent`.
    pub fn agent(mut self, agent_id: impl Into<String>) -> Self {
        self.agents.push(agent_id.into());
        self
    }

    /// Lets it enforce intents that its caller built, where it is limited to agents: for a runtime, and never for the
    /// agent itself, whose word on risk and capabilities it would take.
    pub fn built_intents(mut self) -> Self {
        self.built_intents = true;
        self
    }

    /// From when on it is refused.
    pub fn expires_at(mut self, at: impl Into<Timestamp>) -> Self {
        self.expires_at = Some(at.into());
        self
    }
}

/// What is said of a key; its text and its digest never are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct KeyInfo {
    /// Its identifier, which is no secret.
    pub id: KeyId,
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it permits.
    pub scope: Scope,
    /// How many requests it may make.
    pub plan: Plan,
    /// The agents that it is limited to; empty: none in particular.
    pub agents: Vec<AgentId>,
    /// Whether it enforces intents that its caller built; a key that is limited to agents does only where it was made so.
    pub built_intents: bool,
    /// Whether it is accepted.
    pub state: KeyState,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Since when it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    /// When it was last accepted, since the store was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
}

closed_words! {
    /// Whether a key is accepted.
    pub enum KeyState("key state") {
        /// It is.
        Active = "active",
        /// Its time is over.
        Expired = "expired",
        /// It was revoked.
        Revoked = "revoked",
    }
}

/// A key that was just made.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[non_exhaustive]
pub struct NewKey {
    /// What is said of it from now on.
    #[serde(flatten)]
    pub info: KeyInfo,
    /// Its text, which is shown here alone.
    #[serde(serialize_with = "exposed")]
    #[schema(value_type = String)]
    pub key: ApiKey,
}

fn exposed<S: serde::Serializer>(key: &ApiKey, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(key.expose())
}

/// What the store keeps of a key.
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
    pub(super) digest: Digest,
    pub(super) created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) revoked_at: Option<Timestamp>,
    /// It was seen to have expired, which no clock takes back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) expired: bool,
}

impl KeyRecord {
    /// Whether it enforces intents that its caller built. Who holds a key for named agents may be one of them.
    pub(super) fn takes_built_intents(&self) -> bool {
        self.built_intents || self.agents.is_empty()
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
