//! Promises of the whole parser.
