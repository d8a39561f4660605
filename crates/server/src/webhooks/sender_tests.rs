//! The sender against receivers on loopback with all kinds of behavior.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use super::*;
use rulekeep::signature::{SignatureError, WINDOW, verify_signature};

const NOW: i64 = 1_800_000_000;
const BODY: &[u8] = br#"{"id":"evt_1"}"#;

/// A request as received.
struct Request {
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// Reads a request; `None` if the other side has closed the connection.
fn read_request(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
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
    let length =
        headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { headers, body })
}

/// A receiver that runs `serve` on its first connection.
fn receiver<T: Send + 'static>(serve: impl FnOnce(TcpStream) -> T + Send + 'static) -> (String, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    (url, thread::spawn(move || serve(listener.accept().unwrap().0)))
}

/// A receiver that sends this response to one request, and closes.
fn answering(answer: impl Into<Vec<u8>>) -> (String, JoinHandle<()>) {
    let answer = answer.into();
    receiver(move |mut stream| {
        read_request(&stream).unwrap();
        stream.write_all(&answer).unwrap();
    })
}

fn secret() -> Secret {
    Secret::new("a secret of at least 24 bytes").unwrap()
}

fn send_with(sender: &mut Sender) -> Answer {
    let secret = secret();
    let now = Timestamp::from_millis(NOW * 1000);
    sender.send(&Parcel { event: "evt_1", body: BODY, secrets: &[&secret], now })
}

fn send(url: &str) -> Answer {
    send_with(&mut Sender::new(url, Reach::Private, LONGEST))
}

/// Sends with a shorter time limit, for receivers that never end.
fn send_shortly(url: &str) -> Answer {
    send_with(&mut Sender::new(url, Reach::Private, Duration::from_millis(300)))
}

fn status_of(answer: &Answer) -> Option<u16> {
    match answer {
        Answer::Failed { status, .. } => *status,
        other => panic!("{other:?}"),
    }
}

fn is_failure_without_answer(answer: &Answer) -> bool {
    matches!(answer, Answer::Failed { status: None, .. })
}

#[test]
fn a_delivery_is_signed_in_both_schemes_and_reuses_its_link() {
    let (url, received) = receiver(|mut stream| {
        [(); 2].map(|()| {
            let request = read_request(&stream).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
            request
        })
    });
    let mut sender = Sender::new(&url, Reach::Private, LONGEST);
    assert_eq!(send_with(&mut sender), Answer::Delivered(200));
    assert_eq!(send_with(&mut sender), Answer::Delivered(200));
    for request in received.join().unwrap() {
        let find =
            |name: &str| request.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        assert_eq!(verify_signature(&[&secret()], find, &request.body, NOW, WINDOW), Ok("evt_1"));
        assert!(find(signature::HEADER).is_some() && find(signature::STANDARD_HEADER).is_some());
        let other = Secret::new("another secret of 24 bytes").unwrap();
        let forged = verify_signature(&[&other], find, &request.body, NOW, WINDOW);
        assert_eq!(forged, Err(SignatureError::Mismatch));
        assert_eq!(find("content-type"), Some("application/json"));
        assert_eq!(request.body, BODY);
    }
}

#[test]
fn a_status_says_what_became_of_it() {
    for (status, expected) in [("204 No Content", Answer::Delivered(204)), ("410 Gone", Answer::Gone)] {
        let (url, served) = answering(format!("HTTP/1.1 {status}\r\n\r\n"));
        assert_eq!(send(&url), expected);
        served.join().unwrap();
    }
    for status in [400, 404, 500, 503] {
        let (url, served) = answering(format!("HTTP/1.1 {status} No\r\ncontent-length: 0\r\n\r\n"));
        assert_eq!(status_of(&send(&url)), Some(status));
        served.join().unwrap();
    }
}

#[test]
fn a_redirect_is_a_failure_and_is_not_followed() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let to = elsewhere.local_addr().unwrap();
    for status in [301, 302, 303, 307, 308] {
        let (url, served) =
            answering(format!("HTTP/1.1 {status} There\r\nlocation: http://{to}/\r\ncontent-length: 0\r\n\r\n"));
        assert_eq!(status_of(&send(&url)), Some(status));
        served.join().unwrap();
    }
    assert_eq!(elsewhere.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn what_a_receiver_asks_for_is_handed_on() {
    for (value, seconds) in [("120", 120), ("Fri, 15 Jan 2027 08:01:40 GMT", 100)] {
        let (url, served) =
            answering(format!("HTTP/1.1 429 Slow\r\nretry-after: {value}\r\ncontent-length: 0\r\n\r\n"));
        let Answer::Failed { retry_after, .. } = send(&url) else { panic!("it failed") };
        assert_eq!(retry_after, Some(Duration::from_secs(seconds)));
        served.join().unwrap();
    }
}

#[test]
fn a_hanging_or_dripping_receiver_is_given_up_at_the_timeout() {
    let (url, hangs) = receiver(|stream| {
        read_request(&stream).unwrap();
        // Until the sender has closed the connection.
        assert!(read_request(&stream).is_none());
    });
    assert!(is_failure_without_answer(&send_shortly(&url)));
    hangs.join().unwrap();

    let (url, drips) = receiver(|mut stream| {
        read_request(&stream).unwrap();
        let (_kept, never) = mpsc::channel::<()>();
        stream.write_all(b"HTTP/1.1 200 OK\r\nx: ").unwrap();
        while stream.write_all(b"x").is_ok() {
            let _ = never.recv_timeout(Duration::from_millis(1));
        }
    });
    assert!(is_failure_without_answer(&send_shortly(&url)));
    drips.join().unwrap();
}

#[test]
fn an_endless_body_is_not_read_to_its_end() {
    let (url, served) = receiver(|mut stream| {
        read_request(&stream).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
        let chunk = [&b"10000\r\n"[..], &b"x".repeat(65_536), b"\r\n"].concat();
        // Ends when the sender has closed the connection.
        let mut written = 0_usize;
        while stream.write_all(&chunk).is_ok() {
            written += chunk.len();
        }
        written
    });
    assert_eq!(send(&url), Answer::Delivered(200));
    assert!(served.join().unwrap() < 64 << 20, "what the network holds, and no more");
}

#[test]
fn endless_headers_are_refused() {
    let (url, served) = receiver(|mut stream| {
        read_request(&stream).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\n").unwrap();
        while stream.write_all(b"x-header: of some length\r\n").is_ok() {}
    });
    assert!(is_failure_without_answer(&send(&url)));
    served.join().unwrap();
}

#[test]
fn a_status_counts_without_its_body_but_not_a_cut_connection() {
    let (url, served) = answering("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf");
    assert_eq!(send(&url), Answer::Delivered(200));
    served.join().unwrap();
    for broken in ["", "HTTP/1.1 200", "no HTTP at all\r\n\r\n"] {
        let (url, served) = answering(broken);
        assert!(is_failure_without_answer(&send(&url)), "{broken:?}");
        served.join().unwrap();
    }
}

#[test]
fn a_receiver_that_does_not_speak_tls_is_not_spoken_to_without() {
    let (url, served) = receiver(|mut stream| {
        let mut first = [0; 1];
        stream.read_exact(&mut first).unwrap();
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        first[0]
    });
    assert!(is_failure_without_answer(&send_shortly(&url.replace("http:", "https:"))));
    assert_eq!(served.join().unwrap(), 22, "a handshake of TLS");
}

#[test]
fn nothing_listens_and_it_is_a_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    assert!(is_failure_without_answer(&send(&url)));
}

#[test]
fn what_is_under_way_is_cut_off() {
    let (reached, is_reached) = mpsc::channel();
    let (url, served) = receiver(move |stream| {
        read_request(&stream).unwrap();
        reached.send(()).unwrap();
        assert!(read_request(&stream).is_none());
    });
    let mut sender = Sender::new(&url, Reach::Private, Duration::from_secs(3600));
    let interrupt = sender.interrupt();
    let sending = thread::spawn(move || send_with(&mut sender));
    is_reached.recv().unwrap();
    interrupt();
    assert!(is_failure_without_answer(&sending.join().unwrap()));
    served.join().unwrap();
}

/// Names that resolve to the given answers in sequence.
#[derive(Debug)]
struct Names {
    answers: Mutex<Vec<Vec<SocketAddr>>>,
    asked: Arc<AtomicUsize>,
}

impl Resolver for Names {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut found = self.empty();
        for address in self.answers.lock().unwrap().remove(0) {
            found.push(address);
        }
        Ok(found)
    }
}

fn named(reach: Reach, answers: Vec<Vec<SocketAddr>>) -> (Sender, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let names = Names { answers: Mutex::new(answers), asked: Arc::clone(&asked) };
    (Sender::with_names("http://hooks.example/", reach, LONGEST, names), asked)
}

fn refusal(answer: Answer) -> String {
    match answer {
        Answer::Failed { status: None, error, .. } => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_name_is_refused_where_one_of_its_addresses_is() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let loopback = listener.local_addr().unwrap();
    let metadata = "169.254.169.254:80".parse().unwrap();
    let (mut sender, _) = named(Reach::Private, vec![vec![loopback, metadata]]);
    assert!(refusal(send_with(&mut sender)).contains("169.254.169.254"));
    let (mut sender, _) = named(Reach::Public, vec![vec![loopback]]);
    assert!(refusal(send_with(&mut sender)).contains("127.0.0.1"));
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "nobody was connected to");
}

#[test]
fn a_name_that_resolves_elsewhere_by_now_is_checked_again() {
    let (url, served) = receiver(|mut stream| {
        read_request(&stream).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        read_request(&stream).is_none()
    });
    let loopback = url.trim_start_matches("http://").trim_end_matches("/hook").parse().unwrap();
    let private = "10.0.0.1:80".parse().unwrap();
    let (mut sender, asked) = named(Reach::Private, vec![vec![loopback], vec![private]]);
    assert_eq!(send_with(&mut sender), Answer::Delivered(200));
    assert!(refusal(send_with(&mut sender)).contains("https"), "no longer this machine");
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    drop(sender);
    assert!(served.join().unwrap(), "nothing more came");
}

#[test]
fn an_address_that_is_written_out_is_looked_at_too() {
    assert!(refusal(send_with(&mut Sender::new("http://127.0.0.1:9/", Reach::Public, LONGEST))).contains("127.0.0.1"));
    assert!(
        refusal(send_with(&mut Sender::new("https://2130706433/", Reach::Private, LONGEST))).contains("usual form")
    );
}
