//! Reads the clauses under a rule's `match`, and the vocabulary for its capabilities.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};

use regex::RegexBuilder;

use super::binding::{Globs, splits_host};
use super::exclusion::Exclusion;
use super::fact::Fact;
use super::pattern::{CapabilityPattern, Names};
use super::rule::{ContextClause, Levels, Match, Pattern, Runs};
use rulekeep_types::document::{Fields, Node, Report, did_you_mean};
use rulekeep_types::{Action, Capability, Classification, Glob, Operation, Resource, RiskLevel, Tier, excerpt};

/// Reads the clauses of a rule.
pub(super) fn read(
    node: Node,
    vocabulary: &Vocabulary,
    patterns: &mut HashMap<String, Pattern>,
    report: &mut Report<'_>,
) -> Match {
    let Some(mut fields) = Fields::of(node, "match.", &[NAMED_FIELDS, OWN_FIELDS].concat(), report) else {
        return Match::default();
    };
    let capabilities =
        fields.read_with("capabilities", report, |node, path, report| vocabulary.patterns(node, path, report));
    let risk = fields.take("risk").and_then(|node| range(node, "match.risk.", RiskLevel::ALL, report));
    let tiers = fields.take("tiers").and_then(|node| range(node, "match.tiers.", Tier::ALL, report));
    let classification = fields.read_with("classification", report, classification);
    let runs = fields.word("runs", Runs::ALL, report).unwrap_or(Runs::None);
    let trees = fields.flag("trees", report);
    let not = fields.take("not").and_then(|node| {
        let at = node.at;
        let mut fields = Fields::of(node, "match.not.", NAMED_FIELDS, report)?;
        if fields.was_empty {
            report.error(at, "match.not", "an empty table excludes nothing; name what to exclude");
        }
        let clauses = named_clauses(&mut fields, "match.not.actions", trees, patterns, report);
        Some(Box::new(Exclusion { clauses, allows: false }))
    });
    Match {
        capabilities: capabilities.unwrap_or_default(),
        levels: Levels::new(
            risk.unwrap_or((RiskLevel::Low, RiskLevel::Critical)),
            tiers.unwrap_or((Tier::T0, Tier::T5)),
            &classification.unwrap_or_default(),
        ),
        runs,
        trees,
        not,
        ..named_clauses(&mut fields, "match.actions", trees, patterns, report)
    }
}

/// Reads the clauses that a rule can require or exclude.
fn named_clauses(
    fields: &mut Fields,
    actions_path: &str,
    trees: bool,
    patterns: &mut HashMap<String, Pattern>,
    report: &mut Report<'_>,
) -> Match {
    let actions_at = fields.place("actions");
    let commands = fields.read_with("commands", report, command_globs).unwrap_or_default();
    let mut names = |name: &str| fields.read_with(name, report, names).unwrap_or_default();
    let (agents, labels, groups, actions) = (names("agents"), names("labels"), names("groups"), names("actions"));
    for glob in actions.texts().filter(|glob| !glob.starts_with('!') && !can_be_action(glob)) {
        let message =
            format!("no action can be {:?}: an action is snake_case that starts with a letter", excerpt(glob));
        report.warn(actions_at.unwrap_or_default(), actions_path, message);
    }
    let normal = commands.texts().map(normal_command).collect::<Vec<_>>();
    let normal_commands = Names::new(normal.iter().map(String::as_str));
    let environment = fields.read_with("environment", report, environment);
    let context = fields.read_with("context", report, |node, path, report| context(node, path, patterns, report));
    let mut context = context.unwrap_or_default();
    for &(name, key, fact) in Fact::CLAUSES {
        let at = fields.place(name).unwrap_or_default();
        let clause =
            fields.read_with(name, report, |node, path, report| facts(node, path, trees, patterns, report)).flatten();
        let Some((pattern, globs, listed)) = clause else { continue };
        let path = format!("{}{name}", actions_path.trim_end_matches("actions"));
        warn_of_odd_glob(fact, &path, at, &listed, report);
        let (key, fact) = (key.into(), Some(fact));
        context.push(ContextClause { key, pattern, allows: false, fact, globs: Some(Arc::new(globs)) });
    }
    Match {
        agents,
        labels,
        groups,
        actions,
        commands,
        normal_commands,
        environment: environment.unwrap_or_default(),
        context,
        ..Match::default()
    }
}

/// Returns whether a glob can match the name of an action.
fn can_be_action(glob: &str) -> bool {
    glob.replace(['?', '*'], "a").parse::<Action>().is_ok() || glob.replace('*', "").parse::<Action>().is_ok()
}

/// The capabilities that a document may name: those of the taxonomy, and its own.
#[derive(Debug, Default, Clone)]
pub(super) struct Vocabulary {
    own: BTreeSet<Capability>,
}

impl Vocabulary {
    pub(super) fn read(node: Node, report: &mut Report<'_>) -> Self {
        let items = report.list(node, "vocabulary").into_iter();
        Self { own: items.filter_map(|item| report.parsed(item, "vocabulary")).collect() }
    }

    /// Adds another document's words.
    pub(super) fn extend(&mut self, other: Self) {
        self.own.extend(other.own);
    }

    /// The document's own words, sorted.
    pub(super) fn own(&self) -> impl Iterator<Item = &Capability> {
        self.own.iter()
    }

    /// Returns whether a capability is in the taxonomy or one of the document's own.
    pub(super) fn knows(&self, capability: &Capability) -> bool {
        (capability.resource().is_some() && capability.operation().is_some()) || self.own.contains(capability)
    }

    /// Reads a list of capabilities with wildcards; the result is sorted and has no duplicates.
    pub(super) fn patterns(&self, node: Node, field: &str, report: &mut Report<'_>) -> Vec<CapabilityPattern> {
        let pattern = |item: Node, field: &str, report: &mut Report<'_>| {
            let at = item.at;
            let text = report.text(item, field)?;
            self.pattern(&text).map_err(|message| report.error(at, field, message)).ok()
        };
        report.set(node, field, pattern)
    }

    fn pattern(&self, text: &str) -> Result<CapabilityPattern, String> {
        let unknown = |meant: String| format!("unknown capability {:?}{meant}", excerpt(text));
        let Some((resource, operation)) = text.split_once(':') else {
            return Err(unknown("; expected resource:operation, each a word or *".to_owned()));
        };
        let is_known = match (resource, operation) {
            ("*", "*") => true,
            ("*", word) => self.knows_operation(word),
            (word, "*") => self.knows_resource(word),
            (resource, operation) => {
                let built_in = resource.parse::<Resource>().is_ok() && operation.parse::<Operation>().is_ok();
                built_in || self.own.iter().any(|capability| capability.as_str() == text)
            }
        };
        if is_known {
            return Ok(CapabilityPattern::new(resource, operation));
        }
        let meant =
            did_you_mean(text, CAPABILITIES.iter().map(String::as_str).chain(self.own.iter().map(Capability::as_str)));
        let is_word = |word: &str| word == "*" || (!word.is_empty() && !word.contains(['*', '?']));
        Err(unknown(if !meant.is_empty() {
            meant
        } else if is_word(resource) && is_word(operation) {
            "; declare your own words in the document's vocabulary".to_owned()
        } else {
            "; each half is a word or *".to_owned()
        }))
    }

    fn knows_resource(&self, word: &str) -> bool {
        word.parse::<Resource>().is_ok() || self.own.iter().any(|capability| capability.resource_word() == word)
    }

    fn knows_operation(&self, word: &str) -> bool {
        word.parse::<Operation>().is_ok() || self.own.iter().any(|capability| capability.operation_word() == word)
    }
}

/// Every capability of the taxonomy, with wildcards, for suggestions.
static CAPABILITIES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let resources = || Resource::ALL.iter().map(|word| word.as_str()).chain(["*"]);
    let operations = || Operation::ALL.iter().map(|word| word.as_str()).chain(["*"]);
    resources().flat_map(|resource| operations().map(move |operation| format!("{resource}:{operation}"))).collect()
});

pub(super) fn names(node: Node, field: &str, report: &mut Report<'_>) -> Names {
    Names::new(globs(node, field, report).iter().map(String::as_str))
}

/// Reads a list of names and globs.
pub(super) fn globs(node: Node, field: &str, report: &mut Report<'_>) -> Vec<String> {
    let items = report.filled_list(node, field);
    let mut texts = Vec::with_capacity(items.len());
    for item in items {
        let at = item.at;
        let Some(text) = report.line(item, field, MAX_GLOB_CHARS) else { continue };
        warn_of_idle_name(at, field, &text, report);
        texts.push(text);
    }
    texts
}

/// Warns of a name that probably matches nothing.
fn warn_of_idle_name(at: usize, field: &str, text: &str, report: &mut Report<'_>) {
    let message = if let Some(rest) = text.strip_prefix('!') {
        let clause = field.trim_start_matches("match.").trim_start_matches("not.");
        format!(
            "{text:?} is matched literally and excludes nothing; to exclude it, write match.not.{clause} = [{rest:?}]"
        )
    } else if text.trim() != text {
        format!("{text:?} begins or ends with a space, so it never matches")
    } else if text.contains(char::is_whitespace) && (field.ends_with("labels") || field.ends_with("groups")) {
        format!("{text:?} has a space, which no label or group has")
    } else {
        return;
    };
    report.warn(at, field, message);
}

/// Reads a range; an absent end is the extreme value.
fn range<T>(node: Node, path: &'static str, all: &[T], report: &mut Report<'_>) -> Option<(T, T)>
where
    T: Copy + Ord + std::str::FromStr + std::fmt::Display,
{
    let at = node.at;
    let mut fields = Fields::of(node, path, &["min", "max"], report)?;
    if fields.was_empty {
        report.error(at, path.trim_end_matches('.'), "an empty range limits nothing; give min, max or both");
    }
    let max_at = fields.place("max").unwrap_or(at);
    let (min, max) = (fields.word("min", all, report), fields.word("max", all, report));
    let (min, max) = (min.or(all.first().copied())?, max.or(all.last().copied())?);
    if min > max {
        report.error(max_at, path.trim_end_matches('.'), format!("min {min} is above max {max}: nothing can match"));
        return None;
    }
    Some((min, max))
}

fn classification(node: Node, field: &str, report: &mut Report<'_>) -> Vec<Classification> {
    report.set(node, field, |item, field, report| report.word(item, field, "classification", Classification::ALL))
}

fn environment(node: Node, field: &str, report: &mut Report<'_>) -> Vec<Box<str>> {
    report.set(node, field, |item, field, report| {
        let at = item.at;
        let word = report.line(item, field, MAX_GLOB_CHARS)?;
        if word.contains('*') {
            // It would be compared literally, and a deny would let the other environments pass.
            report.error(
                at,
                field,
                format!("expected an environment's name, found the pattern {word:?}; list each name"),
            );
            return None;
        }
        if word.starts_with('!') {
            warn_of_idle_name(at, field, &word, report);
        }
        // Normalized like the environment in the context.
        Some(word.trim().to_lowercase().into())
    })
}

fn context(
    node: Node,
    field: &str,
    patterns: &mut HashMap<String, Pattern>,
    report: &mut Report<'_>,
) -> Vec<ContextClause> {
    report.set(node, field, |item, _, report| {
        let mut fields = Fields::of(item, "match.context.", &["key", "matches"], report)?;
        let key = fields.required_line("key", MAX_GLOB_CHARS, report);
        fields.must_have("matches", report);
        let pattern = fields.read("matches", report, |node, path, report| regex(node, path, patterns, report))?;
        let key = key?;
        let fact = Fact::of_key(&key);
        Some(ContextClause { key: key.into(), pattern, allows: false, fact, globs: None })
    })
}

/// Combines globs over a fact into one regular expression without case and one with case.
fn facts(
    node: Node,
    field: &str,
    trees: bool,
    patterns: &mut HashMap<String, Pattern>,
    report: &mut Report<'_>,
) -> Option<(Pattern, Globs, Vec<String>)> {
    let at = node.at;
    let globs = globs(node, field, report);
    if globs.is_empty() {
        return None;
    }
    let one = |glob: &String| regex::escape(glob).replace("\\*", ".*").replace("\\?", ".");
    let mut source = |flags: &str, globs: &mut dyn Iterator<Item = &String>| {
        let source = globs.map(one).collect::<Vec<_>>().join("|");
        regex_of(format!("({flags})^(?:{source})$"), at, field, patterns, report)
    };
    // To a restriction every home may be the one that is meant.
    let restricted: Vec<String> = globs.iter().cloned().chain(globs.iter().flat_map(|glob| homes(glob))).collect();
    let granted = || globs.iter().filter(|glob| !splits_host(&Glob::new(glob)));
    let folded = source("?is", &mut restricted.iter())?;
    let exact = source("?s", &mut granted())?;
    let compiled = Globs::new(granted(), &restricted, exact, trees);
    Some((folded, compiled, globs))
}

/// The globs that a glob below the home folder stands for where the home is not known.
fn homes(glob: &str) -> impl Iterator<Item = String> {
    let rest = glob.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let homes = ["/home/*", "/Users/*", "/root"];
    rest.into_iter().flat_map(move |rest| homes.map(|home| format!("{home}{rest}")))
}

/// Reads globs over commands. A final ` *` also matches no words.
fn command_globs(node: Node, field: &str, report: &mut Report<'_>) -> Names {
    let at = node.at;
    let globs = globs(node, field, report);
    for glob in &globs {
        if let Some(wrong) = odd_command(glob) {
            report.warn(at, field, format!("{:?} probably never matches: {wrong}", excerpt(glob)));
        }
    }
    let bare = globs.iter().filter_map(|glob| glob.strip_suffix(" *"));
    Names::new(globs.iter().map(String::as_str).chain(bare))
}

/// The reason a glob is not written as commands are compared.
fn odd_command(glob: &str) -> Option<&'static str> {
    let is_operator = |word: &str| word.ends_with(';') || ["&&", "||", "|", "&", ">", ">>", "<"].contains(&word);
    let first = glob.split(' ').next().unwrap_or_default();
    let variable = first.split_once('=').map(|(name, _)| name);
    if glob.contains(['"', '\'']) {
        Some("commands are compared without quotes")
    } else if glob.split(' ').any(is_operator) || glob.contains("$(") || glob.contains('`') {
        Some("each command of a line is compared by itself, without redirections")
    } else if variable
        .is_some_and(|name| !name.is_empty() && !name.contains(|c: char| c != '_' && !c.is_alphanumeric()))
    {
        Some("commands are compared without the variables that are set for them")
    } else if glob.contains("  ") {
        Some("commands are compared with one blank between words")
    } else {
        None
    }
}

/// A glob over commands with the letters of each option sorted. An option with a wildcard stays.
fn normal_command(glob: &str) -> String {
    let sorted = |word: &str| {
        let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.starts_with('-') && !Glob::is_glob(rest)) else {
            return word.to_owned();
        };
        let mut letters: Vec<char> = letters.chars().collect();
        letters.sort_unstable();
        std::iter::once('-').chain(letters).collect()
    };
    glob.split(' ').map(sorted).collect::<Vec<String>>().join(" ")
}

/// Warns of a glob that matches nothing, or not what its author means.
fn warn_of_odd_glob(fact: Fact, path: &str, at: usize, globs: &[String], report: &mut Report<'_>) {
    for glob in globs {
        let wrong = match fact {
            Fact::Hosts if glob.contains('/') => {
                "a host has no scheme and no path, so it never matches; list addresses under urls"
            }
            Fact::Hosts if glob.contains('@') || glob.split(':').count() == 2 => {
                "a host has no user and no port, so it never matches"
            }
            Fact::Urls if !glob.contains("://") && !glob.starts_with('*') => {
                "an address begins with its scheme, so it never matches; list hosts under hosts"
            }
            Fact::Tool if glob.starts_with("mcp__") => {
                "the name of a tool has no server in it; write the tool, and its server under servers"
            }
            Fact::Urls if splits_host(&Glob::new(glob)) => {
                "it ends within the host, so no allow takes it; write a / behind the host"
            }
            Fact::Formats if !FORMATS.iter().any(|format| Glob::new(&glob.to_lowercase()).matches(format)) => {
                "no request has such a format, so it never matches"
            }
            Fact::Paths if !glob.starts_with(['/', '~', '*']) => {
                "a relative path only binds below the working folder that the request states"
            }
            _ => continue,
        };
        report.warn(at, path, format!("{:?}: {wrong}", excerpt(glob)));
    }
}

/// Reads a regular expression. Source length, compiled size and number are bounded.
fn regex(node: Node, field: &str, patterns: &mut HashMap<String, Pattern>, report: &mut Report<'_>) -> Option<Pattern> {
    let at = node.at;
    let text = report.text(node, field)?;
    regex_of(text, at, field, patterns, report)
}

fn regex_of(
    text: String,
    at: usize,
    field: &str,
    patterns: &mut HashMap<String, Pattern>,
    report: &mut Report<'_>,
) -> Option<Pattern> {
    if let Some(known) = patterns.get(&text) {
        return Some(known.clone());
    }
    let wrong = if text.len() > MAX_REGEX_BYTES {
        format!("a regular expression has at most {MAX_REGEX_BYTES} bytes")
    } else if patterns.len() >= MAX_REGEXES {
        format!("a policy has at most {MAX_REGEXES} different regular expressions")
    } else {
        match RegexBuilder::new(&text).size_limit(MAX_COMPILED_BYTES).dfa_size_limit(MAX_COMPILED_BYTES).build() {
            Ok(regex) => {
                let pattern = Pattern(Arc::new(regex));
                patterns.insert(text, pattern.clone());
                return Some(pattern);
            }
            Err(regex::Error::CompiledTooBig(limit)) => {
                format!("the regular expression {:?} takes more than {limit} bytes", excerpt(&text))
            }
            Err(error) => {
                let message = error.to_string();
                let reason = message.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                format!("invalid regular expression {:?}: {reason}", excerpt(&text))
            }
        }
    };
    report.error(at, field, wrong);
    None
}

/// The fields that `match` and `match.not` have in common.
const NAMED_FIELDS: &[&str] = &[
    "agents",
    "labels",
    "groups",
    "actions",
    "commands",
    "environment",
    "context",
    "tools",
    "servers",
    "formats",
    "targets",
    "recipients",
    "paths",
    "hosts",
    "urls",
    "tables",
    "accounts",
];
/// The fields that only `match` has.
const OWN_FIELDS: &[&str] = &["capabilities", "risk", "tiers", "classification", "runs", "trees", "not"];
/// The formats that a request can have.
const FORMATS: &[&str] = &["text", "tool_call", "shell", "sql", "http", "code"];
const MAX_GLOB_CHARS: usize = 256;
const MAX_REGEX_BYTES: usize = 1_024;
const MAX_REGEXES: usize = 1_000;
const MAX_COMPILED_BYTES: usize = 256 * 1024;
