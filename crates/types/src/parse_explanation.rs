//! Explanations of a parse: the evidence for each act found in a request.

use super::{Action, Capability, ParseResult, RiskLevel};

crate::parts::outward! {
    /// A parse result with the evidence for it. Its JSON is that of the parse result plus `evidence`.
    pub struct ParseExplanation from ParseExplanationParts {
        /// The result that `Governor::parse` returns for the same request.
        #[serde(flatten)]
        pub parse: ParseResult,
        /// One entry per act, in the order of `requiredCapabilities`.
        pub evidence: Vec<ActEvidence>,
    }
}

crate::parts::outward! {
    /// The evidence for one act: the words or arguments that led to its capability and its risk.
    #[derive(Eq)]
    pub struct ActEvidence from ActEvidenceParts {
        /// The normalized name of the act.
        pub action: Action,
        /// The capability that the act requires.
        pub capability: Capability,
        /// The words or arguments that named the operation; absent where it follows from the rest.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub operation: Option<String>,
        /// The words or arguments that named the resource; absent where none does.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub resource: Option<String>,
        /// The words of a sentence with the most weight for this act, strongest first, at most three; absent for structured
        /// input.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub words: Vec<WordEvidence>,
        /// Whether the resource is a guess, because nothing in the request names it.
        pub guessed: bool,
        /// The risk of this act by itself.
        pub risk_level: RiskLevel,
        /// The risk factors that raised it.
        pub risk_factors: Vec<FactorEvidence>,
    }
}

crate::parts::outward! {
    /// A word or pair of words and the meaning it supports: "remit" for transfer, "payroll" for payment.
    #[derive(Eq)]
    pub struct WordEvidence from WordEvidenceParts {
        /// One word, or two adjacent ones. A value of a known shape appears as a placeholder: `0` for a number, `filepath`,
        /// `quotation`.
        pub words: String,
        /// The operation or resource that the words support.
        pub points_to: &'static str,
    }
}

crate::parts::outward! {
    /// The evidence for one risk factor.
    #[derive(Eq)]
    pub struct FactorEvidence from FactorEvidenceParts {
        /// The factor, as named in `riskFactors`.
        pub factor: &'static str,
        /// The words or arguments that showed it; absent where the act itself implies it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub found: Option<String>,
    }
}
