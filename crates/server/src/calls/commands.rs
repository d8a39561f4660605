//! The calls for commands: programs that a runtime starts for an agent, on the governor's machine.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::call::Call;
use super::decisions::ToolCall;
use super::spec::{Spec, Subject};
use crate::gateway::Gateway;
use rulekeep::Error;
use rulekeep::agent::AgentId;
use rulekeep::extension::{Context, Extension};
use rulekeep::grant::AgentCommand;
use rulekeep::proof::ProofId;

/// A command to decide on.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request {
    /// The agent that asks for it.
    #[schema(value_type = AgentId)]
    agent_id: String,
    /// The program and its arguments.
    #[schema(min_items = 1)]
    command: Vec<String>,
    /// The folder in which it starts, by its absolute path.
    folder: String,
    /// The caller's context of the request.
    #[schema(value_type = Option<Context>)]
    context: Option<Map<String, Value>>,
}

impl Call for Request {
    const SPEC: Spec =
        Spec::post("command/request", "/commands/request", "Returns the request to decide on for a command")
            .for_agents()
            .errors(&[404, 413]);
    type Answer = Requested;

    fn subject(&self) -> Subject<'_> {
        Subject::Agent(&self.agent_id)
    }

    fn run(self, gateway: &Gateway) -> Result<Requested, Error> {
        let command = described(&self.folder, self.command)?.context(self.context.unwrap_or_default());
        let (tool, arguments, context) = Extension::of(gateway.governor()).command_request(&self.agent_id, &command)?;
        Ok(Requested { input: ToolCall { tool, server: None, arguments, call_id: None }, context })
    }
}

/// The request to decide on for a command, for `enforce`.
#[derive(Serialize, ToSchema)]
pub(super) struct Requested {
    input: ToolCall,
    /// The context: the caller's, the folder, and whether the command can be confined.
    #[schema(value_type = Context)]
    context: Map<String, Value>,
}

/// A command that was granted.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Start {
    /// The record of the decision.
    #[schema(value_type = ProofId)]
    proof_id: String,
    /// The program and its arguments.
    #[schema(min_items = 1)]
    command: Vec<String>,
    /// The folder in which it starts, by its absolute path.
    folder: String,
}

impl Call for Start {
    const SPEC: Spec =
        Spec::post("command/start", "/commands/start", "Returns the words with which a granted command starts")
            .for_agents()
            .errors(&[404, 409]);
    type Answer = Started;

    fn subject(&self) -> Subject<'_> {
        Subject::Record(&self.proof_id)
    }

    fn run(self, gateway: &Gateway) -> Result<Started, Error> {
        let proof_id = self.proof_id.parse().map_err(|error| Error::input("proofId", format!("{error}")))?;
        let command = described(&self.folder, self.command)?;
        Ok(Started { command: Extension::of(gateway.governor()).command_start(&proof_id, &command)? })
    }
}

/// The command of a call. A relative folder would begin where this process works.
fn described(folder: &str, command: Vec<String>) -> Result<AgentCommand, Error> {
    if !Path::new(folder).is_absolute() {
        return Err(Error::input("folder", "expected an absolute path"));
    }
    AgentCommand::new(folder, command)
}

/// The words with which a granted command starts.
#[derive(Serialize, ToSchema)]
pub(super) struct Started {
    /// The program and its arguments: those of the command, or `rulekeep exec` with a profile and those of the command.
    command: Vec<String>,
}
