//! Risk levels, and the risk floor of an action.

use super::{Action, Capability, Intent, Operation, Resource, closed_words};

closed_words! {
    /// The potential harm of an action, from LOW to CRITICAL.
    ///
    /// The effective risk of a request is the higher of the intent's level and
    /// [`risk_floor`](crate::risk_floor).
    ///
    /// ```
    /// use rulekeep::{Governor, Intent, RiskLevel};
    ///
    /// assert!(RiskLevel::High > RiskLevel::Medium);
    /// assert_eq!("CRITICAL".parse(), Ok(RiskLevel::Critical));
    ///
    /// // A caller cannot state a lower risk than the action has: a payment without an amount is HIGH.
    /// let governor = Governor::builder().auto_register().open_in_memory()?;
    /// let payment = Intent::new("desk-1", "pay_invoice", RiskLevel::Low, ["payment:transfer"])?;
    /// let verdict = governor.enforce(&payment)?;
    /// assert_eq!(governor.log().record(&verdict.proof_id)?.risk_level, RiskLevel::High);
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    pub enum RiskLevel("risk level") {
        /// Public data, or the agent's own ordinary items.
        Low = "LOW",
        /// Other people's personal data, shared state, a single outside recipient, or small purchases.
        Medium = "MEDIUM",
        /// Bulk operations, money, credentials or production systems.
        High = "HIGH",
        /// High-risk operations with the widest reach.
        Critical = "CRITICAL",
    }
}

impl RiskLevel {
    /// The next higher level; `CRITICAL` stays `CRITICAL`.
    #[must_use]
    pub const fn raised(self) -> Self {
        match self {
            Self::Low => Self::Medium,
            Self::Medium => Self::High,
            Self::High | Self::Critical => Self::Critical,
        }
    }
}

/// The risk floor: the lowest risk level an action with these capabilities can have.
///
/// It is the mildest reading of each capability. A correct parse is never below it, but a caller that understates its
/// risk is.
///
/// ```
/// use rulekeep::intent::{Capability, risk_floor};
/// use rulekeep::RiskLevel;
///
/// let capabilities = ["payment:transfer".parse::<Capability>()?];
/// assert_eq!(risk_floor(&"send_money".parse()?, &capabilities), RiskLevel::Medium);
/// # Ok::<(), rulekeep::intent::InvalidValue>(())
/// ```
pub fn risk_floor(action: &Action, capabilities: &[Capability]) -> RiskLevel {
    capabilities.iter().map(|capability| capability_floor(action, capability)).max().unwrap_or(RiskLevel::Medium)
}

/// Returns whether a context's `environment` names production.
pub fn names_production(environment: &str) -> bool {
    ["production", "prod", "prd", "live"].iter().any(|known| environment.trim().eq_ignore_ascii_case(known))
}

/// The risk of a reading without an assessment: HIGH for an administrative operation and for a payment of unknown
/// amount.
pub fn usual_risk(reading: &Capability, intent: &Intent) -> RiskLevel {
    match reading.operation() {
        Some(Operation::Admin) => RiskLevel::High,
        Some(Operation::Transfer) if !intent.context.contains_key("amount") => RiskLevel::High,
        _ => RiskLevel::Low,
    }
}

fn capability_floor(action: &Action, capability: &Capability) -> RiskLevel {
    use Resource as R;
    use RiskLevel::{High, Low, Medium};

    let Some(operation) = capability.operation() else { return Medium };
    let resource = capability.resource();
    match operation {
        Operation::Read => match resource {
            // Fingerprints and public keys are the only harmless credentials.
            Some(R::Credential) if names_a_public_part(action) => Low,
            Some(R::Credential) => High,
            Some(R::Customer | R::Health | R::Payment | R::Email | R::Unknown) => Medium,
            _ => Low,
        },
        Operation::Write => match resource {
            Some(R::Health) => High,
            Some(
                R::Task
                | R::Calendar
                | R::Document
                | R::Media
                | R::File
                | R::Email
                | R::Message
                | R::Contact
                | R::Order
                | R::Booking
                | R::Code
                | R::Information
                | R::Analytics,
            ) => Low,
            _ => Medium,
        },
        Operation::Delete => match resource {
            Some(R::Account | R::Credential | R::Health) => High,
            Some(R::Document | R::Task | R::Media | R::Calendar) => Low,
            _ => Medium,
        },
        Operation::Send => match resource {
            Some(R::Credential | R::Health | R::Customer | R::Payment) => High,
            Some(
                R::Email
                | R::Message
                | R::Document
                | R::File
                | R::Calendar
                | R::Task
                | R::Media
                | R::Information
                | R::Code
                | R::Analytics,
            ) => Low,
            _ => Medium,
        },
        Operation::Execute => match resource {
            Some(
                R::Media
                | R::Information
                | R::Device
                | R::Code
                | R::Model
                | R::Document
                | R::File
                | R::Calendar
                | R::Analytics
                | R::Task
                | R::Web,
            ) => Low,
            _ => Medium,
        },
        Operation::Admin => match resource {
            Some(R::Credential | R::Network | R::System) => High,
            _ => Medium,
        },
        Operation::Transfer | Operation::Unknown => Medium,
    }
}

pub(super) fn names_a_public_part(action: &Action) -> bool {
    let is_secret = |word: &str| {
        ["private", "secret", "password", "passphrase", "token", "pin", "credential"]
            .iter()
            .any(|known| word.starts_with(known))
    };
    let mut before = "";
    let mut public = false;
    for word in action.words() {
        if is_secret(word) {
            return false;
        }
        public |=
            matches!(word, "fingerprint" | "fingerprints") || (before == "public" && matches!(word, "key" | "keys"));
        before = word;
    }
    public
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floor(action: &str, capabilities: &[&str]) -> RiskLevel {
        let capabilities: Vec<Capability> = capabilities.iter().map(|text| text.parse().unwrap()).collect();
        risk_floor(&action.parse().unwrap(), &capabilities)
    }

    #[test]
    fn the_riskiest_capability_sets_the_floor() {
        assert_eq!(floor("read_file", &["file:read"]), RiskLevel::Low);
        assert_eq!(floor("read_file", &["file:read", "account:delete"]), RiskLevel::High);
    }

    #[test]
    fn a_secret_is_high_and_its_fingerprint_is_not() {
        assert_eq!(floor("read_password", &["credential:read"]), RiskLevel::High);
        assert_eq!(floor("get_key_fingerprint", &["credential:read"]), RiskLevel::Low);
        assert_eq!(floor("show_public_keys", &["credential:read"]), RiskLevel::Low);
        assert_eq!(floor("publish_public_password", &["credential:read"]), RiskLevel::High);
        assert_eq!(floor("show_public_keys_and_private_keys", &["credential:read"]), RiskLevel::High);
    }

    #[test]
    fn what_is_not_in_the_vocabulary_is_never_low() {
        assert_eq!(floor("do_it", &["unknown:unknown"]), RiskLevel::Medium);
        assert_eq!(floor("do_it", &["crm:export"]), RiskLevel::Medium);
    }

    #[test]
    fn raising_stops_at_critical() {
        assert_eq!(RiskLevel::Low.raised(), RiskLevel::Medium);
        assert_eq!(RiskLevel::Critical.raised(), RiskLevel::Critical);
    }
}
