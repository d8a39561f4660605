use std::path::{Path, PathBuf};

use rulekeep::checkpoint::CheckpointKey;
use rulekeep::system::{SystemEntropy, Timestamp};
use rulekeep::{Decision, Governor, ProofQuery, RiskLevel};
use tempfile::TempDir;

use super::fill::{BEGIN, COMMAND, DAY, fill, report};

/// A store in a folder that also has room for pages.
struct Store {
    folder: TempDir,
}

impl Store {
    fn of(requests: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fill(&folder.path().join("store"), requests);
        Self { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// Writes a report. Returns its page, and whether the log verified.
    fn report(&self, more: &[&str]) -> (String, bool) {
        let page = self.folder.path().join("report.html");
        let output = report(&self.path(), &page, more);
        let text = std::fs::read_to_string(&page).unwrap_or_else(|_| panic!("{output:?}"));
        std::fs::remove_file(page).unwrap();
        (text, output.status.success())
    }

    fn open(&self) -> Governor {
        Governor::open_read_only(self.path()).unwrap()
    }
}

/// Returns the cells of the row that begins with `first`, without tags and commas.
fn row(page: &str, first: &str) -> Vec<String> {
    let row = page.split("<tr>").map(cells).find(|cells| cells[0] == first);
    row.unwrap_or_else(|| panic!("no row {first}")).iter().map(|cell| cell.replace(',', "")).collect()
}

/// Returns the rows below the heads of a section.
fn rows(page: &str, title: &str) -> Vec<Vec<String>> {
    let (_, section) = page.split_once(&format!(">{title}</h2>")).unwrap();
    let (section, _) = section.split_once("</table>").unwrap();
    section.split("<tr>").skip(2).map(cells).collect()
}

fn cells(row: &str) -> Vec<String> {
    row.split("</tr>").next().unwrap().split("</td>").map(untagged).collect()
}

fn untagged(html: &str) -> String {
    let texts = html.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text));
    texts.collect()
}

#[test]
fn an_empty_log_is_said_to_be_empty_and_verified() {
    let (page, is_valid) = Store::of(0).report(&[]);
    assert!(is_valid && page.contains("The log has no records in this period.") && page.contains("The log verifies"));
}

#[test]
fn the_figures_are_those_of_the_log() {
    let store = Store::of(400);
    let (page, _) = store.report(&[]);
    let governor = store.open();
    let total = |query: ProofQuery| governor.query(&query).unwrap().total.to_string();
    let stacked = [Decision::Allow, Decision::Degrade, Decision::Escalate, Decision::Deny];
    for risk in RiskLevel::ALL {
        let mut expected = vec![risk.to_string()];
        expected.extend(stacked.map(|decision| total(ProofQuery::all().risk(*risk).decision(decision))));
        expected.push(total(ProofQuery::all().risk(*risk)));
        assert_eq!(row(&page, risk.as_str())[..6], expected);
    }
    let agent = row(&page, "agent-10");
    assert_eq!(agent[6], total(ProofQuery::entity("agent-10")));
    assert_eq!(agent[7], total(ProofQuery::entity("agent-10").outcome(rulekeep::Outcome::Success)));
    let answered = governor.query(&ProofQuery::all().decision(Decision::Escalate)).unwrap();
    let states: u64 = ["Pending", "Approved", "Rejected", "Expired", "Withdrawn"]
        .map(|state| row(&page, state)[1].split(' ').next().unwrap().parse::<u64>().unwrap())
        .iter()
        .sum();
    assert_eq!(states, answered.total);
    // No request here is denied by several rules.
    let (reasons, _) = page.split_once("Reasons of refusal</h2>").unwrap().1.split_once("</table>").unwrap();
    let refused = reasons.split("<tr><td>").skip(1).map(|row| row.split("class=\"n\">").nth(1).unwrap());
    let refused: u64 = refused.map(|cell| cell.split('<').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(refused.to_string(), total(ProofQuery::all().decision(Decision::Deny)));
    assert!(reasons.contains("no-deletions") && reasons.contains("none grants it") && reasons.contains("reviewer"));
}

#[test]
fn a_period_and_an_agent_limit_what_is_counted() {
    let store = Store::of(300);
    let (from, until) = (Timestamp::from_millis(BEGIN + 10 * DAY), Timestamp::from_millis(BEGIN + 20 * DAY));
    let (page, _) = store.report(&["--from", &from.to_string(), "--to", &until.to_string(), "--agent", "agent-10"]);
    let expected = store.open().query(&ProofQuery::entity("agent-10").from(from).to(until)).unwrap().total;
    assert!(expected > 0 && page.contains(&format!("<b>{expected}</b> records")), "{expected}");
    assert!(untagged(&page).contains("From 2026-01-11 00:00:00 to 2026-01-21 00:00:00"));
    assert!(!page.contains("agent-11"));
}

#[test]
fn refusals_say_what_by_which_rule_how_often_and_when() {
    let store = Store::of(300);
    let (page, _) = store.report(&[]);
    let query = ProofQuery::all().decision(Decision::Deny).page_size(200);
    let mut denied = store.open().query(&query).unwrap().items;
    denied.retain(|record| record.reasoning.contains("\"no-deletions\""));
    let last = denied[0].timestamp.to_string()[..19].replace('T', " ");
    let expected = [COMMAND, "DENY", "no-deletions", &denied.len().to_string(), &last];
    let rows = rows(&page, "Refusals");
    assert!(denied.len() > 1 && rows.iter().any(|row| row[..5] == expected), "{expected:?}: {rows:#?}");
    assert!(rows.iter().any(|row| row[2] == "no rule grants it") && rows.iter().any(|row| row[2].contains("reviewer")));
}

#[test]
fn one_record_of_one_agent_is_told_in_the_singular() {
    let (page, _) = Store::of(1).report(&[]);
    assert!(page.contains("<b>1</b> record<") && page.contains("<b>1</b> agent<"), "{page}");
}

#[test]
fn text_from_the_log_is_no_markup_and_nothing_is_fetched() {
    let (page, _) = Store::of(300).report(&[]);
    assert!(untagged(&page).contains("&lt;img/src=x/onerror=alert(1)&gt;"));
    let page = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "").to_lowercase();
    for outside in ["<script", "<img", "<link", "http:", "https:", "url(", "@import", "javascript:"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn a_file_that_is_there_is_not_overwritten() {
    let store = Store::of(0);
    let page = store.folder.path().join("kept.html");
    std::fs::write(&page, "kept").unwrap();
    assert!(!report(&store.path(), &page, &[]).status.success());
    assert_eq!(std::fs::read_to_string(page).unwrap(), "kept");
}

#[test]
fn a_log_that_does_not_verify_is_reported_and_the_command_fails() {
    let store = Store::of(300);
    flip(&store.path().join("journal/0000000000.rkj"));
    let (page, is_valid) = store.report(&[]);
    assert!(!is_valid);
    assert!(page.contains("The log does not verify."));
    assert!(page.contains("The figures end where the log cannot be read"));
    assert!(!page.contains("The log verifies"));
}

/// Changes a byte in the middle of a segment's content.
fn flip(segment: &Path) {
    let mut bytes = std::fs::read(segment).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[end / 2] ^= 1;
    std::fs::write(segment, bytes).unwrap();
}

#[test]
fn a_checkpoint_holds_for_its_own_log_and_for_no_other() {
    let store = Store::of(200);
    let key = CheckpointKey::generate("example.com/log", &SystemEntropy).unwrap();
    let note = |path: &Path| {
        let governor = Governor::builder().checkpoints(key.clone()).open(path).unwrap();
        let note = governor.log().checkpoint().unwrap();
        governor.close().unwrap();
        note
    };
    let other = Store::of(20);
    let file = store.folder.path().join("note");
    for (path, holds) in [(store.path(), true), (other.path(), false)] {
        std::fs::write(&file, note(&path)).unwrap();
        let key = key.verifier().to_string();
        let (page, is_valid) = store.report(&["--checkpoint", file.to_str().unwrap(), "--checkpoint-key", &key]);
        assert_eq!(is_valid, holds, "{page}");
        assert_eq!(page.contains("<td>holds</td>"), holds);
        assert_eq!(page.contains("The log does not verify."), !holds);
        assert!(untagged(&page).contains("\nexample.com/log\n"), "the note is shown");
    }
}
