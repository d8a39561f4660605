//! The places from which the paths of a request start.

use rulekeep_types::Error;
use rulekeep_types::facts::{Cause, Kind, Kinds, Open, Operand};
use serde_json::{Map, Value};

use super::reading::{Reading, add_open};
use super::{format, target};

/// The folder that a request starts from, the user's home, and where links lead.
pub(super) struct Place<'c> {
    pub(super) base: Option<String>,
    pub(super) home: Option<String>,
    links: Option<&'c Map<String, Value>>,
}

impl<'c> Place<'c> {
    pub(super) fn of(context: &'c Map<String, Value>) -> Self {
        let folder = |key: &str| {
            let path = context.get(key)?.as_str()?;
            is_root(path).then(|| target::resolved_path(path))
        };
        Self { base: folder("cwd"), home: folder("home"), links: context.get("links").and_then(Value::as_object) }
    }

    /// Makes the paths of a reading absolute, follows the known links, and adds what only the whole path shows. If a
    /// base is required and there is none, a relative path leaves its act open.
    pub(super) fn complete(&self, reading: &mut Reading, requires_base: bool) {
        if requires_base && self.base.is_none() {
            for step in &mut reading.steps {
                let is_relative =
                    |operand: &&Operand| operand.kind == Kind::Path && !target::is_absolute(&operand.value);
                let relative = step.operands.iter().filter(is_relative).map(|operand| operand.value.clone());
                for found in relative.collect::<Vec<_>>() {
                    add_open(step, Open::new(Cause::Text, Kinds::of(&[Kind::Path]), found));
                }
            }
        }
        if self.base.is_none() && self.home.is_none() && self.links.is_none() {
            return;
        }
        let mut acts = Vec::new();
        for (number, step) in reading.steps.iter_mut().enumerate() {
            for operand in step.operands.iter_mut().filter(|operand| operand.kind == Kind::Path) {
                if self.makes_absolute(operand) && !operand.pattern {
                    acts.extend(format::effects_of(operand).into_iter().map(|act| act.of_step(number)));
                }
                operand.real = self.led_to(&operand.value);
                if let Some(led_to) = operand.led_to() {
                    acts.extend(format::effects_of(&led_to).into_iter().map(|act| act.of_step(number)));
                }
            }
        }
        reading.extend(acts);
    }

    /// The path to which the links in a path lead, as far as the caller says: of the longest known part.
    fn led_to(&self, path: &str) -> Option<String> {
        let links = self.links?;
        let ends = path.rmatch_indices('/').map(|(end, _)| end).filter(|end| *end > 0);
        let parts = std::iter::once(path.len()).chain(ends).filter_map(|end| path.split_at_checked(end));
        let (real, rest) = parts.take(MOST_PARTS).find_map(|(part, rest)| Some((links.get(part)?.as_str()?, rest)))?;
        let real = target::resolved_path(&format!("{real}{rest}"));
        (real != path).then_some(real)
    }

    /// Makes a path absolute. Returns whether that changed it.
    fn makes_absolute(&self, operand: &mut Operand) -> bool {
        let value = operand.value.as_str();
        let whole = match (value.strip_prefix('~'), &self.home, &self.base) {
            (Some(rest), Some(home), _) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
            (_, _, Some(base)) if !target::is_absolute(value) => format!("{base}/{value}"),
            _ => return false,
        };
        let whole = target::resolved_path(&whole);
        let sent = std::mem::replace(&mut operand.value, whole);
        operand.original.get_or_insert(sent);
        true
    }
}

/// Checks the folders and links of a context.
pub(super) fn check(context: &Map<String, Value>) -> Result<(), Error> {
    let is_path = |value: &Value| value.as_str().is_some_and(is_root);
    for key in ["cwd", "home"] {
        if context.get(key).is_some_and(|value| !value.is_null() && !is_path(value)) {
            return Err(Error::input("context", format!("{key}: expected the absolute path of a folder")));
        }
    }
    let is_link = |(path, real): (&String, &Value)| is_root(path) && is_path(real);
    match context.get("links") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Object(links)) if links.iter().all(is_link) => Ok(()),
        Some(_) => Err(Error::input("context", "links: expected absolute paths by absolute paths")),
    }
}

fn is_root(path: &str) -> bool {
    path.starts_with('/') || path.get(1..3) == Some(":\\")
}

/// Maximum number of parts of a path that are looked up as links.
const MOST_PARTS: usize = 64;
