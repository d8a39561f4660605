//! The gateway between a client and a server of the same SDK, over streams in memory. Other SDKs are in `tests/peers`.

mod approvals;
mod calls;
mod fixture;
mod http;
mod lines;
mod office;
mod pass_through;
mod process;
mod quarantine;
mod remote;
mod tasks;
