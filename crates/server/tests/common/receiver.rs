//! A webhook receiver on loopback with programmable responses.
#![allow(dead_code)] // every test crate has its own copy of this module and uses a part of it
#![allow(clippy::unwrap_used, clippy::expect_used)] // a helper that cannot go on fails its test

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use rulekeep::signature::{Secret, SignatureError, WINDOW, verify_signature};
use serde_json::Value;

/// A request as received.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn event_id(&self) -> String {
        self.header("webhook-id").expect("a delivery names its event").to_owned()
    }

    pub(crate) fn event(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a body is JSON")
    }

    /// Verifies the request with this secret, at its own timestamp.
    pub(crate) fn verified(&self, secret: &str) -> Result<&str, SignatureError> {
        let now = self.header("webhook-timestamp").unwrap().parse().unwrap();
        let secret = Secret::from_text(secret).unwrap();
        verify_signature(&[&secret], |name| self.header(name), &self.body, now, WINDOW)
    }

    fn read(reader: &mut impl BufRead) -> Option<Self> {
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some((name, value)) => headers.push((name.to_lowercase(), value.to_owned())),
                None if line.trim_end().is_empty() => break,
                None => {}
            }
        }
        let mut request = Self { headers, body: Vec::new() };
        let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
        request.body = vec![0; length];
        reader.read_exact(&mut request.body).ok()?;
        Some(request)
    }
}

/// The response to a request: a status, or none at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    Status(u16),
    Never,
}

pub(crate) const OK: Reply = Reply::Status(200);

/// A receiver that passes on every request before it answers it.
pub(crate) struct Receiver {
    pub(crate) url: String,
    heard: mpsc::Receiver<Request>,
}

impl Receiver {
    /// A receiver that answers each request, numbered from 0, by `reply`.
    pub(crate) fn replying(reply: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let (tell, heard) = mpsc::channel();
        let (reply, count) = (Arc::new(reply), Arc::new(AtomicUsize::new(0)));
        // Ends with the process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (tell, reply, count) = (tell.clone(), Arc::clone(&reply), Arc::clone(&count));
                thread::spawn(move || serve(stream, &tell, &count, &*reply));
            }
        });
        Self { url, heard }
    }

    /// A receiver that accepts everything.
    pub(crate) fn taking() -> Self {
        Self::replying(|_, _| OK)
    }

    /// Waits for the next request.
    pub(crate) fn next(&self) -> Request {
        self.heard.recv_timeout(FOREVER).expect("a delivery comes")
    }

    pub(crate) fn take(&self, count: usize) -> Vec<Request> {
        (0..count).map(|_| self.next()).collect()
    }

    /// The requests received and not returned so far.
    pub(crate) fn rest(&self) -> Vec<Request> {
        self.heard.try_iter().collect()
    }
}

fn serve(
    stream: TcpStream,
    tell: &mpsc::Sender<Request>,
    count: &AtomicUsize,
    reply: &(impl Fn(usize, &Request) -> Reply + ?Sized),
) {
    stream.set_nodelay(true).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    while let Some(request) = Request::read(&mut reader) {
        let answer = reply(count.fetch_add(1, Ordering::SeqCst), &request);
        // Perhaps nobody is listening any more.
        let _ = tell.send(request);
        match answer {
            Reply::Status(status) => {
                if write!(writer, "HTTP/1.1 {status} Said\r\ncontent-length: 0\r\n\r\n").is_err() {
                    return;
                }
            }
            Reply::Never => {
                // Until the other side has closed the connection.
                let _ = reader.read(&mut [0]);
                return;
            }
        }
    }
}

/// Longer than any test takes: a missing request fails the test instead of blocking it.
const FOREVER: Duration = Duration::from_secs(120);
