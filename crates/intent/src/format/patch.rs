//! Patches in every common form: the files that their headers name.

/// A file that a patch changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Change<'p> {
    pub path: &'p str,
    pub removes: bool,
}

/// Returns whether a text is a patch, not a text that quotes one.
pub(super) fn is_patch(text: &str) -> bool {
    let mut lines = text.trim_start().lines();
    let first = lines.next().unwrap_or("");
    STARTS.iter().any(|start| first.starts_with(start))
        || first.starts_with("--- ") && lines.next().is_some_and(|line| line.starts_with("+++ "))
}

/// The files that a patch changes, in the order of their headers: of `apply_patch`, unified and context diffs, and
/// the extended headers of Git. A line of a hunk that looks like a header counts as one.
pub(super) fn changes(text: &str) -> Vec<Change<'_>> {
    let mut found: Vec<Change<'_>> = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let next = lines.peek().copied().unwrap_or("");
        // `apply_patch` accepts blanks before its headers.
        let line = if line.trim_start().starts_with("*** ") { line.trim_start() } else { line };
        if let Some(path) = HEADERS.iter().find_map(|header| line.strip_prefix(header)) {
            push(&mut found, path.trim(), false);
        } else if let Some(path) = line.strip_prefix("*** Delete File:") {
            push(&mut found, path.trim(), true);
        } else if let Some((old, new)) = diff_header(line, next) {
            lines.next();
            match (name(old), name(new)) {
                (Some(old), None) => push(&mut found, old, true),
                (old, Some(new)) => {
                    push(&mut found, new, false);
                    if let Some(old) = old {
                        push(&mut found, old, false);
                    }
                }
                (None, None) => {}
            }
        } else if let Some(names) = line.strip_prefix("diff --git ") {
            let new = names.split_once(" b/").map_or(names, |(_, new)| new);
            push(&mut found, unquoted(new), next.starts_with("deleted file"));
        }
    }
    found
}

fn push<'p>(found: &mut Vec<Change<'p>>, path: &'p str, removes: bool) {
    match found.iter_mut().find(|known| known.path == path) {
        Some(known) => known.removes |= removes,
        None if path.is_empty() => {}
        None => found.push(Change { path, removes }),
    }
}

/// The two names of a header of a unified diff, or of a context diff.
fn diff_header<'p>(line: &'p str, next: &'p str) -> Option<(&'p str, &'p str)> {
    let unified = || Some((line.strip_prefix("--- ")?, next.strip_prefix("+++ ")?));
    // "--- 1,4 ----" is the range of a hunk.
    let context = || Some((line.strip_prefix("*** ")?, next.strip_prefix("--- ").filter(|new| !new.ends_with("---"))?));
    unified().or_else(context)
}

/// The path of a header without its time and the prefix that Git adds; `None` for `/dev/null`.
fn name(text: &str) -> Option<&str> {
    let path = unquoted(text.split('\t').next().unwrap_or(text));
    let path = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).unwrap_or(path);
    (path != "/dev/null").then_some(path)
}

fn unquoted(path: &str) -> &str {
    path.trim().trim_matches('"')
}

/// The first lines of patches.
const STARTS: &[&str] =
    &["*** Begin Patch", "*** Add File:", "*** Update File:", "*** Delete File:", "diff --git ", "Index: "];
/// Headers of files that are written.
const HEADERS: &[&str] =
    &["*** Add File:", "*** Update File:", "*** Move to:", "rename to ", "rename from ", "copy to ", "Index: "];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_patch_names_its_files() {
        for (text, expected) in [
            ("*** Begin Patch\n*** Add File: a b.py\n+x\n*** End Patch", "a b.py"),
            ("*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-x\n+*** Add File: c\n", "a b"),
            ("*** Begin Patch\n*** Delete File: a\n*** End Patch", "-a"),
            ("--- a/x.py\t2026-01-01\n+++ b/x.py\t2026-01-02\n@@ -1 +1 @@\n-a\n+b", "x.py"),
            ("--- /dev/null\n+++ /etc/cron.d/x\n@@ -0,0 +1 @@", "/etc/cron.d/x"),
            ("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@", "-x"),
            ("*** x.old\t2026\n--- x.new\t2026\n***************\n*** 1,3 ****\n", "x.new x.old"),
            ("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", "x"),
            ("diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n", "-x"),
            ("diff --git a/x b/y\nrename from x\nrename to y\n", "y x"),
            ("From 1 Mon\nSubject: [PATCH] x\n\n--- a/x\n+++ b/x\n", "x"),
            ("no patch\n+ a\n- b\n", ""),
        ] {
            let mark = |change: &Change<'_>| format!("{}{}", if change.removes { "-" } else { "" }, change.path);
            let found: Vec<String> = changes(text).iter().map(mark).collect();
            assert_eq!(found.join(" "), expected, "{text}");
        }
    }

    #[test]
    fn a_patch_is_told_from_a_text_that_quotes_one() {
        assert!(is_patch("\n*** Begin Patch\n*** Add File: x\n"));
        assert!(is_patch("--- a/x\n+++ b/x\n"));
        for text in ["cat <<X\n*** Begin Patch\nX", "--- a title", "rm -rf /"] {
            assert!(!is_patch(text), "{text}");
        }
    }
}
