//! Data classifications, and the lowest classification a request can have.

use super::{Action, Capability, Resource, closed_words, risk};

closed_words! {
    /// The sensitivity of the data that an intent touches, in rising order.
    pub enum Classification("classification") {
        /// Data for the public.
        Public = "PUBLIC",
        /// Data for anyone inside the organization.
        Internal = "INTERNAL",
        /// Data for people who need it for their work.
        Confidential = "CONFIDENTIAL",
        /// Data for named persons only.
        Restricted = "RESTRICTED",
    }
}

impl Classification {
    /// The classification that a caller's word names, ignoring case and surrounding whitespace. An unknown word counts
    /// as the most sensitive.
    pub fn of_word(word: &str) -> Self {
        let word = word.trim();
        Self::ALL.iter().copied().find(|class| class.as_str().eq_ignore_ascii_case(word)).unwrap_or(Self::Restricted)
    }

    /// The lowest classification of data that these capabilities reach; `None` if they do not determine one.
    pub fn floor(action: &Action, capabilities: &[Capability]) -> Option<Self> {
        capabilities
            .iter()
            .filter_map(|capability| match capability.resource()? {
                Resource::Credential if risk::names_a_public_part(action) => None,
                Resource::Credential | Resource::Health => Some(Self::Restricted),
                Resource::Customer
                | Resource::Payment
                | Resource::Email
                | Resource::Contact
                | Resource::Account
                | Resource::Permission => Some(Self::Confidential),
                _ => None,
            })
            .max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_class_is_the_most_sensitive() {
        assert_eq!(Classification::of_word(" public "), Classification::Public);
        assert_eq!(Classification::of_word("SECRET"), Classification::Restricted);
    }

    #[test]
    fn the_most_sensitive_capability_sets_the_floor() {
        let floor = |action: &str, capabilities: &[&str]| {
            let capabilities: Vec<Capability> = capabilities.iter().map(|text| text.parse().unwrap()).collect();
            Classification::floor(&action.parse().unwrap(), &capabilities)
        };
        assert_eq!(floor("read_file", &["file:read"]), None);
        assert_eq!(floor("send_results", &["email:send", "health:read"]), Some(Classification::Restricted));
        assert_eq!(floor("get_key_fingerprint", &["credential:read"]), None);
    }
}
