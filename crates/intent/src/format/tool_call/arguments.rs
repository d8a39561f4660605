//! The effect of a call's arguments. Content is not a request; a command, query or code is read by its own reader;
//! places, recipients, amounts and flags are signs. An argument never lowers what the tool's name implies.

use std::borrow::Cow;

use crate::language::{Kind, classify};
use crate::lexicon::Lexicon;
use crate::programs::Program;
use crate::reading::Act;
use crate::sign::Sign;
use rulekeep_types::{
    MAX_CONTEXT_DEPTH, Operation, Resource, RiskLevel, TargetKind, TargetRole, UnreadKind, json_depth,
};

use super::super::hosts::{Known, Through, Use};
use super::super::query::{self, Query, Taker};
use super::super::tools::{Key, Part, Role, own_part, tools};
use super::super::{driver, graphql, name, patch, place, shell, tool_name};
use super::inspect::method_in;
use super::json::{Field, Json, values};
use super::shape::{self, Call};
use super::{Named, Reader, changes, deeds, effects};

/// The object that a call switches off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Switched {
    Nothing,
    Something,
    /// The subject of the tool itself: `configure_logging(enabled=false)`.
    Tool,
}

/// Notes on single values that count together with the rest of the call.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent notes, each set by any value")]
pub(super) struct Noted {
    /// A switch is set to true.
    pub is_on: bool,
    /// A lock is opened or an alarm switched off.
    pub opens: bool,
    /// A lock, an alarm or the like is named.
    pub bars: bool,
    /// A text claims an approval.
    pub claims: bool,
}

/// Reads the arguments of a call.
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that an argument may say")]
pub(super) struct Arguments<'r, 'l> {
    pub(super) reader: &'r mut Reader<'l>,
    pub(super) act: &'r mut Act,
    pub(super) through: Option<Through>,
    pub(super) known: Option<&'static Known>,
    trials: Vec<&'l [Box<str>]>,
    pub(super) name: Option<&'r str>,
    /// The words of the name.
    pub(super) words: Vec<String>,
    /// Whether the name says that the tool keeps what an agent reads later.
    pub(super) keeps: bool,
    /// Whether the argument that determines what the tool does has been read.
    pub(super) is_told: bool,
    /// Whether the call has a single argument.
    is_lone: bool,
    /// The conjunction of all `dry_run` arguments.
    dry_run: Option<bool>,
    pub(super) switched_off: Switched,
    pub(super) noted: Noted,
    /// Whether an agent or a terminal is addressed.
    pub(super) to_runner: bool,
    /// The number of amounts that calls before this one name.
    pub(super) first_amount: usize,
    /// The verb of the call only reads.
    pub(super) looks: bool,
}

impl<'r, 'l> Arguments<'r, 'l> {
    pub(super) fn new(
        reader: &'r mut Reader<'l>,
        act: &'r mut Act,
        named: &Named<'r, 'l>,
        trials: Vec<&'l [Box<str>]>,
    ) -> Self {
        let &Named { through, known, program: name, .. } = named;
        let words = name.map(name::words).unwrap_or_default();
        let first_amount = reader.reading.facts.amounts.len();
        Self {
            reader,
            act,
            through,
            known,
            trials,
            name,
            keeps: deeds::keeps(&words),
            words,
            is_told: false,
            is_lone: false,
            dry_run: None,
            switched_off: Switched::Nothing,
            noted: Noted::default(),
            to_runner: false,
            first_amount,
            looks: false,
        }
    }

    /// Reads all arguments. Returns whether they determined what the tool does.
    pub(super) fn read(mut self, call: &Call<'_>) -> bool {
        let fields = |value: &&Json<'_>| if let Json::Fields(fields) = value { fields.len() } else { 1 };
        self.is_lone = call.arguments.iter().map(fields).sum::<usize>() + call.beside.len() == 1;
        // A name among the arguments is that of a tool if the tool is there to call others.
        let calls_tools = self.words.iter().any(|word| matches!(&**word, "tool" | "tools" | "function" | "mcp"));
        let has_name = |inner: &[Field<'_>]| inner.iter().any(|(key, _)| key == "name");
        for value in &call.arguments {
            if matches!(value, Json::Fields(inner) if is_call(inner) && (calls_tools || !has_name(inner))) {
                // "use_mcp_tool" with the tool's name and its arguments.
                for inner in &shape::calls(value) {
                    self.reader.call(inner);
                }
            }
            self.value("", value);
        }
        if !call.beside.is_empty() {
            self.addressed(call.beside.iter().copied());
            call.beside.iter().for_each(|field| self.note_verb(std::slice::from_ref(*field)));
            self.opens_to_write(call.beside.iter().copied());
            self.requests(call.beside.iter().copied());
            self.joined(call.beside.iter().copied());
            for field in &call.beside {
                self.field(field);
            }
        }
        if self.dry_run == Some(true) {
            // Nothing is done, whatever its words indicate.
            self.act.learned = None;
            self.act.signs = self.act.signs.without(Sign::Danger);
            self.act.signs.add(Sign::DryRun);
        }
        if self.switched_off != Switched::Nothing && (changes(self.act.operation) || self.act.is_unknown()) {
            self.control(call);
        }
        self.together(call);
        self.whole_amount(call);
        self.is_told
    }

    /// INVARIANT: the depth is bounded by the reader's check, for each unpacked text.
    pub(super) fn value(&mut self, key: &str, value: &Json<'_>) {
        match value {
            Json::Fields(fields) => self.fields(fields),
            Json::List(items) => self.list(key, items),
            Json::Text(text) => self.text(key, text),
            Json::Number(number) => self.number(key, number.as_f64().unwrap_or_default()),
            Json::Bool(flag) => self.flag(key, *flag),
            Json::Null => {}
        }
    }

    fn fields(&mut self, fields: &[Field<'_>]) {
        self.addressed(fields.iter());
        self.note_verb(fields);
        self.opens_to_write(fields.iter());
        self.requests(fields.iter());
        self.joined(fields.iter());
        self.writes_code(fields);
        for field in fields {
            self.field(field);
        }
    }

    /// Reads the text of a file that the next test, build or start loads as the code that it is.
    fn writes_code(&mut self, fields: &[Field<'_>]) {
        if self.act.operation != Operation::Write {
            return;
        }
        let (mut path, mut texts) = (None, Vec::new());
        for (key, value) in fields {
            let row = self.known.and_then(|known| known.argument(key));
            match (row, tools().role(key), value) {
                (Some(Use::Write), _, Json::Text(text)) | (None, Some(Role::Path), Json::Text(text)) => {
                    path = Some(&**text);
                }
                (Some(Use::Content), _, Json::Text(text)) | (None, Some(Role::Content), Json::Text(text)) => {
                    texts.push(&**text);
                }
                _ => {}
            }
        }
        if let Some(path) = path.filter(|path| place::is_loaded(path)) {
            for text in texts {
                self.reader.reading.extend(shell::acts_of_file(path, text, self.reader.lexicon));
            }
        }
    }

    fn field(&mut self, (key, value): &Field<'_>) {
        if let Some(role) = self.known.and_then(|known| known.argument(key)) {
            return self.by_row(role, key, value);
        }
        // Variables that make a started program run another one.
        let is_variable = key.len() > 2 && key.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        if is_variable && shell::is_hostile_variable(key) {
            self.reader.reading.push(Act::unclear_execution("environment").told_by(key));
        }
        let is_nested = match value {
            Json::Fields(inner) => tools().nests(key) || is_call(inner),
            Json::List(items) => {
                tools().nests(key) || items.iter().any(|item| matches!(item, Json::Fields(inner) if is_call(inner)))
            }
            _ => false,
        };
        self.bound(key, value);
        if query::is_hostile_operator(key) {
            self.open_query(key);
        }
        if let (Json::Fields(inner), Some(Role::Amount)) = (value, tools().role(key)) {
            return self.amount_in(inner);
        }
        if is_nested {
            let calls = shape::calls(value);
            for call in &calls {
                self.reader.call(call);
            }
            if !calls.is_empty() {
                // "batch", "multi_tool_use": it does what it contains, if nothing else.
                self.is_told |= self.act.is_unknown() && self.is_lone && tools().nests(key);
                return;
            }
        }
        self.value(key, value);
    }

    /// Reads fields of one object that belong together: a program and its arguments, a method and an address.
    fn requests<'f, 'j: 'f>(&mut self, fields: impl Iterator<Item = &'f Field<'j>>) {
        let (mut program, mut rest, mut method, mut url) = (None, None, None, None);
        let mut has_body = false;
        for (key, value) in fields {
            match (&**key, tools().role(key), value) {
                ("args" | "argv" | "arguments" | "parameters" | "params" | "flags", _, Json::List(items)) => {
                    rest = Some(items);
                }
                (_, Some(Role::Command), Json::Text(text)) => program = Some(&**text),
                (_, Some(Role::Method), Json::Text(text)) if tools().is_http_method(text) => method = Some(&**text),
                (_, Some(Role::Url), Json::Text(text)) => url = Some(&**text),
                (_, Some(Role::Path) | None, Json::Text(text)) if text.contains("://") => {
                    url = url.or(Some(&**text));
                }
                (.., Json::Fields(_)) => method = method.or_else(|| method_in(value, DEEPEST_METHOD)),
                ("body" | "data" | "json" | "form" | "payload", ..) => has_body = true,
                _ => {}
            }
        }
        if let Some(rest) = rest
            && let Some(program) = program.or_else(|| self.program())
        {
            let mut line = program.to_owned();
            rest.iter().filter_map(Json::as_text).for_each(|word| push_word(&mut line, word));
            self.command(&line);
        }
        let is_request = self.through == Some(Through::Http);
        if let Some(url) = url.filter(|_| is_request || self.act.resource == Resource::Web)
            && self.local_file(url)
        {
            self.is_told |= is_request;
            return;
        }
        if let Some(url) = url.filter(|_| is_request || method.is_some()) {
            let reads_page = self.act.operation == Operation::Read && method.is_none();
            let usual = if has_body && !reads_page { "POST" } else { "GET" };
            let method = method.unwrap_or(usual).to_ascii_uppercase();
            let address = if url.contains("://") || url.starts_with('/') {
                Cow::Borrowed(url)
            } else {
                Cow::Owned(format!("https://{url}"))
            };
            if let Some(mut request) = driver::request(&format!("{method} {address}"), self.reader.lexicon) {
                for act in &mut request.acts {
                    if act.operation == Operation::Delete && act.resource == Resource::Web {
                        // The data sent is unknown.
                        act.risk = act.risk.max(Some(RiskLevel::High));
                    }
                }
                self.reader.reading.absorb(request);
                self.is_told |= is_request;
            }
        }
    }

    fn list(&mut self, key: &str, items: &[Json<'_>]) {
        let role = tools().role(key);
        if items.len() > MANY_ITEMS {
            self.reader.reading.facts.note_count(items.len() as u64);
        }
        match role {
            Some(Role::Recipient) if items.len() > MANY_RECIPIENTS => self.sign(Sign::ManyRecipients, key),
            Some(Role::Command) if !key.ends_with("ands") => {
                let mut line = String::new();
                items.iter().filter_map(Json::as_text).for_each(|word| push_word(&mut line, word));
                return self.command(&line);
            }
            _ => {}
        }
        if matches!(role, None | Some(Role::Path | Role::Idle)) {
            self.joined_list(items);
        }
        self.cleared(key, items);
        for item in items {
            if let Json::Fields(fields) = item {
                let stage = fields.iter().find(|(key, _)| key.starts_with('$') && !query::is_calm_stage(key));
                stage.filter(|_| query::is_key(key)).into_iter().for_each(|(stage, _)| self.open_query(stage));
            }
            match item {
                Json::Fields(fields) if is_call(fields) => {
                    for call in &shape::calls(item) {
                        self.reader.call(call);
                    }
                }
                _ => self.value(key, item),
            }
        }
    }

    fn number(&mut self, key: &str, value: f64) {
        match tools().role(key) {
            Some(Role::Amount) => self.amount(value),
            Some(Role::Count) if value >= 1.0 => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "clamped to the range of counts"
                )]
                self.reader.reading.facts.note_count(value.clamp(0.0, 1e15) as u64);
            }
            Some(Role::Force | Role::Bulk | Role::Public | Role::DryRun) => self.flag(key, value != 0.0),
            None if value == 0.0 => self.switch_off(key),
            None if (value - 1.0).abs() < f64::EPSILON => self.counted_on(key),
            _ => {}
        }
    }

    fn amount(&mut self, value: f64) {
        if value < 0.0 && self.act.operation == Operation::Transfer {
            // A negative amount moves money in the other direction.
            self.act.risk = Some(RiskLevel::Critical);
        }
        self.reader.reading.facts.note_amount(value.abs(), None);
    }

    fn flag(&mut self, key: &str, flag: bool) {
        self.noted.is_on |= flag;
        match (tools().role(key), flag) {
            (Some(Role::Force), true) => {
                if (self.act.operation, self.act.resource) == (Operation::Write, Resource::Code) {
                    // `push --force`: the existing history is lost.
                    self.act.risk = self.act.risk.max(Some(RiskLevel::High));
                }
                self.sign(Sign::Force, key);
                if self.act.operation == Operation::Read || tools().name_word("carries", &self.act.verb) {
                    self.switched_on(key);
                }
            }
            (Some(Role::Bulk), true) => {
                self.sign(Sign::Bulk, key);
                self.switched_on(key);
            }
            (Some(Role::Public), true) => self.opened(key),
            (Some(Role::DryRun), flag) => {
                // Under a name that the tool does not know, it requests nothing.
                let is_meant = self.trials.iter().all(|known| known.iter().any(|known| **known == *key));
                self.dry_run = Some(self.dry_run.unwrap_or(true) && flag && is_meant);
            }
            (_, true) => self.switched_on(key),
            (_, false) if tools().value("closes", key) => self.opened(key),
            (_, false) => self.switch_off(key),
        }
    }

    pub(super) fn switch_off(&mut self, key: &str) {
        let is_tool = self.switched_off == Switched::Tool || tools().value("switches", key);
        self.switched_off = if is_tool { Switched::Tool } else { Switched::Something };
    }

    pub(super) fn sign(&mut self, sign: Sign, found: &str) {
        self.act.signs.add(sign);
        self.reader.reading.facts.show(sign, found);
    }

    fn text(&mut self, key: &str, text: &str) {
        let role = match tools().role(key) {
            None if key.is_empty() => return self.bare(text),
            role => role,
        };
        if (changes(self.act.operation) || self.act.is_unknown()) && patch::is_patch(text) {
            return self.patch(text);
        }
        self.note_value(role, text);
        self.directed(key, text);
        self.binned(key, text);
        self.unbounded_id(key, text);
        self.permitted(key, text);
        if tools().value("yes", text) && tools().value("switches", key) {
            self.noted.is_on = true;
        }
        if !matches!(role, Some(Role::Query | Role::Sql)) && query::is_key(key) {
            self.language(key, text);
        }
        if let Some(segment) = query::acting_segment(text).filter(|_| self.act.operation == Operation::Read) {
            self.open_query(segment);
        }
        match role {
            Some(Role::Query | Role::Sql) if self.language(key, text) => {}
            Some(Role::Query) => self.query(text),
            Some(Role::Sql) => self.sql(text),
            Some(Role::Command) => self.command_or_verb(text),
            Some(Role::Script) if self.runs(Through::Command) => self.command(text),
            Some(Role::Script | Role::Code) if self.runs(Through::Code) => self.code(),
            // A script is meant to be run, unless it is what is written or read.
            Some(Role::Script) if self.act.operation == Operation::Read && self.act.resource != Resource::Code => {
                self.code();
            }
            Some(Role::Currency) => self.reader.reading.facts.note_currency(text),
            Some(Role::Recipient) => self.recipient(key, text),
            Some(Role::Amount) => match classify(text.trim()) {
                Some(Kind::Number(value)) => self.amount(value),
                _ => match text.trim().parse::<f64>().ok().or_else(|| effects::money(text)) {
                    Some(value) => self.amount(value),
                    None if tools().value("everything", text) => self.sign(Sign::AllMoney, text),
                    None => {}
                },
            },
            // Text typed into a machine may be a command, and text for an agent a request.
            Some(Role::Content) => self.for_runner(text),
            Some(Role::Count) => match text.trim().parse::<f64>() {
                Ok(value) => self.number(key, value),
                Err(_) if tools().value("everything", text) => self.sign(Sign::Bulk, text),
                Err(_) => {}
            },
            Some(Role::Force | Role::Bulk | Role::Public) if tools().value("yes", text) => self.flag(key, true),
            // Only a true value requests a trial.
            Some(Role::DryRun) => self.dry_run = Some(false),
            Some(Role::Environment) if is_production(text) => self.sign(Sign::Production, text),
            Some(Role::Access) => self.access(text),
            Some(Role::Visibility) if tools().value("open", text) => self.opened(text),
            Some(Role::Doing | Role::Method) => self.doing(key, text),
            Some(Role::Secret) => self.stores_secret(key),
            Some(Role::Nested) if text.trim_start().starts_with(['{', '[']) => self.unpack(text),
            Some(Role::Request) if self.through == Some(Through::Request) => self.order(text),
            None if matches!(&*text.trim().to_ascii_lowercase(), "true" | "yes") => self.flag(key, true),
            Some(Role::Url | Role::Path | Role::Nested | Role::Environment | Role::Visibility) | None => {
                if role.is_none() && !tools().keys(key).has(Key::Callback) {
                    self.stated(text);
                    self.run_by_name(text);
                }
                self.place(key, role, text);
            }
            _ => {}
        }
        if matches!(role, None | Some(Role::Path | Role::Idle | Role::Url)) && effects::is_off(text) {
            self.switch_off(key);
        }
        self.inspect(key, text, role);
    }

    /// Reads arguments given as a single text: JSON in a string, or the tool's main argument.
    fn bare(&mut self, text: &str) {
        let is_wrapped = text.len() > 2 && text.starts_with('"') && text.ends_with('"') && text.contains('{');
        if is_wrapped || text.trim_start().starts_with(['{', '[']) {
            return self.unpack(text);
        }
        match self.through {
            Some(Through::Command) => self.command(text),
            Some(Through::Sql) => self.sql(text),
            Some(Through::Code) => self.code(),
            Some(Through::Request) => self.order(text),
            _ if patch::is_patch(text) => self.patch(text),
            _ => {
                self.place("", None, text);
                self.inspect("", text, None);
            }
        }
    }

    /// Unpacks arguments given as JSON in a string, as `OpenAI` does.
    pub(super) fn unpack(&mut self, text: &str) {
        if json_depth(text) > MAX_CONTEXT_DEPTH || self.reader.unpacked >= MOST_UNPACKED {
            self.reader.reading.facts.note_unread(UnreadKind::Argument, text);
            self.reader.reading.push(Act::unclear_execution("tool"));
            return;
        }
        let (values, is_complete) = values(text);
        self.reader.unpacked += 1;
        for value in &values {
            match value {
                Json::Fields(fields) if is_call(fields) => {
                    for call in &shape::calls(value) {
                        self.reader.call(call);
                    }
                }
                _ => self.value("", value),
            }
        }
        self.reader.unpacked -= 1;
        if !is_complete {
            self.reader.reading.push(Act::unclear_execution("tool").told_by(text));
        }
    }

    /// Returns whether code or a command in an argument is run: by the tool's kind, or because nothing else is known
    /// about the tool.
    fn runs(&self, through: Through) -> bool {
        self.through == Some(through)
            || self.act.operation == Operation::Execute && self.through.is_none()
            || self.act.is_unknown()
    }

    fn query(&mut self, text: &str) {
        if let Some(mutations) = graphql::mutations(text) {
            for field in mutations {
                let act = mutation(field, self.reader.lexicon);
                self.reader.reading.push(act);
            }
            self.is_told |= self.act.is_unknown() || self.through.is_some();
            return;
        }
        if self.through == Some(Through::Sql) {
            return self.sql(text);
        }
        let searches = self.act.resource == Resource::Unknown && tools().name_word("searches", &self.act.verb);
        let searches_content = self.act.operation == Operation::Read
            && (searches
                || !matches!(
                    self.act.resource,
                    Resource::Database
                        | Resource::Unknown
                        | Resource::System
                        | Resource::Analytics
                        | Resource::Customer
                ));
        if !searches_content && let Some(reading) = driver::sql(text, self.reader.lexicon) {
            self.reader.reading.absorb(reading);
        }
    }

    /// Reads a statement of a query language that no reader parses. Returns whether the text was judged as one.
    fn language(&mut self, key: &str, text: &str) -> bool {
        let is_named = query::is_language(key) || self.words.iter().any(|word| query::is_language(word));
        let searches = tools().name_word("searches", &self.act.verb);
        let is_query = matches!(tools().role(key), Some(Role::Query | Role::Sql));
        let taker = match () {
            () if !is_named && !is_query => return false,
            () if is_named && !searches => Taker::Language,
            () if is_named => Taker::Engine,
            // SQL and GraphQL have readers of their own.
            () if self.through == Some(Through::Sql) || graphql::is_document(text) => return false,
            () if driver::sql(text, self.reader.lexicon).is_some() => return false,
            () if self.act.resource == Resource::Database && !searches => Taker::Language,
            () => Taker::Search,
        };
        if query::judge(text, taker) == Query::Open {
            self.open_query(text);
        }
        is_named
    }

    /// Adds a statement that may change something.
    fn open_query(&mut self, found: &str) {
        let run = Act::new("run", "query", Resource::Database, Operation::Execute, 0.6).told_by(found);
        self.reader.reading.push(run.at_risk(RiskLevel::High).marked(Sign::Unclear));
    }

    fn sql(&mut self, text: &str) {
        self.reader.reading.absorb(driver::statement(text, self.reader.lexicon));
        self.is_told |= self.through == Some(Through::Sql);
    }

    pub(super) fn code(&mut self) {
        self.reader.reading.push(Act::unseen_code());
        self.is_told |= self.through == Some(Through::Code);
    }

    /// The program that the tool is named after, if any.
    fn program(&self) -> Option<&'r str> {
        let name = self.name?;
        let own = own_part(name).unwrap_or(name);
        let client = |word: &str| tools().clients.get(word).map(String::as_str);
        let database = || name::words(own).iter().find_map(|word| client(word));
        if let Some(program) = client(own).or_else(database) {
            return Some(program);
        }
        Some(own).filter(|own| self.reader.lexicon.programs.knows(own))
    }

    pub(super) fn command(&mut self, line: &str) {
        if patch::is_patch(line) {
            return self.patch(line);
        }
        // Only the arguments of a program's own tool begin with another word than a program.
        let runs_lines = |program: &str| self.reader.lexicon.programs.get(program).is_some_and(Program::runs_lines);
        let of_program = self.program().filter(|program| !runs_lines(program));
        let of_program = of_program.filter(|_| !self.begins_with_program(line));
        let line = of_program.map_or(Cow::Borrowed(line), |program| Cow::Owned(format!("{program} {line}")));
        self.reader.reading.absorb(driver::command(&line, self.reader.lexicon));
        self.is_told |= of_program.is_some() || matches!(self.through, Some(Through::Command | Through::Code));
    }

    /// Returns whether a line begins with a program in any spelling, or with a word of the shell.
    fn begins_with_program(&self, line: &str) -> bool {
        let first = line.split_whitespace().next().unwrap_or("");
        let plain: String = first.chars().filter(|c| !matches!(c, '"' | '\'' | '\\')).collect();
        let name = plain.rsplit('/').next().unwrap_or_default();
        self.reader.lexicon.programs.knows(name)
            || first.starts_with(['!', '{', '(', '$', '`', '['])
            || first.contains('=') && !first.starts_with('-')
    }

    /// Reads a command line, or an instruction to an editor or device.
    fn command_or_verb(&mut self, text: &str) {
        let is_word = !text.trim().contains(char::is_whitespace);
        let is_program = self.reader.lexicon.programs.knows(text.trim());
        match self.through {
            Some(Through::Verb) => self.known_verb(text),
            Some(Through::Command) => self.command(text),
            _ if is_word && !is_program && self.program().is_some() => self.command(text),
            _ if is_word && !is_program && !self.act.is_unknown() => self.doing("action", text),
            _ => self.command(text),
        }
    }

    pub(super) fn known_verb(&mut self, text: &str) {
        let Some((resource, operation)) = self.known.and_then(|known| known.under(text.trim())) else { return };
        let noun = std::mem::take(&mut self.act.noun);
        let told = Act::new(text.trim(), &noun, resource, operation, 0.9).told_by(text);
        self.act.noun = noun;
        self.reader.reading.push(told);
        self.is_told = true;
    }

    fn recipient(&mut self, key: &str, text: &str) {
        let kind = match () {
            () if text.contains('@') => TargetKind::Recipient,
            () if text.contains("://") => TargetKind::Host,
            () if text.contains(['/', '\\']) => TargetKind::Path,
            () if tools().keys(key).has(Key::Account) => TargetKind::Account,
            () => TargetKind::Recipient,
        };
        let role = match () {
            () if tools().keys(key).has(Key::Bcc) => TargetRole::Bcc,
            () if tools().keys(key).has(Key::Cc) => TargetRole::Cc,
            () => TargetRole::To,
        };
        self.reader.reading.facts.note_target_as(kind, role, text);
        if tools().keys(key).has(Key::Shares) {
            self.opened_to(key);
        }
        if self.act.resource == Resource::Calendar && self.act.operation == Operation::Write {
            let guests = Act { operation: Operation::Send, is_entailed: true, ..self.act.clone() };
            self.reader.reading.push(guests);
        }
        if tools().value("everybody", text) {
            self.sign(Sign::ManyRecipients, text);
        }
        if self.act.operation == Operation::Send && matches!(classify(text), Some(Kind::Email)) {
            self.act.signs.add(Sign::Outside);
        }
    }
}

/// Returns whether an object inside arguments is a call itself.
fn is_call(fields: &[Field<'_>]) -> bool {
    let has = |wanted: Part| {
        fields.iter().any(|(key, value)| {
            tools().part(key) == Some(wanted) && (wanted != Part::Name || value.as_text().is_some())
        })
    };
    has(Part::Name) && has(Part::Arguments)
}

/// Adds a word to a command line, quoted so that the shell reads it as one word.
pub(super) fn push_word(line: &mut String, word: &str) {
    if !line.is_empty() {
        line.push(' ');
    }
    let is_plain =
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./=:,@%+".contains(&byte));
    if is_plain {
        line.push_str(word);
    } else {
        line.push('\'');
        line.push_str(&word.replace('\'', r"'\''"));
        line.push('\'');
    }
}

pub(super) fn is_production(text: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric()).any(|word| tools().value("production", word))
}

/// More recipients than this are very many.
const MANY_RECIPIENTS: usize = 50;
/// More list items than this count as records.
const MANY_ITEMS: usize = 1000;
/// Maximum depth of texts inside texts that are unpacked.
const MOST_UNPACKED: u8 = 4;
/// Maximum length of a value that is a verb or a setting, in bytes.
pub(super) const LONGEST_VERB: usize = 64;
/// The act of a mutation by its name; one whose name says nothing still changes something.
fn mutation(field: &str, lexicon: &Lexicon) -> Act {
    let changes = |act: &Act| !matches!(act.operation, Operation::Read | Operation::Unknown);
    tool_name::acts(field, lexicon).into_iter().find(changes).unwrap_or_else(|| {
        Act::new("change", "record", Resource::Database, Operation::Write, 0.5).told_by(field).marked(Sign::Unclear)
    })
}

/// Maximum length of a value that is a place, in bytes.
pub(super) const LONGEST_PLACE: usize = 4096;
/// Maximum depth of objects in which a method is searched.
const DEEPEST_METHOD: u8 = 3;
