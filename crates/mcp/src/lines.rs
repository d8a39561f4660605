//! JSON-RPC messages as lines on streams of bytes, towards the client and towards the server.
//!
//! The SDK's own codec drops a line that it cannot parse, so that the other side waits for an answer that never comes.
//! Here, such a request is answered with an error, and such an answer ends its request with an error. The text of
//! results is kept, see [`Verbatim`].

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::model::{CancelledNotification, ErrorData, GetExtensions, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, ServiceRole, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::process::{GRACE, Process};

/// The text of the result of one request: an extension of the request that is not sent. Typed results lose fields
/// and digits that the SDK does not know.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verbatim(Arc<OnceLock<Option<String>>>);

impl Verbatim {
    /// Follows the result of a request that is about to be sent.
    pub(crate) fn follow(request: &mut impl GetExtensions) -> Self {
        request.extensions_mut().get_or_insert_default::<Self>().clone()
    }

    pub(crate) fn set(&self, text: String) {
        let _ = self.0.set(Some(text));
    }

    pub(crate) fn text(&self) -> Option<&str> {
        self.0.get()?.as_deref()
    }

    /// Returns whether there was an answer that cannot be read.
    pub(crate) fn is_unreadable(&self) -> bool {
        matches!(self.0.get(), Some(None))
    }

    /// Returns the result as JSON, or the typed one if a transport keeps no text.
    pub(crate) fn value_or(&self, typed: impl Serialize) -> Value {
        let value = self.text().and_then(|text| serde_json::from_str(text).ok());
        value.unwrap_or_else(|| serde_json::to_value(typed).unwrap_or_default())
    }
}

/// A transport over a stream of bytes.
pub(crate) struct Lines<R, W> {
    read: BufReader<R>,
    /// The line that is being read.
    line: Vec<u8>,
    /// Whether the middle of the line was dropped, because it is too long.
    is_cut: bool,
    write: Arc<Mutex<Option<W>>>,
    /// The answer to a line that could not be parsed.
    answering: Option<JoinHandle<io::Result<()>>>,
    /// Results that this side waits for, and results that the other side waits for.
    awaited: HashMap<RequestId, Verbatim>,
    owed: HashMap<RequestId, Verbatim>,
    /// The process at the other side, which ends with the connection.
    process: Option<Arc<Process>>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Lines<R, W> {
    pub(crate) fn new(read: R, write: W, process: Option<Arc<Process>>) -> Self {
        Self {
            read: BufReader::with_capacity(READ_BYTES, read),
            line: Vec::new(),
            is_cut: false,
            write: Arc::new(Mutex::new(Some(write))),
            answering: None,
            awaited: HashMap::new(),
            owed: HashMap::new(),
            process,
        }
    }

    /// Reads the rest of the current line. Returns false at the end of the stream. What was read stays in `line` if
    /// the future is dropped.
    async fn read_line(&mut self) -> io::Result<bool> {
        loop {
            let read = self.read.fill_buf().await?;
            let end = read.iter().position(|byte| *byte == b'\n');
            let is_over = read.is_empty();
            let taken = end.map_or(read.len(), |end| end + 1);
            self.line.extend_from_slice(read.get(..end.unwrap_or(taken)).unwrap_or_default());
            self.read.consume(taken);
            if self.line.len() > MOST_BYTES {
                self.is_cut = true;
                self.line.drain(KEPT_BYTES..self.line.len() - KEPT_BYTES);
            }
            if end.is_some() || is_over {
                return Ok(end.is_some() || !self.line.is_empty());
            }
        }
    }

    /// Parses a line. Returns the message, or the line that answers it, or neither.
    fn parse<Role: ServiceRole>(&mut self, line: &[u8], is_cut: bool) -> Parsed<Role> {
        let (why, is_strict) = match serde_json::from_slice::<RxJsonRpcMessage<Role>>(line) {
            _ if is_cut => (format!("it is longer than {MOST_BYTES} bytes"), false),
            Ok(message) => return Parsed::Message(self.received::<Role>(message, line)),
            Err(error) => match serde_json::from_slice::<Value>(line) {
                Ok(_) => (error.to_string(), true),
                Err(error) => (error.to_string(), false),
            },
        };
        let (head, is_json) = Head::of(line);
        tracing::debug!(why, "a message cannot be read");
        let id = head.id.as_deref().unwrap_or("null");
        let readable = serde_json::from_str::<RequestId>(id);
        // A server has nothing to say about an id but an answer.
        let is_answer = head.is_answer || Role::IS_CLIENT && head.is_message;
        match (head.is_request, is_answer) {
            (false, true) => {
                let Ok(id) = readable else { return Parsed::Nothing };
                if let Some(Verbatim(text)) = self.awaited.remove(&id) {
                    let _ = text.set(None);
                }
                let error = ErrorData::internal_error(format!("the answer cannot be read: {why}"), None);
                Parsed::Message(JsonRpcMessage::error(error, Some(id)))
            }
            // A notification has no answer, and a server may write other text than messages.
            (true, _) if is_json && head.id.is_none() => Parsed::Nothing,
            (false, _) if Role::IS_CLIENT => Parsed::Nothing,
            (is_request, _) => {
                let (code, why) = match (is_json || is_cut, is_strict) {
                    (false, _) => (-32700, why),
                    (true, false) if is_request && readable.is_ok() => (-32602, why),
                    (true, true) if is_request && readable.is_err() => {
                        (-32600, "expected a string or a 64-bit integer as its id".to_owned())
                    }
                    (true, _) => (-32600, why),
                };
                let error = json!({ "code": code, "message": format!("the message cannot be read: {why}") });
                let is_word = id.starts_with(['"', '-']) || id.starts_with(|c: char| c.is_ascii_digit());
                let id = if is_word { id } else { "null" };
                Parsed::Answer(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
            }
        }
    }

    /// Keeps the text of a result, and prepares a request for one.
    fn received<Role: ServiceRole>(
        &mut self,
        mut message: RxJsonRpcMessage<Role>,
        line: &[u8],
    ) -> RxJsonRpcMessage<Role> {
        match &mut message {
            JsonRpcMessage::Request(request) => {
                self.owed.insert(request.id.clone(), Verbatim::follow(&mut request.request));
            }
            JsonRpcMessage::Response(response) => {
                let answer = serde_json::from_slice::<Answer<'_>>(line);
                if let (Some(awaited), Ok(answer)) = (self.awaited.remove(&response.id), answer) {
                    // Between tokens, a carriage return could end the line for a client.
                    awaited.set(answer.result.get().replace('\r', " "));
                }
            }
            JsonRpcMessage::Notification(notification) => {
                // A canceled request gets no answer.
                let cancelled: Result<CancelledNotification, _> = notification.notification.clone().try_into();
                if let Some(id) = cancelled.ok().and_then(|cancelled| cancelled.params.request_id) {
                    self.owed.remove(&id);
                }
            }
            JsonRpcMessage::Error(error) => {
                self.awaited.retain(|_, text| Arc::strong_count(&text.0) > 1);
                // A peer that could not read a request does not know its id.
                if let (None, 1) = (&error.id, self.awaited.len()) {
                    error.id = self.awaited.keys().next().cloned();
                }
            }
        }
        message
    }

    /// The line of a message.
    fn sent<Role: ServiceRole>(&mut self, message: &TxJsonRpcMessage<Role>) -> io::Result<String> {
        match message {
            JsonRpcMessage::Request(request) => {
                if let Some(text) = request.request.extensions().get::<Verbatim>() {
                    self.awaited.retain(|_, text| Arc::strong_count(&text.0) > 1);
                    self.awaited.insert(request.id.clone(), text.clone());
                }
            }
            JsonRpcMessage::Response(response) => {
                if let Some(result) = self.owed.remove(&response.id).as_ref().and_then(Verbatim::text) {
                    let id = serde_json::to_string(&response.id)?;
                    return Ok(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
                }
            }
            JsonRpcMessage::Error(error) => drop(error.id.as_ref().and_then(|id| self.owed.remove(id))),
            JsonRpcMessage::Notification(_) => {}
        }
        Ok(serde_json::to_string(message)?)
    }
}

impl<Role, R, W> Transport<Role> for Lines<R, W>
where
    Role: ServiceRole,
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<Role>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let line = self.sent::<Role>(&item);
        let write = Arc::clone(&self.write);
        async move { put(&write, line?).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<Role>> {
        loop {
            // The future may be dropped while it waits, and goes on here.
            if let Some(answering) = &mut self.answering {
                let _ = answering.await;
                self.answering = None;
            }
            match self.read_line().await {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    tracing::error!(%error, "the stream cannot be read");
                    return None;
                }
            }
            let (line, is_cut) = (std::mem::take(&mut self.line), std::mem::take(&mut self.is_cut));
            let line = line.strip_prefix(b"\xEF\xBB\xBF".as_slice()).unwrap_or(&line).trim_ascii();
            if line.is_empty() {
                continue;
            }
            match self.parse::<Role>(line, is_cut) {
                Parsed::Message(message) => return Some(message),
                Parsed::Answer(line) => {
                    let write = Arc::clone(&self.write);
                    self.answering = Some(tokio::spawn(async move { put(&write, line).await }));
                }
                Parsed::Nothing => {}
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // A write to a process that does not read holds the lock.
        if let Ok(mut write) = tokio::time::timeout(LAST_WRITE, self.write.lock()).await {
            write.take();
        }
        if let Some(process) = &self.process {
            process.end(GRACE).await;
        }
        Ok(())
    }
}

/// The consequence of a line.
enum Parsed<Role: ServiceRole> {
    Message(RxJsonRpcMessage<Role>),
    Answer(String),
    Nothing,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    result: &'a RawValue,
}

/// The parts of a message that tell how to answer it. Other parts are skipped without being checked.
#[derive(Debug, Default)]
struct Head {
    id: Option<String>,
    is_request: bool,
    is_answer: bool,
    /// Set for a line with the member `jsonrpc`, unlike a line of a log.
    is_message: bool,
}

impl Head {
    /// Reads what can be read, and whether the line has the syntax of JSON.
    fn of(line: &[u8]) -> (Self, bool) {
        let mut head = Self::default();
        let is_json = head.read(line);
        // The members after a broken or dropped one can only be read from the end.
        let end = line.get(line.len().saturating_sub(KEPT_BYTES)..).unwrap_or_default();
        let members = end.windows(2).enumerate().rev().filter(|(_, bytes)| *bytes == br#",""#);
        for (place, _) in members.take(MOST_MEMBERS).filter(|_| !is_json) {
            let rest = end.get(place + 1..).unwrap_or_default();
            let mut last = Self::default();
            if last.read(&[b"{", rest].concat()) {
                head.id = head.id.or(last.id);
                head.is_request |= last.is_request;
                head.is_answer |= last.is_answer;
            }
        }
        (head, is_json)
    }

    fn read(&mut self, text: &[u8]) -> bool {
        let mut reader = serde_json::Deserializer::from_slice(text);
        if text.first() != Some(&b'{') {
            return IgnoredAny::deserialize(&mut reader).is_ok() && reader.end().is_ok();
        }
        reader.deserialize_map(self).is_ok() && reader.end().is_ok()
    }
}

impl<'de> Visitor<'de> for &mut Head {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(key) = members.next_key::<String>()? {
            if key == "id" {
                self.id = Some(members.next_value::<&RawValue>()?.get().to_owned());
                continue;
            }
            // The value may be what is broken.
            self.is_request |= key == "method";
            self.is_answer |= matches!(key.as_str(), "result" | "error");
            self.is_message |= key == "jsonrpc";
            members.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

async fn put<W: AsyncWrite + Unpin>(write: &Mutex<Option<W>>, mut line: String) -> io::Result<()> {
    line.push('\n');
    let mut write = write.lock().await;
    let write = write.as_mut().ok_or(io::ErrorKind::NotConnected)?;
    write.write_all(line.as_bytes()).await?;
    write.flush().await
}

/// The longest line that is read.
const MOST_BYTES: usize = 64 << 20;
/// The start and the end of a longer line, which have its id.
const KEPT_BYTES: usize = 4 << 10;
/// Number of places at the end of a line where members are looked for.
const MOST_MEMBERS: usize = 16;
const READ_BYTES: usize = 64 << 10;
/// The time that a write has to finish when the connection is closed.
const LAST_WRITE: Duration = Duration::from_secs(1);
