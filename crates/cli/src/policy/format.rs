//! `rulekeep policy fmt`: formats policy documents in one layout, preserving comments and meaning.

use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use rulekeep::PolicySet;
use rulekeep::document::{self, File};
use rulekeep::policy::PolicyFormat;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

/// The arguments of `rulekeep policy fmt`.
#[derive(Args)]
pub struct Arguments {
    /// The policy documents: .toml
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Changes nothing; lists the files that would change, and exits with 1 if there are any
    #[arg(long)]
    check: bool,
    /// Prints the result as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Formats files. Returns whether nothing is left to do, which is always the case without `--check`.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    // All files are read before one is written, so that a faulty one leaves the others unchanged.
    let formatted: Vec<(&PathBuf, Option<String>)> =
        arguments.files.iter().map(|path| Ok((path, reformatted(path)?))).collect::<Result<_, Box<dyn Error>>>()?;
    let (mut is_done, mut report) = (true, Vec::new());
    for (path, text) in formatted {
        if let (Some(text), false) = (&text, arguments.check) {
            replace(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        if !arguments.json && text.is_some() {
            let said = if arguments.check { "is not formatted; run `rulekeep policy fmt` on it" } else { "formatted" };
            super::print(format_args!("{}: {said}\n", path.display()))?;
        }
        is_done &= !arguments.check || text.is_none();
        report.push(json!({ "file": path, "changed": text.is_some() }));
    }
    if arguments.json {
        super::print_json(&json!({ "files": report }))?;
    }
    Ok(is_done)
}

/// Returns the formatted text of a document; `None` if it is formatted already.
fn reformatted(path: &Path) -> Result<Option<String>, Box<dyn Error>> {
    let File { name, format, text } = File::read(path, "policy", PolicySet::MAX_BYTES, super::too_large)?;
    if format != PolicyFormat::Toml {
        return Err(
            format!("{}: expected a TOML document; `fmt` leaves JSON to formatters of JSON", path.display()).into()
        );
    }
    let set = PolicySet::parse(&text, format, &name)?;
    let formatted = layout(&text);
    let is_same = PolicySet::parse(&formatted, format, &name).is_ok_and(|other| other.digest() == set.digest())
        && content(&formatted) == content(&text)
        && layout(&formatted) == formatted;
    if !is_same {
        return Err(format!("{}: formatting would change its meaning, so it was left as it is", path.display()).into());
    }
    Ok((formatted != text).then_some(formatted))
}

/// Formats a text: a space around `=`, four blanks of indent in lists of several lines, at most one blank line. Lists
/// and inline tables keep the author's line breaks.
fn layout(text: &str) -> String {
    let options = taplo::formatter::Options {
        column_width: 120,
        indent_string: "    ".to_owned(),
        array_auto_expand: false,
        array_auto_collapse: false,
        allowed_blank_lines: 1,
        crlf: text.contains("\r\n"),
        ..Default::default()
    };
    taplo::formatter::format(text, options)
}

/// Returns everything that a document says, including parts without effect on decisions: alerts, examples,
/// descriptions.
fn content(text: &str) -> Option<Value> {
    let too_large = |_| String::new();
    document::read(text, PolicyFormat::Toml, PolicySet::MAX_BYTES, too_large, |root, _| root.into_json()).0
}

/// Replaces a file atomically: readers see either the old text or the new.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    // A link stays a link.
    let path = path.canonicalize()?;
    let mut file = NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(fs::metadata(&path)?.permissions())?;
    file.as_file().sync_all()?;
    file.persist(&path)?;
    Ok(())
}
