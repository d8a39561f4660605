//! The policy engine: from a document of rules to a verdict on an intent.
//!
//! It takes in a [`PolicySet`], loaded from TOML or JSON and checked in full
//! before it exists, and a `PolicyRequest`: an intent, its effective risk, the
//! agent's trust and labels. It hands out a `PolicyVerdict`, or, for `explain`, why
//! each rule matched or did not. Evaluation is a pure function of these, does not
//! depend on the order of rules, and grants nothing that no rule grants.
//!
//! On the way in: `tree` (TOML and JSON as one located tree, `place`), `document`
//! and `clauses` (the schema), `value` (constraints), `duration`, `reviewers` (who answers), `alert`, `nearest` (what was meant),
//! `check` (what only the whole set shows, by `cover`), `canonical` (the digest). On the way
//! of a decision: `rule`, `pattern`, `index` and `numbers` (which rules to look at), `evaluate`,
//! `reasoning`, and `explain` (`naming`: what documents are called). `set` is the door to both.
//! `class` says what a person can agree to beforehand. `cases` holds tests against a set.

mod alert;
mod canonical;
mod cases;
mod check;
mod class;
mod clauses;
mod condition;
mod conditions;
mod cover;
mod document;
mod duration;
mod evaluate;
mod examples;
mod explain;
mod file;
mod index;
mod limit;
mod naming;
mod nearest;
mod numbers;
mod pattern;
mod place;
mod reasoning;
mod request;
mod reviewers;
mod rule;
mod set;
mod settle;
mod tree;
mod value;
mod verdict;

#[cfg(test)]
mod tests;

pub use alert::{AlertOn, AlertRule};
pub use cases::{
    CaseDifference, CaseReader, CaseReport, CaseResult, ClauseCoverage, Coverage, MutantReport, PolicyCases,
    RuleCoverage, Survivor,
};
pub use class::{ClassApproval, ClassSum, ClassTerms, ClassUse};
pub use explain::RuleTrace;
pub use limit::LimitUse;
pub use request::PolicyRequest;
pub use rule::Effect;
pub use set::{PolicyFormat, PolicySet, PolicySource};
pub use verdict::{Approval, ConditionFailure, Need, PolicyVerdict};

pub(crate) use limit::{Charge, Meter, Used};
