//! Intents: an agent's requests in a form that policies can evaluate.

use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::context_key::{CALL_ID, PARSED_KEYS, REQUESTED_BY};
use super::facts::{FACTS_KEY, ParsedFacts};
use super::json::{push_members, push_text, push_texts};
use super::reserved::{RESERVED, has_reserved};
use super::{Action, AgentId, Capability, Error, IntentId, InvalidValue, RiskLevel, Timestamp};

/// Maximum length of a request text: 65,536 bytes.
pub const MAX_INPUT_BYTES: usize = 64 * 1024;
/// Maximum size of a context: 65,536 bytes of JSON.
pub const MAX_CONTEXT_BYTES: usize = 64 * 1024;
/// Maximum nesting of a context: 32 levels; an empty object is one level.
pub const MAX_CONTEXT_DEPTH: usize = 32;

/// A request for the parser: the request text and the caller's context.
///
/// ```
/// use rulekeep::intent::Input;
///
/// let context = serde_json::Map::new();
/// let input = Input::new("Read the file notes.txt").context(&context);
/// # let _ = input;
/// ```
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct Input<'a> {
    pub text: &'a str,
    pub context: Option<&'a Map<String, Value>>,
}

impl<'a> Input<'a> {
    /// Creates a request without context.
    pub const fn new(text: &'a str) -> Self {
        Self { text, context: None }
    }

    /// Adds the caller's context, which the parsed intent carries on.
    #[must_use]
    pub const fn context(mut self, context: &'a Map<String, Value>) -> Self {
        self.context = Some(context);
        self
    }
}

impl<'a> From<&'a str> for Input<'a> {
    fn from(text: &'a str) -> Self {
        Self::new(text)
    }
}

impl<'a> From<&'a String> for Input<'a> {
    fn from(text: &'a String) -> Self {
        Self::new(text)
    }
}

crate::parts::with_parts! {
    /// An agent's request: the action, its risk, and the capabilities it requires.
    ///
    /// `Governor::parse` creates intents from text and tool calls. A runtime that knows what a
    /// call needs builds them itself:
    ///
    /// ```
    /// use rulekeep::{Intent, RiskLevel};
    ///
    /// let intent = Intent::new("support-1", "send_email", RiskLevel::Medium, ["email:send"])?
    ///     .with_context("environment", "production");
    /// assert_eq!(intent.required_capabilities[0].as_str(), "email:send");
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    #[derive(Debug, Clone, PartialEq)]
    #[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(rename_all = "camelCase"))]
    pub struct Intent from IntentParts {
        /// The identifier, assigned on parsing, or on enforcing an intent without one.
        pub id: Option<IntentId>,
        /// The agent that makes the request.
        pub agent_id: AgentId,
        /// The normalized action.
        pub parsed_action: Action,
        /// The risk level, as parsed or as the caller states it.
        pub risk_level: RiskLevel,
        /// The capabilities that the action requires, the primary one first.
        #[cfg_attr(feature = "schema", schema(min_items = 1, max_items = 64))]
        pub required_capabilities: Vec<Capability>,
        /// The caller's context, with the keys that parsing added.
        #[cfg_attr(feature = "schema", schema(value_type = super::schema::Context, required = false))]
        pub context: Map<String, Value>,
        /// The time it was parsed, or first enforced.
        pub timestamp: Option<Timestamp>,
        /// The facts that the parser found; absent from an intent that its caller built.
        #[doc(hidden)]
        #[cfg_attr(feature = "schema", schema(ignore))]
        pub known: Option<ParsedFacts>,
    }
}

impl Serialize for Intent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut json = serializer.serialize_struct("Intent", 7)?;
        if let Some(id) = &self.id {
            json.serialize_field("id", id)?;
        }
        json.serialize_field("agentId", &self.agent_id)?;
        json.serialize_field("parsedAction", &self.parsed_action)?;
        json.serialize_field("riskLevel", &self.risk_level)?;
        json.serialize_field("requiredCapabilities", &self.required_capabilities)?;
        json.serialize_field("context", &self.members())?;
        if let Some(timestamp) = &self.timestamp {
            json.serialize_field("timestamp", timestamp)?;
        }
        json.end()
    }
}

impl<'de> Deserialize<'de> for Intent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Form {
            id: Option<IntentId>,
            agent_id: AgentId,
            parsed_action: Action,
            risk_level: RiskLevel,
            required_capabilities: Vec<Capability>,
            #[serde(default)]
            context: Map<String, Value>,
            timestamp: Option<Timestamp>,
        }
        let Form { id, agent_id, parsed_action, risk_level, required_capabilities, mut context, timestamp } =
            Form::deserialize(deserializer)?;
        let known = known(&mut context);
        Ok(Self { id, agent_id, parsed_action, risk_level, required_capabilities, context, timestamp, known })
    }
}

/// Takes the facts out of the context of an intent's JSON.
fn known(context: &mut Map<String, Value>) -> Option<ParsedFacts> {
    context.remove(FACTS_KEY).filter(Value::is_object).map(ParsedFacts::of_json)
}

/// The id and timestamp of an intent, kept apart from it. An intent that its caller built may have neither, and receives
/// both for its decision without being copied.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct IntentStamp {
    pub id: Option<IntentId>,
    pub timestamp: Option<Timestamp>,
}

impl Intent {
    /// Writes the same JSON as serde for the intent with this id and timestamp, but faster: every decision writes its
    /// intent.
    pub fn write_stamped(&self, stamp: IntentStamp, out: &mut Vec<u8>) -> serde_json::Result<()> {
        out.push(b'{');
        if let Some(id) = &stamp.id {
            out.extend_from_slice(b"\"id\":\"");
            out.extend_from_slice(&id.written());
            out.extend_from_slice(b"\",");
        }
        out.extend_from_slice(b"\"agentId\":");
        push_text(out, self.agent_id.as_str())?;
        out.extend_from_slice(b",\"parsedAction\":");
        push_text(out, self.parsed_action.as_str())?;
        out.extend_from_slice(b",\"riskLevel\":\"");
        out.extend_from_slice(self.risk_level.as_str().as_bytes());
        out.extend_from_slice(b"\",\"requiredCapabilities\":");
        push_texts(out, self.required_capabilities.iter().map(Capability::as_str))?;
        out.extend_from_slice(b",\"context\":");
        push_members(out, self.members().iter())?;
        if let Some(at) = stamp.timestamp {
            out.extend_from_slice(b",\"timestamp\":\"");
            out.extend_from_slice(&at.written());
            out.push(b'"');
        }
        out.push(b'}');
        Ok(())
    }

    /// The id and timestamp that the intent carries.
    pub fn stamp(&self) -> IntentStamp {
        IntentStamp { id: self.id, timestamp: self.timestamp }
    }

    /// Creates an intent with an empty context. Repeated capabilities are dropped.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidIntent`], which names the first malformed field, and for no capability or more than 64.
    pub fn new<C: AsRef<str>>(
        agent_id: &str,
        action: &str,
        risk_level: RiskLevel,
        capabilities: impl IntoIterator<Item = C>,
    ) -> Result<Self, Error> {
        let mut required_capabilities: Vec<Capability> = Vec::new();
        for text in capabilities {
            let capability = text.as_ref().parse().map_err(|error| malformed("requiredCapabilities", &error))?;
            if !required_capabilities.contains(&capability) {
                required_capabilities.push(capability);
            }
        }
        let intent = Self {
            id: None,
            agent_id: agent_id.parse().map_err(|error| malformed("agentId", &error))?,
            parsed_action: action.parse().map_err(|error| malformed("parsedAction", &error))?,
            risk_level,
            required_capabilities,
            context: Map::new(),
            timestamp: None,
            known: None,
        };
        intent.check()?;
        Ok(intent)
    }

    /// Adds a key to the context.
    #[must_use]
    pub fn with_context(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.context.insert(key.into(), value.into());
        self
    }

    /// Reads an intent from JSON; `id`, `context` and `timestamp` may be absent.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidIntent`], which names the first unknown, missing or malformed field;
    /// [`Error::PayloadTooLarge`] for a context over 64 KiB.
    pub fn from_json(value: &Value) -> Result<Self, Error> {
        let Value::Object(fields) = value else {
            return Err(Error::intent("intent", "expected an object"));
        };
        if let Some(name) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
            return Err(Error::intent(
                "intent",
                format!("unknown field {name:.40?}; expected some of {}", FIELDS.join(", ")),
            ));
        }
        let mut context = context(fields)?;
        let intent = Self {
            known: known(&mut context),
            agent_id: word(fields, "agentId")?,
            parsed_action: word(fields, "parsedAction")?,
            risk_level: word(fields, "riskLevel")?,
            required_capabilities: capabilities(fields)?,
            context,
            id: optional_word(fields, "id")?,
            timestamp: optional_word(fields, "timestamp")?,
        };
        intent.check()?;
        Ok(intent)
    }

    /// Checks what the field types do not ensure: 1 to 64 capabilities and a context within its limits.
    pub fn check(&self) -> Result<(), Error> {
        if self.required_capabilities.is_empty() {
            return Err(Error::intent("requiredCapabilities", "expected at least one capability"));
        }
        if self.required_capabilities.len() > MAX_CAPABILITIES {
            return Err(Error::intent(
                "requiredCapabilities",
                format!("expected at most {MAX_CAPABILITIES} capabilities"),
            ));
        }
        check_context_beside(&self.context, PARSED_KEYS).map_err(of_intent)
    }

    /// The requesters: the agent and the names in the context's `requestedBy`. None of them may approve the request.
    pub fn askers(&self) -> impl Iterator<Item = &str> {
        let named = match self.context.get(REQUESTED_BY) {
            Some(Value::Array(names)) => names.as_slice(),
            Some(name) => std::slice::from_ref(name),
            None => &[],
        };
        std::iter::once(self.agent_id.as_str()).chain(named.iter().filter_map(Value::as_str))
    }

    /// The caller's idempotency key of the request (`callId`).
    pub fn call_id(&self) -> Option<&str> {
        Self::call_id_in(&self.context)
    }

    /// The caller's idempotency key in the context of a request (`callId`).
    pub fn call_id_in(context: &Map<String, Value>) -> Option<&str> {
        context.get(CALL_ID)?.as_str()
    }

    #[doc(hidden)]
    pub fn check_call_id(call_id: &str) -> Result<(), Error> {
        let is_well_formed = !call_id.trim().is_empty()
            && call_id.chars().count() <= MAX_CALL_ID_CHARS
            && !call_id.chars().any(char::is_control);
        if is_well_formed {
            return Ok(());
        }
        let expected =
            format!("{CALL_ID}: expected 1 to {MAX_CALL_ID_CHARS} characters, not blank, without control characters");
        Err(Error::input("context", expected))
    }

    /// Checks only `environment`: an invalid one could bypass a rule, while the other checks only bound the cost.
    pub fn check_environment(&self) -> Result<(), Error> {
        check_environment(&self.context).map_err(of_intent)
    }
}

/// An alternative interpretation of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Alternative {
    /// The action of this interpretation.
    pub parsed_action: Action,
    /// The confidence in it, from 0 to 1.
    pub confidence: f64,
}

impl Alternative {
    /// Creates an alternative from its action and confidence.
    pub fn new(parsed_action: Action, confidence: f64) -> Self {
        Self { parsed_action, confidence }
    }
}

/// The result of parsing a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct ParseResult {
    /// The most likely interpretation.
    pub intent: Intent,
    /// The confidence in it, from 0 to 1.
    pub confidence: f64,
    /// Alternative interpretations, most likely first.
    pub alternatives: Vec<Alternative>,
}

impl ParseResult {
    /// Creates a result from its parts.
    pub fn new(intent: Intent, confidence: f64, alternatives: Vec<Alternative>) -> Self {
        Self { intent, confidence, alternatives }
    }
}

/// Converts an error about a context into one about the intent that holds it.
fn of_intent(error: Error) -> Error {
    match error {
        Error::InvalidInput { message, .. } => Error::intent("context", message),
        other => other,
    }
}

/// Checks a caller's context against its limits. Depth comes first, because serialization is recursive.
pub fn check_context(context: &Map<String, Value>) -> Result<(), Error> {
    check_context_beside(context, &[])
}

/// The same check, with extra room for keys that the parser added.
fn check_context_beside(context: &Map<String, Value>, ours: &[&str]) -> Result<(), Error> {
    if map_depth(context, MAX_CONTEXT_DEPTH) > MAX_CONTEXT_DEPTH {
        return Err(Error::input("context", format!("nested more than {MAX_CONTEXT_DEPTH} levels deep")));
    }
    if has_reserved(context) {
        return Err(Error::input("context", RESERVED));
    }
    check_environment(context)?;
    check_requesters(context)?;
    match context.get(CALL_ID) {
        None | Some(Value::Null) => {}
        Some(Value::String(call_id)) => Intent::check_call_id(call_id)?,
        Some(_) => return Err(Error::input("context", format!("{CALL_ID}: expected a text"))),
    }
    // Serializing takes long compared to a decision, so only a context that may be too large is measured.
    if most_map_size(context) <= MAX_CONTEXT_BYTES {
        return Ok(());
    }
    let size = json_size(context)?;
    if size <= MAX_CONTEXT_BYTES {
        return Ok(());
    }
    let our_size: usize = context
        .iter()
        .filter(|(key, _)| ours.contains(&key.as_str()))
        .map(|(key, value)| json_size(value).map(|size| size + key.len() + "\"\":,".len()))
        .sum::<Result<usize, Error>>()?;
    // A caller that uses the parser's keys gets no more room than the parser's maximum.
    let callers_size = size - our_size.min(MAX_PARSED_BYTES);
    if callers_size > MAX_CONTEXT_BYTES {
        return Err(Error::PayloadTooLarge { what: "context", size: callers_size, limit: MAX_CONTEXT_BYTES });
    }
    Ok(())
}

/// Requires `environment` to be a string; another type could bypass restricting rules.
fn check_environment(context: &Map<String, Value>) -> Result<(), Error> {
    match context.get("environment") {
        None | Some(Value::String(_) | Value::Null) => Ok(()),
        Some(_) => Err(Error::input("context", "environment: expected a string, for example production")),
    }
}

/// Requires `requestedBy` to be a name or list of names; otherwise a requester could approve the request.
fn check_requesters(context: &Map<String, Value>) -> Result<(), Error> {
    let is_read = match context.get(REQUESTED_BY) {
        None | Some(Value::String(_) | Value::Null) => true,
        Some(Value::Array(names)) => names.iter().all(Value::is_string),
        Some(_) => false,
    };
    if is_read {
        return Ok(());
    }
    Err(Error::input("context", format!("{REQUESTED_BY}: expected a name or a list of names, such as \"ann\"")))
}

const MAX_CALL_ID_CHARS: usize = 256;

fn json_size(value: &impl Serialize) -> Result<usize, Error> {
    serde_json::to_vec(value)
        .map(|json| json.len())
        .map_err(|error| Error::internal("context cannot be serialized").caused_by(error))
}

/// An upper bound of [`json_size`], computed without serializing.
fn most_json_size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => "false".len(),
        Value::Number(number) if number.is_i64() || number.is_u64() => "-9223372036854775808".len(),
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => most_text_size(text),
        Value::Array(items) => "[]".len() + items.iter().map(|item| most_json_size(item) + ",".len()).sum::<usize>(),
        Value::Object(map) => most_map_size(map),
    }
}

fn most_map_size(map: &Map<String, Value>) -> usize {
    let most = |(key, value): (&String, &Value)| most_text_size(key) + most_json_size(value) + ":,".len();
    "{}".len() + map.iter().map(most).sum::<usize>()
}

/// Upper bound: every byte is escaped.
fn most_text_size(text: &str) -> usize {
    "\"\"".len() + text.len().saturating_mul("\\u001f".len())
}

/// The nesting depth of a JSON text, counted by its brackets alone, so hostile input cannot overflow the stack.
pub fn json_depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The depth of an object; recursion stops one level past `limit`.
fn map_depth(map: &Map<String, Value>, limit: usize) -> usize {
    1 + map.values().map(|value| value_depth(value, limit)).max().unwrap_or(0)
}

fn value_depth(value: &Value, limit: usize) -> usize {
    if limit == 0 {
        return 1;
    }
    match value {
        Value::Object(map) => map_depth(map, limit - 1),
        Value::Array(items) => 1 + items.iter().map(|item| value_depth(item, limit - 1)).max().unwrap_or(0),
        _ => 0,
    }
}

/// The field names of an intent.
const FIELDS: &[&str] = &["id", "agentId", "parsedAction", "riskLevel", "requiredCapabilities", "context", "timestamp"];

/// Maximum size of the keys that parsing adds, in bytes beyond the caller's context.
const MAX_PARSED_BYTES: usize = 16 * 1024;

/// Maximum number of capabilities of one intent.
const MAX_CAPABILITIES: usize = 64;

fn malformed(field: &'static str, error: &InvalidValue) -> Error {
    Error::intent(field, error.to_string())
}

fn text<'a>(value: &'a Value, field: &'static str) -> Result<&'a str, Error> {
    value.as_str().ok_or_else(|| Error::intent(field, "expected a string"))
}

fn word<T: std::str::FromStr<Err = InvalidValue>>(
    fields: &Map<String, Value>,
    field: &'static str,
) -> Result<T, Error> {
    let value = fields.get(field).ok_or_else(|| Error::intent(field, "is missing"))?;
    text(value, field)?.parse().map_err(|error| malformed(field, &error))
}

fn optional_word<T: std::str::FromStr<Err = InvalidValue>>(
    fields: &Map<String, Value>,
    field: &'static str,
) -> Result<Option<T>, Error> {
    match fields.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(_) => word(fields, field).map(Some),
    }
}

fn capabilities(fields: &Map<String, Value>) -> Result<Vec<Capability>, Error> {
    const FIELD: &str = "requiredCapabilities";
    let value = fields.get(FIELD).ok_or_else(|| Error::intent(FIELD, "is missing"))?;
    let items = value.as_array().ok_or_else(|| Error::intent(FIELD, "expected an array of strings"))?;
    let mut capabilities: Vec<Capability> = Vec::with_capacity(items.len().min(MAX_CAPABILITIES));
    for item in items {
        let capability = text(item, FIELD)?.parse().map_err(|error| malformed(FIELD, &error))?;
        if !capabilities.contains(&capability) {
            capabilities.push(capability);
        }
        if capabilities.len() > MAX_CAPABILITIES {
            break;
        }
    }
    Ok(capabilities)
}

fn context(fields: &Map<String, Value>) -> Result<Map<String, Value>, Error> {
    match fields.get("context") {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(context)) => Ok(context.clone()),
        Some(_) => Err(Error::intent("context", "expected an object")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Facts;
    use crate::facts::{Act, Kind};
    use serde_json::json;

    fn complete() -> Value {
        json!({
            "agentId": "support-1", "parsedAction": "send_email", "riskLevel": "MEDIUM", "requiredCapabilities": ["email:send"]
        })
    }

    #[test]
    fn it_is_written_as_it_serialises() {
        let bare = Intent::from_json(&complete()).unwrap();
        let full = Intent {
            id: Some(IntentId::new(Timestamp::from_millis(5), 7)),
            timestamp: Some(Timestamp::from_millis(1_800_000_000_123)),
            ..bare.clone().with_context("a \"key\"", json!({"n": 9_007_199_254_740_993_u64})).with_context("b", "c\n")
        };
        let mut parsed = full.clone().with_context("z", 1);
        let act = Act { tool: Some("Ba\"sh".to_owned()), ..Act::new() };
        parsed.known = Some(Facts { acts: vec![act], ..Facts::default() }.into());
        let context = serde_json::to_value(&parsed).unwrap()["context"].clone();
        assert_eq!(context["facts"], json!({ "acts": [{ "tool": "Ba\"sh" }], "form": 2 }));
        assert_eq!(parsed.members().to_json(), context);
        assert_eq!(Intent::from_json(&serde_json::to_value(&parsed).unwrap()).unwrap(), parsed);
        for intent in [bare, full, parsed] {
            let mut written = Vec::new();
            intent.write_stamped(intent.stamp(), &mut written).unwrap();
            let written = String::from_utf8(written).unwrap();
            assert_eq!(written, serde_json::to_string(&intent).unwrap());
            assert_eq!(serde_json::from_str::<Intent>(&written).unwrap(), intent);
        }
    }

    #[test]
    fn facts_that_cannot_be_read_make_the_request_unread() {
        let facts = |facts: Value| {
            let mut json = complete();
            json["context"] = json!({ "facts": facts });
            Intent::from_json(&json).unwrap().known
        };
        let is_complete = |json: Value| facts(json).unwrap().acts.iter().all(|act| act.is_complete(Kind::Path));
        assert!(!is_complete(json!({ "targets": [{ "kind": "planet" }] })));
        assert!(!is_complete(json!({ "later": 1 })) && !is_complete(json!({ "form": 3, "acts": [] })));
        assert!(is_complete(json!({})) && is_complete(json!({ "form": 2, "acts": [{}] })));
        assert_eq!(facts(json!("none")), None);
    }

    #[test]
    fn facts_of_the_first_form_are_one_act_and_stay_as_written() {
        let former = json!({
            "formats": ["tool_call"], "tool": "fetch", "unread": [{ "kind": "amount", "found": "x" }],
            "targets": [
                { "kind": "host", "role": "named", "value": "https://a.example/x" },
                { "kind": "path", "role": "write", "value": "/srv/a", "original": "/srv/./a" },
            ],
        });
        let mut json = complete();
        json["context"] = json!({ "facts": former });
        let intent = Intent::from_json(&json).unwrap();
        let [act] = intent.known.as_ref().unwrap().acts.as_slice() else { panic!("one act") };
        let operands: Vec<(Kind, &str)> =
            act.operands.iter().map(|operand| (operand.kind, operand.value.as_str())).collect();
        let expected = [(Kind::Url, "https://a.example/x"), (Kind::Host, "a.example"), (Kind::Path, "/srv/a")];
        assert_eq!((operands.as_slice(), act.tool.as_deref()), (&expected[..], Some("fetch")));
        assert!(act.is_complete(Kind::Path) && !act.is_complete(Kind::Amount));
        assert_eq!(serde_json::to_value(&intent).unwrap()["context"]["facts"], former);
    }

    #[test]
    fn a_hand_built_intent_names_each_of_four_missing_fields() {
        assert!(Intent::from_json(&complete()).is_ok());
        for field in ["agentId", "parsedAction", "riskLevel", "requiredCapabilities"] {
            let mut value = complete();
            value.as_object_mut().unwrap().remove(field);
            let error = Intent::from_json(&value).unwrap_err();
            assert_eq!(error.code(), "INVALID_INTENT");
            assert_eq!(error.details(), Some(json!({ "field": field })));
        }
    }

    #[test]
    fn a_malformed_field_is_named() {
        for (field, bad) in [
            ("agentId", json!("")),
            ("agentId", json!(7)),
            ("parsedAction", json!("Send Email")),
            ("riskLevel", json!("low")),
            ("requiredCapabilities", json!("email:send")),
            ("requiredCapabilities", json!([])),
            ("requiredCapabilities", json!(["email"])),
            ("requiredCapabilities", json!([1])),
            ("context", json!([])),
            ("id", json!("int_1")),
            ("timestamp", json!("soon")),
        ] {
            let mut value = complete();
            value[field] = bad.clone();
            let error = Intent::from_json(&value).unwrap_err();
            assert_eq!(error.details(), Some(json!({ "field": field })), "{field} = {bad}");
        }
        assert_eq!(Intent::from_json(&json!("x")).unwrap_err().code(), "INVALID_INTENT");
    }

    #[test]
    fn a_context_past_its_limits_is_refused() {
        let nested = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({ "k": inner }));
        let context = |value: Value| match value {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        assert!(check_context(&context(nested(MAX_CONTEXT_DEPTH))).is_ok());
        let too_deep = check_context(&context(nested(MAX_CONTEXT_DEPTH + 1))).unwrap_err();
        assert_eq!(too_deep.code(), "INVALID_INPUT");
        let too_large = check_context(&context(json!({ "k": "x".repeat(MAX_CONTEXT_BYTES) }))).unwrap_err();
        assert_eq!(too_large.code(), "PAYLOAD_TOO_LARGE");
    }

    #[test]
    fn depth_is_told_from_the_text_alone() {
        for (text, depth) in [("1", 0), ("{}", 1), (r#"{"a":[{"b":"}]]"}]}"#, 3), (r#"["\"[["]"#, 1)] {
            assert_eq!(json_depth(text), depth, "{text}");
        }
        assert_eq!(json_depth(&"[".repeat(100_000)), 100_000);
    }

    fn any_json() -> impl proptest::strategy::Strategy<Value = Value> {
        use proptest::prelude::*;
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[\\x00-\\x7fäß]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[\\x00-\\x7f]{0,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest::proptest! {
        #[test]
        fn a_context_is_never_larger_than_it_is_taken_for_at_most(value in any_json()) {
            proptest::prop_assert!(json_size(&value).unwrap() <= most_json_size(&value));
        }
    }
}
