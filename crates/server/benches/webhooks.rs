//! The number of deliveries per second to one endpoint on this machine, in order, with a receiver on loopback that
//! answers at once.
//!
//! ```text
//! cargo bench -p rulekeep-server --bench webhooks -- [EVENTS]
//! ```

use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rulekeep::event::EventFilter;
use rulekeep::{Agent, Durability, Governor, Intent, RiskLevel, Tier};
use rulekeep_server::webhooks::{EndpointDraft, Settings, Webhooks};

fn main() -> Result<(), Box<dyn Error>> {
    let events: usize =
        std::env::args().skip(1).find(|given| given != "--bench").map_or(Ok(20_000), |count| count.parse())?;
    let folder = tempfile::tempdir()?;
    let builder = Governor::builder().durability(Durability::Buffered);
    let governor = builder.open(folder.path())?;
    governor.agents().register(Agent::new("a").at_tier(Tier::T4))?;

    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/", listener.local_addr()?);
    let (tell, heard) = mpsc::channel();
    let (begin, may_begin) = mpsc::channel();
    thread::spawn(move || receive(&listener, &tell, &may_begin));

    let mut log = governor.subscribe(&EventFilter::all())?;
    let webhooks = Webhooks::start(&governor, Settings { allow_private: true, ..Settings::default() })?;
    webhooks.add(&EndpointDraft::to(url))?;
    let intent = Intent::new("a", "read_document", RiskLevel::Low, ["document:read"])?;
    for _ in 0..events.div_ceil(2) {
        governor.enforce(&intent)?; // tells two events
    }
    governor.log().flush()?;

    // The receiver holds the first delivery until the whole log is written.
    let began = Instant::now();
    begin.send(())?;
    for place in 0..events {
        let expected = log.wait()?.ok_or("the log tells too little")?.id.to_string();
        let arrived = heard.recv_timeout(Duration::from_secs(60))?;
        if arrived != expected {
            return Err(format!("delivery {place} is {arrived}, and {expected} was its turn").into());
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    #[allow(clippy::cast_precision_loss)] // far below what a double counts
    let rate = events as f64 / seconds;
    println!("{events} events in order in {seconds:.2} s: {rate:.0} a second, {:.0} us each", 1e6 / rate);
    governor.close()?;
    Ok(())
}

/// Accepts every delivery and reports its event.
fn receive(listener: &TcpListener, tell: &Sender<String>, may_begin: &Receiver<()>) -> io::Result<()> {
    let mut is_first = true;
    for stream in listener.incoming() {
        let stream = stream?;
        stream.set_nodelay(true)?;
        let mut writer = stream.try_clone()?;
        let mut reader = BufReader::new(stream);
        while let Some(id) = next_delivery(&mut reader)? {
            if is_first {
                let _ = may_begin.recv();
                is_first = false;
            }
            let _ = tell.send(id);
            writer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")?;
        }
    }
    Ok(())
}

/// Reads a request. Returns the event's id.
fn next_delivery(reader: &mut BufReader<TcpStream>) -> io::Result<Option<String>> {
    let (mut id, mut length, mut line) = (String::new(), 0, String::new());
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim_end().split_once(": ") {
            Some(("webhook-id", value)) => value.clone_into(&mut id),
            Some(("content-length", value)) => length = value.parse().map_err(io::Error::other)?,
            None if line.trim_end().is_empty() => break,
            _ => {}
        }
    }
    io::copy(&mut reader.take(length), &mut io::sink())?;
    Ok(Some(id))
}
