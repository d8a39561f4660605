//! No bytes panic the reader of frames, and it returns exactly what they contain.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| rulekeep::fuzzing::frame(input));
