//! The one way from a text of a known form to its reading. The reader of the form
//! reads it and notes the command lines that the text has run; they are read here, in
//! their turn, so that no reader has to know another above it.

use crate::parse::lexicon::Lexicon;
use crate::parse::reading::Reading;

use super::{http, shell, sql};

/// Reads a command line.
pub(super) fn command(line: &str, lexicon: &Lexicon) -> Reading {
    whole(shell::read(line, lexicon), lexicon)
}

/// Reads a text as SQL whatever it looks like.
pub(super) fn statement(text: &str, lexicon: &Lexicon) -> Reading {
    whole(sql::read_anyway(text), lexicon)
}

/// Reads a text that is plainly SQL; other texts are none.
pub(super) fn sql(text: &str, lexicon: &Lexicon) -> Option<Reading> {
    sql::read(text).map(|reading| whole(reading, lexicon))
}

/// Reads the SQL that stands in an English text and is to be run.
pub(super) fn embedded_sql(text: &str, lexicon: &Lexicon) -> Option<Reading> {
    sql::embedded(text).map(|reading| whole(reading, lexicon))
}

/// Reads a text that is an HTTP request; other texts are none.
pub(super) fn request(text: &str, lexicon: &Lexicon) -> Option<Reading> {
    http::read(text, lexicon).map(|reading| whole(reading, lexicon))
}

/// A reading with what the commands in it do.
fn whole(mut reading: Reading, lexicon: &Lexicon) -> Reading {
    // A command can run a client that runs a command.
    for _ in 0..DEEPEST {
        for command in std::mem::take(&mut reading.commands) {
            reading.absorb(shell::read(&command, lexicon));
        }
    }
    reading.commands.clear();
    reading
}

/// Commands within commands that are read.
const DEEPEST: usize = 2;
