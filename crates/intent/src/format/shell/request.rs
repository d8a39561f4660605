//! Requests made by `curl` and similar programs: method, address and data are assembled and read by the HTTP reader,
//! so that a command line and a request line give the same result.

use std::borrow::Cow;

use crate::format::http;
use crate::programs::{Program, Takes};
use crate::reading::Act;

use super::Shell;
use super::options::{Given, Lexed};

impl Shell<'_, '_> {
    /// The acts of a command's requests; `None` if it makes none or names no address.
    pub(super) fn requested(&mut self, lexed: &Lexed<'_>) -> Option<Vec<Act>> {
        let makes_requests = |row: &Program| {
            let names_method = row.options().any(|(_, means)| means.takes == Some(Takes::Method));
            names_method || row.slots.iter().any(|slot| slot.takes == Takes::Method)
        };
        if !makes_requests(lexed.row) && !makes_requests(lexed.program) {
            return None;
        }
        let mut call = Call::default();
        if http::is_method(&lexed.sub) {
            call.method = Some(&lexed.sub);
        }
        for given in &lexed.options {
            call.option(given);
        }
        for (word, takes) in lexed.operands.iter().zip(lexed.slots()) {
            call.operand(&word.text, takes);
        }
        if call.addresses.is_empty() {
            return None;
        }
        let method = call.method();
        let body = call.body();
        let body = Some(body.as_str()).filter(|body| !body.is_empty() && !call.in_address);
        let mut acts = Vec::new();
        for address in &call.addresses {
            let mut address = if lexed.sub == "api" && !address.contains("://") {
                // An API client's own paths have no host.
                Cow::Owned(format!("/{}", address.trim_start_matches('/')))
            } else {
                Cow::Borrowed(*address)
            };
            if call.in_address && !call.data.is_empty() {
                let mark = if address.contains('?') { '&' } else { '?' };
                address = Cow::Owned(format!("{address}{mark}{}", call.body()));
            }
            let (called, commands) = http::call(method, &address, &call.headers, body, self.lexicon);
            acts.extend(called);
            for command in &commands {
                self.reading.note_command(command);
            }
        }
        Some(acts)
    }
}

/// A request being assembled.
#[derive(Default)]
struct Call<'w> {
    method: Option<&'w str>,
    /// The method that the options imply if none is stated.
    implied: Option<&'static str>,
    addresses: Vec<&'w str>,
    data: Vec<&'w str>,
    headers: Vec<&'w str>,
    /// The data goes into the address: `curl -G`.
    in_address: bool,
}

impl<'w> Call<'w> {
    fn option(&mut self, given: &'w Given<'_>) {
        let value = given.value.as_ref().map_or("", |word| word.text.as_str());
        match given.means.takes {
            Some(Takes::Method) => self.method = Some(value),
            Some(Takes::Header) if self.headers.len() < MOST_DATA => self.headers.push(value),
            Some(Takes::Url) => self.address(value),
            Some(Takes::Data) => {
                self.implied = self.implied.or(Some("POST"));
                self.datum(value);
            }
            _ => match given.key {
                "-G" | "--get" => self.in_address = true,
                "-I" | "--head" | "--spider" => self.implied = Some("HEAD"),
                "-T" | "--upload-file" => self.implied = Some("PUT"),
                "--post-file" | "--body-file" => self.implied = self.implied.or(Some("POST")),
                _ => {}
            },
        }
    }

    fn operand(&mut self, text: &'w str, takes: Option<Takes>) {
        match takes {
            Some(Takes::Url | Takes::SendUrl) if self.addresses.is_empty() && http::is_method(text) => {
                self.method = Some(text);
            }
            Some(Takes::Method) if http::is_method(text) => self.method = Some(text),
            Some(Takes::Url | Takes::SendUrl | Takes::Method) => self.address(text),
            // A header, a parameter of the address, or a field.
            Some(Takes::Data)
                if text.split_once(':').is_some_and(|(name, value)| !name.contains('=') && !value.starts_with('=')) =>
            {
                self.headers.push(text);
            }
            Some(Takes::Data) if text.contains(['=', '@']) && !text.contains("==") => {
                self.implied = self.implied.or(Some("POST"));
                self.datum(text);
            }
            _ => {}
        }
    }

    fn address(&mut self, address: &'w str) {
        if self.addresses.len() < MOST_ADDRESSES {
            self.addresses.push(address);
        }
    }

    fn datum(&mut self, datum: &'w str) {
        if !datum.starts_with('@') && self.data.len() < MOST_DATA {
            self.data.push(datum);
        }
    }

    /// The data as a single body; a value with blanks is quoted, so that it stays one.
    fn body(&self) -> String {
        let mut body = String::new();
        for datum in &self.data {
            if !body.is_empty() {
                body.push('&');
            }
            match datum
                .split_once('=')
                .filter(|_| !datum.starts_with(['{', '[']) && datum.contains(char::is_whitespace))
            {
                Some((key, value)) => {
                    body.push_str(key);
                    body.push_str("=\"");
                    body.push_str(&value.replace('"', "'"));
                    body.push('"');
                }
                None => body.push_str(datum),
            }
        }
        body
    }

    fn method(&self) -> &'w str {
        match (self.method, self.implied) {
            (Some(method), _) => method,
            (None, Some("POST")) if self.in_address => "GET",
            (None, implied) => implied.unwrap_or("GET"),
        }
    }
}

/// Maximum number of addresses read from one command.
const MOST_ADDRESSES: usize = 8;
/// Maximum number of data items read.
const MOST_DATA: usize = 64;
