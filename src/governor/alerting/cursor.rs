//! Named cursors: stored positions in the event stream.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::governor::alerting::events::{EventFilter, Subscription};
use crate::governor::keys::{self, Keyed as _, Rerecording};
use crate::governor::{Alerting, Base, Hold as _, Log, conflict, states};
use crate::model::{Error, EventId, Sequence, checked_person};
use crate::proof::StateDraft;

/// The named cursors of a governor.
#[derive(Default)]
pub(crate) struct Cursors {
    // Held while a cursor is enqueued, so that the stored positions are those in the journal.
    kept: Mutex<HashMap<String, Kept>>,
    /// The readers of cursors in use. Held alone.
    readers: Mutex<Readers>,
}

#[derive(Default)]
struct Readers {
    last: u64,
    by_name: HashMap<String, u64>,
}

/// The reader of a cursor. A cursor has one reader at a time, because an event acknowledged by one would be missed by
/// another.
#[derive(Debug, Clone)]
pub struct Reader {
    name: String,
    number: u64,
}

struct Kept {
    place: Place,
    /// Number of acknowledgments that are not in the journal yet.
    unwritten: u32,
    written: Instant,
}

/// A cursor as the journal stores it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Place {
    /// The last acknowledged event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<EventId>,
    /// The starting position, until an event is acknowledged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<Sequence>,
}

impl Cursors {
    /// Restores a cursor from the log.
    pub(crate) fn restore(&self, key: &str, value: &[u8]) -> Result<(), Error> {
        let name = key.strip_prefix(keys::Cursors::PREFIX).unwrap_or(key);
        let place: Option<Place> = states::read(key, value)?;
        self.kept.hold().extend(place.map(|place| (name.to_owned(), Kept::written(place))));
        Ok(())
    }

    /// Enqueues every cursor again, before an archive.
    pub(crate) fn rerecord(&self, again: &mut Rerecording<'_>) -> Result<(), Error> {
        for (name, kept) in &mut *self.kept.hold() {
            again.record(state_of(name, kept.place)?)?;
            *kept = Kept::written(kept.place);
        }
        Ok(())
    }

    /// Reserves a cursor for a new reader.
    fn take(&self, name: &str) -> Result<Reader, Error> {
        let mut readers = self.readers.hold();
        if readers.by_name.contains_key(name) {
            return conflict(format!(
                "the cursor {name:?} is in use: drop the subscription that reads it, or use another name"
            ));
        }
        readers.last += 1;
        let number = readers.last;
        readers.by_name.insert(name.to_owned(), number);
        Ok(Reader { name: name.to_owned(), number })
    }

    /// Releases a cursor, unless another reader has it.
    fn free(&self, reader: &Reader) {
        let mut readers = self.readers.hold();
        if readers.by_name.get(&reader.name) == Some(&reader.number) {
            readers.by_name.remove(&reader.name);
        }
    }

    fn is_of_another(&self, reader: &Reader) -> bool {
        self.readers.hold().by_name.get(&reader.name).is_some_and(|number| *number != reader.number)
    }
}

impl Kept {
    fn written(place: Place) -> Self {
        Self { place, unwritten: 0, written: Instant::now() }
    }

    /// Enqueues the position if the journal does not have it yet, and its events are verified.
    fn write(&mut self, name: &str, base: &Base) -> Result<(), Error> {
        if self.unwritten > 0 && base.log.is_verified() {
            base.log.queue().note(base.clock.now(), state_of(name, self.place)?, "events were acknowledged")?;
            (self.unwritten, self.written) = (0, Instant::now());
        }
        Ok(())
    }
}

impl Log<'_> {
    /// Subscribes to events from the position of a named cursor, which the store keeps: after the last
    /// [acknowledged](Subscription::acknowledge) event, also in another run of the program. A new cursor starts now, or
    /// after the filter's event.
    ///
    /// No event is missed. Events that were processed but whose acknowledgment was not written yet when the process was
    /// killed are delivered again.
    ///
    /// ```
    /// use rulekeep::event::EventFilter;
    /// use rulekeep::{Agent, Governor};
    ///
    /// let governor = Governor::builder().open_in_memory()?;
    /// governor.agents().register(Agent::new("support-1"))?;
    /// let mut events = governor.log().cursor("billing", &EventFilter::all())?;
    ///
    /// governor.enforce_input("support-1", "Summarize the meeting notes")?;
    /// let event = events.wait()?.expect("the governor is open");
    /// events.acknowledge(&event.id)?;
    /// drop(events);
    /// let next = governor.log().cursor("billing", &EventFilter::all())?.wait()?.expect("a record follows its decision");
    /// assert_ne!(next.id, event.id);
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a name that is not 1 to 256 printable characters, or is the reserved name `alerts`;
    /// the errors of [`Governor::subscribe`](crate::Governor::subscribe); [`Error::Conflict`] while another subscription reads the cursor, and when
    /// entries after the last acknowledged one were archived. A new cursor also fails when it cannot be recorded.
    pub fn cursor(self, name: &str, filter: &EventFilter) -> Result<Subscription, Error> {
        let name = checked_person("cursor", name)?;
        if keys::Cursors::key(&name) == keys::Alerts::PREFIX {
            return Err(Error::input("cursor", "expected another name: this one is reserved for alert rules"));
        }
        let reader = self.governor.inner.here()?.alerting.cursors.take(&name)?;
        match self.governor.inner.alerting.read_on(&name, filter) {
            Ok(mut subscription) => {
                subscription.reader = Some(reader);
                Ok(subscription)
            }
            Err(error) => {
                self.governor.inner.alerting.cursors.free(&reader);
                Err(error)
            }
        }
    }

    /// Deletes a cursor: a later one of this name starts anew.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] when no cursor has this name; [`Error::StorageUnavailable`] or [`Error::ChainBroken`]
    /// when it cannot be recorded.
    pub fn forget_cursor(self, name: &str) -> Result<(), Error> {
        let mut cursors = self.governor.inner.here()?.alerting.cursors.kept.hold();
        let Entry::Occupied(kept) = cursors.entry(name.to_owned()) else {
            return Err(Error::input("cursor", "no cursor has this name"));
        };
        let gone = StateDraft::new(keys::Cursors::key(name), "null".to_owned());
        let sequence = self.governor.inner.base.set_state(gone, "the cursor was forgotten")?;
        kept.remove();
        drop(cursors);
        // A current reader can acknowledge nothing more.
        self.governor.inner.alerting.cursors.readers.hold().by_name.remove(name);
        self.governor.inner.base.log.settle(sequence)
    }
}

impl Alerting {
    /// Subscribes from the position of a cursor, and creates the cursor if it does not exist.
    fn read_on(self: &Arc<Self>, name: &str, filter: &EventFilter) -> Result<Subscription, Error> {
        let known = self.cursors.kept.hold().get(name).map(|kept| kept.place);
        let subscription = match known {
            Some(Place { after: Some(after), .. }) => self.subscribe(&filter.clone().after(after))?,
            Some(Place { from: Some(from), .. }) => self.subscribe_from(Some(from), filter)?,
            Some(_) | None => self.subscribe(filter)?,
        };
        if known.is_none() {
            let from = filter.after.is_none().then(|| subscription.next_entry());
            self.begin(name, Place { after: filter.after, from })?;
        }
        Ok(subscription)
    }

    fn begin(&self, name: &str, place: Place) -> Result<(), Error> {
        let mut cursors = self.cursors.kept.hold();
        let Entry::Vacant(vacant) = cursors.entry(name.to_owned()) else { return Ok(()) };
        let sequence = self.base.set_state(state_of(name, place)?, "a cursor was created")?;
        vacant.insert(Kept::written(place));
        drop(cursors);
        self.base.log.settle(sequence)
    }

    /// Records an acknowledged event; the position never moves back.
    pub(crate) fn acknowledge(&self, reader: &Reader, event: EventId) -> Result<(), Error> {
        let name = &reader.name;
        if self.cursors.is_of_another(reader) {
            return conflict(format!("the cursor {name:?} is read by another subscription"));
        }
        let mut cursors = self.cursors.kept.hold();
        let Some(kept) = cursors.get_mut(name) else {
            return conflict(format!("the cursor {name:?} was forgotten"));
        };
        if kept.place.after.is_some_and(|after| after.place() >= event.place()) {
            return Ok(());
        }
        kept.place = Place { after: Some(event), from: None };
        kept.unwritten += 1;
        if kept.unwritten >= MOST_UNWRITTEN || kept.written.elapsed() >= WRITTEN_EVERY {
            return kept.write(name, &self.base);
        }
        Ok(())
    }

    /// Enqueues a reader's position and releases the cursor.
    pub(crate) fn free_cursor(&self, reader: &Reader) {
        self.write_cursors(Some(&reader.name));
        self.cursors.free(reader);
    }

    /// Enqueues the positions of one cursor or of all. If the log accepts no entries, their events are delivered again.
    pub(crate) fn write_cursors(&self, only: Option<&str>) {
        for (name, kept) in &mut *self.cursors.kept.hold() {
            if only.is_none_or(|only| only == name) {
                let _ = kept.write(name, &self.base);
            }
        }
    }
}

impl Drop for Alerting {
    fn drop(&mut self) {
        self.write_cursors(None);
    }
}

fn state_of(name: &str, place: Place) -> Result<StateDraft, Error> {
    states::draft(keys::Cursors::key(name), &place)
}

/// A cursor at the beginning of the log.
pub(crate) const FROM_THE_FIRST: &str = r#"{"from":0}"#;
/// Number of acknowledgments after which a cursor is written.
const MOST_UNWRITTEN: u32 = 256;
/// Time after which the next acknowledgment writes it.
const WRITTEN_EVERY: Duration = Duration::from_millis(250);
