//! Sources refused at compile time, with the place and the message.

use super::{Bindings, ConditionError, refusal};

#[test]
fn what_is_refused_has_a_place_and_says_what_was_expected() {
    for (source, at, message) in REFUSED {
        let error = refusal(source);
        assert_eq!((error.at, error.message.as_str()), (*at, *message), "{source}");
    }
}

const REFUSED: &[(&str, usize, &str)] = &[
    // Names.
    ("contxt.amount > 1", 0, r#"unknown name "contxt"; did you mean "context"?"#),
    ("agent.lables == []", 6, r#""agent" has no field "lables"; did you mean "labels"?"#),
    (
        "agent == 1",
        0,
        r#""agent" is not a value by itself; use agent.id, agent.labels, agent.groups, agent.attributes"#,
    ),
    ("agent.id.startswith('a')", 9, r#"unknown function "startswith"; did you mean "startsWith"?"#),
    ("siz(agent.id) > 1", 0, r#"unknown function "siz"; did you mean "size"?"#),
    ("startsWith(agent.id, 'a')", 0, r#""startsWith" follows a value: x.startsWith(...)"#),
    ("agent.id.int() == 1", 9, r#""int" does not follow a value: int(...)"#),
    ("size > 1", 0, r#""size" is a function: size(...)"#),
    ("while > 1", 0, r#""while" is a reserved word"#),
    ("agent.labels.all(now, true)", 17, r#""now" already means something else"#),
    ("[1].all(x, [2].all(x, true))", 19, r#""x" already means something else"#),
    ("[1].all(x, true) && x == 1", 20, r#"unknown name "x""#),
    // Types.
    ("1", 0, "a condition is true or false; this is int"),
    ("agent.id", 0, "a condition is true or false; this is string"),
    ("agent.id == 5", 9, "== does not take string and int"),
    ("agent.labels == [1]", 13, "== does not take list<string> and list<int>"),
    ("now > 5", 4, "> does not take timestamp and int"),
    ("agent.labels < agent.groups", 13, "< does not take list<string> and list<string>"),
    ("trust.score + 1.5 > 2.0", 12, "+ does not take int and double; convert with int(...) or double(...)"),
    ("1.5 % 2.0 == 0.0", 4, "% does not take double and double"),
    ("now + now == now", 4, "+ does not take timestamp and timestamp"),
    ("-agent.id == 'a'", 0, "- takes int or double, not string"),
    ("!agent.id", 7, "expected bool, found string"),
    ("true && trust.score", 14, "expected bool, found int"),
    ("5 in agent.labels", 2, "in does not take int and list<string>"),
    ("5 in context", 2, "in does not take int and map<string, dyn>"),
    ("'a' in agent.id", 4, "in does not take string and string"),
    ("agent.labels['a'] == 'a'", 13, "expected int, found string"),
    ("agent.id[0] == 'a'", 8, "string has no items"),
    ("agent.id.x == 'a'", 9, r#"string has no field "x""#),
    ("trust.score ? true : false", 6, "expected bool, found int"),
    ("(true ? 1 : 'a') == 1", 6, "? gives int or string; both have to be of one type"),
    (
        "agent.labels.contains('a')",
        13,
        "contains takes two strings, not list<string> and string; for a list, write: item in list",
    ),
    ("agent.id.contains(1)", 9, "contains takes two strings, not string and int"),
    ("agent.id.contains()", 9, "contains takes 1 arguments here, found 0"),
    ("size(1) == 1", 0, "size does not take int"),
    ("agent.id.getHours() == 1", 9, "getHours does not take string"),
    ("now.getHours('Europe/Berln') == 1", 13, r#""Europe/Berln" is not a time zone; did you mean "Europe/Berlin"?"#),
    (
        "now.getHours('+24:00') == 1",
        13,
        r#""+24:00" is not a time zone; expected a name such as "Europe/Berlin", or "+02:00""#,
    ),
    (
        "now.getHours('+-1:00') == 1",
        13,
        r#""+-1:00" is not a time zone; expected a name such as "Europe/Berlin", or "+02:00""#,
    ),
    ("now.getHours('') == 1", 13, r#""" is not a time zone; expected a name such as "Europe/Berlin", or "+02:00""#),
    ("now.getHours(2) == 1", 13, "expected string, found int"),
    ("now.getHours('UTC', 'UTC') == 1", 4, "getHours takes 1 arguments here, found 2"),
    ("duration('1h').getHours('UTC') == 1", 15, "getHours takes a time zone only of a timestamp, not of duration"),
    ("duration('1h').getMonth() == 1", 15, "getMonth does not take duration"),
    ("[1].filter(x, x) == []", 14, "expected bool, found int"),
    ("trust.score.all(x, true)", 12, "int has no items to iterate over"),
    (
        "has(agent)",
        4,
        r#""agent" is not a value by itself; use agent.id, agent.labels, agent.groups, agent.attributes"#,
    ),
    ("has(context['a'])", 0, "has takes a field: has(context.amount)"),
    ("has(context)", 0, "has takes a field: has(context.amount)"),
    // Literals and patterns.
    ("agent.id.matches(agent.id)", 23, "matches takes a literal pattern"),
    ("agent.id.matches('(')", 17, "the pattern is not a regular expression that runs in linear time"),
    ("agent.id.matches('((a{100}){100}){10}')", 17, "the pattern needs more than 65536 bytes"),
    ("now > timestamp('2026-01-31')", 6, r#"timestamp expects a timestamp such as "2026-01-31T09:30:00Z""#),
    (
        "now - duration('1 day') > now",
        6,
        r#"duration expects a duration such as "1h30m" (h, m, s, ms, us, ns; a day is 24h), in whole milliseconds"#,
    ),
    ("9223372036854775808 > 1", 0, "the integer does not fit 64 bits"),
    ("-9223372036854775809 > 1", 0, "the integer does not fit 64 bits"),
    ("1u == 1", 0, r#"unsigned integers are not supported; leave the "u" off"#),
    ("b'a' == 'a'", 0, "bytes literals are not supported"),
    ("1e999 > 1", 0, "the number is out of the range of a double"),
    ("12abc > 1", 2, "a name directly after a number"),
    (r"'\q' == 'a'", 1, r"an unknown escape; a backslash itself is written \\"),
    (r"'\ud800' == 'a'", 1, "expected an escape of 4 digits for a character"),
    ("'abc", 0, "a string without its closing quote"),
    ("'a\nb' == 'c'", 0, "a string without its closing quote on the same line"),
    ("{'a': 1} == context", 0, "map literals are not supported"),
    // Grammar.
    ("", 0, "expected a value, found the end"),
    ("1 +", 3, "expected a value, found the end"),
    ("(true", 5, r#"expected ")", found the end"#),
    ("true true", 5, r#"expected an operator or the end, found "true""#),
    ("context. == 1", 9, r#"expected the name of a field, found "==""#),
    ("context.in == 1", 8, r#"expected the name of a field, found "in""#),
    ("context.amount = 1", 15, "unexpected '=' (U+003D); equality is =="),
    ("true & true", 5, "unexpected '&' (U+0026); and is &&"),
    // Characters that are not what they look like.
    ("аgent.id == 'a'", 0, "unexpected 'а' (U+0430); names are ASCII letters, digits and _"),
    ("agent.id == 'a\u{202e}b'", 14, "the invisible character U+202E; in a string write it as an escape"),
    ("true // \u{2066}", 8, "the invisible character U+2066; in a string write it as an escape"),
    ("agent.id\u{200b} == 'a'", 8, "the invisible character U+200B; in a string write it as an escape"),
    ("true\u{0}", 4, "the invisible character U+0000; in a string write it as an escape"),
    // Cost.
    ("[1].all(x, [1].all(y, [1].all(z, x + y + z > 0)))", 4, "macros are nested more than 2 deep"),
    (
        "agent.labels.all(x, agent.groups.all(y, x == y))",
        13,
        "may take 197122 steps, and 100000 are allowed; each list counts as 256 items",
    ),
    (
        "agent.labels.map(x, x + x) == []",
        22,
        "strings and lists cannot be concatenated inside a macro, where they could grow without bound",
    ),
];

#[test]
fn a_binding_has_a_new_name_and_a_source_that_compiles() {
    let mut bindings = Bindings::default();
    bindings.add("limit", "100").unwrap();
    let mut refused = |name: &str, source: &str| bindings.add(name, source).unwrap_err();
    let error = |at, message: &str| ConditionError { at, message: message.to_owned() };
    assert_eq!(refused("limit", "1"), error(0, r#""limit" already means something else"#));
    assert_eq!(refused("now", "1"), error(0, r#""now" already means something else"#));
    assert_eq!(refused("in", "1"), error(0, r#""in" is a reserved word"#));
    assert_eq!(refused("size", "1"), error(0, r#""size" is a reserved word"#));
    assert_eq!(refused("líмit", "1"), error(0, r#"a name is at most 64 ASCII letters, digits and _, found "líмit""#));
    assert_eq!(refused("other", "limt + 1"), error(0, r#"unknown name "limt"; did you mean "limit"?"#));
    assert_eq!(refused("other", "[1].all(limit, true)"), error(8, r#""limit" already means something else"#));
}

#[test]
fn the_cost_and_the_depth_of_bindings_count_where_they_are_used() {
    let mut bindings = Bindings::default();
    bindings.add("b0", "agent.labels.exists(l, l == agent.id)").unwrap();
    let mut refused = None;
    for step in 1..40 {
        let source = format!("b{} && !b{}", step - 1, step - 1);
        if let Err(error) = bindings.add(&format!("b{step}"), &source) {
            refused = Some((step, error.message));
            break;
        }
    }
    let (step, message) = refused.unwrap();
    assert!(step < 10 && message.starts_with("may take "), "{step}: {message}");

    let mut bindings = Bindings::default();
    bindings.add("b0", "context.flag").unwrap();
    let deepest = (1..60).find(|step| bindings.add(&format!("b{step}"), &format!("!b{}", step - 1)).is_err());
    assert!(deepest.is_some_and(|step| step < 32), "{deepest:?}");
}

#[test]
fn words_of_a_closed_list_are_not_mistaken() {
    for (source, said) in [
        ("intent.risk < 'HIGH'", "without an order"),
        ("'LOW' <= intent.risk", "without an order"),
        ("intent.risk == 'SEVERE'", "expected one of LOW, MEDIUM, HIGH, CRITICAL"),
        ("intent.risk in ['LOW', 'high']", "did you mean \"HIGH\""),
        ("trust.tier == 'T9'", "is not one of its values"),
        ("trust.tier >= 'T33'", "is not one of its values"),
    ] {
        let error = crate::condition::Condition::compile(source, &crate::condition::Bindings::default()).unwrap_err();
        assert!(error.message.contains(said), "{source}: {}", error.message);
    }
    for source in ["intent.risk in ['LOW', 'MEDIUM']", "trust.tier >= 'T3'", "intent.risk != 'LOW'"] {
        assert!(
            crate::condition::Condition::compile(source, &crate::condition::Bindings::default()).is_ok(),
            "{source}"
        );
    }
}
