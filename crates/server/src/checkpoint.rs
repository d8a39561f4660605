//! The calls about checkpoints: make one, prove.

use rulekeep::proof::ProofId;
use rulekeep::{Error, Governor};
use serde_json::{Value, json};

use super::params::{Faults, Params};

/// Makes a checkpoint: `{}`.
pub(super) fn create(governor: &Governor, _: &Params) -> Result<Value, Error> {
    Ok(json!({ "note": governor.log().checkpoint()? }))
}

/// Proves that a record is in the log, or that the log only grew: `{proofId}` or `{fromSize, toSize}`.
pub(super) fn prove(governor: &Governor, params: &Params) -> Result<Value, Error> {
    const FAULTS: Faults = Faults::Input;
    let sizes = (params.optional_whole("fromSize", FAULTS)?, params.optional_whole("toSize", FAULTS)?);
    let proof = match (params.optional_text("proofId", FAULTS)?, sizes) {
        (Some(text), (None, None)) => {
            let proof_id: ProofId = text.parse().map_err(|_| Error::unknown_proof(text))?;
            governor.log().prove(&proof_id)?
        }
        (None, (Some(old), Some(new))) => governor.log().prove_consistency(old, new)?,
        _ => return Err(Error::input("proofId", "expected either proofId or both fromSize and toSize")),
    };
    Ok(json!({ "proof": proof }))
}
