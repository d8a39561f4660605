use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use rulekeep::escalation::{EscalationQuery, EscalationState};
use rulekeep::proof::Digest;
use rulekeep::{Agent, Governor, Intent, PolicySet, ProofQuery, RiskLevel, Tier};
use rulekeep_server::Access;
use rulekeep_server::calls::records::ListedRecord;
use rulekeep_server::calls::request::RecordedRequest;
use rulekeep_server::gateway::Gateway;
use serde_json::{Value, json};

use super::draw;
use super::look::{Decided, Look, Looking, Pending, moment};
use super::screen::{Answer, Asked, Screen};
use crate::client::Client;

/// A governor with two pending escalations.
struct Service {
    client: Client,
}

impl Service {
    fn start() -> Self {
        let policies = "name = \"p\"\n[[rule]]\nid = \"ask\"\neffect = \"escalate\"\nreviewer = \"ann\"\nmatch.capabilities = [\"payment:transfer\"]";
        let builder = Governor::builder().policies(PolicySet::from_toml(policies).unwrap());
        let governor = builder.open_in_memory().unwrap();
        governor.agents().register(Agent::new("clerk").at_tier(Tier::T4)).unwrap();
        let gateway = Box::new(Gateway::new(&governor).unwrap());
        let service = Self { client: Client::Store { gateway, access: Access::Everything } };
        service.enforce("pay_invoice", "payment:transfer");
        service.enforce("refund_order", "payment:transfer");
        service
    }

    fn enforce(&self, action: &str, capability: &str) {
        let intent = Intent::new("clerk", action, RiskLevel::High, [capability]).unwrap();
        self.client.governor().unwrap().enforce(&intent).unwrap();
    }

    fn screen(&self, reviewer: Option<&str>) -> Screen {
        Screen::new(reviewer.map(str::to_owned), self.look())
    }

    fn look(&self) -> Look {
        Looking::default().look(&self.client).unwrap()
    }

    fn state(&self, action: &str) -> EscalationState {
        let page = self.client.governor().unwrap().escalations().list(&EscalationQuery::all()).unwrap();
        let is_it = |intent: &Value| intent["parsedAction"] == action;
        page.items.iter().find(|item| item.intent.as_ref().is_some_and(is_it)).unwrap().state
    }
}

fn press(screen: &mut Screen, keys: &[KeyCode]) -> Asked {
    keys.iter().map(|code| screen.key(KeyEvent::from(*code))).last().unwrap()
}

fn drawn(screen: &Screen) -> String {
    drawn_at(screen, 130)
}

fn drawn_at(screen: &Screen, width: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, 30)).unwrap();
    terminal.draw(|frame| draw::all(frame, screen)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn a_decision_shows_up_with_the_next_look() {
    let service = Service::start();
    let mut looking = Looking::default();
    let mut screen = Screen::new(None, looking.look(&service.client).unwrap());
    assert!(!drawn(&screen).contains("delete_file"));
    service.enforce("delete_file", "file:delete");
    screen.take(looking.look(&service.client));
    let shown = drawn(&screen);
    for text in ["delete_file", "DENY", "HIGH", "3 records", "Pending escalations: 2", "at most 3"] {
        assert!(shown.contains(text), "{text}:\n{shown}");
    }
}

#[test]
fn a_narrow_terminal_shows_the_rule_and_the_request() {
    let shown = drawn_at(&Service::start().screen(None), 80);
    for text in ["ask: refund_order", "ask: pay_invoice"] {
        assert!(shown.contains(text), "{text}:\n{shown}");
    }
}

#[test]
fn times_of_other_days_have_a_date() {
    let now = |text: &str| moment("2026-11-28T17:49:34Z".parse().unwrap(), text.parse().unwrap());
    let shown = ["2026-11-28T23:59:59Z", "2026-11-29T00:00:00Z", "2027-01-01T00:00:00Z"].map(now);
    assert_eq!(shown, ["17:49:34", "11-28 17:49", "2026-11-28"]);
    let mut look = Service::start().look();
    look.decisions[0].time = "11-28 17:49".to_owned();
    assert!(drawn_at(&Screen::new(None, look), 80).contains("│11-28 17:49 clerk"));
}

#[test]
fn the_selected_escalation_is_the_one_that_is_answered() {
    let service = Service::start();
    let mut screen = service.screen(Some("ann"));
    // The newest one comes first.
    let asked = press(&mut screen, &[KeyCode::Down, KeyCode::Char('r'), KeyCode::Char('y')]);
    let Asked::Answer(answer) = asked else { panic!("{asked:?}") };
    assert!(answer.send(&service.client).unwrap().ends_with("is rejected"));
    assert_eq!(service.state("pay_invoice"), EscalationState::Rejected);
    assert_eq!(service.state("refund_order"), EscalationState::Pending);
}

#[test]
fn an_answer_is_sent_only_after_yes_and_only_by_a_reviewer() {
    let service = Service::start();
    for (reviewer, keys) in [
        (Some("ann"), &[KeyCode::Char('a')][..]),
        (Some("ann"), &[KeyCode::Char('a'), KeyCode::Enter]),
        (Some("ann"), &[KeyCode::Char('a'), KeyCode::Char('a')]),
        (Some("ann"), &[KeyCode::Char('d'), KeyCode::Char('y')]),
        (Some("ann"), &[KeyCode::Char('y')]),
        (None, &[KeyCode::Char('a'), KeyCode::Char('y')]),
    ] {
        assert_eq!(press(&mut service.screen(reviewer), keys), Asked::Nothing, "{keys:?}");
    }
}

#[test]
fn an_answer_binds_to_what_was_on_the_screen() {
    let service = Service::start();
    let mut screen = service.screen(Some("ann"));
    let digest = screen.look.pending[0].digest;
    press(&mut screen, &[KeyCode::Char('a')]);
    let mut newer = service.look();
    newer.pending[0].digest = Digest::ZERO;
    newer.pending.reverse();
    screen.take(Ok(newer));
    let Asked::Answer(answer) = press(&mut screen, &[KeyCode::Char('y')]) else { panic!() };
    assert_eq!(answer.digest, digest);
}

#[test]
fn figures_stay_and_the_failure_shows_without_an_answer() {
    let mut screen = Service::start().screen(None);
    screen.take(Err("the socket is gone".to_owned()));
    let shown = drawn(&screen);
    assert!(shown.contains("pay_invoice") && shown.contains("No new figures: the socket is gone"), "{shown}");
}

#[test]
fn an_answer_that_is_refused_says_why() {
    let service = Service::start();
    let mut screen = service.screen(Some("bob"));
    let Asked::Answer(answer) = press(&mut screen, &[KeyCode::Char('a'), KeyCode::Char('y')]) else { panic!() };
    let refused = Answer::send(answer, &service.client).unwrap_err();
    assert!(refused.contains("ann"), "{refused}");
}

#[test]
fn text_of_the_log_cannot_steer_the_terminal() {
    let evil = "a\u{1b}[2J\u{7}\u{202e}b";
    let service = Service::start();
    let mut look = service.look();
    let governor = service.client.governor().unwrap();
    let mut record = governor.query(&ProofQuery::all()).unwrap().items.remove(0);
    record.reasoning = evil.to_owned();
    let request =
        RecordedRequest { command: Some(evil.to_owned()), rules: vec![evil.to_owned()], ..Default::default() };
    look.decisions = vec![Decided::of(&ListedRecord { record, request: Some(request) }, look.time)];
    let mut escalation = json!(governor.escalations().list(&EscalationQuery::all()).unwrap().items[0]);
    for field in ["input", "reason", "reviewer", "unreadable", "why"] {
        escalation[field] = json!(evil);
    }
    escalation["intent"] = json!({ "parsedAction": evil, "requiredCapabilities": [evil], "context": { "k": evil } });
    look.pending = vec![Pending::of(&serde_json::from_value(escalation).unwrap(), look.time)];
    let mut screen = Screen::new(Some("ann".to_owned()), look);
    let lists = drawn(&screen);
    press(&mut screen, &[KeyCode::Char('d')]);
    for shown in [lists, drawn(&screen)] {
        assert!(shown.contains("a\u{fffd}[2J\u{fffd}\u{fffd}b"), "{shown}");
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{202e}']));
    }
}
