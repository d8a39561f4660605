//! Attackers that know the mandate.

use std::error::Error;

use super::dojo::Suite;
use super::table::Table;

pub(super) fn replay(_suite: &Suite, _table: &mut Table) -> Result<(), Box<dyn Error>> {
    Ok(())
}
