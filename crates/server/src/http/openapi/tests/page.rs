//! The page `docs/reference/calls.md`: every call by its subject, with its fields as the document describes them.

use super::{TAGS, made, tag_of};
use crate::access::{AGENT_SOCKET_CALLS, NARROWED_CALLS};
use crate::calls::{CALLS, Shape, Size, Spec, events};
use crate::gateway::Scope;
use crate::generated::{check_page, table};
use crate::http::{BASE, authzen};
use serde_json::{Value, json};

#[test]
fn the_page_lists_every_call() {
    let document = made();
    let mut page = HEAD.to_owned();
    let specs: Vec<(&Spec, String)> = CALLS
        .iter()
        .map(|entry| (entry.spec, format!("{BASE}{}", entry.spec.path)))
        .chain(authzen::CALLS.iter().map(|entry| (entry.spec, entry.spec.path.to_owned())))
        .collect();
    for (spec, _) in &specs {
        assert!(TAGS.iter().any(|(tag, _)| *tag == tag_of(spec.method)), "{} is in no chapter", spec.method);
    }
    for (tag, title) in TAGS {
        let of_tag = || specs.iter().filter(|(spec, _)| tag_of(spec.method) == *tag);
        let calls = of_tag().map(|(spec, path)| {
            let http = format!("`{} {}`", spec.verb.name(), path.strip_prefix(BASE).unwrap_or(path));
            [method(spec), http, callers(spec), spec.summary.to_owned()]
        });
        let fields = of_tag().map(|(spec, path)| {
            let operation = &document["paths"][path][spec.verb.name().to_ascii_lowercase()];
            let answer = &operation["responses"]["200"]["content"]["application/json"]["schema"];
            let size = if spec.size == Size::Document { ", up to 8 MiB" } else { "" };
            [method(spec), parameters(&document, operation) + size, forms(&document, answer).join(" or ")]
        });
        page.extend(["\n## ", title, "\n\n", &table(CALL_HEAD, calls), "\n", &table(FIELD_HEAD, fields)]);
    }
    let of_session = events::CALLS.iter().map(|entry| (entry.spec, shape(entry.request), shape(entry.answer)));
    let (calls, fields): (Vec<_>, Vec<_>) = of_session
        .map(|(spec, request, answer)| {
            ([method(spec), spec.summary.to_owned()], [method(spec), joined(&request), joined(&answer)])
        })
        .unzip();
    page.extend([EVENTS, &table(["call", "does"], calls), "\n", &table(FIELD_HEAD, fields)]);
    check_page(
        "calls.md",
        "Calls",
        "The same calls answer over lines of JSON-RPC, on the daemon's sockets and over HTTP.",
        &page,
        "cargo test -p rulekeep-server --lib the_page_lists_every_call",
    );
}

/// The name over lines of JSON-RPC, where there is one.
fn method(spec: &Spec) -> String {
    if tag_of(spec.method) == "access" { "over HTTP only".to_owned() } else { format!("`{}`", spec.method) }
}

fn callers(spec: &Spec) -> String {
    let keys = if spec.scopes.is_empty() { &[Scope::Admin] } else { spec.scopes };
    let reads = (spec.only_reads() && tag_of(spec.method) != "access").then_some("reader");
    let socket = match spec.method {
        method if AGENT_SOCKET_CALLS.contains(&method) => Some("agent socket"),
        method if NARROWED_CALLS.contains(&method) => Some("agent socket (narrower)"),
        _ => None,
    };
    let keys = keys.iter().map(|scope| scope.as_str());
    keys.chain(reads).chain(socket).collect::<Vec<_>>().join(", ")
}

/// The parameters of an operation: those of its path and query, or of its path and body.
fn parameters(document: &Value, operation: &Value) -> String {
    let of_address = operation["parameters"].as_array().into_iter().flatten().filter_map(|parameter| {
        let name = parameter["name"].as_str()?;
        Some((name.to_owned(), parameter["required"] == true))
    });
    let of_address: Vec<(String, bool)> = of_address.collect();
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    let forms = if body.is_null() { vec![Vec::new()] } else { fields(document, body) };
    let all = forms.into_iter().map(|form| listed(of_address.iter().cloned().chain(form)));
    all.collect::<Vec<_>>().join(" or ")
}

fn forms(document: &Value, schema: &Value) -> Vec<String> {
    fields(document, schema).into_iter().map(listed).collect()
}

/// The fields of a schema, and whether each has to be there; several lists where it has several forms.
fn fields(document: &Value, schema: &Value) -> Vec<Vec<(String, bool)>> {
    if let Some(place) = schema["$ref"].as_str() {
        return fields(
            document,
            document.pointer(place.trim_start_matches('#')).expect("the reference leads somewhere"),
        );
    }
    let own = |required: &[&str], left_out: &[&str]| -> Vec<(String, bool)> {
        let properties = schema["properties"].as_object().into_iter().flatten();
        let names = properties.map(|(name, _)| name.as_str()).filter(|name| !left_out.contains(name));
        names.map(|name| (name.to_owned(), required.contains(&name))).collect()
    };
    let always = names(&schema["required"]);
    let choices = ["oneOf", "anyOf"].iter().find_map(|keyword| schema[*keyword].as_array());
    let all_of = schema["allOf"].as_array();
    let is_part = |part: &Value| part["oneOf"].is_null() && part["anyOf"].is_null();
    let parts = all_of.filter(|parts| parts.iter().all(is_part));
    match (choices, parts) {
        (_, Some(parts)) => {
            let all = parts.iter().flat_map(|part| fields(document, part).swap_remove(0));
            vec![all.chain(own(&always, &[])).collect()]
        }
        (Some(choices), _) if schema["properties"].is_null() => {
            choices.iter().flat_map(|choice| fields(document, choice)).collect()
        }
        (Some(choices), _) => {
            let beside = |place: usize| {
                let each = all_of.into_iter().flatten();
                each.flat_map(move |part| names(&part["oneOf"][place]["required"]))
            };
            let wanted: Vec<Vec<&str>> = choices
                .iter()
                .enumerate()
                .map(|(place, choice)| names(&choice["required"]).into_iter().chain(beside(place)).collect())
                .collect();
            let form = |of: &Vec<&str>| {
                let others: Vec<&str> = wanted.iter().flatten().copied().filter(|name| !of.contains(name)).collect();
                own(&[always.as_slice(), of].concat(), &others)
            };
            wanted.iter().map(form).collect()
        }
        (None, _) => vec![own(&always, &[])],
    }
}

fn names(required: &Value) -> Vec<&str> {
    required.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The required fields first, the others with a question mark.
fn listed(fields: impl IntoIterator<Item = (String, bool)>) -> String {
    let (required, optional): (Vec<_>, Vec<_>) = fields.into_iter().partition(|(_, is_required)| *is_required);
    let names = required.into_iter().map(|(name, _)| name).chain(optional.into_iter().map(|(name, _)| name + "?"));
    format!("`{{{}}}`", names.collect::<Vec<_>>().join(", "))
}

fn shape(shape: Shape) -> Value {
    json!((shape.schema)())
}

fn joined(schema: &Value) -> String {
    forms(&Value::Null, schema).join(" or ")
}

const CALL_HEAD: [&str; 4] = ["call", "HTTP", "who", "does"];
const FIELD_HEAD: [&str; 3] = ["call", "parameters", "answer"];

const HEAD: &str = r#"```json
{"jsonrpc":"2.0","id":1,"method":"proof/query","params":{"entityId":"a-1","pageSize":10}}
```

```sh
curl -sS -H "Authorization: Bearer $KEY" "$URL/proof/query?entityId=a-1&pageSize=10"
```

HTTP paths are under `/v1`, which is part of `$URL`; those of AuthZEN are at the root. Parameters stand in the path, for GET
and DELETE in the query, and otherwise in a JSON body. A question mark means that a field may be absent. Types, ranges and
defaults are in [openapi.json](../../crates/server/src/http/openapi/openapi.json), which the service serves at `/openapi.json`. The runtime at the sidecar's
pipe may make every call.

| who | may call |
|---|---|
| agent | an API key of the scope `agent`, for the agents that it names, or of the scope `admin` |
| reviewer | an API key of the scope `reviewer`, a token of the OpenID provider, or an API key of the scope `admin` |
| admin | an API key of the scope `admin` |
| reader | a connection on the daemon's `operator.sock`, even without a key |
| agent socket | a connection on the daemon's `agent.sock`, which takes no key |
| agent socket (narrower) | the same, in the form that [tool.md](tool.md) describes |
"#;

const EVENTS: &str = r"
## Events

These calls belong to a session of lines. Over HTTP use [webhooks](webhooks.md). On `operator.sock` a reader may make them.
There, `session/authenticate` with `{key}` raises a connection to what the key permits; for these calls the key has the scope `admin`.

";
