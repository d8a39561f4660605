//! Requests on their way to a decision: the tools, the risk floors, and the texts that are remembered.

pub(crate) mod catalogue;
pub(crate) mod input_text;
pub(crate) mod recent;
pub(crate) mod risk;
