//! Exports written, cut short and gone on with, read, and read back into a store.

use crate::common;

use std::fs;
use std::io::{self, Write};

use common::{builder, decide, in_folder, in_memory, intent, picture};
use proptest::prelude::*;
use proptest::test_runner::Config;
use rulekeep::proof::{ExportPoint, ExportRange, ExportReport, ProofId, verify_export};
use rulekeep::{Agent, Error, Governor, Outcome, ProofQuery, Tier};

fn quiet() -> impl FnMut(u64, u64) {
    |_, _| {}
}

fn export(governor: &Governor, range: &ExportRange) -> (Vec<u8>, ExportReport) {
    let mut bytes = Vec::new();
    let report = governor.log().export(range, &mut bytes, &mut quiet()).unwrap();
    (bytes, report)
}

fn verify(bytes: &[u8]) -> Result<ExportReport, Error> {
    verify_export(&mut &*bytes, &mut quiet())
}

/// Where an export breaks.
fn broken_line(bytes: &[u8]) -> u64 {
    match verify(bytes) {
        Err(Error::ExportBroken { line, .. }) => line,
        other => panic!("{other:?}"),
    }
}

/// Some records of two agents, with outcomes and a suspension between them.
fn fill(governor: &Governor) -> Vec<ProofId> {
    let _ = governor.agents().register(Agent::new("b").at_tier(Tier::T3));
    let mut ids = Vec::new();
    for round in 0..20 {
        let agent = if round % 3 == 0 { "b" } else { "a" };
        ids.push(decide(governor, agent));
        if round % 4 == 0 {
            governor.report(&ids[round], Outcome::ALL[round % Outcome::ALL.len()]).unwrap();
        }
    }
    governor.agents().suspend("b", "for the test").unwrap();
    ids.push(decide(governor, "b"));
    ids
}

/// Takes so many bytes, then fails.
struct Full(Vec<u8>, usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.1.saturating_sub(self.0.len());
        if room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = &bytes[..room.min(bytes.len())];
        self.0.extend_from_slice(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_export_holds_the_log_and_says_the_same_when_read() {
    let governor = in_memory();
    let ids = fill(&governor);
    let (bytes, written) = export(&governor, &ExportRange::all());
    assert_eq!(verify(&bytes).unwrap(), written);
    assert_eq!((written.records, written.without_evidence, written.entries), (ids.len() as u64, 0, 0));
    assert_eq!(written.head_hash, governor.verify().unwrap().head_hash);
    assert_eq!((written.last, written.bytes), (ids.last().copied(), bytes.len() as u64));
    let text = String::from_utf8(bytes).unwrap();
    let outcomes = text.lines().filter(|line| !line.ends_with("\"outcome\":null}")).count() - 2;
    assert_eq!(outcomes, 5);
}

#[test]
fn progress_is_told_up_to_the_end() {
    let governor = builder().durability(rulekeep::Durability::Buffered).auto_register().open_in_memory().unwrap();
    for _ in 0..2_500 {
        decide(&governor, "a");
    }
    let (mut bytes, mut told) = (Vec::new(), Vec::new());
    let report = governor.log().export(&ExportRange::all(), &mut bytes, &mut |done, of| told.push((done, of))).unwrap();
    let (last, of) = *told.last().unwrap();
    assert!(told.len() >= 3 && last == of && of >= 2_500, "{told:?}");
    told.clear();
    verify_export(&mut bytes.as_slice(), &mut |lines, bytes| told.push((lines, bytes))).unwrap();
    assert!(told.len() >= 3);
    assert_eq!(*told.last().unwrap(), (report.lines, report.bytes));
}

#[test]
fn an_export_cut_short_anywhere_goes_on_to_the_very_same() {
    let governor = in_memory();
    fill(&governor);
    for range in
        [ExportRange::all(), ExportRange::all().with_entries(), ExportRange::all().of_agent("b".parse().unwrap())]
    {
        let (whole, report) = export(&governor, &range);
        let first_line = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for room in (first_line..whole.len()).step_by(487).chain([first_line, whole.len() - 1]) {
            let mut full = Full(Vec::new(), room);
            assert_eq!(
                governor.log().export(&range, &mut full, &mut quiet()).unwrap_err().code(),
                "STORAGE_UNAVAILABLE"
            );
            let mut part = full.0;
            assert_eq!(part.len(), room);
            assert!(verify(&part).is_err());

            let point = ExportPoint::of(&mut part.as_slice(), &mut quiet()).unwrap();
            part.truncate(usize::try_from(point.bytes()).unwrap());
            assert_eq!(governor.log().resume_export(point, &mut part, &mut quiet()).unwrap(), report);
            assert_eq!(part, whole, "cut at {room}");
        }
        let complete = ExportPoint::of(&mut whole.as_slice(), &mut quiet());
        assert!(matches!(complete, Err(Error::Conflict { .. })), "{complete:?}");
        assert!(ExportPoint::of(&mut &whole[..first_line - 1], &mut quiet()).is_err());
    }
}

#[test]
fn a_resumed_export_takes_new_entries_and_of_no_other_log() {
    let governor = in_memory();
    fill(&governor);
    let (mut part, _) = export(&governor, &ExportRange::all());
    part.truncate(part.len() - 10);
    let point = ExportPoint::of(&mut part.as_slice(), &mut quiet()).unwrap();
    part.truncate(usize::try_from(point.bytes()).unwrap());
    let newest = decide(&governor, "a");

    let other = in_memory();
    fill(&other);
    let refused = other.log().resume_export(point.clone(), &mut Vec::new(), &mut quiet());
    assert!(matches!(refused, Err(Error::Conflict { .. })), "{refused:?}");
    let report = governor.log().resume_export(point, &mut part, &mut quiet()).unwrap();
    assert_eq!(report.last, Some(newest));
    assert_eq!(verify(&part).unwrap(), report);
}

#[test]
fn an_export_behind_a_record_begins_with_its_hash() {
    let governor = in_memory();
    let ids = fill(&governor);
    let (bytes, report) = export(&governor, &ExportRange::all().after(ids[7]));
    assert_eq!(report.records, (ids.len() - 8) as u64);
    assert_eq!(report.previous_hash, Some(governor.log().record(&ids[7]).unwrap().hash));
    assert_eq!(verify(&bytes).unwrap(), report);
    let (_, nothing) = export(&governor, &ExportRange::all().after(ids[20]));
    assert_eq!((nothing.records, nothing.head_hash), (0, report.head_hash));
}

#[test]
fn evidence_can_be_left_out_and_an_agent_singled_out() {
    let governor = in_memory();
    fill(&governor);
    let (bytes, report) = export(&governor, &ExportRange::all().without_evidence());
    assert_eq!(report.without_evidence, report.records);
    assert!(!String::from_utf8(bytes.clone()).unwrap().contains("\"parts\""));
    assert_eq!(verify(&bytes).unwrap(), report);

    let (bytes, report) = export(&governor, &ExportRange::all().of_agent("b".parse().unwrap()));
    assert_eq!(report.records, governor.query(&ProofQuery::entity("b")).unwrap().total);
    assert_eq!(report.previous_hash, None);
    assert_eq!(verify(&bytes).unwrap(), report);
}

#[test]
fn a_break_is_told_with_its_line_expected_and_found() {
    let governor = in_memory();
    fill(&governor);
    let (bytes, _) = export(&governor, &ExportRange::all());
    let text = String::from_utf8(bytes).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let joined = |lines: &[&str]| (lines.join("\n") + "\n").into_bytes();
    let with = |at: usize, line: &str| {
        let mut lines = lines.clone();
        lines[at] = line;
        joined(&lines)
    };

    assert_eq!(broken_line(&with(4, &lines[4].replace("\"riskLevel\":\"LOW\"", "\"riskLevel\":\"HIGH\""))), 5);
    let error = verify(&with(4, lines[5])).unwrap_err();
    let Error::ExportBroken { line: 5, expected, found } = &error else { panic!("{error:?}") };
    assert!(expected.starts_with("previousHash sha256:") && found.starts_with("sha256:"), "{error}");
    assert_eq!(error.code(), "INVALID_INPUT");
    assert_eq!(error.details().unwrap()["line"], 5);

    // The same meaning in another spelling, or with more to it.
    assert_eq!(broken_line(&with(3, &lines[3].replace(":{\"id\"", ": {\"id\""))), 4);
    assert_eq!(broken_line(&with(3, &lines[3].replace("{\"id\"", "{\"note\":1,\"id\""))), 4);
    assert_eq!(broken_line(&with(3, &lines[3].replace("Z\"", "+00:00\""))), 4);
    assert_eq!(broken_line(&with(0, &lines[0].replace("\"format\":1", "\"format\":2"))), 1);
    assert_eq!(broken_line(&with(2, "")), 3);
    assert_eq!(broken_line(&joined(&lines[..3])), 4);
    let more: Vec<&str> = lines.iter().copied().chain([""]).collect();
    assert_eq!(broken_line(&joined(&more)), lines.len() as u64 + 1);
    assert_eq!(broken_line(b""), 1);
    assert_eq!(broken_line(&text.as_bytes()[..text.len() - 1]), lines.len() as u64);
}

#[test]
fn no_changed_byte_of_an_export_goes_unnoticed() {
    let governor = in_memory();
    for _ in 0..3 {
        decide(&governor, "a");
    }
    let (bytes, _) = export(&governor, &ExportRange::all().with_entries());
    let config = Config { cases: 500, failure_persistence: None, ..Config::default() };
    proptest!(config, |(place in any::<prop::sample::Index>(), byte in any::<u8>())| {
        let mut changed = bytes.clone();
        let place = place.index(changed.len());
        prop_assume!(changed[place] != byte);
        changed[place] = byte;
        prop_assert!(verify(&changed).is_err(), "byte {}", place);
    });
}

#[test]
fn an_import_gives_back_the_same_log_and_it_goes_on() {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folder = target.path().join("store");
    let governor = in_folder(source.path());
    fill(&governor);
    let (bytes, written) = export(&governor, &ExportRange::all().with_entries());
    assert!(written.entries > 0);

    assert_eq!(rulekeep::maintenance::import(&folder, &mut bytes.as_slice(), &mut quiet()).unwrap(), written);
    let imported = Governor::open(&folder).unwrap();
    assert_eq!(picture(&imported, &["a", "b"]), picture(&governor, &["a", "b"]));
    let evidence = |governor: &Governor| governor.log().evidence(&written.last.unwrap()).unwrap();
    assert_eq!(evidence(&imported), evidence(&governor));
    assert_eq!(export(&imported, &ExportRange::all().with_entries()).0, bytes);

    let next = decide(&imported, "a");
    assert_eq!(imported.log().record(&next).unwrap().previous_hash, written.head_hash);
    imported.close().unwrap();
    assert!(Governor::open(&folder).unwrap().verify().unwrap().valid);
}

#[test]
fn an_import_of_what_does_not_hold_leaves_nothing() {
    let target = tempfile::tempdir().unwrap();
    let folder = target.path().join("store");
    let governor = in_memory();
    let ids = fill(&governor);
    let (good, _) = export(&governor, &ExportRange::all().with_entries());
    let text = String::from_utf8(good.clone()).unwrap();

    let cut = &good[..good.len() - 40];
    let changed = text.replacen("\"riskLevel\":\"LOW\"", "\"riskLevel\":\"HIGH\"", 1).into_bytes();
    for bytes in [cut, &changed] {
        let refused = rulekeep::maintenance::import(&folder, &mut &*bytes, &mut quiet());
        assert!(matches!(refused, Err(Error::ExportBroken { .. })), "{refused:?}");
    }
    let partial = [
        ExportRange::all(),
        ExportRange::all().with_entries().without_evidence(),
        ExportRange::all().with_entries().after(ids[3]),
    ];
    for range in partial {
        let (bytes, _) = export(&governor, &range);
        let refused = rulekeep::maintenance::import(&folder, &mut bytes.as_slice(), &mut quiet());
        assert!(matches!(refused, Err(Error::InvalidInput { .. })), "{refused:?}");
    }
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 0);

    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("mine"), "x").unwrap();
    let refused = rulekeep::maintenance::import(&folder, &mut good.as_slice(), &mut quiet());
    assert!(matches!(refused, Err(Error::Conflict { .. })), "{refused:?}");
    fs::remove_file(folder.join("mine")).unwrap();
    rulekeep::maintenance::import(&folder, &mut good.as_slice(), &mut quiet()).unwrap();
}

#[test]
fn a_log_that_does_not_hold_is_not_exported_as_if_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let governor = in_folder(folder.path());
    for _ in 0..5 {
        governor.enforce(&intent("a", &["document:read"]).with_context("marker", "keep-this")).unwrap();
    }
    governor.close().unwrap();
    let segment = folder.path().join("journal/0000000000.rkj");
    let mut bytes = fs::read(&segment).unwrap();
    let at = bytes.windows(9).rposition(|window| window == b"keep-this").unwrap();
    bytes[at] = b'K';
    fs::write(&segment, &bytes).unwrap();

    let governor = Governor::open(folder.path()).unwrap();
    let mut part = Vec::new();
    let refused = governor.log().export(&ExportRange::all(), &mut part, &mut quiet());
    assert!(matches!(refused, Err(Error::ChainBroken { .. })), "{refused:?}");
    let point = ExportPoint::of(&mut part.as_slice(), &mut quiet()).unwrap();
    assert!(point.last().is_some());
}
