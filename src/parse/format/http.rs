//! HTTP request lines: `POST https://api.example.com/orders`.

use crate::model::{Operation, Resource, RiskLevel};
use crate::parse::lexicon::Lexicon;
use crate::parse::reading::{Act, Format, Reading};
use crate::parse::sign::Sign;

use super::name;

/// Reads a text that opens with a request line; other texts are none.
pub(super) fn read(text: &str, lexicon: &Lexicon) -> Option<Reading> {
    let mut words = text.split_whitespace();
    let (method, target) = (words.next()?, words.next()?);
    let operation = match method {
        "GET" | "HEAD" | "OPTIONS" => Operation::Read,
        "POST" => Operation::Send,
        "PUT" | "PATCH" => Operation::Write,
        "DELETE" => Operation::Delete,
        "CONNECT" | "TRACE" => Operation::Execute,
        _ => return None,
    };
    let is_address = target.starts_with('/') || target.starts_with("http://") || target.starts_with("https://");
    let next = words.next();
    if !is_address
        || next.is_some_and(|next| {
            !next.starts_with("HTTP/") && text.lines().next().is_some_and(|line| line.contains(next))
        })
    {
        return None;
    }
    let mut reading = Reading::new(Format::Http);
    reading.facts.note_target(target);
    reading.push(act(method, operation, target, lexicon));
    Some(reading)
}

fn act(method: &str, operation: Operation, target: &str, lexicon: &Lexicon) -> Act {
    let path = target.split(['?', '#']).next().unwrap_or(target);
    let path = path.split_once("://").map_or(path, |(_, rest)| rest.split_once('/').map_or("", |(_, path)| path));
    let mut words = name::words(path);
    words.truncate(MOST_WORDS);
    let resource = name::act(&words, None, lexicon)
        .map(|act| (act.resource, act.noun))
        .filter(|(resource, _)| !matches!(resource, Resource::Unknown | Resource::Information | Resource::System));
    let sends_for_real = matches!(resource, Some((Resource::Email | Resource::Message | Resource::Social, _)));
    let operation = match (operation, &resource) {
        (Operation::Send, Some((Resource::Payment | Resource::Order | Resource::Booking, _))) => Operation::Transfer,
        (Operation::Send | Operation::Write, Some((Resource::Permission | Resource::Credential, _))) => {
            Operation::Admin
        }
        (Operation::Send, Some(_)) if !sends_for_real => Operation::Write,
        (other, _) => other,
    };
    let (resource, noun) = resource.unwrap_or((Resource::Web, "url".to_owned()));
    let mut act = Act::new(&method.to_ascii_lowercase(), &noun, resource, operation, 0.7);
    if matches!(operation, Operation::Send | Operation::Execute) && resource == Resource::Web {
        // What a POST does is up to the server.
        act = act.marked(Sign::Outside).at_risk(RiskLevel::Medium);
    }
    act
}

/// Words of a path that are read.
const MOST_WORDS: usize = 32;
