//! The places from which the paths of a request start.

use rulekeep_types::facts::{Kind, Operand};
use serde_json::{Map, Value};

use super::reading::Reading;
use super::{format, target};

/// The folder that a request starts from, and the user's home.
pub(super) struct Place {
    pub(super) base: Option<String>,
    home: Option<String>,
}

impl Place {
    pub(super) fn of(context: &Map<String, Value>) -> Self {
        let folder = |key: &str| {
            let path = context.get(key)?.as_str()?;
            (path.starts_with('/') || path.get(1..3) == Some(":\\")).then(|| target::resolved_path(path))
        };
        Self { base: folder("cwd"), home: folder("home") }
    }

    /// Makes the paths of a reading absolute, and adds what only the whole path shows.
    pub(super) fn complete(&self, reading: &mut Reading) {
        if self.base.is_none() && self.home.is_none() {
            return;
        }
        let mut acts = Vec::new();
        for (number, step) in reading.steps.iter_mut().enumerate() {
            for operand in step.operands.iter_mut().filter(|operand| operand.kind == Kind::Path) {
                if self.makes_absolute(operand) && !operand.pattern {
                    acts.extend(format::effects_of(operand).into_iter().map(|act| act.of_step(number)));
                }
            }
        }
        reading.extend(acts);
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
