//! Floor 4, the edges: the contract over a wire, in terms of the
//! [`Governor`](crate::Governor) alone.
//!
//! | file | subject |
//! |---|---|
//! | `params.rs` | reading a request's fields, each fault with its name |
//! | `wire.rs` | the contract's calls: named parameters in, JSON out |
//! | `catalogue.rs` | the calls about tools |
//! | `checkpoint.rs` | the calls about checkpoints |
//! | `events.rs` | the calls on events, and telling them |
//! | `policy.rs` | the calls on policy sets |
//! | `rpc.rs` | JSON-RPC 2.0 framing |
//! | `sidecar.rs` | the two over lines of text: the protocol of the sidecar |
//! | `signature.rs` | signing webhook payloads, and verifying them |
//! | `webhook/` | delivering events to web addresses |
//! | `webhook_calls.rs` | the calls about this |

mod catalogue;
mod checkpoint;
mod events;
mod params;
mod policy;
mod rpc;
pub mod sidecar;
pub mod signature;
#[cfg(feature = "webhooks")]
pub mod webhook;
mod webhook_calls;
mod wire;
