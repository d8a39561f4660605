//! The parts of the `rulekeep` tool: each module is a subcommand, callable from tests and other tools.

pub mod hook;
mod plain;
pub mod policy;
pub mod report;
pub mod watch;
