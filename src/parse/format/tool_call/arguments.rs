//! What the arguments of a call add to it. Content is no request; a command, a
//! query or code is read by its own reader; places, recipients, amounts and
//! flags are signs. An argument never lowers what the name says.

use std::borrow::Cow;

use crate::model::{MAX_CONTEXT_DEPTH, Operation, Resource, RiskLevel, json_depth};
use crate::parse::language::{Kind, Token, classify, tokenise};
use crate::parse::reading::Act;
use crate::parse::risk;
use crate::parse::sign::Sign;

use super::super::{code, english, http, name, place, shell, sql};
use super::json::{Field, Json, values};
use super::known::{Known, Part, Role, Through, own_part, tools};
use super::shape::{self, Call};
use super::{Named, Reader, changes, secret};

/// Reads the arguments of one call.
pub(super) struct Arguments<'r, 'l> {
    reader: &'r mut Reader<'l>,
    act: &'r mut Act,
    through: Option<Through>,
    known: Option<&'static Known>,
    ignores_dry_run: bool,
    name: Option<&'r str>,
    /// The argument that says what the tool does was found and read.
    is_told: bool,
    /// Whether every `dry_run` says so.
    dry_run: Option<bool>,
    /// Something is switched off.
    switches_off: bool,
    /// What is switched off is what the tool is about.
    switches_tool: bool,
}

impl<'r, 'l> Arguments<'r, 'l> {
    pub(super) fn new(reader: &'r mut Reader<'l>, act: &'r mut Act, named: &Named<'r>) -> Self {
        let &Named { through, known, ignores_dry_run, program: name, .. } = named;
        Self {
            reader,
            act,
            through,
            known,
            ignores_dry_run,
            name,
            is_told: false,
            dry_run: None,
            switches_off: false,
            switches_tool: false,
        }
    }

    /// Reads them all; whether what the tool does was told by them.
    pub(super) fn read(mut self, call: &Call<'_>) -> bool {
        for value in &call.arguments {
            self.value("", value);
        }
        if !call.beside.is_empty() {
            self.requests(call.beside.iter().copied());
            for field in &call.beside {
                self.field(field);
            }
        }
        if self.dry_run == Some(true) && !self.ignores_dry_run {
            self.act.signs.add(Sign::DryRun);
        }
        if self.switches_off && (changes(self.act.operation) || self.act.is_unknown()) {
            self.control(call);
        }
        self.is_told
    }

    /// INVARIANT: depth is bounded by what the reader checked, for each text that is unpacked.
    fn value(&mut self, key: &str, value: &Json<'_>) {
        match value {
            Json::Fields(fields) => self.fields(fields),
            Json::List(items) => self.list(key, items),
            Json::Text(text) => self.text(key, text),
            Json::Number(number) => self.number(key, *number),
            Json::Bool(flag) => self.flag(key, *flag),
            Json::Null => {}
        }
    }

    fn fields(&mut self, fields: &[Field<'_>]) {
        self.requests(fields.iter());
        for field in fields {
            self.field(field);
        }
    }

    fn field(&mut self, (key, value): &Field<'_>) {
        let is_nested = match value {
            Json::Fields(inner) => tools().nests(key) || is_call(inner),
            Json::List(items) => {
                tools().nests(key) || items.iter().any(|item| matches!(item, Json::Fields(inner) if is_call(inner)))
            }
            _ => false,
        };
        if is_nested {
            let calls = shape::calls(value);
            for call in &calls {
                self.reader.call(call);
            }
            if !calls.is_empty() {
                // "batch", "multi_tool_use": what it does is what stands in it.
                self.is_told |= self.act.is_unknown();
                return;
            }
        }
        self.value(key, value);
    }

    /// What several fields of one object say together: a program and its arguments, a method and an address.
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
        if let Some(url) = url.filter(|_| is_request || method.is_some()) {
            let reads_page = self.act.operation == Operation::Read && method.is_none();
            let usual = if has_body && !reads_page { "POST" } else { "GET" };
            let method = method.unwrap_or(usual).to_ascii_uppercase();
            let address = if url.contains("://") || url.starts_with('/') {
                Cow::Borrowed(url)
            } else {
                Cow::Owned(format!("https://{url}"))
            };
            if let Some(mut request) = http::read(&format!("{method} {address}"), self.reader.lexicon) {
                for act in &mut request.acts {
                    if act.operation == Operation::Delete && act.resource == Resource::Web {
                        // What goes is not known.
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
        for item in items {
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
            None if value == 0.0 => self.switched_off(key),
            _ => {}
        }
    }

    fn amount(&mut self, value: f64) {
        if value < 0.0 && self.act.operation == Operation::Transfer {
            // Less than nothing moves money the other way.
            self.act.risk = Some(RiskLevel::Critical);
        }
        self.reader.reading.facts.note_amount(value.abs(), None);
    }

    fn flag(&mut self, key: &str, flag: bool) {
        match (tools().role(key), flag) {
            (Some(Role::Force), true) => self.sign(Sign::Force, key),
            (Some(Role::Bulk), true) => self.sign(Sign::Bulk, key),
            (Some(Role::Public), true) => self.opened(key),
            (Some(Role::DryRun), flag) => self.dry_run = Some(self.dry_run.unwrap_or(true) && flag),
            (_, false) => self.switched_off(key),
            _ => {}
        }
    }

    fn switched_off(&mut self, key: &str) {
        self.switches_off = true;
        self.switches_tool |= tools().value("switches", key);
    }

    fn sign(&mut self, sign: Sign, found: &str) {
        self.act.signs.add(sign);
        self.reader.reading.facts.show(sign, found);
    }

    fn text(&mut self, key: &str, text: &str) {
        let role = match tools().role(key) {
            None if key.is_empty() => return self.bare(text),
            role => role,
        };
        match role {
            Some(Role::Content) => self.content(text),
            Some(Role::Query) => self.query(text),
            Some(Role::Sql) => self.sql(text),
            Some(Role::Command) => self.command_or_verb(text),
            Some(Role::Script) if self.runs(Through::Command) => self.command(text),
            Some(Role::Script | Role::Code) if self.runs(Through::Code) => self.code(),
            Some(Role::Recipient) => self.recipient(text),
            Some(Role::Amount) => match classify(text.trim()) {
                Some(Kind::Number(value)) => self.amount(value),
                _ => match text.trim().parse::<f64>() {
                    Ok(value) => self.amount(value),
                    Err(_) if tools().value("everything", text) => self.sign(Sign::AllMoney, text),
                    Err(_) => {}
                },
            },
            Some(Role::Count) => match text.trim().parse::<f64>() {
                Ok(value) => self.number(key, value),
                Err(_) if tools().value("everything", text) => self.sign(Sign::Bulk, text),
                Err(_) => {}
            },
            Some(Role::Force | Role::Bulk | Role::Public) if tools().value("yes", text) => self.flag(key, true),
            // Only the truth itself is a trial.
            Some(Role::DryRun) => self.dry_run = Some(false),
            Some(Role::Environment) if is_production(text) => self.sign(Sign::Production, text),
            Some(Role::Access) => self.access(text),
            Some(Role::Visibility) if tools().value("open", text) => self.opened(text),
            Some(Role::Doing | Role::Method) => self.doing(key, text),
            Some(Role::Secret) => self.stores_secret(key),
            Some(Role::Nested) if text.trim_start().starts_with(['{', '[']) => self.unpack(text),
            Some(Role::Request) if self.through == Some(Through::Request) => {
                self.reader.reading.absorb(english(text, self.reader.lexicon));
                self.is_told = true;
            }
            Some(Role::Url | Role::Path | Role::Nested | Role::Environment | Role::Visibility) | None => {
                self.place(key, text);
            }
            _ => {}
        }
        if matches!(role, None | Some(Role::Path | Role::Idle | Role::Url)) {
            if tools().value("off", text) {
                self.switched_off(key);
            }
            self.injected(text);
        }
    }

    /// The arguments as one text: JSON in a string, or what the tool is for.
    fn bare(&mut self, text: &str) {
        if text.trim_start().starts_with(['{', '[']) {
            return self.unpack(text);
        }
        match self.through {
            Some(Through::Command) => self.command(text),
            Some(Through::Sql) => self.sql(text),
            Some(Through::Code) => self.code(),
            Some(Through::Request) => {
                self.reader.reading.absorb(english(text, self.reader.lexicon));
                self.is_told = true;
            }
            _ => self.place("", text),
        }
    }

    /// `OpenAI` hands arguments over as JSON in a string.
    fn unpack(&mut self, text: &str) {
        if json_depth(text) > MAX_CONTEXT_DEPTH || self.reader.unpacked >= MOST_UNPACKED {
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
            self.reader.reading.push(Act::unclear_execution("tool").from_operation(text));
        }
    }

    /// Whether code or a command in an argument is run: by the tool's kind, or because nothing else is known of it.
    fn runs(&self, through: Through) -> bool {
        self.through == Some(through)
            || self.act.operation == Operation::Execute && self.through.is_none()
            || self.act.is_unknown()
    }

    fn content(&mut self, text: &str) {
        if self.act.operation == Operation::Send && secret::holds(text) {
            self.sign(Sign::Secret, "the content");
        }
    }

    fn query(&mut self, text: &str) {
        if self.through == Some(Through::Sql) {
            return self.sql(text);
        }
        let searches_content = self.act.operation == Operation::Read
            && !matches!(
                self.act.resource,
                Resource::Database | Resource::Unknown | Resource::System | Resource::Analytics | Resource::Customer
            );
        if !searches_content && let Some(reading) = sql::read(text) {
            self.reader.reading.absorb(reading);
        }
    }

    fn sql(&mut self, text: &str) {
        self.reader.reading.absorb(sql::read_anyway(text));
        self.is_told |= self.through == Some(Through::Sql);
    }

    fn code(&mut self) {
        self.reader.reading.push(code());
        self.is_told |= self.through == Some(Through::Code);
    }

    /// The program that the tool is named after, if it is one.
    fn program(&self) -> Option<&'r str> {
        let name = self.name?;
        Some(own_part(name).unwrap_or(name)).filter(|own| self.reader.lexicon.programs.knows(own))
    }

    fn command(&mut self, line: &str) {
        let first = line.split_whitespace().next().unwrap_or("");
        let of_program = self.program().filter(|_| !self.reader.lexicon.programs.knows(first));
        let line = of_program.map_or(Cow::Borrowed(line), |program| Cow::Owned(format!("{program} {line}")));
        self.reader.reading.absorb(shell::read(&line, self.reader.lexicon));
        self.is_told |= of_program.is_some() || matches!(self.through, Some(Through::Command | Through::Code));
    }

    /// A command line, or what an editor or a device is told to do.
    fn command_or_verb(&mut self, text: &str) {
        let is_word = !text.trim().contains(char::is_whitespace);
        let is_program = self.reader.lexicon.programs.knows(text.trim());
        match self.through {
            Some(Through::Verb) => self.known_verb(text),
            Some(Through::Command) => self.command(text),
            _ if is_word && !is_program && !self.act.is_unknown() => self.doing("action", text),
            _ => self.command(text),
        }
    }

    fn known_verb(&mut self, text: &str) {
        let Some((resource, operation)) = self.known.and_then(|known| known.under(text.trim())) else { return };
        let noun = std::mem::take(&mut self.act.noun);
        let told = Act::new(text.trim(), &noun, resource, operation, 0.9).from_operation(text);
        self.act.noun = noun;
        self.reader.reading.push(told);
        self.is_told = true;
    }

    fn recipient(&mut self, text: &str) {
        self.reader.reading.facts.note_target(text);
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

    /// A role or a right: what is handed over is admin, whatever the tool is called.
    fn access(&mut self, text: &str) {
        if self.act.operation == Operation::Read {
            return;
        }
        let last = text.rsplit(['/', ':', '.']).next().unwrap_or(text);
        if tools().value("open", text) {
            return self.opened(text);
        }
        if !(tools().value("administrator", text) || tools().value("administrator", last)) {
            return;
        }
        self.sign(Sign::Administrator, text);
        if self.act.operation != Operation::Admin {
            let grant = Act::new("grant", "role", Resource::Permission, Operation::Admin, 0.8).from_operation(text);
            self.reader.reading.push(grant.marked(Sign::Administrator));
        }
    }

    /// Something is opened to everybody.
    fn opened(&mut self, found: &str) {
        if matches!(self.act.operation, Operation::Read | Operation::Transfer) || self.act.resource == Resource::Social
        {
            return;
        }
        self.sign(Sign::OpenLink, found);
        if self.act.operation != Operation::Admin {
            let share = Act::new("share", "link", Resource::Permission, Operation::Admin, 0.7).from_operation(found);
            self.reader.reading.push(share.marked(Sign::OpenLink));
        }
    }

    /// A given secret is kept with what is written.
    fn stores_secret(&mut self, key: &str) {
        if matches!(self.act.operation, Operation::Write | Operation::Unknown) {
            let store = Act::new("store", "credential", Resource::Credential, Operation::Write, 0.7).from_resource(key);
            self.reader.reading.push(store);
        }
    }

    /// What an argument says that the tool does: a verb or a method of HTTP.
    fn doing(&mut self, key: &str, text: &str) {
        if text.contains(' ') || text.len() > LONGEST_VERB {
            return;
        }
        if self.through == Some(Through::Verb) {
            return self.known_verb(text);
        }
        if matches!(self.through, Some(Through::Http)) && tools().is_http_method(text) {
            return;
        }
        let words = name::words(text);
        let mut other = match text.to_ascii_uppercase().as_str() {
            "GET" | "HEAD" | "OPTIONS" => return,
            "POST" if key.contains("method") => Act::new("post", "url", Resource::Web, Operation::Send, 0.7),
            "PUT" | "PATCH" if key.contains("method") => Act::new("put", "url", Resource::Web, Operation::Write, 0.7),
            _ => match self.verb(&words) {
                Some(other) => other,
                None => return,
            },
        };
        other = other.from_operation(text);
        if self.act.resource != Resource::Unknown {
            other.resource = self.act.resource;
            other.noun.clone_from(&self.act.noun);
        }
        // "manage_user" with "delete" acts on who may do what.
        if other.operation == Operation::Delete {
            other = other.at_risk(RiskLevel::High);
        }
        if other.operation == Operation::Read {
            return;
        }
        self.switches_off |= tools().value("off", text);
        self.reader.reading.push(other);
    }

    /// The act of a value that is a verb, and no noun as well: "text" and "email" are kinds of things.
    fn verb(&self, words: &[String]) -> Option<Act> {
        let entry = self.reader.lexicon.word(words.first()?)?;
        if words.len() == 1 && entry.noun.is_some() {
            return None;
        }
        name::verb_act(words, self.act, self.reader.lexicon)
    }

    /// Paths, hosts and addresses by the shape of the value.
    fn place(&mut self, key: &str, text: &str) {
        if text.len() > LONGEST_PLACE {
            return;
        }
        let role = tools().role(key);
        if place::is_secret(text) {
            self.sign(Sign::Secret, text);
            let read = Act::new("read", "secret", Resource::Credential, Operation::Read, 0.8).from_resource(text);
            self.reader.reading.push(read.at_risk(RiskLevel::High));
        }
        let changes_it = !matches!(self.act.operation, Operation::Read | Operation::Send);
        if changes_it && role != Some(Role::Url) && place::is_system(text) {
            let system = Act::new("write", "system_file", Resource::Config, Operation::Write, 0.8).from_resource(text);
            self.reader.reading.push(system.at_risk(RiskLevel::High));
        }
        if self.act.operation == Operation::Delete
            && (place::is_whole(text) && text.contains(['/', '~']) || matches!(text.trim(), "*" | "**"))
        {
            self.sign(Sign::Force, text);
        }
        let shape = if text.contains(' ') { None } else { classify(text) };
        let is_named = matches!(role, Some(Role::Path | Role::Url));
        if is_named || matches!(shape, Some(Kind::Email | Kind::Path | Kind::Url)) {
            self.reader.reading.facts.note_target(text);
        }
        if matches!(shape, Some(Kind::Email)) && self.act.operation == Operation::Send {
            self.act.signs.add(Sign::Outside);
        }
        if self.act.is_unknown() && shape == Some(Kind::Url) {
            // A tool whose name says nothing, with an address: it may send as well as fetch.
            let found = std::mem::take(&mut self.act.found);
            *self.act = Act::new("request", "url", Resource::Web, Operation::Execute, 0.35).marked(Sign::Unclear);
            self.act.found = found;
        }
    }

    /// A value that is no command, with one behind a mark of the shell: `Oslo; rm -rf /`.
    fn injected(&mut self, text: &str) {
        if text.len() > LONGEST_PLACE {
            return;
        }
        let Some(place) = text.find(['`', ';', '|', '&', '$', '\n']) else { return };
        let rest = text.get(place..).unwrap_or("").trim_start_matches(['`', ';', '|', '&', '$', '(', '{', ' ', '\n']);
        let program = rest.split(|c: char| c.is_whitespace() || matches!(c, '`' | ')' | ';')).next().unwrap_or("");
        if !self.reader.lexicon.programs.knows(program) {
            return;
        }
        let reading = shell::read(rest.trim_end_matches(['`', ')', '}', ' ']), self.reader.lexicon);
        let is_harmful = reading.acts.iter().any(|act| risk::assess(act, &reading.facts).level >= RiskLevel::High);
        if is_harmful {
            self.reader.reading.absorb(reading);
        }
    }

    /// `set_config(key="audit_log.enabled", value=false)`: a control that is switched off.
    fn control(&mut self, call: &Call<'_>) {
        let mut line = String::new();
        if self.switches_tool {
            call.names.iter().for_each(|name| push_words(name, &mut line));
        }
        for value in &call.arguments {
            gather(value, &mut line);
        }
        for (key, value) in &call.beside {
            push_words(key, &mut line);
            gather(value, &mut line);
        }
        let tokens = tokenise(&line, &line, self.reader.lexicon);
        if let Some(token) = tokens.iter().find(|token| is_control(token)) {
            let disable = Act::new("disable", "security_control", Resource::Permission, Operation::Admin, 0.7);
            let disable = disable.from_operation(token.text).marked(Sign::Control);
            self.reader.reading.push(disable);
        }
    }
}

fn is_control(token: &Token<'_>) -> bool {
    token.cue == Some(Sign::Control) || token.word.split(' ').any(|word| tools().value("controls", word))
}

/// Whether an object inside arguments is a call itself.
fn is_call(fields: &[Field<'_>]) -> bool {
    let has = |wanted: Part| {
        fields.iter().any(|(key, value)| {
            tools().part(key) == Some(wanted) && (wanted != Part::Name || value.as_text().is_some())
        })
    };
    has(Part::Name) && has(Part::Arguments)
}

/// Adds a word to a command line so that the shell takes it for one.
fn push_word(line: &mut String, word: &str) {
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

/// The words of keys and short values.
fn gather(value: &Json<'_>, line: &mut String) {
    match value {
        Json::Fields(fields) => fields.iter().for_each(|(key, value)| {
            push_words(key, line);
            gather(value, line);
        }),
        Json::List(items) => items.iter().for_each(|item| gather(item, line)),
        // Arguments in a string were unpacked before, so their depth is known.
        Json::Text(text)
            if text.trim_start().starts_with('{')
                && json_depth(text) <= MAX_CONTEXT_DEPTH
                && line.len() < LONGEST_PLACE =>
        {
            values(text).0.iter().for_each(|value| gather(value, line));
        }
        Json::Text(text) if text.len() <= LONGEST_VERB => push_words(text, line),
        _ => {}
    }
}

fn push_words(text: &str, line: &mut String) {
    if line.len() < LONGEST_PLACE {
        for word in name::words(text) {
            line.push_str(&word);
            line.push(' ');
        }
    }
}

fn is_production(text: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric()).any(|word| tools().value("production", word))
}

/// More recipients than this are very many.
const MANY_RECIPIENTS: usize = 50;
/// More items of a list than this are counted as records.
const MANY_ITEMS: usize = 1000;
/// Texts inside texts that are unpacked.
const MOST_UNPACKED: u8 = 4;
/// Longest value that is a verb or a setting, in bytes.
const LONGEST_VERB: usize = 64;
/// Longest value that is a place, in bytes.
const LONGEST_PLACE: usize = 512;
