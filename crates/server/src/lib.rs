//! Rulekeep as a server: the governance calls as JSON-RPC on standard input and output, over HTTP with API keys,
//! plans and a console, and events delivered to webhooks.
//!
//! [`Gateway`](gateway::Gateway) is created on a [`Governor`](rulekeep::Governor); [`sidecar::serve`] and
//! [`http::router`] serve its calls.
//!
//! | file | subject |
//! |---|---|
//! | `access.rs` | the calls that a connection may make |
//! | `calls/` | every call: its parameters, its response, who may make it |
//! | `gateway/` | API keys, plans and rate limits in front of the calls |
//! | `http/` | the calls over HTTP |
//! | `rpc.rs` | JSON-RPC 2.0 framing |
//! | `sidecar.rs` | the calls as lines of text: the sidecar protocol |
//! | `strict.rs` | JSON without duplicate names |
//! | `tokens.rs` | access tokens of an OAuth authorization server |
//! | `webhooks/` | delivery of events to endpoints |

mod access;
pub mod calls;
pub mod gateway;
#[cfg(test)]
#[path = "../../../tests/common/generated.rs"]
mod generated;
pub mod http;
mod rpc;
pub mod sidecar;
mod strict;
mod telemetry;
pub mod tokens;
pub mod webhooks;

pub use access::{AGENT_SOCKET_CALLS, Access};

/// The code in the page on webhooks is compiled and run with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/reference/webhooks.md")]
struct WebhooksPage;
