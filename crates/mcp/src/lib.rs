//! A gateway between an MCP client and an MCP server that decides on every tool call before it reaches the server.
//!
//! [`wrap()`] starts the server as a child process and serves the client on standard input and output. [`proxy()`]
//! connects to a server over streamable HTTP and serves clients over standard input and output or HTTP. Both support
//! revision 2026-07-28 and the earlier, session-based revisions on either side.
//!
//! The gateway asks governance through [`Calls`]: a connection that answers the calls of the sidecar's protocol. If a
//! call to governance fails, the tool call is refused.
//!
//! | file | subject |
//! |---|---|
//! | `options.rs` | the options of the two entry points |
//! | `calls.rs` | the interface to governance |
//! | `governance.rs` | the gateway's calls, with typed answers |
//! | `catalogue.rs` | admitted tools, and tools in quarantine |
//! | `offer.rs` | the tools that a server lists, and those that cannot be used |
//! | `call.rs` | processing a tool call: decision, approval, forwarding, outcome |
//! | `approval.rs` | waiting escalations, and the question to the user |
//! | `seal.rs` | sealed state that a client returns once |
//! | `remote.rs` | callers that prove who they are, each as an agent of its own |
//! | `shared.rs` | state shared by clients, and their connections to the server |
//! | `refusal.rs` | refusals as tool errors |
//! | `handler.rs` | requests of the client |
//! | `listen.rs` | subscriptions to changes on the server |
//! | `lines.rs` | messages as lines, and the text of results |
//! | `tasks.rs` | calls that continue as tasks |
//! | `process.rs` | the server as a process group |
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
mod lines;
mod listen;
mod offer;
mod options;
mod process;
mod progress;
mod refusal;
mod remote;
mod seal;
mod shared;
mod tasks;
mod upstream;

#[cfg(test)]
mod tests;

pub use calls::{CallError, Calls};
pub use entry::{Error, proxy, wrap};
pub use options::{Downstream, Governed, ProxyOptions, WrapOptions};
pub use remote::{Callers, Refused, Remote};
