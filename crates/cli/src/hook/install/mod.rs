//! The hook's entries in the settings of a host: planning changes, showing the difference, writing, finding and
//! removing them.
//!
//! | file | subject |
//! |---|---|
//! | `layout.rs` | the location and format of hook entries for each host, as data |
//! | `plan.rs` | the changes for an installation or its removal |
//! | `edit.rs` | inserting entries into a settings text and removing them |
//! | `registered.rs` | the entries in the settings |
//! | `files.rs` | showing the difference of a change, and writing it atomically |
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

pub(crate) use command::moved;
pub use command::{InstallArguments, UninstallArguments, install, uninstall};
pub use files::{FileChange, apply};
pub use plan::{plan_install, plan_uninstall};
pub use registered::{RegisteredHook, registered};

/// The events that the hook is registered for with a host.
pub(crate) fn events(host: Host) -> impl Iterator<Item = &'static str> {
    Layout::of(host).events.iter().map(|event| event.name)
}

/// The settings file of a host in which the hook is registered.
pub(crate) fn settings_file(host: Host, scope: Scope, home: &Path, project: &Path) -> PathBuf {
    Layout::of(host).file(scope, home, project)
}

/// The owner of the settings in which a hook is registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The settings of the user, for all projects.
    User,
    /// The settings of one project.
    Project,
}
