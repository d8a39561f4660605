//! Reviewers prove who they are: by keys of their own, tokens of a provider, and approval links.

use axum::Router;
use rulekeep::escalation::{EscalationId, EscalationState, Review, ReviewerIdentity};
use rulekeep::{Decision, Intent, PolicySet, RiskLevel};
use rulekeep_server::gateway::{Gateway, KeyDraft, Scope};
use rulekeep_server::http::{Server, console, router};
use rulekeep_server::tokens::Verifier;
use rulekeep_server::webhooks::{EndpointDraft, EndpointState, Format, Settings};
use serde_json::{Value, json};

use super::live::{Answer, Ask, Live, NOON, builder, wide};
use crate::common::Hand;
use crate::common::receiver::Receiver;

const POLICIES: &str = r#"
name = "payments"

[reviewers]
finance = ["ann", "bob"]

[[rule]]
id = "money"
effect = "escalate"
match.capabilities = ["payment:transfer"]
reviewer = "finance"
expires = "1h"

[[rule]]
id = "all"
effect = "escalate"
match.agents = ["b"]
reviewer = "finance"

[[rule]]
id = "rights"
effect = "escalate"
match.capabilities = ["permission:write"]
reviewer = "finance"
approvals = 2
"#;

const BASE: &str = "https://rulekeep.example/gate";

fn live(clock: &Hand) -> Live {
    live_at(clock, &format!("{BASE}/"))
}

fn live_at(clock: &Hand, base: &str) -> Live {
    let governor = builder(clock).policies(PolicySet::from_toml(POLICIES).unwrap()).open_in_memory().unwrap();
    for agent in ["a", "b"] {
        governor.agents().register(rulekeep::Agent::new(agent).at_tier(rulekeep::Tier::T4)).unwrap();
    }
    let settings = Settings { allow_private: true, public_url: Some(base.to_owned()), ..Settings::default() };
    let mount: fn(&Gateway) -> Router = |gateway| router(gateway).merge(console(gateway));
    Live::of_gateway(Gateway::with_webhooks(&governor, settings).unwrap(), Server::new(), mount)
}

fn ask(live: &Live, capability: &str) -> EscalationId {
    let intent =
        Intent::new("a", "change", RiskLevel::High, [capability]).unwrap().with_context("target", "<b>INV-7</b>");
    let verdict = live.governor.enforce(&intent).unwrap();
    assert_eq!(verdict.decision, Decision::Escalate);
    EscalationId::of(verdict.proof_id)
}

fn approve(live: &Live, key: &str, id: EscalationId, reviewer: &str) -> Answer {
    live.post(&format!("/v1/admin/escalations/{id}/approve"), key, &json!({ "reviewer": reviewer }))
}

fn identity(live: &Live, id: EscalationId) -> Option<ReviewerIdentity> {
    live.governor.escalations().get(id).unwrap().votes.last().unwrap().identity.clone()
}

#[test]
fn a_reviewers_key_answers_in_their_name_alone() {
    let live = live(&Hand::at(NOON));
    for wrong in [
        json!({ "scope": "reviewer", "plan": "pro" }),
        json!({ "scope": "agent", "plan": "pro", "reviewer": "ann" }),
        json!({ "scope": "reviewer", "plan": "pro", "reviewer": " " }),
        json!({ "scope": "reviewer", "plan": "pro", "reviewer": "ann", "agents": ["a"] }),
    ] {
        assert_eq!(live.post("/v1/admin/keys", &live.admin, &wrong).refusal().0, 400, "{wrong}");
    }
    let made =
        live.post("/v1/admin/keys", &live.admin, &json!({ "scope": "reviewer", "plan": "pro", "reviewer": "ann" }));
    let made = made.ok();
    let key = made["key"].as_str().unwrap();
    assert!(key.starts_with("rkp_reviewer_") && made["reviewer"] == "ann", "{made}");
    let id = ask(&live, "payment:transfer");
    assert_eq!(live.get("/v1/admin/escalations", key).ok()["total"], 1);
    assert_eq!(live.get(&format!("/v1/escalations/{id}"), key).ok()["state"], "pending");
    for (path, body) in [
        ("/v1/enforce", json!({ "agentId": "a", "input": "Read the notes" })),
        ("/v1/admin/grants", json!({ "id": "apv_x", "reviewer": "ann" })),
        ("/v1/proof/outcome", json!({ "proofId": id, "outcome": "SUCCESS" })),
    ] {
        assert_eq!(live.post(path, key, &body).refusal().0, 403, "{path}");
    }
    assert_eq!(live.get("/v1/admin/status", key).refusal().0, 403);
    assert_eq!(approve(&live, key, id, "bob").refusal(), (403, "FORBIDDEN".to_owned()));
    let proof_id = approve(&live, key, id, "ann").ok()["proofId"].clone();
    let by_key = json!({ "by": "key", "id": made["id"] });
    assert_eq!(json!(identity(&live, id)), by_key);
    let evidence = live.governor.log().evidence(&serde_json::from_value(proof_id).unwrap()).unwrap();
    assert_eq!(json!(evidence)["detail"]["resolution"]["votes"][0]["identity"], by_key);

    let id = ask(&live, "payment:transfer");
    assert_eq!(approve(&live, &live.admin, id, "ann").status, 200);
    assert!(matches!(identity(&live, id), Some(ReviewerIdentity::AdminKey { .. })));
    let id = ask(&live, "payment:transfer");
    live.governor.escalations().approve(id, Review::by("ann")).unwrap();
    assert_eq!(identity(&live, id), None);
}

#[test]
fn a_token_of_the_provider_answers_in_its_subjects_name() {
    let samples: Value = serde_json::from_str(include_str!("../../data/tokens.json")).unwrap();
    let text = |name: &str| samples[name].as_str().unwrap();
    let now = samples["now"].as_i64().unwrap() * 1000;
    let clock = Hand::at(now);
    let live = live(&clock);
    let (folder, good) = (tempfile::tempdir().unwrap(), samples["accepted"]["ES256"].as_str().unwrap());
    let id = ask(&live, "payment:transfer");
    assert_eq!(approve(&live, good, id, "ann").refusal(), (401, "UNAUTHORIZED".to_owned()));

    let keys = folder.path().join("keys.json");
    std::fs::write(&keys, samples["jwks"].to_string()).unwrap();
    let verifier = || Verifier::load(&keys, text("issuer"), text("audience")).unwrap();
    live.gateway.accept_tokens(verifier(), "sub").unwrap();
    assert_eq!(live.gateway.accept_tokens(verifier(), "sub").unwrap_err().code(), "CONFLICT");
    for refused in samples["refused"].as_object().unwrap().values().take(8) {
        let caller = Ask::new("GET", "/v1/admin/escalations").key(refused[1].as_str().unwrap());
        assert_eq!(live.ask(&caller).status, 401, "{refused}");
    }
    assert_eq!(approve(&live, good, id, "bob").refusal().0, 403);
    assert_eq!(live.get("/v1/admin/status", good).refusal().0, 403);
    assert_eq!(approve(&live, good, id, "ann").ok()["state"], "approved");
    let oidc = ReviewerIdentity::Oidc { issuer: text("issuer").to_owned(), subject: "ann".to_owned() };
    assert_eq!(identity(&live, id), Some(oidc));
    clock.set(now + 7_200_000);
    assert_eq!(live.get("/v1/admin/escalations", good).refusal().0, 401);
}

#[test]
fn a_token_without_the_claim_names_no_reviewer() {
    let samples: Value = serde_json::from_str(include_str!("../../data/tokens.json")).unwrap();
    let text = |name: &str| samples[name].as_str().unwrap();
    let live = live(&Hand::at(samples["now"].as_i64().unwrap() * 1000));
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys.json");
    std::fs::write(&keys, samples["jwks"].to_string()).unwrap();
    live.gateway.accept_tokens(Verifier::load(&keys, text("issuer"), text("audience")).unwrap(), "email").unwrap();
    let refused = live.get("/v1/admin/escalations", samples["accepted"]["ES256"].as_str().unwrap());
    assert_eq!(refused.refusal().0, 401);
    assert!(String::from_utf8_lossy(&refused.body).contains("no text as its claim email"), "{refused:?}");
}

/// The path of the link in the next delivery.
fn link(receiver: &Receiver) -> String {
    let event = receiver.next().event();
    let link = event["data"]["approvalUrl"].as_str().unwrap_or_else(|| panic!("{event}"));
    link.strip_prefix(BASE).unwrap().to_owned()
}

fn answer(live: &Live, link: &str, body: &str) -> Answer {
    live.ask(&Ask::new("POST", link).raw("application/x-www-form-urlencoded", body))
}

fn state(live: &Live, id: EscalationId) -> EscalationState {
    live.governor.escalations().get(id).unwrap().state
}

#[test]
fn an_approval_link_serves_one_reviewer_once() {
    let clock = Hand::at(NOON);
    let (live, receiver) = (live(&clock), Receiver::taking());
    let draft = || EndpointDraft::to(&receiver.url).of_type(rulekeep::event::EventType::Decision).reviewer("ann");
    let endpoint = live.gateway.webhooks().add(&draft()).unwrap();
    let id = ask(&live, "payment:transfer");
    let first = link(&receiver);

    let shown = live.ask(&Ask::new("GET", &first));
    let page = String::from_utf8(shown.body.clone()).unwrap();
    assert_eq!((shown.status, shown.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(shown.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    assert_eq!(
        (shown.header("referrer-policy"), shown.header("cache-control")),
        (Some("no-referrer"), Some("no-store"))
    );
    assert!(page.contains("&lt;b&gt;INV-7") && !page.contains("<b>INV-7"), "{page}");
    assert_eq!(state(&live, id), EscalationState::Pending);

    for wrong in [first.replace(&id.to_string(), &ask(&live, "payment:transfer").to_string()), format!("{first}0")] {
        assert_eq!(answer(&live, &wrong, "answer=approve").status, 401, "{wrong}");
    }
    assert_eq!(answer(&live, &first, "answer=maybe").status, 400);
    let second = link(&receiver);
    let done = answer(&live, &first, "answer=approve&note=seen+it");
    assert_eq!(done.status, 200, "{done:?}");
    let vote = live.governor.escalations().get(id).unwrap().votes[0].clone();
    assert_eq!((vote.reviewer.as_str(), vote.note.as_deref()), ("ann", Some("seen it")));
    assert_eq!(vote.identity, Some(ReviewerIdentity::Link { webhook: endpoint.id }));
    for used in [answer(&live, &first, "answer=reject"), live.ask(&Ask::new("GET", &first))] {
        assert_eq!(used.status, 409, "{used:?}");
    }
    // What has expired cannot be answered.
    clock.set(NOON + 3_700_000);
    assert_eq!(answer(&live, &second, "answer=approve").status, 409);

    // One that needs two people stays open, but the link is used.
    let id = ask(&live, "permission:write");
    let third = link_after(&receiver);
    assert_eq!(answer(&live, &third, "answer=approve").status, 200);
    assert_eq!((state(&live, id), answer(&live, &third, "answer=reject").status), (EscalationState::Pending, 409));

    let id = ask(&live, "payment:transfer");
    let last = link_after(&receiver);
    live.gateway.webhooks().remove(endpoint.id).unwrap();
    assert_eq!(answer(&live, &last, "answer=approve").status, 401);
    assert_eq!(state(&live, id), EscalationState::Pending);
}

/// Like [`link`], after the deliveries of answers.
fn link_after(receiver: &Receiver) -> String {
    loop {
        let event = receiver.next().event();
        if let Some(link) = event["data"]["approvalUrl"].as_str() {
            return link.strip_prefix(BASE).unwrap().to_owned();
        }
    }
}

#[test]
fn links_are_only_for_those_who_may_answer() {
    let (live, receiver) = (live(&Hand::at(NOON)), Receiver::taking());
    let only = |reviewer: &str| {
        EndpointDraft::to(&receiver.url).of_type(rulekeep::event::EventType::Decision).reviewer(reviewer)
    };
    live.gateway.webhooks().add(&only("mallory")).unwrap();
    ask(&live, "payment:transfer");
    let event = receiver.next().event();
    assert!(event["data"]["escalationId"].is_string() && event["data"].get("approvalUrl").is_none(), "{event}");

    let governor = builder(&Hand::at(NOON)).open_in_memory().unwrap();
    let gateway = Gateway::new(&governor).unwrap();
    let refused = gateway.webhooks().add(&EndpointDraft::to("https://example.com/").reviewer("ann")).unwrap_err();
    assert!(refused.message().contains("--public-url"), "{refused}");
}

#[test]
fn guessed_links_make_their_caller_wait() {
    let (live, receiver) = (live(&Hand::at(NOON)), Receiver::taking());
    let draft = EndpointDraft::to(&receiver.url).of_type(rulekeep::event::EventType::Decision).reviewer("ann");
    live.gateway.webhooks().add(&draft).unwrap();
    ask(&live, "payment:transfer");
    let good = link(&receiver);
    let statuses: Vec<u16> = (0..21).map(|_| live.ask(&Ask::new("GET", "/approve/x")).status).collect();
    assert_eq!((statuses[0], statuses[20]), (401, 429));
    assert_eq!(live.ask(&Ask::new("GET", &good)).status, 429);
}

#[test]
fn a_chat_gets_escalations_as_text_without_effects() {
    let (live, receiver) = (live(&Hand::at(NOON)), Receiver::taking());
    let draft = EndpointDraft::to(&receiver.url).format(Format::Slack).reviewer("ann");
    live.gateway.webhooks().add(&draft).unwrap();
    live.governor.enforce(&Intent::new("a", "look", RiskLevel::Low, ["document:read"]).unwrap()).unwrap();
    let input = json!({ "agentId": "b", "input": "Transfer 5 dollars to <!channel> ```*now* `\n# x\u{202e}@here" });
    let asked = live.post("/v1/enforce", &live.admin, &input).ok();
    assert_eq!(asked["decision"], "ESCALATE", "{asked}");
    let body = receiver.next().event();
    let text = body["text"].as_str().unwrap();
    assert_eq!(body.as_object().unwrap().len(), 1);
    assert!(text.contains("&lt;!channel&gt;") && text.contains("'''*now*") && !text.contains("<!"), "{text}");
    let fences = text.lines().filter(|line| line.contains('`')).filter(|line| *line != "```");
    assert_eq!(fences.count(), 0, "each fence has a line of its own: {text}");
    assert!(
        text.contains("```\nTransfer 5 dollars") && text.contains("\u{fffd}@here") && !text.contains('\u{202e}'),
        "{text}"
    );
    assert!(text.contains(&format!("<{BASE}/approve/esc_")) && text.contains("|Review and answer>"), "{text}");
    assert!(receiver.rest().is_empty());
}

#[test]
fn keys_of_reviewers_outlast_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let governor = builder(&Hand::at(NOON)).open(folder.path()).unwrap();
        (Gateway::new(&governor).unwrap(), governor)
    };
    let (gateway, governor) = open();
    let made = gateway.keys().create(KeyDraft::new(Scope::Reviewer, wide()).reviewer("ann")).unwrap();
    drop(gateway);
    governor.close().unwrap();
    let (gateway, _governor) = open();
    assert_eq!(gateway.keys().list(), [made.info]);
    assert!(gateway.admit(Some(made.key.expose()), "here").is_ok());
}

/// Two names that a provider gives are two people, also where they differ in case alone.
#[test]
fn a_token_names_a_reviewer_in_the_spelling_of_the_policy() {
    let samples: Value = serde_json::from_str(include_str!("../../data/tokens.json")).unwrap();
    let text = |name: &str| samples[name].as_str().unwrap();
    let live = live(&Hand::at(samples["now"].as_i64().unwrap() * 1000));
    live.governor.policies().load(PolicySet::from_toml(&POLICIES.replace("\"ann\"", "\"Ann\"")).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys.json");
    std::fs::write(&keys, samples["jwks"].to_string()).unwrap();
    live.gateway.accept_tokens(Verifier::load(&keys, text("issuer"), text("audience")).unwrap(), "sub").unwrap();
    let id = ask(&live, "payment:transfer");
    let refused = approve(&live, samples["accepted"]["ES256"].as_str().unwrap(), id, "ann");
    assert_eq!(refused.refusal(), (403, "FORBIDDEN".to_owned()));
    // An administrator who types the name is free in its spelling.
    assert_eq!(approve(&live, &live.admin, id, "ann").status, 200);
}

#[test]
fn an_endpoint_with_links_recovers_from_lost_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let governor = builder(&Hand::at(NOON)).open(folder.path()).unwrap();
        let settings = Settings { public_url: Some(BASE.to_owned()), ..Settings::default() };
        (Gateway::with_webhooks(&governor, settings).unwrap(), governor)
    };
    let state = |gateway: &Gateway| gateway.webhooks().list().unwrap()[0].state;
    let (gateway, governor) = open();
    let url = "https://hooks.example.com/ann";
    let id = gateway.webhooks().add(&EndpointDraft::to(url).reviewer("ann")).unwrap().id;
    assert_eq!(state(&gateway), EndpointState::Active);
    drop(gateway);
    governor.close().unwrap();
    std::fs::remove_file(folder.path().join("SECRETS")).unwrap();
    let (gateway, _governor) = open();
    assert_eq!(state(&gateway), EndpointState::Broken);
    let _ = gateway.webhooks().readdress(id, url);
    gateway.webhooks().rotate(id, std::time::Duration::ZERO).unwrap();
    assert_eq!(state(&gateway), EndpointState::Active);
}
