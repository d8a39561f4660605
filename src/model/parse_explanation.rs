//! Why a request was parsed as it was.

use serde::Serialize;

use super::{Action, Capability, ParseResult, RiskLevel};

/// A parse and the evidence for it. Its JSON is the parse's own with `evidence` beside.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ParseExplanation {
    /// What [`Governor::parse`](crate::Governor::parse) gives for the same request.
    #[serde(flatten)]
    pub parse: ParseResult,
    /// One entry an act, in the order of `requiredCapabilities`.
    pub evidence: Vec<ActEvidence>,
}

/// What in the request gave one act: its capability and what it risks by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ActEvidence {
    /// The act's name.
    pub action: Action,
    /// What it requires.
    pub capability: Capability,
    /// The words or arguments that told the operation; absent where it follows from the rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The words or arguments that told the resource; absent where none names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The words of a sentence that spoke for it most, the strongest first, at most three; absent for other forms.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<WordEvidence>,
    /// Nothing names the resource, and another stands in.
    pub guessed: bool,
    /// What the act risks by itself.
    pub risk_level: RiskLevel,
    /// What made it so.
    pub risk_factors: Vec<FactorEvidence>,
}

/// A word, or two, and what it spoke for: "remit" for transfer, "payroll" for payment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WordEvidence {
    /// One word, or two that stand together; placeholders for what has a shape: `0` for a number, `filepath`, `quotation`.
    pub words: String,
    /// The operation or the resource.
    pub points_to: &'static str,
}

/// What in the request showed a risk factor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct FactorEvidence {
    /// The factor as `riskFactors` names it.
    pub factor: &'static str,
    /// The words or arguments that showed it; absent where the act itself does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}
