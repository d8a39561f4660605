//! The places from which the paths of a request start.

use rulekeep_types::facts::{Cause, Kind, Kinds, Open, Operand};
use serde_json::{Map, Value};

use super::reading::{Reading, add_open};
use super::{format, target};

/// The folder that a request starts from, the user's home, and where links lead.
pub(super) struct Place<'c> {
    pub(super) base: Option<String>,
    home: Option<String>,
    links: Option<&'c Map<String, Value>>,
}

impl<'c> Place<'c> {
    pub(super) fn of(context: &'c Map<String, Value>) -> Self {
        let folder = |key: &str| {
            let path = context.get(key)?.as_str()?;
            (path.starts_with('/') || path.get(1..3) == Some(":\\")).then(|| target::resolved_path(path))
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

    /// The path to which the links in a path lead, as far as the caller says.
    fn led_to(&self, path: &str) -> Option<String> {
        let real = self.links?.get(path)?.as_str().filter(|real| target::is_absolute(real))?;
        let real = target::resolved_path(real);
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
