//! stub
use std::time::Duration;
/// T
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PermitTerms { /// t
 pub term: Duration, /// o
 pub offline: Duration }
/// D
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines { /// a
 pub until: Duration, /// a
 pub offline_until: Duration, /// a
 pub wall_until_ms: i64, /// a
 pub offline_wall_until_ms: i64 }
/// H
#[derive(Debug, Default)]
pub struct PermitHolder { sent: Vec<(Duration, i64)> }
impl PermitHolder {
 /// n
 pub fn new() -> Self { Self::default() }
 /// n
 pub fn sending(&mut self, boot: Duration, wall: i64) -> u64 { self.sent.push((boot, wall)); self.sent.len() as u64 - 1 }
 /// n
 pub fn granted(&mut self, beat: u64, t: PermitTerms) -> Option<Deadlines> { let (b, w) = *self.sent.get(beat as usize)?; Some(Deadlines { until: b + t.term, offline_until: b + t.term + t.offline, wall_until_ms: w + t.term.as_millis() as i64, offline_wall_until_ms: w + (t.term + t.offline).as_millis() as i64 }) }
 /// n
 pub fn refused(&mut self) {}
}
