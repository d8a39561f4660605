//! The calls about checkpoints: make one, prove.

use serde_json::Value;

use super::params::Params;
use crate::governor::Governor;
use crate::model::Error;

#[cfg(feature = "checkpoints")]
pub(super) use with::{create, prove};
#[cfg(not(feature = "checkpoints"))]
pub(super) use without::{create, prove};

#[cfg(feature = "checkpoints")]
mod with {
    use serde_json::json;

    use super::{Error, Governor, Params, Value};
    use crate::edge::params::Faults;
    use crate::model::ProofId;

    /// Makes a checkpoint: `{}`.
    pub(in crate::edge) fn create(governor: &Governor, _: &Params) -> Result<Value, Error> {
        Ok(json!({ "note": governor.log().checkpoint()? }))
    }

    /// Proves that a record is in the log, or that the log only grew: `{proofId}` or `{fromSize, toSize}`.
    pub(in crate::edge) fn prove(governor: &Governor, params: &Params) -> Result<Value, Error> {
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
}

#[cfg(not(feature = "checkpoints"))]
mod without {
    use super::{Error, Governor, Params, Value};

    pub(in crate::edge) fn create(_: &Governor, _: &Params) -> Result<Value, Error> {
        Err(NOT_BUILT)
    }

    pub(in crate::edge) fn prove(_: &Governor, _: &Params) -> Result<Value, Error> {
        Err(NOT_BUILT)
    }

    const NOT_BUILT: Error = Error::NotBuilt { feature: "checkpoints" };
}
