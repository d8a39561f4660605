//! The proxy of a run: it connects to the hosts of the profile and to no other.
//!
//! It speaks the `CONNECT` method of HTTP, which programs use for HTTPS, and refuses any other.

use std::collections::BTreeSet;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// A running proxy. It ends with the process.
pub(crate) struct Proxy(Arc<State>);

struct State {
    hosts: BTreeSet<String>,
    hint: String,
    refused: Mutex<BTreeSet<String>>,
    open: AtomicUsize,
}

impl Proxy {
    pub(crate) fn start(listener: TcpListener, hosts: BTreeSet<String>, hint: String) -> Self {
        let state = Arc::new(State { hosts, hint, refused: Mutex::default(), open: AtomicUsize::new(0) });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let count = shared.open.fetch_add(1, Ordering::Relaxed);
                let Ok(stream) =
                    stream.and_then(
                        |stream| if count < MOST_OPEN { Ok(stream) } else { Err(io::ErrorKind::WouldBlock.into()) },
                    )
                else {
                    shared.open.fetch_sub(1, Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(10)); // others have to close theirs first
                    continue;
                };
                let state = Arc::clone(&shared);
                thread::spawn(move || {
                    // A side that went away ends its connection and no other.
                    let _ = state.serve(stream);
                    state.open.fetch_sub(1, Ordering::Relaxed);
                });
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
        client.set_read_timeout(Some(PATIENCE))?;
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
        let Ok(server) = connect(&host, port) else {
            return client.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        };
        client.set_read_timeout(None)?;
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

/// Connects to a host, but not to this machine, whatever the name resolves to.
fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let is_elsewhere = |address: &SocketAddr| {
        let ip = address.ip().to_canonical();
        !ip.is_loopback() && !ip.is_unspecified()
    };
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs()?.filter(is_elsewhere).collect();
    TcpStream::connect(addresses.as_slice())
}

/// Copies what one side sends until it ends.
fn pass(mut from: &TcpStream, mut to: &TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

const HTTPS: u16 = 443;
/// Largest number of connections at a time.
const MOST_OPEN: usize = 256;
/// Longest wait for a request.
const PATIENCE: Duration = Duration::from_secs(30);
const LONGEST_HEAD: usize = 16 << 10;
/// Largest number of refused hosts that are told.
const MOST_TOLD: usize = 32;
