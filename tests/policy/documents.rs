//! What the pages about policies show loads, through the public face.

use rulekeep::policy::PolicyFormat;
use rulekeep::{Governor, PolicySet};

#[test]
fn every_document_on_the_policy_page_loads() {
    let page = include_str!("../../docs/reference/policies.md");
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
    let start = "policy \"finance.toml\" line 9 column 5: unknown capability \"payment:trasnfer\"; did you mean \"payment:transfer\"?";
    assert!(error.to_string().starts_with(start), "{error}");
    assert_eq!((error.code(), error.http_status()), ("POLICY_ERROR", 422));
}

#[test]
fn a_set_that_can_grant_nothing_denies_and_the_status_says_so() {
    let empty = "name = \"empty\"";
    let shadowed = "name = \"s\"\n[[rule]]\nid = \"a\"\neffect = \"allow\"\nmatch.capabilities = [\"web:read\"]\n[[rule]]\nid = \"d\"\neffect = \"deny\"";
    for text in [empty, shadowed] {
        let set = PolicySet::from_toml(text).unwrap();
        assert!(!set.grants_something() && !set.warnings().is_empty(), "{text}");
        let governor = Governor::builder().policies(set).open_in_memory().unwrap();
        let status = governor.status();
        assert_eq!(status.status.to_string(), "degraded");
        assert!(status.warnings[0].contains("grants nothing"), "{:?}", status.warnings);
    }
    let governor = Governor::builder().open_in_memory().unwrap();
    assert!(governor.status().warnings.is_empty());
}
