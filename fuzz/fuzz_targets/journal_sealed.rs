//! No bytes panic the reader of sealed segments, or make it read more than they contain.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| rulekeep::fuzzing::sealed(input));
