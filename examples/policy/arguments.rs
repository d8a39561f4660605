//! Arguments of the command line, taken one by one.

use std::fmt;
use std::str::FromStr;

/// What is left of them.
pub(crate) struct Arguments(Vec<String>);

impl Arguments {
    pub(crate) fn of(all: Vec<String>) -> Self {
        Self(all)
    }

    /// Whether a flag stands among them.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|argument| argument != name);
        self.0.len() < before
    }

    /// The values of an option that may stand several times.
    pub(crate) fn values(&mut self, name: &str) -> Result<Vec<String>, Usage> {
        let mut values = Vec::new();
        while let Some(place) = self.0.iter().position(|argument| argument == name) {
            self.0.remove(place);
            if place >= self.0.len() {
                return Err(Usage(format!("{name} needs a value")));
            }
            values.push(self.0.remove(place));
        }
        Ok(values)
    }

    /// The value of an option, the last where it stands several times.
    pub(crate) fn parsed<T: FromStr<Err: fmt::Display>>(&mut self, name: &str) -> Result<Option<T>, Usage> {
        let values = self.values(name)?;
        let Some(text) = values.last() else { return Ok(None) };
        text.parse().map(Some).map_err(|error| Usage(format!("{name} {text}: {error}")))
    }

    /// The number that an option says.
    pub(crate) fn number(&mut self, name: &str) -> Result<Option<f64>, Usage> {
        let values = self.values(name)?;
        let Some(text) = values.last() else { return Ok(None) };
        let wrong = || Usage(format!("{name} {text}: expected a number from 0 to 100"));
        let number: f64 = text.parse().map_err(|_| wrong())?;
        if (0.0..=100.0).contains(&number) { Ok(Some(number)) } else { Err(wrong()) }
    }

    /// The next argument that is no option.
    pub(crate) fn next(&mut self, what: &str) -> Result<String, Usage> {
        match self.0.first() {
            Some(argument) if argument.starts_with('-') => Err(Usage(format!("unknown option {argument}"))),
            Some(_) => Ok(self.0.remove(0)),
            None => Err(Usage(format!("{what} is missing"))),
        }
    }

    /// Refuses what is left.
    pub(crate) fn end(self) -> Result<(), Usage> {
        match self.0.first() {
            Some(argument) => Err(Usage(format!("unexpected argument {argument:?}"))),
            None => Ok(()),
        }
    }
}

/// Arguments that are none of the tool's.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}
