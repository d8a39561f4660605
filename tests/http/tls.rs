//! TLS, with a certificate that is made here.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rulekeep::http::Server;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion};

use crate::live::{Ask, Client, Live, reading};

/// A certificate for `localhost` and its key, in PEM, and the certificate as it is.
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
    let stream = TcpStream::connect(live.address).unwrap();
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
    // Who speaks no TLS is not served, and ends nothing.
    let mut plain = live.client();
    plain.send(Ask::new("GET", "/v1/agents/a").key(&live.agent).bytes()).unwrap();
    assert!(plain.answer().is_err());
    // Nor does who trusts another certificate go on.
    let (_, _, other) = self::certificate();
    let mut wary = self::client(&live, &other, &TLS13);
    let asked = Ask::new("GET", "/v1/agents/a").key(&live.agent).bytes();
    assert!(wary.stream.get_mut().write_all(&asked).is_err());
    client(&live, &trusted, &TLS13).ask(&Ask::new("GET", "/v1/agents/a").key(&live.agent)).ok();
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
