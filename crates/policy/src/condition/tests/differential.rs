//! Random programs against the `cel` crate, which shares no code with ours.

use std::collections::HashMap;
use std::sync::Arc;

use cel::objects::{Key, Map as CelMap};
use cel::{Context, Env, Program, Value as Cel};
use serde_json::Value as Json;

use super::Facts;
use super::generate::{EVERY, Random, Writer, facts};
use crate::condition::error::{ConditionError, Problem};
use crate::condition::evaluate::Run;
use crate::condition::parse;
use crate::condition::value::Value;
use crate::condition::{Bindings, Condition};

/// The number of programs; a long run sets it by an environment variable.
fn programs() -> u64 {
    std::env::var("RULEKEEP_CONDITION_PROGRAMS").ok().and_then(|count| count.parse().ok()).unwrap_or(5_000)
}

#[derive(Debug, Default)]
struct Tally {
    values: usize,
    errors: usize,
    refused: usize,
    set_aside: usize,
}

#[test]
fn random_programs_mean_what_the_cel_crate_says() {
    let first = std::env::var("RULEKEEP_CONDITION_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    // The `cel` crate needs more stack than a test thread has.
    let run = move || {
        let env = Arc::new(Env::stdlib());
        let mut tally = Tally::default();
        let mut wrong = Vec::new();
        for seed in first..first + programs() {
            let mut random = Random::new(seed);
            let facts = facts(&mut random);
            let of = EVERY[random.below(EVERY.len())];
            let depth = 1 + random.below(4);
            let source = Writer { random: &mut random, variables: Vec::new() }.expression(of, depth);
            if let Err(report) = compare(&env, &source, &facts, &mut tally) {
                wrong.push(format!("seed {seed}: {report}"));
            }
        }
        (tally, wrong)
    };
    let (tally, wrong) = std::thread::Builder::new().stack_size(512 << 20).spawn(run).unwrap().join().unwrap();
    println!("{tally:?}");
    assert!(wrong.is_empty(), "{} differ, {tally:?}\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n\n"));
    // A generator whose programs mostly fail would compare nothing.
    assert!(tally.values > tally.errors + 10 * (tally.refused + tally.set_aside), "{tally:?}");
}

/// The differences are listed in `docs/reference/policies.md`. If one disappears, the crate has changed: remove it
/// from both lists.
#[test]
fn where_the_cel_crate_differs_it_still_does() {
    let mut facts = Facts::ordinary();
    facts.context.remove("huge");
    let env = Arc::new(Env::stdlib());
    for source in [
        "timestamp('1969-12-31T23:59:58+02:00').getHours() == 21",
        "size([1] + context.nested) == 2",
        "9007199254740993 > 9007199254740992.0",
        r"'\u00e9'.matches('\\w')",
    ] {
        let ours = value_of(source, &facts).unwrap();
        let theirs = Program::compile(source).unwrap().execute(&context(&env, &facts));
        let agree = matches!((&ours, &theirs), (Ok(ours), Ok(theirs)) if same(ours, theirs));
        assert!(!agree, "{source}: ours {ours:?}, cel {theirs:?}");
    }
}

fn compare(env: &Arc<Env>, source: &str, facts: &Facts, tally: &mut Tally) -> Result<(), String> {
    let ours = match value_of(source, facts) {
        Ok(ours) => ours,
        // With known types, this engine refuses at compile time what `cel` fails on, or calls unequal, at run time.
        Err(error) if error.message.contains("does not take") || error.message.starts_with("may take") => {
            tally.refused += 1;
            return Ok(());
        }
        Err(error) => return Err(format!("{source}\n  refused: {error}")),
    };
    let program = Program::compile(source).map_err(|error| format!("{source}\n  does not parse: {error}"))?;
    let theirs = program.execute(&context(env, facts));
    match (&ours, &theirs) {
        (Ok(ours), Ok(theirs)) if same(ours, theirs) => {
            tally.values += 1;
            if let (Value::Bool(true), Ok(held)) = (ours, Condition::compile(source, &Bindings::default())) {
                assert_eq!(Condition::contradiction(Some(&held), None, [&[]; 3]), None, "{source}");
            }
        }
        (Err(_), Err(_)) => tally.errors += 1,
        // The crate appends the keys of a map to a list; CEL has no such operator.
        (Err(Problem::NoOperator { operator: "+", left: "list", right: "map" }), _) => tally.set_aside += 1,
        _ => {
            let ours = ours.map_err(|problem| problem.to_string());
            return Err(format!("{source}\n  ours {ours:?}\n  cel  {theirs:?}\n  over {:?}", facts.context));
        }
    }
    Ok(())
}

/// The value of an expression of any type. A map is read in place from `facts`.
fn value_of<'f>(source: &str, facts: &'f Facts) -> Result<Result<Value<'f>, Problem>, ConditionError> {
    let (typed, _) = parse::parse(source, &[])?;
    // The value may borrow from the tree and the scope, which are leaked because tests are short.
    let (node, scope) = (Box::leak(Box::new(typed.node)), Box::leak(Box::new(facts.scope())));
    Ok(Run::new(scope).value(node, None).map_err(|fault| fault.problem))
}

fn same(ours: &Value<'_>, theirs: &Cel) -> bool {
    match (ours, theirs) {
        (Value::Null, Cel::Null) => true,
        (Value::Bool(ours), Cel::Bool(theirs)) => ours == theirs,
        (Value::Int(ours), Cel::Int(theirs)) => ours == theirs,
        (Value::Double(ours), Cel::Float(theirs)) => ours.total_cmp(theirs).is_eq() || ours.is_nan() && theirs.is_nan(),
        (Value::Text(ours), Cel::String(theirs)) => **ours == ***theirs,
        (Value::Timestamp(ours), Cel::Timestamp(theirs)) => *ours == theirs.timestamp_millis(),
        (Value::Duration(ours), Cel::Duration(theirs)) => *ours == theirs.num_milliseconds(),
        (Value::List(ours), Cel::List(theirs)) => {
            ours.len() == theirs.len()
                && ours.items().zip(theirs.iter()).all(|(ours, theirs)| same(&ours.unwrap(), theirs))
        }
        (Value::Map(ours), Cel::Map(theirs)) => {
            ours.len() == theirs.map.len()
                && ours.iter().all(|(key, ours)| {
                    let theirs = theirs.map.get(&Key::from(key.to_owned()));
                    theirs.is_some_and(|theirs| same(&Value::from_json(ours.json()).unwrap(), theirs))
                })
        }
        _ => false,
    }
}

fn context<'v>(env: &Arc<Env>, facts: &Facts) -> Context<'static, 'v> {
    let mut context = Context::with_env(Arc::clone(env));
    let texts = |texts: Vec<&str>| Cel::List(Arc::new(texts.into_iter().map(Cel::from).collect()));
    let labels = facts.labels.iter().map(rulekeep_types::Label::as_str).collect();
    let groups = facts.groups.iter().map(rulekeep_types::Label::as_str).collect();
    let capabilities = facts.capabilities.iter().map(rulekeep_types::Capability::as_str).collect();
    let map = |entries: Vec<(&str, Cel)>| {
        Cel::Map(CelMap {
            map: Arc::new(entries.into_iter().map(|(key, value)| (Key::from(key.to_owned()), value)).collect()),
        })
    };
    let callers = object(&facts.context);
    let intent = map(vec![
        ("action", Cel::from(facts.action.as_str())),
        ("risk", Cel::from(facts.risk.as_str())),
        ("capabilities", texts(capabilities)),
        ("context", callers.clone()),
    ]);
    let agent = map(vec![
        ("id", Cel::from(facts.agent_id.as_str())),
        ("labels", texts(labels)),
        ("groups", texts(groups)),
        ("attributes", object(&facts.attributes)),
    ]);
    let trust = map(vec![("score", Cel::Int(facts.score.into())), ("tier", Cel::from(facts.tier.as_str()))]);
    let now: chrono::DateTime<chrono::Utc> = facts.now.into();
    for (name, value) in [
        ("context", callers),
        ("intent", intent),
        ("agent", agent),
        ("trust", trust),
        ("now", Cel::Timestamp(now.fixed_offset())),
    ] {
        context.add_variable_from_value(name, value);
    }
    context
}

/// JSON as this engine reads it. Passed unchanged, `cel` would make its integers unsigned.
fn converted(json: &Json) -> Cel {
    match json {
        Json::Null => Cel::Null,
        Json::Bool(value) => Cel::Bool(*value),
        Json::Number(number) => number.as_i64().map_or_else(|| Cel::Float(number.as_f64().unwrap()), Cel::Int),
        Json::String(text) => Cel::from(text.as_str()),
        Json::Array(items) => Cel::List(Arc::new(items.iter().map(converted).collect())),
        Json::Object(map) => object(map),
    }
}

fn object(map: &serde_json::Map<String, Json>) -> Cel {
    let map: HashMap<Key, Cel> = map.iter().map(|(key, value)| (Key::from(key.to_owned()), converted(value))).collect();
    Cel::Map(CelMap { map: Arc::new(map) })
}
