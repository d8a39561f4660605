//! Shared parts of the server's tests: those of the library's tests, a governor with its gateway, and a sidecar
//! driven by lines.
#![allow(dead_code, unused_imports)] // every test program has its own copy of this module and uses a part of it
#![allow(clippy::unwrap_used, clippy::expect_used)] // a helper that cannot go on fails its test

#[path = "../../../../tests/common/mod.rs"]
mod library;
pub(crate) mod programs;
pub(crate) mod receiver;

use std::ops::Deref;
use std::path::Path;

use rulekeep::Governor;
use rulekeep_server::gateway::Gateway;
use rulekeep_server::sidecar;
use rulekeep_server::webhooks::{Settings, Webhooks};
use serde_json::{Value, json};

pub(crate) use library::*;

/// A governor with its gateway.
pub(crate) struct Served {
    pub(crate) gateway: Gateway,
}

impl Served {
    pub(crate) fn new(governor: &Governor) -> Self {
        Self::with(governor, Settings::default())
    }

    pub(crate) fn with(governor: &Governor, settings: Settings) -> Self {
        Self { gateway: Gateway::with_webhooks(governor, settings).expect("a governor's first gateway opens") }
    }

    pub(crate) fn webhooks(&self) -> &Webhooks {
        self.gateway.webhooks()
    }
}

impl Deref for Served {
    type Target = Governor;

    fn deref(&self) -> &Governor {
        self.gateway.governor()
    }
}

/// A governor in memory with the small policies and the agent `a` at T4.
pub(crate) fn in_memory() -> Served {
    Served::new(&library::in_memory())
}

/// The same in a folder; when opened again, the agent exists.
pub(crate) fn in_folder(folder: &Path) -> Served {
    Served::new(&library::in_folder(folder))
}

/// The sidecar's responses to an input, line by line.
pub(crate) fn serve(governor: &Served, input: impl AsRef<[u8]>) -> Vec<Value> {
    let mut output = Vec::new();
    sidecar::serve(&governor.gateway, input.as_ref(), &mut output).expect("memory can be read and written");
    let text = String::from_utf8(output).expect("answers are UTF-8");
    assert!(text.is_empty() || text.ends_with('\n'), "the last answer has no line end");
    text.lines().map(|line| serde_json::from_str(line).expect("an answer is JSON")).collect()
}

/// The complete response to one call.
pub(crate) fn call(governor: &Served, method: &str, params: &Value) -> Value {
    let line = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let mut answers = serve(governor, line);
    assert_eq!(answers.len(), 1, "{method} {params} was answered {answers:?}");
    answers.remove(0)
}

/// The result of a call that succeeds.
pub(crate) fn result(governor: &Served, method: &str, params: &Value) -> Value {
    let answer = call(governor, method, params);
    assert!(answer.get("error").is_none(), "{method} {params} failed: {answer}");
    answer["result"].clone()
}

/// The `data` of a call that fails with an error.
pub(crate) fn refusal(governor: &Served, method: &str, params: &Value) -> Value {
    let answer = call(governor, method, params);
    assert_eq!(answer["error"]["code"], -32000, "{method} {params}: {answer}");
    answer["error"]["data"].clone()
}
