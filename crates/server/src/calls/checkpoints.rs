//! The calls on checkpoints.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::call::Call;
use super::params::proof_id;
use super::spec::Spec;
use crate::gateway::Gateway;
use rulekeep::Error;
use rulekeep::proof::ProofId;

/// No parameters.
#[derive(Deserialize, Serialize, ToSchema)]
pub struct Create {}

impl Call for Create {
    const SPEC: Spec =
        Spec::post("checkpoint/create", "/admin/checkpoints", "Creates a signed checkpoint").errors(&[409]);
    type Answer = CheckpointNote;

    fn run(self, gateway: &Gateway) -> Result<CheckpointNote, Error> {
        Ok(CheckpointNote { note: gateway.governor().log().checkpoint()? })
    }
}

/// A record, or two sizes of the log.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Prove {
    /// The record whose inclusion in the log is proved.
    #[schema(value_type = Option<ProofId>)]
    pub proof_id: Option<String>,
    /// Together with `toSize`: proves that the log of this size is the start of the larger one.
    pub from_size: Option<u64>,
    /// The later size.
    pub to_size: Option<u64>,
}

impl Call for Prove {
    const SPEC: Spec = Spec::post(
        "checkpoint/prove",
        "/admin/checkpoints/proof",
        "Proves that a record is in the log, or that a later log extends an earlier one",
    )
    .errors(&[404, 409]);
    type Answer = CheckpointProof;

    fn run(self, gateway: &Gateway) -> Result<CheckpointProof, Error> {
        let proof = match (self.proof_id, self.from_size, self.to_size) {
            (Some(text), None, None) => gateway.governor().log().prove(&proof_id(&text)?)?,
            (None, Some(old), Some(new)) => gateway.governor().log().prove_consistency(old, new)?,
            _ => return Err(Error::input("proofId", "expected either proofId or both fromSize and toSize")),
        };
        Ok(CheckpointProof { proof })
    }
}

/// A checkpoint.
#[derive(Deserialize, Serialize, ToSchema)]
pub struct CheckpointNote {
    /// A signed note in the C2SP format.
    pub note: String,
}

/// A proof relative to checkpoints.
#[derive(Deserialize, Serialize, ToSchema)]
pub struct CheckpointProof {
    /// The proof.
    pub proof: String,
}
