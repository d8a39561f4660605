//! Reading an export and verifying it line by line, up to the first break.

use std::io::{BufRead, Read};

use serde::{Deserialize, Serialize};

use super::check::{Check, Mismatch, Stored, same};
use super::line::{End, EntryLine, RecordLine, Start};
use super::write::{ExportPoint, ExportReport};
use crate::store::Kind;
use rulekeep_types::{Digest, Error, excerpt};

/// Verifies an export by recomputing everything in it: each record's hash, its place in the chain, the digest of its
/// evidence, and the digest of all lines. Needs neither a `Governor` nor a store.
///
/// Runs in one pass with bounded memory. `progress` receives the number of lines and bytes read so far, from time to
/// time and at the end. The file alone cannot show whether all of it was forged: compare
/// [`head_hash`](ExportReport::head_hash) with one that was kept elsewhere.
///
/// # Errors
///
/// [`Error::ExportBroken`] at the first break, with the line, what was expected and what was found;
/// [`Error::StorageUnavailable`] if the export cannot be read.
pub fn verify_export(export: &mut dyn BufRead, progress: &mut dyn FnMut(u64, u64)) -> Result<ExportReport, Error> {
    read_whole(export, None, progress, &mut |_| Ok(()))
}

/// Verifies an export like [`verify_export`], and that it begins with the entries of a checkpoint.
#[cfg(feature = "checkpoints")]
pub fn verify_export_against(
    export: &mut dyn BufRead,
    checkpoint: &crate::checkpoint::Checkpoint,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ExportReport, Error> {
    read_whole(export, Some((checkpoint.size(), checkpoint.root())), progress, &mut |_| Ok(()))
}

/// A verified line.
pub(crate) enum Item<'a> {
    Start(&'a Start),
    /// An entry with its kind and its stored bytes.
    Entry {
        kind: Kind,
        body: &'a [u8],
        evidence: &'a [u8],
    },
}

/// Receives each verified line.
type Take<'a> = &'a mut dyn FnMut(Item<'_>) -> Result<(), Error>;

/// Reads an export to its end, passing each line to `take`. `known` is a size and root of the log's tree.
pub(crate) fn read_whole(
    export: &mut dyn BufRead,
    known: Option<(u64, Digest)>,
    progress: &mut dyn FnMut(u64, u64),
    take: Take<'_>,
) -> Result<ExportReport, Error> {
    let mut lines = Lines::new(export, progress);
    let mut point = match lines.walk(known, take)? {
        Stopped::End(point) => point,
        Stopped::Cut(_) => {
            let found = if lines.text.is_empty() { "the end of the file" } else { "a line that is cut short" };
            return Err(broken(
                lines.number + 1,
                Mismatch::new("a line, the last of them the manifest of the end", found),
            ));
        }
    };
    let end = std::mem::take(&mut lines.text);
    point.add(&end);
    if !lines.source.fill_buf().map_err(unreadable)?.is_empty() {
        return Err(broken(lines.number + 1, Mismatch::new("nothing behind the manifest of the end", "more")));
    }
    (lines.progress)(point.lines, point.bytes);
    Ok(point.report())
}

/// Reads an export that was cut short.
pub(crate) fn read_part(part: &mut dyn BufRead, progress: &mut dyn FnMut(u64, u64)) -> Result<ExportPoint, Error> {
    let mut lines = Lines::new(part, progress);
    match lines.walk(None, &mut |_| Ok(()))? {
        Stopped::Cut(Some(point)) => {
            (lines.progress)(point.lines, point.bytes);
            Ok(point)
        }
        Stopped::Cut(None) => Err(broken(1, Mismatch::new("a whole line", "none"))),
        Stopped::End(_) => Err(Error::Conflict { message: "the export is complete".to_owned() }),
    }
}

/// The point at which reading stopped.
enum Stopped {
    /// At the last line, which is not counted yet.
    End(ExportPoint),
    /// After the last whole line, if there is one.
    Cut(Option<ExportPoint>),
}

struct Lines<'a> {
    source: &'a mut dyn BufRead,
    progress: &'a mut dyn FnMut(u64, u64),
    /// The current line, with its newline.
    text: Vec<u8>,
    /// Number of whole lines read.
    number: u64,
}

impl<'a> Lines<'a> {
    fn new(source: &'a mut dyn BufRead, progress: &'a mut dyn FnMut(u64, u64)) -> Self {
        Self { source, progress, text: Vec::new(), number: 0 }
    }

    fn walk(&mut self, known: Option<(u64, Digest)>, take: Take<'_>) -> Result<Stopped, Error> {
        if !self.next()? {
            return Ok(Stopped::Cut(None));
        }
        let start: Start = self.parse("the manifest of the start")?;
        self.spelt(&start)?;
        let check = Check::new(start, known).map_err(|mismatch| broken(1, mismatch))?;
        take(Item::Start(&check.start))?;
        let mut point = ExportPoint::new(check);
        point.add(&self.text);
        let mut stored = Stored::default();
        while self.next()? {
            if self.text.starts_with(b"{\"record\":") {
                let line: RecordLine<'_> = self.parse("a record")?;
                point.check.record(&line, &mut stored).map_err(|mismatch| broken(self.number, mismatch))?;
                self.spelt(&line)?;
                take(Item::Entry { kind: Kind::Decision, body: &stored.body, evidence: &stored.evidence })?;
            } else if self.text.starts_with(b"{\"entry\":") {
                let line: EntryLine<'_> = self.parse("an entry")?;
                point.check.entry(&line).map_err(|mismatch| broken(self.number, mismatch))?;
                self.spelt(&line)?;
                take(Item::Entry { kind: line.entry.kind, body: line.entry.body.as_bytes(), evidence: &[] })?;
            } else {
                let line: End = self.parse("a record, an entry, or the manifest of the end")?;
                let found = point.check.end(&line).and_then(|()| same("lines of sha256", line.sha256, point.sha256()));
                found.map_err(|mismatch| broken(self.number, mismatch))?;
                self.spelt(&line)?;
                return Ok(Stopped::End(point));
            }
            point.add(&self.text);
            if self.number.is_multiple_of(PROGRESS_EVERY) {
                (self.progress)(point.lines, point.bytes);
            }
        }
        Ok(Stopped::Cut(Some(point)))
    }

    /// Reads the next line. Returns false if there is no whole one.
    fn next(&mut self) -> Result<bool, Error> {
        self.text.clear();
        let mut bounded = Read::take(&mut *self.source, LONGEST_LINE);
        bounded.read_until(b'\n', &mut self.text).map_err(unreadable)?;
        let is_whole = self.text.ends_with(b"\n");
        if !is_whole && self.text.len() as u64 == LONGEST_LINE {
            let expected = format!("a line of at most {LONGEST_LINE} bytes");
            return Err(broken(self.number + 1, Mismatch::new(expected, "a longer one")));
        }
        self.number += u64::from(is_whole);
        Ok(is_whole)
    }

    fn parse<'t, T: Deserialize<'t>>(&'t self, expected: &str) -> Result<T, Error> {
        serde_json::from_slice(&self.text).map_err(|error| {
            let text = String::from_utf8_lossy(&self.text);
            broken(self.number, Mismatch::new(expected, format!("{:?} ({error})", excerpt(text.trim_end()))))
        })
    }

    /// Checks that the line has its one valid encoding, so that other readers see the same content.
    fn spelt(&self, line: &impl Serialize) -> Result<(), Error> {
        let expected = serde_json::to_vec(line).unwrap_or_default();
        if self.text.strip_suffix(b"\n") == Some(&expected) {
            return Ok(());
        }
        let has_carriage_return = self.text.ends_with(b"\r\n");
        let mismatch = if has_carriage_return {
            Mismatch::new("line ends of one byte (LF)", "CR LF, which an editor or a transfer makes; convert them back")
        } else {
            Mismatch::new("the spelling that an export has", "the same in another")
        };
        Err(broken(self.number, mismatch))
    }
}

fn broken(line: u64, Mismatch { expected, found }: Mismatch) -> Error {
    Error::ExportBroken { line, expected, found }
}

fn unreadable(error: std::io::Error) -> Error {
    Error::storage("cannot read the export").caused_by(error)
}

/// Upper bound of a line in bytes, larger than any valid line.
const LONGEST_LINE: u64 = 64 << 20;
const PROGRESS_EVERY: u64 = 1024;
