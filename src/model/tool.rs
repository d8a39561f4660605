//! Tools that a runtime hands over once, as they were classified.

use serde::{Deserialize, Serialize};

use super::{Action, Capability, Digest, RiskLevel, closed_words};

/// What a tool is taken for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolClassification {
    /// The tool's name, as it was handed over.
    pub name: String,
    /// The server that it belongs to, where one was named at the load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The form of the definition: `mcp`, `openai`, `anthropic`, `gemini` or `list`.
    pub source: &'static str,
    /// The action that a call of it is, arguments aside.
    pub action: Action,
    /// What a call needs, the primary capability first.
    pub capabilities: Vec<Capability>,
    /// The risk of a call whose arguments add nothing; of a tool that runs what it is told, the most.
    pub risk_level: RiskLevel,
    /// Why the risk is what it is.
    pub risk_factors: Vec<String>,
    /// How likely the classification is right, from 0 to 1.
    pub confidence: f64,
    /// What in the definition gave what.
    pub because: Vec<ToolEvidence>,
    /// SHA-256 over the definition's JSON with sorted keys.
    pub digest: Digest,
    /// An operator pinned it: another definition under its name does not change it.
    pub pinned: bool,
    /// Why an operator overrode it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overridden: Option<String>,
    /// Its definition is another than the one that was accepted: first loaded, pinned or overridden.
    pub changed: bool,
}

/// A part of a tool's definition, and what it gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolEvidence {
    /// `name`, `description`, `schema`, `hint` or `override`; `accepted` of a definition that was pinned or overridden in an
    /// earlier run and is not known any more: what it was taken for then.
    pub part: &'static str,
    /// The words, property or hint.
    pub found: String,
    /// What it was taken for.
    pub gives: String,
}

impl ToolEvidence {
    pub(crate) fn new(part: &'static str, found: impl Into<String>, gives: impl Into<String>) -> Self {
        let found: String = found.into();
        Self { part, found: found.chars().take(LONGEST_FOUND).collect(), gives: gives.into() }
    }
}

/// Evidence is for people: the longest piece that is quoted, in characters.
const LONGEST_FOUND: usize = 120;

/// What a load of tools did.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CatalogueReport {
    /// The tools of this load, in its order.
    pub tools: Vec<ToolClassification>,
    /// How many were not known before.
    pub added: usize,
    /// How many were known, with the same definition.
    pub unchanged: usize,
    /// The names of those whose definition is another than the one that was accepted.
    pub changed: Vec<String>,
    /// How many tools the catalogue holds now.
    pub total: usize,
    /// Tools of this load that are neither pinned nor overridden and look like a tool that is, or like another one of
    /// the load. A rename is found only where the load has all tools of its server.
    pub resembling: Vec<ToolResemblance>,
}

/// A tool that looks like another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolResemblance {
    /// The tool of this load.
    pub name: String,
    /// The name of the tool that it looks like.
    pub of: String,
    /// The server of the tool that it looks like, where one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_server: Option<String>,
    /// The kind of likeness.
    pub likeness: ToolLikeness,
}

closed_words! {
    /// The way in which a tool looks like another one.
    pub enum ToolLikeness("likeness") {
        /// Another server has a tool of the same name.
        SameName = "sameName",
        /// The names differ and read the same: by case, invisible characters, or letters that look alike.
        LookAlike = "lookAlike",
        /// A pinned tool of the server is gone, and this one has its description and schema.
        Renamed = "renamed",
    }
}

/// What an operator says that a tool is. Only this lowers a classification.
///
/// ```
/// use rulekeep::catalogue::ToolOverride;
/// use rulekeep::{Governor, RiskLevel};
/// use serde_json::json;
///
/// let governor = Governor::builder().open_in_memory()?;
/// governor.tools().load(&json!([{ "name": "delete_cache", "description": "Deletes the page cache." }]), None)?;
/// let tool = governor.tools().override_tool(
///     "delete_cache",
///     ToolOverride::because("the cache fills itself again").risk(RiskLevel::Low),
/// )?;
/// assert_eq!(tool.risk_level, RiskLevel::Low);
/// # Ok::<(), rulekeep::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolOverride {
    /// The server whose tool is meant, where several have one of that name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server: Option<String>,
    /// What a call needs, of the built-in vocabulary; none: as classified.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub capabilities: Vec<Capability>,
    /// What a call risks, arguments aside; none: as classified.
    #[serde(rename = "riskLevel", skip_serializing_if = "Option::is_none", default)]
    pub risk: Option<RiskLevel>,
    /// Why, for those who look at it later.
    pub reason: String,
}

impl ToolOverride {
    /// An override that changes nothing yet, and why it is made.
    pub fn because(reason: impl Into<String>) -> Self {
        Self { server: None, capabilities: Vec::new(), risk: None, reason: reason.into() }
    }

    /// The tool of that server is meant.
    #[must_use]
    pub fn of_server(mut self, server: impl Into<String>) -> Self {
        self.server = Some(server.into());
        self
    }

    /// What a call risks, arguments aside.
    #[must_use]
    pub const fn risk(mut self, risk: RiskLevel) -> Self {
        self.risk = Some(risk);
        self
    }

    /// What a call needs.
    #[must_use]
    pub fn capabilities(mut self, capabilities: impl IntoIterator<Item = Capability>) -> Self {
        self.capabilities = capabilities.into_iter().collect();
        self
    }
}

/// A change to a tool of the catalogue, for [`Tools::change`](crate::handle::Tools::change), which takes many at once.
///
/// ```
/// use rulekeep::catalogue::{ToolChange, ToolOverride};
/// use rulekeep::{Governor, RiskLevel};
/// use serde_json::json;
///
/// let governor = Governor::builder().open_in_memory()?;
/// governor.tools().load(&json!([{ "name": "read_page" }, { "name": "delete_cache" }]), Some("wiki"))?;
/// let tools = governor.tools().change(&[
///     ToolChange::pin("read_page").of_server("wiki"),
///     ToolChange::set("delete_cache", ToolOverride::because("it fills itself again").risk(RiskLevel::Low)),
/// ])?;
/// assert!(tools[0].pinned && tools[1].risk_level == RiskLevel::Low);
/// # Ok::<(), rulekeep::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ToolChange {
    pub(crate) name: String,
    pub(crate) server: Option<String>,
    pub(crate) act: ToolAct,
}

/// What a change does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ToolAct {
    Pin,
    Unpin,
    Override(ToolOverride),
}

impl ToolChange {
    /// Pins the tool of that name, as [`Tools::pin`](crate::handle::Tools::pin) does.
    pub fn pin(name: impl Into<String>) -> Self {
        Self { name: name.into(), server: None, act: ToolAct::Pin }
    }

    /// Takes its pin off, as [`Tools::unpin`](crate::handle::Tools::unpin) does.
    pub fn unpin(name: impl Into<String>) -> Self {
        Self { name: name.into(), server: None, act: ToolAct::Unpin }
    }

    /// Overrides its classification, as [`Tools::override_tool`](crate::handle::Tools::override_tool) does.
    pub fn set(name: impl Into<String>, given: ToolOverride) -> Self {
        Self { name: name.into(), server: given.server.clone(), act: ToolAct::Override(given) }
    }

    /// The tool of that server is meant, where several have one of that name.
    #[must_use]
    pub fn of_server(mut self, server: impl Into<String>) -> Self {
        self.server = Some(server.into());
        self
    }
}
