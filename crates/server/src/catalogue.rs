//! The calls about tools: load, override, pin, remove.

use serde_json::{Value, json};

use super::params::{Faults, Params};
use super::wire::to_json;
use rulekeep::Error;
use rulekeep::Governor;
use rulekeep::catalogue::ToolOverride;
use rulekeep::intent::Capability;

const FAULTS: Faults = Faults::Input;

/// Takes in tools: `{tools, server?}`, or an MCP or Gemini message as it came.
pub(super) fn load(governor: &Governor, params: &Params) -> Result<Value, Error> {
    let server = params.optional_text("server", FAULTS)?;
    let found = ["tools", "result", "functionDeclarations", "function_declarations", "error"]
        .into_iter()
        .find_map(|field| params.get(field).map(|value| (field, value)));
    let Some((field, value)) = found else {
        return Err(Error::input("tools", "is missing: expected a tools/list result or a list of tools"));
    };
    let report = match field {
        "tools" => governor.tools().load(value, server),
        _ => governor.tools().load(&json!({ field: value }), server),
    }?;
    to_json(&report)
}

/// Overrides a tool: `{name, server?, capabilities?, riskLevel?, reason}`.
pub(super) fn set(governor: &Governor, params: &Params) -> Result<Value, Error> {
    let name = params.text("name", FAULTS)?;
    let mut given = ToolOverride::because(params.text("reason", FAULTS)?);
    if let Some(server) = params.optional_text("server", FAULTS)? {
        given = given.of_server(server);
    }
    if let Some(risk) = params.optional_text("riskLevel", FAULTS)? {
        // The text is not quoted: it may be anything that stood in the wrong place.
        let expected = || Error::input("riskLevel", "expected LOW, MEDIUM, HIGH or CRITICAL");
        given = given.risk(risk.parse().map_err(|_| expected())?);
    }
    let capabilities = params
        .texts("capabilities")?
        .into_iter()
        .map(|text| text.parse::<Capability>().map_err(|error| Error::input("capabilities", error.to_string())));
    given = given.capabilities(capabilities.collect::<Result<Vec<_>, _>>()?);
    to_json(&governor.tools().override_tool(name, given)?)
}

/// Takes a tool out: `{name, server?}`.
pub(super) fn remove(governor: &Governor, params: &Params) -> Result<Value, Error> {
    let name = params.text("name", FAULTS)?;
    to_json(&governor.tools().remove(name, params.optional_text("server", FAULTS)?)?)
}

/// Pins a tool, or takes the pin off: `{name, server?, pinned?}`.
pub(super) fn pin(governor: &Governor, params: &Params) -> Result<Value, Error> {
    let name = params.text("name", FAULTS)?;
    let server = params.optional_text("server", FAULTS)?;
    let is_pinned = params.get("pinned").is_none() || params.flag("pinned")?;
    let tool = if is_pinned { governor.tools().pin(name, server) } else { governor.tools().unpin(name, server) }?;
    to_json(&tool)
}
