//! The proxy of a run: it connects to the hosts of the profile and to no other.
//!
//! It speaks the `CONNECT` method of HTTP, which programs use for HTTPS, and refuses any other.

use std::collections::BTreeSet;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A running proxy. It ends with the process.
pub(crate) struct Proxy(Arc<State>);

struct State {
    hosts: BTreeSet<String>,
    hint: String,
    refused: Mutex<BTreeSet<String>>,
}

impl Proxy {
    pub(crate) fn start(listener: TcpListener, hosts: BTreeSet<String>, hint: String) -> Self {
        let state = Arc::new(State { hosts, hint, refused: Mutex::default() });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                thread::spawn(move || state.serve(stream));
            }
        });
        Self(state)
    }

    /// The hosts that were refused.
    pub(crate) fn refused(&self) -> Vec<String> {
        self.0.refused.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl State {
    fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        let Some((host, port)) = request(&mut client)? else {
            return client
                .write_all(b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        };
        if !self.hosts.contains(&host) || port != HTTPS {
            let named = format!("{host}:{port}");
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            if refused.len() < MOST_TOLD && refused.insert(named.clone()) {
                eprintln!("rulekeep: this run may not reach {}; {}", named.escape_default(), self.hint);
            }
            return client.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
        let Ok(server) = TcpStream::connect((host.as_str(), port)) else {
            return client.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        };
        client.write_all(b"HTTP/1.1 200 Connection Established\r\n\r\n")?;
        let (from, to) = (client.try_clone()?, server.try_clone()?);
        let up = thread::spawn(move || pass(&from, &to));
        pass(&server, &client);
        let _ = up.join();
        Ok(())
    }
}

/// The host and port of a `CONNECT`; `None` for another request.
fn request(client: &mut TcpStream) -> io::Result<Option<(String, u16)>> {
    let mut head = Vec::new();
    // A byte at a time, because what follows the head belongs to the connection.
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= LONGEST_HEAD || client.read(&mut byte)? == 0 {
            return Ok(None);
        }
        head.extend(byte);
    }
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut fields);
    if !request.parse(&head).is_ok_and(|parsed| parsed.is_complete()) || request.method != Some("CONNECT") {
        return Ok(None);
    }
    let target = request.path.and_then(|path| path.rsplit_once(':'));
    Ok(target.and_then(|(host, port)| Some((host.trim_end_matches('.').to_ascii_lowercase(), port.parse().ok()?))))
}

/// Copies what one side sends until it ends.
fn pass(mut from: &TcpStream, mut to: &TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

const HTTPS: u16 = 443;
const LONGEST_HEAD: usize = 16 << 10;
/// Largest number of refused hosts that are told.
const MOST_TOLD: usize = 32;
