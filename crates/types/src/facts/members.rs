//! The facts of an intent in its JSON, in both forms, and the view that conditions have of them.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::act::{Act, Cause, Kind, Kinds, Open, Operand, Role, host_of};
use super::target::{Amount, Target, TargetKind, TargetRole, Unread, UnreadKind};
use super::{FACTS_KEY, Facts};
use crate::Capability;

/// The facts that the parser found in a request, shared by the copies of its intent.
#[doc(hidden)]
#[derive(Clone)]
pub struct ParsedFacts(Arc<Parsed>);

struct Parsed {
    facts: Facts,
    /// The facts without secrets, which are stored and shown; absent if there are none.
    shown: Option<Facts>,
    /// The JSON of facts in the first form, which stays as it was recorded.
    former: Option<Value>,
    /// For conditions, which look into the JSON; most requests meet none that reads facts.
    view: OnceLock<Value>,
}

impl From<Facts> for ParsedFacts {
    fn from(facts: Facts) -> Self {
        Self::new(facts, None)
    }
}

impl ParsedFacts {
    /// The facts that rules see, and the same without secrets if there are any.
    pub fn new(facts: Facts, shown: Option<Facts>) -> Self {
        Self(Arc::new(Parsed { facts, shown, former: None, view: OnceLock::new() }))
    }

    /// The facts without secrets. Their acts, operands and open parts have the places of those that rules see.
    pub fn shown(&self) -> &Facts {
        self.0.shown.as_ref().unwrap_or(&self.0.facts)
    }

    /// The facts without secrets, if there are any secrets.
    pub fn masked(&self) -> Option<&Facts> {
        self.0.shown.as_ref()
    }

    /// Reads the facts of an intent's JSON in either form. Where they cannot be read, nothing of the request is known.
    pub(crate) fn of_json(json: Value) -> Self {
        if json.get("form").is_some() {
            return serde_json::from_value(json).unwrap_or_else(|_| Facts::unknown(FACTS_KEY)).into();
        }
        match serde_json::from_value::<FormerFacts>(json.clone()) {
            Ok(former) => {
                let facts = former.into();
                Self(Arc::new(Parsed { facts, shown: None, former: Some(json), view: OnceLock::new() }))
            }
            Err(_) => Facts::unknown(FACTS_KEY).into(),
        }
    }

    /// The facts as conditions see them: with the targets, amounts, tool and unread parts of all acts.
    fn view(&self) -> &Value {
        self.0.view.get_or_init(|| {
            let mut view = serde_json::to_value(&self.0.facts).unwrap_or_default();
            let Some(fields) = view.as_object_mut() else { return view };
            let facts = &self.0.facts;
            let mut add = |name: &str, value: serde_json::Result<Value>| {
                let value = value.unwrap_or_default();
                if !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty()) {
                    fields.insert(name.to_owned(), value);
                }
            };
            add("amounts", serde_json::to_value(facts.amounts().collect::<Vec<_>>()));
            add("server", serde_json::to_value(facts.server()));
            add("targets", serde_json::to_value(facts.targets()));
            add("tool", serde_json::to_value(facts.tool()));
            add("unread", serde_json::to_value(facts.unread()));
            view
        })
    }
}

impl fmt::Debug for ParsedFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shown().fmt(f)
    }
}

impl Serialize for ParsedFacts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.former {
            Some(former) => former.serialize(serializer),
            None => self.shown().serialize(serializer),
        }
    }
}

/// The facts of records up to version 0.9: targets, amounts and unread parts of the whole request.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct FormerFacts {
    amounts: Vec<Amount>,
    formats: Vec<String>,
    readings: Vec<Capability>,
    rows: Option<String>,
    server: Option<String>,
    table: Option<String>,
    targets: Vec<Target>,
    tool: Option<String>,
    unread: Vec<Unread>,
}

impl From<FormerFacts> for Facts {
    fn from(former: FormerFacts) -> Self {
        let FormerFacts { amounts, formats, readings, rows, server, table, targets, tool, unread } = former;
        let open = |part: Unread| {
            let kinds = match part.kind {
                UnreadKind::Amount => Kinds::of(&[Kind::Amount]),
                UnreadKind::Target | UnreadKind::Argument | UnreadKind::Text | UnreadKind::Code => Kinds::ALL,
            };
            Open::new(Cause::Text, kinds, part.found)
        };
        let act = Act {
            amounts,
            open: unread.into_iter().map(open).collect(),
            operands: targets.into_iter().flat_map(operands_of).collect(),
            server,
            tool,
            ..Act::new()
        };
        Self { acts: vec![act], formats, readings, rows, table, ..Self::default() }
    }
}

/// The operands that a target of the first form stands for: an address and its host.
fn operands_of(target: Target) -> impl Iterator<Item = Operand> {
    let role = match target.role {
        TargetRole::Named => Role::Named,
        TargetRole::To | TargetRole::Cc | TargetRole::Bcc => Role::SendTo,
        TargetRole::Read | TargetRole::Source => Role::Read,
        TargetRole::Write | TargetRole::Destination => Role::Write,
    };
    let host = (target.kind == TargetKind::Host).then(|| host_of(&target.value)).flatten();
    let kind = match target.kind {
        TargetKind::Recipient => Kind::Recipient,
        TargetKind::Path => Kind::Path,
        TargetKind::Host if target.value.contains("://") => Kind::Url,
        TargetKind::Host => Kind::Host,
        TargetKind::Table => Kind::Table,
        TargetKind::Account => Kind::Account,
    };
    let host = host.filter(|_| kind == Kind::Url).map(|host| Operand::new(Kind::Host, role, host, &target.value));
    let whole = Operand { original: target.original, ..Operand::new(kind, role, target.value, "") };
    std::iter::once(whole).chain(host)
}

impl Deref for ParsedFacts {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.0.facts
    }
}

impl PartialEq for ParsedFacts {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

/// The members of a JSON object, such as an intent's context, whose facts are typed.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Members<'a> {
    context: &'a Map<String, Value>,
    facts: Option<&'a ParsedFacts>,
}

impl<'a> From<&'a Map<String, Value>> for Members<'a> {
    fn from(context: &'a Map<String, Value>) -> Self {
        Self { context, facts: None }
    }
}

impl<'a> Members<'a> {
    pub(super) const fn of(context: &'a Map<String, Value>, facts: Option<&'a ParsedFacts>) -> Self {
        Self { context, facts }
    }

    #[allow(missing_docs)]
    pub fn get(self, key: &str) -> Option<&'a Value> {
        match self.facts {
            Some(facts) if key == FACTS_KEY => Some(facts.view()),
            _ => self.context.get(key),
        }
    }

    #[allow(missing_docs, clippy::len_without_is_empty)]
    pub fn len(self) -> usize {
        self.context.len() + usize::from(self.facts.is_some_and(|_| !self.context.contains_key(FACTS_KEY)))
    }

    /// The members in the order of their names.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, Member<'a>)> {
        let mut facts = self.facts.map(|facts| (FACTS_KEY, Member::Facts(facts)));
        let is_other = move |name: &str| self.facts.is_none() || name != FACTS_KEY;
        let mut others = self.context.iter().filter(move |(name, _)| is_other(name)).peekable();
        std::iter::from_fn(move || {
            if others.peek().is_none_or(|(name, _)| name.as_str() > FACTS_KEY)
                && let Some(facts) = facts.take()
            {
                return Some(facts);
            }
            others.next().map(|(name, value)| (name.as_str(), Member::Json(value)))
        })
    }

    /// The members as a tree.
    pub fn to_json(self) -> Value {
        self.iter().map(|(name, member)| (name, serde_json::to_value(member).unwrap_or_default())).collect()
    }
}

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// The value of one of the [`Members`].
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub enum Member<'a> {
    /// A value of the context.
    Json(&'a Value),
    /// The facts.
    Facts(&'a ParsedFacts),
}

impl<'a> From<&'a Value> for Member<'a> {
    fn from(value: &'a Value) -> Self {
        Self::Json(value)
    }
}

impl<'a> Member<'a> {
    #[allow(missing_docs)]
    pub fn json(self) -> &'a Value {
        match self {
            Self::Json(value) => value,
            Self::Facts(facts) => facts.view(),
        }
    }
}

impl Serialize for Member<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Json(value) => value.serialize(serializer),
            Self::Facts(facts) => facts.serialize(serializer),
        }
    }
}
