//! `rulekeep doctor` held against test doubles of the eight hosts, under every fault of the battery.

mod battery;
mod double;
mod faults;
mod world;
