//! The tools that a runtime hands over, kept in memory and swapped as a whole.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use serde_json::Value;

use super::Governor;
use crate::model::{CatalogueReport, Error, Input, ParseExplanation, ToolClassification, ToolOverride};
use crate::parse::{Catalogue, Parser};

/// The catalogue in force.
#[derive(Default)]
pub(super) struct Loaded {
    /// Read by every parse without a lock; swapped under `turn`.
    catalogue: ArcSwap<Catalogue>,
    // Who makes another catalogue holds it, so that no change is lost. Nothing else is locked under it.
    turn: Mutex<()>,
}

impl Loaded {
    pub(super) fn load(&self) -> arc_swap::Guard<Arc<Catalogue>> {
        self.catalogue.load()
    }

    fn change<T>(&self, change: impl FnOnce(&Catalogue) -> Result<(Catalogue, T), Error>) -> Result<T, Error> {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let (catalogue, answer) = change(&self.catalogue.load())?;
        self.catalogue.store(Arc::new(catalogue));
        drop(turn);
        Ok(answer)
    }
}

/// The tools of a governor. See [`Governor::tools`].
#[derive(Debug, Clone, Copy)]
pub struct Tools<'a> {
    pub(super) governor: &'a Governor,
}

impl Tools<'_> {
    /// Parses a request like [`Governor::parse`], and says why: which words or arguments gave
    /// the operation, the resource, each capability and each risk factor.
    ///
    /// # Errors
    ///
    /// Those of [`Governor::parse`].
    pub fn explain_parse<'a>(self, agent_id: &str, input: impl Into<Input<'a>>) -> Result<ParseExplanation, Error> {
        let input = input.into();
        let (explained, redaction) = self.governor.read_input(agent_id, input, Parser::explain)?;
        self.governor.inner.inputs.remember(&explained.parse.intent, input.text, &redaction)?;
        Ok(explained)
    }

    /// Takes in the tools of one server, or of the runtime itself, and classifies
    /// each: an MCP `tools/list` result (the whole JSON-RPC message, its result, or
    /// the list), `OpenAI` or Anthropic `tools`, Gemini `functionDeclarations`, or a
    /// list of `{name, description?, parameters?}`.
    ///
    /// From then on calls are read by the catalogue, and a call of a tool that is
    /// not in it is at least MEDIUM. Tools that are known already are kept when
    /// their definition is the same, and reported as changed when it is not; what
    /// is not named in this load stays. Hints can raise what is seen and never lower
    /// it; [`Tools::override_tool`](crate::handle::Tools::override_tool) can. The catalogue lives in memory: a runtime
    /// loads it at each start.
    ///
    /// ```
    /// use rulekeep::{Governor, RiskLevel};
    /// use serde_json::json;
    ///
    /// let governor = Governor::builder().open_in_memory()?;
    /// let report = governor.tools().load(
    ///     &json!({ "tools": [{
    ///         "name": "delete_page",
    ///         "description": "Deletes a page of the wiki.",
    ///         "inputSchema": { "type": "object", "properties": { "id": { "type": "string" } } },
    ///         "annotations": { "readOnlyHint": true },
    ///     }]}),
    ///     Some("wiki"),
    /// )?;
    /// assert_eq!(report.tools[0].capabilities[0].as_str(), "document:delete");
    /// assert!(report.tools[0].risk_level >= RiskLevel::Medium);
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a definition that is none, a name that stands
    /// twice, more than 10,000 tools or more than 64 levels;
    /// [`Error::PayloadTooLarge`] past 4 MiB. The catalogue is then as it was.
    pub fn load(self, definitions: &Value, server: Option<&str>) -> Result<CatalogueReport, Error> {
        self.governor
            .inner
            .tools
            .change(|catalogue| self.governor.inner.parser.load_tools(catalogue, definitions, server))
    }

    /// Every tool of the catalogue, in the order in which they were first loaded.
    pub fn list(self) -> Vec<ToolClassification> {
        self.governor.inner.tools.load().list()
    }

    /// Says what a tool is, against its classification: the only way to lower one.
    /// It holds for the definition that stands now; under another one every call
    /// is at least HIGH until the tool is overridden again.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a tool that is not in the catalogue, a blank
    /// reason, or capabilities outside the built-in vocabulary.
    pub fn override_tool(self, name: &str, given: ToolOverride) -> Result<ToolClassification, Error> {
        self.governor.inner.tools.change(|catalogue| catalogue.overridden(name, given))
    }

    /// Pins a tool to its present definition and classification: under another
    /// definition it keeps them, is reported as changed, and every call is at least
    /// HIGH until it is pinned again.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a tool that is not in the catalogue, or that
    /// several servers have where none is named.
    pub fn pin(self, name: &str, server: Option<&str>) -> Result<ToolClassification, Error> {
        self.governor.inner.tools.change(|catalogue| catalogue.pinned(name, server, true))
    }

    /// Takes a tool out of the catalogue: of a server that is gone, or that no longer has it.
    /// Its pin and its override go with it, and a call of it is one of a tool that nobody handed over.
    ///
    /// # Errors
    ///
    /// Those of [`Tools::pin`](crate::handle::Tools::pin).
    pub fn remove(self, name: &str, server: Option<&str>) -> Result<ToolClassification, Error> {
        self.governor.inner.tools.change(|catalogue| catalogue.removed(name, server))
    }

    /// Takes a pin off; the definition that stands now is accepted.
    ///
    /// # Errors
    ///
    /// Those of [`Tools::pin`](crate::handle::Tools::pin).
    pub fn unpin(self, name: &str, server: Option<&str>) -> Result<ToolClassification, Error> {
        self.governor.inner.tools.change(|catalogue| catalogue.pinned(name, server, false))
    }
}
