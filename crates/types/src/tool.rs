//! The tool catalogue: classifications of the tools that a runtime loads.

use serde::{Deserialize, Serialize};

use super::{Action, Capability, Digest, RiskLevel, closed_words};

crate::parts::outward! {
    /// The classification of a tool: its action, capabilities and risk.
    pub struct ToolClassification from ToolClassificationParts {
        /// The tool's name, as loaded.
        pub name: String,
        /// The server the tool belongs to, if the load named one.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub server: Option<String>,
        /// The format of the definition: `mcp`, `openai`, `anthropic`, `gemini` or `list`.
        pub source: &'static str,
        /// The action of a call, before its arguments are considered.
        pub action: Action,
        /// The capabilities a call requires, the primary one first.
        pub capabilities: Vec<Capability>,
        /// The risk of a call whose arguments add nothing; for a tool that executes commands, the maximum.
        pub risk_level: RiskLevel,
        /// The factors that determine the risk.
        pub risk_factors: Vec<String>,
        /// The confidence in the classification, from 0 to 1.
        pub confidence: f64,
        /// The evidence in the definition for each part of the classification.
        pub because: Vec<ToolEvidence>,
        /// SHA-256 of the definition's JSON with sorted keys.
        pub digest: Digest,
        /// Whether an operator pinned it, so that a changed definition does not change the classification.
        pub pinned: bool,
        /// The operator's reason for overriding it; absent if it is not overridden.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub overridden: Option<String>,
        /// Whether the definition differs from the accepted one, which was first loaded, pinned or overridden.
        pub changed: bool,
    }
}

/// A part of a tool's definition and the conclusion drawn from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolEvidence {
    /// The part: `name`, `description`, `schema`, `hint` or `override`. `accepted` marks the earlier classification of
    /// a tool pinned or overridden in an earlier run whose definition is no longer known.
    pub part: &'static str,
    /// The words, property or hint found.
    pub found: String,
    /// The conclusion, for example a capability.
    pub gives: String,
}

impl ToolEvidence {
    #[doc(hidden)]
    pub fn new(part: &'static str, found: impl Into<String>, gives: impl Into<String>) -> Self {
        let found: String = found.into();
        Self { part, found: found.chars().take(LONGEST_FOUND).collect(), gives: gives.into() }
    }
}

/// Maximum length of quoted evidence, in characters.
const LONGEST_FOUND: usize = 120;

crate::parts::outward! {
    /// The result of loading tools.
    pub struct CatalogueReport from CatalogueReportParts {
        /// The loaded tools, in the order of the load.
        pub tools: Vec<ToolClassification>,
        /// Number of tools that were not known before.
        pub added: usize,
        /// Number of known tools with an unchanged definition.
        pub unchanged: usize,
        /// Names of the tools whose definition differs from the accepted one.
        pub changed: Vec<String>,
        /// Number of tools in the catalogue now.
        pub total: usize,
        /// Loaded tools, neither pinned nor overridden, that look like a pinned or overridden tool or like another tool of
        /// the load. A rename is only detected if the load contains every tool of its server.
        pub resembling: Vec<ToolResemblance>,
    }
}

crate::parts::outward! {
    /// A tool that looks like another one.
    #[derive(Eq)]
    pub struct ToolResemblance from ToolResemblanceParts {
        /// The name of the loaded tool.
        pub name: String,
        /// The name of the tool it looks like.
        pub of: String,
        /// The server of the tool it looks like, if one was named.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub of_server: Option<String>,
        /// The kind of resemblance.
        pub likeness: ToolLikeness,
    }
}

closed_words! {
    /// The kind of resemblance between two tools.
    pub enum ToolLikeness("likeness") {
        /// Another server has a tool with the same name.
        SameName = "sameName",
        /// The names differ but look the same: by case, invisible characters or look-alike letters.
        LookAlike = "lookAlike",
        /// A pinned tool of the server is missing, and this one has its description and schema.
        Renamed = "renamed",
    }
}

/// An operator's override of a tool's classification. Only an override can lower the risk.
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
    /// The server of the tool, if several have a tool with this name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server: Option<String>,
    /// The capabilities a call requires, from the built-in vocabulary; empty keeps the classification.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub capabilities: Vec<Capability>,
    /// The risk of a call, before its arguments are considered; `None` keeps the classification.
    #[serde(rename = "riskLevel", skip_serializing_if = "Option::is_none", default)]
    pub risk: Option<RiskLevel>,
    /// The reason for the override.
    pub reason: String,
}

impl ToolOverride {
    /// Creates an override with its reason; it changes nothing yet.
    pub fn because(reason: impl Into<String>) -> Self {
        Self { server: None, capabilities: Vec::new(), risk: None, reason: reason.into() }
    }

    /// Names the server of the tool.
    #[must_use]
    pub fn of_server(mut self, server: impl Into<String>) -> Self {
        self.server = Some(server.into());
        self
    }

    /// Sets the risk of a call, before its arguments are considered.
    #[must_use]
    pub const fn risk(mut self, risk: RiskLevel) -> Self {
        self.risk = Some(risk);
        self
    }

    /// Sets the capabilities a call requires.
    #[must_use]
    pub fn capabilities(mut self, capabilities: impl IntoIterator<Item = Capability>) -> Self {
        self.capabilities = capabilities.into_iter().collect();
        self
    }
}

/// A change to one tool of the catalogue. `Tools::change` applies several at once.
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
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct ToolChange {
    pub name: String,
    pub server: Option<String>,
    pub act: ToolAct,
}

/// The kind of change.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub enum ToolAct {
    Pin,
    Unpin,
    Override(ToolOverride),
}

impl ToolChange {
    /// Pins the tool, like `Tools::pin`.
    pub fn pin(name: impl Into<String>) -> Self {
        Self { name: name.into(), server: None, act: ToolAct::Pin }
    }

    /// Unpins the tool, like `Tools::unpin`.
    pub fn unpin(name: impl Into<String>) -> Self {
        Self { name: name.into(), server: None, act: ToolAct::Unpin }
    }

    /// Overrides the classification, like `Tools::override_tool`.
    pub fn set(name: impl Into<String>, given: ToolOverride) -> Self {
        Self { name: name.into(), server: given.server.clone(), act: ToolAct::Override(given) }
    }

    /// Names the server of the tool, if several have a tool with this name.
    #[must_use]
    pub fn of_server(mut self, server: impl Into<String>) -> Self {
        self.server = Some(server.into());
        self
    }
}
