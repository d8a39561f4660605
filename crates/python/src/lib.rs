//! The native part of the Python package `rulekeep`: a governor in this process, called with the method names of the
//! sidecar's protocol and JSON text. The public interface is written in Python, in `python/rulekeep`.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyString;

use rulekeep::grant::Confiner;
use rulekeep::{Durability, Error, Governor, PolicySet};
use rulekeep_server::{Access, gateway};

/// The native module.
#[pymodule]
mod _rulekeep {
    #[pymodule_export]
    use super::Gateway;
}

/// Policies: a text, or a file by a `pathlib.Path`.
#[derive(FromPyObject)]
enum Policies {
    Text(String),
    File(PathBuf),
}

/// A governor in this process. Threads may share it; the interpreter's lock is released during each call.
#[pyclass(frozen, module = "rulekeep._rulekeep")]
struct Gateway {
    inner: gateway::Gateway,
}

#[pymethods]
impl Gateway {
    /// Opens the store in a folder, or one in memory.
    #[staticmethod]
    #[pyo3(signature = (path, policies, durability, auto_register, confiner))]
    fn open(
        py: Python<'_>,
        path: Option<PathBuf>,
        policies: Option<Policies>,
        durability: &str,
        auto_register: bool,
        confiner: Option<PathBuf>,
    ) -> PyResult<Self> {
        let opened = py.detach(|| {
            let durability: Durability =
                durability.parse().map_err(|error| Error::input("durability", format!("{error}")))?;
            let mut builder = Governor::builder().durability(durability);
            if let Some(policies) = policies {
                builder = builder.policies(match policies {
                    Policies::Text(text) if text.trim_start().starts_with('{') => PolicySet::from_json(&text)?,
                    Policies::Text(text) => PolicySet::from_toml(&text)?,
                    Policies::File(file) => PolicySet::from_file(file)?,
                });
            }
            if auto_register {
                builder = builder.auto_register();
            }
            if let Some(program) = confiner {
                builder = builder.confiner(Confiner::attempt(program)?);
            }
            let governor = match path {
                Some(path) => builder.open(path)?,
                None => builder.open_in_memory()?,
            };
            gateway::Gateway::new(&governor)
        });
        opened.map(|inner| Self { inner }).map_err(|error| raised(py, &error))
    }

    /// Makes a call. Parameters and answer are JSON text.
    fn call<'py>(&self, py: Python<'py>, method: &str, params: &str) -> PyResult<Bound<'py, PyString>> {
        let answer = py.detach(|| Access::Everything.call(&self.inner, method, params));
        answer.map(|answer| PyString::new(py, answer.get())).map_err(|error| raised(py, &error))
    }

    /// Writes everything to disk and releases the folder.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.governor().close()).map_err(|error| raised(py, &error))
    }
}

/// Converts an error to the exception `rulekeep.RulekeepError`.
fn raised(py: Python<'_>, error: &Error) -> PyErr {
    let details = error.details().map(|details| details.to_string());
    let made = py.import("rulekeep.errors").and_then(|errors| {
        errors.getattr("from_native")?.call1((error.code(), error.message(), details, error.http_status()))
    });
    made.map_or_else(|failed| failed, PyErr::from_value)
}
