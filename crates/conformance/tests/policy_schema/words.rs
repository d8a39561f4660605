//! The closed words of both documents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $word:literal),+ }) => {
        $(#[$meta])*
        #[derive(Debug, Serialize, Deserialize, JsonSchema)]
        pub(crate) enum $name { $(#[serde(rename = $word)] $variant),+ }
    };
}

words! {
    /// The earlier outranks the later.
    Effect { Deny = "deny", Escalate = "escalate", Degrade = "degrade", Allow = "allow" }
}
words! {
    /// How much harm an action can do.
    Risk { Low = "LOW", Medium = "MEDIUM", High = "HIGH", Critical = "CRITICAL" }
}
words! {
    /// A band of trust.
    Tier { T0 = "T0", T1 = "T1", T2 = "T2", T3 = "T3", T4 = "T4", T5 = "T5" }
}
words! {
    /// How sensitive data is.
    Classification { Public = "PUBLIC", Internal = "INTERNAL", Confidential = "CONFIDENTIAL", Restricted = "RESTRICTED" }
}
words! {
    /// Whose uses are counted together.
    Measured { Agent = "agent", Group = "group", All = "all", Organisation = "organisation" }
}
words! {
    /// How a governor obtains uses of a limit of its organisation.
    Share { Reserve = "reserve", Lease = "lease" }
}
words! {
    /// What happens once a limit is used up.
    Over { Deny = "deny", Escalate = "escalate" }
}
words! {
    /// What is decided.
    Decision { Allow = "ALLOW", Deny = "DENY", Escalate = "ESCALATE", Degrade = "DEGRADE" }
}
words! {
    /// Why nothing is decided.
    Failure { PolicyError = "POLICY_ERROR" }
}
words! {
    /// What an alert looks for.
    AlertOn {
        Denials = "denials", Critical = "critical", Chain = "chain", Tier = "tier", Key = "key", Shadow = "shadow",
        PolicyError = "policy-error"
    }
}
