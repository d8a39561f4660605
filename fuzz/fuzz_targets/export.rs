//! No text panics the reader of exports; no export is both complete and truncated; and no change to an export goes
//! unnoticed.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rulekeep::proof::{ExportPoint, ExportRange, verify_export};
use rulekeep::{Governor, Intent, Outcome, RiskLevel};

/// A valid export, and the start of its last line.
static EXPORT: LazyLock<(Vec<u8>, usize)> = LazyLock::new(|| {
    let governor = Governor::builder().auto_register().open_in_memory().expect("a store in memory opens");
    for capability in ["file:read", "email:send", "code:write"] {
        let intent = Intent::new("fuzz", "do_it", RiskLevel::Low, [capability]).expect("a good intent");
        let proof_id = governor.enforce(&intent).expect("a store in memory takes it").proof_id;
        governor.report(&proof_id, Outcome::Success).expect("the record is there");
    }
    let mut bytes = Vec::new();
    governor.log().export(&ExportRange::all().with_entries(), &mut bytes, &mut |_, _| {}).expect("memory is written");
    let end = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').expect("several lines") + 1;
    (bytes, end)
});

fuzz_target!(|input: &[u8]| {
    let whole = verify_export(&mut &*input, &mut |_, _| {});
    let part = ExportPoint::of(&mut &*input, &mut |_, _| {});
    if let Ok(report) = &whole {
        assert_eq!(report.bytes, input.len() as u64);
        assert!(part.is_err());
    }
    if let Ok(point) = &part {
        assert!(whole.is_err() && point.bytes() <= input.len() as u64);
    }
    // The input overwrites a part of a valid export: two bytes of position, then the content.
    let (good, end) = &*EXPORT;
    let Some((place, text)) = input.split_first_chunk::<2>() else { return };
    let place = usize::from(u16::from_le_bytes(*place)) % end;
    let over = text.len().min(end - place);
    for gone in [0, over] {
        let changed = [&good[..place], text, &good[place + gone..]].concat();
        if changed != *good {
            assert!(verify_export(&mut changed.as_slice(), &mut |_, _| {}).is_err());
        }
    }
});
