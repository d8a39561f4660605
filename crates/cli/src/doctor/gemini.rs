//! Gemini CLI's trust in a folder: in an untrusted folder it runs no hook, not even the user's.
//!
//! SOURCE: `trustedFolders.ts` and `hookRegistry.ts` of Gemini CLI 0.61.0.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// Returns an error if the folder of a project is not trusted.
pub(super) fn trusts(home: &Path, project: &Path) -> Result<(), String> {
    let read = |name: &str| -> Value {
        let text = fs::read_to_string(home.join(".gemini").join(name)).ok();
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    };
    if read("settings.json").pointer("/security/folderTrust/enabled") == Some(&Value::Bool(false)) {
        return Ok(());
    }
    let folders = read("trustedFolders.json");
    // The rule of the innermost folder applies.
    let rule = project.ancestors().find_map(|folder| {
        let rule = folders.get(&*folder.to_string_lossy()).and_then(Value::as_str)?;
        (rule != "TRUST_PARENT").then_some(rule)
    });
    if rule == Some("TRUST_FOLDER") {
        return Ok(());
    }
    Err(format!("Gemini CLI does not trust {}, and runs no hook in such a folder", project.display()))
}
