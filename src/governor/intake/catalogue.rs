//! The tool catalogue. Definitions live in memory and are replaced as a whole; the log stores an operator's pins and
//! overrides.

use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use serde_json::Value;

use crate::governor::keys::{self, Keyed as _};
use crate::governor::{Hold as _, Inner, states};
use crate::model::{CatalogueReport, Error, Input, ParseExplanation, ToolChange, ToolClassification, ToolOverride};
use crate::parse::{Catalogue, Parser, Ruled, ToolRuling};
use crate::proof::StateDraft;

/// The state of a tool that is neither pinned nor overridden any more.
const NOTHING: &str = "null";

/// The current tool catalogue.
#[derive(Default)]
pub(crate) struct Loaded {
    /// Read by every parse without a lock; swapped under `turn`.
    catalogue: ArcSwap<Catalogue>,
    // Held to replace the catalogue, also while the operator's change is being written, so that no change is lost.
    // Parses do not wait for it. No other lock is acquired under it.
    pub(crate) turn: Mutex<()>,
}

impl Loaded {
    /// Creates a catalogue with the pins and overrides of earlier runs.
    pub(crate) fn restored(rulings: Vec<ToolRuling>) -> Self {
        Self { catalogue: ArcSwap::from_pointee(Catalogue::of_rulings(rulings)), ..Self::default() }
    }

    pub(crate) fn load(&self) -> arc_swap::Guard<Arc<Catalogue>> {
        self.catalogue.load()
    }

    /// The catalogue, for longer use.
    pub(crate) fn load_full(&self) -> Arc<Catalogue> {
        self.catalogue.load_full()
    }
}

/// The state that the log stores for a pin or override.
pub(crate) fn state_of(ruling: &ToolRuling) -> Result<StateDraft, Error> {
    states::draft(keys::Tools::key(ruling.key()), ruling)
}

/// The tool catalogue of a governor, see [`Governor::tools`](crate::Governor::tools).
#[derive(Debug, Clone, Copy)]
pub struct Tools<'a> {
    pub(crate) inner: &'a Arc<Inner>,
}

impl Tools<'_> {
    /// Parses a request like [`Governor::parse`](crate::Governor::parse) and adds the evidence: the words or
    /// arguments behind the operation,
    /// the resource, each capability and each risk factor.
    ///
    /// # Errors
    ///
    /// The errors of [`Governor::parse`](crate::Governor::parse).
    pub fn explain_parse<'a>(self, agent_id: &str, input: impl Into<Input<'a>>) -> Result<ParseExplanation, Error> {
        let input = input.into();
        let (explained, redaction) = self.inner.here()?.intake.read_input(agent_id, input, Parser::explain)?;
        self.inner.intake.inputs.remember(&explained.parse.intent, input.text, &redaction)?;
        Ok(explained)
    }

    /// Loads the tools of one server, or of the runtime itself, and classifies each. Accepted formats: an MCP
    /// `tools/list` result (the JSON-RPC message, its result, or the list), `OpenAI` or Anthropic `tools`, Gemini
    /// `functionDeclarations`, or a list of `{name, description?, parameters?}`.
    ///
    /// From then on the catalogue is used to parse calls, and a call of a tool that is not in it is at least MEDIUM. A
    /// known tool is kept if its definition is unchanged, and reported as changed otherwise. Tools that are missing in
    /// this load stay in the catalogue. Hints in a definition can raise the risk but never lower it;
    /// [`Tools::override_tool`](crate::handle::Tools::override_tool) can.
    ///
    /// Definitions live in memory, so a runtime loads them at each start. Pins and overrides are stored in the log and
    /// apply again to the tools that are loaded.
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
    /// [`Error::InvalidInput`] for a malformed definition, a repeated name, more than 10,000 tools or more than 64
    /// levels; [`Error::PayloadTooLarge`] over 4 MiB. The catalogue is then unchanged.
    pub fn load(self, definitions: &Value, server: Option<&str>) -> Result<CatalogueReport, Error> {
        let tools = &self.inner.here()?.intake.tools;
        let _turn = tools.turn.hold();
        let (catalogue, report) = self.inner.intake.parser.load_tools(&tools.load(), definitions, server)?;
        tools.catalogue.store(Arc::new(catalogue));
        Ok(report)
    }

    /// Lists the tools of the catalogue in the order in which they were first loaded.
    pub fn list(self) -> Vec<ToolClassification> {
        self.inner.intake.tools.load().list()
    }

    /// Pins, unpins and overrides several tools, all or none, with a single wait for the disk. Returns the tools in the
    /// order of the changes. A change that already holds is not recorded again.
    ///
    /// If the process ends meanwhile, the first changes may be recorded without the rest.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a tool that is not in the catalogue, for a name that several servers have if none is
    /// given, and for an invalid override; [`Error::StorageUnavailable`], [`Error::ChainBroken`] or [`Error::Conflict`]
    /// when it cannot be recorded; then nothing changes.
    pub fn change(self, changes: &[ToolChange]) -> Result<Vec<ToolClassification>, Error> {
        self.rule(|catalogue| catalogue.changed(changes))
    }

    /// Overrides a tool's classification; only an override can lower its risk. It applies to the current definition,
    /// also after a restart. If the definition changes, every call is at least HIGH until the tool is overridden again.
    ///
    /// # Errors
    ///
    /// The errors of [`Tools::change`](crate::handle::Tools::change); also for a blank reason, a reason of more than
    /// 4,096 characters, or capabilities outside the built-in vocabulary.
    pub fn override_tool(self, name: &str, given: ToolOverride) -> Result<ToolClassification, Error> {
        self.change_one(ToolChange::set(name, given))
    }

    /// Pins a tool to its current definition and classification. If the definition changes, the tool keeps them and is
    /// reported as changed, and every call is at least HIGH until it is pinned again. A pin survives a restart.
    ///
    /// # Errors
    ///
    /// The errors of [`Tools::change`](crate::handle::Tools::change).
    pub fn pin(self, name: &str, server: Option<&str>) -> Result<ToolClassification, Error> {
        self.change_one(of_server(ToolChange::pin(name), server))
    }

    /// Removes a pin and accepts the current definition.
    ///
    /// # Errors
    ///
    /// The errors of [`Tools::change`](crate::handle::Tools::change).
    pub fn unpin(self, name: &str, server: Option<&str>) -> Result<ToolClassification, Error> {
        self.change_one(of_server(ToolChange::unpin(name), server))
    }

    /// Removes a tool from the catalogue, together with its pin and override, for example when its server is gone. A
    /// call of it then counts as a call of an unknown tool. A tool that was pinned or overridden in an earlier run can
    /// be removed without loading it.
    ///
    /// # Errors
    ///
    /// The errors of [`Tools::change`](crate::handle::Tools::change).
    pub fn remove(self, name: &str, server: Option<&str>) -> Result<ToolClassification, Error> {
        self.rule(|catalogue| catalogue.removed(name, server))
    }

    fn change_one(self, change: ToolChange) -> Result<ToolClassification, Error> {
        let mut tools = self.change(&[change])?;
        tools.pop().ok_or_else(|| Error::internal("a tool change returned no tool"))
    }

    /// Replaces the catalogue once the operator's changes are recorded.
    fn rule<T>(self, change: impl FnOnce(&Catalogue) -> Result<Ruled<T>, Error>) -> Result<T, Error> {
        let inner = &self.inner;
        inner.base.log.wait_verified()?;
        let _turn = inner.intake.tools.turn.hold();
        let Ruled { catalogue, answer, rulings } = change(&inner.intake.tools.load())?;
        let mut last = None;
        for (key, ruling) in rulings {
            let (state, cause) = match &ruling {
                Some(ruling) => (state_of(ruling)?, if ruling.is_override() { "overridden" } else { "pinned" }),
                None => (StateDraft::new(keys::Tools::key(key), NOTHING.to_owned()), "no longer pinned or overridden"),
            };
            last = Some(self.inner.base.set_state(state, cause)?);
        }
        if let Some(last) = last {
            inner.base.log.settle(last)?;
        }
        inner.intake.tools.catalogue.store(Arc::new(catalogue));
        Ok(answer)
    }
}

fn of_server(change: ToolChange, server: Option<&str>) -> ToolChange {
    match server {
        Some(server) => change.of_server(server),
        None => change,
    }
}
