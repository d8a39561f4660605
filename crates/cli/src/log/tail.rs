//! `rulekeep log tail`.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use rulekeep::ProofRecord;
use rulekeep::proof::Order;
use rulekeep_server::calls::records::{List, ListedRecord, RecordsForm};

use super::read::COLUMNS;
use crate::client::Client;
use crate::home::Home;
use crate::operate::{Failed, Reading};
use crate::output;

/// The part of the log to show.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Waits for further records and prints each as it comes; ends with Ctrl-C
    #[arg(short, long, conflicts_with = "store")]
    follow: bool,
    /// Number of records to begin with, at most 200
    #[arg(short = 'n', long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u64).range(1..=200))]
    lines: u64,
    #[command(flatten)]
    from: Reading,
}

/// Prints the newest records, oldest first.
pub(super) fn run(options: &Options) -> Result<ExitCode, Failed> {
    let client = if options.follow {
        let home = Home::find()?;
        home.check()?;
        Client::daemon(&home)?
            .ok_or_else(|| Failed::not_running("the daemon does not run, so the log does not grow"))?
    } else {
        options.from.client()?
    };
    let newest = RecordsForm { page_size: Some(options.lines), request: Some(true), ..RecordsForm::default() };
    let mut records = client.make(List(newest))?.items;
    records.reverse();
    let mut last = records.last().map(|listed| listed.record.clone());
    let mut is_read = print(&records, options, true)?;
    if !options.follow {
        return Ok(ExitCode::SUCCESS);
    }
    while is_read {
        thread::sleep(BETWEEN);
        let more = since(&client, last.as_ref())?;
        is_read = print(&more, options, false)?;
        last = more.last().map(|listed| listed.record.clone()).or(last);
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the records after one, oldest first. Times never go back, so the record itself is among those of its time.
fn since(client: &Client, last: Option<&ProofRecord>) -> Result<Vec<ListedRecord>, Failed> {
    let mut found = Vec::new();
    for number in 1.. {
        let (order, from) = (Some(Order::OldestFirst), last.map(|last| last.timestamp));
        let (page, page_size, request) = (Some(number), Some(200), Some(true));
        let form = RecordsForm { order, from, page, page_size, request, ..RecordsForm::default() };
        let records = client.make(List(form))?;
        found.extend(records.items);
        if !records.has_more {
            break;
        }
    }
    let place = last.and_then(|last| found.iter().position(|listed| listed.record.id == last.id));
    Ok(found.split_off(place.map_or(0, |place| place + 1)))
}

/// Prints records. Returns false if the reader of the output has gone.
fn print(records: &[ListedRecord], options: &Options, is_first: bool) -> Result<bool, Failed> {
    let text = if options.from.json {
        records.iter().map(output::json).collect::<Vec<_>>().join("\n")
    } else {
        let table = output::table(records, COLUMNS);
        // The headings are printed once.
        if is_first { table } else { table.split_once('\n').map_or("", |(_, rows)| rows).to_owned() }
    };
    if text.is_empty() { Ok(true) } else { Ok(output::print(&text)?) }
}

/// The time between two queries of the log.
const BETWEEN: Duration = Duration::from_millis(300);
