//! Rulekeep over a wire: the governance contract as JSON-RPC on standard input and output, over HTTP with keys, plans and
//! a console, and events to webhooks.
//!
//! [`Gateway`](gateway::Gateway) opens all of it on a [`Governor`](rulekeep::Governor); [`sidecar::serve`] and
//! [`http::router`] speak for it.
//!
//! | file | subject |
//! |---|---|
//! | `gateway/` | keys, plans and limits in front of the calls |
//! | `http/` | the calls over HTTP |
//! | `key_calls.rs` | the calls on keys |
//! | `params.rs` | reading a request's fields, each fault with its name |
//! | `wire.rs` | the contract's calls: named parameters in, JSON out |
//! | `agent.rs` | the calls on agents |
//! | `catalogue.rs` | the calls about tools |
//! | `checkpoint.rs` | the calls about checkpoints |
//! | `escalation.rs` | the calls on escalations |
//! | `events.rs` | the calls on events, and telling them |
//! | `policy.rs` | the calls on policy sets |
//! | `rpc.rs` | JSON-RPC 2.0 framing |
//! | `stop.rs` | the calls on stops |
//! | `strict.rs` | JSON in which no name stands twice |
//! | `sidecar.rs` | the two over lines of text: the protocol of the sidecar |
//! | `signature.rs` | signing webhook payloads, and verifying them |
//! | `trust.rs` | the calls on trust |
//! | `webhook/` | delivering events to web addresses |
//! | `webhook_calls.rs` | the calls about this |

mod agent;
mod catalogue;
mod checkpoint;
mod escalation;
mod events;
pub mod gateway;
pub mod http;
mod key_calls;
mod params;
mod policy;
mod rpc;
pub mod sidecar;
mod stop;
mod strict;
mod telemetry;
mod trust;
pub mod webhook;
mod webhook_calls;
mod wire;
