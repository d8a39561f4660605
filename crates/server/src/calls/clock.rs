//! The call on the clock.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::call::Call;
use super::spec::{Spec, required_person};
use crate::gateway::Gateway;
use rulekeep::Error;
use rulekeep::system::ClockReport;

/// The person who confirms the clock's time, and the reason.
#[derive(Deserialize, Serialize, ToSchema)]
pub struct Accept {
    /// The person.
    #[schema(schema_with = required_person)]
    pub by: String,
    /// The reason.
    #[schema(max_length = 4096)]
    pub note: Option<String>,
}

impl Call for Accept {
    const SPEC: Spec = Spec::post("clock/accept", "/admin/clock", "Confirms the clock's time").errors(&[409]);
    type Answer = ClockReport;

    fn run(self, gateway: &Gateway) -> Result<ClockReport, Error> {
        gateway.governor().log().accept_clock(&self.by, &self.note.unwrap_or_default())
    }
}
