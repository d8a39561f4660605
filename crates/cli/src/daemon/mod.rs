//! The daemon: one process that has the home's store open and answers everybody else over two Unix sockets.
//!
//! | file | subject |
//! |---|---|
//! | `console.rs` | HTTP and the console of the daemon |
//! | `pins.rs` | the catalogue, as agents may change it |
//! | `server.rs` | the sockets, and what each may call |
//! | `verbs.rs` | `rulekeep up`, `down` and `status` |

mod console;
mod pins;
mod server;
mod verbs;

pub(crate) use verbs::{DownOptions, StatusOptions, UpOptions, down, status, up};
