//! What the pages about policies show loads, through the public face.

use rulekeep::{PolicyFormat, PolicySet};

#[test]
fn every_document_on_the_policy_page_loads() {
    let page = include_str!("../docs/policies.md");
    let documents: Vec<&str> = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!documents.is_empty());
    for document in documents {
        let policies = PolicySet::from_toml(document).unwrap();
        assert_eq!(policies.warnings(), [], "{document}");
    }
}

#[test]
fn the_recommended_set_can_be_read_back_from_its_source() {
    let recommended = PolicySet::recommended().unwrap();
    let (text, format) = recommended.sources().next().unwrap();
    assert_eq!(format, PolicyFormat::Toml);
    assert_eq!(PolicySet::parse(text, format, "copy.toml").unwrap().digest(), recommended.digest());
}

#[test]
fn a_problem_is_told_with_the_file_the_line_and_what_was_meant() {
    let text = "name = \"finance\"\n\n[[rule]]\nid = \"pay\"\neffect = \"allow\"\n[rule.match]\ncapabilities = [\n    \"payment:read\",\n    \"payment:trasnfer\",\n]\n";
    let error = PolicySet::parse(text, PolicyFormat::Toml, "finance.toml").unwrap_err();
    let start =
        "policy \"finance.toml\" line 9: unknown capability \"payment:trasnfer\"; did you mean \"payment:transfer\"?";
    assert!(error.to_string().starts_with(start), "{error}");
    assert_eq!((error.code(), error.http_status()), ("POLICY_ERROR", 422));
}
