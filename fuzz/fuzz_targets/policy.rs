//! Any text loads as a policy document, or is refused with a problem that has a place.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rulekeep::policy::{PolicyFormat, Severity};
use rulekeep::PolicySet;

fuzz_target!(|input: (bool, &str)| {
    let (toml, text) = input;
    let format = if toml { PolicyFormat::Toml } else { PolicyFormat::Json };
    let problems = PolicySet::validate(text, format);
    assert!(problems.iter().all(|problem| problem.line > 0 && problem.column > 0));
    let refused = problems.iter().any(|problem| problem.severity == Severity::Error);
    assert_eq!(PolicySet::parse(text, format, "fuzz").is_err(), refused);
});
