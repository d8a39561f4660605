//! Nothing: this package holds tests, which compare rulekeep with other implementations and with JSON Schemas.
