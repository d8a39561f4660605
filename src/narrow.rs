//! Narrowing the arguments of a call to the constraints of a decision.

use serde_json::{Map, Value};

use crate::model::{Constraints, Enforcement};
use crate::parse::{ArgumentRole, argument_role};

/// The arguments of a tool call within the constraints of this decision: counts are at most `maxRecords`, timeouts at
/// most `timeoutMs`, and lists of recipients and hosts have only allowed ones. Returns `None` if the arguments are
/// within them as they are, or if nothing would be left of a list.
///
/// A runtime that sends the narrowed call decides on it again first. Constraints on other values stay with the caller.
///
/// ```
/// use rulekeep::grant::narrowed;
/// use rulekeep::{Agent, Governor, PolicySet, Tier};
/// use serde_json::json;
///
/// let policies = PolicySet::from_toml(
///     "name = \"p\"\n[[rule]]\nid = \"few\"\neffect = \"allow\"\nconstraints = { maxRecords = 50 }",
/// )?;
/// let governor = Governor::builder().policies(policies).open_in_memory()?;
/// governor.agents().register(Agent::new("a").at_tier(Tier::T4))?;
/// let arguments = json!({ "query": "open", "limit": 5000 });
/// let call = json!({ "tool": "list_tickets", "arguments": arguments }).to_string();
/// let verdict = governor.enforce_input("a", &call)?.enforcement;
/// let within = narrowed(&verdict, arguments.as_object().unwrap());
/// assert_eq!(within.unwrap()["limit"], 50);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn narrowed(enforcement: &Enforcement, arguments: &Map<String, Value>) -> Option<Map<String, Value>> {
    let constraints = &enforcement.constraints;
    if constraints.is_empty() {
        return None;
    }
    let mut narrowed = arguments.clone();
    for (key, value) in &mut narrowed {
        if !narrow(constraints, key, value) {
            return None;
        }
    }
    (narrowed != *arguments).then_some(narrowed)
}

/// Narrows one argument. Returns false if nothing is left of it.
fn narrow(constraints: &Constraints, key: &str, value: &mut Value) -> bool {
    // A number that is no whole one, such as -1 for all, is more than any limit.
    let cap = |value: &mut Value, limit: &str| {
        let most = constraints.get(limit).and_then(Value::as_u64).filter(|_| value.is_number());
        if let Some(most) = most.filter(|most| value.as_u64().is_none_or(|given| given > *most)) {
            *value = most.into();
        }
    };
    match argument_role(key) {
        Some(ArgumentRole::Count) => cap(value, "maxRecords"),
        Some(ArgumentRole::Recipient | ArgumentRole::Url) => {
            let Value::Array(items) = value else { return true };
            items.retain(|item| item.as_str().is_none_or(|target| allows(constraints, target)));
            return !items.is_empty();
        }
        _ if matches!(key, "timeout" | "timeout_ms" | "timeoutMs") => cap(value, "timeoutMs"),
        _ => {}
    }
    true
}

fn allows(constraints: &Constraints, target: &str) -> bool {
    let host = crate::model::facts::host_of(target).filter(|_| target.contains("://"));
    let hosts = constraints.get("allowedHosts").and_then(Value::as_array);
    let is_known = |host: &str| hosts.is_none_or(|known| known.iter().any(|known| known.as_str() == Some(host)));
    constraints.allows_target(target) && host.as_deref().is_none_or(is_known)
}
