//! Evaluation of the checked tree. Its recursion is bounded by the tree's height, it allocates only for newly made
//! values, and it always ends.

use super::error::{Fault, Problem};
use super::functions;
use super::tree::{Kind, Macro, Node, Relation, Root, Step, TextFunction};
use super::value::{List, Text, Unordered, Value, Work, order, whole};
use super::{MAX_LIST_ITEMS, MAX_MATCHED_BYTES, Scope};
use rulekeep_types::FACTS_KEY;

type Result<T> = std::result::Result<T, Fault>;

/// One evaluation.
pub(super) struct Run<'a> {
    scope: &'a Scope<'a>,
    work: Work,
}

/// The variables of the macros around a node, innermost first.
pub(super) struct Frame<'f, 'a> {
    value: Value<'a>,
    outer: Option<&'f Frame<'f, 'a>>,
}

impl<'a> Run<'a> {
    pub(super) const fn new(scope: &'a Scope<'a>) -> Self {
        Self { scope, work: Work::new() }
    }

    pub(super) fn value(&self, node: &'a Node, frame: Option<&Frame<'_, 'a>>) -> Result<Value<'a>> {
        match &node.kind {
            Kind::Constant(value) => Ok(value.borrowed()),
            Kind::Root(root) => Ok(self.root(*root)),
            Kind::Variable(up) => variable(frame, *up).ok_or_else(|| Problem::Internal.at(node.at)),
            Kind::Binding(number, bound) => self.binding(*number, bound),
            Kind::And(terms) => self.logical(terms, frame, false),
            Kind::Or(terms) => self.logical(terms, frame, true),
            Kind::Not(inner) => Ok(Value::Bool(!self.truth(inner, frame)?)),
            Kind::Negate(inner) => functions::negate(&self.value(inner, frame)?).map_err(|problem| problem.at(node.at)),
            Kind::Ternary(parts) => {
                let [condition, yes, no] = &**parts;
                self.value(if self.truth(condition, frame)? { yes } else { no }, frame)
            }
            Kind::Compare(relation, sides) => self.compare(node, *relation, sides, frame),
            Kind::In(sides) => self.member(node, sides, frame),
            Kind::Arithmetic(first, steps) => self.arithmetic(first, steps, frame),
            Kind::Field(of, key) => self.field(node, of, key, frame),
            Kind::Has(of, key) => self.has(node, of, key, frame),
            Kind::Index(parts) => self.index(node, parts, frame),
            Kind::List(items) => self.list(items, frame),
            Kind::Call(function, argument) => {
                let argument = self.value(argument, frame)?;
                functions::call(*function, argument, &self.work).map_err(|problem| problem.at(node.at))
            }
            Kind::PartIn(part, parts) => {
                let [of, zone] = &**parts;
                let (of, zone) = (self.value(of, frame)?, self.text(zone, frame)?);
                functions::part_in(*part, &of, &zone).map_err(|problem| problem.at(node.at))
            }
            Kind::TextCall(function, parts) => self.text_call(node, *function, parts, frame),
            Kind::Matches(text, pattern) => {
                let text = self.text(text, frame)?;
                if text.len() > MAX_MATCHED_BYTES {
                    return Err(Problem::LongPatternText.at(node.at));
                }
                // A matcher step costs far more than comparing a byte.
                self.work.spend(text.len().saturating_mul(16)).map_err(|problem| problem.at(node.at))?;
                Ok(Value::Bool(pattern.is_match(&text)))
            }
            Kind::Macro(kind, parts) => self.each(node, *kind, parts, frame),
        }
    }

    fn root(&self, root: Root) -> Value<'a> {
        let scope = self.scope;
        match root {
            Root::Action => Value::text(scope.action),
            Root::Actions => {
                let acts = scope.context.get(FACTS_KEY).and_then(|facts| facts.get("acts")?.as_array());
                let does = acts.into_iter().flatten().filter_map(|act| act.get("does")?.as_array()).flatten();
                let mut actions: Vec<Value<'a>> =
                    does.filter_map(|doing| doing.get("action")?.as_str()).map(Value::text).collect();
                if actions.is_empty() {
                    actions.push(Value::text(scope.action));
                }
                Value::List(List::Built(actions.into()))
            }
            Root::Risk => Value::text(scope.risk.as_str()),
            Root::Capabilities => Value::List(List::Capabilities(scope.capabilities)),
            Root::Context => Value::Map(scope.context),
            Root::AgentId => Value::text(scope.agent_id),
            Root::Labels => Value::List(List::Labels(scope.labels)),
            Root::Groups => Value::List(List::Labels(scope.groups)),
            Root::Attributes => Value::Map(scope.attributes.into()),
            Root::Score => Value::Int(i64::from(scope.score)),
            Root::Tier => Value::text(scope.tier.as_str()),
            Root::Now => Value::Timestamp(scope.now.as_millis()),
        }
    }

    fn binding(&self, number: u16, bound: &'a Node) -> Result<Value<'a>> {
        self.value(bound, None).map_err(|fault| Fault { binding: fault.binding.or(Some(number)), ..fault })
    }

    /// Evaluates `&&` and `||`. The first deciding term wins, even after a failure; without one, the first failure is
    /// returned.
    fn logical(&self, terms: &'a [Node], frame: Option<&Frame<'_, 'a>>, decides: bool) -> Result<Value<'a>> {
        let mut fault = None;
        for term in terms {
            match self.truth(term, frame) {
                Ok(truth) if truth == decides => return Ok(Value::Bool(decides)),
                Ok(_) => {}
                Err(found) => fault = fault.or(Some(found)),
            }
        }
        fault.map_or(Ok(Value::Bool(!decides)), Err)
    }

    fn truth(&self, node: &'a Node, frame: Option<&Frame<'_, 'a>>) -> Result<bool> {
        match self.value(node, frame)? {
            Value::Bool(truth) => Ok(truth),
            other => Err(other.expected("bool").at(node.at)),
        }
    }

    fn text(&self, node: &'a Node, frame: Option<&Frame<'_, 'a>>) -> Result<Text<'a>> {
        match self.value(node, frame)? {
            Value::Text(text) => Ok(text),
            other => Err(other.expected("string").at(node.at)),
        }
    }

    fn compare(
        &self,
        node: &Node,
        relation: Relation,
        sides: &'a [Node; 2],
        frame: Option<&Frame<'_, 'a>>,
    ) -> Result<Value<'a>> {
        let [left, right] = sides;
        let (left, right) = (self.value(left, frame)?, self.value(right, frame)?);
        let holds = match relation {
            Relation::Equal | Relation::Unequal => {
                let equal = self.work.equal(&left, &right).map_err(|problem| problem.at(node.at))?;
                equal == (relation == Relation::Equal)
            }
            _ => {
                let order = order(&left, &right).map_err(|unordered| {
                    let (left, right) = (left.type_name(), right.type_name());
                    let problem = match unordered {
                        Unordered::Types => Problem::NoOperator { operator: relation.sign(), left, right },
                        Unordered::NotANumber => Problem::NotANumber,
                    };
                    problem.at(node.at)
                })?;
                if let (Value::Text(left), Value::Text(right)) = (&left, &right) {
                    self.work.spend(left.len().min(right.len())).map_err(|problem| problem.at(node.at))?;
                }
                match relation {
                    Relation::Less => order.is_lt(),
                    Relation::AtMost => order.is_le(),
                    Relation::Greater => order.is_gt(),
                    _ => order.is_ge(),
                }
            }
        };
        Ok(Value::Bool(holds))
    }

    /// Evaluates `in`: an item of a list, or a key of a map.
    fn member(&self, node: &Node, sides: &'a [Node; 2], frame: Option<&Frame<'_, 'a>>) -> Result<Value<'a>> {
        let [item, container] = sides;
        let (item, container) = (self.value(item, frame)?, self.value(container, frame)?);
        let found = match container {
            Value::List(list) => self.list_has(&list, &item).map_err(|problem| problem.at(node.at))?,
            Value::Map(map) => match &item {
                Value::Text(key) => map.get(key).is_some(),
                // Types that a CEL map may have as keys; a JSON map has none of them.
                Value::Int(_) | Value::Double(_) | Value::Bool(_) => false,
                other => return Err(other.expected("string").at(node.at)),
            },
            other => return Err(other.expected("list or map").at(node.at)),
        };
        Ok(Value::Bool(found))
    }

    fn list_has(&self, list: &List<'a>, item: &Value<'a>) -> std::result::Result<bool, Problem> {
        for candidate in list.items() {
            self.work.spend(1)?;
            if self.work.equal(&candidate?, item)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn arithmetic(&self, first: &'a Node, steps: &'a [Step], frame: Option<&Frame<'_, 'a>>) -> Result<Value<'a>> {
        let mut left = self.value(first, frame)?;
        for step in steps {
            let right = self.value(&step.right, frame)?;
            let grown = matches!(left, Value::Text(_) | Value::List(_));
            if grown && !step.grows {
                return Err(left.expected("a number or a time inside a macro").at(step.at));
            }
            left = functions::operate(step.operator, left, right, &self.work).map_err(|problem| problem.at(step.at))?;
        }
        Ok(left)
    }

    fn field(&self, node: &Node, of: &'a Node, key: &str, frame: Option<&Frame<'_, 'a>>) -> Result<Value<'a>> {
        match self.value(of, frame)? {
            Value::Map(map) => {
                let found = map.get(key).ok_or(Problem::MissingKey).and_then(Value::from_json);
                found.map_err(|problem| problem.at(node.at))
            }
            other => Err(other.expected("map").at(node.at)),
        }
    }

    fn has(&self, node: &Node, of: &'a Node, key: &str, frame: Option<&Frame<'_, 'a>>) -> Result<Value<'a>> {
        match self.value(of, frame)? {
            Value::Map(map) => Ok(Value::Bool(map.get(key).is_some())),
            other => Err(other.expected("map").at(node.at)),
        }
    }

    fn index(&self, node: &Node, parts: &'a [Node; 2], frame: Option<&Frame<'_, 'a>>) -> Result<Value<'a>> {
        let [of, index] = parts;
        let found = match (self.value(of, frame)?, self.value(index, frame)?) {
            (Value::List(list), Value::Int(index)) => {
                usize::try_from(index).map_err(|_| Problem::MissingIndex).and_then(|index| list.item(index))
            }
            // SOURCE: cel-go and the `cel` crate accept a whole double as an index.
            (Value::List(list), Value::Double(index)) if index.fract() == 0.0 => {
                let index = whole(index).and_then(|index| usize::try_from(index).ok());
                index.ok_or(Problem::MissingIndex).and_then(|index| list.item(index))
            }
            (Value::List(_), other) => Err(other.expected("int")),
            (Value::Map(map), Value::Text(key)) => map.get(&key).ok_or(Problem::MissingKey).and_then(Value::from_json),
            (Value::Map(_), other) => Err(other.expected("string")),
            (other, _) => Err(other.expected("list or map")),
        };
        found.map_err(|problem| problem.at(node.at))
    }

    fn list(&self, items: &'a [Node], frame: Option<&Frame<'_, 'a>>) -> Result<Value<'a>> {
        let items: Result<Vec<_>> = items.iter().map(|item| self.value(item, frame)).collect();
        Ok(Value::List(List::Built(items?.into())))
    }

    fn text_call(
        &self,
        node: &Node,
        function: TextFunction,
        parts: &'a [Node; 2],
        frame: Option<&Frame<'_, 'a>>,
    ) -> Result<Value<'a>> {
        let [text, argument] = parts;
        let (text, argument) = (self.text(text, frame)?, self.text(argument, frame)?);
        let looked_at = if function == TextFunction::Contains { text.len() } else { argument.len() };
        self.work.spend(looked_at).map_err(|problem| problem.at(node.at))?;
        let holds = match function {
            TextFunction::Contains => text.contains(&*argument),
            TextFunction::StartsWith => text.starts_with(&*argument),
            TextFunction::EndsWith => text.ends_with(&*argument),
        };
        Ok(Value::Bool(holds))
    }

    /// Evaluates a macro over the items of a list or the keys of a map.
    fn each(&self, node: &Node, kind: Macro, parts: &'a [Node; 2], frame: Option<&Frame<'_, 'a>>) -> Result<Value<'a>> {
        let [range, body] = parts;
        let range = self.value(range, frame)?;
        let length = match &range {
            Value::List(list) => list.len(),
            Value::Map(map) => map.len(),
            other => return Err(other.expected("list or map").at(node.at)),
        };
        // INVARIANT: the static cost multiplies the body by this bound.
        if length > MAX_LIST_ITEMS {
            return Err(Problem::LongList.at(node.at));
        }
        match &range {
            Value::List(list) => self.fold(node, kind, body, &mut list.items(), frame),
            Value::Map(map) => self.fold(node, kind, body, &mut map.iter().map(|(key, _)| Ok(Value::text(key))), frame),
            _ => Err(Problem::Internal.at(node.at)),
        }
    }

    fn fold(
        &self,
        node: &Node,
        kind: Macro,
        body: &'a Node,
        items: &mut dyn Iterator<Item = std::result::Result<Value<'a>, Problem>>,
        outer: Option<&Frame<'_, 'a>>,
    ) -> Result<Value<'a>> {
        let mut fault = None;
        let mut count = 0_usize;
        let mut built = Vec::new();
        for item in items {
            let result = item.map_err(|problem| problem.at(node.at)).and_then(|value| {
                let frame = Frame { value, outer };
                match kind {
                    Macro::Map => self.value(body, Some(&frame)).map(|value| built.push(value)).map(|()| false),
                    _ => self.truth(body, Some(&frame)).inspect(|truth| {
                        if kind == Macro::Filter && *truth {
                            built.push(frame.value.clone());
                        }
                    }),
                }
            });
            match (kind, result) {
                (Macro::All, Ok(false)) => return Ok(Value::Bool(false)),
                (Macro::Exists, Ok(true)) => return Ok(Value::Bool(true)),
                (_, Ok(truth)) => count += usize::from(truth),
                // As with `&&` and `||`, a deciding item outweighs a failure.
                (Macro::All | Macro::Exists, Err(found)) => fault = fault.or(Some(found)),
                (_, Err(found)) => return Err(found),
            }
        }
        match (kind, fault) {
            (_, Some(fault)) => Err(fault),
            (Macro::All, None) => Ok(Value::Bool(true)),
            (Macro::Exists, None) => Ok(Value::Bool(false)),
            (Macro::ExistsOne, None) => Ok(Value::Bool(count == 1)),
            (Macro::Filter | Macro::Map, None) => Ok(Value::List(List::Built(built.into()))),
        }
    }
}

fn variable<'a>(mut frame: Option<&Frame<'_, 'a>>, up: u32) -> Option<Value<'a>> {
    for _ in 0..up {
        frame = frame?.outer;
    }
    frame.map(|frame| frame.value.clone())
}
