//! Calls by the process that owns the gateway, which needs no API key.

use super::{Params, find};
use crate::gateway::Gateway;
use crate::sidecar::{MAX_LINE_BYTES, MAX_REQUEST_BYTES};
use rulekeep::Error;

/// Makes a sidecar call by name, for example `enforce`. The parameters are the text of a JSON object, and the
/// response is JSON text. No API key is needed: the caller may make every call.
///
/// Session calls (`event/...`) are not available.
///
/// ```
/// use rulekeep::Governor;
/// use rulekeep_server::{call_text, gateway::Gateway};
///
/// let gateway = Gateway::new(&Governor::builder().auto_register().open_in_memory()?)?;
/// let verdict = call_text(&gateway, "enforce", r#"{"agentId":"a","input":"Summarize the meeting notes"}"#)?;
/// assert!(verdict.contains(r#""decision":"ALLOW""#));
/// # Ok::<(), rulekeep::Error>(())
/// ```
///
/// # Errors
///
/// * [`Error::InvalidInput`] for an unknown name, and for parameters that are not an object.
/// * [`Error::PayloadTooLarge`] for parameters above the call's size limit.
/// * Otherwise the errors of the call's parameters and of the governor.
pub fn call_text(gateway: &Gateway, method: &str, params: &str) -> Result<String, Error> {
    let Some(entry) = find(method) else {
        return Err(Error::input("method", "no call has this name"));
    };
    let made = (entry.read)(read_params(method, params)?)?.run(gateway)?;
    String::from_utf8(made.answer).map_err(|_| Error::Internal { message: "an answer is not UTF-8".to_owned() })
}

/// Reads the parameters of a call, if their text is within the call's size limit.
pub(crate) fn read_params(method: &str, text: &str) -> Result<Params, Error> {
    let takes_documents = DOCUMENTS.iter().any(|subject| method.starts_with(subject));
    let (size, limit) = (text.len(), if takes_documents { MAX_LINE_BYTES } else { MAX_REQUEST_BYTES });
    if size > limit {
        return Err(Error::PayloadTooLarge { what: "params", size, limit });
    }
    Params::read(text)
}

/// Prefixes of the calls that take documents, tool results or host events.
const DOCUMENTS: &[&str] = &["policy/", "catalogue/", "agent/import", "task/observe", "hook/"];
