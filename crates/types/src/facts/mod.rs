//! Facts: the acts of a request with their operands, and what could not be read.
//!
//! The parser finds them. They are typed within a process; the JSON of an intent has them in its context, under the
//! reserved key [`FACTS_KEY`]. The facts of an intent that its caller built come from the context keys that the caller
//! set. Records of earlier versions have another form, whose facts are read as a single act.

mod act;
mod currency;
mod members;
mod rebuilt;
mod target;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use act::{Act, Cause, Doing, Kind, Kinds, MOST_ACTS, MOST_OPEN, MOST_OPERANDS, Open, Operand, Role, host_of};
pub use currency::is_currency;
pub use members::{Member, Members, ParsedFacts};
pub use rebuilt::is_rebuilt;
pub use target::{Amount, Target, TargetKind, TargetRole, Unread, UnreadKind};

use super::{Capability, Intent};

/// Key of the facts in the context of an intent's JSON. A value that a caller sets under it is ignored.
pub const FACTS_KEY: &str = "facts";
/// Maximum size of the facts, in bytes of their JSON.
pub const MAX_FACTS_BYTES: usize = 16 * 1024;

crate::parts::outward! {
    /// The facts that a request names and decisions rely on.
    #[derive(Default, Hash, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    // The fields here and below stand in the order of the JSON, which is that of their names.
    pub struct Facts from FactsParts {
        /// The acts of the request, in its order; at most 64 with 256 operands and 32 open parts together.
        pub acts: Vec<Act>,
        /// The folder that relative paths start from, if it is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub base: Option<String>,
        /// The form of the facts.
        #[cfg_attr(feature = "schema", schema(value_type = u8))]
        pub form: Form,
        /// The formats that were parsed, outermost first: `tool_call` and `shell` for a tool that runs a command.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub formats: Vec<String>,
        /// The folder that `~` stands for, if it is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub home: Option<String>,
        /// Capabilities that an uncertain reading may mean instead of the primary one; at most 4. The strictest decision
        /// over all of them counts.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub readings: Vec<Capability>,
        /// SHA-256, in hex, of the labeled rows with which the operator adapted that table.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub rows: Option<String>,
        /// SHA-256, in hex, of the word table used to parse English.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub table: Option<String>,
    }
}

/// The number of the form of the facts: 2.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Form;

impl TryFrom<u8> for Form {
    type Error = String;

    fn try_from(form: u8) -> Result<Self, String> {
        if form == FORM { Ok(Self) } else { Err(format!("expected facts of form {FORM}, found form {form}")) }
    }
}

impl From<Form> for u8 {
    fn from(Form: Form) -> Self {
        FORM
    }
}

const FORM: u8 = 2;

impl Facts {
    /// Facts of which nothing is known: any operand of any kind may be there.
    #[doc(hidden)]
    pub fn unknown(found: &str) -> Self {
        let open = Open::new(Cause::Text, Kinds::ALL, found.to_owned());
        Self { acts: vec![Act { open: vec![open], ..Act::new() }], ..Self::default() }
    }

    /// The first tool that is called.
    pub fn tool(&self) -> Option<&str> {
        self.acts.iter().find_map(|act| act.tool.as_deref())
    }

    /// The server of the first tool that is called.
    pub fn server(&self) -> Option<&str> {
        self.acts.iter().find(|act| act.tool.is_some()).and_then(|act| act.server.as_deref())
    }

    /// The amounts of money of all acts.
    pub fn amounts(&self) -> impl Iterator<Item = &Amount> {
        self.acts.iter().flat_map(|act| &act.amounts)
    }

    /// The operands of all acts, each once, as targets, and where links lead. An address stands for its host as well, and
    /// a word that is only named counts if it looks like a place.
    pub fn targets(&self) -> Vec<Target> {
        let mut targets: Vec<Target> = Vec::new();
        for act in &self.acts {
            for operand in &act.operands {
                let kind = match operand.kind {
                    Kind::Path | Kind::Any => TargetKind::Path,
                    Kind::Url => TargetKind::Host,
                    Kind::Host if !act.is_host_of_url(operand) => TargetKind::Host,
                    Kind::Recipient => TargetKind::Recipient,
                    Kind::Account => TargetKind::Account,
                    Kind::Table => TargetKind::Table,
                    Kind::Host | Kind::Amount | Kind::Command => continue,
                };
                let sent = operand.original.as_deref().unwrap_or(&operand.value);
                if operand.is_word() {
                    continue;
                }
                let role = match operand.role {
                    Role::Read => TargetRole::Read,
                    Role::Write | Role::Remove => TargetRole::Write,
                    Role::SendTo | Role::Pay => TargetRole::To,
                    Role::Named | Role::Run => TargetRole::Named,
                };
                for value in std::iter::once(&operand.value).chain(&operand.real) {
                    let value = self.below_base(value);
                    if !targets.iter().any(|known| known.kind == kind && known.role == role && known.value == value) {
                        targets.push(Target::new(kind, role, value.to_owned(), sent));
                    }
                }
            }
        }
        targets
    }

    /// The parts that could not be read, of all acts.
    pub fn unread(&self) -> Vec<Unread> {
        let opens = self.acts.iter().flat_map(|act| &act.open).filter(|open| open.cause == Cause::Text);
        let mut unread: Vec<Unread> = Vec::new();
        for open in opens {
            let kind = match open.kinds {
                Kinds::ALL => UnreadKind::Text,
                kinds if kinds == Kinds::of(&[Kind::Amount]) => UnreadKind::Amount,
                _ => UnreadKind::Target,
            };
            let part = Unread::new(kind, open.found.clone());
            if !unread.contains(&part) {
                unread.push(part);
            }
        }
        unread
    }

    /// A path relative to the base if it lies there.
    fn below_base<'p>(&self, path: &'p str) -> &'p str {
        let below = || path.strip_prefix(self.base.as_deref()?)?.strip_prefix('/');
        below().filter(|rest| !rest.is_empty()).unwrap_or(path)
    }

    fn built(intent: &Intent) -> Self {
        let named = |target: &str| Operand::new(Kind::Any, Role::Named, target.to_owned(), target);
        let unknown = || Open::new(Cause::Text, Kinds::ALL, "target".to_owned());
        let (operands, open) = match intent.context.get("target") {
            // A value that cannot be compared is nothing that somebody agreed to.
            Some(Value::Array(items)) if items.is_empty() || !items.iter().all(Value::is_string) => {
                (Vec::new(), vec![unknown()])
            }
            Some(Value::Array(items)) => (items.iter().filter_map(Value::as_str).map(named).collect(), Vec::new()),
            Some(Value::String(target)) => (vec![named(target)], Vec::new()),
            None | Some(Value::Null) => (Vec::new(), Vec::new()),
            Some(_) => (Vec::new(), vec![unknown()]),
        };
        let currency = intent.context.get("currency").and_then(Value::as_str).map(str::to_owned);
        let amount = intent.context.get("amount").and_then(Value::as_f64);
        let amounts = amount.map(|value| Amount::new(value, currency, 1)).into_iter().collect();
        let doing =
            |capability: &Capability| Doing::new(intent.parsed_action.clone(), capability.clone(), intent.risk_level);
        let does = intent.required_capabilities.iter().map(doing).collect();
        Self { acts: vec![Act { amounts, does, open, operands, ..Act::new() }], ..Self::default() }
    }
}

impl Intent {
    /// The facts of the intent, without secrets. A parsed intent carries the parser's; an intent built by its caller has those of the
    /// context keys `target`, `amount` and `currency`. The intent's JSON has the parser's facts in its context, where
    /// [`Intent::context`] has none.
    ///
    /// ```
    /// use rulekeep::intent::Parser;
    ///
    /// let text = r#"{"tool": "send_email", "arguments": {"to": ["a@x.example", "b@y.example"], "body": "Hi"}}"#;
    /// let parsed = Parser::new()?.parse_text(&"desk".parse()?, text, &serde_json::Map::new())?;
    /// let facts = parsed.intent.facts();
    /// assert_eq!(facts.tool(), Some("send_email"));
    /// assert_eq!(facts.acts[0].operands.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn facts(&self) -> Facts {
        self.known.as_ref().map_or_else(|| Facts::built(self), |known| known.shown().clone())
    }

    /// A copy of the intent with `reading` as its primary capability.
    #[must_use]
    pub fn read_as(&self, reading: Capability) -> Self {
        let mut intent = self.clone();
        intent.required_capabilities.retain(|one| *one != reading);
        intent.required_capabilities.insert(0, reading);
        intent
    }

    /// The context as its JSON has it, with the facts.
    #[doc(hidden)]
    pub fn members(&self) -> Members<'_> {
        Members::of(&self.context, self.known.as_ref())
    }
}
