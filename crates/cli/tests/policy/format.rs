//! Tests of `policy fmt`: one layout, with comments and meaning preserved.

use std::fs;

use rulekeep::PolicySet;

use super::commands::{file, policy, stdout};

const LOOSE: &str = "# top\nname=\"loose\"   # said\n\n\n\n[[rule]]\nid   = \"a\"\neffect=\"allow\"\n\
                     match={capabilities=[\"web:read\"]} # why\n# last of a\n[[rule]]\nid = \"b\"\neffect = \"deny\"\n\
                     [rule.match]\nactions = [\n  \"x\", # one\n\"y\"\n]\n\n[[alert]]\nid=\"c\"\non=\"denials\"\nper=\"1h\"\n";

#[test]
fn a_loose_document_is_laid_out_once_keeping_comments() {
    let path = file("loose.toml", LOOSE);
    let name = path.to_str().unwrap();
    assert_eq!(policy(&["fmt", "--check", name]).status.code(), Some(1));
    assert_eq!(fs::read_to_string(&path).unwrap(), LOOSE, "--check changes nothing");
    assert!(policy(&["fmt", name]).status.success());
    let formatted = fs::read_to_string(&path).unwrap();
    for comment in ["# top", "# said", "# why", "# last of a", "# one"] {
        assert!(formatted.contains(comment), "{comment} is gone: {formatted}");
    }
    assert!(formatted.contains("name = \"loose\" # said\n\n[[rule]]\n"), "{formatted}");
    let digest = |text: &str| PolicySet::from_toml(text).unwrap().digest();
    assert_eq!(digest(&formatted), digest(LOOSE));
    let again = policy(&["fmt", name, "--json"]);
    assert!(again.status.success() && stdout(&again).contains("\"changed\": false"));
    assert_eq!(fs::read_to_string(&path).unwrap(), formatted);
    assert!(policy(&["fmt", "--check", name]).status.success());
}

#[test]
fn the_recommended_policies_keep_meaning_and_comments() {
    let text = include_str!("../../../../policies/recommended.toml");
    let path = file("laid-out.toml", text);
    assert!(policy(&["fmt", path.to_str().unwrap()]).status.success());
    let formatted = fs::read_to_string(&path).unwrap();
    assert_eq!(PolicySet::from_toml(&formatted).unwrap().digest(), PolicySet::recommended().unwrap().digest());
    let comments =
        |text: &str| text.lines().filter(|line| line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(comments(&formatted), comments(text));
}

#[test]
fn what_is_no_policy_is_left_as_it_is() {
    let wrong = file("unformatted.toml", "name=\"x\"\n[[rule]]\nid=\"a\"\neffect=\"alow\"\n");
    let fine = file("fine.toml", LOOSE);
    let output = policy(&["fmt", fine.to_str().unwrap(), wrong.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("unknown effect \"alow\""));
    assert_eq!(fs::read_to_string(&fine).unwrap(), LOOSE, "no file is written where one is faulty");
    assert_eq!(policy(&["fmt", "policies/none.json"]).status.code(), Some(2));
}
