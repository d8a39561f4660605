//! No bytes panic a walk over a segment, and no change inside a good one goes unnoticed.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| rulekeep::fuzzing::segment(input));
