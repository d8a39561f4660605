//! No bytes end the sidecar, and every line of its output is JSON.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rulekeep::{Durability, Governor};
use rulekeep_server::gateway::Gateway;
use rulekeep_server::sidecar;

static GATEWAY: LazyLock<Gateway> = LazyLock::new(|| {
    let builder = Governor::builder().durability(Durability::Buffered).auto_register();
    let governor = builder.open_in_memory().expect("a store in memory opens");
    Gateway::new(&governor).expect("a new store has no keys to read")
});

fuzz_target!(|input: &[u8]| {
    let mut answers = Vec::new();
    sidecar::serve(&GATEWAY, input, &mut answers).expect("reading a slice and writing a vector cannot fail");
    for line in answers.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        serde_json::from_slice::<serde_json::Value>(line).expect("an answer is JSON");
    }
});
