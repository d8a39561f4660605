//! Floor 4, the edges: the contract over a wire, in terms of the
//! [`Governor`](crate::Governor) alone.
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
#[cfg(feature = "gateway")]
pub mod gateway;
#[cfg(feature = "http")]
pub mod http;
mod key_calls;
mod params;
mod policy;
mod rpc;
pub mod sidecar;
pub mod signature;
mod stop;
mod strict;
mod trust;
#[cfg(feature = "webhooks")]
pub mod webhook;
mod webhook_calls;
mod wire;
