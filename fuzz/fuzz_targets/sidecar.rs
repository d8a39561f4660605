//! No bytes end the sidecar, and every line of answer is JSON.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rulekeep::{Durability, Governor, sidecar};

static GOVERNOR: LazyLock<Governor> = LazyLock::new(|| {
    let builder = Governor::builder().durability(Durability::Buffered).auto_register();
    builder.open_in_memory().expect("a store in memory opens")
});

fuzz_target!(|input: &[u8]| {
    let mut answers = Vec::new();
    sidecar::serve(&GOVERNOR, input, &mut answers).expect("reading a slice and writing a vector cannot fail");
    for line in answers.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        serde_json::from_slice::<serde_json::Value>(line).expect("an answer is JSON");
    }
});
