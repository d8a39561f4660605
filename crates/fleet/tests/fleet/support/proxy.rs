//! A TCP link that can be cut, delayed, or left half open.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What the link does with bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Open,
    /// Connections end, and new ones end at once.
    Cut,
    /// Connections stay, and bytes wait in both directions.
    Silent,
    /// Requests pass, and answers wait: half open.
    Deaf,
    /// Answers come later.
    Late(Duration),
}

/// A link to an address. It ends with the value.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    link: watch::Sender<Link>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn to(target: SocketAddr) -> Self {
        Self::between(Ipv4Addr::LOCALHOST.into(), target).await
    }

    /// A link from a free port of an address.
    pub(crate) async fn between(from: IpAddr, target: SocketAddr) -> Self {
        let listener = TcpListener::bind((from, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let link = watch::Sender::new(Link::Open);
        let task = tokio::spawn(accept(listener, target, link.subscribe()));
        Self { address, link, task }
    }

    pub(crate) fn set(&self, link: Link) {
        self.link.send_replace(link);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.set(Link::Cut);
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, link: watch::Receiver<Link>) {
    while let Ok((from, _)) = listener.accept().await {
        let mut link = link.clone();
        if *link.borrow() == Link::Cut {
            continue;
        }
        tokio::spawn(async move {
            let Ok(to) = TcpStream::connect(target).await else { return };
            let ((from_read, from_write), (to_read, to_write)) = (from.into_split(), to.into_split());
            let is_held = |link: Link| link == Link::Silent;
            let up = pass(from_read, to_write, link.clone(), is_held, |_| Duration::ZERO);
            let delay = |link| if let Link::Late(delay) = link { delay } else { Duration::ZERO };
            let down = pass(to_read, from_write, link.clone(), |link| matches!(link, Link::Silent | Link::Deaf), delay);
            // Dropping both halves of both ends closes the connection.
            tokio::select! {
                () = up => {}
                () = down => {}
                _ = link.wait_for(|link| *link == Link::Cut) => {}
            }
        });
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut link: watch::Receiver<Link>,
    is_held: impl Fn(Link) -> bool,
    delay: impl Fn(Link) -> Duration,
) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let now = *link.borrow();
        tokio::time::sleep(delay(now)).await;
        if link.wait_for(|link| !is_held(*link)).await.is_err() || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
