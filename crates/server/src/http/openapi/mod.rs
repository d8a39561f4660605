//! The OpenAPI document. A test makes it from the table of calls and their request and response types.

#[cfg(test)]
mod tests;

use serde::Serialize;
use utoipa::ToSchema;

use rulekeep::status::Health;

/// The path of the document, which needs no key.
pub(super) const PATH: &str = "/openapi.json";

/// The document.
pub(super) const DOCUMENT: &str = include_str!("openapi.json");

/// The health of the service.
#[derive(Serialize, ToSchema)]
pub(super) struct HealthWord {
    pub(super) status: Health,
}
