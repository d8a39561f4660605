//! Capabilities: permissions of the form `<resource>:<operation>`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::{InvalidValue, closed_words};

closed_words! {
    /// The operation of a capability, its right half.
    pub enum Operation("operation") {
        /// Look at, compute from, or fetch; changes nothing.
        Read = "read",
        /// Create or change something reversibly.
        Write = "write",
        /// Remove, cancel, or make unrecoverable.
        Delete = "delete",
        /// Deliver content to somebody else.
        Send = "send",
        /// Make a machine or a device do something.
        Execute = "execute",
        /// Move money or commit to pay.
        Transfer = "transfer",
        /// Change permissions or the security of a system.
        Admin = "admin",
        /// The operation could not be determined.
        Unknown = "unknown",
    }
}

closed_words! {
    /// The resource of a capability, its left half.
    pub enum Resource("resource") {
        /// Public facts and pure computation.
        Information = "information",
        /// Web pages, URLs, HTTP requests as such.
        Web = "web",
        /// Files, folders, archives, drives, backups, buckets.
        File = "file",
        /// Documents, notes, presentations, reports and text as content.
        Document = "document",
        /// Mail, inbox, attachments.
        Email = "email",
        /// Chat, SMS, direct messages, channels, calls.
        Message = "message",
        /// Public posts: tweets, blogs, comments, reviews, ratings.
        Social = "social",
        /// Events, meetings, appointments, reminders, alarms.
        Calendar = "calendar",
        /// Address books and contacts.
        Contact = "contact",
        /// Records about persons held by an organization.
        Customer = "customer",
        /// Accounts and profiles with a service.
        Account = "account",
        /// Passwords, keys, tokens, secrets, certificates, security codes.
        Credential = "credential",
        /// Roles, access rights, membership, sharing rights.
        Permission = "permission",
        /// Money, bank accounts, transactions, invoices, cards, refunds, tax.
        Payment = "payment",
        /// Carts, purchases, deliveries, food and ride orders.
        Order = "order",
        /// Flights, hotels, restaurants, tickets, rentals, slots.
        Booking = "booking",
        /// Tables, rows, schemas, queries.
        Database = "database",
        /// Repositories, commits, branches, pull requests, source.
        Code = "code",
        /// Tickets, issues, to-dos, projects.
        Task = "task",
        /// Hosts, processes, services, containers, clusters, packages, disks.
        System = "system",
        /// Interfaces, firewalls, DNS, VPN, routes, ports.
        Network = "network",
        /// Settings and configuration of software.
        Config = "config",
        /// Cars, home devices, phones, printers, cameras, sensors.
        Device = "device",
        /// Music, video, images, audio, playlists.
        Media = "media",
        /// Metrics, logs, dashboards, statistics of a business or a system.
        Analytics = "analytics",
        /// Machine-learning models, training, inference endpoints.
        Model = "model",
        /// Medical records, prescriptions, diagnoses, fitness.
        Health = "health",
        /// The resource could not be determined.
        Unknown = "unknown",
    }
}

/// A capability, written `<resource>:<operation>`, for example `payment:transfer`; at most 128 bytes.
///
/// The parser and the recommended policies use the words of [`Resource`] and [`Operation`]. Other words of the same
/// form (`crm:export`) are valid too, but denied unless a policy names them.
///
/// ```
/// use rulekeep::intent::{Capability, Operation, Resource};
///
/// let refund: Capability = "payment:transfer".parse()?;
/// assert_eq!(refund.resource(), Some(Resource::Payment));
/// assert_eq!(refund.operation(), Some(Operation::Transfer));
/// assert!("Payment Transfer".parse::<Capability>().is_err());
/// # Ok::<(), rulekeep::intent::InvalidValue>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Capability {
    text: Arc<str>,
    // INVARIANT: the fields below follow from the text. They are computed once, because a decision reads them many
    // times.
    colon: u8,
    resource: Option<Resource>,
    operation: Option<Operation>,
}

impl Capability {
    /// The capability of an action that could not be determined: `unknown:unknown`. The recommended policies grant it
    /// to nobody.
    pub fn unknown() -> Self {
        Self::new(Resource::Unknown, Operation::Unknown)
    }

    /// Creates a capability of the built-in vocabulary.
    pub fn new(resource: Resource, operation: Operation) -> Self {
        let (left, right) = (resource.as_str(), operation.as_str());
        let mut text = String::with_capacity(left.len() + 1 + right.len());
        text.push_str(left);
        text.push(':');
        text.push_str(right);
        let colon = u8::try_from(left.len()).unwrap_or(u8::MAX);
        Self { text: text.into(), colon, resource: Some(resource), operation: Some(operation) }
    }

    /// The capability as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text left of the colon.
    pub fn resource_word(&self) -> &str {
        self.text.get(..usize::from(self.colon)).unwrap_or("")
    }

    /// The text right of the colon.
    pub fn operation_word(&self) -> &str {
        self.text.get(usize::from(self.colon) + 1..).unwrap_or("")
    }

    /// The resource, if it is in the built-in vocabulary.
    pub fn resource(&self) -> Option<Resource> {
        self.resource
    }

    /// The operation, if it is in the built-in vocabulary.
    pub fn operation(&self) -> Option<Operation> {
        self.operation
    }

    /// Returns whether the resource or the operation could not be determined.
    pub fn is_unknown(&self) -> bool {
        self.resource_word() == "unknown" || self.operation_word() == "unknown"
    }

    fn read(text: &str) -> Option<Self> {
        let (resource, operation) = text.split_once(':').filter(|_| text.len() <= MAX_BYTES)?;
        if !is_word(resource) || !is_word(operation) {
            return None;
        }
        let colon = u8::try_from(resource.len()).ok()?;
        Some(Self { text: text.into(), colon, resource: resource.parse().ok(), operation: operation.parse().ok() })
    }
}

impl fmt::Debug for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Capability").field(&self.as_str()).finish()
    }
}

impl FromStr for Capability {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        Self::read(text).ok_or_else(|| {
            InvalidValue::new("capability", text, "resource:operation in lower case, for example payment:transfer")
        })
    }
}

crate::word::written_as_text!(Capability);

/// Maximum length of a capability in bytes.
const MAX_BYTES: usize = 128;

fn is_word(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
        && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_the_vocabulary_round_trips() {
        for &resource in Resource::ALL {
            for &operation in Operation::ALL {
                let capability = Capability::new(resource, operation);
                assert_eq!(capability.as_str().parse::<Capability>().unwrap(), capability);
                assert_eq!(capability.resource(), Some(resource));
                assert_eq!(capability.operation(), Some(operation));
            }
        }
    }

    #[test]
    fn a_custom_word_has_two_halves_and_is_not_in_the_vocabulary() {
        let export: Capability = "crm:export".parse().unwrap();
        assert_eq!((export.resource_word(), export.operation_word()), ("crm", "export"));
        assert_eq!((export.resource(), export.operation()), (None, None));
        let longest = format!("{}:b", "a".repeat(MAX_BYTES - 2)).parse::<Capability>().unwrap();
        assert_eq!((longest.resource_word().len(), longest.operation_word()), (MAX_BYTES - 2, "b"));
        assert_eq!(format!("{export:?}"), r#"Capability("crm:export")"#);
    }

    #[test]
    fn a_malformed_capability_is_refused() {
        for text in ["", ":", "email", "email:", ":read", "Email:read", "email:re ad", "email:*", "a:b:c", "é:read"] {
            assert!(text.parse::<Capability>().is_err(), "{text:?} was accepted");
        }
        assert!(format!("a:{}", "b".repeat(200)).parse::<Capability>().is_err());
    }
}
