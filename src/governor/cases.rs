//! Tests of the policies in force, with texts read and risk counted as for a decision.

use serde_json::{Map, Value};

use super::{Governor, risk};
use crate::model::{AgentId, Error, Intent, IntentId, RiskLevel};
use crate::parse::ParseRequest;
use crate::policy::{CaseReader, CaseReport, PolicyCases};

impl Governor {
    /// Holds cases against the policy set in force: texts are read by its parser and
    /// its catalogue of tools, and where a case does not say the risk, it is counted
    /// as for a decision. Nothing is recorded, no limit is used, and the agents need
    /// not be registered.
    ///
    /// ```
    /// use rulekeep::policy::PolicyCases;
    /// use rulekeep::Governor;
    ///
    /// let governor = Governor::builder().open_in_memory()?;
    /// let cases = PolicyCases::from_toml(r#"
    ///     [[case]]
    ///     name = "an invoice without an amount is looked at"
    ///     input = "Pay the invoice"
    ///     agent = { tier = "T4" }
    ///     expect = { decision = "ESCALATE", reviewer = "agent-owner" }
    /// "#)?;
    /// let report = governor.test_policies(&cases);
    /// assert!(report.passed(), "{report}");
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    pub fn test_policies(&self, cases: &PolicyCases) -> CaseReport {
        cases.run(&self.inner.policies.load(), &AsDecided(self))
    }
}

/// Reads and counts as a decision does.
struct AsDecided<'a>(&'a Governor);

impl CaseReader for AsDecided<'_> {
    fn read(&self, agent: &AgentId, text: &str, context: &Map<String, Value>) -> Result<Intent, Error> {
        let inner = &self.0.inner;
        let at = inner.clock.now();
        let id = IntentId::new(at, inner.entropy.bits());
        let request = ParseRequest { agent_id: agent, input: text, context, id, at };
        inner.parser.parse(&request, &inner.tools.load()).map(|parsed| parsed.result.intent)
    }

    fn risk(&self, intent: &Intent) -> RiskLevel {
        risk::effective_risk(&self.0.inner.parser, &self.0.inner.action_floors, intent)
    }
}
