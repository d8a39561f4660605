//! The policy engine: from a document of rules to a verdict on an intent.
//!
//! It takes in a [`PolicySet`], loaded from TOML or JSON and checked in full
//! before it exists, and a `PolicyRequest`: an intent, its effective risk, the
//! agent's trust and labels. It hands out a `Verdict`, or, for `explain`, why
//! each rule matched or did not. Evaluation is a pure function of these, does not
//! depend on the order of rules, and grants nothing that no rule grants.
//!
//! On the way in: `tree` (TOML and JSON as one located tree, `place`), `document`
//! and `clauses` (the schema), `value` (constraints), `nearest` (what was meant),
//! `check` (what only the whole set shows), `canonical` (the digest). On the way
//! of a decision: `rule`, `pattern`, `index` and `numbers` (which rules to look at), `evaluate`,
//! `reasoning`, and `explain`. `set` is the door to both.

mod canonical;
mod check;
mod clauses;
#[cfg_attr(not(test), expect(dead_code))]
mod condition;
mod document;
mod evaluate;
mod explain;
mod index;
mod nearest;
mod numbers;
mod pattern;
mod place;
mod reasoning;
mod rule;
mod set;
mod tree;
mod value;

#[cfg(test)]
mod tests;

pub use explain::RuleTrace;
pub use rule::Effect;
pub use set::{PolicyFormat, PolicySet};

pub(crate) use evaluate::{PolicyRequest, Verdict};
