//! The normalized form of a target, equal for two spellings of the same target.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use rulekeep_types::TargetKind;

/// The kind of a target, by its shape.
pub(super) fn kind_of(text: &str) -> TargetKind {
    let text = text.trim();
    if text.contains("://") || text.contains(":\\\\") || text.starts_with("www.") {
        TargetKind::Host
    } else if text.contains('@') && !text.contains('/') {
        TargetKind::Recipient
    } else {
        TargetKind::Path
    }
}

/// Returns whether a text is the international number of a bank account, whatever its blanks.
pub(super) fn is_account(text: &str) -> bool {
    let number: Vec<u8> = text.bytes().filter(|byte| *byte != b' ').collect();
    let [a, b, c, d, rest @ ..] = number.as_slice() else { return false };
    [a, b].iter().all(|letter| letter.is_ascii_alphabetic())
        && [c, d].iter().all(|digit| digit.is_ascii_digit())
        && (11..=30).contains(&rest.len())
        && rest.iter().all(u8::is_ascii_alphanumeric)
}

/// Returns whether a word is the address of a mailbox. `git@host:path` is none.
pub(super) fn is_mailbox(word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
    word.split_once('@').is_some_and(|(user, domain)| {
        !user.is_empty() && user.chars().all(is_name) && domain.contains('.') && domain.chars().all(is_name)
    })
}

/// The normalized form: an address without its display name; a host in lower case without a user; a path without dot
/// segments; each without percent-encoding.
pub(super) fn plain(kind: TargetKind, text: &str) -> String {
    let text = decoded(text.trim());
    match kind {
        TargetKind::Recipient => address(&text),
        TargetKind::Host => host(&text),
        TargetKind::Path => path(&text),
        TargetKind::Table | TargetKind::Account => text.trim().to_owned(),
    }
}

/// Returns whether the normalized form still stands for something else: a pattern, a variable or another encoding.
pub(super) fn is_open(kind: TargetKind, plain: &str) -> bool {
    let marks: &[char] = match kind {
        TargetKind::Path => &['*', '?', '[', '{', '$', '`'],
        TargetKind::Table => &['*', '%', '$', '{'],
        TargetKind::Recipient | TargetKind::Host | TargetKind::Account => &['*', '{', '$', '`'],
    };
    plain.contains(marks) || kind != TargetKind::Table && is_encoded(plain)
}

/// Returns whether a path means itself. Some tools expand wildcards, templates, and a variable at the start, or hand the
/// path to a shell.
pub(super) fn is_literal(text: &str) -> bool {
    let is_variable =
        text.strip_prefix('$').is_some_and(|rest| rest.starts_with(|c: char| c == '{' || c.is_ascii_uppercase()));
    let is_marked =
        text.contains(['*', '?', '`', '|', ';']) || ["$(", "${", "{{"].iter().any(|mark| text.contains(mark));
    !text.is_empty() && !is_variable && !is_marked && !is_encoded(text)
}

/// `Ann <Ann@Example.COM>` becomes `Ann@example.com`.
fn address(text: &str) -> String {
    let inner = text.rsplit_once('<').and_then(|(_, rest)| rest.split_once('>')).map_or(text, |(inner, _)| inner);
    let inner = inner.trim().trim_start_matches("mailto:");
    match inner.rsplit_once('@') {
        Some((user, domain)) => format!("{user}@{}", domain.trim_end_matches('.').to_lowercase()),
        None => inner.to_owned(),
    }
}

/// Scheme and host in lower case without a user name; the rest without dot segments.
fn host(text: &str) -> String {
    let text = text.replace('\\', "/");
    let (scheme, rest) = text.split_once("://").unwrap_or(("", &text));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, behind) = rest.split_at(end);
    let authority = authority.rsplit('@').next().unwrap_or("").to_lowercase();
    let (way, query) = behind.split_at(behind.find(['?', '#']).unwrap_or(behind.len()));
    let mark = if scheme.is_empty() { "" } else { "://" };
    let way = if way.is_empty() { String::new() } else { path(way) };
    format!("{}{mark}{}{way}{query}", scheme.to_lowercase(), authority.trim_end_matches('.'))
}

/// A path without `//`, `/./`, `..` and a final slash, as far as it can be resolved.
pub(super) fn resolved_path(text: &str) -> String {
    let path = path(text);
    match path.strip_suffix('/') {
        Some(bare) if !bare.is_empty() => bare.to_owned(),
        _ => path,
    }
}

/// Returns whether a resolved path starts from a root: that of the system, a home, or a drive.
pub(super) fn is_absolute(path: &str) -> bool {
    path.starts_with(['/', '~']) || path.get(1..2) == Some(":")
}

/// The path of a `file:` address.
pub(super) fn file_path(text: &str) -> Option<&str> {
    let scheme = text.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("file://"))?;
    let rest = text.get(scheme.len()..)?;
    Some(rest.find('/').and_then(|at| rest.get(at..)).unwrap_or(rest))
}

/// Resolves `//`, `/./` and `..` as far as possible, and other names of the root folder.
pub(super) fn path(text: &str) -> String {
    let text = text.trim().replace('\\', "/");
    let path = without_dots(&text);
    let inner = path.strip_prefix("/proc/").and_then(|rest| rest.split_once('/'));
    match inner.and_then(|(_, rest)| rest.strip_prefix("root/")) {
        Some(rest) => format!("/{rest}"),
        None => path,
    }
}

fn without_dots(text: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." if !parts.is_empty() => {}
            // The folder above a home is not known.
            ".." if parts.last().is_some_and(|last| !matches!(*last, "" | ".." | ".") && !last.starts_with('~')) => {
                parts.pop();
            }
            ".." if parts.last() == Some(&"") => {}
            part => parts.push(part),
        }
    }
    match parts.as_slice() {
        [] => ".".to_owned(),
        [""] => "/".to_owned(),
        _ if text.ends_with('/') => parts.join("/") + "/",
        _ => parts.join("/"),
    }
}

/// Undoes percent-encoding once, if the result is text.
fn decoded(text: &str) -> Cow<'_, str> {
    if !is_encoded(text) {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        let decoded = escaped(bytes, at);
        out.push(decoded.unwrap_or(byte));
        at += if decoded.is_some() { 3 } else { 1 };
    }
    String::from_utf8(out).map_or(Cow::Borrowed(text), Cow::Owned)
}

fn is_encoded(text: &str) -> bool {
    let bytes = text.as_bytes();
    text.contains('%') && (0..bytes.len()).any(|at| escaped(bytes, at).is_some())
}

/// The byte of an escape such as `%2f`.
fn escaped(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    if bytes.get(at) != Some(&b'%') {
        return None;
    }
    u8::try_from(digit(at + 1)? * 16 + digit(at + 2)?).ok()
}

/// The host names and addresses in a word.
pub(super) fn hosts_in(text: &str) -> Vec<String> {
    let Some(pattern) = HOSTS.as_ref() else { return Vec::new() };
    let mut hosts: Vec<String> = Vec::new();
    for found in pattern.find_iter(text).take(MOST_HOSTS) {
        let ending = found.as_str().rsplit('.').next().unwrap_or_default();
        let before = text.get(..found.start()).unwrap_or_default();
        let is_marked =
            before.ends_with(['@', '/', ':']) || text.get(found.end()..).is_some_and(|rest| rest.starts_with(':'));
        let is_file = FILE_ENDINGS.contains(&ending) && !is_marked || before.ends_with("./");
        let host = found.as_str().to_lowercase();
        if !is_file && !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    hosts
}

static HOSTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}|\b\d{1,3}(?:\.\d{1,3}){3}\b|\blocalhost\b").ok()
});

/// Endings of files that are no domains.
const FILE_ENDINGS: &[&str] = &[
    "py", "rs", "sh", "md", "txt", "js", "ts", "tsx", "jsx", "mjs", "json", "jsonl", "toml", "yaml", "yml", "html",
    "css", "csv", "log", "go", "java", "rb", "php", "cpp", "hpp", "sql", "xml", "ini", "cfg", "conf", "lock", "tar",
    "gz", "tgz", "zip", "png", "jpg", "svg", "pdf", "db", "sqlite", "env", "bak", "orig", "patch", "diff", "swift",
    "kt", "ipynb", "pyc", "so", "exe",
];
/// Maximum number of hosts found in one text.
const MOST_HOSTS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_differently_is_one() {
        for (text, expected) in [
            ("Ann Lee <Ann@Example.COM>", "Ann@example.com"),
            ("mailto:ann@example.com ", "ann@example.com"),
            ("https://Good.example@EVIL.example./a/../b?q=A", "https://evil.example/b?q=A"),
            ("HTTPS:\\\\x.example\\a", "https://x.example/a"),
            ("/srv/./a//b/../c ", "/srv/a/c"),
            ("%2e%2e/etc/shadow", "../etc/shadow"),
            ("/tmp/../../etc/", "/etc/"),
            ("C:\\Users\\ann", "C:/Users/ann"),
        ] {
            assert_eq!(plain(kind_of(text), text), expected, "{text}");
        }
    }

    #[test]
    fn a_name_with_brackets_means_itself() {
        for text in
            ["app/[lang]/page.tsx", "app/[[...rest]]/x", "routes/$order.tsx", "tpl/{name}.ts", "@modal/page.tsx"]
        {
            assert!(is_literal(text), "{text}");
        }
        for text in ["src/*.rs", "$HOME/x", "${X}/y", "$(id)", "{{ path }}", "a|rm x", "%2e%2e/x"] {
            assert!(!is_literal(text), "{text}");
        }
    }

    #[test]
    fn what_stands_for_something_else_is_told() {
        for (text, expected) in [
            ("src/*.rs", true),
            ("$HOME/x", true),
            ("%252e%252e/x", true),
            ("https://x.example/?a=b", false),
            ("/srv/a", false),
        ] {
            let kind = kind_of(text);
            assert_eq!(is_open(kind, &plain(kind, text)), expected, "{text}");
        }
    }
}
