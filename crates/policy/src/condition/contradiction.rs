//! Finds conditions that no request can meet although no part of them is constant, such as `now.getMonth() == 12`, or
//! two bounds with nothing between them. What it cannot follow it takes for possible.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::names::{self, Method};
use super::tree::{Function, Kind, Node, Part, Relation, Root};
use super::value::{List, Value, Work, order, whole};

/// A comparison of a subject with constants: with one of them for `==`, with each for the other relations.
#[derive(Debug, Clone)]
pub(super) struct Literal<'n> {
    subject: Subject,
    relation: Relation,
    values: Vec<Value<'n>>,
}

/// An expression of one value that depends on the request, known by its text.
#[derive(Debug, Clone)]
struct Subject {
    text: String,
    /// The range of its values if they are whole numbers.
    whole: Option<(i64, i64)>,
    /// The keys that have to exist for it to have a value.
    keys: Vec<String>,
}

impl<'n> Literal<'n> {
    /// States that a name has one of some words.
    pub(super) fn word(root: Root, words: impl IntoIterator<Item = &'n str>) -> Self {
        let values = words.into_iter().map(Value::text).collect();
        Self { subject: Subject::new(root.written()), relation: Relation::Equal, values }
    }

    fn holds(&self, found: &Value<'_>) -> bool {
        let is = |value: &Value<'_>| Work::new().equal(found, value).unwrap_or(true);
        match self.relation {
            Relation::Equal => self.values.iter().any(is),
            Relation::Unequal => !self.values.iter().any(is),
            relation => self.values.iter().all(|value| order(found, value).is_ok_and(|order| relation.fits(order))),
        }
    }
}

impl Subject {
    fn new(text: String) -> Self {
        Self { text, whole: None, keys: Vec::new() }
    }

    fn of(node: &Node) -> Option<Self> {
        let called = |of: &Node, name: &str, argument: &str, whole| {
            let of = Self::of(of)?;
            Some(Self { text: format!("{}.{name}({argument})", of.text), whole, keys: of.keys })
        };
        match &node.kind {
            Kind::Root(Root::Score) => Some(Self { whole: Some((0, 1_000)), ..Self::new(Root::Score.written()) }),
            Kind::Root(root) => Some(Self::new(root.written())),
            Kind::Binding(_, named) => Self::of(named),
            Kind::Field(of, key) => {
                let of = Self::of(of)?;
                let text = format!("{}.{key}", of.text);
                Some(Self { keys: of.keys.into_iter().chain([text.clone()]).collect(), text, whole: None })
            }
            Kind::Call(function @ Function::Part(part), of) => {
                // A duration has more hours than a day.
                let is_time = matches!(of.kind, Kind::Root(Root::Now) | Kind::Call(Function::ToTimestamp, _));
                let range = if is_time { part.range() } else { (i64::MIN, i64::MAX) };
                called(of, function.written(), "", Some(range))
            }
            Kind::Call(function @ Function::Size, of) => called(of, function.written(), "", Some((0, i64::MAX))),
            Kind::Call(function, of) => {
                let of = Self::of(of)?;
                let whole = (*function == Function::ToInt).then_some((i64::MIN, i64::MAX));
                Some(Self { text: format!("{}({})", function.written(), of.text), whole, keys: of.keys })
            }
            Kind::PartIn(part, parts) => {
                let [of, zone] = &**parts;
                let Kind::Constant(Value::Text(zone)) = &zone.kind else { return None };
                called(of, Function::Part(*part).written(), &format!("{:?}", &**zone), Some(part.range()))
            }
            _ => None,
        }
    }
}

/// A value that no request has, if none meets one of the alternatives.
pub(super) fn contradiction(alternatives: &[Vec<Literal<'_>>]) -> Option<String> {
    let reasons: Option<Vec<String>> = alternatives.iter().map(|literals| conflict(literals)).collect();
    reasons?.into_iter().next()
}

/// The ways to make an expression true, or false: in each, all comparisons hold.
pub(super) fn alternatives(node: &Node, wanted: bool) -> Vec<Vec<Literal<'_>>> {
    match &node.kind {
        Kind::Constant(Value::Bool(truth)) if *truth != wanted => Vec::new(),
        Kind::Binding(_, named) => alternatives(named, wanted),
        Kind::Not(inner) => alternatives(inner, !wanted),
        Kind::And(terms) | Kind::Or(terms) => {
            let each = terms.iter().map(|term| alternatives(term, wanted));
            if matches!(node.kind, Kind::And(_)) == wanted {
                each.fold(vec![Vec::new()], |all, each| together(all, &each))
            } else {
                bounded(each.flatten().collect())
            }
        }
        Kind::Compare(relation, sides) => {
            let [left, right] = &**sides;
            let relation = if wanted { *relation } else { relation.negated() };
            one(compared(left, relation, right).or_else(|| compared(right, relation.turned(), left)))
        }
        Kind::In(sides) => one(match &**sides {
            [item, Node { kind: Kind::Constant(Value::List(List::Built(items))), .. }] => {
                Subject::of(item).map(|subject| {
                    let relation = if wanted { Relation::Equal } else { Relation::Unequal };
                    Literal { subject, relation, values: items.iter().map(Value::borrowed).collect() }
                })
            }
            _ => None,
        }),
        Kind::Has(of, key) => one(Subject::of(of).map(|of| existence(&format!("{}.{key}", of.text), wanted))),
        _ => one(Subject::of(node).map(|subject| Literal {
            subject,
            relation: Relation::Equal,
            values: vec![Value::Bool(wanted)],
        })),
    }
}

fn one(literal: Option<Literal<'_>>) -> Vec<Vec<Literal<'_>>> {
    vec![literal.into_iter().collect()]
}

/// The ways to make two expressions true. Where they are too many, the first expression alone: it says less.
pub(super) fn together<'n>(left: Vec<Vec<Literal<'n>>>, right: &[Vec<Literal<'n>>]) -> Vec<Vec<Literal<'n>>> {
    if left.len().saturating_mul(right.len()) > MAX_ALTERNATIVES {
        return left;
    }
    let both = |one: &Vec<Literal<'n>>, other: &[Literal<'n>]| {
        one.iter().chain(other).take(MAX_LITERALS).cloned().collect::<Vec<_>>()
    };
    left.iter().flat_map(|one| right.iter().map(move |other| both(one, other))).collect()
}

fn bounded(alternatives: Vec<Vec<Literal<'_>>>) -> Vec<Vec<Literal<'_>>> {
    if alternatives.len() > MAX_ALTERNATIVES { vec![Vec::new()] } else { alternatives }
}

fn compared<'n>(subject: &Node, relation: Relation, value: &'n Node) -> Option<Literal<'n>> {
    match &value.kind {
        Kind::Binding(_, named) => compared(subject, relation, named),
        Kind::Constant(value) => {
            Some(Literal { subject: Subject::of(subject)?, relation, values: vec![value.borrowed()] })
        }
        _ => None,
    }
}

fn existence(key: &str, exists: bool) -> Literal<'static> {
    let subject = Subject::new(format!("has({key})"));
    Literal { subject, relation: Relation::Equal, values: vec![Value::Bool(exists)] }
}

/// Names a subject for which no value meets all comparisons with it.
fn conflict(literals: &[Literal<'_>]) -> Option<String> {
    let implied: Vec<Literal<'_>> =
        literals.iter().flat_map(|literal| &literal.subject.keys).map(|key| existence(key, true)).collect();
    let mut subjects: BTreeMap<&str, Vec<&Literal<'_>>> = BTreeMap::new();
    for literal in literals.iter().chain(&implied) {
        subjects.entry(&literal.subject.text).or_default().push(literal);
    }
    subjects.into_iter().find_map(|(text, literals)| {
        let range = literals.iter().find_map(|literal| literal.subject.whole);
        let is_in_range = |value: &Value<'_>| match (value, range) {
            (Value::Int(value), Some((least, most))) => (least..=most).contains(value),
            (_, range) => range.is_none(),
        };
        // Between two constants nothing changes, so their neighbors stand for all values.
        let values = literals.iter().flat_map(|literal| &literal.values);
        let ends = range.into_iter().flat_map(|(least, most)| [Value::Int(least), Value::Int(most)]);
        let others = [Value::Null, Value::Bool(true), Value::text(""), Value::Int(0)];
        let mut candidates = values.flat_map(neighbors).chain(ends).chain(others).filter(is_in_range);
        let is_possible = candidates.any(|value| literals.iter().all(|literal| literal.holds(&value)));
        (!is_possible).then(|| match range.filter(|(_, most)| *most < i64::MAX) {
            Some((least, most)) => format!("{text} from {least} to {most}"),
            None => text.to_owned(),
        })
    })
}

/// A value and those next to it.
fn neighbors<'v>(value: &Value<'v>) -> Vec<Value<'v>> {
    let near = |value: i64| [value.saturating_sub(1), value, value.saturating_add(1)];
    match value {
        #[allow(clippy::cast_precision_loss, reason = "any value near it will do")]
        Value::Int(value) => {
            let double = *value as f64;
            let doubles = [double.next_down(), double.next_up()].map(Value::Double);
            near(*value).map(Value::Int).into_iter().chain(doubles).collect()
        }
        Value::Double(value) => {
            let doubles = [value.next_down(), *value, value.next_up()].map(Value::Double);
            let ints = whole(*value).into_iter().flat_map(near).map(Value::Int);
            ints.chain(doubles).collect()
        }
        Value::Text(text) => vec![value.clone(), Value::Text(format!("{}\0", &**text).into())],
        Value::Timestamp(value) => near(*value).map(Value::Timestamp).into(),
        Value::Duration(value) => near(*value).map(Value::Duration).into(),
        Value::Bool(_) => [true, false].map(Value::Bool).into(),
        Value::Null | Value::List(_) | Value::Map(_) => vec![value.clone()],
    }
}

impl Relation {
    const fn fits(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Unequal => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::AtLeast => order.is_ge(),
        }
    }

    const fn negated(self) -> Self {
        match self {
            Self::Equal => Self::Unequal,
            Self::Unequal => Self::Equal,
            Self::Less => Self::AtLeast,
            Self::AtMost => Self::Greater,
            Self::Greater => Self::AtMost,
            Self::AtLeast => Self::Less,
        }
    }

    /// The same relation with its sides swapped.
    const fn turned(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::AtMost => Self::AtLeast,
            Self::Greater => Self::Less,
            Self::AtLeast => Self::AtMost,
            same => same,
        }
    }
}

impl Part {
    /// The smallest and the largest value of a timestamp's part.
    const fn range(self) -> (i64, i64) {
        match self {
            Self::FullYear => (0, 10_000),
            Self::Month => (0, 11),
            Self::Date => (1, 31),
            Self::DayOfMonth => (0, 30),
            Self::DayOfYear => (0, 365),
            Self::DayOfWeek => (0, 6),
            Self::Hours => (0, 23),
            Self::Minutes | Self::Seconds => (0, 59),
            Self::Milliseconds => (0, 999),
        }
    }
}

impl Root {
    /// The name as a condition writes it.
    fn written(self) -> String {
        if self == Self::Context {
            return "context".to_owned();
        }
        let found = names::ROOTS.iter().find_map(|(name, named)| match named {
            names::Named::Value(root) => (*root == self).then(|| (*name).to_owned()),
            names::Named::Group(fields) => {
                fields.iter().find(|(_, root)| *root == self).map(|(field, _)| format!("{name}.{field}"))
            }
        });
        found.unwrap_or_default()
    }
}

impl Function {
    fn written(self) -> &'static str {
        let is_this = |method: &Method| matches!(method, Method::Plain(function) if *function == self);
        let method = names::METHODS.iter().find(|(_, method)| is_this(method)).map(|(name, _)| *name);
        let function = || names::FUNCTIONS.iter().find(|(_, function)| *function == self).map(|(name, _)| *name);
        method.or_else(function).unwrap_or_default()
    }
}

/// Maximum number of alternatives of a condition; past it nothing is claimed.
const MAX_ALTERNATIVES: usize = 16;
/// Maximum number of comparisons of an alternative; the others are left out.
const MAX_LITERALS: usize = 32;
