//! Files and folders that tools make anew: dependencies, build output and caches.

/// Returns whether a path is one that a tool makes anew, so that removing it loses no work: `node_modules`,
/// `target/debug`, `dist/*`, `src/a.pyc`. Names that projects also give to sources, such as `build`, count as the first
/// or last part of the path only.
pub fn is_rebuilt(path: &str) -> bool {
    let path = path.trim_end_matches('/').trim_start_matches("./");
    let path = path.strip_suffix("/*").or_else(|| path.strip_suffix("/**")).unwrap_or(path);
    let parts = || path.split('/').filter(|part| *part != "**");
    let last = parts().next_back().unwrap_or_default();
    // A pattern may find more than its name says, but not one of an ending.
    let is_pattern = |part: &str| part.contains(['*', '?', '[', '{', '(', '$', '`', '~']);
    let is_of_ending = last.strip_prefix('*').is_some_and(|ending| ENDINGS.contains(&ending));
    let is_open = |part: &str| is_pattern(part) && !(is_of_ending && part == last);
    if path.is_empty() || parts().any(|part| is_open(part) || KEPT.contains(&part)) {
        return false;
    }
    let is_output = |part: Option<&str>| part.is_some_and(|part| OUTPUT.contains(&part));
    let has_ending = |name: &str| ENDINGS.iter().any(|ending| name.ends_with(ending));
    let is_source = parts().any(|part| SOURCES.contains(&part));
    parts().any(|part| REBUILT.contains(&part))
        || is_output(parts().next())
        || is_output(parts().next_back()) && !is_source
        || parts().next_back().is_some_and(has_ending)
}

/// Folders that hold nothing else, wherever they are.
const REBUILT: &[&str] = &[
    "node_modules",
    "bower_components",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".hypothesis",
    ".tox",
    ".nox",
    ".eggs",
    ".venv",
    ".next",
    ".nuxt",
    ".svelte-kit",
    ".astro",
    ".angular",
    ".turbo",
    ".parcel-cache",
    ".nyc_output",
    ".eslintcache",
    ".gradle",
    ".terraform",
    ".dart_tool",
    ".zig-cache",
    "DerivedData",
];
/// Parts of paths below which nothing is made anew.
const KEPT: &[&str] = &["..", ".git", ".hg", ".svn", ".jj"];
/// Folders of sources, below which only names that mean nothing else count.
const SOURCES: &[&str] = &["src", "source", "sources", "lib"];
/// Folders of build output and reports.
const OUTPUT: &[&str] = &["target", "dist", "build", "coverage", "htmlcov", "venv", "cmake-build-debug"];
const ENDINGS: &[&str] = &[".pyc", ".pyo", ".class", ".o", ".obj", ".tsbuildinfo", ".egg-info", ".DS_Store"];

#[cfg(test)]
mod tests {
    use super::is_rebuilt;

    #[test]
    fn what_tools_make_anew_is_told_from_work() {
        for path in [
            "node_modules",
            "./web/node_modules/",
            "target/debug",
            "dist/*",
            "a/__pycache__",
            "src/*.pyc",
            "/p/x/build",
        ] {
            assert!(is_rebuilt(path), "{path}");
        }
        for path in [
            "src",
            "*",
            ".",
            "/",
            "src/build",
            "src/build/main.rs",
            "../node_modules",
            "$x/dist",
            "dist/.*",
            "dist/?/src",
            ".git/build",
            "target.rs",
            "/build/src/a",
        ] {
            assert!(!is_rebuilt(path), "{path}");
        }
    }
}
