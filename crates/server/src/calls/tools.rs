//! The calls on tools.

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::call::{Call, Read};
use super::params::{Params, given};
use super::spec::Spec;
use crate::gateway::Gateway;
use rulekeep::catalogue::{CatalogueReport, ToolChange, ToolClassification, ToolOverride};
use rulekeep::intent::Capability;
use rulekeep::{Error, RiskLevel};

/// Tool definitions: a list, or a message of MCP or Gemini as received.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Load {
    /// Definitions in the format of MCP, `OpenAI` or Anthropic.
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<Value>,
    /// The server that provides the tools.
    #[schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    pub server: Option<String>,
    /// An MCP response to `tools/list`.
    #[schema(value_type = Option<Object>)]
    result: Option<Value>,
    #[schema(value_type = Option<Vec<Object>>)]
    function_declarations: Option<Value>,
    #[serde(rename = "function_declarations")]
    #[schema(ignore)]
    function_declarations_of_rest: Option<Value>,
    #[schema(ignore)]
    error: Option<Value>,
    /// The envelope of a server's response, so that it can be passed on as received.
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
    const SPEC: Spec = Spec::post("catalogue/load", "/admin/catalogue", "Loads tool definitions into the catalogue")
        .large()
        .errors(&[409]);
    type Answer = CatalogueReport;

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

/// No parameters.
#[derive(Deserialize, ToSchema)]
pub(super) struct List {}

impl Call for List {
    const SPEC: Spec = Spec::get("catalogue/list", "/admin/catalogue", "Lists the tools in the catalogue");
    type Answer = Tools;

    fn run(self, gateway: &Gateway) -> Result<Tools, Error> {
        Ok(Tools { tools: gateway.governor().tools().list() })
    }
}

/// The tools with their classification.
#[derive(Serialize, ToSchema)]
pub struct Tools {
    /// The tools.
    pub tools: Vec<ToolClassification>,
}

/// One tool, or several of which all or none are changed.
#[derive(ToSchema)]
#[serde(untagged)]
pub(super) enum Override {
    /// A single tool.
    One(ToolOverrideForm),
    /// Several tools at once.
    Several(ToolOverrideList),
}

/// The overrides of several tools.
#[derive(ToSchema)]
pub(super) struct ToolOverrideList {
    tools: Vec<ToolOverrideForm>,
}

/// The override of a tool's classification.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolOverrideForm {
    #[schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    name: String,
    #[schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    server: Option<String>,
    capabilities: Option<Vec<Capability>>,
    #[schema(value_type = Option<RiskLevel>)]
    risk_level: Option<String>,
    #[schema(pattern = r"\S", max_length = 4096)]
    reason: String,
}

impl Read for Override {
    fn read(mut params: Params, spec: &Spec) -> Result<Self, Error> {
        Ok(match several(&mut params, spec)? {
            Some(tools) => Self::Several(ToolOverrideList { tools }),
            None => Self::One(params.typed(spec)?),
        })
    }
}

impl Call for Override {
    const SPEC: Spec =
        Spec::post("catalogue/override", "/admin/catalogue/override", "Overrides the classification of a tool")
            .large()
            .errors(&[404, 409]);
    type Answer = ChangedTools;

    fn run(self, gateway: &Gateway) -> Result<ChangedTools, Error> {
        match self {
            Self::One(form) => ChangedTools::one(gateway, form.change()?),
            Self::Several(list) => {
                let changes: Result<Vec<_>, _> = list.tools.into_iter().map(ToolOverrideForm::change).collect();
                ChangedTools::several(gateway, &changes?)
            }
        }
    }
}

impl ToolOverrideForm {
    fn change(self) -> Result<ToolChange, Error> {
        // The text is not quoted, because it may be a misplaced secret.
        let expected = |_| Error::input("riskLevel", "expected LOW, MEDIUM, HIGH or CRITICAL");
        let risk = self.risk_level.map(|risk| risk.parse().map_err(expected)).transpose()?;
        let set = given(ToolOverride::because(self.reason), risk, ToolOverride::risk);
        let set = set.capabilities(self.capabilities.unwrap_or_default());
        Ok(given(ToolChange::set(self.name, set), self.server, ToolChange::of_server))
    }
}

/// One tool, or several of which all or none are changed.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub enum Pin {
    /// A single tool.
    One(ToolPinForm),
    /// Several tools at once.
    Several(ToolPinList),
}

/// The tools to pin.
#[derive(Serialize, ToSchema)]
pub struct ToolPinList {
    /// The tools.
    pub tools: Vec<ToolPinForm>,
}

/// The tool to pin.
#[derive(Deserialize, Serialize, ToSchema)]
pub struct ToolPinForm {
    /// The name of the tool.
    #[schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    pub name: String,
    /// The server of the tool.
    #[schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    pub server: Option<String>,
    /// True, the default, to pin the tool; false to unpin it.
    #[schema(default = true)]
    pub pinned: Option<bool>,
}

impl Read for Pin {
    fn read(mut params: Params, spec: &Spec) -> Result<Self, Error> {
        Ok(match several(&mut params, spec)? {
            Some(tools) => Self::Several(ToolPinList { tools }),
            None => Self::One(params.typed(spec)?),
        })
    }
}

impl Call for Pin {
    const SPEC: Spec = Spec::post("catalogue/pin", "/admin/catalogue/pin", "Pins a tool to its definition")
        .large()
        .errors(&[404, 409]);
    type Answer = ChangedTools;

    fn run(self, gateway: &Gateway) -> Result<ChangedTools, Error> {
        match self {
            Self::One(form) => ChangedTools::one(gateway, form.change()),
            Self::Several(list) => {
                let changes: Vec<_> = list.tools.into_iter().map(ToolPinForm::change).collect();
                ChangedTools::several(gateway, &changes)
            }
        }
    }
}

impl ToolPinForm {
    fn change(self) -> ToolChange {
        let change = if self.pinned.unwrap_or(true) { ToolChange::pin } else { ToolChange::unpin };
        given(change(self.name), self.server, ToolChange::of_server)
    }
}

/// The items under `tools`, each read like the parameters of a call for a single tool.
fn several<T: DeserializeOwned>(params: &mut Params, spec: &Spec) -> Result<Option<Vec<T>>, Error> {
    let Some(list) = params.take("tools") else { return Ok(None) };
    params.refuse_others(&["tools"])?;
    let Value::Array(items) = list else { return Err(Error::input("tools", "expected an array")) };
    let read = |(number, item)| match item {
        Value::Object(fields) => Params::of(fields).typed(spec).map_err(|error| match error {
            Error::InvalidInput { field, message } => Error::input(field, format!("tool {number}: {message}")),
            error => error,
        }),
        _ => Err(Error::input("tools", format!("tool {number}: expected an object"))),
    };
    (1..).zip(items).map(read).collect::<Result<_, _>>().map(Some)
}

/// The tool as it is now, or all named tools.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub enum ChangedTools {
    /// The single tool.
    One(ToolClassification),
    /// Several tools, in the order of the request.
    Several(Tools),
}

impl ChangedTools {
    fn one(gateway: &Gateway, change: ToolChange) -> Result<Self, Error> {
        let mut tools = gateway.governor().tools().change(&[change])?;
        let tool = tools.pop().ok_or_else(|| Error::internal("a tool change returned no tool"))?;
        Ok(Self::One(tool))
    }

    fn several(gateway: &Gateway, changes: &[ToolChange]) -> Result<Self, Error> {
        Ok(Self::Several(Tools { tools: gateway.governor().tools().change(changes)? }))
    }
}

/// The tool to remove.
#[derive(Deserialize, ToSchema)]
pub(super) struct Remove {
    #[schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    name: String,
    #[schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    server: Option<String>,
}

impl Call for Remove {
    const SPEC: Spec = Spec::post("catalogue/remove", "/admin/catalogue/remove", "Removes a tool from the catalogue")
        .errors(&[404, 409]);
    type Answer = ToolClassification;

    fn run(self, gateway: &Gateway) -> Result<ToolClassification, Error> {
        gateway.governor().tools().remove(&self.name, self.server.as_deref())
    }
}
