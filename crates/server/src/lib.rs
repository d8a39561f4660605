//! Rulekeep over a wire: the governance contract as JSON-RPC on standard input and output, over HTTP with keys, plans and
//! a console, and events to webhooks.
//!
//! [`Gateway`](gateway::Gateway) opens all of it on a [`Governor`](rulekeep::Governor); [`sidecar::serve`] and
//! [`http::router`] speak for it.
//!
//! | file | subject |
//! |---|---|
//! | `access.rs` | what a connection may call |
//! | `calls/` | every call: its parameters, its answer, who may make it |
//! | `gateway/` | keys, plans and limits in front of the calls |
//! | `http/` | the calls over HTTP |
//! | `rpc.rs` | JSON-RPC 2.0 framing |
//! | `sidecar.rs` | the calls over lines of text: the protocol of the sidecar |
//! | `strict.rs` | JSON in which no name stands twice |
//! | `webhooks/` | delivering events to web addresses |

mod access;
mod calls;
pub mod gateway;
#[cfg(test)]
#[path = "../../../tests/common/generated.rs"]
mod generated;
pub mod http;
mod rpc;
pub mod sidecar;
mod strict;
mod telemetry;
pub mod webhooks;

pub use access::{AGENT_SOCKET_CALLS, Access, call};
pub use calls::call_text;

/// The code in the page on webhooks is compiled and run with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/reference/webhooks.md")]
struct WebhooksPage;
