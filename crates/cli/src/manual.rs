//! `rulekeep completions` and `rulekeep man`.

use std::io;
use std::process::ExitCode;

use clap_complete::Shell;

/// The options of `rulekeep completions`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rulekeep completions bash\n  rulekeep completions zsh\n  rulekeep completions fish"
)]
pub(crate) struct CompletionOptions {
    /// The shell
    shell: Shell,
}

/// The options of `rulekeep man`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  rulekeep man\n  rulekeep man log query")]
pub(crate) struct ManOptions {
    /// The command to describe (default: the tool itself)
    command: Vec<String>,
}

/// Prints the completions for a shell.
pub(crate) fn completions(options: &CompletionOptions) -> Result<ExitCode, String> {
    let mut text = Vec::new();
    clap_complete::generate(options.shell, &mut crate::command(), "rulekeep", &mut text);
    write(&text)
}

/// Prints a manual page.
pub(crate) fn man(options: &ManOptions) -> Result<ExitCode, String> {
    let mut command = crate::command();
    command.build();
    let mut found = &command;
    for name in &options.command {
        let next = found.find_subcommand(name);
        found = next.ok_or_else(|| format!("there is no command {name:?}; rulekeep --help lists them"))?;
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(found.clone()).render(&mut page).map_err(|error| error.to_string())?;
    write(&page)
}

fn write(text: &[u8]) -> Result<ExitCode, String> {
    match io::Write::write_all(&mut io::stdout(), text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(format!("standard output: {error}")),
        _ => Ok(ExitCode::SUCCESS),
    }
}
