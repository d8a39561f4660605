//! Requests other than tool calls.

use super::fixture::*;
use rmcp::model::*;
use rmcp::service::ServiceError;
use serde_json::json;
use std::sync::atomic::Ordering;

const TOOLS: &[(&str, &str)] = &[("read_page", "Reads a page.")];

#[tokio::test(flavor = "multi_thread")]
async fn the_server_is_seen_as_it_is_with_tasks_without_sessions() {
    for revision in BOTH {
        let (office, server) = (Office::in_memory(), Server::with(TOOLS));
        let client = connect(&office, governed(), &server, User::without_forms(), revision).await;
        let info = client.peer_info().unwrap();
        assert_eq!(info.server_info.as_ref().unwrap().name, "wiki-server", "{revision:?}");
        assert_eq!(info.instructions.as_deref(), Some("Ask for pages."));
        assert!(info.capabilities.resources.is_some());
        assert_eq!(info.capabilities.supports_tasks(), revision == Revision::Stateless);
        assert_eq!(server.connections.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_and_prompts_pass_with_unknown_parameters_too() {
    for revision in BOTH {
        let (office, server) = (Office::in_memory(), Server::with(TOOLS));
        let client = connect(&office, governed(), &server, User::without_forms(), revision).await;
        let read = client.read_resource(ReadResourceRequestParams::new("wiki://7")).await.unwrap();
        assert_eq!(read.contents, [ResourceContents::text("a page", "wiki://7")]);
        assert_eq!(client.list_all_prompts().await.unwrap()[0].name, "greet");
        let request = CustomRequest::new("prompts/get", Some(json!({ "name": 7 })));
        let answer = client.send_request(ClientRequest::CustomRequest(request)).await.unwrap();
        let ServerResult::CustomResult(answer) = answer else { panic!("{answer:?}") };
        assert_eq!((&answer.0["asked"], &answer.0["params"]["name"]), (&json!("prompts/get"), &json!(7)));
        assert_eq!(office.count("enforce"), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_call_in_disguise_does_not_pass() {
    for revision in BOTH {
        let (office, server) = (Office::in_memory(), Server::with(TOOLS));
        let client = connect(&office, governed(), &server, User::without_forms(), revision).await;
        for (method, params) in [
            ("tools/call", json!({ "name": 7, "arguments": {} })),
            ("tools/call", json!({ "name": "read_page", "arguments": "x" })),
            ("tools/run", json!({ "name": "read_page" })),
            ("Tools/Call", json!({ "name": "read_page", "arguments": {} })),
            ("/tools/call", json!({ "name": "read_page", "arguments": {} })),
            ("tools/call ", json!({ "name": "read_page", "arguments": {} })),
            ("tools\u{200b}/call", json!({ "name": "read_page", "arguments": {} })),
            ("tools.call", json!({ "name": "read_page", "arguments": {} })),
            ("wiki/search", json!({ "for": "x" })),
            ("tasks/list", json!({})),
            ("tasks/get", json!({ "taskId": "t" })),
            ("tasks/update", json!({ "taskId": "t", "inputResponses": {} })),
            ("tasks/result", json!({ "taskId": "t" })),
        ] {
            let request = CustomRequest::new(method, Some(params));
            let answer = client.send_request(ClientRequest::CustomRequest(request)).await;
            assert!(matches!(answer, Err(ServiceError::McpError(_))), "{revision:?} {method}: {answer:?}");
        }
        for method in ["tools/call", "wiki/changed", "notifications/TOOLS"] {
            let notification = CustomNotification::new(method, Some(json!({ "name": "read_page" })));
            client.send_notification(ClientNotification::CustomNotification(notification)).await.unwrap();
        }
        // The answer to a later request shows that the notification was handled.
        tools(&client).await;
        assert!(server.calls().is_empty() && server.seen.lock().unwrap().is_empty(), "{revision:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_tools_reaches_the_client_and_is_classified_again() {
    for revision in BOTH {
        let (office, server) = (Office::in_memory(), Server::with(&[TOOLS[0], ("read_changing", "Reads the news.")]));
        let user = User::without_forms();
        let client = connect(&office, governed(), &server, user.clone(), revision).await;
        is_done(&client.call_tool(call("read_page")).await.unwrap());
        server.offer(&[("read_page", "Reads a page and keeps a copy."), ("read_changing", "Reads the news.")]);
        if revision == Revision::Session {
            is_done(&client.call_tool(call("read_changing")).await.unwrap());
            until(|| user.changes.load(Ordering::SeqCst) == 1).await;
        } else {
            let mut filter = SubscriptionFilter::default();
            filter.tools_list_changed = Some(true);
            let mut changes = client.listen(filter).await.unwrap();
            let change = changes.next().await.unwrap().unwrap();
            assert!(matches!(change, ServerNotification::ToolListChangedNotification(_)), "{change:?}");
            changes.cancel().await.unwrap();
            until(|| server.seen.lock().unwrap().contains(&"unsubscribed".to_owned())).await;
        }
        assert_eq!(refusal(&client.call_tool(call("read_page")).await.unwrap())["denialClass"], "quarantine");
    }
}
