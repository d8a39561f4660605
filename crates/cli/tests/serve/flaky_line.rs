//! A connection between a client and a server that fails as instructed, and records what passed.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The fault that a request gets instead of its answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// The request reaches the server, but the answer is lost.
    LoseTheAnswer,
    /// The request does not reach the server; the answer has this status, headers and body.
    Answer(&'static str, &'static str, &'static str),
}

/// A request that came, and its result.
#[derive(Debug, Clone)]
pub(crate) struct Passed {
    /// Method and path, without the query.
    pub(crate) asked: String,
    pub(crate) idempotency_key: Option<String>,
    /// The status; 0 if the client got none.
    pub(crate) status: u16,
    /// The server says that it gave this answer before.
    pub(crate) is_replayed: bool,
}

/// A proxy that handles one request per connection. It ends with the process.
pub(crate) struct FlakyLine {
    pub(crate) url: String,
    passed: Arc<Mutex<Vec<Passed>>>,
}

type Faults = Arc<Mutex<HashMap<String, Vec<Fault>>>>;

impl FlakyLine {
    /// Creates a connection to that address, with faults for the first requests of a method and path.
    pub(crate) fn to(server: &str, faults: &[(&str, &[Fault])]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let passed = Arc::<Mutex<Vec<Passed>>>::default();
        let reversed = |faults: &[Fault]| faults.iter().rev().copied().collect::<Vec<_>>();
        let faults = faults.iter().map(|(asked, faults)| ((*asked).to_owned(), reversed(faults)));
        let faults: Faults = Arc::new(Mutex::new(faults.collect()));
        let (server, keeps) = (server.to_owned(), Arc::clone(&passed));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (server, faults, passed) = (server.clone(), Arc::clone(&faults), Arc::clone(&keeps));
                // A client that opens a connection and sends nothing must not block others.
                thread::spawn(move || pass(&client, &server, &faults, &passed));
            }
        });
        Self { url, passed }
    }

    pub(crate) fn passed(&self) -> Vec<Passed> {
        self.passed.lock().unwrap().clone()
    }
}

fn pass(mut client: &TcpStream, server: &str, faults: &Faults, passed: &Mutex<Vec<Passed>>) {
    let Some((head, body)) = read(client) else { return };
    let mut words = head.split([' ', '?']);
    let asked = format!("{} {}", words.next().unwrap(), words.next().unwrap());
    let idempotency_key = header(&head, "idempotency-key");
    let fault = faults.lock().unwrap().get_mut(&asked).and_then(Vec::pop);
    let answer = match fault {
        Some(Fault::Answer(status, headers, body)) => {
            let length = body.len();
            format!(
                "HTTP/1.1 {status}\r\n{headers}Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )
            .into_bytes()
        }
        Some(Fault::LoseTheAnswer) | None => {
            let mut server = TcpStream::connect(server).unwrap();
            let is_kept = |line: &&str| !line.to_ascii_lowercase().starts_with("connection:");
            let head: Vec<&str> = head.lines().filter(is_kept).chain(["Connection: close", "\r\n"]).collect();
            server.write_all(head.join("\r\n").as_bytes()).unwrap();
            server.write_all(&body).unwrap();
            let mut answer = Vec::new();
            server.read_to_end(&mut answer).unwrap();
            answer
        }
    };
    let told = String::from_utf8_lossy(&answer);
    let told = told.split("\r\n\r\n").next().unwrap();
    let is_lost = matches!(fault, Some(Fault::LoseTheAnswer));
    let status = if is_lost { 0 } else { told.split(' ').nth(1).unwrap().parse().unwrap() };
    let is_replayed = header(told, "idempotent-replayed").is_some();
    passed.lock().unwrap().push(Passed { asked, idempotency_key, status, is_replayed });
    if !is_lost {
        // The client may have gone.
        let _ = client.write_all(&answer);
    }
}

/// Reads the head of a request, without the empty line at its end, and its body.
fn read(client: &TcpStream) -> Option<(String, Vec<u8>)> {
    let mut reader = BufReader::new(client);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    head.truncate(head.len() - 2);
    let length = header(&head, "content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

fn header(head: &str, name: &str) -> Option<String> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
}
