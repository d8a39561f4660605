//! Hooks: the events of an agent's host, read, decided on by the daemon, and answered in the host's own words.
//!
//! | file | subject |
//! |---|---|
//! | `event.rs` | one event of any host, the ruling on it, and the answer to the host |
//! | `dialects/` | one file a host: how it writes events and reads answers |
//! | `engine.rs` | the ruling on an event, by a governor |
//! | `install/` | the entries in a host's settings |

pub mod dialects;
pub mod event;
pub mod install;
