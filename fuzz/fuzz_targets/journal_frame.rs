//! No bytes panic the reader of frames, and what it reads is what they say.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| rulekeep::fuzzing::frame(input));
