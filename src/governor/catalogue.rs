//! The tools that a runtime hands over, kept in memory and swapped as a whole, and an operator's pins and overrides, which
//! the log keeps.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use serde_json::Value;

use super::{Governor, states};
use crate::model::{
    CatalogueReport, Error, Input, ParseExplanation, Timestamp, ToolChange, ToolClassification, ToolOverride,
};
use crate::parse::{Catalogue, Parser, Ruled, ToolRuling};
use crate::proof::StateDraft;

/// What the keys of the states of pinned and overridden tools in the log start with.
pub(super) const KEY_PREFIX: &str = "tool/";

/// The state of a tool of which nothing is settled any more.
const NOTHING: &str = "null";

/// The catalogue in force.
#[derive(Default)]
pub(super) struct Loaded {
    /// Read by every parse without a lock; swapped under `turn`.
    catalogue: ArcSwap<Catalogue>,
    // Who makes another catalogue holds it, so that no change is lost, also while what it changes of the operator's rulings
    // is written: parses do not wait for it. Nothing else is locked under it.
    turn: Mutex<()>,
}

impl Loaded {
    /// A catalogue for which an operator settled something in earlier runs.
    pub(super) fn restored(rulings: Vec<ToolRuling>) -> Self {
        Self { catalogue: ArcSwap::from_pointee(Catalogue::of_rulings(rulings)), ..Self::default() }
    }

    pub(super) fn load(&self) -> arc_swap::Guard<Arc<Catalogue>> {
        self.catalogue.load()
    }

    /// The catalogue for as long as it is looked at.
    pub(super) fn load_full(&self) -> Arc<Catalogue> {
        self.catalogue.load_full()
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a state of the log settles of a tool, if anything.
pub(super) fn read(key: &str, value: &[u8]) -> Result<Option<ToolRuling>, Error> {
    states::read(key, value)
}

/// The state that the log keeps of what an operator settled of a tool.
pub(super) fn state_of(ruling: &ToolRuling) -> Result<StateDraft, Error> {
    states::draft(format!("{KEY_PREFIX}{}", ruling.key()), ruling)
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
    /// it; [`Tools::override_tool`](crate::handle::Tools::override_tool) can. Definitions live in memory: a runtime
    /// loads them at each start. Pins and overrides are in the log, and hold again for the tools that are loaded.
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
        let tools = &self.governor.inner.tools;
        let _turn = tools.turn();
        let (catalogue, report) = self.governor.inner.parser.load_tools(&tools.load(), definitions, server)?;
        tools.catalogue.store(Arc::new(catalogue));
        Ok(report)
    }

    /// Every tool of the catalogue, in the order in which they were first loaded.
    pub fn list(self) -> Vec<ToolClassification> {
        self.governor.inner.tools.load().list()
    }

    /// Pins, unpins and overrides any number of tools, all of them or none: with one wait for the disk, and one new
    /// catalogue. The tools come back in the order of the changes. What is settled already is not recorded again.
    ///
    /// Should the process end in between, the first of the changes may be recorded without the rest.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a tool that is not in the catalogue or that several servers have where none is named, and
    /// for an override that is none; [`Error::StorageUnavailable`], [`Error::ChainBroken`], [`Error::Conflict`] when it
    /// cannot be recorded: then nothing changes.
    pub fn change(self, changes: &[ToolChange]) -> Result<Vec<ToolClassification>, Error> {
        self.rule(|catalogue| catalogue.changed(changes))
    }

    /// Says what a tool is, against its classification: the only way to lower one.
    /// It holds for the definition that stands now, also after a restart; under another one every call
    /// is at least HIGH until the tool is overridden again.
    ///
    /// # Errors
    ///
    /// Those of [`Tools::change`](crate::handle::Tools::change): for a blank reason, one of more than 4,096 characters, or
    /// capabilities outside the built-in vocabulary, too.
    pub fn override_tool(self, name: &str, given: ToolOverride) -> Result<ToolClassification, Error> {
        self.change_one(ToolChange::set(name, given))
    }

    /// Pins a tool to its present definition and classification: under another
    /// definition it keeps them, is reported as changed, and every call is at least
    /// HIGH until it is pinned again. The pin outlives a restart.
    ///
    /// # Errors
    ///
    /// Those of [`Tools::change`](crate::handle::Tools::change).
    pub fn pin(self, name: &str, server: Option<&str>) -> Result<ToolClassification, Error> {
        self.change_one(of_server(ToolChange::pin(name), server))
    }

    /// Takes a pin off; the definition that stands now is accepted.
    ///
    /// # Errors
    ///
    /// Those of [`Tools::change`](crate::handle::Tools::change).
    pub fn unpin(self, name: &str, server: Option<&str>) -> Result<ToolClassification, Error> {
        self.change_one(of_server(ToolChange::unpin(name), server))
    }

    /// Takes a tool out of the catalogue: of a server that is gone, or that no longer has it.
    /// Its pin and its override go with it, and a call of it is one of a tool that nobody handed over.
    /// A tool that was pinned or overridden in an earlier run need not be loaded for that.
    ///
    /// # Errors
    ///
    /// Those of [`Tools::change`](crate::handle::Tools::change).
    pub fn remove(self, name: &str, server: Option<&str>) -> Result<ToolClassification, Error> {
        self.rule(|catalogue| catalogue.removed(name, server))
    }

    fn change_one(self, change: ToolChange) -> Result<ToolClassification, Error> {
        let mut tools = self.change(&[change])?;
        tools.pop().ok_or_else(|| Error::Internal { message: "a change of a tool gave none".to_owned() })
    }

    /// Puts another catalogue in force once what it changes of the operator's rulings is recorded.
    fn rule<T>(self, change: impl FnOnce(&Catalogue) -> Result<Ruled<T>, Error>) -> Result<T, Error> {
        let inner = &self.governor.inner;
        inner.log.wait_verified()?;
        let _turn = inner.tools.turn();
        let Ruled { catalogue, answer, rulings } = change(&inner.tools.load())?;
        let mut last = None;
        for (key, ruling) in rulings {
            let (state, cause) = match &ruling {
                Some(ruling) => (state_of(ruling)?, if ruling.is_override() { "overridden" } else { "pinned" }),
                None => (StateDraft::new(format!("{KEY_PREFIX}{key}"), NOTHING.to_owned()), "settled no more"),
            };
            last = Some(self.governor.set_state(state, cause)?);
        }
        if let Some(last) = last {
            inner.log.settle(last)?;
        }
        inner.tools.catalogue.store(Arc::new(catalogue));
        Ok(answer)
    }
}

fn of_server(change: ToolChange, server: Option<&str>) -> ToolChange {
    match server {
        Some(server) => change.of_server(server),
        None => change,
    }
}

impl Governor {
    /// Puts the rulings on tools in order again, and adds their keys to `keys`.
    pub(super) fn rerecord_tools(&self, at: Timestamp, cause: &str, keys: &mut BTreeSet<String>) -> Result<(), Error> {
        // Held so that no change comes between.
        let _turn = self.inner.tools.turn();
        for ruling in self.inner.tools.load().rulings() {
            let state = state_of(&ruling)?;
            keys.insert(state.key.clone());
            self.inner.log.queue().set_state(at, state, cause.to_owned())?;
        }
        Ok(())
    }
}
