//! TLS, with a certificate generated here.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rulekeep_server::http::Server;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion};

use super::live::{Ask, Client, Live, reading};

/// A certificate for `localhost` and its key in PEM, and the certificate in DER.
fn certificate() -> (String, String, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem(), made.cert.der().clone())
}

fn client(
    live: &Live,
    trusted: &CertificateDer<'static>,
    version: &'static SupportedProtocolVersion,
) -> Client<StreamOwned<ClientConnection, TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[version]).unwrap();
    let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(config, name).unwrap();
    let stream = live.client().stream.into_inner();
    Client { stream: BufReader::new(StreamOwned::new(connection, stream)) }
}

#[test]
fn requests_are_answered_over_tls() {
    let (certificate, key, trusted) = certificate();
    let live = Live::with(Server::new().tls(certificate.as_bytes(), key.as_bytes()).unwrap());
    for version in [&TLS13, &TLS12] {
        let mut client = client(&live, &trusted, version);
        for _ in 0..2 {
            let asked = Ask::new("POST", "/v1/enforce").key(&live.agent).json(&reading("a"));
            assert_eq!(client.ask(&asked).ok()["decision"], "ALLOW");
        }
    }
    assert_eq!(live.records("a"), 4);
    // A client that does not speak TLS is not served, and ends nothing.
    let mut plain = live.client();
    plain.send(Ask::new("GET", "/v1/agents/a").key(&live.agent).bytes()).unwrap();
    assert!(plain.answer().is_err());
    // A client that trusts another certificate does not continue either.
    let (_, _, other) = self::certificate();
    let mut wary = self::client(&live, &other, &TLS13);
    let asked = Ask::new("GET", "/v1/agents/a").key(&live.agent).bytes();
    assert!(wary.stream.get_mut().write_all(&asked).is_err());
    client(&live, &trusted, &TLS13).ask(&Ask::new("GET", "/v1/agents/a").key(&live.agent)).ok();
}

/// The head of a handshake record, and its first byte.
const HALF_A_HELLO: [u8; 6] = [0x16, 3, 1, 0x02, 0, 1];

#[test]
fn stalled_tls_handshakes_are_cut_when_their_time_is_over() {
    let (certificate, key, _) = certificate();
    let server = Server::new().tls(certificate.as_bytes(), key.as_bytes()).unwrap();
    let live = Live::with(server.handshake_timeout(Duration::ZERO));
    let mut stalling: Vec<_> = (0..6).map(|_| live.client()).collect();
    for client in &mut stalling[3..] {
        client.send(HALF_A_HELLO).unwrap();
    }
    for client in stalling.iter_mut().rev() {
        assert!(client.is_closed());
    }
}

#[test]
fn who_stalled_in_the_first_steps_of_tls_holds_no_place() {
    let (certificate, key, trusted) = certificate();
    let server = Server::new().tls(certificate.as_bytes(), key.as_bytes()).unwrap().max_connections(2);
    let live = Live::with(server.handshake_timeout(Duration::from_secs(1)));
    let (mut silent, mut half) = (live.client(), live.client());
    half.send(HALF_A_HELLO).unwrap();
    let asked = Ask::new("GET", "/v1/agents/a").key(&live.agent);
    let (mut first, mut second) = (client(&live, &trusted, &TLS13), client(&live, &trusted, &TLS12));
    first.ask(&asked).ok();
    second.ask(&asked).ok();
    assert!(silent.is_closed() && half.is_closed());
}

#[test]
fn first_steps_that_are_not_finished_do_not_hold_up_the_end() {
    let (certificate, key, trusted) = certificate();
    let server = Server::new().tls(certificate.as_bytes(), key.as_bytes()).unwrap();
    let live = Live::with(server.drain_timeout(Duration::from_secs(3)));
    let held: Vec<_> = (0..10).map(|_| live.client()).collect();
    // When this request is answered, the earlier ones have been admitted.
    client(&live, &trusted, &TLS13).ask(&Ask::new("GET", "/v1/agents/a").key(&live.agent)).ok();
    live.ended().unwrap();
    drop(held);
}

#[test]
fn what_is_no_certificate_or_no_key_of_it_is_refused_unquoted() {
    let (certificate, key, _) = certificate();
    let (other, _, _) = self::certificate();
    let secret = "c2VjcmV0c2VjcmV0";
    let mangled = key.replace("PRIVATE KEY-----\n", &format!("PRIVATE KEY-----\n{secret}\n"));
    for (certificate, key) in [
        (certificate.as_str(), ""),
        ("", key.as_str()),
        (&certificate, &certificate),
        (&other, &key),
        (&certificate, secret),
        (&certificate, &mangled),
        (&key, &key),
    ] {
        let Err(fault) = Server::new().tls(certificate.as_bytes(), key.as_bytes()) else { panic!("it was taken") };
        for shown in [fault.to_string(), format!("{fault:?}")] {
            assert!(!shown.contains(secret), "{shown}");
            assert!(
                !key.lines().any(|line| line.len() > 20 && !line.starts_with('-') && shown.contains(line)),
                "{shown}"
            );
        }
    }
}
