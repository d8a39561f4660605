//! Files and folders that tools make anew: dependencies, build output and caches.

/// Returns whether a path is one that a tool makes anew, so that removing it loses no work: `node_modules`,
/// `target/debug`, `dist/*`, `src/a.pyc`. Names that projects also give to sources, such as `build`, count as the first
/// or last part of the path only.
pub fn is_rebuilt(path: &str) -> bool {
    let path = path.trim_end_matches(['/', '*']).trim_start_matches("./");
    let parts = || path.split('/').filter(|part| *part != "**");
    if path.is_empty() || parts().any(|part| part == ".." || part.contains(['$', '`'])) {
        return false;
    }
    let is_output = |part: Option<&str>| part.is_some_and(|part| OUTPUT.contains(&part));
    let has_ending = |name: &str| ENDINGS.iter().any(|ending| name.ends_with(ending));
    parts().any(|part| REBUILT.contains(&part))
        || is_output(parts().next())
        || is_output(parts().next_back())
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
        for path in
            ["src", "*", ".", "/", "src/build/main.rs", "../node_modules", "$x/dist", "target.rs", "/build/src/a"]
        {
            assert!(!is_rebuilt(path), "{path}");
        }
    }
}
