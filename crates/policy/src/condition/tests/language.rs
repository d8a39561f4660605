//! The meaning of each construct: all of these hold in an ordinary request, or fail as stated.

use proptest::prelude::*;
use serde_json::json;

use super::{Bindings, Condition, Facts, holds};

#[test]
fn each_construct_means_what_cel_says() {
    for source in TRUE {
        assert_eq!(holds(source), Ok(true), "{source}");
    }
}

const TRUE: &[&str] = &[
    // Roots.
    "agent.id == 'support-1' && agent.labels == ['support', 'eu'] && agent.groups == ['finance']",
    "agent.attributes.team == 'refunds' && agent.attributes['level'] == 3",
    "intent.action == 'refund_order' && intent.risk == 'HIGH' && intent.capabilities[0] == 'payment:transfer'",
    "intent.context.amount == context.amount && trust.score == 640 && trust.tier >= 'T3'",
    "now == timestamp('2026-01-31T10:30:15+01:00')",
    // Literals.
    "0x1F == 31 && 1e3 == 1000 && .5 == 0.5 && -9223372036854775808 < 0 && - -1 == 1",
    r#"'a\'b' == "a'b" && '\x41\u00e9\U0001F600\101' == 'Aé😀A' && r'\n'.size() == 2 && '\a\b\f\n\r\t\v\\\?\`'.size() == 10"#,
    "'''a\n'b''' == 'a\\n\\'b' && \"\"\"a\"b\"\"\" == 'a\"b' && '' == \"\"",
    "[1, 2,] == [1, 2] && [] == [] && null == context.nothing // the end",
    // Operators, precedence, and chains.
    "1 + 2 * 3 - 4 / 2 % 3 == 5 && (1 + 2) * 3 == 9 && 7 % -3 == 1 && -7 / 2 == -3",
    "1.5 + 1.5 == 3 && 1.0 / 0.0 > 1e300 && 0.0 / 0.0 != 0.0 / 0.0",
    "'a' + 'b' == 'ab' && [1] + [2] == [1, 2]",
    "!false && !!true && !(1 > 2) && false == false == true",
    "1 < 2 && 1 <= 1.0 && 2.5 > 2 && -7 > -7.5 && 'b' >= 'a' && false < true && 9007199254740993 != 9007199254740992.0",
    "true || false && false",
    "(true ? 1 : 2) == 1 && (false ? 1 : true ? 2 : 3) == 2",
    "context.amount == 1500 && context.amount == 1500.0 && context.rate == 1.5 && context.amount != '1500'",
    "'finance' in agent.groups && !('x' in agent.labels) && 'amount' in context && 2 in [1, 2.0] && !(context.amount in context)",
    "context.nested.deep.x == 1 && context['nested']['deep'] == context.nested.deep && context.tags[1] == 'b' && context.tags[context.one] == 'b'",
    "has(context.amount) && !has(context.missing) && has(context.nested.deep) && has(agent.id) && has(context.nothing)",
    // A deciding term outweighs a failing one, on either side.
    "true || context.missing == 1",
    "context.missing == 1 || true",
    "!(false && 1 / 0 > 0) && !(1 / 0 > 0 && false)",
    "!(context.amount && false) && (context.currency || true)",
    "[0, 1].exists(x, 1 / x > 0) && ![0, 2].all(x, 1 / x > 0)",
    // Macros.
    "agent.labels.all(l, l.size() > 1) && agent.labels.exists(l, l == 'eu') && agent.labels.exists_one(l, l == 'eu')",
    "[].all(x, false) && ![].exists(x, true) && ![1, 1].exists_one(x, x == 1)",
    "[1, 2, 3].filter(x, x > 1).map(x, x * 2) == [4, 6] && context.tags.map(t, t == 'a') == [true, false]",
    "agent.labels.all(l, [l].exists(m, m == l)) && context.nested.all(k, k == 'deep') && context.full.all(x, x == 0)",
    // Functions.
    "size('é日') == 2 && size([1]) == 1 && context.size() > 5 && context.currency.size() == 3",
    "intent.action.startsWith('refund') && intent.action.endsWith('order') && intent.action.contains('_')",
    r"agent.id.matches('^support-\\d+$') && !'abc'.matches('^b') && 'a@b.example'.matches(r'^\w+@[\w.]+$')",
    r"!'é'.matches(r'\w') && 'é'.matches(r'^[\W]$') && '\\1'.matches(r'^\\\d$') && ' a'.matches(r'^\s\S$')",
    "int('12') == 12 && int(-1.9) == -1 && int(timestamp('1970-01-01T00:01:00Z')) == 60 && int(context.rate) == 1",
    "double('1.5') == 1.5 && double(context.amount) * 1.5 == 2250.0",
    "string(1) == '1' && string(1.5) == '1.5' && string(true) == 'true' && string('a') == 'a'",
    "string(timestamp('2026-01-31T09:30:00Z')) == '2026-01-31T09:30:00Z' && string(duration('1h')) == '3600s'",
    // Times.
    "now - timestamp(context.when) == duration('30m15s') && now + duration('1h') > now && duration('1h') - duration('60m') == duration('0')",
    "duration('90m').getHours() == 1 && duration('90m').getMinutes() == 90 && now - duration('15s') == timestamp('2026-01-31T09:30:00Z')",
    "now.getFullYear() == 2026 && now.getMonth() == 0 && now.getDate() == 31 && now.getDayOfMonth() == 30",
    "now.getDayOfWeek() == 6 && now.getHours() == 9 && now.getMinutes() == 30 && now.getSeconds() == 15",
    "now.getDayOfYear() == 30 && timestamp('2026-12-31T00:00:01.25Z').getMilliseconds() == 250",
    "now.getHours('Europe/Berlin') == 10 && now.getMinutes('Asia/Kathmandu') == 15 && now.getHours('UTC') == 9",
    "timestamp('2026-07-01T22:30:00Z').getDate('Europe/Berlin') == 2 && timestamp('2026-03-29T01:00:00Z').getHours('Europe/Berlin') == 3",
    "now.getHours('+02:00') == 11 && now.getHours('02:00') == 11 && now.getMinutes('-09:45') == 45 && now.getDayOfWeek('-23:59') == 5",
    "now.getHours('Europe/' + (context.currency == 'EUR' ? 'Berlin' : 'London')) == 10",
    // The getters count in UTC whatever the literal's offset is; the `cel` crate counts in that offset.
    "timestamp('1969-12-31T23:59:58+02:00').getHours() == 21",
    // A literal that does not look like a name: fields may be reserved words.
    "!has(context.package) && !('in' in context)",
];

#[test]
fn what_fails_says_what_where_and_of_which_types_but_no_value() {
    for (source, expected) in [
        ("context.missing == 1", r#"no such key (test it with has(...) first) at byte 8, "missing == 1""#),
        ("context.nested.no.x == 1", r#"no such key (test it with has(...) first) at byte 15, "no.x == 1""#),
        ("has(context.no.x)", r#"no such key (test it with has(...) first) at byte 12, "no.x)""#),
        ("has(context.amount.x)", r#"expected map, found int at byte 19, "x)""#),
        ("context.tags[2] == 'c'", r#"no such index in the list at byte 12, "[2] == 'c'""#),
        ("context.tags[-1] == 'c'", r#"no such index in the list at byte 12, "[-1] == 'c'""#),
        ("context.tags['a'] == 'c'", r#"expected int, found string at byte 12, "['a'] == 'c'""#),
        ("context.tags[context.rate] == 'c'", r#"expected int, found double at byte 12, "[context.rate] == 'c'""#),
        ("context.secret > 1", r#"> does not take string and int at byte 15, "> 1""#),
        (
            "context.rate + 1 > 1",
            r#"+ does not take double and int (convert with int(...) or double(...)) at byte 13, "+ 1 > 1""#,
        ),
        ("context.secret", r#"expected bool, found string at byte 8, "secret""#),
        ("context.secret || false", r#"expected bool, found string at byte 8, "secret || false""#),
        ("!context.secret", r#"expected bool, found string at byte 9, "secret""#),
        ("context.huge > 1", r#"an integer does not fit 64 bits at byte 8, "huge > 1""#),
        ("trust.score / 0 == 1", r#"division by zero at byte 12, "/ 0 == 1""#),
        ("trust.score % 0 == 1", r#"division by zero at byte 12, "% 0 == 1""#),
        (
            "trust.score * 9223372036854775807 > 1",
            r#"the result is out of range at byte 12, "* 9223372036854775807 > 1""#,
        ),
        ("-9223372036854775808 / -1 == 1", r#"the result is out of range at byte 21, "/ -1 == 1""#),
        ("-(-9223372036854775808) == 1", r#"the result is out of range at byte 0, "-(-9223372036854775808) == 1""#),
        ("int(1e300) == 1", r#"the result is out of range at byte 0, "int(1e300) == 1""#),
        ("int(context.secret) == 1", r#"the text is not a valid int at byte 0, "int(context.secret) == 1""#),
        (
            "timestamp(context.secret) < now",
            r#"the text is not a valid timestamp at byte 0, "timestamp(context.secret) < now""#,
        ),
        (
            "now.getHours(context.currency) == 1",
            r#"the text is not a valid time zone at byte 4, "getHours(context.currency) == 1""#,
        ),
        (
            "now.getHours('+' + context.currency) == 1",
            r#"the text is not a valid time zone at byte 4, "getHours('+' + context.currency) == 1""#,
        ),
        ("context.amount.getHours('UTC') == 1", r#"expected timestamp, found int at byte 15, "getHours('UTC') == 1""#),
        ("now + duration('200000h') * 1 > now", "at byte 26: * does not take duration and int"),
        ("context.many.all(x, x == 0)", r#"more than 256 items at byte 13, "all(x, x == 0)""#),
        (
            "context.tags.all(x, size(x + x) > 0)",
            r#"expected a number or a time inside a macro, found string at byte 27, "+ x) > 0)""#,
        ),
        ("context.long.matches('b')", r#"matches reads at most 4096 bytes at byte 13, "matches('b')""#),
        ("0.0 / 0.0 < 1", r#"NaN cannot be compared at byte 10, "< 1""#),
        ("context.tags in context", r#"expected string, found list at byte 13, "in context""#),
        ("[1, 0].exists_one(x, 1 / x > 0)", r#"division by zero at byte 23, "/ x > 0)""#),
        ("[1, 0].filter(x, 1 / x > 0) == []", r#"division by zero at byte 19, "/ x > 0) == []""#),
        ("context.secret.all(x, true)", r#"expected list or map, found string at byte 15, "all(x, true)""#),
    ] {
        let error = holds(source).unwrap_err();
        assert_eq!(error, expected, "{source}");
        assert!(!error.contains("hunter2"));
    }
}

#[test]
fn bindings_are_values_by_name_and_may_use_earlier_ones() {
    let mut bindings = Bindings::default();
    bindings.add("limit", "trust.score * 2").unwrap();
    bindings.add("above", "context.amount > limit && now > timestamp('2020-01-01T00:00:00Z')").unwrap();
    bindings.add("broken", "context.missing + limit").unwrap();
    let above = Condition::compile("above && [1].all(x, limit > x)", &bindings).unwrap();
    assert_eq!(above.evaluate(&Facts::ordinary().scope()), Ok(true));
    assert_eq!(above.context_keys(), [Box::from("amount")]);
    assert!(above.reads_now());
    let broken = Condition::compile("broken > 1", &bindings).unwrap();
    let error = broken.evaluate(&Facts::ordinary().scope()).unwrap_err().to_string();
    assert_eq!(error, r#"no such key (test it with has(...) first) at byte 8, "missing + limit" of "broken""#);
    assert!(!Condition::compile("limit > 1", &bindings).unwrap().reads_now());
}

#[test]
fn what_a_condition_reads_and_costs_is_known() {
    let source =
        "context.b > 1 && 'a' in context && context['c'] == 2 && has(intent.context.d) && context[agent.id] == 1";
    let condition = Condition::compile(source, &Bindings::default()).unwrap();
    assert_eq!(condition.source(), source);
    assert_eq!(condition.context_keys(), ["a", "b", "c", "d"].map(Box::from));
    assert!(!condition.reads_now());
    let cost = |source| Condition::compile(source, &Bindings::default()).unwrap().cost();
    assert_eq!(cost("trust.score > 1"), 3);
    assert_eq!(cost("agent.labels.all(l, l == 'a')"), 2 + 256 * 3);
    assert_eq!(cost("['a', 'b'].all(l, l == agent.id)"), 2 + 2 * 3);
    assert_eq!(cost("1 + 1 == 2"), 1);
}

#[test]
fn what_no_input_can_change_is_constant() {
    for (source, expected) in [
        ("1 + 1 == 2", Some(true)),
        ("false && context.amount > 1", Some(false)),
        ("context.amount > 1 || true", Some(true)),
        ("[1, 2].all(x, x > 1)", Some(false)),
        ("true ? 'a' in ['a'] : context.flag", Some(true)),
        ("has(agent.id)", Some(true)),
        ("context.amount > 1", None),
        ("true && context.flag", None),
        ("1 / 0 == 1", None),
    ] {
        assert_eq!(Condition::compile(source, &Bindings::default()).unwrap().constant(), expected, "{source}");
    }
}

#[test]
fn a_dyn_result_is_asked_for_its_truth_even_beside_constants() {
    let mut facts = Facts::ordinary();
    let condition = Condition::compile("true && context.flag", &Bindings::default()).unwrap();
    assert_eq!(condition.evaluate(&facts.scope()), Ok(true));
    facts.context.insert("flag".to_owned(), json!("yes"));
    assert!(condition.evaluate(&facts.scope()).is_err());
}

/// Comparisons of a few subjects with values that are close to each other, joined by the logical operators.
fn comparisons() -> impl Strategy<Value = String> {
    let subjects =
        ["trust.score", "context.n", "now.getHours('Asia/Kathmandu')", "double(context.n)", "has(context.n)"];
    let values = ["0", "1", "2", "2.5", "23", "1000", "'a'", "'b'", "true", "null"];
    let relations = ["==", "!=", "<", "<=", ">", ">="];
    let term = (0..subjects.len(), 0..relations.len(), 0..values.len()).prop_map(move |(subject, relation, value)| {
        format!("{} {} {}", subjects[subject], relations[relation], values[value])
    });
    term.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            3 => (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("({left}) && ({right})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("({left}) || ({right})")),
            1 => inner.prop_map(|inner| format!("!({inner})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn no_condition_that_holds_is_taken_for_a_contradiction(
        sources in prop::collection::vec(comparisons(), 1..3), score in 0_u16..=3, n in 0..12, seconds in 0_i64..200_000,
    ) {
        let mut facts = Facts::ordinary();
        facts.score = if score == 3 { 1_000 } else { score };
        facts.now = rulekeep_types::Timestamp::from_millis(seconds * 1_000);
        let values = json!([0, 1, 2, 1.5, 2.5, 3, 24, "a", "aa", true, null]);
        facts.context.extend(values.get(usize::try_from(n).unwrap()).map(|value| ("n".to_owned(), value.clone())));
        let compiled: Vec<_> = sources.iter().flat_map(|source| Condition::compile(source, &Bindings::default())).collect();
        let [Some(when), unless] = [compiled.first(), compiled.get(1)] else { return Ok(()) };
        let holds = when.evaluate(&facts.scope()) == Ok(true)
            && unless.is_none_or(|unless| unless.evaluate(&facts.scope()) == Ok(false));
        let found = Condition::contradiction(Some(when), unless, [&["T3"], &["HIGH"], &["support-1"]]);
        prop_assert!(!holds || found.is_none(), "{sources:?}: {found:?}");
    }
}
