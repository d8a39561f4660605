//! An empty library: this package contains tests that compare rulekeep with other implementations and with JSON
//! Schemas.
