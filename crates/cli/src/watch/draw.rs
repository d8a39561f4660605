//! Drawing the screen.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Borders, Clear, Paragraph, Row, Sparkline, Table, TableState, Wrap};

use rulekeep::status::Health;
use rulekeep::{Decision, RiskLevel};

use super::look::{Look, Pending};
use super::screen::{Screen, Shown, Verdict};
use crate::output::counted;

pub(super) fn all(frame: &mut Frame<'_>, screen: &Screen) {
    let look = &screen.look;
    let waiting = u16::try_from(look.pending.len().clamp(1, MOST_PENDING)).unwrap_or(1) + 2;
    let rows = [
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(4),
        Constraint::Length(waiting),
        Constraint::Length(1),
    ];
    let [head, decisions, minutes, pending, foot] = Layout::vertical(rows).areas(frame.area());
    frame.render_widget(head_line(look), head);
    draw_decisions(frame, look, decisions);
    draw_minutes(frame, look, minutes);
    draw_pending(frame, screen, pending);
    frame.render_widget(foot_line(screen), foot);
    if let Shown::Escalation { of, question, scrolled } = &screen.shown {
        draw_escalation(frame, screen, of, *question, *scrolled);
    }
}

fn head_line(look: &Look) -> Line<'_> {
    let time = look.time.to_string();
    let time = time.get(..19).unwrap_or(&time).replace('T', " ");
    let mut line = Line::from(vec![
        " rulekeep ".bold(),
        Span::styled(look.health.as_str(), of_health(look.health)),
        Span::raw(format!("  {}  {:.1}/s  chain ", counted(look.records, "record"), look.rate)),
        Span::styled(look.chain.as_str(), of_health(look.chain)),
        Span::raw(format!("  {time} UTC")),
    ]);
    line.extend(look.warnings.first().map(|warning| Span::from(format!("  {warning}")).yellow()));
    line
}

fn draw_decisions(frame: &mut Frame<'_>, look: &Look, area: Rect) {
    let rows = look.decisions.iter().map(|decided| {
        Row::new([
            Text::raw(&*decided.time),
            Text::raw(&*decided.agent),
            Text::styled(decided.decision.as_str(), of_decision(decided.decision)),
            Text::styled(decided.risk.as_str(), of_risk(decided.risk)),
            reason(&decided.rules, &decided.request, &decided.reason),
        ])
    });
    let widths = [
        longest(look.decisions.iter().map(|decided| &decided.time)),
        Constraint::Max(area.width / 6),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Fill(1),
    ];
    let head = Row::new(["Time", "Agent", "Decision", "Risk", "Reason: rule and command"]).style(Modifier::DIM);
    frame.render_widget(Table::new(rows, widths).header(head).block(titled("Decisions")), area);
}

fn draw_minutes(frame: &mut Frame<'_>, look: &Look, area: Rect) {
    let most = look.minutes.iter().max().copied().unwrap_or(0);
    let block = titled(&format!("Decisions per minute, the last {} minutes; at most {most}", look.minutes.len()))
        .borders(Borders::TOP);
    frame.render_widget(Sparkline::default().data(&look.minutes).style(Color::Cyan).block(block), area);
}

fn draw_pending(frame: &mut Frame<'_>, screen: &Screen, area: Rect) {
    let look = &screen.look;
    let block = titled(&format!("Pending escalations: {}  (you are {})", look.pending_total, screen.reviewer()));
    if look.pending.is_empty() {
        frame.render_widget(Paragraph::new("None.").block(block), area);
        return;
    }
    let rows = look.pending.iter().map(|pending| {
        Row::new([
            Text::raw(&*pending.agent),
            Text::styled(pending.risk.as_str(), of_risk(pending.risk)),
            reason("", &pending.request, &pending.reason),
            Text::raw("until"),
            Text::raw(&*pending.expires),
        ])
    });
    let widths = [
        Constraint::Max(area.width / 6),
        Constraint::Length(8),
        Constraint::Fill(1),
        Constraint::Length(5),
        longest(look.pending.iter().map(|pending| &pending.expires)),
    ];
    let table = Table::new(rows, widths).block(block).row_highlight_style(Modifier::REVERSED);
    frame.render_stateful_widget(table, area, &mut TableState::default().with_selected(screen.selected()));
}

/// The rules and the request come first, so that a narrow terminal shows them.
fn reason<'a>(rules: &'a str, request: &'a str, reason: &'a str) -> Text<'a> {
    let colon = if rules.is_empty() { "" } else { ": " };
    Line::from(vec![rules.into(), colon.into(), request.into(), "  ".into(), reason.dim()]).into()
}

/// The width of the longest of these times.
fn longest<'a>(times: impl Iterator<Item = &'a String>) -> Constraint {
    Constraint::Length(times.map(String::len).max().and_then(|length| u16::try_from(length).ok()).unwrap_or(0))
}

fn foot_line(screen: &Screen) -> Line<'_> {
    match (&screen.message, &screen.failure) {
        (Some(message), _) => Line::from(format!(" {message}")).yellow(),
        (None, Some(failure)) => Line::from(format!(" No new figures: {failure}")).red(),
        (None, None) => Line::from(" up/down select   a approve   r reject   d details   q quit").dim(),
    }
}

/// Draws an escalation in full, in front of the lists.
fn draw_escalation(frame: &mut Frame<'_>, screen: &Screen, of: &Pending, question: Option<Verdict>, scrolled: u16) {
    let [_, area, _] =
        Layout::vertical([Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)]).areas(frame.area());
    let title = match question {
        Some(verdict) => format!("{} as {}?  y sends it, any other key does not", verdict.word(), screen.reviewer()),
        None => "Escalation; any key goes back".to_owned(),
    };
    let lines: Vec<Line<'_>> = of
        .details
        .iter()
        .map(|(name, value)| Line::from(vec![format!("{name:<14}").dim(), Span::raw(&**value)]))
        .collect();
    let block = titled(&title).border_style(Color::Yellow).title_bottom(" up/down scroll ");
    let text = Paragraph::new(lines).wrap(Wrap { trim: false }).scroll((scrolled, 0)).block(block);
    frame.render_widget(Clear, area);
    frame.render_widget(text, area);
}

fn titled(title: &str) -> Block<'static> {
    Block::bordered().title(format!(" {title} "))
}

fn of_decision(decision: Decision) -> Style {
    match decision {
        Decision::Allow => Color::Green.into(),
        Decision::Degrade => Color::Yellow.into(),
        Decision::Escalate => Color::Cyan.into(),
        Decision::Deny => Style::from(Color::Red).bold(),
    }
}

fn of_risk(risk: RiskLevel) -> Style {
    match risk {
        RiskLevel::Low => Modifier::DIM.into(),
        RiskLevel::Medium => Style::new(),
        RiskLevel::High => Color::Yellow.into(),
        RiskLevel::Critical => Style::from(Color::Red).bold(),
    }
}

fn of_health(health: Health) -> Style {
    match health {
        Health::Healthy => Color::Green.into(),
        Health::Degraded => Color::Yellow.into(),
        Health::Unhealthy => Style::from(Color::Red).bold(),
    }
}

/// Number of lines for escalations; with more of them the list scrolls.
const MOST_PENDING: usize = 8;
