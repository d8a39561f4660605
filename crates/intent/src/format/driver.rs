//! Reads a text of a known format completely: the format's reader records the command lines that the text runs, and
//! they are read here afterwards, so that no reader depends on a higher one.

use crate::lexicon::Lexicon;
use crate::reading::Reading;

use super::{http, shell, sql};

/// Reads a command line.
pub(super) fn command(line: &str, lexicon: &Lexicon) -> Reading {
    whole(shell::read(line, lexicon), lexicon)
}

/// Reads a text as SQL, whatever it looks like.
pub(super) fn statement(text: &str, lexicon: &Lexicon) -> Reading {
    whole(sql::read_anyway(text), lexicon)
}

/// Reads a text that is clearly SQL; `None` for other texts.
pub(super) fn sql(text: &str, lexicon: &Lexicon) -> Option<Reading> {
    sql::read(text).map(|reading| whole(reading, lexicon))
}

/// Reads the SQL within an English text that is to be run.
pub(super) fn embedded_sql(text: &str, lexicon: &Lexicon) -> Option<Reading> {
    sql::embedded(text).map(|reading| whole(reading, lexicon))
}

/// Reads a text that is an HTTP request; `None` for other texts.
pub(super) fn request(text: &str, lexicon: &Lexicon) -> Option<Reading> {
    http::read(text, lexicon).map(|reading| whole(reading, lexicon))
}

/// Adds the effects of the commands in a reading.
fn whole(mut reading: Reading, lexicon: &Lexicon) -> Reading {
    // A command can run a client that runs another command.
    for _ in 0..DEEPEST {
        for command in std::mem::take(&mut reading.commands) {
            reading.absorb(shell::read(&command, lexicon));
        }
    }
    reading.commands.clear();
    reading
}

/// Maximum depth of commands within commands.
const DEEPEST: usize = 2;
