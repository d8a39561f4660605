//! The daemon: one process that has the home's store open and serves all others over two Unix sockets.
//!
//! | file | subject |
//! |---|---|
//! | `connections.rs` | the connections of a socket, and their limit |
//! | `console.rs` | HTTP and the console of the daemon |
//! | `pins.rs` | the changes that agents may make to the catalog |
//! | `server.rs` | the sockets, and the calls that each permits |
//! | `verbs.rs` | `rulekeep up`, `down` and `status` |

mod connections;
mod console;
mod pins;
mod server;
mod verbs;

pub(crate) use server::AgentOfKey;
pub(crate) use verbs::{DownOptions, StatusOptions, UpOptions, down, status, up};
