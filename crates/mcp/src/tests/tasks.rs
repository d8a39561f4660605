//! Calls that continue as tasks.

use super::fixture::*;
use rmcp::model::*;
use serde_json::json;
use std::sync::Arc;

const TOOLS: &[(&str, &str)] =
    &[("read_long", "Reads a page."), ("read_long_failing", "Reads a page."), ("delete_page", "Deletes a page.")];

/// Calls a tool that creates a task.
async fn started(client: &Client, tool: &str) -> String {
    let answer = client.call_tool_once(call(tool)).await.unwrap();
    let CallToolResponse::Task(created) = answer else { panic!("{answer:?}") };
    created.task.task_id
}

#[tokio::test(flavor = "multi_thread")]
async fn the_outcome_of_a_call_is_reported_when_its_task_ends() {
    let (office, server) = (Office::in_memory(), Server::with(TOOLS));
    let client = connect(&office, governed(), &server, User::without_forms(), Revision::Stateless).await;
    let task = started(&client, "read_long").await;
    let state = client.get_task(GetTaskParams::new(&task)).await.unwrap();
    assert_eq!((state.task.status(), office.count("outcome/report")), (TaskStatus::Working, 0));
    client.update_task(UpdateTaskParams::new(&task, InputResponses::default())).await.unwrap();
    server.end.notify_one();
    // The gateway asks for the task itself.
    until(|| office.outcomes()[0] == json!("SUCCESS")).await;
    let state = client.get_task(GetTaskParams::new(&task)).await.unwrap();
    let TaskPayload::Completed { result } = state.task.payload else { panic!("{state:?}") };
    assert_eq!(result["content"][0]["text"], "done");

    started(&client, "read_long_failing").await;
    until(|| office.outcomes()[0] == json!("FAILURE")).await;

    let task = started(&client, "read_long").await;
    client.cancel_task(CancelTaskParams::new(&task)).await.unwrap();
    until(|| office.count("outcome/report") == 3).await;
    assert_eq!(office.outcomes()[0], json!(null), "nobody knows how far it came");
    refusal(&client.call_tool(call("delete_page")).await.unwrap());
    assert_eq!(server.calls().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_open_to_the_client_that_created_it_alone() {
    let (office, server) = (Office::in_memory(), Server::with(TOOLS));
    let gateway = shared(&office, governed(), &server);
    let client = join(Arc::clone(&gateway), User::without_forms(), Revision::Stateless).await;
    let other = join(gateway, User::named("other-client"), Revision::Stateless).await;
    let task = started(&client, "read_long").await;
    for id in [task.as_str(), "no-task"] {
        for refused in [
            other.get_task(GetTaskParams::new(id)).await.map(drop),
            other.update_task(UpdateTaskParams::new(id, InputResponses::default())).await,
            other.cancel_task(CancelTaskParams::new(id)).await,
        ] {
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains(&format!("this client has no task {id:?}")), "{refused}");
        }
    }
    let seen = server.seen.lock().unwrap().clone();
    assert!(!seen.iter().any(|method| method == "tasks/update" || method == "tasks/cancel"), "{seen:?}");
    assert!(client.get_task(GetTaskParams::new(&task)).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_cancelled_when_the_time_of_its_decision_is_over() {
    let (office, server) = (Office::in_memory(), Server::with(TOOLS));
    office.hurry(2000);
    let client = connect(&office, governed(), &server, User::without_forms(), Revision::Stateless).await;
    started(&client, "read_long").await;
    until(|| server.seen.lock().unwrap().contains(&"tasks/cancel".to_owned())).await;
    until(|| office.count("outcome/report") == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_server_is_gone_has_an_unknown_outcome() {
    let (office, server) = (Office::in_memory(), Server::with(&[TOOLS[0], ("read_gone", "Reads a page.")]));
    let client = connect(&office, governed(), &server, User::without_forms(), Revision::Stateless).await;
    started(&client, "read_long").await;
    refusal(&client.call_tool(call("read_gone")).await.unwrap());
    until(|| office.count("outcome/report") == 2).await;
    assert_eq!(office.outcomes(), [json!(null), json!(null)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_result_of_a_task_is_withheld_if_it_is_not_recorded() {
    let (office, server) = (Office::in_memory(), Server::with(TOOLS));
    let task = office.governor.tasks().open(rulekeep::task::TaskRequest::new("a", "Read the page 7")).unwrap();
    let governed = governed().task(task.id().to_string());
    let client = connect(&office, governed, &server, User::without_forms(), Revision::Stateless).await;
    office.fail("task/observe");
    let task = started(&client, "read_long").await;
    server.end.notify_one();
    until(|| office.count("task/observe") == 1).await;
    for _ in 0..2 {
        let refused = client.get_task(GetTaskParams::new(&task)).await.unwrap_err().to_string();
        assert!(refused.contains("withheld"), "{refused}");
    }
    assert_eq!(office.outcomes()[0], json!("SUCCESS"));
}
