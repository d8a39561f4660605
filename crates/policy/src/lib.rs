//! The policy engine: evaluates a document of rules to a verdict on an intent.
//!
//! Its input is a [`PolicySet`], loaded from TOML or JSON and checked in full before it exists, and a
//! `PolicyRequest`: an intent, its effective risk, and the agent's trust and labels. Its output is a `PolicyVerdict`,
//! or, for `explain`, the reason why each rule matched or did not. Evaluation is a pure function of these inputs,
//! does not depend on the order of rules, and grants nothing that no rule grants.
//!
//! Loading builds on `rulekeep_types::document`: `document` and `clauses` read the schema, `value` the constraints,
//! `duration`, `reviewers` and `alert` what their names say; `layers` merges documents; `check` finds problems across
//! rules with the help of `cover`; `canonical` computes the digest. Evaluation uses `rule`, `pattern`, `index` and
//! `numbers` to find rules, `evaluate` to decide, and `reasoning` and `explain` to say why; `naming` provides
//! document names. `set` is the public entry point, and `preapproval` holds pre-approvals.

mod alert;
mod assumptions;
mod binding;
mod canonical;
mod check;
mod clauses;
mod condition;
mod conditions;
mod cover;
mod document;
mod duration;
mod environments;
mod evaluate;
mod examples;
mod exclusion;
mod explain;
mod fact;
#[cfg(test)]
#[path = "../../../tests/common/generated.rs"]
mod generated;
mod identifier;
mod index;
mod known_constraint;
mod layers;
mod limit;
mod naming;
mod numbers;
mod pattern;
mod preapproval;
mod reasoning;
mod request;
mod reviewers;
mod rule;
mod set;
mod unmatchable;
mod value;
mod verdict;

#[cfg(test)]
mod tests;

pub use alert::{AlertOn, AlertRule};
pub use binding::Binding;
pub use explain::{OperandTrace, RuleTrace};
pub use limit::{LimitUse, SharedLimitTerms};
pub use preapproval::{PreApproval, PreApprovalSum, PreApprovalTerms, PreApprovalUse};
pub use request::PolicyRequest;
pub use rule::Effect;
pub use rulekeep_types::document::PolicyFormat;
pub use rulekeep_types::{Constraints, DeniedPath, Problem, Severity};
pub use set::{PolicySet, PolicySource};
pub use verdict::{Approval, ConditionFailure, Need, PolicyVerdict};

#[doc(hidden)]
pub use limit::{Charge, Meter, Used};

/// The code in the README is compiled and run with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
