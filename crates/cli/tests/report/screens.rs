//! The report in a headless browser. Without a browser the test is skipped; with `RULEKEEP_REQUIRE_PEERS` set it
//! fails instead. `RULEKEEP_REPORT_RECORDS` sets the number of requests in the busy log (2,000);
//! `RULEKEEP_REPORT_KEEP` names a folder in which the pages and pictures stay.

use std::path::Path;
use std::process::Command;

use super::fill::{fill, report};
use super::programs::{LATER, SOON, is_there, pass_over, selenium_and_axe, succeeded};

#[test]
fn a_browser_shows_an_empty_and_a_busy_log() {
    if !is_there("chromium") {
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    let kept = std::env::var_os("RULEKEEP_REPORT_KEEP").map(std::path::PathBuf::from);
    let folder = kept.as_deref().unwrap_or(temporary.path());
    let requests =
        std::env::var("RULEKEEP_REPORT_RECORDS").map_or(2_000, |text| text.replace('_', "").parse().unwrap());
    for (name, requests, height) in [("empty", 0, 600), ("busy", requests, 2600)] {
        let (store, page) = (temporary.path().join(name), folder.join(format!("{name}.html")));
        fill(&store, requests);
        let started = std::time::Instant::now();
        let written = report(&store, &page, &[]);
        assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
        eprintln!("{name}: {requests} requests, a report in {:.1} s", started.elapsed().as_secs_f64());
        let picture = folder.join(format!("{name}.png"));
        take(&page, &["--hide-scrollbars", &format!("--window-size=1100,{height}")], "--screenshot", &picture);
        check(&std::fs::read(&picture).unwrap(), height);
        let print = folder.join(format!("{name}.pdf"));
        take(&page, &["--no-pdf-header-footer"], "--print-to-pdf", &print);
        assert!(std::fs::read(&print).unwrap().starts_with(b"%PDF-"), "{name} does not print");
    }
}

#[test]
fn no_word_is_broken_and_axe_core_finds_nothing() {
    // A browser's driver and axe-core come from PyPI and npm.
    if std::env::var_os("RULEKEEP_NIGHTLY").is_none() {
        return;
    }
    let (python, axe) = match selenium_and_axe() {
        Ok(found) => found,
        Err(why) => return pass_over(&why),
    };
    let folder = tempfile::tempdir().unwrap();
    let mut pages = Vec::new();
    for (name, requests, more) in
        [("empty", 0, &[][..]), ("one", 1, &[]), ("busy", 500, &[]), ("agent", 200, &["--agent", "agent-10"])]
    {
        let (store, page) = (folder.path().join(name), folder.path().join(format!("{name}.html")));
        fill(&store, requests);
        assert!(report(&store, &page, more).status.success());
        pages.push(format!("file://{}", page.display()));
    }
    let told = serde_json::json!({ "axe": axe, "pages": pages }).to_string();
    let looks = concat!(env!("CARGO_MANIFEST_DIR"), "/../server/tests/common/looks.py");
    let said = succeeded(Command::new(python).arg(looks), told.as_bytes(), LATER);
    assert!(said.trim_end().ends_with("all as expected"), "{said}");
}

/// Lets the browser make a file from a page.
fn take(page: &Path, options: &[&str], what: &str, to: &Path) {
    let profile = tempfile::tempdir().unwrap();
    let mut browser = Command::new("chromium");
    browser
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"])
        .args(["--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"])
        .args(options)
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("{what}={}", to.display()))
        .arg(format!("file://{}", page.display()));
    let deadline = if page.metadata().unwrap().len() > 1 << 20 { LATER } else { SOON };
    succeeded(&mut browser, &[], deadline);
}

/// Checks that the picture has the size of the window and is not a blank page, which compresses to a few kilobytes.
fn check(png: &[u8], height: u32) {
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"), "no picture");
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    assert_eq!((number(16), number(20)), (1100, height));
    assert!(png.len() > 15_000, "the picture is blank: {} bytes", png.len());
}
