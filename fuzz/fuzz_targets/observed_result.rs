//! No text panics the reader of task words and observed results, and no text in a field of an entry supplies a value.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| rulekeep::mandate_fuzzing::result(input));
