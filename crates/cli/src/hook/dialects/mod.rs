//! Stand-in.
use super::event::{EventKind, HookAnswer, HookEvent, Host, HostCall, Ruling};
use serde_json::Value;
use std::time::Duration;
/// How a host speaks.
pub trait Dialect: Sync {
    /// Reads an event.
    fn read(&self, event: &Value) -> Result<HookEvent, String>;
    /// Answers it.
    fn answer(&self, event: &HookEvent, ruling: &Ruling) -> HookAnswer;
    /// Whether the host's ask works.
    fn asks(&self) -> bool;
    /// The host's timeout.
    fn timeout(&self) -> Duration;
}
struct Claude;
impl Dialect for Claude {
    fn read(&self, e: &Value) -> Result<HookEvent, String> {
        let t = |n: &str| e[n].as_str().map(str::to_owned);
        let call = || HostCall {
            id: t("tool_use_id"),
            tool: t("tool_name").unwrap_or_default(),
            server: None,
            arguments: e["tool_input"].clone(),
        };
        let name = t("hook_event_name").ok_or("no name")?;
        let kind = match name.as_str() {
            "UserPromptSubmit" => EventKind::Prompt(t("prompt").unwrap_or_default()),
            "PreToolUse" => EventKind::Call(call()),
            "PostToolUse" => EventKind::Result {
                call: call(),
                result: Some(e["tool_response"].clone()),
                outcome: Some(rulekeep::Outcome::Success),
            },
            "SessionEnd" => EventKind::End,
            _ => EventKind::Other,
        };
        Ok(HookEvent {
            session: t("session_id").unwrap_or_default(),
            cwd: t("cwd"),
            subagent: t("agent_id"),
            name,
            kind,
        })
    }
    fn answer(&self, event: &HookEvent, ruling: &Ruling) -> HookAnswer {
        match ruling {
            Ruling::Allow => HookAnswer::silent(),
            Ruling::Deny(r) => HookAnswer::refusal(r),
            Ruling::Ask(r) => HookAnswer { exit: 0, stdout: serde_json::json!({"hookSpecificOutput":{"hookEventName":event.name,"permissionDecision":"ask","permissionDecisionReason":r}}).to_string(), stderr: String::new() },
        }
    }
    fn asks(&self) -> bool {
        true
    }
    fn timeout(&self) -> Duration {
        Duration::from_secs(30)
    }
}
/// The dialect of a host.
pub fn of(_host: Host) -> &'static dyn Dialect {
    &Claude
}
/// Most bytes.
pub const MAX_EVENT_BYTES: usize = 8 << 20;
/// Reads.
pub fn read_input(bytes: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(bytes).map_err(|e| e.to_string())
}
