//! Any JSON loads as a catalogue, or is refused as a whole. Loading it twice changes nothing, and no tool is rated
//! below its rating without hints.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rulekeep::Governor;
use serde_json::Value;

fuzz_target!(|input: &str| {
    let Ok(mut value) = serde_json::from_str::<Value>(input) else { return };
    let load = |value: &Value| {
        let governor = Governor::builder().open_in_memory().expect("a store in memory opens");
        governor.tools().load(value, None).ok().map(|report| (governor, report))
    };
    let Some((governor, first)) = load(&value) else { return };
    let again = governor.tools().load(&value, None).expect("what loaded once loads twice");
    assert_eq!((again.added, again.unchanged), (0, first.tools.len()));
    without_hints(&mut value);
    let Some((_, plain)) = load(&value) else { return };
    for (hinted, plain) in first.tools.iter().zip(&plain.tools) {
        assert!(hinted.name != plain.name || hinted.risk_level >= plain.risk_level, "{hinted:?} {plain:?}");
    }
});

fn without_hints(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !key.ends_with("Hint"));
            fields.values_mut().for_each(without_hints);
        }
        Value::Array(items) => items.iter_mut().for_each(without_hints),
        _ => {}
    }
}
