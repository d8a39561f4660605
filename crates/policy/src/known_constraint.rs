//! The constraints whose meaning is known: their types, their units, what enforces them and which of two values is the
//! tighter.
//!
//! A grant (`model::grant`) reads those that it enforces by these names.

use serde_json::Value;

/// The type of a constraint's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConstraintKind {
    Whole,
    Number,
    Flag,
    Texts,
    Time,
    Confine,
}

impl ConstraintKind {
    /// Whether a value has the type.
    pub(super) fn fits(self, value: &Value) -> bool {
        match self {
            Self::Whole => value.is_u64(),
            Self::Number => value.as_f64().is_some_and(|amount| amount >= 0.0),
            Self::Flag => value.is_boolean(),
            Self::Texts => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
            Self::Time => value.is_string(),
            Self::Confine => {
                value.as_array().is_some_and(|terms| !terms.is_empty() && terms.iter().all(is_confinement))
            }
        }
    }

    /// The values of the type, for people.
    pub(super) const fn expected(self) -> &'static str {
        match self {
            Self::Whole => "a whole number from 0",
            Self::Number => "a number from 0",
            Self::Flag => "true or false",
            Self::Texts => "a list of strings",
            Self::Time => "a timestamp with an offset, for example 2026-01-31T09:30:00Z",
            Self::Confine => "\"workspace\", \"offline\", or a table with lists of read, write and hosts",
        }
    }
}

/// Whether a value confines a run.
fn is_confinement(value: &Value) -> bool {
    match value {
        Value::String(word) => CONFINE_WORDS.contains(&word.as_str()),
        Value::Object(lists) => {
            let is_list = |(name, list): (&String, &Value)| {
                CONFINE_LISTS.contains(&name.as_str()) && ConstraintKind::Texts.fits(list)
            };
            !lists.is_empty() && lists.iter().all(is_list)
        }
        _ => false,
    }
}

const CONFINE_WORDS: [&str; 2] = ["workspace", "offline"];
const CONFINE_LISTS: [&str; 3] = ["read", "write", "hosts"];
/// The constraint that confines a run.
pub(super) const CONFINE: &str = "confine";

/// The name and the type of each constraint.
pub(super) const KNOWN: &[(&str, ConstraintKind)] = &[
    ("maxRecords", ConstraintKind::Whole),
    ("maxUses", ConstraintKind::Whole),
    ("timeoutMs", ConstraintKind::Whole),
    ("maxAmount", ConstraintKind::Number),
    ("readOnly", ConstraintKind::Flag),
    ("allowedTargets", ConstraintKind::Texts),
    ("allowedHosts", ConstraintKind::Texts),
    ("redactFields", ConstraintKind::Texts),
    ("expiresAt", ConstraintKind::Time),
    (CONFINE, ConstraintKind::Confine),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PolicySet;
    use crate::generated::{check_page, table};

    #[test]
    fn the_page_lists_every_constraint() {
        assert_eq!(DESCRIBED.len(), KNOWN.len());
        let rows = KNOWN.iter().zip(DESCRIBED).map(|((name, kind), [described, meaning, enforced_by, merged])| {
            assert_eq!(name, described);
            let [kind, meaning, enforced_by, merged] =
                [kind.expected(), meaning, enforced_by, merged].map(str::to_owned);
            [format!("`{name}`"), kind, meaning, enforced_by, merged]
        });
        let rule = EXAMPLE.trim().trim_start_matches("```toml").trim_end_matches("```");
        assert_eq!(PolicySet::from_toml(&format!("name = \"page\"{rule}")).unwrap().warnings(), &[]);
        let head = ["constraint", "value", "limits", "enforced by", "of two values, this one stands"];
        check_page(
            "constraints.md",
            "Constraints",
            "A rule's `constraints` limit what an ALLOW or a DEGRADE grants; this page lists those with a known meaning.",
            &format!("{EXAMPLE}{}{NOTES}", table(head, rows)),
            "cargo test --lib the_page_lists_every_constraint",
        );
    }

    /// Of each constraint: its name, the quantity that it limits with its unit, the part that refuses an action beyond
    /// it, and the value that stands where two rules set it.
    const DESCRIBED: &[[&str; 4]] = &[
        [
            "maxRecords",
            "Records that the action may touch, over all uses of the decision.",
            "`Grant::take_records`",
            "the smaller",
        ],
        [
            "maxUses",
            "Grants that the decision may be turned into; 1 where it is not set.",
            "`Enforcement::grant`",
            "the smaller",
        ],
        [
            "timeoutMs",
            "Milliseconds that the action may take, from when the grant is made.",
            "every method of `Grant`; `Governor::guard`; the MCP gateway, which cancels the call",
            "the smaller",
        ],
        [
            "maxAmount",
            "Money that may be moved over all uses of the decision, in the currency that the policy means.",
            "`Grant::take_amount`",
            "the smaller",
        ],
        ["readOnly", "Whether the action may only read.", "the caller", "`true`"],
        [
            "allowedTargets",
            "Targets that the action may have: exact, or what a target begins with and `*`. What stands for `*` has no `..`.",
            "`Grant::check_target`",
            "what both lists have",
        ],
        ["allowedHosts", "Hosts that the action may reach.", "the caller", "what both lists have"],
        [
            "redactFields",
            "Fields that the caller leaves out or hides in what it returns.",
            "the caller",
            "all that either list has",
        ],
        [
            "expiresAt",
            "The end of the grant. A document's time is rewritten in UTC.",
            "every method of `Grant`; `Enforcement::grant`; `Governor::guard`",
            "the earlier",
        ],
        [
            "confine",
            "The files and hosts that the programs of the action may reach. See [confined runs](confined-runs.md).",
            "`rulekeep exec`, to which hooks and `Governor::guard_command` rewrite commands; elsewhere the caller",
            "what both permit",
        ],
    ];

    const EXAMPLE: &str = r#"```toml
[[rule]]
id = "support-reads-customers"
effect = "allow"
match.capabilities = ["customer:read"]
constraints = { maxRecords = 100, timeoutMs = 30000, redactFields = ["iban"] }
```

"#;

    const NOTES: &str = "
A constraint with another name is yours: the verdict and the grant carry it, and the caller enforces it.

- When several rules apply, the tighter value stands. Values of your own names merge by their type, as above.
- Two values of different types merge to `null`, which grants nothing.
- A value of the wrong type is refused: by the loader in a policy document, by a grant for the constraints that it enforces.
- A name that differs from a known one by a letter, case or underscores is a warning when the document loads.
- Without `timeoutMs` and `expiresAt`, a grant ends five minutes after the decision.

What a grant enforces, and how: [escalations.md](escalations.md). Where rules set constraints: [policies.md](policies.md).
";
}
