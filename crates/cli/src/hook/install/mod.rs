//! The hook's entries in the settings of a host: planned, shown as a difference, written, found again and removed.
//!
//! | file | subject |
//! |---|---|
//! | `layout.rs` | where each host keeps hooks, and how it writes an entry; data |
//! | `plan.rs` | the changes that an installation or its removal takes |
//! | `edit.rs` | entries put into and taken out of a settings text, which otherwise stays as it is |
//! | `registered.rs` | the entries that stand in the settings |
//! | `files.rs` | the difference of a change, and its atomic write |
//! | `command.rs` | `rulekeep hook install` and `rulekeep hook uninstall` |

mod command;
mod edit;
mod files;
mod layout;
mod plan;
mod registered;

use std::path::{Path, PathBuf};

use crate::hook::event::Host;
use layout::Layout;

pub use command::{InstallArguments, UninstallArguments, install, uninstall};
pub use files::{FileChange, apply};
pub use plan::{plan_install, plan_uninstall};
pub use registered::{RegisteredHook, registered};

/// The events that the hook is registered for with a host.
pub(crate) fn events(host: Host) -> impl Iterator<Item = &'static str> {
    Layout::of(host).events.iter().map(|event| event.name)
}

/// The settings file of a host that the hook is registered in.
pub(crate) fn settings_file(host: Host, scope: Scope, home: &Path, project: &Path) -> PathBuf {
    Layout::of(host).file(scope, home, project)
}

/// Whose settings a hook is registered in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The settings of the user, for all projects.
    User,
    /// The settings of one project.
    Project,
}
