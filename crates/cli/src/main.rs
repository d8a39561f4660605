//! `rulekeep`: one program for people and for the hooks of their agents.

use std::process::ExitCode;

fn main() -> ExitCode {
    rulekeep_cli::main()
}
