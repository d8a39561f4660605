//! The cases that the pages show.

use rulekeep::PolicySet;
use rulekeep::intent::Parser;
use rulekeep_cli::policy::PolicyCases;

#[test]
fn the_cases_on_the_tests_page_hold_for_the_policy_pages_rules() {
    let first = |page: &str| page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap().to_owned();
    let rules = PolicySet::from_toml(&first(include_str!("../../../../docs/reference/policies.md"))).unwrap();
    let cases = PolicyCases::from_toml(&first(include_str!("../../../../docs/reference/policy-tests.md"))).unwrap();
    let parser = Parser::new().unwrap();
    let read = |agent: &_, text: &str, context: &_| parser.parse_text(agent, text, context).map(|parsed| parsed.intent);
    let report = cases.run_with_mutants(&rules, &read);
    assert!(report.passed(), "{report}");
    assert!(report.cases.iter().all(|case| case.warning.is_none()), "{report}");
    let mutants = report.mutants.unwrap();
    assert_eq!((mutants.equivalent.len(), mutants.refuted, mutants.idle_declarations.len()), (1, 0, 0));
}
