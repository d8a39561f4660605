//! The policy engine: from a document of rules to a verdict on an intent.
//!
//! It takes in a [`PolicySet`], loaded from TOML or JSON and checked in full
//! before it exists, and a `PolicyRequest`: an intent, its effective risk, the
//! agent's trust and labels. It hands out a `PolicyVerdict`, or, for `explain`, why
//! each rule matched or did not. Evaluation is a pure function of these, does not
//! depend on the order of rules, and grants nothing that no rule grants.
//!
//! On the way in, over `crate::document`: `document`
//! and `clauses` (the schema), `value` and `known_constraint` (constraints), `duration`, `reviewers` (who answers), `alert`,
//! `layers` (documents over documents),
//! `check` (what only the whole set shows, by `cover`), `canonical` (the digest). On the way
//! of a decision: `rule`, `pattern`, `index` and `numbers` (which rules to look at), `evaluate`,
//! `reasoning`, and `explain` (`naming`: what documents are called). `set` is the door to both.
//! `preapproval` holds pre-approvals.

mod alert;
mod assumptions;
mod canonical;
mod check;
mod clauses;
mod condition;
mod conditions;
mod cover;
mod document;
mod duration;
mod evaluate;
mod examples;
mod exclusion;
mod explain;
mod fact;
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
mod value;
mod verdict;

#[cfg(test)]
mod tests;

pub use crate::document::PolicyFormat;
pub use crate::model::{Constraints, Problem, Severity};
pub use alert::{AlertOn, AlertRule};
pub use explain::RuleTrace;
pub use limit::LimitUse;
pub use preapproval::{PreApproval, PreApprovalSum, PreApprovalTerms, PreApprovalUse};
pub use request::PolicyRequest;
pub use rule::Effect;
pub use set::{PolicySet, PolicySource};
pub use verdict::{Approval, ConditionFailure, Need, PolicyVerdict};

pub(crate) use limit::{Charge, Meter, Used};
