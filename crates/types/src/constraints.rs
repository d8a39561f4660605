//! Constraints: the limits attached to a grant.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::Timestamp;

/// Limits attached to a grant: a JSON object such as `{"maxRecords":100,"timeoutMs":30000}`.
///
/// Keys are sorted, so equal constraints serialize to equal bytes. Cloning is cheap.
// Shared, because a decision usually takes over the constraints of one rule unchanged.
// INVARIANT: `None` when empty, so that equal constraints are equal.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Constraints(Option<Arc<BTreeMap<String, Value>>>);

impl Constraints {
    /// Creates an empty set of constraints.
    pub const fn new() -> Self {
        Self(None)
    }

    /// Returns whether there are no constraints.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The value of one constraint.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.as_ref()?.get(key)
    }

    /// `timeoutMs`: the maximum duration of the action; `None` without the constraint. A value that is not a whole
    /// number of milliseconds allows no time.
    pub fn timeout(&self) -> Option<Duration> {
        self.get("timeoutMs").map(|value| Duration::from_millis(value.as_u64().unwrap_or(0)))
    }

    /// `expiresAt`: the time the grant expires; `None` without the constraint. A value that is not a timestamp counts
    /// as expired.
    pub fn expires_at(&self) -> Option<Timestamp> {
        let read = |value: &Value| value.as_str().and_then(|text| text.parse().ok());
        self.get("expiresAt").map(|value| read(value).unwrap_or(Timestamp::from_millis(0)))
    }

    /// Returns whether `allowedTargets` permits a target. An entry matches exactly, or by its prefix if it ends in `*`.
    /// Without the constraint every target is permitted.
    ///
    /// ```
    /// use rulekeep::policy::Constraints;
    ///
    /// let constraints: Constraints = serde_json::from_str(r#"{"allowedTargets": ["/srv/app/*"]}"#).expect("JSON");
    /// assert!(constraints.allows_target("/srv/app/a.txt"));
    /// assert!(!constraints.allows_target("/srv/app/../secret"));
    /// ```
    pub fn allows_target(&self, target: &str) -> bool {
        let fits = |known: &str| match known.strip_suffix('*') {
            Some(start) => target.strip_prefix(start).is_some_and(|rest| !rest.contains("..")),
            None => known == target,
        };
        self.get("allowedTargets")
            .is_none_or(|value| value.as_array().is_some_and(|known| known.iter().filter_map(Value::as_str).any(fits)))
    }

    /// Iterates over the constraints in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().flat_map(|limits| limits.iter()).map(|(key, value)| (key.as_str(), value))
    }

    /// Sets a constraint and replaces an earlier value.
    pub fn insert(&mut self, key: impl Into<String>, value: Value) {
        self.limits().insert(key.into(), value);
    }

    /// Merges `other` into these constraints and keeps the tighter value where both set a key.
    ///
    /// - Numbers: the smaller one.
    /// - Lists: the entries in both, except `redactFields` and `confine`, which keep the entries of either.
    /// - Booleans: `true` if either is (a restriction such as `readOnly`).
    /// - Texts: the lexically smaller one, so `expiresAt` keeps the earlier time.
    /// - Values of different types: `null`, which grants nothing.
    pub fn tighten(&mut self, other: &Self) {
        if self.is_empty() {
            self.clone_from(other);
            return;
        }
        let Some(theirs) = &other.0 else { return };
        let limits = self.limits();
        for (key, theirs) in theirs.iter() {
            match limits.get_mut(key) {
                Some(ours) if GROWING.contains(&key.as_str()) => *ours = union(ours, theirs),
                Some(ours) => *ours = tighter(ours, theirs),
                None => {
                    limits.insert(key.clone(), theirs.clone());
                }
            }
        }
    }

    /// The map to modify, created if empty.
    fn limits(&mut self) -> &mut BTreeMap<String, Value> {
        Arc::make_mut(self.0.get_or_insert_default())
    }
}

impl fmt::Debug for Constraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Constraints").field(&self.0.as_deref().unwrap_or(&BTreeMap::new())).finish()
    }
}

impl Serialize for Constraints {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Constraints {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let limits = BTreeMap::deserialize(deserializer)?;
        Ok(Self((!limits.is_empty()).then(|| Arc::new(limits))))
    }
}

/// The lists that restrict more the longer they are.
const GROWING: [&str; 2] = ["redactFields", "confine"];

fn union(ours: &Value, theirs: &Value) -> Value {
    match (ours, theirs) {
        (Value::Array(a), Value::Array(b)) => {
            let mut all: Vec<Value> = a.iter().chain(b.iter().filter(|item| !a.contains(item))).cloned().collect();
            // Sorted, so that equal constraints are equal bytes whichever rule came first.
            all.sort_by_cached_key(ToString::to_string);
            Value::Array(all)
        }
        _ => tighter(ours, theirs),
    }
}

fn tighter(ours: &Value, theirs: &Value) -> Value {
    match (ours, theirs) {
        (Value::Number(a), Value::Number(b)) => {
            // Two different large integers can compare equal as f64; keeping ours is then as good.
            let smaller = b.as_f64().unwrap_or(f64::MAX) < a.as_f64().unwrap_or(f64::MAX);
            Value::Number(if smaller { b.clone() } else { a.clone() })
        }
        (Value::Array(a), Value::Array(b)) => Value::Array(a.iter().filter(|item| b.contains(item)).cloned().collect()),
        (Value::Bool(a), Value::Bool(b)) => Value::Bool(*a || *b),
        (Value::String(a), Value::String(b)) => Value::String(a.min(b).clone()),
        (a, b) if a == b => a.clone(),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn constraints(value: Value) -> Constraints {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_is_taken_over_is_a_copy_of_its_own() {
        let theirs = constraints(json!({"maxRecords": 100}));
        let mut ours = Constraints::new();
        ours.tighten(&theirs);
        assert_eq!(ours, theirs);
        ours.insert("maxRecords", json!(1));
        assert_eq!(theirs, constraints(json!({"maxRecords": 100})));
    }

    #[test]
    fn limits_of_nothing_are_equal_and_written_as_an_empty_object() {
        let read = constraints(json!({}));
        assert!(read.is_empty());
        assert_eq!(read, Constraints::new());
        assert_eq!(
            (serde_json::to_string(&read).unwrap(), format!("{read:?}")),
            ("{}".into(), "Constraints({})".into())
        );
    }

    #[test]
    fn merging_keeps_the_tighter_of_both() {
        let mut merged = constraints(json!({
            "maxRecords": 100, "redactFields": ["iban"], "allowedHosts": ["a", "b"], "readOnly": false, "expiresAt": "2026-02-01T00:00:00Z", "mixed": 1,
            "confine": ["workspace"]
        }));
        merged.tighten(&constraints(json!({
            "maxRecords": 10, "redactFields": ["name"], "allowedHosts": ["b", "c"], "readOnly": true, "expiresAt": "2026-01-01T00:00:00Z",
            "mixed": "one", "timeoutMs": 500, "confine": [{ "hosts": ["a"] }, "offline"]
        })));
        assert_eq!(
            serde_json::to_value(&merged).unwrap(),
            json!({
                "maxRecords": 10, "redactFields": ["iban", "name"], "allowedHosts": ["b"], "readOnly": true, "expiresAt": "2026-01-01T00:00:00Z",
                "mixed": null, "timeoutMs": 500, "confine": ["offline", "workspace", { "hosts": ["a"] }]
            })
        );
    }
}
