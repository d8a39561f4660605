//! The calls over HTTP, and hostile clients.

mod admin;
mod approve;
mod authzen;
mod console;
mod contract;
mod end;
mod errors;
mod idempotency;
mod keys;
mod limits;
pub(crate) mod live;
mod routes;
#[cfg(feature = "tracing")]
mod secrets;
mod shapes;
mod slow;
mod tasks;
mod tls;
mod waits;
