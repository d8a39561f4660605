//! No text panics the reading of words and observed results, and none in a field of an entry supplies a value.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| rulekeep::mandate_fuzzing::result(input));
