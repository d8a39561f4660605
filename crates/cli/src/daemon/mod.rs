//! The daemon: one process that has the home's store open and answers everybody else over two Unix sockets.
//!
//! | file | subject |
//! |---|---|
//! | `server.rs` | the sockets, and what each may call |
//! | `verbs.rs` | `rulekeep up`, `down` and `status` |

mod server;
mod verbs;

pub(crate) use verbs::{DownOptions, StatusOptions, UpOptions, down, status, up};
