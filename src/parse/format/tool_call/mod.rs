//! Structured tool calls, recognised by shape: MCP, `OpenAI`, Anthropic, Gemini,
//! a bare name with arguments, and a call written as an expression.

use serde_json::{Map, Value};

use crate::model::{MAX_CONTEXT_DEPTH, Operation, Resource, RiskLevel, json_depth};
use crate::parse::language::{Kind, classify};
use crate::parse::lexicon::Lexicon;
use crate::parse::reading::{Act, Format, Reading};
use crate::parse::sign::Sign;

use super::{dangers, name, place, shell, sql};

/// Reads a JSON value: every call that it holds counts.
pub(super) fn read(value: &Value, lexicon: &Lexicon) -> Reading {
    let mut reader = Reader { lexicon, reading: Reading::new(Format::ToolCall), calls: 0 };
    reader.message(value);
    if reader.calls == 0 {
        // JSON without a call: data of unknown purpose.
        reader.reading.push(Act::unknown());
    }
    reader.reading
}

/// Reads `send_email(to="bob@example.com")`: one name, one pair of brackets.
pub(super) fn read_expression(text: &str, lexicon: &Lexicon) -> Option<Reading> {
    let (called, rest) = text.split_once('(')?;
    let inner = rest.trim_end().strip_suffix(')')?;
    let is_name = called.len() > 2
        && called.contains(['_', '.'])
        && called.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
    if !is_name {
        return None;
    }
    let mut reader = Reader { lexicon, reading: Reading::new(Format::ToolCall), calls: 0 };
    let mut arguments = Map::new();
    for (place, part) in inner.split(',').take(MOST_ARGUMENTS).enumerate() {
        let (key, value) = part
            .split_once('=')
            .map_or_else(|| (format!("argument{place}"), part), |(key, value)| (key.trim().to_owned(), value));
        arguments.insert(key, Value::String(value.trim().trim_matches(['\'', '"']).to_owned()));
    }
    reader.call(called, &Value::Object(arguments));
    Some(reader.reading)
}

struct Reader<'l> {
    lexicon: &'l Lexicon,
    reading: Reading,
    calls: usize,
}

impl Reader<'_> {
    /// Finds the calls of a message. INVARIANT: the value is at most `MAX_CONTEXT_DEPTH` deep.
    fn message(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.message(item)),
            Value::Object(fields) => self.object(fields),
            _ => {}
        }
    }

    fn object(&mut self, fields: &Map<String, Value>) {
        let none = Value::Null;
        let arguments = ["arguments", "input", "args", "parameters", "kwargs"]
            .iter()
            .find_map(|key| fields.get(*key))
            .unwrap_or(&none);
        if let Some(Value::String(method)) = fields.get("method") {
            match (method.as_str(), fields.get("params")) {
                ("tools/call", Some(params)) => return self.message(params),
                // Other methods of MCP look: "tools/list", "resources/read".
                (_, params) => return self.call(&method.replace('/', "_"), params.unwrap_or(&none)),
            }
        }
        let mut is_wrapped = false;
        for key in WRAPPERS {
            if let Some(Value::Object(inner)) = fields.get(*key) {
                self.object(inner);
                is_wrapped = true;
            }
        }
        if is_wrapped {
            // What stands beside the wrapped call may be a call as well.
            for (key, value) in fields {
                if !WRAPPERS.contains(&key.as_str()) {
                    self.message(value);
                }
            }
            if !fields.contains_key("name") {
                return;
            }
        }
        let named = ["name", "tool", "tool_name", "toolName", "action", "function"]
            .iter()
            .find_map(|key| fields.get(*key).and_then(Value::as_str));
        let is_call = !arguments.is_null()
            || matches!(fields.get("type").and_then(Value::as_str), Some("tool_use" | "function_call" | "function"))
            || fields.len() <= 2;
        if let Some(named) = named.filter(|_| is_call) {
            self.call(named, arguments);
            // Another call beside this one, in another shape, counts too.
            for (_, value) in
                fields.iter().filter(|(key, _)| matches!(key.as_str(), "tool_calls" | "content" | "calls"))
            {
                self.message(value);
            }
            return;
        }
        // A message around the calls: tool_calls, content, output, parts, candidates.
        for value in fields.values() {
            self.message(value);
        }
    }

    fn call(&mut self, called: &str, arguments: &Value) {
        self.calls += 1;
        let decoded;
        let arguments = match arguments {
            // OpenAI hands arguments over as JSON in a string.
            Value::String(text) if json_depth(text) <= MAX_CONTEXT_DEPTH => {
                decoded = serde_json::from_str(text).unwrap_or(Value::Null);
                &decoded
            }
            Value::String(_) => {
                self.reading.push(Act::unclear_execution("tool"));
                return;
            }
            other => other,
        };
        let words = name::words(called);
        let mut act = name::act(&words, None, self.lexicon).unwrap_or_else(Act::unknown);
        for other in name::riskier(&words, &act, self.lexicon) {
            self.reading.push(other);
        }
        self.argument(&mut act, "", arguments);
        if act.is_unknown() {
            act.signs.add(Sign::Unclear);
        }
        self.reading.push(act);
    }

    /// What an argument adds. INVARIANT: depth is bounded as in `message`.
    fn argument(&mut self, act: &mut Act, key: &str, value: &Value) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.argument(act, key, value);
                }
            }
            Value::Array(items) => {
                if is_recipient(key) && items.len() > MANY {
                    act.signs.add(Sign::ManyRecipients);
                }
                for item in items {
                    self.argument(act, key, item);
                }
            }
            Value::Number(number) => self.number(act, key, number.as_f64().unwrap_or(0.0)),
            Value::Bool(true) if matches!(key, "force" | "recursive" | "all" | "permanent" | "overwrite") => {
                act.signs.add(if key == "all" { Sign::Bulk } else { Sign::Force });
            }
            Value::Bool(true) if matches!(key, "dry_run" | "dryRun") => act.signs.add(Sign::DryRun),
            Value::String(text) => self.text(act, key, text),
            _ => {}
        }
    }

    fn number(&mut self, act: &mut Act, key: &str, value: f64) {
        let key = key.to_ascii_lowercase();
        if act.operation == Operation::Transfer || matches!(key.as_str(), "amount" | "price" | "total" | "sum") {
            if ["amount", "price", "total", "sum", "value"].iter().any(|word| key.contains(word)) {
                self.reading.facts.note_amount(value, None);
            }
        } else if ["limit", "count", "max", "rows", "records"].iter().any(|word| key.contains(word)) && value >= 1.0 {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "clamped to the range of counts"
            )]
            self.reading.facts.note_count(value.clamp(0.0, 1e15) as u64);
        }
    }

    fn text(&mut self, act: &mut Act, key: &str, text: &str) {
        let key = key.to_ascii_lowercase();
        if is_recipient(&key) {
            self.reading.facts.note_target(text);
            if matches!(act.resource, Resource::Calendar) && act.operation == Operation::Write {
                let guests = Act { operation: Operation::Send, ..act.clone() };
                self.reading.push(guests);
            }
            if matches!(text, "all" | "everyone" | "*" | "@everyone" | "@channel") {
                act.signs.add(Sign::ManyRecipients);
            }
        }
        if dangers::holds("doing_keys", &key) && !text.contains(' ') {
            self.verb(act, text);
        }
        match key.as_str() {
            "command" | "cmd" | "shell" | "bash" | "command_line" | "script" => {
                self.reading.absorb(shell::read(text, self.lexicon));
            }
            "sql" | "statement" => self.reading.absorb(sql::read_anyway(text)),
            "query" => {
                if let Some(reading) = sql::read(text) {
                    self.reading.absorb(reading);
                }
            }
            "code" | "python" | "javascript" | "source_code"
                if act.operation == Operation::Execute || act.is_unknown() =>
            {
                self.reading.push(super::code());
            }
            "currency" => {}
            "environment" | "env" | "stage"
                if matches!(text.to_ascii_lowercase().as_str(), "production" | "prod" | "live") =>
            {
                act.signs.add(Sign::Production);
            }
            "role" | "permission" | "access"
                if matches!(text.to_ascii_lowercase().as_str(), "admin" | "administrator" | "owner" | "root") =>
            {
                act.signs.add(Sign::Administrator);
            }
            "link_scope" | "visibility" | "sharing"
                if matches!(text.to_ascii_lowercase().as_str(), "anyone" | "public") =>
            {
                act.signs.add(Sign::OpenLink);
            }
            "amount" | "price" | "total" => {
                if let Some(Kind::Number(value)) = classify(text) {
                    self.reading.facts.note_amount(value, None);
                }
            }
            _ => self.place(act, &key, text),
        }
    }

    /// What an argument says that the tool does: a verb or a method of HTTP.
    fn verb(&mut self, act: &Act, text: &str) {
        let words = name::words(text);
        let mut other = match text.to_ascii_uppercase().as_str() {
            "GET" | "HEAD" | "OPTIONS" => return,
            "POST" => Act::new("post", "url", Resource::Web, Operation::Send, 0.7),
            "PUT" | "PATCH" => Act::new("put", "url", Resource::Web, Operation::Write, 0.7),
            _ => match name::verb_act(&words, act, self.lexicon) {
                Some(other) => other,
                None => return,
            },
        };
        if act.resource != Resource::Unknown {
            other.resource = act.resource;
            other.noun.clone_from(&act.noun);
        }
        // "manage_user" with "delete" acts on who may do what.
        if other.operation == Operation::Delete {
            other = other.at_risk(RiskLevel::High);
        }
        if other.operation != Operation::Read {
            self.reading.push(other);
        }
    }

    /// Paths, hosts and addresses by the shape of the value.
    fn place(&mut self, act: &mut Act, key: &str, text: &str) {
        if text.len() > 512 {
            return;
        }
        if place::is_secret(text) {
            act.signs.add(Sign::Secret);
            self.reading
                .push(Act::new("read", "secret", Resource::Credential, Operation::Read, 0.8).at_risk(RiskLevel::High));
        }
        if place::is_system(text) && !matches!(act.operation, Operation::Read | Operation::Send) && !key.contains("url")
        {
            let system = Act::new("write", "system_file", Resource::Config, Operation::Write, 0.8);
            self.reading.push(system.at_risk(RiskLevel::High));
        }
        let shape = if text.contains(' ') { None } else { classify(text) };
        let named = ["path", "file", "filename", "url", "uri", "host", "table", "channel", "bucket"]
            .iter()
            .any(|word| key.contains(word));
        if named || matches!(shape, Some(Kind::Email | Kind::Path | Kind::Url)) {
            self.reading.facts.note_target(text);
        }
        let is_outside = matches!(shape, Some(Kind::Email)) && act.operation == Operation::Send;
        if is_outside {
            act.signs.add(Sign::Outside);
        }
        if act.is_unknown() && shape == Some(Kind::Url) {
            // A tool whose name says nothing, with an address: it may send as well as fetch.
            *act = Act::new("request", "url", Resource::Web, Operation::Execute, 0.35).marked(Sign::Unclear);
        }
    }
}

fn is_recipient(key: &str) -> bool {
    matches!(
        key.to_ascii_lowercase().as_str(),
        "to" | "recipient"
            | "recipients"
            | "cc"
            | "bcc"
            | "participants"
            | "attendees"
            | "guests"
            | "invitees"
            | "email"
            | "user_email"
            | "phone_number"
            | "recipient_email"
            | "receiver"
    )
}

/// Keys under which a call is wrapped.
const WRAPPERS: &[&str] = &["function", "functionCall", "function_call", "toolUse", "tool_use"];
/// More recipients than this are very many.
const MANY: usize = 50;
/// Most arguments of an expression that are read.
const MOST_ARGUMENTS: usize = 256;
