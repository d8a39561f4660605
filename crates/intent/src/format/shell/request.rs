//! Requests made by `curl` and similar programs: method, address and data are assembled and read by the HTTP reader,
//! so that a command line and a request line give the same result.

use std::borrow::Cow;

use crate::format::{dangers, http};
use crate::programs::Program;
use crate::reading::Act;
use crate::sign::Sign;
use rulekeep_types::{Operation, Resource, RiskLevel};

use super::Shell;

impl Shell<'_, '_> {
    /// The acts of a command's requests; `None` if it names no address.
    pub(super) fn requested(&mut self, name: &str, program: &Program, arguments: &[&str]) -> Option<Vec<Act>> {
        if arguments.is_empty() {
            return None;
        }
        let is_interface =
            dangers::parts("interface_callers", name).iter().any(|sub| arguments.first() == Some(&sub.as_str()));
        if !is_interface && !dangers::holds("requesters", name) {
            return None;
        }
        let mut call = Call { is_itemised: dangers::holds("item_requesters", name), ..Call::default() };
        let values = dangers::parts("request_values", name);
        let routes = ["proxy_flags", "socket_flags", "reroute_flags"];
        let takes_value = |flag: &str| {
            program.takes_value(flag)
                || values.iter().any(|known| known == flag)
                || routes.iter().any(|list| dangers::holds(list, flag))
        };
        let arguments = arguments.get(usize::from(is_interface)..).unwrap_or(&[]);
        let mut flag = "";
        for &argument in arguments {
            if !flag.is_empty() {
                call.flag(std::mem::take(&mut flag), argument);
            } else if let Some((flag, value)) = argument.split_once('=').filter(|_| argument.starts_with("--")) {
                call.flag(flag, value);
            } else if argument.starts_with('-') && argument.len() > 1 {
                match joined(argument).filter(|(letter, _)| takes_value(letter)) {
                    Some((letter, "")) => flag = letter,
                    Some((letter, value)) => call.flag(letter, value),
                    None if takes_value(argument) => flag = argument,
                    None => call.switch(argument),
                }
            } else {
                call.plain(argument);
            }
        }
        if call.addresses.is_empty() {
            return None;
        }
        let method = call.method();
        let body = call.body();
        let body = Some(body.as_str()).filter(|body| !body.is_empty() && !call.in_address);
        let mut acts = std::mem::take(&mut call.routes);
        for address in &call.addresses {
            let mut address = if is_interface && !address.contains("://") {
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
    /// The method that the flags imply if none is stated.
    implied: Option<&'static str>,
    addresses: Vec<&'w str>,
    data: Vec<&'w str>,
    headers: Vec<&'w str>,
    /// The acts of the way that the request takes: over a proxy or to a socket.
    routes: Vec<Act>,
    /// The data goes into the address: `curl -G`.
    in_address: bool,
    /// Plain arguments after the address are data: `http x.example a=1`.
    is_itemised: bool,
}

impl<'w> Call<'w> {
    /// Reads a flag with its value.
    fn flag(&mut self, flag: &str, value: &'w str) {
        match flag {
            "-X" | "--request" | "--method" => self.method = Some(value),
            "--url" => self.address(value),
            "-H" | "--header" if self.headers.len() < MOST_DATA => self.headers.push(value),
            _ if dangers::holds("proxy_flags", flag) => self.proxy(value),
            "-e" | "--execute" if value.contains("proxy") => {
                self.proxy(value.split_once('=').map_or("", |(_, proxy)| proxy));
            }
            _ if dangers::holds("socket_flags", flag) => self.socket(value),
            // "HOST:PORT:OTHER:PORT" goes to the other host.
            _ if dangers::holds("reroute_flags", flag) => self.proxy(value.split(':').nth(2).unwrap_or("")),
            _ if dangers::holds("data_flags", flag) || dangers::holds("field_flags", flag) => {
                self.implied = self.implied.or(Some("POST"));
                self.datum(value);
            }
            "-T" | "--upload-file" => self.implied = Some("PUT"),
            _ if dangers::holds("file_flags", flag) => self.implied = self.implied.or(Some("POST")),
            _ => {}
        }
    }

    /// Notes a proxy, which sees what is sent; one on the host itself passes nothing on.
    fn proxy(&mut self, proxy: &str) {
        let host = proxy.split_once("://").map_or(proxy, |(_, host)| host);
        if !host.is_empty() && host.contains(['.', ':', '$']) && !http::is_loopback(host) {
            let act = Act::new("use", "proxy", Resource::Network, Operation::Send, 0.7).named_by(proxy);
            self.routes.push(act.marked(Sign::Outside).at_risk(RiskLevel::High));
        }
    }

    /// Notes the socket of a service on the host; those of containers and of the system control the host.
    fn socket(&mut self, socket: &str) {
        let controls = dangers::items("control_sockets").iter().any(|part| socket.contains(part.as_str()));
        let level = if controls || socket.contains('$') { RiskLevel::High } else { RiskLevel::Medium };
        let act = Act::new("call", "local_service", Resource::System, Operation::Execute, 0.7).named_by(socket);
        self.routes.push(act.at_risk(level));
    }

    /// Reads a flag without a value.
    fn switch(&mut self, flag: &str) {
        let is_cluster = !flag.starts_with("--");
        match flag {
            "--get" => self.in_address = true,
            "--head" | "--spider" => self.implied = Some("HEAD"),
            _ if is_cluster && flag.contains('G') => self.in_address = true,
            _ if is_cluster && flag.contains('I') => self.implied = Some("HEAD"),
            _ => {}
        }
    }

    fn plain(&mut self, argument: &'w str) {
        if !self.is_itemised {
            self.address(argument);
        } else if self.addresses.is_empty() && self.method.is_none() && http::is_method(argument) {
            self.method = Some(argument);
        } else if self.addresses.is_empty() {
            self.address(argument);
        } else if argument.split_once(':').is_some_and(|(name, value)| !name.contains('=') && !value.starts_with('=')) {
            self.headers.push(argument);
        } else if argument.contains(['=', '@']) && !argument.contains("==") {
            self.implied = self.implied.or(Some("POST"));
            self.datum(argument);
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

/// Splits a letter flag with a value at the end of a cluster, or with its value joined: `-sX`, `-XDELETE`, `-sSLo`.
fn joined(argument: &str) -> Option<(&str, &str)> {
    let letters = argument.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
    let at = letters.find(|letter: char| !SWITCHES.contains(letter))?;
    let letter =
        dangers::items("value_letters").iter().find(|known| known.strip_prefix('-') == letters.get(at..=at))?;
    Some((letter.as_str(), letters.get(at + 1..)?)).filter(|(_, value)| at > 0 || !value.is_empty())
}

/// Letter flags of `curl` without a value.
const SWITCHES: &str = "sSfLkivNgjqaOJ0146#";
/// Maximum number of addresses read from one command.
const MOST_ADDRESSES: usize = 8;
/// Maximum number of data items read.
const MOST_DATA: usize = 64;
