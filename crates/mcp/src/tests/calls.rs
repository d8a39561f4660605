//! Decisions, outcomes and observed results.

use super::fixture::*;
use rmcp::model::*;
use rmcp::service::PeerRequestOptions;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

const TOOLS: &[(&str, &str)] = &[
    ("read_page", "Reads a page."),
    ("delete_page", "Deletes a page."),
    ("read_broken", "Reads a page."),
    ("read_refused", "Reads a page."),
    ("read_slowly", "Reads a page."),
    ("read_asking", "Reads a page."),
    ("read_gone", "Reads a page."),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_granted_call_is_forwarded_and_a_denied_one_a_tool_error() {
    for revision in BOTH {
        let (office, server) = (Office::in_memory(), Server::with(TOOLS));
        let client = connect(&office, governed(), &server, User::without_forms(), revision).await;
        is_done(&client.call_tool(call("read_page")).await.unwrap());
        let denied = client.call_tool(call("delete_page")).await.unwrap();
        let said = refusal(&denied);
        assert_eq!((&said["decision"], &said["denialClass"]), (&json!("DENY"), &json!("policy")), "{said}");
        assert!(said["reasoning"].as_str().unwrap().contains("no-deletions"), "{said}");
        assert!(said["proofId"].as_str().unwrap().starts_with("prf_"), "{said}");
        assert!(denied.content[0].as_text().unwrap().text.contains("no-deletions"));
        assert_eq!(server.calls(), ["read_page"]);
        assert_eq!(server.called.lock().unwrap()[0].arguments, call("read_page").arguments);
    }
}

/// The cases are those of the library, of the server and of hooks.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_rule_binds_calls_through_the_gateway() {
    let file: Value = serde_json::from_str(include_str!("../../../../tests/data/newcomer.json")).unwrap();
    let mut seen = 0;
    for case in file["cases"].as_array().unwrap() {
        let Some(name) = case["input"]["tool"].as_str().filter(|_| case.get("context").is_none()) else { continue };
        let tier = case["tier"].as_str().unwrap_or("T4").parse().unwrap();
        let (of, name) = match name.strip_prefix("mcp__").and_then(|name| name.split_once("__")) {
            Some(split) => split,
            None => (case["input"]["server"].as_str().unwrap_or("tools"), name),
        };
        let office = Office::with(file["policies"].as_str().unwrap(), tier);
        let server = Server::with(&[(name, "Does what its name says.")]);
        let arguments = case["input"]["arguments"].as_object().unwrap().clone();
        let properties = arguments.keys().map(|key| (key.clone(), json!({}))).collect::<serde_json::Map<_, _>>();
        let schema = json!({ "type": "object", "properties": properties }).as_object().unwrap().clone();
        server.tools.lock().unwrap()[0].input_schema = schema.into();
        let governed = crate::Governed::new(of).agent("a").wait(std::time::Duration::ZERO);
        let client = connect(&office, governed, &server, User::without_forms(), Revision::Stateless).await;
        let call = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        let result = client.call_tool(call).await.unwrap();
        match case["decision"].as_str().unwrap() {
            "ALLOW" => is_done(&result),
            decision => assert_eq!(refusal(&result)["decision"], decision, "{case}"),
        }
        seen += 1;
    }
    assert!(seen >= 15, "{seen} cases are calls");
}

#[tokio::test(flavor = "multi_thread")]
async fn outcomes_follow_what_the_server_answers() {
    for revision in BOTH {
        let (office, server) = (Office::in_memory(), Server::with(TOOLS));
        let client = connect(&office, governed(), &server, User::without_forms(), revision).await;
        client.call_tool(call("read_page")).await.unwrap();
        assert_eq!(client.call_tool(call("read_broken")).await.unwrap().is_error, Some(true));
        let error = client.call_tool(call("read_refused")).await.unwrap_err().to_string();
        assert!(error.contains("the id is malformed"), "{error}");
        assert_eq!(office.outcomes(), [json!("FAILURE"), json!("FAILURE"), json!("SUCCESS")]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_governance_call_refuses_the_tool_call() {
    for (method, reached) in [("enforce", 0), ("catalogue/load", 0), ("catalogue/pin", 0), ("task/observe", 1)] {
        let (office, server) = (Office::in_memory(), Server::with(TOOLS));
        let task = office.governor.tasks().open(rulekeep::task::TaskRequest::new("a", "Read the page 7")).unwrap();
        let governed = governed().task(task.id().to_string());
        let client = connect(&office, governed, &server, User::without_forms(), Revision::Stateless).await;
        office.fail(method);
        let result = client.call_tool(call("read_page")).await.unwrap();
        assert_eq!(refusal(&result)["denialClass"], "error", "{method}");
        assert_eq!(server.calls().len(), reached, "{method}");
        assert!(!format!("{result:?}").contains("done"), "{method}: the result is withheld");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn results_are_observed_under_the_task() {
    let (office, server) = (Office::in_memory(), Server::with(TOOLS));
    let task = office.governor.tasks().open(rulekeep::task::TaskRequest::new("a", "Read the page 7")).unwrap();
    let governed = governed().task(task.id().to_string());
    let client = connect(&office, governed, &server, User::without_forms(), Revision::Stateless).await;
    is_done(&client.call_tool(call("read_page")).await.unwrap());
    assert_eq!(office.governor.tasks().get(task.id()).unwrap().info().unwrap().results, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_cancelled_by_the_client_has_an_unknown_outcome() {
    for revision in BOTH {
        let (office, server, user) = (Office::in_memory(), Server::with(TOOLS), User::without_forms());
        let client = connect(&office, governed(), &server, user.clone(), revision).await;
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(call("read_slowly")));
        let handle = client.send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap();
        until(|| !user.progress.lock().unwrap().is_empty()).await;
        assert_eq!(*user.progress.lock().unwrap(), [0.5], "progress comes under the client's token");
        handle.cancel(None).await.unwrap();
        until(|| office.count("outcome/report") == 1).await;
        until(|| server.seen.lock().unwrap().contains(&"cancelled".to_owned())).await;
        assert_eq!(office.outcomes(), [Value::Null], "UNKNOWN leaves the outcome open");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_servers_question_passes_sealed_under_one_decision() {
    let (office, server) = (Office::in_memory(), Server::with(TOOLS));
    let user = User::answering(&[ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "sure": true }))]);
    let client = connect(&office, governed(), &server, user, Revision::Stateless).await;
    let CallToolResponse::InputRequired(asked) = client.call_tool_once(call("read_asking")).await.unwrap() else {
        panic!("the server asks");
    };
    let state = asked.request_state.unwrap();
    assert!(!state.contains("state of the server"));
    assert_eq!(office.count("outcome/report"), 0, "it has no outcome yet");
    let responses: InputResponses = [("page".to_owned(), json!({ "action": "accept" }))].into();
    let retry = |tool: &str| call(tool).with_input_responses(responses.clone()).with_request_state(state.clone());
    assert!(client.call_tool_once(retry("read_page")).await.is_err(), "the state of another call");
    is_done(&client.call_tool(retry("read_asking")).await.unwrap());
    assert!(client.call_tool(retry("read_asking")).await.is_err(), "the same state again");
    let last = server.called.lock().unwrap().last().unwrap().clone();
    assert_eq!((last.request_state.as_deref(), last.input_responses), (Some("state of the server"), Some(responses)));
    assert_eq!((office.count("enforce"), office.outcomes()), (1, vec![json!("SUCCESS")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_tool_is_a_protocol_error_and_lists_tools_again() {
    let (office, server) = (Office::in_memory(), Server::with(&TOOLS[..1]));
    let client = connect(&office, governed(), &server, User::without_forms(), Revision::Stateless).await;
    let error = client.call_tool(call("read_news")).await.unwrap_err().to_string();
    assert!(error.contains("-32602"), "{error}");
    server.offer(&[("read_page", "Reads a page."), ("read_news", "Reads the news.")]);
    is_done(&client.call_tool(call("read_news")).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_server_leaves_is_unknown_and_the_next_connects() {
    for revision in BOTH {
        let (office, server) = (Office::in_memory(), Server::with(TOOLS));
        let client = connect(&office, governed(), &server, User::without_forms(), revision).await;
        let lost = client.call_tool(call("read_gone")).await.unwrap();
        assert!(refusal(&lost)["reasoning"].as_str().unwrap().contains("unknown"), "{lost:?}");
        assert_eq!((office.count("outcome/report"), office.outcomes()), (1, vec![Value::Null]));
        is_done(&client.call_tool(call("read_page")).await.unwrap());
        assert_eq!(server.connections.load(Ordering::SeqCst), 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_beyond_its_decisions_time_is_cancelled() {
    let (office, server) = (Office::in_memory(), Server::with(TOOLS));
    office.hurry(50);
    let client = connect(&office, governed(), &server, User::without_forms(), Revision::Stateless).await;
    let late = client.call_tool(call("read_slowly")).await.unwrap();
    assert!(refusal(&late)["reasoning"].as_str().unwrap().contains("time"), "{late:?}");
    until(|| server.seen.lock().unwrap().contains(&"cancelled".to_owned())).await;
    assert_eq!(office.outcomes(), [Value::Null]);
}
