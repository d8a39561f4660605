//! Hostile sources: each ends in a condition or a refusal on the 2 MiB default stack of a thread, and every compiled
//! condition evaluates quickly.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::{Bindings, Condition, Facts, MAX_SOURCE_BYTES};

/// Compiles, evaluates and drops a source on a thread with the default stack. Returns whether it compiled.
fn survives(source: &str) -> bool {
    let source = source.to_owned();
    let run = move || {
        let condition = Condition::compile(&source, &Bindings::default());
        condition.is_ok_and(|condition| {
            let _ = condition.evaluate(&Facts::ordinary().scope());
            true
        })
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap()
}

#[test]
fn deep_and_long_sources_end_in_a_condition_or_a_refusal() {
    let shapes = [
        ("", "(", "", ""),
        ("", "(", "true", ")"),
        ("", "!", "true", ""),
        ("", "-", "1", ""),
        ("", "[", "", ""),
        ("", "[", "1", "]"),
        ("context", ".a", "", ""),
        ("context", "[0]", "", ""),
        ("context", "['a']", "", ""),
        ("1", "+1", "", ""),
        ("1", "*1", "", ""),
        ("trust.score", "+trust.score", "", ""),
        ("1", "-1", "", ""),
        ("true", "&&true", "", ""),
        ("context.a", "||context.a", "", ""),
        ("context.a", "&&context.a||context.b", "", ""),
        ("1", "==1", "", ""),
        ("context", "==context", "", ""),
        ("'a'", " in context", "", ""),
        ("true", "?true:true", "", ""),
        ("", "context.a?true:", "true", ""),
        ("", "true?", "true", ":true"),
        ("", "has(", "context.a", ")"),
        ("", "size(", "'a'", ")"),
        ("", "int(", "context.a", ")"),
        ("[1]", ".map(x,x)", "", ""),
        ("", "[1].all(x,", "true", ")"),
        ("context.a", ".filter(x, true)", "", ""),
        ("", "context[", "'a'", "]"),
        ("'", "a", "", "'"),
        ("", "'a'+", "'a'", ""),
        ("", "[", "1", "]+[1]"),
        ("", "a,", "", ""),
        ("", "{", "", "}"),
        ("", "\"", "", ""),
        ("", "\\", "", ""),
        ("", "'''", "", ""),
        ("", "//", "", ""),
        ("", ".", "", ""),
        ("", "é", "", ""),
        ("", "0", "", ""),
        ("", "1e", "", ""),
        ("", "0x", "", ""),
        ("", "agent.id.matches('(a|b)*') && ", "true", ""),
        ("", "!(", "true", ")"),
        ("", "-(", "1", ")"),
        ("", "(trust.score+1*(", "1", "))"),
        ("", "(context.a && (true || (", "context.a", ")))"),
    ];
    for (before, opening, middle, closing) in shapes {
        for times in [1, 2, 8, 15, 16, 30, 31, 32, 33, 64, 500, 1_000, 2_000, 4_000, 10_000] {
            let source = format!("{before}{}{middle}{}", opening.repeat(times), closing.repeat(times));
            let compiled = survives(&source);
            assert!(!compiled || source.len() <= MAX_SOURCE_BYTES);
        }
    }
}

#[test]
fn a_flat_chain_of_a_thousand_signs_is_no_depth() {
    for (first, next) in [("1", "+1"), ("trust.score", "+1"), ("true", "&&true")] {
        let times = if next.len() > 2 { 500 } else { 990 };
        let source = format!("{first}{}", next.repeat(times));
        let source = if next == "+1" { format!("{source}>0") } else { source };
        assert!(survives(&source), "{source}");
    }
    assert!(survives(&format!("context.a{}", "||context.a".repeat(370))));
}

#[test]
fn the_deepest_tree_that_is_accepted_evaluates_on_a_small_stack() {
    // Each level uses as many frames as a level can: a ternary in a call in a macro's range.
    for (opening, middle, closing) in [
        ("!(", "context.flag", ")"),
        ("size([", "context.flag", "])"),
        ("int(", "context.amount", ")"),
        ("(context.flag ? [", "1", "] : [])"),
        ("-(1 + ", "context.amount", ")"),
        ("[", "context.amount", "].map(x, x)"),
    ] {
        let deepest = (1..40).rev().find(|times| {
            survives(&format!(
                "{}{middle}{} == context.nothing || true",
                opening.repeat(*times),
                closing.repeat(*times)
            ))
        });
        assert!(deepest.is_some_and(|times| times >= 8), "{opening} {deepest:?}");
    }
}

#[test]
fn the_dearest_conditions_that_are_accepted_end_soon() {
    let mut facts = Facts::ordinary();
    facts.context.insert("texts".to_owned(), json!(vec!["a".repeat(250); 256]));
    facts.context.insert("text".to_owned(), json!("a".repeat(60_000)));
    let mut bindings = Bindings::default();
    bindings.add("doubled", "context.text + context.texts[0]").unwrap();
    for source in [
        "context.full.all(x, context.full.all(y, context.texts == context.texts))",
        "context.texts.all(x, context.texts.exists(y, x < y))",
        "context.full.all(x, context.text.contains('ab') || true)",
        "context.full.map(x, context.full.map(y, doubled)) == []",
        "[doubled].map(x, context.full.map(b, [x, x, x, x, x, x, x, x])) == []",
        "context.texts.all(x, x.matches('^(a?){50}a{50}$'))",
        "context.full.map(x, string(1e300)) == []",
    ] {
        let condition = match Condition::compile(source, &bindings) {
            Ok(condition) => condition,
            Err(error) => {
                assert!(error.message.starts_with("may take"), "{source}: {error}");
                continue;
            }
        };
        let started = std::time::Instant::now();
        let _ = condition.evaluate(&facts.scope());
        // The bound is loose on purpose: unbounded evaluation would take hours.
        assert!(started.elapsed() < Duration::from_secs(60), "{source}");
    }
}

const WORDS: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ".",
    ",",
    "?",
    ":",
    "!",
    "-",
    "+",
    "*",
    "/",
    "%",
    "&&",
    "||",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "in",
    "true",
    "false",
    "null",
    "1",
    "2.5",
    "0x1f",
    "'a'",
    "\"b\"",
    "r'c'",
    "'''",
    "context",
    "agent",
    "intent",
    "trust",
    "now",
    "id",
    "labels",
    "amount",
    "tags",
    "x",
    "y",
    "has",
    "size",
    "int",
    "double",
    "string",
    "timestamp",
    "duration",
    "all",
    "exists",
    "exists_one",
    "filter",
    "map",
    "matches",
    "contains",
    "startsWith",
    "getHours",
    "\\",
    "é",
    "\u{202e}",
    " ",
    "//",
    "\n",
    "9223372036854775808",
    "'1h'",
    "agent.labels",
    "context.amount",
    "x,",
    ".all(x,",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_string_of_tokens_makes_it_panic(words in prop::collection::vec(prop::sample::select(WORDS), 0..24)) {
        for source in [words.concat(), words.join(" ")] {
            match Condition::compile(&source, &Bindings::default()) {
                Ok(condition) => {
                    let facts = Facts::ordinary();
                    let result = condition.evaluate(&facts.scope());
                    prop_assert_eq!(&result, &condition.evaluate(&facts.scope()));
                    if let Some(constant) = condition.constant() {
                        prop_assert_eq!(result, Ok(constant));
                    }
                }
                Err(error) => prop_assert!(source.is_char_boundary(error.at) && error.at <= source.len()),
            }
        }
    }

    #[test]
    fn no_text_makes_it_panic(source in any::<String>()) {
        if let Err(error) = Condition::compile(&source, &Bindings::default()) {
            prop_assert!(source.is_char_boundary(error.at));
            prop_assert!(!error.message.contains('\n'));
        }
    }
}
