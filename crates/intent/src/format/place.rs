//! Paths and addresses: whether one names a secret, or a system path that a write would change. They are compared
//! after resolving dots and slashes.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::tables::places;
use crate::table::List;
use rulekeep_types::RiskLevel;

/// The path in lower case, with `//`, `/./` and `..` resolved and the home directory written `~`.
pub(super) fn resolved(path: &str) -> Cow<'_, str> {
    let path = path.trim();
    let is_plain = path.bytes().all(|byte| !byte.is_ascii_uppercase() && !matches!(byte, b'$' | b'\\' | b'/'));
    if is_plain {
        return Cow::Borrowed(path);
    }
    let lower = path.trim().to_ascii_lowercase().replace("${home}", "~").replace("$home", "~").replace('\\', "/");
    let mut parts: Vec<&str> = Vec::new();
    for part in lower.split('/') {
        match part {
            "" | "." if !parts.is_empty() => {}
            ".." if parts.last().is_some_and(|last| !matches!(*last, "" | ".." | "." | "~")) => {
                parts.pop();
            }
            ".." if parts.last() == Some(&"") => {}
            other => parts.push(other),
        }
    }
    match parts.as_slice() {
        [""] if lower.starts_with('/') => Cow::Borrowed("/"),
        _ => Cow::Owned(parts.join("/")),
    }
}

/// Returns whether a path is a file that contains secrets, or an address that returns them.
pub(super) fn is_secret(path: &str) -> bool {
    if !may_be_place(path) {
        return false;
    }
    let path = resolved(path);
    let name = path.rsplit(['/', '=', '@', ':']).next().unwrap_or("");
    if is_template(name) || has_ending(&path, "pub") || path.ends_with(".ssh/config") || path.ends_with("known_hosts") {
        return false;
    }
    SECRET_PARTS.as_ref().is_some_and(|parts| parts.is_match(&path))
        || places().secret_names.has(name)
        || name.strip_prefix(".env.").is_some_and(|kind| !kind.split('.').any(|kind| places().public_env.has(kind)))
        || names_secrets(name)
        || keeps_sessions(&path, name)
        || has_path_shape(&path)
            && path.split('/').rev().skip(1).any(|folder| matches!(folder, "secrets" | "credentials"))
        || has_path_shape(&path)
            && name
                .rsplit_once('.')
                .is_some_and(|(stem, ending)| !stem.is_empty() && places().secret_endings.has(ending))
        || has_ending(name, "pem") && !["cert", "chain", "ca.", "ca-"].iter().any(|public| name.contains(public))
        || path.contains("/proc/") && (path.ends_with("/environ") || path.ends_with("/mem"))
        || is_wild_secret(&path)
}

/// The risk of reading a file in a place that is private until a list says otherwise: hidden files and folders of a home,
/// settings of the system below the first level, what services keep, and other processes.
pub(super) fn private(path: &str) -> Option<RiskLevel> {
    if !path.starts_with(['/', '~', '$']) {
        return None;
    }
    let path = resolved(path);
    let below = in_home(&path).filter(|below| below.starts_with('.') && below.len() > 1);
    let kept = ["/etc/", "/var/lib/"].iter().find_map(|root| path.strip_prefix(root)).filter(|rest| rest.contains('/'));
    let process = path.strip_prefix("/proc/").filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let rest = below.or(kept).or(process)?;
    let is_public = places().shown_to_all.iter().any(|public| is_under(rest, public) || is_under(&path, public));
    if is_public || is_template(rest) || has_ending(rest, "pub") {
        return None;
    }
    let name = rest.rsplit('/').next().unwrap_or(rest);
    let holds_settings = || name.rsplit_once('.').is_none_or(|(_, ending)| places().setting_endings.has(ending));
    let is_deep = rest.contains('/') || name.contains(WILD);
    Some(if is_deep && holds_settings() { RiskLevel::High } else { RiskLevel::Medium })
}

/// Returns whether a path lies below a folder for temporary files, which a session names `$TMPDIR`.
pub(super) fn is_scratch(path: &str) -> bool {
    let path = resolved(path);
    let folders = ["/tmp/", "/var/tmp/", "/private/tmp/", "$tmpdir/", "${tmpdir}/"];
    let below = folders.iter().find_map(|folder| path.strip_prefix(folder));
    below.is_some_and(|rest| !rest.is_empty() && !rest.contains(['$', '`']))
}

/// The part of a resolved path below the home folder of a user.
pub(super) fn in_home(path: &str) -> Option<&str> {
    path.strip_prefix("~/").or_else(|| path.strip_prefix("/root/")).or_else(|| {
        let rest = path.strip_prefix("/home/").or_else(|| path.strip_prefix("/users/"))?;
        rest.split_once('/').map(|(_, below)| below)
    })
}

/// Returns whether a hidden file or folder of a home may be run or loaded unasked: all but those of caches and data.
fn is_hidden_setting(path: &str) -> bool {
    in_home(path).is_some_and(|below| {
        below.starts_with('.')
            && below.len() > 2
            && !places().calm_home.iter().any(|calm| is_under(below, calm))
            && !is_template(below)
    })
}

/// Returns whether a file in a hidden place records what a person typed, or keeps them signed in: `.bash_history`,
/// `.openai/auth.json`.
fn keeps_sessions(path: &str, name: &str) -> bool {
    let is_hidden =
        || path.split('/').rev().skip(1).any(|folder| folder.len() > 2 && folder.starts_with('.') && folder != "..");
    let is_session = |(stem, kind): (&str, &str)| {
        places().session_kinds.has(kind)
            && stem.split(|c: char| !c.is_alphanumeric()).any(|word| places().session_words.has(word))
    };
    name.starts_with('.') && name.ends_with("history") || name.rsplit_once('.').is_some_and(is_session) && is_hidden()
}

/// Returns whether a file's name says that it shows the form of another one: `.env.example`, `secrets.sample.yml`.
fn is_template(name: &str) -> bool {
    !name.contains(WILD) && name.split(['.', '-', '_']).any(|part| places().templates.has(part))
}

/// Returns whether a file's name suggests secrets: `passwords.txt`, `prod.env`.
fn names_secrets(name: &str) -> bool {
    let Some((stem, kind)) = name.rsplit_once('.') else { return false };
    let is_one = |word: &str| places().secret_words.has(word);
    let is_environment =
        kind == "env" && !stem.is_empty() && !stem.split(['.', '-', '_']).any(|word| places().public_env.has(word));
    is_environment || places().secret_kinds.has(kind) && stem.split(|c: char| !c.is_alphanumeric()).any(is_one)
}

/// Returns whether writing there changes the system, or what a user's shell runs.
pub(super) fn is_system(path: &str) -> bool {
    if !path.contains(['/', '.', '\\']) && !matches!(path, "crontab" | "authorized_keys" | "sudoers") {
        return false;
    }
    let path = resolved(path);
    let name = path.rsplit('/').next().unwrap_or("");
    if places().harmless_devices.iter().any(|device| is_under(&path, device)) {
        return false;
    }
    places().system_roots.iter().any(|root| is_under(&path, root))
        || path == "/"
        || path.strip_prefix("../").is_some_and(|rest| is_rooted(rest.trim_start_matches("../")))
        || places().home_settings.has(name)
        || path.contains(".ssh/")
        || path.starts_with("/e")
            && path.contains(WILD)
            && path.split('/').nth(1).is_some_and(|first| could_be(first, "etc"))
}

/// Returns whether a relative path would be the system's if its base were the root: its first folder is one whose name
/// is rare in projects.
pub(super) fn is_rooted(path: &str) -> bool {
    places().rooted.iter().any(|root| is_under(path, root))
}

/// Returns whether a path is a log of the system.
pub(super) fn is_log(path: &str) -> bool {
    path.starts_with("/var/") && is_under(&resolved(path), "/var/log")
}

/// Returns whether a path is a log that the system itself keeps, or a mailbox.
pub(super) fn is_system_log(path: &str) -> bool {
    let path = resolved(path);
    let direct = path.strip_prefix("/var/log/").filter(|rest| !rest.contains('/'));
    direct.is_some_and(|name| places().system_logs.has(name.split('.').next().unwrap_or(name)))
        || is_under(&path, "/var/spool/mail")
}

/// The risk of writing a file that is run later without being asked for: HIGH for hooks, session startup files and an
/// agent's settings, MEDIUM for build files.
pub(super) fn runs_later(path: &str) -> Option<RiskLevel> {
    if !path.contains(['/', '.']) {
        return None;
    }
    let exact = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let path = resolved(path).to_ascii_lowercase();
    let fits = |parts: &LazyLock<Option<Regex>>| parts.as_ref().is_some_and(|parts| parts.is_match(&path));
    match () {
        () if fits(&HOOK_PARTS) || is_instruction(&path, exact) || is_hidden_setting(&path) => Some(RiskLevel::High),
        () if fits(&BUILD_PARTS) => Some(RiskLevel::Medium),
        () => None,
    }
}

/// Returns whether the next test, build or start loads a file unasked.
pub(super) fn is_loaded(path: &str) -> bool {
    let rooted = format!("/{}", resolved(path));
    places().loaded_parts.iter().any(|part| rooted.contains(part))
}

/// Returns whether a resolved path is a file of instructions that agents read unasked, or a program on the path. In a
/// folder of documentation only the usual capitals tell such a file from a page.
fn is_instruction(path: &str, exact: &str) -> bool {
    let mut parts = path.rsplit('/');
    let name = parts.next().unwrap_or("");
    let is_program = parts.next().is_some_and(|folder| matches!(folder, "bin" | ".bin"))
        && (path.contains("node_modules/.bin/") || in_home(path.strip_suffix(name).unwrap_or(path)) == Some("bin/"));
    let is_page = path.split('/').any(|folder| matches!(folder, "docs" | "doc"));
    let is_shouted = exact.split('.').next().is_some_and(|stem| stem.bytes().all(|byte| !byte.is_ascii_lowercase()));
    places().instruction_names.has(name) && (is_shouted || !is_page) || is_program
}

/// Returns whether anyone may write to a place, or downloads lie there, so that no program belongs there.
pub(super) fn is_open_to_all(path: &str) -> bool {
    path.contains('/') && {
        let path = resolved(path);
        places().open_roots.iter().any(|root| is_under(&path, root))
    }
}

/// Returns whether a program is named without a folder, or lies in one where programs are installed: of the system, or
/// a hidden one of a home.
pub(super) fn is_installed(path: &str) -> bool {
    let Some((folder, _)) = path.rsplit_once('/') else { return true };
    let is_plain = !folder.split('/').any(|part| part == "..");
    let lower = folder.to_ascii_lowercase();
    let own = || in_home(&lower).is_some_and(|below| below.starts_with('.') || below == "go/bin");
    is_plain && (places().program_roots.iter().any(|root| is_under(&lower, root)) || own())
}

/// Returns whether a path stands for the whole system, or everything a user has.
pub(super) fn is_whole(path: &str) -> bool {
    let path = resolved(path);
    let path = path.trim_end_matches("/*").trim_end_matches('/');
    path.is_empty() || places().whole_paths.has(path)
}

/// Returns whether a word can name a relevant file at all; most arguments cannot, which is quick to see.
fn may_be_place(path: &str) -> bool {
    path.contains(['/', '.', '\\', '_', '~', '$', '@'])
        || places().secret_names.has(path)
        || path.len() > 6 && path.contains("passwd")
}

/// The parts as a single pattern, so that a path is scanned once.
static SECRET_PARTS: LazyLock<Option<Regex>> = LazyLock::new(|| any_of(&places().secret_parts));
static HOOK_PARTS: LazyLock<Option<Regex>> = LazyLock::new(|| any_of(&places().hook_parts));
static BUILD_PARTS: LazyLock<Option<Regex>> = LazyLock::new(|| any_of(&places().build_parts));

/// An expression for any of the parts in a list.
pub(super) fn any_of(list: &List) -> Option<Regex> {
    let parts: Vec<String> = list.iter().map(regex::escape).collect();
    Regex::new(&parts.join("|")).ok()
}

/// Returns whether a wildcard or variable where secrets lie can match one.
fn is_wild_secret(path: &str) -> bool {
    if !path.contains(WILD) {
        return false;
    }
    let mut parts = path.split('/');
    let first = if path.starts_with('/') { parts.nth(1).unwrap_or("") } else { "" };
    let rooted = places().secret_roots.iter().any(|root| first == root || could_be(first, root))
        && (first != "proc" || path.rsplit('/').next().is_some_and(|name| name.contains(['*', '?', '['])));
    let folder = path.split('/').any(|part| {
        places().secret_folders.has(part)
            || part.starts_with('.') && (has_letters(part) || path.starts_with('~')) && could_be(part, ".ssh")
    });
    let name = path.rsplit('/').next().unwrap_or("");
    // `cat .e*` includes hidden files with secrets.
    let is_hidden = name.starts_with('.') && places().hidden_secrets.iter().any(|file| could_be(name, file));
    rooted
        || folder
        || is_hidden && !matches!(name, ".*")
        || path.starts_with('/') && (name == "shadow" || could_be(name, "shadow"))
}

/// Returns whether more than a dot precedes the wildcard: ".*" matches any hidden file, and the end of most patterns.
fn has_letters(part: &str) -> bool {
    part.as_bytes().get(1).is_some_and(u8::is_ascii_alphanumeric)
}

/// Returns whether a part with wildcards and some literal letters can match the name.
pub(super) fn could_be(part: &str, name: &str) -> bool {
    let (Some(first), Some(last)) = (part.find(WILD), part.rfind(WILD)) else { return false };
    let (start, end) = (part.get(..first).unwrap_or(""), part.get(last + 1..).unwrap_or(""));
    start.len() + end.len() > 0 && name.starts_with(start) && (end.contains(']') || name.ends_with(end))
}

fn is_under(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn has_ending(path: &str, ending: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(stem, last)| last == ending && !stem.is_empty())
}

fn has_path_shape(path: &str) -> bool {
    !path.contains(['(', ' ', '{', '$', '"'])
}

/// Characters that the shell expands.
pub(super) const WILD: &[char] = &['*', '?', '[', '{', '$'];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_and_slashes_do_not_hide_a_path() {
        for (path, expected) in [
            ("//etc//shadow", "/etc/shadow"),
            ("/etc/./shadow", "/etc/shadow"),
            ("/tmp/../etc/shadow", "/etc/shadow"),
            ("/../../etc", "/etc"),
            ("../../etc/shadow", "../../etc/shadow"),
            ("${HOME}/.ssh/x", "~/.ssh/x"),
            ("/", "/"),
            ("//", "/"),
        ] {
            assert_eq!(resolved(path), expected, "{path}");
        }
    }

    #[test]
    fn a_secret_is_known_by_its_path_however_it_is_written() {
        for path in [
            "/etc//shadow",
            "/etc/gshadow",
            "/etc/sh*",
            "/e?c/shadow",
            "/etc/sha$x",
            "~/.ssh/*",
            "~/.aws/c*",
            "server.key",
            "cert/private.pem",
            "/proc/self/environ",
            "/proc/1/environ",
            "terraform.tfstate",
            "wallet.dat",
            "/dev/mem",
            "http://169.254.169.254/latest",
            "@/etc/shadow",
            "../../etc/shadow",
            "~/.aws/credentials",
        ] {
            assert!(is_secret(path), "{path}");
        }
        for path in [
            ".env.example",
            "config/secrets.sample.yml",
            ".env.local.template",
            "README.md",
            "~/.ssh/id_rsa.pub",
            "src/*.rs",
            "path/to/*",
            "/var/log/syslog",
            "ca-chain.pem",
            "keyboard",
        ] {
            assert!(!is_secret(path), "{path}");
        }
    }

    #[test]
    fn a_part_of_the_system_is_told_from_a_users_own_files() {
        for path in
            ["/etc/passwd", "/usr/bin/ls", "/tmp/../boot/x", "~/.bashrc", "~/.ssh/authorized_keys", "/dev/sda", "/"]
        {
            assert!(is_system(path), "{path}");
        }
        for path in ["/dev/null", "/tmp/x", "~/notes.txt", "etc", "/home/bob/x", "/usrlocal"] {
            assert!(!is_system(path), "{path}");
        }
    }
}
