//! Policies from a file: load them, explain a decision rule by rule, replace them while running, and list the mistakes of
//! a file.
//!
//! ```text
//! cargo run --release --example policy_file [-- FILE.toml|FILE.json]
//! ```

use std::path::{Path, PathBuf};

use rulekeep::policy::PolicyFormat;
use rulekeep::{Agent, Error, Governor, Intent, PolicySet, RiskLevel, Tier};

fn main() -> Result<(), Error> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/policies/support.toml");
    let file = std::env::args().nth(1).map_or_else(default, PathBuf::from);
    let policies = PolicySet::from_file(&file)?;
    println!("{}: {} rules, {}", policies.name(), policies.len(), policies.digest());
    for warning in policies.warnings() {
        println!("  line {}: {}", warning.line, warning.message);
    }

    let governor = Governor::builder().policies(policies).open_in_memory()?;
    governor.agents().register(Agent::new("desk-1").at_tier(Tier::T3).with_label("support"))?;
    let intents = [
        Intent::new("desk-1", "read_ticket", RiskLevel::Low, ["task:read", "customer:read"])?,
        Intent::new("desk-1", "refund_order", RiskLevel::Medium, ["payment:transfer"])?.with_context("amount", 45),
        Intent::new("desk-1", "answer_and_purge", RiskLevel::Medium, ["email:send", "customer:delete"])?,
    ];
    for intent in &intents {
        let explanation = governor.policies().explain(intent)?;
        println!("\n{}: {}, {}", intent.parsed_action, explanation.preview.decision, explanation.preview.reasoning);
        for rule in &explanation.rules {
            println!("  line {:>3}  {:28}  {}", rule.line, rule.rule, rule.why);
        }
    }

    // A new set applies from the next decision on. This one has no rules, so it denies everything.
    governor.policies().load(PolicySet::from_toml("name = \"closed for the night\"")?)?;
    println!("\nat night: {}", governor.enforce(&intents[0])?.reasoning);

    println!("\nthe problems of a file with mistakes:");
    let mistakes =
        "name = \"m\"\n[[rule]]\nid = \"a\"\neffect = \"alow\"\nmatch.capabilities = [\"payment:trasnfer\"]\n";
    for problem in PolicySet::validate(mistakes, PolicyFormat::Toml) {
        println!("  line {}, column {}: {}: {}", problem.line, problem.column, problem.severity, problem.message);
    }
    governor.close()
}
