//! Hooks: reading the events of an agent's host, deciding on them with the daemon, and answering in the host's
//! format.
//!
//! | file | subject |
//! |---|---|
//! | `event.rs` | an event of any host, the ruling on it, and the answer to the host |
//! | `dialects/` | one file per host: how it writes events and reads answers |
//! | `calls.rs` | decided calls that have no outcome yet |
//! | `confined.rs` | commands that run confined |
//! | `client.rs` | `rulekeep hook`: the process that a host starts |
//! | `engine.rs` | the ruling on an event, by a governor |
//! | `newcomers.rs` | agents that are registered at their first call |
//! | `written.rs` | the prompts that agents wrote, which are not the user's words |
//! | `own.rs` | calls that access what governs the agent |
//! | `install/` | the entries in a host's settings |

mod area;
mod calls;
mod client;
mod confined;
pub mod dialects;
pub mod engine;
pub mod event;
pub mod install;
mod newcomers;
mod own;
mod written;

pub(crate) use client::{Options, run};
pub(crate) use confined::{Claim, Refused};
