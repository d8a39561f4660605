//! HTTP requests: request lines with headers and bodies, and calls of HTTP libraries.
//!
//! `request` recognizes the shapes, `address` normalizes hosts and paths, `path` determines what the method does to
//! what the path names, and `body` extracts pairs. The data is in `data/http.toml`.

mod address;
mod body;
mod known;
mod path;
mod request;

use crate::lexicon::Lexicon;
use crate::reading::{Act, Format, Reading, add_operand};
use crate::risk;
use crate::sign::Sign;
use crate::target;
use rulekeep_types::facts::{Kind, Operand, Role, host_of};
use rulekeep_types::{Operation, Resource, RiskLevel, TargetKind, TargetRole};

use super::graphql::{self, Document};
use super::{name, sql, tables};
use address::Address;
use body::Pair;
use request::Request;

/// Reads a text that is a request; `None` for other texts.
pub(super) fn read(text: &str, lexicon: &Lexicon) -> Option<Reading> {
    let request = Request::from_text(text).or_else(|| Request::from_call(text))?;
    Some(Reader::of(&request, lexicon).reading)
}

/// The acts and commands of a call that another reader found, for example of `curl`.
pub(super) fn call(
    method: &str,
    url: &str,
    headers: &[&str],
    body: Option<&str>,
    lexicon: &Lexicon,
) -> (Vec<Act>, Vec<String>) {
    let headers = headers.iter().filter_map(|header| header.split_once(':'));
    let headers = headers.map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim())).collect();
    let request = Request { method: method.to_ascii_uppercase(), target: url.to_owned(), headers, body };
    let Reading { mut acts, facts, commands, .. } = Reader::of(&request, lexicon).reading;
    // The amounts are dropped here, so their risk is stored in the act.
    for act in acts.iter_mut().filter(|act| act.operation == Operation::Transfer && act.risk.is_none()) {
        act.risk = Some(risk::assess(act, &facts).level);
    }
    (acts, commands)
}

/// Returns whether a host is the machine itself.
pub(super) fn is_loopback(host: &str) -> bool {
    address::is_loopback(host)
}

/// Returns whether a word is a method, ignoring case.
pub(super) fn is_method(word: &str) -> bool {
    word.len() <= LONGEST_METHOD && known::method(&word.to_ascii_uppercase()).is_some()
}

/// Maximum length of a value that can be a path or an address, in bytes.
const LONGEST_VALUE: usize = 512;

struct Reader<'l> {
    lexicon: &'l Lexicon,
    reading: Reading,
    /// The act of the request itself.
    main: Act,
    /// The object that a key names: `?user=4`.
    keyed: Option<(&'static str, Resource)>,
    /// Whether the stated method only reads.
    reads: bool,
}

impl<'l> Reader<'l> {
    fn of(request: &Request<'_>, lexicon: &'l Lexicon) -> Self {
        let address = Address::of(&request.target, request.header("host"));
        let body_pairs = request.body.map(body::pairs).unwrap_or_default();
        let other = overridden(request, &address, &body_pairs).filter(|other| *other != request.method);
        let mut main = path::act(other.as_ref().unwrap_or(&request.method), &address, lexicon);
        let reads = known::method(&request.method) == Some(Operation::Read);
        if reads && other.is_some() && main.operation == Operation::Delete {
            // A read that removes is meant to pass as a read.
            main.risk = main.risk.max(Some(RiskLevel::High));
        }
        let mut reader = Self { lexicon, reading: Reading::new(Format::Http), main, keyed: None, reads };
        reader.keyed =
            address.query.iter().chain(&body_pairs).find_map(|(key, _)| known::noun(key.trim_end_matches("_id")));
        if address.whole.contains("://") || address.host.is_empty() {
            reader.reading.facts.note_target(&address.whole);
        } else {
            reader.reading.facts.note_target_as(TargetKind::Host, TargetRole::Named, &address.whole);
        }
        reader.named(request, &body_pairs);
        reader.graphql(request, &address, &body_pairs);
        reader.pairs(&body_pairs, true);
        reader.pairs(&address.query, false);
        for (_, value) in &address.query {
            reader.injected(value);
        }
        reader.injected(&address.path);
        if address.secret() {
            reader.secret(&address.whole);
        }
        if address.is_control() {
            let act = Act::new("call", "control_service", Resource::System, Operation::Admin, 0.7);
            reader.reading.push(act.named_by(&address.whole).at_risk(RiskLevel::High));
        }
        let main = std::mem::replace(&mut reader.main, Act::unknown());
        if !main.is_unknown() {
            reader.reading.acts.insert(0, main);
        }
        reader
    }

    /// Records the host that a header names, and the files, people and addresses that values of the body are.
    fn named(&mut self, request: &Request<'_>, pairs: &[Pair]) {
        let fresh = &mut self.reading.facts.fresh;
        let mut add = |operand: Option<Operand>| operand.into_iter().for_each(|operand| add_operand(fresh, operand));
        let host = |text: &str| host_of(text).map(|host| Operand::new(Kind::Host, Role::Named, host, text));
        let path = |text: &str, path: &str| Operand::new(Kind::Path, Role::Named, target::resolved_path(path), text);
        add(request.header("host").and_then(host));
        add(target::file_path(&request.target).map(|file| path(&request.target, file)));
        // Some clients take what stands behind "\\@" for the host.
        add(request.target.split_once('\\').filter(|(_, rest)| rest.contains('@')).and_then(|(_, rest)| host(rest)));
        let values = pairs.iter().map(|(_, value)| value.trim());
        for value in values.filter(|value| value.len() <= LONGEST_VALUE && !value.contains(char::is_whitespace)) {
            if let Some(file) = target::file_path(value) {
                add(Some(path(value, file)));
            } else if value.contains("://") {
                add(host(value));
            } else if value.contains('@') {
                let address = target::plain(TargetKind::Recipient, value);
                add(Some(Operand::new(Kind::Recipient, Role::Named, address, value)));
            } else if value.starts_with(['/', '~']) {
                add(Some(path(value, value)));
            }
        }
    }

    fn secret(&mut self, shown: &str) {
        let act = Act::new("read", "secret", Resource::Credential, Operation::Read, 0.8).at_risk(RiskLevel::High);
        self.reading.push(act.named_by(shown));
    }

    /// Reads the fields of a GraphQL document, which say what is done; the POST that carries it does not.
    fn graphql(&mut self, request: &Request<'_>, address: &Address, pairs: &[Pair]) {
        let carried = pairs.iter().chain(&address.query).filter(|(key, _)| key == "query" || key == "mutation");
        let documents = carried.map(|(_, value)| value.as_str()).chain(request.body);
        let found = documents
            .into_iter()
            .filter(|text| graphql::is_document(text))
            .map(|text| (text, Document::of(text).fields))
            .find(|(_, fields)| !fields.is_empty());
        let Some((document, fields)) = found else { return };
        // A JSON body is not a document, although it starts like one.
        if request.body == Some(document) && !address.path.contains("graphql") {
            return;
        }
        for (mutates, field) in fields {
            let words = name::words(field);
            let found =
                name::act(&words, None, self.lexicon).filter(|act| act.resource != Resource::Unknown || mutates);
            let act = match found {
                Some(act) if !mutates && act.operation != Operation::Read => {
                    Act { operation: Operation::Read, verb: "query".to_owned(), ..act }
                }
                // A noun alone counts as a change, because it is in a mutation.
                Some(act) if mutates && act.operation == Operation::Read => Act { operation: Operation::Write, ..act },
                Some(act) => act,
                None if mutates => {
                    Act::new("mutate", "field", Resource::Web, Operation::Write, 0.5).marked(Sign::Unclear)
                }
                None => Act::new("query", "field", Resource::Web, Operation::Read, 0.6),
            };
            self.reading.push(act.told_by(field).named_by(field));
        }
        self.main = Act::unknown();
    }

    fn pairs(&mut self, pairs: &[Pair], in_body: bool) {
        for (key, value) in pairs {
            let key = key.trim_end_matches("[]");
            let key = key.rsplit(['[', '.']).next().unwrap_or(key).trim_end_matches(']');
            self.pair(key, value, in_body);
        }
    }

    fn pair(&mut self, key: &str, value: &str, in_body: bool) {
        let lower = value.trim().to_ascii_lowercase();
        let changes = self.main.operation != Operation::Read;
        if tables::http().commands.has(key) && !value.is_empty() {
            let act = Act::new("run", "command", Resource::System, Operation::Execute, 0.7).at_risk(RiskLevel::High);
            self.reading.push(act.told_by(key).named_by(value));
            self.reading.note_command(value);
        } else if tables::http().statements.has(key) {
            self.absorb(sql::read_anyway(value));
        } else if tables::http().actions.has(key) && (key != "method" || !is_method(value)) {
            self.action(value);
        } else if !in_body
            && matches!(lower.as_str(), "" | "true" | "1" | "yes")
            && path::stated(key, &self.main).is_some()
        {
            // "?delete=true"
            self.action(key);
        } else if in_body && tables::http().amounts.has(key) {
            if let Ok(amount) = lower.trim_start_matches(['$', '+']).parse() {
                self.reading.facts.note_amount(amount, None);
            }
        } else if tables::http().currencies.has(key) {
            let code = lower.to_ascii_uppercase();
            if tables::http().currency_codes.has(&code) {
                self.reading.facts.note_currency(&code);
            }
        } else if tables::http().ranks.has(key) && changes && tables::http().high_ranks.has(&lower) {
            let act = Act::new("grant", "role", Resource::Permission, Operation::Admin, 0.8);
            self.reading.push(act.marked(Sign::Administrator).told_by(key).named_by(value));
        } else if matches!(key, "all" | "force" | "recursive" | "purge")
            && matches!(lower.as_str(), "true" | "1" | "yes")
        {
            self.main.signs.add(if key == "all" { Sign::Bulk } else { Sign::Force });
        } else if tables::http().queries.has(key) && !in_body {
            self.injected(value);
        }
        if address::names_secret(value) {
            self.secret(value);
        }
        if let Some(reading) = sql::read(value) {
            self.absorb(reading);
        }
    }

    /// Reads `?action=delete`, which says what the request does.
    fn action(&mut self, value: &str) {
        let words = name::words(value);
        let on = match self.keyed {
            _ if self.main.resource != Resource::Web => self.main.clone(),
            Some((noun, resource)) => Act::new("get", noun, resource, Operation::Read, 0.6),
            None => Act::unknown(),
        };
        // "pages.destroy" has the verb last.
        let stated = || words.iter().find_map(|word| path::stated(word, &on));
        let verb = name::verb_act(&words, &on, self.lexicon).filter(|act| act.operation != Operation::Read);
        let Some(mut act) = verb.or_else(stated) else { return };
        let is_grave = !matches!(act.operation, Operation::Write | Operation::Send);
        if self.reads && is_grave {
            // A read that does something is meant to pass as a read.
            act.risk = act.risk.max(Some(RiskLevel::High));
        }
        self.reading.push(act.told_by(value));
    }

    /// Reads a statement or command that breaks out of a value.
    fn injected(&mut self, value: &str) {
        for piece in value.split([';', '\'']).skip(1).take(MOST_PIECES) {
            if let Some(reading) = sql::read(piece) {
                self.absorb(reading);
            }
        }
        if value.contains("$(") || value.contains("${jndi") || value.matches('`').count() > 1 {
            self.reading.push(Act::unclear_execution("command").named_by(value));
        }
    }

    fn absorb(&mut self, other: Reading) {
        self.reading.absorb(other);
    }
}

/// The method that a header or key substitutes for the stated one.
fn overridden(request: &Request<'_>, address: &Address, body: &[Pair]) -> Option<String> {
    let header =
        request.headers.iter().find(|(name, _)| tables::http().override_headers.has(name)).map(|(_, value)| *value);
    let key = address
        .query
        .iter()
        .chain(body)
        .find(|(key, _)| tables::http().override_keys.has(key))
        .map(|(_, value)| value.as_str());
    let method = header.or(key)?.trim().to_ascii_uppercase();
    known::method(&method).map(|_| method)
}

const LONGEST_METHOD: usize = 16;
/// Maximum number of pieces of a value that are tried as statements.
const MOST_PIECES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_that_acts_reaches_a_control_service_or_a_file_is_high() {
        let lexicon = Lexicon::shared().unwrap();
        for (url, header, least) in [
            ("https://api.x.com/pages/1", "X-HTTP-Method: DELETE", RiskLevel::High),
            ("https://api.x.com/pages/1?_method=DELETE", "", RiskLevel::High),
            ("https://api.x.com/pages/1?action=remove", "", RiskLevel::High),
            ("https://api.x.com/pages/1?delete=true", "", RiskLevel::High),
            ("https://api.x.com/rpc?method=pages.destroy", "", RiskLevel::High),
            ("http://127.1:2375/containers/json", "", RiskLevel::High),
            ("http://localhost:8080/admin/shutdown", "", RiskLevel::High),
            ("http://168.63.129.16/machine", "", RiskLevel::High),
            ("file:///home/ann/.ssh/id_rsa#.pub", "", RiskLevel::High),
            ("gopher://localhost:6379/x", "", RiskLevel::High),
            ("https://api.x.com/pages/1?action=view", "Accept: text/html", RiskLevel::Low),
            ("http://localhost:3000/api/pages", "", RiskLevel::Low),
            ("https://docs.x.com/shadow", "", RiskLevel::Low),
        ] {
            let (acts, _) = call("GET", url, &[header], None, &lexicon);
            let facts = crate::reading::Facts::default();
            let level = acts.iter().map(|act| risk::assess(act, &facts).level).max();
            assert!(
                if least == RiskLevel::Low { level == Some(least) } else { level >= Some(least) },
                "{url}: {level:?}"
            );
        }
    }

    #[test]
    fn a_call_from_elsewhere_is_read_like_a_request() {
        let lexicon = Lexicon::shared().unwrap();
        let (acts, _) = call("post", "https://api.x.com/v1/payments", &[], Some("{\"amount\": 500}"), &lexicon);
        assert_eq!(
            (acts[0].resource, acts[0].operation, acts[0].risk),
            (Resource::Payment, Operation::Transfer, Some(RiskLevel::High))
        );
        let (acts, _) = call("DELETE", "https://api.x.com/v1/tasks/4", &[], None, &lexicon);
        assert_eq!((acts[0].resource, acts[0].operation), (Resource::Task, Operation::Delete));
    }
}
