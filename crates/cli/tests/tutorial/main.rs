//! The commands of `docs/tutorial.md`, run one after the other as the page says them.

use std::fmt::Write as _;
use std::process::Command;

/// The shell blocks of the page run in one shell, from nothing to a verified report. A line `# => TEXT` behind a command
/// says what its output contains.
#[test]
fn the_tutorial_leads_from_nothing_to_a_verified_report() {
    let page = include_str!("../../../../docs/tutorial.md");
    let folder = tempfile::tempdir().unwrap();
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_rulekeep")).parent().unwrap();
    let mut script = String::from("set -eu\n");
    let mut expected = Vec::new();
    let mut is_shell = false;
    for line in page.lines() {
        match line.trim_end() {
            "```sh" => is_shell = true,
            "```" => is_shell = false,
            line if is_shell && !line.starts_with("cargo ") => {
                if let Some(text) = line.strip_prefix("# => ") {
                    expected.push(text.to_owned());
                    writeln!(script, "echo '%%shown {}'", expected.len()).unwrap();
                } else {
                    script.push_str(line);
                    script.push('\n');
                }
            }
            _ => {}
        }
    }
    assert!(expected.len() > 5, "the page says what its commands show");
    let mut path = std::ffi::OsString::from(bin);
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-c", &format!("trap 'RULEKEEP_OPERATOR_KEY=$key rulekeep down >/dev/null 2>&1' EXIT\n{script}")])
        .env("PATH", path)
        .env("HOME", folder.path())
        .env("RULEKEEP_HOME", folder.path().join("home"))
        .env_remove("RULEKEEP_OPERATOR_KEY")
        .current_dir(folder.path())
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{shown}\n{errors}\n{script}");
    let parts: Vec<&str> = shown.split("%%shown ").collect();
    for (number, text) in expected.iter().enumerate() {
        let part = parts.get(number).unwrap();
        assert!(part.contains(text.as_str()), "expected {text:?} in:\n{part}\n{errors}");
    }
}
