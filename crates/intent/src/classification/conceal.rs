//! Redaction of secrets in texts and context values before they are written down.

use std::collections::HashMap;
use std::sync::{LazyLock, PoisonError, RwLock};

use rulekeep_types::Intent;
use serde_json::{Number, Value};

use super::mask::{MASK, masked};
use super::secrets_of;

/// Returns the text with every secret redacted, or `None` if it has none.
pub fn conceal_text(text: &str) -> Option<String> {
    let mut current: Option<String> = None;
    for _ in 0..MOST_ROUNDS {
        let now = current.as_deref().unwrap_or(text);
        // One round finds a limited number of secrets, and redacting one can make its neighbor recognizable.
        match masked(now, &secrets_of(now)).filter(|masked| masked != now) {
            Some(masked) => current = Some(masked),
            None => return current,
        }
    }
    // Still finding secrets after the last round: nothing of the text can be trusted.
    Some(MASK.to_owned())
}

/// The parts of a text that must not be stored, as found while parsing it.
#[derive(Debug, Default)]
pub struct Redaction {
    pub(crate) secrets: Vec<String>,
    /// Whether the text was parsed exactly as it stands, so that no further secrets can be in it.
    pub(crate) is_whole: bool,
}

impl Redaction {
    /// Adds the findings of another parse of the same text.
    pub(crate) fn join(&mut self, other: Self) {
        self.secrets.extend(other.secrets);
        self.secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        self.secrets.dedup();
    }

    /// Returns a piece of the text with every secret redacted, or `None` if it has none.
    pub(crate) fn concealed(&self, piece: &str) -> Option<String> {
        let known = masked(piece, &self.secrets);
        conceal_text(known.as_deref().unwrap_or(piece)).or(known)
    }

    /// Returns the text with every secret redacted, or `None` if it has none.
    pub fn redacted(&self, text: &str) -> Option<String> {
        if self.is_whole && self.secrets.is_empty() {
            return None;
        }
        self.concealed(text)
    }
}

/// Redacts the secrets of a context, and every repetition of them.
#[derive(Debug, Default)]
pub struct Concealer {
    /// Sorted by length, longest first.
    secrets: Vec<String>,
    count: u64,
}

impl Concealer {
    /// Redacts every secret in a value.
    pub fn conceal(&mut self, value: &mut Value) {
        self.mask(value, false);
        self.secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        self.secrets.dedup();
        self.mask_known(value);
    }

    /// The number of texts that were redacted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the text with every secret redacted, including those found earlier, or `None` if it has none.
    pub fn text(&self, text: &str) -> Option<String> {
        let known = masked(text, &self.secrets);
        conceal_text(known.as_deref().unwrap_or(text)).or(known)
    }

    fn mask(&mut self, value: &mut Value, is_named: bool) {
        match value {
            Value::String(text) if is_named && !text.is_empty() => {
                let whole = std::mem::replace(text, MASK.to_owned());
                self.note(whole);
            }
            Value::String(text) => {
                let found = secrets_of(text);
                if let Some(concealed) = conceal_text(text) {
                    *text = concealed;
                    for secret in found {
                        self.note(secret);
                    }
                }
            }
            Value::Number(number) => {
                let text = digits_of(number);
                if is_named || is_secret_number(&text) {
                    self.note(text);
                    *value = Value::String(MASK.to_owned());
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.mask(value, is_named)),
            Value::Object(fields) => {
                for (key, mut value) in std::mem::take(fields) {
                    self.mask(&mut value, is_named || names_secret(&key));
                    let concealed = conceal_text(&key);
                    self.count += u64::from(concealed.is_some());
                    fields.insert(concealed.unwrap_or(key), value);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn note(&mut self, secret: String) {
        self.count += 1;
        // A short value is a word that may occur anywhere.
        if secret.len() >= LEAST_REPEATED {
            self.secrets.push(secret);
        }
    }

    /// Redacts all other occurrences of the secrets found so far.
    fn mask_known(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(concealed) = masked(text, &self.secrets) {
                    *text = concealed;
                    self.count += 1;
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.mask_known(value)),
            Value::Object(fields) => {
                for (key, mut value) in std::mem::take(fields) {
                    self.mask_known(&mut value);
                    let concealed = masked(&key, &self.secrets);
                    self.count += u64::from(concealed.is_some());
                    fields.insert(concealed.unwrap_or(key), value);
                }
            }
            Value::Number(number) => {
                if self.secrets.contains(&digits_of(number)) {
                    *value = Value::String(MASK.to_owned());
                    self.count += 1;
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
}

/// Returns whether the context of an intent contains anything to redact. The parser has redacted the facts.
pub fn has_secrets(intent: &Intent) -> bool {
    let mut context = intent.context.iter();
    context.any(|(key, value)| !secrets_of(key).is_empty() || is_secret(value, names_secret(key)))
}

fn is_secret(value: &Value, is_named: bool) -> bool {
    match value {
        Value::String(text) => is_named && !text.is_empty() || !secrets_of(text).is_empty(),
        Value::Number(number) => is_named || !is_short(number) && is_secret_number(&digits_of(number)),
        Value::Array(values) => values.iter().any(|value| is_secret(value, is_named)),
        Value::Object(fields) => fields
            .iter()
            .any(|(key, value)| !secrets_of(key).is_empty() || is_secret(value, is_named || names_secret(key))),
        Value::Null | Value::Bool(_) => false,
    }
}

/// Returns whether a key marks its value as a secret whatever the value looks like, judged by the text patterns.
fn names_secret(key: &str) -> bool {
    let known = KEYS.read().unwrap_or_else(PoisonError::into_inner).get(key).copied();
    if let Some(known) = known {
        return known;
    }
    let hides = |probe: &str| secrets_of(&format!("\"{key}\": \"{probe}\"")).iter().any(|secret| secret == probe);
    let names = PROBES.iter().any(|probe| hides(probe));
    let mut keys = KEYS.write().unwrap_or_else(PoisonError::into_inner);
    if keys.len() < MOST_KEYS && key.len() <= LONGEST_KEY {
        keys.insert(key.into(), names);
    }
    names
}

// Cache of results by key: contexts use the same few keys, and running the patterns is the most expensive step. The
// lock is held only for one lookup or insertion.
static KEYS: LazyLock<RwLock<HashMap<Box<str>, bool>>> = LazyLock::new(RwLock::default);
const MOST_KEYS: usize = 1024;
const LONGEST_KEY: usize = 64;

/// The digits of a number, also if it was written as `4111.0` or with an exponent.
fn digits_of(number: &Number) -> String {
    match number.as_f64() {
        Some(whole) if number.is_f64() && whole.fract() == 0.0 && whole.abs() < MOST_WHOLE => format!("{whole:.0}"),
        _ => number.to_string(),
    }
}

/// Whether a number has fewer digits than any secret.
fn is_short(number: &Number) -> bool {
    number.as_u64().is_some_and(|number| number < LEAST_LONG_NUMBER)
}

fn is_secret_number(text: &str) -> bool {
    text.len() >= LONG_NUMBER && text.bytes().all(|byte| byte.is_ascii_digit()) && !secrets_of(text).is_empty()
}

/// Values that are secrets only if their key says so.
const PROBES: [&str; 2] = ["Zx9qLm4T", "48213"];
/// Maximum number of redaction rounds over one text.
const MOST_ROUNDS: usize = 16;
/// Length of the shortest secret that is searched for elsewhere, in bytes.
const LEAST_REPEATED: usize = 6;
const LONG_NUMBER: usize = 13;
const LEAST_LONG_NUMBER: u64 = 1_000_000_000_000;
/// Upper bound of numbers that are written out as digits; no secret number has more of them.
const MOST_WHOLE: f64 = 1e20;

#[cfg(test)]
mod tests {
    use super::*;
    use rulekeep_types::RiskLevel;
    use serde_json::json;

    fn concealed(mut value: Value) -> (Value, u64) {
        let mut concealer = Concealer::default();
        let mut intent = Intent::new("a", "b", RiskLevel::Low, ["file:read"]).unwrap();
        intent.context.clone_from(value.as_object().unwrap());
        let has = has_secrets(&intent);
        concealer.conceal(&mut value);
        assert_eq!(has, concealer.count() > 0, "{value}");
        (value, concealer.count())
    }

    #[test]
    fn values_are_masked_by_their_look_and_by_their_key() {
        let (value, _) = concealed(json!({
            "card": "pay with 4111 1111 1111 1111 please",
            "number": 4_111_111_111_111_111_u64,
            "password": "correct horse battery",
            "db": { "api_key": ["Zx9qLm4TtRw8Kv2P"], "pin": 4821, "repeated": "it is correct horse battery!" },
            "AKIAABCDEFGHIJKLMNOP": 1,
        }));
        let expected = json!({
            "card": "pay with *** please",
            "number": "***",
            "password": "***",
            "db": { "api_key": ["***"], "pin": "***", "repeated": "it is ***!" },
            "***": 1,
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn what_is_no_secret_stays_as_it_is() {
        let plain = json!({
            "environment": "production", "amount": 123_456_789_u64, "recipients": ["ann@example.com"], "monkey": "george",
            "max_tokens": 4096, "note": "Send the report of May 2024 to Bob", "timestamp": 1_800_000_000_123_u64,
        });
        assert_eq!(concealed(plain.clone()), (plain, 0));
    }

    #[test]
    fn passwords_of_command_lines_and_statements_are_masked() {
        for (text, secret) in [
            ("mysql -h db -u root -pS3cret! shop < dump.sql", "S3cret!"),
            ("run mysqldump -ubackup -p'horse' --all-databases", "horse"),
            ("curl -s -u ann:horse https://api.example.com/x", "horse"),
            ("curl --user=ann:horse https://api.example.com/x", "horse"),
            ("sshpass -p horse ssh root@10.0.0.1", "horse"),
            ("docker login -u ann -p horse registry.example.com", "horse"),
            ("redis-cli -h cache -a horse FLUSHALL", "horse"),
            ("CREATE USER 'ann'@'%' IDENTIFIED BY 'horse'", "horse"),
            ("alter user ann identified by horse", "horse"),
            ("CREATE ROLE ann LOGIN PASSWORD 'horse'", "horse"),
            ("Server=db;User Id=sa;Password=horse;Encrypt=true", "horse"),
            ("redis://:horse@cache:6379/0", "horse"),
            ("Data Source=db;UID=sa;PWD=horse", "horse"),
            ("DefaultEndpointsProtocol=https;AccountName=a;AccountKey=Zx9qLm4TtRw8Kv2PZx9qLm4TtRw8Kv2P==", "Zx9qLm4T"),
            ("my PIN is 4821", "4821"),
            ("The security code is: 392", "392"),
            ("use rkp_admin_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef01234567", "rkp_admin"),
        ] {
            let concealed = conceal_text(text).unwrap_or_else(|| panic!("nothing is masked in {text}"));
            assert!(!concealed.contains(secret) && concealed.contains("***"), "{text}: {concealed}");
        }
        for text in [
            "mysql -u root -p shop",
            "curl -u $USER:$TOKEN https://api.example.com",
            "docker login --password-stdin registry.example.com",
            "the table is identified by its name",
            "the answer is 4821",
            "grep -p pattern file",
        ] {
            assert_eq!(conceal_text(text), None, "{text}");
        }
    }

    #[test]
    fn a_text_of_many_secrets_keeps_none() {
        let keys: Vec<String> = (0..300).map(|number| format!("AKIA{number:016}")).collect();
        let concealed = conceal_text(&keys.join(" and ")).unwrap();
        assert!(!concealed.contains("AKIA"), "{concealed}");
    }

    #[test]
    fn numbers_are_masked_in_any_form_and_secrets_in_any_place() {
        let mut context = json!({
            "amount": 4_111_111_111_111_111.0, "large": 4.111_111_111_111_111e15, "small": 12.5,
            "password": "hunter2horse", "seen": {"hunter2horse": 1},
            "pin": 73_519_462, "again": 73_519_462,
        });
        let mut concealer = Concealer::default();
        concealer.conceal(&mut context);
        let text = context.to_string();
        for secret in ["4111111111111111", "4.111", "hunter2horse", "73519462"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        assert_eq!(context["small"], 12.5);
    }
}
