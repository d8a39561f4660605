//! The calls on trust.

use serde_json::Value;

use super::agent::shown;
use super::params::{Faults, Params};
use super::wire::{Call, to_json};
use rulekeep::Error;
use rulekeep::Governor;
use rulekeep::proof::ProofId;
use rulekeep::trust::Score;

pub(super) const CALLS: &[(&str, Call)] = &[
    ("trust/history", history),
    ("trust/adjust", adjust),
    ("trust/correct", |governor, params| {
        let proof_id: ProofId = params.word("proofId", Faults::Input)?;
        to_json(&governor.trust().correct(&proof_id, params.text("note", Faults::Input)?)?)
    }),
    ("trust/verify", |governor, _| to_json(&governor.trust().verify()?)),
];

fn history(governor: &Governor, params: &Params) -> Result<Value, Error> {
    const FAULTS: Faults = Faults::Query;
    let page = params.optional_whole("page", FAULTS)?.unwrap_or(1);
    let page_size = params.optional_whole("pageSize", FAULTS)?.unwrap_or(50);
    to_json(&governor.trust().history(params.text("agentId", FAULTS)?, page, page_size)?)
}

fn adjust(governor: &Governor, params: &Params) -> Result<Value, Error> {
    const FAULTS: Faults = Faults::Input;
    let score = params.optional_whole("score", FAULTS)?.ok_or_else(|| Error::input("score", "expected 0 to 1000"))?;
    let score = Score::try_from(score).map_err(|error| Error::input("score", error.to_string()))?;
    let info = governor.trust().adjust(params.text("agentId", FAULTS)?, score, params.text("note", FAULTS)?)?;
    Ok(shown(&info))
}
