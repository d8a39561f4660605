//! The calls about tools.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::call::Call;
use super::params::given;
use super::spec::Spec;
use super::spec::required_together;
use crate::gateway::Gateway;
use rulekeep::catalogue::{CatalogueReport, ToolClassification, ToolOverride};
use rulekeep::intent::Capability;
use rulekeep::{Error, RiskLevel};

/// Tools as they are defined: a list, or a message of MCP or of Gemini as it came.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Load {
    /// Definitions in the form of MCP, `OpenAI` or Anthropic.
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<Value>,
    /// Whose tools they are.
    #[schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    server: Option<String>,
    /// An answer of MCP to `tools/list`.
    #[schema(value_type = Option<Object>)]
    result: Option<Value>,
    #[schema(value_type = Option<Vec<Object>>)]
    function_declarations: Option<Value>,
    #[serde(rename = "function_declarations")]
    #[schema(ignore)]
    function_declarations_of_rest: Option<Value>,
    #[schema(ignore)]
    error: Option<Value>,
    /// What stands around the answer of a server, which may be handed over as it came.
    #[serde(rename = "jsonrpc", default)]
    #[schema(ignore)]
    _jsonrpc: IgnoredAny,
    #[serde(rename = "id", default)]
    #[schema(ignore)]
    _id: IgnoredAny,
    #[serde(rename = "_meta", default)]
    #[schema(ignore)]
    _meta: IgnoredAny,
    #[serde(rename = "nextCursor", default)]
    #[schema(ignore)]
    _next_cursor: IgnoredAny,
}

impl Call for Load {
    const SPEC: Spec =
        Spec::post("catalogue/load", "/admin/catalogue", "Takes in tools as they are defined").large().errors(&[409]);
    type Answer = CatalogueReport;

    fn together() -> Value {
        let forms = ["tools", "result", "functionDeclarations"].map(|name| required_together(&[name]));
        json!({ "anyOf": forms })
    }

    fn run(self, gateway: &Gateway) -> Result<CatalogueReport, Error> {
        let message = |name: &str, value: Option<Value>| value.map(|value| json!({ name: value }));
        let definitions = self
            .tools
            .or_else(|| message("result", self.result))
            .or_else(|| message("functionDeclarations", self.function_declarations))
            .or_else(|| message("function_declarations", self.function_declarations_of_rest))
            .or_else(|| message("error", self.error))
            .ok_or_else(|| Error::input("tools", "is missing: expected a tools/list result or a list of tools"))?;
        gateway.governor().tools().load(&definitions, self.server.as_deref())
    }
}

/// Nothing.
#[derive(Deserialize, ToSchema)]
pub(super) struct List {}

impl Call for List {
    const SPEC: Spec = Spec::get("catalogue/list", "/admin/catalogue", "Lists the tools that are known");
    type Answer = Tools;

    fn run(self, gateway: &Gateway) -> Result<Tools, Error> {
        Ok(Tools { tools: gateway.governor().tools().list() })
    }
}

/// Every tool that is known.
#[derive(Serialize, ToSchema)]
pub(super) struct Tools {
    tools: Vec<ToolClassification>,
}

/// What a tool is, whatever its definition says.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Override {
    #[schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    name: String,
    #[schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    server: Option<String>,
    capabilities: Option<Vec<Capability>>,
    #[schema(value_type = Option<RiskLevel>)]
    risk_level: Option<String>,
    #[schema(pattern = r"\S")]
    reason: String,
}

impl Call for Override {
    const SPEC: Spec =
        Spec::post("catalogue/override", "/admin/catalogue/override", "Says what a tool is").errors(&[404, 409]);
    type Answer = ToolClassification;

    fn run(self, gateway: &Gateway) -> Result<ToolClassification, Error> {
        // The text is not quoted: it may be anything that stood in the wrong place.
        let expected = |_| Error::input("riskLevel", "expected LOW, MEDIUM, HIGH or CRITICAL");
        let risk = self.risk_level.map(|risk| risk.parse().map_err(expected)).transpose()?;
        let mut given_tool = given(ToolOverride::because(self.reason), self.server, ToolOverride::of_server);
        given_tool = given(given_tool, risk, ToolOverride::risk);
        given_tool = given_tool.capabilities(self.capabilities.unwrap_or_default());
        gateway.governor().tools().override_tool(&self.name, given_tool)
    }
}

/// A tool to pin.
#[derive(Deserialize, ToSchema)]
pub(super) struct Pin {
    #[schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    name: String,
    #[schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    server: Option<String>,
    #[schema(default = true)]
    pinned: Option<bool>,
}

impl Call for Pin {
    const SPEC: Spec =
        Spec::post("catalogue/pin", "/admin/catalogue/pin", "Pins a tool to its definition").errors(&[404, 409]);
    type Answer = ToolClassification;

    fn run(self, gateway: &Gateway) -> Result<ToolClassification, Error> {
        let (governor, server) = (gateway.governor(), self.server.as_deref());
        if self.pinned.unwrap_or(true) {
            governor.tools().pin(&self.name, server)
        } else {
            governor.tools().unpin(&self.name, server)
        }
    }
}

/// A tool.
#[derive(Deserialize, ToSchema)]
pub(super) struct Remove {
    #[schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    name: String,
    #[schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    server: Option<String>,
}

impl Call for Remove {
    const SPEC: Spec =
        Spec::post("catalogue/remove", "/admin/catalogue/remove", "Takes a tool out").errors(&[404, 409]);
    type Answer = ToolClassification;

    fn run(self, gateway: &Gateway) -> Result<ToolClassification, Error> {
        gateway.governor().tools().remove(&self.name, self.server.as_deref())
    }
}
