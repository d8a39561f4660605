//! The names that a condition may use: the roots with their fields and types, the functions, the macros.

use super::tree::{Function, Macro, Part, Root, TextFunction};
use super::types::Type;

/// The meaning of a name at the start of an expression.
#[derive(Debug, Clone, Copy)]
pub(super) enum Named {
    Value(Root),
    /// A group of fields, not a value by itself: a field has to follow.
    Group(&'static [(&'static str, Root)]),
}

pub(super) const ROOTS: &[(&str, Named)] = &[
    ("intent", Named::Group(INTENT)),
    ("context", Named::Value(Root::Context)),
    ("agent", Named::Group(AGENT)),
    ("trust", Named::Group(&[("score", Root::Score), ("tier", Root::Tier)])),
    ("now", Named::Value(Root::Now)),
];

const INTENT: &[(&str, Root)] = &[
    ("action", Root::Action),
    ("actions", Root::Actions),
    ("risk", Root::Risk),
    ("capabilities", Root::Capabilities),
    ("context", Root::Context),
];

const AGENT: &[(&str, Root)] =
    &[("id", Root::AgentId), ("labels", Root::Labels), ("groups", Root::Groups), ("attributes", Root::Attributes)];

impl Root {
    pub(super) fn kind(self) -> Type {
        match self {
            Self::Action | Self::Risk | Self::AgentId | Self::Tier => Type::Text,
            Self::Actions | Self::Capabilities | Self::Labels | Self::Groups => Type::list(Type::Text),
            Self::Context | Self::Attributes => Type::map(Type::Dyn),
            Self::Score => Type::Int,
            Self::Now => Type::Timestamp,
        }
    }
}

/// A method: a name after a dot that takes arguments.
#[derive(Debug, Clone, Copy)]
pub(super) enum Method {
    Plain(Function),
    Text(TextFunction),
    Matches,
    Macro(Macro),
}

pub(super) const METHODS: &[(&str, Method)] = &[
    ("contains", Method::Text(TextFunction::Contains)),
    ("startsWith", Method::Text(TextFunction::StartsWith)),
    ("endsWith", Method::Text(TextFunction::EndsWith)),
    ("matches", Method::Matches),
    ("size", Method::Plain(Function::Size)),
    ("all", Method::Macro(Macro::All)),
    ("exists", Method::Macro(Macro::Exists)),
    ("exists_one", Method::Macro(Macro::ExistsOne)),
    ("filter", Method::Macro(Macro::Filter)),
    ("map", Method::Macro(Macro::Map)),
    ("getFullYear", Method::Plain(Function::Part(Part::FullYear))),
    ("getMonth", Method::Plain(Function::Part(Part::Month))),
    ("getDate", Method::Plain(Function::Part(Part::Date))),
    ("getDayOfMonth", Method::Plain(Function::Part(Part::DayOfMonth))),
    ("getDayOfYear", Method::Plain(Function::Part(Part::DayOfYear))),
    ("getDayOfWeek", Method::Plain(Function::Part(Part::DayOfWeek))),
    ("getHours", Method::Plain(Function::Part(Part::Hours))),
    ("getMinutes", Method::Plain(Function::Part(Part::Minutes))),
    ("getSeconds", Method::Plain(Function::Part(Part::Seconds))),
    ("getMilliseconds", Method::Plain(Function::Part(Part::Milliseconds))),
];

pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("size", Function::Size),
    ("int", Function::ToInt),
    ("double", Function::ToDouble),
    ("string", Function::ToText),
    ("timestamp", Function::ToTimestamp),
    ("duration", Function::ToDuration),
];

/// The only function that depends on how its argument is written.
pub(super) const HAS: &str = "has";

impl Function {
    /// The result type for an argument of this type; `None` if the function does not accept it.
    pub(super) fn result(self, argument: &Type) -> Option<Type> {
        use Type::{Bool, Double, Duration, Dyn, Int, List, Map, Text, Timestamp};

        match (self, argument) {
            (Self::Size, Text | List(_) | Map(_) | Dyn)
            | (Self::ToInt, Int | Double | Text | Timestamp | Dyn)
            | (Self::Part(_), Timestamp | Dyn)
            | (Self::Part(Part::Hours | Part::Minutes | Part::Seconds), Duration) => Some(Int),
            (Self::ToDouble, Int | Double | Text | Dyn) => Some(Double),
            (Self::ToText, Text | Bool | Int | Double | Timestamp | Duration | Dyn) => Some(Text),
            (Self::ToTimestamp, Timestamp | Text | Dyn) => Some(Timestamp),
            (Self::ToDuration, Duration | Text | Dyn) => Some(Duration),
            _ => None,
        }
    }
}

/// Looks up a name in a table.
pub(super) fn find<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// The names of a table.
pub(super) fn names<'t, T>(table: &'t [(&'t str, T)]) -> impl Iterator<Item = &'t str> {
    table.iter().map(|(name, _)| *name)
}

/// The sign of an operator that other languages write as a word.
pub(super) fn sign_for(word: &str) -> Option<&'static str> {
    let signs = [("and", "&&"), ("or", "||"), ("not", "!")];
    signs.into_iter().find_map(|(known, sign)| word.eq_ignore_ascii_case(known).then_some(sign))
}

#[cfg(all(test, not(conformance)))]
pub(super) mod tests {
    use super::*;

    /// The names, the type and the meaning of each root.
    pub(crate) fn described() -> Vec<[String; 3]> {
        let of =
            |name: String, root: Root| [format!("`{name}`"), format!("`{}`", root.kind()), root.meaning().to_owned()];
        let each = |(name, named): &(&str, Named)| match named {
            Named::Value(root) => vec![of((*name).to_owned(), *root)],
            Named::Group(fields) => fields.iter().map(|(field, root)| of(format!("{name}.{field}"), *root)).collect(),
        };
        ROOTS.iter().flat_map(each).collect()
    }

    impl Root {
        const fn meaning(self) -> &'static str {
            match self {
                Self::Action => "The action of the intent: that of its riskiest act.",
                Self::Actions => "The actions of all acts of the request.",
                Self::Risk => {
                    "The effective risk: `LOW`, `MEDIUM`, `HIGH` or `CRITICAL`. Compare it with `==` or `in`."
                }
                Self::Capabilities => "The capabilities that the action requires.",
                Self::Context => "The context of the intent, with the keys above.",
                Self::AgentId => "The id of the agent.",
                Self::Labels => "The labels of the agent.",
                Self::Groups => "The groups of the agent.",
                Self::Attributes => "The attributes of the agent.",
                Self::Score => "The trust score in force, 0 to 1000.",
                Self::Tier => "The trust tier in force, `T0` to `T5`, which compare in that order.",
                Self::Now => "The time of the decision.",
            }
        }
    }
}
