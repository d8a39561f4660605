//! The state of the screen, and the effect of keys on it.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rulekeep::escalation::EscalationId;
use rulekeep::proof::Digest;
use rulekeep_server::calls::escalations::{Approve, Reject};

use super::look::{Look, Pending};
use crate::client::Client;

/// The state of the screen.
pub(super) struct Screen {
    reviewer: Option<String>,
    pub(super) look: Look,
    /// The reason why the figures are not current, if so.
    pub(super) failure: Option<String>,
    /// The ID of the selected escalation.
    selected: Option<EscalationId>,
    pub(super) shown: Shown,
    /// The result of the last key.
    pub(super) message: Option<String>,
}

/// The part of the screen in front.
pub(super) enum Shown {
    Lists,
    /// An escalation in its state when it was opened, with a question if it is to be answered.
    Escalation {
        of: Box<Pending>,
        question: Option<Verdict>,
        scrolled: u16,
    },
}

/// A reviewer's verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Approve,
    Reject,
}

impl Verdict {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
        }
    }
}

/// An answer that the user confirmed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    id: EscalationId,
    /// The digest of the escalation as shown. The answer is refused if it is another one by then.
    pub(super) digest: Digest,
    reviewer: String,
    verdict: Verdict,
}

impl Answer {
    /// Sends the answer. Returns a description of the result.
    pub(super) fn send(self, client: &Client) -> Result<String, String> {
        let Self { id, digest, reviewer, verdict } = self;
        let (note, digest) = (None, Some(digest));
        let answered = match verdict {
            Verdict::Approve => client.make(Approve { id, reviewer, note, digest, for_task: None }),
            Verdict::Reject => client.make(Reject { id, reviewer, note, digest }),
        };
        Ok(format!("{id} is {}", answered?.state))
    }
}

/// An action that a key requests beyond the screen.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Nothing,
    Answer(Answer),
    Quit,
}

impl Screen {
    pub(super) fn new(reviewer: Option<String>, look: Look) -> Self {
        Self { reviewer, look, failure: None, selected: None, shown: Shown::Lists, message: None }
    }

    /// Replaces the data on the screen; the old data stays if the calls failed.
    pub(super) fn take(&mut self, look: Result<Look, String>) {
        match look {
            Ok(look) => (self.look, self.failure) = (look, None),
            Err(failure) => self.failure = Some(failure),
        }
    }

    pub(super) fn reviewer(&self) -> &str {
        self.reviewer.as_deref().unwrap_or("nobody: start with --reviewer NAME to answer")
    }

    /// The position of the selected escalation; the first one if it is gone.
    pub(super) fn selected(&self) -> Option<usize> {
        let pending = &self.look.pending;
        let place = pending.iter().position(|pending| Some(pending.id) == self.selected);
        place.or((!pending.is_empty()).then_some(0))
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Asked {
        if key.kind == KeyEventKind::Release {
            return Asked::Nothing;
        }
        let is_interrupt = key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
        if is_interrupt || key.code == KeyCode::Char('q') {
            return Asked::Quit;
        }
        self.message = None;
        match std::mem::replace(&mut self.shown, Shown::Lists) {
            Shown::Lists => self.key_in_lists(key.code),
            Shown::Escalation { of, question, scrolled } => {
                return self.key_in_escalation(key.code, of, question, scrolled);
            }
        }
        Asked::Nothing
    }

    fn key_in_lists(&mut self, code: KeyCode) {
        let Some(place) = self.selected() else { return };
        let go_to = match code {
            KeyCode::Up => place.saturating_sub(1),
            KeyCode::Down => place + 1,
            KeyCode::Char('a') => return self.open(place, Some(Verdict::Approve)),
            KeyCode::Char('r') => return self.open(place, Some(Verdict::Reject)),
            KeyCode::Char('d') | KeyCode::Enter => return self.open(place, None),
            _ => return,
        };
        if let Some(pending) = self.look.pending.get(go_to) {
            self.selected = Some(pending.id);
        }
    }

    fn open(&mut self, place: usize, question: Option<Verdict>) {
        if question.is_some() && self.reviewer.is_none() {
            self.message = Some("Start with --reviewer NAME to answer escalations.".to_owned());
            return;
        }
        if let Some(pending) = self.look.pending.get(place) {
            self.selected = Some(pending.id);
            self.shown = Shown::Escalation { of: Box::new(pending.clone()), question, scrolled: 0 };
        }
    }

    fn key_in_escalation(
        &mut self,
        code: KeyCode,
        of: Box<Pending>,
        question: Option<Verdict>,
        scrolled: u16,
    ) -> Asked {
        let scrolled = match (code, question) {
            (KeyCode::Up, _) => scrolled.saturating_sub(1),
            (KeyCode::Down, _) => scrolled.saturating_add(1),
            (KeyCode::Char('y'), Some(verdict)) => {
                let Some(reviewer) = self.reviewer.clone() else { return Asked::Nothing };
                self.message = Some("Sending ...".to_owned());
                let Pending { id, digest, .. } = *of;
                return Asked::Answer(Answer { id, digest, reviewer, verdict });
            }
            // Any other key returns to the lists.
            (_, Some(_)) => {
                self.message = Some("Nothing was sent.".to_owned());
                return Asked::Nothing;
            }
            _ => return Asked::Nothing,
        };
        self.shown = Shown::Escalation { of, question, scrolled };
        Asked::Nothing
    }
}
