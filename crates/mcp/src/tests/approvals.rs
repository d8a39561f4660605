//! Escalated calls: questions to the user, tickets, and approvals.

use super::fixture::*;
use rmcp::model::*;
use rmcp::service::PeerRequestOptions;
use rulekeep::escalation::Review;
use serde_json::json;
use std::sync::Arc;

const TOOLS: &[(&str, &str)] = &[("send_email", "Sends an email."), ("read_page", "Reads a page.")];

pub(super) fn approve(office: &Office) {
    let waiting = office.governor.escalations().pending().unwrap();
    assert_eq!(waiting.len(), 1, "one call is one question");
    office.governor.escalations().approve(waiting[0].id, Review::by("ann")).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_users_yes_is_the_approval_of_the_reviewer_in_the_options() {
    for revision in BOTH {
        let (office, server, user) = (Office::in_memory(), Server::with(TOOLS), User::answering(&[yes()]));
        let client = connect(&office, governed().user_reviewer("ann"), &server, user.clone(), revision).await;
        is_done(&client.call_tool(call("send_email")).await.unwrap());
        let asked = user.asked.lock().unwrap().clone();
        assert_eq!(asked.len(), 1);
        assert!(asked[0].contains("\"send_email\"") && asked[0].contains("\"ops\""), "{}", asked[0]);
        assert_eq!(office.outcomes()[0], "SUCCESS", "of the claimed approval");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_users_yes_alone_or_for_no_reviewer_approves_nothing() {
    for revision in BOTH {
        for options in [governed(), governed().user_reviewer("mallory")] {
            let (office, server, user) = (Office::in_memory(), Server::with(TOOLS), User::answering(&[yes()]));
            let client = connect(&office, options.clone(), &server, user, revision).await;
            // A client without sessions asks again until it gives up; one with a session gets a ticket.
            match client.call_tool(call("send_email")).await {
                Ok(result) => assert_eq!(refusal(&result)["decision"], "ESCALATE"),
                Err(error) => assert!(error.to_string().contains("rounds"), "{error}"),
            }
            assert!(server.calls().is_empty());
            assert_eq!(office.governor.escalations().pending().unwrap().len(), 1);
            assert_eq!(office.count("escalation/approve") > 0, options.user_reviewer.is_some());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_no_refuses_the_call() {
    for revision in BOTH {
        for no in [ElicitationAction::Decline, ElicitationAction::Cancel] {
            let (office, server) = (Office::in_memory(), Server::with(TOOLS));
            let user = User::answering(&[ElicitResult::new(no.clone())]);
            let client = connect(&office, governed().user_reviewer("ann"), &server, user, revision).await;
            let result = client.call_tool(call("send_email")).await.unwrap();
            assert_eq!(refusal(&result)["denialClass"], "declined", "{revision:?} {no:?}");
            assert!(server.calls().is_empty());
            assert_eq!(office.count("escalation/approve"), 0);
            assert!(office.governor.escalations().pending().unwrap().is_empty(), "nobody needs to answer it");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_forms_gets_a_ticket_that_works_once() {
    for revision in BOTH {
        let (office, server) = (Office::in_memory(), Server::with(TOOLS));
        let client = connect(&office, governed(), &server, User::without_forms(), revision).await;
        let first = client.call_tool(call("send_email")).await.unwrap();
        let said = refusal(&first);
        assert_eq!((&said["decision"], &said["retryable"]), (&json!("ESCALATE"), &json!(true)));
        let id = said["escalationId"].as_str().unwrap();
        let text = &first.content[0].as_text().unwrap().text;
        assert!(text.contains("mail-needs-ops"), "{text}");
        assert!(text.contains(&format!("`rulekeep escalations approve {id}`")), "{text}");
        refusal(&client.call_tool(call("send_email")).await.unwrap());
        approve(&office);
        is_done(&client.call_tool(call("send_email")).await.unwrap());
        refusal(&client.call_tool(call("send_email")).await.unwrap());
        assert_eq!(server.calls().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_for_these_arguments_alone() {
    let (office, server) = (Office::in_memory(), Server::with(TOOLS));
    let client = connect(&office, governed(), &server, User::without_forms(), Revision::Stateless).await;
    refusal(&client.call_tool(call("send_email")).await.unwrap());
    approve(&office);
    let other = json!({ "id": "8" }).as_object().unwrap().clone();
    refusal(&client.call_tool(CallToolRequestParams::new("send_email").with_arguments(other)).await.unwrap());
    assert!(server.calls().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_for_the_session_that_asked() {
    let (office, server) = (Office::in_memory(), Server::with(TOOLS));
    let gateway = shared(&office, governed(), &server);
    let asking = join(Arc::clone(&gateway), User::without_forms(), Revision::Session).await;
    let other = join(Arc::clone(&gateway), User::without_forms(), Revision::Session).await;
    let stateless = join(gateway, User::without_forms(), Revision::Stateless).await;
    refusal(&asking.call_tool(call("send_email")).await.unwrap());
    approve(&office);
    for client in [other, stateless] {
        assert_eq!(refusal(&client.call_tool(call("send_email")).await.unwrap())["decision"], "ESCALATE");
    }
    assert!(server.calls().is_empty());
    is_done(&asking.call_tool(call("send_email")).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_question_of_a_canceled_call_ends() {
    for revision in BOTH {
        let (office, server) = (Office::in_memory(), Server::with(TOOLS));
        let patient = governed().wait(std::time::Duration::from_secs(60));
        let client = connect(&office, patient, &server, User::without_forms(), revision).await;
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(call("send_email")));
        let handle = client.send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap();
        until(|| !office.governor.escalations().pending().unwrap().is_empty()).await;
        handle.cancel(None).await.unwrap();
        until(|| office.governor.escalations().pending().unwrap().is_empty()).await;
        assert!(server.calls().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_escalation_refuses_the_call() {
    let (office, server) = (Office::in_memory(), Server::with(TOOLS));
    let client = connect(&office, governed(), &server, User::without_forms(), Revision::Stateless).await;
    refusal(&client.call_tool(call("send_email")).await.unwrap());
    let waiting = office.governor.escalations().pending().unwrap();
    office.governor.escalations().reject(waiting[0].id, Review::by("ann")).unwrap();
    let said = client.call_tool(call("send_email")).await.unwrap();
    assert!(refusal(&said)["reasoning"].as_str().unwrap().contains("rejected"), "{said:?}");
    assert!(server.calls().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_is_good_for_one_retry_of_its_own_call() {
    let (office, server) = (Office::in_memory(), Server::with(TOOLS));
    let user = User::answering(&[yes()]);
    let client = connect(&office, governed(), &server, user, Revision::Stateless).await;
    let CallToolResponse::InputRequired(asked) = client.call_tool_once(call("send_email")).await.unwrap() else {
        panic!("it is asked");
    };
    let state = asked.request_state.unwrap();
    let responses: InputResponses = [("approval".to_owned(), json!({ "action": "accept" }))].into();
    approve(&office);
    let retry = |params: CallToolRequestParams, state: &str| {
        params.with_input_responses(responses.clone()).with_request_state(state.to_owned())
    };
    for (params, state) in [
        (call("read_page"), state.as_str()),
        (CallToolRequestParams::new("send_email"), state.as_str()),
        (call("send_email"), "rulekeep1.AAAA"),
        (call("send_email"), "esc_1"),
    ] {
        let refused = client.call_tool(retry(params, state)).await.unwrap_err().to_string();
        assert!(refused.contains("-32602") && refused.contains("request state"), "{refused}");
    }
    assert!(server.calls().is_empty());
    is_done(&client.call_tool(retry(call("send_email"), &state)).await.unwrap());
    assert!(client.call_tool(retry(call("send_email"), &state)).await.is_err());
    assert_eq!(server.calls().len(), 1);
    let sent = server.called.lock().unwrap()[0].clone();
    assert_eq!((sent.input_responses, sent.request_state), (None, None), "the server sees nothing of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_retries_at_once_one_goes_on() {
    let (office, server) = (Office::in_memory(), Server::with(TOOLS));
    let client = Arc::new(connect(&office, governed(), &server, User::without_forms(), Revision::Stateless).await);
    refusal(&client.call_tool(call("send_email")).await.unwrap());
    approve(&office);
    let tries = (0..8).map(|_| {
        let client = Arc::clone(&client);
        tokio::spawn(async move { client.call_tool(call("send_email")).await.unwrap().is_error == Some(true) })
    });
    let mut refused = 0;
    for tried in tries.collect::<Vec<_>>() {
        refused += usize::from(tried.await.unwrap());
    }
    assert_eq!((refused, server.calls().len()), (7, 1));
}
