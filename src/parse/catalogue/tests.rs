//! Promises of the catalogue on single definitions.
