//! Classifies a tool definition into acts: first by its name, then by its description, schema and hints. Each of
//! these can add risk, and none removes any.

use serde_json::{Map, Value};

use crate::format::{self, Known, Role, Through, tools};
use crate::lexicon::Lexicon;
use crate::reading::{Act, Facts};
use crate::risk;
use crate::sign::Sign;
use rulekeep_types::{Capability, Digest, Operation, Resource, RiskLevel, ToolEvidence};

use super::description::{self, Described};
use super::load::Definition;
use super::poison;
use super::ruling::ToolRuling;

/// The values that a schema lists, by argument name.
pub(super) type Choices = Box<[(Box<str>, Box<[Box<str>]>)]>;

/// A classified definition.
#[derive(Debug)]
pub(super) struct Read {
    /// The acts of a call whose arguments add nothing.
    pub acts: Vec<Act>,
    /// Further acts that a call's arguments can cause.
    pub possible: Vec<Act>,
    pub through: Option<Through>,
    pub known: Option<&'static Known>,
    /// The arguments that ask for a trial run.
    pub trials: Vec<Box<str>>,
    pub because: Vec<ToolEvidence>,
    pub confidence: f64,
    /// The name alone clearly says that the tool only reads.
    pub reads_by_name: bool,
    /// The values that the schema lists for arguments, by argument name.
    pub choices: Choices,
    /// The description, and the names and descriptions of the arguments, for relevance.
    pub words: [Box<str>; 2],
    pub source: &'static str,
    pub digest: Digest,
    pub shape: Option<Digest>,
}

/// Classifies a definition.
pub(super) fn read(definition: &Definition<'_>, lexicon: &Lexicon) -> Read {
    let mut read = Read {
        acts: Vec::new(),
        possible: Vec::new(),
        through: None,
        known: None,
        trials: Vec::new(),
        because: Vec::new(),
        confidence: UNKNOWN,
        reads_by_name: false,
        choices: definition.schema.map(choices_of).unwrap_or_default(),
        words: [definition.description.into(), definition.schema.map(argument_words).unwrap_or_default().into()],
        source: definition.source,
        digest: definition.digest,
        shape: definition.shape,
    };
    let described = description::read(definition.description, lexicon);
    read.name(definition, lexicon);
    read.description(&described, definition.description);
    // "FindTrains" reads, although "train" is also a verb: the name's verb counts if the description starts with such
    // a verb too, or says nothing worse.
    let is_mild = |act: &Act| {
        matches!(act.operation, Operation::Read | Operation::Write | Operation::Execute | Operation::Unknown)
    };
    let is_dangerous = read.acts.iter().any(|act| act.signs.has(Sign::Danger));
    let may_look = described.looks || read.acts.iter().all(is_mild);
    read.reads_by_name |= may_look && !is_dangerous && format::begins_with_look(definition.name, lexicon);
    if let Some(schema) = definition.schema {
        read.schema(schema, lexicon);
    }
    if read.acts.is_empty() {
        read.acts.push(Act::unknown());
    }
    read.hints(definition);
    if let Some(found) = poison::find(definition.whole, lexicon) {
        read.because.push(ToolEvidence::new("description", found, "instructions to the agent"));
        read.mark(Sign::PoisonedTool);
    }
    read
}

impl Read {
    /// The classification of a definition of which only the accepted ruling is known.
    pub(super) fn accepted(ruling: &ToolRuling, source: &'static str) -> Self {
        let acts = ruling.capabilities.iter().map(|one| Act::of_capability(one).at_risk(ruling.risk_level)).collect();
        let gives = format!("{} at {}", texts(&ruling.capabilities), ruling.risk_level);
        Self {
            acts,
            possible: Vec::new(),
            through: None,
            known: None,
            trials: Vec::new(),
            because: vec![ToolEvidence::new("accepted", ruling.digest.to_string(), gives)],
            confidence: 1.0,
            reads_by_name: false,
            choices: Box::default(),
            words: Default::default(),
            source,
            digest: ruling.digest,
            shape: ruling.shape,
        }
    }

    fn name(&mut self, definition: &Definition<'_>, lexicon: &Lexicon) {
        let name = definition.name;
        // A tool of a catalogue belongs to a server, named or not.
        if let Some(known) = format::known_tool(name, Some(definition.server.unwrap_or_default())) {
            self.acts.push(known.act.clone().told_by(name));
            (self.through, self.known) = (known.through, Some(known));
            self.confidence = 0.9;
        } else {
            self.acts = format::tool_acts(name, lexicon);
            let first = self.acts.first();
            if let Some(server) = definition.server
                && first.is_none_or(|act| act.resource == Resource::Unknown || act.sure < 0.8)
            {
                // "send" of a server "gmail".
                let behind = format::tool_acts(&format!("{server}.{name}"), lexicon);
                let operation = first.map(|act| act.operation);
                if behind.first().is_some_and(|act| operation.is_none_or(|operation| operation == act.operation)) {
                    self.acts = behind;
                }
            }
            self.confidence = self.acts.first().map_or(UNKNOWN, |act| act.sure * 0.9);
        }
        let is_look = |act: &Act| act.operation == Operation::Read && act.sure >= PLAIN;
        self.reads_by_name = !self.acts.is_empty() && self.acts.iter().all(is_look);
        for act in &self.acts {
            self.because.push(ToolEvidence::new("name", name, capability(act)));
        }
    }

    /// Adds the evidence of the description: the operation if the name has none, the resource if the name has none,
    /// and any act beyond the name.
    fn description(&mut self, described: &Described, text: &str) {
        let said = described.acts.first();
        let mut agrees = None;
        match (self.acts.first_mut(), said) {
            (None, Some(said)) if described.is_verb => {
                self.because.push(ToolEvidence::new("description", text, capability(said)));
                self.acts.push(Act { sure: 0.6, ..said.clone() });
                self.confidence = 0.7;
            }
            (Some(act), Some(said)) if described.is_verb && self.known.is_none() && says_nothing(act) => {
                self.because.push(ToolEvidence::new("description", text, capability(said)));
                let found = std::mem::take(&mut act.found);
                *act = Act { sure: 0.6, found, ..said.clone() };
                self.confidence = 0.7;
            }
            (Some(act), Some(said)) if act.operation == said.operation && described.is_verb => {
                let is_weak = act.resource == Resource::Unknown || act.sure < 0.8 && self.known.is_none();
                if is_weak && said.resource != Resource::Unknown && said.sure > 0.5 {
                    (act.resource, act.noun) = (said.resource, said.noun.clone());
                    // The description clarifies what was unclear in the name.
                    act.signs = said.signs;
                    act.sure = 0.8;
                    self.because.push(ToolEvidence::new("description", text, capability(act)));
                }
                agrees = Some(act.resource == said.resource);
            }
            (Some(act), Some(said)) if act.resource == Resource::Unknown && said.sure > 0.5 => {
                (act.resource, act.noun) = (said.resource, said.noun.clone());
                self.because.push(ToolEvidence::new("description", text, capability(act)));
            }
            _ => {}
        }
        if let (Some(act), Some(said), true) = (self.acts.first(), said, described.is_verb) {
            let level = |act: &Act| risk::assess(act, &Facts::default()).level;
            let is_worse = reach(said.operation) > reach(act.operation)
                && reach(said.operation) > reach(Operation::Write)
                && said.sure >= 0.6
                && level(said) >= level(act);
            if is_worse && self.known.is_none() {
                // The name is milder than the description.
                self.because.push(ToolEvidence::new("description", text, capability(said)));
                self.acts.push(said.clone());
                self.confidence = 0.5;
            }
        }
        for act in &described.also {
            let mut act = Act { is_entailed: true, ..act.clone() };
            if let Some(first) = self.acts.first()
                && act.resource == Resource::Unknown
            {
                // "Archives the projects and deletes the originals": both verbs apply to the tool's subject.
                (act.resource, act.noun) = (first.resource, first.noun.clone());
            }
            self.because.push(ToolEvidence::new("description", text, capability(&act)));
            self.acts.push(act);
        }
        match agrees {
            Some(true) => self.confidence = self.confidence.max(0.95),
            Some(false) => self.confidence = self.confidence.max(0.8),
            None => {}
        }
    }

    fn schema(&mut self, schema: &Map<String, Value>, lexicon: &Lexicon) {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
        let (mut pays, mut payee) = (false, false);
        for (key, property) in properties {
            let role = tools().role(key);
            match role {
                Some(Role::Command) => self.runs(key, Through::Command),
                Some(Role::Code) => self.runs(key, Through::Code),
                Some(Role::Sql | Role::Query) => self.queries(key, role),
                Some(Role::DryRun) => self.trials.push(key.as_str().into()),
                Some(Role::Amount) => pays = true,
                Some(Role::Recipient) => payee = true,
                Some(Role::Url) if self.acts.is_empty() => {
                    self.because.push(ToolEvidence::new("schema", key.as_str(), "web:execute"));
                    self.acts
                        .push(Act::new("request", "url", Resource::Web, Operation::Execute, 0.4).marked(Sign::Unclear));
                }
                _ => {}
            }
            if role == Some(Role::Doing) {
                self.choices(key, property, lexicon);
            }
        }
        // Whatever its name is, a tool with an amount and a recipient handles money.
        if let Some(act) = self.acts.first_mut().filter(|act| pays && payee && !is_of_money(act.resource)) {
            act.resource = Resource::Payment;
            self.because.push(ToolEvidence::new("schema", "an amount and a recipient", capability(act)));
        }
        let says_nothing =
            self.acts.first().is_none_or(|act| act.resource == Resource::Unknown && act.operation != Operation::Read);
        if pays && payee && says_nothing {
            self.because.push(ToolEvidence::new("schema", "an amount and a recipient", "payment:transfer"));
            self.acts.insert(0, Act::new("transfer", "money", Resource::Payment, Operation::Transfer, 0.5));
            self.confidence = 0.5;
        }
    }

    /// Marks a tool that runs the content of an argument.
    fn runs(&mut self, key: &str, through: Through) {
        let first = self.acts.first();
        let can_run = first.is_none()
            || self.acts.iter().any(|act| matches!(act.operation, Operation::Execute | Operation::Unknown));
        if !can_run || self.through.is_some() || first.is_some_and(|act| act.resource == Resource::Device) {
            return;
        }
        self.through = Some(through);
        if self.acts.is_empty() {
            self.acts.push(Act::new("run", "command", Resource::System, Operation::Execute, 0.6));
            self.confidence = 0.7;
        }
        self.because.push(ToolEvidence::new("schema", key, "runs what it is given"));
    }

    fn queries(&mut self, key: &str, role: Option<Role>) {
        let Some(act) = self.acts.first_mut() else { return };
        let is_database =
            act.resource == Resource::Database && matches!(act.operation, Operation::Execute | Operation::Unknown);
        let asks_sql = role == Some(Role::Sql)
            && matches!(act.resource, Resource::Database | Resource::Unknown | Resource::Analytics)
            && matches!(act.operation, Operation::Read | Operation::Execute | Operation::Unknown);
        // "get_report" with `sql`: the statement decides what the report does.
        let runs_sql = role == Some(Role::Sql)
            && key.to_ascii_lowercase().contains("sql")
            && matches!(act.operation, Operation::Read | Operation::Execute | Operation::Unknown);
        if self.through.is_none() && (is_database || asks_sql || runs_sql) {
            (act.resource, act.operation) = (Resource::Database, Operation::Execute);
            act.sure = act.sure.max(0.8);
            self.through = Some(Through::Sql);
            self.confidence = self.confidence.max(0.85);
            self.because.push(ToolEvidence::new("schema", key, "runs the SQL that it is given"));
        }
    }

    /// Adds the choices of an argument that selects the operation: each of them can be called.
    fn choices(&mut self, key: &str, property: &Value, lexicon: &Lexicon) {
        let Some(on) = self.acts.first().cloned() else { return };
        for choice in property.get("enum").and_then(Value::as_array).into_iter().flatten().take(MOST_CHOICES) {
            let Some(mut act) = choice.as_str().and_then(|choice| format::verb_act(choice, &on, lexicon)) else {
                continue;
            };
            if matches!(act.operation, Operation::Read | Operation::Unknown) || act.operation == on.operation {
                continue;
            }
            if on.resource != Resource::Unknown {
                (act.resource, act.noun) = (on.resource, on.noun.clone());
            }
            self.because.push(ToolEvidence::new("schema", format!("{key}: {choice}"), capability(&act)));
            self.possible.push(act);
        }
    }

    /// Applies the maker's hints: they raise the risk; a hint that would lower it counts as a contradiction.
    fn hints(&mut self, definition: &Definition<'_>) {
        let hints = definition.hints;
        let Some(first) = self.acts.first().cloned() else { return };
        let changes = |act: &Act| !matches!(act.operation, Operation::Read | Operation::Unknown);
        if hints.destructive == Some(true) && !self.acts.iter().any(|act| act.operation == Operation::Delete) {
            self.because.push(ToolEvidence::new("hint", "destructiveHint: true", format!("{}:delete", first.resource)));
            let delete = Act { operation: Operation::Delete, verb: "delete".to_owned(), risk: None, ..first.clone() };
            self.acts.push(delete.marked(Sign::Destructive));
        } else if hints.destructive == Some(true) {
            self.because.push(ToolEvidence::new("hint", "destructiveHint: true", "at least MEDIUM"));
            self.mark(Sign::Destructive);
        }
        if hints.read_only == Some(false) && !self.acts.iter().any(changes) {
            self.because.push(ToolEvidence::new("hint", "readOnlyHint: false", format!("{}:write", first.resource)));
            let write = Act { operation: Operation::Write, verb: "change".to_owned(), risk: None, ..first.clone() };
            self.acts.push(write);
            self.confidence = self.confidence.min(0.6);
        }
        if hints.open_world == Some(true) {
            for act in self.acts.iter_mut().filter(|act| act.operation == Operation::Send) {
                act.signs.add(Sign::Outside);
            }
            if self.acts.iter().any(|act| act.operation == Operation::Send) {
                self.because.push(ToolEvidence::new("hint", "openWorldHint: true", "reaches a party outside"));
            }
        }
        let claims_less = hints.read_only == Some(true) && self.acts.iter().any(changes)
            || hints.destructive == Some(false) && self.acts.iter().any(|act| act.operation == Operation::Delete);
        if claims_less {
            let hint = if hints.read_only == Some(true) { "readOnlyHint: true" } else { "destructiveHint: false" };
            self.because.push(ToolEvidence::new("hint", hint, "ignored: it contradicts the rest of the definition"));
            self.mark(Sign::Contradiction);
        }
        if hints.idempotent == Some(true) && first.operation == Operation::Transfer {
            self.because.push(ToolEvidence::new("hint", "idempotentHint: true", "ignored: it says nothing about risk"));
        }
    }

    fn mark(&mut self, sign: Sign) {
        for act in &mut self.acts {
            act.signs.add(sign);
        }
    }

    /// The acts to display: the worst that a call can do.
    pub(super) fn at_worst(&self) -> Vec<Act> {
        let mut acts = self.acts.clone();
        if let (Some(Through::Command | Through::Code | Through::Sql), Some(first)) = (self.through, acts.first_mut()) {
            first.risk = first.risk.max(Some(RiskLevel::High));
            first.signs.add(Sign::Downloaded);
        }
        acts.extend(self.possible.iter().cloned());
        acts
    }
}

/// The values that a schema lists for each argument.
fn choices_of(schema: &Map<String, Value>) -> Choices {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let listed = properties.filter_map(|(name, property)| {
        let list = property.get("enum").or_else(|| property.get("items")?.get("enum"))?.as_array()?;
        let choices: Box<[Box<str>]> =
            list.iter().filter_map(Value::as_str).map(Into::into).take(MOST_CHOICES).collect();
        Some((name.as_str().into(), choices))
    });
    listed.collect()
}

/// The names and descriptions of a tool's arguments.
fn argument_words(schema: &Map<String, Value>) -> String {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let described = properties.map(|(name, property)| {
        format!("{name} {}", property.get("description").and_then(Value::as_str).unwrap_or_default())
    });
    described.take(MOST_CHOICES).collect::<Vec<_>>().join(" ")
}

/// Returns whether a name such as `do_it` or `gmail_x` does not say what the tool does.
fn says_nothing(act: &Act) -> bool {
    tools().name_word("generic", &act.verb) && act.sure < 0.7 || act.sure < LEAST_SURE && !act.signs.has(Sign::Danger)
}

fn capability(act: &Act) -> String {
    format!("{}:{}", act.resource, act.operation)
}

fn texts(capabilities: &[Capability]) -> String {
    capabilities.iter().map(Capability::as_str).collect::<Vec<_>>().join(", ")
}

/// Returns whether money can be part of a resource.
const fn is_of_money(resource: Resource) -> bool {
    use Resource::{Account, Booking, Customer, Email, Message, Order, Payment, Unknown};
    matches!(resource, Account | Booking | Customer | Email | Message | Order | Payment | Unknown)
}

/// Ranks an operation by its reach.
const fn reach(operation: Operation) -> u8 {
    match operation {
        Operation::Unknown => 0,
        Operation::Read => 1,
        Operation::Write => 2,
        Operation::Send | Operation::Execute => 3,
        Operation::Delete => 4,
        Operation::Admin => 5,
        Operation::Transfer => 6,
    }
}

/// The minimum confidence in a name that determines what its tool does.
const LEAST_SURE: f64 = 0.5;
/// The minimum confidence in a name that says its tool only reads.
const PLAIN: f64 = 0.65;
/// The confidence if nothing determines what the tool does.
const UNKNOWN: f64 = 0.2;
/// Maximum number of choices of an argument that are looked at.
const MOST_CHOICES: usize = 64;
