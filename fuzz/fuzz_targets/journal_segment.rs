//! No bytes panic a scan of a segment, and no change inside a valid one goes unnoticed.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| rulekeep::fuzzing::segment(input));
