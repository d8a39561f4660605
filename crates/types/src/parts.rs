//! Structs of the contract that may grow, and their parts.
//!
//! Such a struct is `#[non_exhaustive]`, so that a field can be added without breaking callers. The engines, which are
//! other crates, build it from its parts: a struct with the same fields that is not part of the public API.

/// Defines a non-exhaustive struct and its parts.
macro_rules! with_parts {
    (
        $(#[$meta:meta])*
        pub struct $name:ident from $parts:ident {
            $( $(#[$field_meta:meta])* $visible:vis $field:ident: $kind:ty, )+
        }
    ) => {
        $(#[$meta])*
        #[non_exhaustive]
        pub struct $name {
            $( $(#[$field_meta])* $visible $field: $kind, )+
        }

        #[doc(hidden)]
        #[allow(missing_docs)]
        pub struct $parts {
            $( pub $field: $kind, )+
        }

        impl From<$parts> for $name {
            #[inline]
            fn from($parts { $( $field, )+ }: $parts) -> Self {
                Self { $( $field, )+ }
            }
        }
    };
}
pub(crate) use with_parts;

/// Defines a non-exhaustive struct of the contract's JSON and its parts.
macro_rules! outward {
    ($(#[$meta:meta])* pub struct $name:ident from $parts:ident $fields:tt) => {
        $crate::parts::with_parts! {
            $(#[$meta])*
            #[derive(Debug, Clone, PartialEq, serde::Serialize)]
            #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
            #[serde(rename_all = "camelCase")]
            pub struct $name from $parts $fields
        }
    };
}
pub(crate) use outward;

pub use crate::agent::AgentTraitsParts;
pub use crate::enforcement::{EnforcementParts, InputEnforcementParts};
pub use crate::escalation::{ApprovalOfferParts, EscalationPageParts, ReviewNeedParts, VoteParts};
pub use crate::event::{DecisionDetailParts, DecisionRenderedParts, TrustChangeParts, TrustChangedParts};
pub use crate::facts::FactsParts;
pub use crate::intent::IntentParts;
pub use crate::parse_explanation::{ActEvidenceParts, FactorEvidenceParts, ParseExplanationParts, WordEvidenceParts};
pub use crate::record::{BreakageParts, ProofRecordParts};
pub use crate::retention::{ArchiveReportParts, RepairReportParts};
pub use crate::status::LatencyMetricsParts;
pub use crate::task::{MandateParts, OpenedTaskParts, TaskInfoParts};
pub use crate::time::ClockReportParts;
pub use crate::tool::{CatalogueReportParts, ToolClassificationParts, ToolResemblanceParts};
