//! Confined runs: a process that can do no more than a decision permits.
//!
//! A [`Profile`] says which files a run may read and write, and which hosts it may reach. It is derived from the
//! constraint `confine` of a decision and from the facts of the request. [`Profile::exec`] restricts the calling
//! process to it and executes a program. Where the run reaches hosts, a process that stays outside, which does
//! [`help`], connects for it to these hosts and no others.
//!
//! | file | subject |
//! |---|---|
//! | `profile.rs`, `terms.rs` | from a decision to a profile |
//! | `code.rs` | the code of a request that can be confined |
//! | `links.rs` | where links lead |
//! | `table.rs`, `tools.toml` | folders of systems and build tools, hosts of registries |
//! | `enter.rs` | the steps in which a process gives up its rights |
//! | `view.rs` | the file system that a run sees |
//! | `calls.rs` | system calls that a run cannot make |
//! | `helper.rs`, `proxy.rs` | what a run needs from outside |
//!
//! A step that fails is an error: nothing runs unconfined. Systems other than Linux support no confined runs.

mod code;
mod links;
mod profile;
mod table;
mod terms;

#[cfg(all(target_os = "linux", feature = "run"))]
mod calls;
#[cfg(all(target_os = "linux", feature = "run"))]
mod enter;
#[cfg(all(target_os = "linux", feature = "run"))]
mod helper;
#[cfg(all(target_os = "linux", feature = "run"))]
mod proxy;
#[cfg(all(target_os = "linux", feature = "run"))]
mod view;

pub use code::Code;
#[cfg(all(target_os = "linux", feature = "run"))]
pub use enter::attempt;
#[cfg(all(target_os = "linux", feature = "run"))]
pub use helper::help;
#[doc(hidden)]
pub use links::{links_of, real};
pub use profile::{Ground, Keep, Network, Profile, Reach, temp_of};
pub use rulekeep_types::DeniedPath;
#[doc(hidden)]
pub use rulekeep_types::without_dots;

/// An error of a confined run. The program was not started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system supports no confined runs.
    #[error("this system supports no confined runs: {0}")]
    Unsupported(String),
    /// A profile cannot be made or used.
    #[error("the run cannot be confined: {0}")]
    Profile(String),
    /// The process is confined, but the program cannot be executed.
    #[error("{program}: {source}")]
    Program {
        /// The program.
        program: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A step of the restriction failed.
    #[error("the run cannot be confined: {step}: {source}")]
    Step {
        /// The step.
        step: String,
        /// The error of the system.
        source: std::io::Error,
    },
}

#[cfg(all(target_os = "linux", feature = "run"))]
impl Error {
    fn of(step: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let step = step.into();
        |source| Self::Step { step, source }
    }
}
