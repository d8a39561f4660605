//! A small HTTP client: one kept connection, one call at a time.

use std::io;
use std::net::SocketAddr;

use rulekeep::checkpoint::CheckpointKey;
use rulekeep_fleet::wire::{self, Refusal, SIGNATURE};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A connection to a hub.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// The status and the body of an answer.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Answered {
    /// The body of a successful answer, or the reason of a refusal with its status.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, (u16, String)> {
        if self.status == 200 {
            return serde_json::from_slice(&self.body).map_err(|error| (self.status, error.to_string()));
        }
        let refusal = serde_json::from_slice::<Refusal>(&self.body);
        Err((
            self.status,
            refusal.map_or_else(|_| String::from_utf8_lossy(&self.body).into_owned(), |refusal| refusal.error),
        ))
    }
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    /// Makes a call and reads its answer, which must have a length.
    pub(crate) async fn call(&mut self, request: &[u8]) -> io::Result<Answered> {
        self.stream.write_all(request).await?;
        let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let head_end = loop {
            if let Some(end) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break end;
            }
            self.fill().await?;
        };
        let head = String::from_utf8_lossy(&self.buffer[..head_end]).to_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(|| wrong("no status"))?;
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse::<usize>().ok());
        let end = head_end + 4 + length.ok_or_else(|| wrong("no length"))?;
        while self.buffer.len() < end {
            self.fill().await?;
        }
        let body = self.buffer[head_end + 4..end].to_vec();
        self.buffer.drain(..end);
        self.buffer.shrink_to(4096);
        Ok(Answered { status, body })
    }

    async fn fill(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// A request as text.
pub(crate) fn request(method: &str, path: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("{method} {path} HTTP/1.1\r\nhost: hub\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{headers}\r\n{body}")
        .into_bytes()
}

/// A request that a governor signs.
pub(crate) fn signed(key: &CheckpointKey, path: &str, message: &impl Serialize) -> Vec<u8> {
    let body = serde_json::to_string(message).expect("a message has a JSON form");
    let signature = wire::sign(key, path, &body);
    request("POST", path, &format!("{SIGNATURE}: {signature}\r\n"), &body)
}

/// One call over a connection of its own.
pub(crate) async fn once(address: SocketAddr, request: &[u8]) -> io::Result<Answered> {
    Connection::open(address).await?.call(request).await
}
