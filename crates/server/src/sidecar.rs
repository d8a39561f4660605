//! The sidecar protocol: a governor behind lines of JSON-RPC 2.0, so that a runtime in any language can embed it
//! without a network.
//!
//! Each line is one UTF-8 message. Responses come in the order of the requests, and batches are accepted. No
//! malformed line ends the session. Errors of the calls carry `data: {code, httpStatus, details?}`.
//!
//! ```
//! use rulekeep::{Agent, Governor};
//! use rulekeep_server::{gateway::Gateway, sidecar};
//!
//! let governor = Governor::builder().open_in_memory()?;
//! governor.agents().register(Agent::new("a"))?;
//! let line = r#"{"jsonrpc":"2.0","id":1,"method":"agent/get","params":{"agentId":"a"}}"#;
//! let mut answers = Vec::new();
//! sidecar::serve(&Gateway::new(&governor)?, line.as_bytes(), &mut answers)?;
//! assert!(String::from_utf8(answers)?.contains(r#""tierName":"Observed""#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::{self, BufRead, Read, Write};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Scope};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::access::Access;
use super::calls::events::{self, Subscriptions};
use super::calls::{self, Params};
pub use super::calls::{MAX_LINE_BYTES, MAX_REQUEST_BYTES};
use super::gateway::Gateway;
use super::rpc::{Fault, Request, Response};
use rulekeep::Error;

/// Answers every line of `input` on `output` until the input ends. The other side may make all calls.
///
/// # Errors
///
/// Errors of reading the input and writing the output.
pub fn serve(gateway: &Gateway, input: impl BufRead, output: impl Write + Send) -> io::Result<()> {
    serve_as(gateway, Access::Everything, &|_, _, _| None, input, output)
}

/// Answers every line of `input` that the access permits. `own` answers the calls that the program adds to the
/// protocol, and returns `None` for all others. A connection with [`Access::Reading`] can raise its access by
/// `session/authenticate {key}`, answered with `{}`.
///
/// # Errors
///
/// Errors of reading the input and writing the output.
pub fn serve_as(
    gateway: &Gateway,
    access: Access,
    own: &OwnCalls<'_>,
    mut input: impl BufRead,
    output: impl Write + Send,
) -> io::Result<()> {
    // Held while writing a whole line: a response, or an event between responses.
    let output = Mutex::new(output);
    let mut session = Session { gateway, access, own, subscriptions: Subscriptions::new(gateway.subscriptions()) };
    thread::scope(|scope| {
        let served = session.serve(&mut input, &output, scope);
        // Flushes the decisions made before the session ends.
        let flushed = gateway.governor().log().flush();
        session.subscriptions.end();
        served.map(|()| drop(flushed))
    })
}

/// Writes an error to a connection that is not served.
///
/// # Errors
///
/// Errors of writing the output.
pub fn refuse(error: Error, mut output: impl Write) -> io::Result<()> {
    let line = one(&Response::new(None, Err(error.into()))).unwrap_or_default();
    output.write_all(format!("{line}\n").as_bytes())
}

/// The calls that a program adds. Takes the connection's access and the call's name and parameters; returns `None` if
/// the program has no call with that name.
pub type OwnCalls<'a> = dyn Fn(&Access, &str, &mut Params) -> Option<Result<Value, Error>> + Sync + 'a;

/// The parameters of `session/authenticate`.
#[derive(Deserialize, Serialize)]
pub struct Authenticate {
    /// The API key.
    pub key: String,
}

/// The state that lasts from line to line.
struct Session<'a> {
    gateway: &'a Gateway,
    access: Access,
    own: &'a OwnCalls<'a>,
    subscriptions: Subscriptions,
}

/// Reads one line without its end, keeping at most [`MAX_LINE_BYTES`]. Returns the full length, or `None` at the end
/// of the input.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<usize>> {
    line.clear();
    let most = MAX_LINE_BYTES as u64 + 1;
    let mut length = input.by_ref().take(most).read_until(b'\n', line)?;
    if length == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(Some(line.len()));
    }
    // Either the last line of the input, or a line that is too long, whose rest is skipped.
    while length > MAX_LINE_BYTES {
        let rest = input.fill_buf()?;
        let end = rest.iter().position(|byte| *byte == b'\n');
        let passed = end.map_or(rest.len(), |end| end + 1);
        input.consume(passed);
        length += end.unwrap_or(passed);
        if end.is_some() || passed == 0 {
            break;
        }
    }
    Ok(Some(length))
}

impl Session<'_> {
    fn serve<'scope, W: Write + Send>(
        &mut self,
        input: &mut impl BufRead,
        output: &'scope Mutex<W>,
        scope: &'scope Scope<'scope, '_>,
    ) -> io::Result<()> {
        let mut line = Vec::new();
        while let Some(length) = read_line(input, &mut line)? {
            let answer = if length > MAX_LINE_BYTES {
                let error = Error::PayloadTooLarge { what: "line", size: length, limit: MAX_LINE_BYTES };
                one(&Response::new(None, Err(error.into())))
            } else {
                self.answer_line(&line)
            };
            if let Some(mut answer) = answer {
                answer.push('\n');
                let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
                output.write_all(answer.as_bytes())?;
                output.flush()?;
            }
            self.subscriptions.start(scope, output);
        }
        Ok(())
    }

    /// The response to a line; `None` if it contained only notifications.
    fn answer_line(&mut self, line: &[u8]) -> Option<String> {
        let refuse = |fault| one(&Response::new(None, Err(fault)));
        let Ok(text) = std::str::from_utf8(line) else { return refuse(Fault::parse("expected UTF-8")) };
        let Ok(message) = serde_json::from_str::<&RawValue>(text) else {
            return refuse(Fault::parse("expected one message of JSON a line"));
        };
        if !message.get().starts_with('[') {
            return self.answer_request(message.get()).as_ref().and_then(one);
        }
        let requests: Vec<&RawValue> = serde_json::from_str(message.get()).unwrap_or_default();
        if requests.is_empty() {
            return refuse(Fault::invalid_request("expected a batch of at least one request"));
        }
        let answers: Vec<String> =
            requests.iter().filter_map(|request| one(&self.answer_request(request.get())?)).collect();
        (!answers.is_empty()).then(|| format!("[{}]", answers.join(",")))
    }

    /// The response to a request; `None` for a notification.
    fn answer_request<'a>(&mut self, text: &'a str) -> Option<Response<'a>> {
        match Request::read(text) {
            Err((id, fault)) => Some(Response::new(id, Err(fault))),
            Ok(request) => {
                let outcome = self.call(&request);
                request.id.map(|id| Response::new(Some(id), outcome))
            }
        }
    }

    fn call(&mut self, request: &Request<'_>) -> Result<Box<RawValue>, Fault> {
        let params = match request.params {
            None => Params::default(),
            Some(raw) if raw.get().starts_with('{') => Params::of_call(&request.method, raw.get())?,
            Some(_) if calls::find(&request.method).is_some() || events::find(&request.method).is_some() => {
                return Err(Fault::invalid_params());
            }
            Some(_) => return Err(Fault::unknown_method(&request.method)),
        };
        self.answer_call(&request.method, params)
    }

    fn answer_call(&mut self, method: &str, mut params: Params) -> Result<Box<RawValue>, Fault> {
        if let Some(answer) = (self.own)(&self.access, method, &mut params) {
            return Ok(calls::to_raw(calls::to_bytes(&answer?)?)?);
        }
        if let Some(entry) = calls::find(method) {
            return Ok(self.access.answer(self.gateway, entry, params, true)?);
        }
        if let Some(entry) = events::find(method) {
            self.access.may_subscribe(self.gateway)?;
            return Ok(calls::to_raw((entry.run)(params, &mut self.subscriptions, self.gateway.governor())?)?);
        }
        if method == "session/authenticate" {
            let Authenticate { key } = params.fields()?;
            self.access.authenticate(self.gateway, &key)?;
            return Ok(calls::to_raw(b"{}".to_vec())?);
        }
        Err(Fault::unknown_method(method))
    }
}

fn one(response: &Response<'_>) -> Option<String> {
    // Responses consist of JSON values and texts, which always serialize.
    serde_json::to_string(response).ok()
}
