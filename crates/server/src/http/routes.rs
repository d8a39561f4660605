//! Every path, with its method and the call that it is.

/// A method of HTTP that a path has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// How large a body may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// That of requests of agents.
    Request,
    /// That of whole documents: policies, tools, lists of agents.
    Document,
}

/// A path below the versioned address, `{name}` standing for a parameter, and what it is for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) path: &'static str,
    /// The call of the sidecar's protocol.
    pub(super) call: &'static str,
    pub(super) size: Size,
}

const fn route(method: Method, path: &'static str, call: &'static str) -> Route {
    Route { method, path, call, size: Size::Request }
}

const fn large(method: Method, path: &'static str, call: &'static str) -> Route {
    Route { method, path, call, size: Size::Document }
}

use Method::{Delete, Get, Patch, Post, Put};

/// All of them.
pub(super) const ROUTES: &[Route] = &[
    // The contract's five.
    route(Post, "/intent", "intent"),
    route(Post, "/enforce", "enforce"),
    route(Get, "/proof/query", "proof/query"),
    route(Get, "/proof/stats", "proof/stats"),
    route(Get, "/admin/status", "admin/status"),
    // What an agent needs besides.
    route(Post, "/proof/outcome", "outcome/report"),
    route(Get, "/proof/records/{proofId}", "proof/get"),
    route(Get, "/agents/{agentId}", "agent/get"),
    route(Get, "/agents/{agentId}/trust", "trust/history"),
    route(Get, "/escalations/{id}", "escalation/get"),
    route(Post, "/escalations/{id}/claim", "escalation/claim"),
    route(Post, "/escalations/{id}/wait", "escalation/wait"),
    // The log.
    route(Get, "/admin/records", "proof/list"),
    route(Get, "/admin/records/open", "proof/open"),
    route(Post, "/admin/trust/correct", "trust/correct"),
    route(Get, "/admin/trust/verification", "trust/verify"),
    route(Get, "/admin/verification", "proof/verify"),
    route(Post, "/admin/checkpoints", "checkpoint/create"),
    route(Post, "/admin/checkpoints/proof", "checkpoint/prove"),
    // Agents.
    route(Get, "/admin/agents", "agent/list"),
    route(Post, "/admin/agents", "agent/register"),
    large(Post, "/admin/agents/import", "agent/import"),
    route(Get, "/admin/agents/export", "agent/export"),
    route(Patch, "/admin/agents/{agentId}", "agent/update"),
    route(Post, "/admin/agents/{agentId}/suspend", "agent/suspend"),
    route(Post, "/admin/agents/{agentId}/resume", "agent/resume"),
    route(Post, "/admin/agents/{agentId}/retire", "agent/retire"),
    route(Post, "/admin/agents/{agentId}/trust", "trust/adjust"),
    // Stops.
    route(Get, "/admin/stops", "stop/list"),
    route(Post, "/admin/stops", "stop/set"),
    route(Post, "/admin/stops/{id}/lift", "stop/lift"),
    // People.
    route(Get, "/admin/escalations", "escalation/list"),
    route(Post, "/admin/escalations/{id}/approve", "escalation/approve"),
    route(Post, "/admin/escalations/{id}/reject", "escalation/reject"),
    route(Get, "/admin/grants", "escalation/grants"),
    route(Post, "/admin/grants", "escalation/grant"),
    route(Post, "/admin/grants/{id}/revoke", "escalation/revoke"),
    // Keys.
    route(Get, "/admin/keys", "key/list"),
    route(Post, "/admin/keys", "key/create"),
    route(Delete, "/admin/keys/{id}", "key/revoke"),
    // Policies.
    route(Get, "/admin/policies", "policy/get"),
    large(Put, "/admin/policies", "policy/load"),
    large(Post, "/admin/policies/validate", "policy/validate"),
    large(Post, "/admin/policies/replay", "policy/replay"),
    large(Post, "/admin/policies/shadow", "policy/shadow"),
    route(Post, "/admin/policies/explain", "policy/explain"),
    route(Post, "/admin/policies/preview", "policy/preview"),
    // Tools.
    route(Get, "/admin/catalogue", "catalogue/list"),
    large(Post, "/admin/catalogue", "catalogue/load"),
    route(Post, "/admin/catalogue/override", "catalogue/override"),
    route(Post, "/admin/catalogue/pin", "catalogue/pin"),
    route(Post, "/admin/catalogue/remove", "catalogue/remove"),
    // Webhooks.
    route(Get, "/admin/webhooks", "webhook/list"),
    route(Post, "/admin/webhooks", "webhook/add"),
    route(Delete, "/admin/webhooks/{id}", "webhook/remove"),
    route(Post, "/admin/webhooks/{id}/rotate", "webhook/rotate"),
    route(Post, "/admin/webhooks/{id}/readdress", "webhook/readdress"),
    route(Post, "/admin/webhooks/{id}/resume", "webhook/resume"),
    route(Get, "/admin/webhooks/{id}/deliveries", "webhook/deliveries"),
    route(Post, "/admin/webhooks/redeliver", "webhook/redeliver"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{key_calls, wire};

    #[test]
    fn every_path_is_a_call_that_there_is_and_stands_once() {
        for (place, route) in ROUTES.iter().enumerate() {
            assert!(wire::find(route.call).is_some() || key_calls::is_known(route.call), "{route:?}");
            let again =
                ROUTES[place + 1..].iter().find(|other| (other.method, other.path) == (route.method, route.path));
            assert!(again.is_none(), "{route:?}");
        }
    }

    #[test]
    fn every_call_has_a_path() {
        for name in wire::names().chain(key_calls::NAMES.iter().copied()) {
            assert!(ROUTES.iter().any(|route| route.call == name), "{name} has none");
        }
    }
}
