//! stub
use super::*;
use crate::wire::{Beat, Reserve, Reserved};
use std::collections::BTreeMap;
pub(super) struct Arrived {}
impl Hub {
    pub(super) async fn answer_reservations(self, _a: mpsc::Receiver<Arrived>) {}
    pub(super) async fn reserve(&self, _r: Reserve) -> Result<Reserved, HubError> { Err(HubError::NotFound(String::new())) }
    pub(super) async fn recalls(&self, _t: &deadpool_postgres::Transaction<'_>, _ids: &[&str]) -> Result<BTreeMap<String, Vec<String>>, HubError> { Ok(BTreeMap::new()) }
    pub(super) async fn give_back(&self, _t: &deadpool_postgres::Transaction<'_>, _b: &Beat) -> Result<(), HubError> { Ok(()) }
    pub(super) async fn reported(&self, _t: &deadpool_postgres::Transaction<'_>, _b: &Beat, _u: &BTreeMap<String, i64>, _n: i64) -> Result<(), HubError> { Ok(()) }
}
