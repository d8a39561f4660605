//! A gateway between an MCP client and an MCP server that decides on every tool call before it reaches the server.
//!
//! [`wrap()`] starts the server as a child process and serves the client on standard input and output. [`proxy()`] connects to
//! a server over streamable HTTP and serves clients over standard input and output or HTTP. Both speak revision
//! 2026-07-28 and the session-based revisions before it, on either side.
//!
//! The gateway asks governance through [`Calls`]: a [`Gateway`](rulekeep_server::gateway::Gateway) in the same process
//! ([`InProcess`]), or whatever else answers the calls of the sidecar's protocol. Where a call of governance fails, the
//! tool call is refused.
//!
//! | file | subject |
//! |---|---|
//! | `options.rs` | settings of the two entry points |
//! | `calls.rs` | the calls of governance, and the ones in the same process |
//! | `governance.rs` | the calls that the gateway makes, with typed answers |
//! | `catalogue.rs` | tools that were admitted, and tools in quarantine |
//! | `call.rs` | the way of a tool call: decision, approval, forwarding, outcome |
//! | `approval.rs` | escalations that wait, and the question to the user |
//! | `seal.rs` | sealed state that a client hands back once |
//! | `shared.rs` | what clients share, and their connections to the server |
//! | `refusal.rs` | refusals as tool errors |
//! | `handler.rs` | requests of the client |
//! | `listen.rs` | subscriptions to changes on the server |
//! | `progress.rs` | progress in order with results |
//! | `upstream.rs` | the connection to the server, and its requests and notifications |
//! | `entry.rs` | the two entry points |

#![allow(deprecated)] // methods that revision 2026-07-28 dropped are served in the revisions before it

mod approval;
mod call;
mod calls;
mod catalogue;
mod entry;
mod governance;
mod handler;
mod listen;
mod options;
mod progress;
mod refusal;
mod seal;
mod shared;
mod upstream;

#[cfg(test)]
mod tests;

pub use calls::{CallError, Calls, InProcess};
pub use entry::{Error, proxy, wrap};
pub use options::{Downstream, Governed, ProxyOptions, WrapOptions};
