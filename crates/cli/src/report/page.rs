//! The HTML page of a report.

use std::collections::HashMap;
use std::fmt::Write as _;

use rulekeep::{Decision, RiskLevel};

use super::charts::{self, CURVES, Drawn, STACKED};
use super::span::Span;
use super::tally::{AgentTally, Decisions, Escalations, Stopped, Table};
use super::{KeptCheckpoint, Report};
use crate::output::{counted, grouped};
use crate::plain::plain;

/// Returns the whole page; all text from the log is escaped.
pub(super) fn html(report: &Report<'_>) -> Drawn {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>Rulekeep report</title>\n<style>\n{}</style>\n\
         </head>\n<body>\n{}<main>\n",
        include_str!("page.css"),
        head(report)
    );
    page.push_str(&verdict(report));
    match &report.tally.span {
        Some(span) => page.push_str(&figures(report, span)?),
        None => page.push_str("<p class=\"empty\">The log has no records in this period.</p>\n"),
    }
    page.push_str(&verification(report));
    page.push_str("</main>\n</body>\n</html>\n");
    Ok(page)
}

fn head(report: &Report<'_>) -> String {
    let options = report.options;
    let span = report.tally.span.as_ref();
    let from = options.period.from.or(span.map(|span| span.from)).map_or_else(|| "the beginning".to_owned(), moment);
    let to = options.period.to.or(span.map(|span| span.to)).map_or_else(|| "the end".to_owned(), moment);
    let agent = options
        .agent
        .as_deref()
        .map_or_else(|| "all agents".to_owned(), |agent| format!("agent <b>{}</b>", text(agent)));
    format!(
        "<header>\n<h1>Decisions of software agents</h1>\n<p>From {from} to {to} &middot; {agent}</p>\n\
         <p class=\"small\">Store {} &middot; written by rulekeep {} on {} &middot; all times in UTC</p>\n</header>\n",
        text(&report.store.display().to_string()),
        env!("CARGO_PKG_VERSION"),
        moment(report.written_at),
    )
}

fn verdict(report: &Report<'_>) -> String {
    let mut shown = match (&report.verification.first_broken, &report.kept) {
        (Some(broken), _) => {
            format!("<p class=\"verdict bad\"><b>The log does not verify.</b> {}</p>\n", text(&broken.to_string()))
        }
        (None, Some(_)) => {
            "<p class=\"verdict good\"><b>The log verifies</b>, and contains everything that the checkpoint covers, unchanged.</p>\n"
                .to_owned()
        }
        (None, None) => {
            "<p class=\"verdict good\"><b>The log verifies</b> in itself. No checkpoint was given.</p>\n".to_owned()
        }
    };
    if let Some(why) = &report.unread {
        let _ =
            writeln!(shown, "<p class=\"verdict bad\">The figures end where the log cannot be read: {}</p>", text(why));
    }
    shown
}

/// Returns all counts.
fn figures(report: &Report<'_>, span: &Span) -> Drawn {
    let tally = &report.tally;
    let mut agents: Vec<(&str, &AgentTally)> = tally.agents.iter().map(|(id, agent)| (id.as_str(), agent)).collect();
    agents.sort_unstable_by(|(a, first), (b, second)| second.records().cmp(&first.records()).then(a.cmp(b)));
    let mut shown = String::from("<ul class=\"figures\">\n");
    // A figure is a number, and its name after a blank.
    let mut figure = |text: &str| {
        let (value, name) = text.rsplit_once(' ').unwrap_or((text, ""));
        let _ = writeln!(shown, "<li><b>{value}</b> {name}</li>");
    };
    figure(&counted(tally.records, "record"));
    for (decision, share) in STACKED.iter().zip(shares(STACKED.map(|decision| tally.decisions[decision as usize]))) {
        figure(&format!("{share} {decision}"));
    }
    figure(&counted(tally.agents.len() as u64, "agent"));
    shown.push_str("</ul>\n");

    shown.push_str(&section(
        &format!("Decisions per {}", span.unit()),
        &(legend() + &charts::decisions(span, &tally.by_interval)?),
    ));
    let by_risk = RiskLevel::ALL.iter().map(|risk| (risk.as_str().to_owned(), tally.by_risk[*risk as usize]));
    shown.push_str(&section("Decisions by risk", &decision_table("Risk", by_risk.collect(), 0)?));
    shown.push_str(&section("Decisions by capability", &capabilities(&tally.by_capability, tally.without_evidence)?));
    shown.push_str(&section("Trust scores of the agents with the most records", &curves(span, &agents)?));
    shown.push_str(&section("Reasons of refusal", &refusals(&tally.refusals)));
    shown.push_str(&section("Refusals", &stopped(&tally.stopped, &[Decision::Deny])));
    shown.push_str(&section(
        "Requests that were escalated or degraded",
        &stopped(&tally.stopped, &[Decision::Escalate, Decision::Degrade]),
    ));
    shown.push_str(&section("Escalations", &escalations(&tally.escalations, report)));
    shown.push_str(&section("Agents", &agent_table(&agents)));
    Ok(shown)
}

fn legend() -> String {
    let keys = STACKED.map(|decision| key(&hex(charts::color(decision)), decision.as_str()));
    format!("<p class=\"legend\">{}</p>\n", keys.concat())
}

fn key(color: &str, name: &str) -> String {
    format!("<span><i style=\"background:{color}\"></i>{name}</span> ")
}

fn capabilities(table: &Table<Decisions>, without_evidence: u64) -> Drawn {
    let (rows, left_out) = most(&table.rows, |_, decisions| decisions.iter().sum());
    let rows: Vec<_> = rows.into_iter().map(|(name, decisions)| (text(name), *decisions)).collect();
    if rows.is_empty() {
        return Ok("<p>No record names a capability.</p>\n".to_owned());
    }
    let mut shown = decision_table("Capability", rows, left_out)?;
    shown.push_str("<p class=\"small\">A record counts for each capability that its request needs.");
    if without_evidence > 0 {
        let _ = write!(shown, " Unknown for {}: evidence was erased.", counted(without_evidence, "record"));
    }
    shown.push_str("</p>\n");
    Ok(shown)
}

/// Returns a table with a row for each name, which is HTML, with its decisions and a bar.
fn decision_table(what: &str, rows: Vec<(String, Decisions)>, left_out: usize) -> Drawn {
    let most = rows.iter().map(|(_, decisions)| decisions.iter().sum()).max().unwrap_or(0);
    let mut shown = format!(
        "<table>\n<thead><tr><th>{what}</th>{}<th class=\"n\">Records</th><td></td></tr></thead>\n",
        decision_heads()
    );
    for (name, decisions) in rows {
        let _ = writeln!(
            shown,
            "<tr><td>{name}</td>{}<td class=\"n\">{}</td><td class=\"bar\">{}</td></tr>",
            decision_cells(&decisions),
            grouped(decisions.iter().sum()),
            charts::bar(&decisions, most)?
        );
    }
    shown.push_str("</table>\n");
    shown.push_str(&and_more(left_out));
    Ok(shown)
}

fn decision_heads() -> String {
    STACKED.map(|decision| format!("<th class=\"n\">{decision}</th>")).concat()
}

fn decision_cells(decisions: &Decisions) -> String {
    STACKED.map(|decision| format!("<td class=\"n\">{}</td>", grouped(decisions[decision as usize]))).concat()
}

fn curves(span: &Span, agents: &[(&str, &AgentTally)]) -> Drawn {
    let shown = agents.get(..CURVES.len()).unwrap_or(agents);
    let keys = shown.iter().zip(CURVES).map(|((id, _), color)| key(&hex(color), &text(id))).collect::<String>();
    let scores: Vec<&[(u32, u16)]> = shown.iter().map(|(_, agent)| agent.scores.as_slice()).collect();
    let drawn = charts::scores(span, &scores)?;
    Ok(format!(
        "<p class=\"legend\">{keys}</p>\n{drawn}<p class=\"small\">The score, of 1000 at most, at the last record of each {}.</p>\n",
        span.unit()
    ))
}

fn refusals(table: &Table<u64>) -> String {
    let (rows, left_out) = most(&table.rows, |_, count| *count);
    if rows.is_empty() {
        return "<p>Nothing was denied.</p>\n".to_owned();
    }
    let mut shown =
        String::from("<table>\n<thead><tr><th>Refused by</th><th>Rule</th><th class=\"n\">Records</th></tr></thead>\n");
    for (name, records) in rows {
        let (class, rule) = name.split_once('\n').unwrap_or((name, ""));
        let rule = match (class, rule) {
            ("policy", "") => "none grants it".to_owned(),
            (_, "") => "&ndash;".to_owned(),
            _ => text(rule),
        };
        let _ = writeln!(
            shown,
            "<tr><td>{}</td><td>{rule}</td><td class=\"n\">{}</td></tr>",
            text(class),
            grouped(*records)
        );
    }
    shown.push_str("</table>\n");
    shown.push_str(&and_more(left_out));
    shown.push_str(
        "<p class=\"small\">DENY decisions by denial class. A record counts for each rule that refused it.</p>\n",
    );
    shown
}

/// Returns the requests with one of these decisions, the most frequent first.
fn stopped(table: &Table<Stopped>, decisions: &[Decision]) -> String {
    let of = |key: &str| decisions.iter().any(|decision| key.starts_with(&format!("{decision}\n")));
    let (rows, left_out) = most(&table.rows, |key, stopped| if of(key) { stopped.times } else { 0 });
    if rows.is_empty() {
        return "<p>None.</p>\n".to_owned();
    }
    let mut shown = String::from(
        "<table>\n<thead><tr><th>Request</th><th>Decision</th><th>By</th><th class=\"n\">Times</th><th>Last</th></tr></thead>\n",
    );
    for (key, Stopped { times, last }) in rows {
        let mut parts = key.splitn(3, '\n').map(text);
        let [decision, by, request] = [(); 3].map(|()| parts.next().unwrap_or_default());
        let by = if by.is_empty() { "&ndash;" } else { &by };
        let _ = writeln!(
            shown,
            "<tr><td><code>{request}</code></td><td>{decision}</td><td>{by}</td><td class=\"n\">{}</td><td class=\"whole\">{}</td></tr>",
            grouped(*times),
            last.map(moment).unwrap_or_default()
        );
    }
    shown.push_str("</table>\n");
    shown.push_str(&and_more(left_out));
    shown.push_str(
        "<p class=\"small\">By their first command, or tool and target, and by the rules that decided.</p>\n",
    );
    shown
}

fn escalations(found: &Escalations, report: &Report<'_>) -> String {
    let longest = found.pending().min().map(|asked| report.written_at.as_millis().saturating_sub(asked.as_millis()));
    let mut millis = found.response_millis.clone();
    millis.sort_unstable();
    let none = || "&ndash;".to_owned();
    let percentile = |percent: usize| {
        let place = (millis.len() * percent).div_ceil(100).saturating_sub(1);
        millis.get(place).map_or_else(none, |millis| length(*millis))
    };
    let states = [
        ("Pending", found.pending().count() as u64),
        ("Approved", found.approved),
        ("Rejected", found.rejected),
        ("Expired", found.expired),
        ("Withdrawn", found.withdrawn() as u64),
        ("Evidence erased", found.unknown),
    ];
    let total: u64 = states.iter().map(|(_, number)| number).sum();
    if total == 0 {
        return "<p>Nothing was escalated.</p>\n".to_owned();
    }
    let times = [
        ("Response time, median", percentile(50)),
        ("Response time, 90th percentile", percentile(90)),
        ("Response time, longest", percentile(100)),
        ("Longest pending", longest.map_or_else(none, |millis| length(u64::try_from(millis).unwrap_or(0)))),
    ];
    let shares = shares(states.map(|(_, number)| number));
    let states = states.iter().zip(shares).filter(|((name, number), _)| *number > 0 || *name != "Evidence erased");
    let row = |name: &str, value: &str| format!("<tr><td>{name}</td><td class=\"n\">{value}</td></tr>\n");
    let states: String =
        states.map(|((name, number), share)| row(name, &format!("{} ({share})", grouped(*number)))).collect();
    let times: String = times.iter().map(|(name, value)| row(name, value)).collect();
    format!(
        "<div class=\"columns\"><table>\n{states}</table>\n<table>\n{times}</table></div>\n<p class=\"small\">Escalations opened in the period, in their state at the end of the log. Response times are those of approvals and rejections by \
         reviewers.</p>\n"
    )
}

fn agent_table(agents: &[(&str, &AgentTally)]) -> String {
    let mut shown = format!(
        "<table>\n<thead><tr><th>Agent</th><th>Trust</th>{}<th class=\"n\">Records</th><th class=\"n\">Succeeded</th><th class=\"n\">Failed</th></tr></thead>\n",
        decision_heads()
    );
    for (id, agent) in agents.iter().take(MOST_ROWS) {
        let score = agent.scores.last().map_or(0, |(_, score)| *score);
        let _ = writeln!(
            shown,
            "<tr><td>{}</td><td class=\"whole\">{score} ({})</td>{}<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            text(id),
            agent.tier,
            decision_cells(&agent.decisions),
            grouped(agent.records()),
            grouped(agent.successes),
            grouped(agent.failures),
        );
    }
    shown.push_str("</table>\n");
    shown.push_str(&and_more(agents.len().saturating_sub(MOST_ROWS)));
    shown.push_str("<p class=\"small\">Trust: score and tier at the agent's last record in the period.</p>\n");
    shown
}

fn verification(report: &Report<'_>) -> String {
    let found = &report.verification;
    let mut rows = vec![
        ("Result", if found.valid { "valid".to_owned() } else { "not valid".to_owned() }),
        ("Records verified", grouped(found.records)),
        ("Hash of the last record", format!("<code>{}</code>", text(&found.head_hash.to_string()))),
    ];
    let mut note = String::new();
    if let Some(KeptCheckpoint { checkpoint, key, note: signed }) = &report.kept {
        let holds = if found.valid { "holds" } else { "not confirmed: the log does not verify" };
        rows.push(("Checkpoint", holds.to_owned()));
        rows.push(("Signed by", format!("<code>{}</code>", text(&key.to_string()))));
        rows.push(("Entries covered", grouped(checkpoint.size())));
        rows.push(("Root of the Merkle tree", format!("<code>{}</code>", text(&checkpoint.root().to_string()))));
        note = format!("<pre>{}</pre>\n", signed.lines().map(text).collect::<Vec<_>>().join("\n"));
    } else {
        note.push_str(
            "<p class=\"small\">Without a checkpoint that was kept elsewhere, a log that was rewritten as a whole also \
             verifies. Pass <code class=\"whole\">--checkpoint</code> to rule that out.</p>\n",
        );
    }
    let row = |(name, value): &(&str, String)| format!("<tr><td>{name}</td><td>{value}</td></tr>\n");
    let rows: String = rows.iter().map(row).collect();
    section("Verification", &format!("<table class=\"plain\">\n{rows}</table>\n{note}"))
}

/// Returns a section, which can be focused because it scrolls sideways in a narrow window.
fn section(title: &str, body: &str) -> String {
    let name = title.to_lowercase().replace(' ', "-");
    format!("<section tabindex=\"0\" aria-labelledby=\"{name}\">\n<h2 id=\"{name}\">{title}</h2>\n{body}</section>\n")
}

/// Returns the rows with the highest counts above zero, and the number of rows left out.
fn most<T>(rows: &HashMap<String, T>, number: impl Fn(&str, &T) -> u64) -> (Vec<(&str, &T)>, usize) {
    let counted = rows.iter().map(|(name, row)| (name.as_str(), row));
    let mut sorted: Vec<(&str, &T)> = counted.filter(|(name, row)| number(name, row) > 0).collect();
    sorted.sort_unstable_by(|(a, first), (b, second)| number(b, second).cmp(&number(a, first)).then(a.cmp(b)));
    let left_out = sorted.len().saturating_sub(MOST_ROWS);
    sorted.truncate(MOST_ROWS);
    (sorted, left_out)
}

fn and_more(left_out: usize) -> String {
    if left_out == 0 {
        String::new()
    } else {
        format!("<p class=\"small\">And {} more.</p>\n", grouped(left_out as u64))
    }
}

/// Escapes foreign text as HTML. A short word stays on one line; a longer one may end a line after a sign.
fn text(raw: &str) -> String {
    let shown = plain(raw);
    let words = shown.split(' ').map(|word| match word.chars().count() {
        ..=LONGEST_WORD if word.contains(ENDS_LINES) => format!("<span class=\"whole\">{}</span>", escaped(word)),
        ..=LONGEST_WORD => escaped(word),
        _ => escaped(&divided(word)).replace(DIVISION, "<wbr>"),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Marks where a long word may end a line: after signs, or after [`LONGEST_WORD`] characters.
fn divided(word: &str) -> String {
    let (mut shown, mut length, mut before) = (String::with_capacity(word.len() * 2), 0, 'a');
    for next in word.chars() {
        let is_after_signs = next.is_alphanumeric() && !before.is_alphanumeric() && length > 1;
        if is_after_signs || length == LONGEST_WORD {
            shown.push(DIVISION);
            length = 0;
        }
        shown.push(next);
        (length, before) = (length + 1, next);
    }
    shown
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

fn moment(at: rulekeep::system::Timestamp) -> String {
    let shown = at.to_string();
    text(&shown.get(..19).unwrap_or(&shown).replace('T', " "))
}

/// Returns the share of each part in their sum, to one decimal, so that the shares add up to 100 %: each is rounded down,
/// and the tenths that are left go to the largest remainders. Only nothing is 0.0 %, and only everything is 100.0 %.
fn shares<const N: usize>(parts: [u64; N]) -> [String; N] {
    let whole = parts.iter().map(|part| u128::from(*part)).sum::<u128>().max(1);
    let mut tenths = parts.map(|part| u128::from(part) * 1000 / whole);
    let mut places: Vec<usize> = (0..N).collect();
    places.sort_by_key(|place| std::cmp::Reverse(u128::from(parts[*place]) * 1000 % whole));
    let left = if parts.iter().all(|part| *part == 0) { 0 } else { 1000 - tenths.iter().sum::<u128>() };
    for (place, _) in places.into_iter().zip(0..left) {
        tenths[place] += 1;
    }
    std::array::from_fn(|place| match (tenths[place], u128::from(parts[place])) {
        (0, 1..) => "&lt;0.1 %".to_owned(),
        (1000, part) if part < whole => "&gt;99.9 %".to_owned(),
        (tenths, _) => format!("{}.{} %", tenths / 10, tenths % 10),
    })
}

fn length(millis: u64) -> String {
    let seconds = millis / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0 => format!("{millis} ms"),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{minutes} min {} s", seconds % 60),
        3600..86_400 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

fn hex(color: plotters::style::RGBColor) -> String {
    format!("#{:02x}{:02x}{:02x}", color.0, color.1, color.2)
}

/// Largest number of rows in a table whose names come from the log.
const MOST_ROWS: usize = 20;
/// The longest word that always stays on one line.
const LONGEST_WORD: usize = 20;
/// Signs after which a browser ends a line within a word.
const ENDS_LINES: [char; 6] = ['-', '/', '?', '!', '}', '|'];
/// Stands for `<wbr>` until the text is escaped; [`plain`] leaves none in a text.
const DIVISION: char = '\u{200b}';

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_readable() {
        assert_eq!(
            [999, 59_000, 61_000, 7_500_000, 200_000_000].map(length),
            ["999 ms", "59 s", "1 min 1 s", "2 h 5 min", "2 d 7 h"]
        );
    }

    #[test]
    fn shares_add_up_and_only_everything_is_100() {
        for (parts, shown) in [
            ([0, 0, 0], ["0.0 %", "0.0 %", "0.0 %"]),
            ([5, 0, 0], ["100.0 %", "0.0 %", "0.0 %"]),
            ([1, 1, 1], ["33.4 %", "33.3 %", "33.3 %"]),
            ([2, 1, 0], ["66.7 %", "33.3 %", "0.0 %"]),
            ([9_996, 4, 0], ["&gt;99.9 %", "&lt;0.1 %", "0.0 %"]),
            ([u64::MAX, u64::MAX, 1], ["50.0 %", "50.0 %", "&lt;0.1 %"]),
        ] {
            assert_eq!(shares(parts), shown, "{parts:?}");
        }
        let tenths = |share: &String| share.trim_end_matches(" %").replace('.', "").parse::<u32>().unwrap_or(0);
        for parts in [[7, 11, 13, 17], [1, 1, 1, 4], [1, 2, 3, 1_000], [33, 33, 33, 1]] {
            assert_eq!(shares(parts).iter().map(tenths).sum::<u32>(), 1000, "{parts:?}");
        }
    }

    #[test]
    fn only_long_words_are_divided_and_after_signs() {
        for (raw, shown) in [
            ("a plain word", "a plain word"),
            ("daily-work runs", "<span class=\"whole\">daily-work</span> runs"),
            ("/home/ann/shop/reports-2026", "/home/<wbr>ann/<wbr>shop/<wbr>reports-<wbr>2026"),
            ("0123456789abcdefghijklm", "0123456789abcdefghij<wbr>klm"),
        ] {
            assert_eq!(text(raw), shown);
        }
    }

    #[test]
    fn text_from_outside_cannot_become_markup() {
        assert_eq!(text("<img src=x onerror='a(\"&\")'>"), "&lt;img src=x onerror=&#39;a(&quot;&amp;&quot;)&#39;&gt;");
        assert_eq!(text("<img/src=\u{200b}x/onerror=alert(1)>").matches('<').count(), 5, "the divisions only");
    }
}
