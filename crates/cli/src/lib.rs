//! The parts of the `rulekeep` tool: each module is a subcommand, callable from tests and other tools.

pub mod hook;
pub mod policy;
