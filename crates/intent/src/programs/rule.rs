//! The effect that a row states: `capability[,capability] RISK verb_noun [sign...]`.

use rulekeep_types::{Error, Operation, Resource, RiskLevel};

use crate::reading::Act;
use crate::sign::{Sign, Signs};

/// An effect of a command.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) capabilities: Vec<(Resource, Operation)>,
    pub(crate) risk: RiskLevel,
    verb: Box<str>,
    noun: Box<str>,
    signs: Signs,
}

impl Rule {
    pub(super) fn read(text: &str) -> Result<Self, Error> {
        let faulty =
            || Error::input("program", format!("{text:?}: expected \"resource:operation RISK verb_noun [sign]\""));
        let mut parts = text.split_whitespace();
        let (Some(capabilities), Some(risk), Some(action)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(faulty());
        };
        let capabilities = capabilities
            .split(',')
            .map(|pair| {
                let (resource, operation) = pair.split_once(':').ok_or_else(faulty)?;
                Ok((resource.parse().map_err(|_| faulty())?, operation.parse().map_err(|_| faulty())?))
            })
            .collect::<Result<Vec<_>, Error>>()?;
        let (verb, noun) = action.split_once('_').ok_or_else(faulty)?;
        Ok(Self { capabilities, risk: level(risk)?, verb: verb.into(), noun: noun.into(), signs: signs(parts)? })
    }

    /// Reads several rules, separated by semicolons.
    pub(super) fn read_all(text: &str) -> Result<Vec<Self>, Error> {
        text.split(';').map(str::trim).filter(|rule| !rule.is_empty()).map(Self::read).collect()
    }

    /// The acts of the effect. The stated risk is that of the first capability; the others follow the rubric.
    pub(crate) fn acts(&self) -> impl Iterator<Item = Act> + '_ {
        self.capabilities.iter().enumerate().map(|(place, &(resource, operation))| {
            let mut act = Act::new(&self.verb, &self.noun, resource, operation, 0.9);
            act.signs = self.signs;
            act.at_risk(if place == 0 { self.risk } else { RiskLevel::Low })
        })
    }

    /// Returns whether the effect only reads.
    pub(crate) fn only_reads(&self) -> bool {
        self.capabilities.iter().all(|(_, operation)| *operation == Operation::Read)
    }
}

pub(super) fn level(word: &str) -> Result<RiskLevel, Error> {
    word.parse().map_err(|_| {
        Error::input("program", format!("{word:?} is not a risk level; expected LOW, MEDIUM, HIGH or CRITICAL"))
    })
}

pub(super) fn signs<'w>(words: impl Iterator<Item = &'w str>) -> Result<Signs, Error> {
    let mut signs = Signs::default();
    for word in words {
        let sign = Sign::from_word(word)
            .ok_or_else(|| Error::input("program", format!("{word:?} is not a sign; expected one of the rubric's")))?;
        signs.add(sign);
    }
    Ok(signs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_does_not_read_says_what_was_expected() {
        for text in [
            "file:read LOW",
            "file LOW read_file",
            "file:read MILD read_file",
            "file:read LOW read",
            "file:read LOW read_file mild",
        ] {
            assert!(Rule::read(text).unwrap_err().to_string().contains("expected"), "{text}");
        }
    }
}
