//! How the operands of an act bind a rule: whether they are inside what a clause names, may be, or are not.
//!
//! This is the only place that decides it, for rules, pre-approvals and limits alike. A restriction binds what may be
//! inside; a grant covers only what certainly is.

use rulekeep_types::facts::{Act, Cause, Kind, Kinds, Operand, Role};
use rulekeep_types::{Facts, Glob, closed_words, hides_or_breaks};

use super::fact::Fact;
use super::rule::{Pattern, Runs};

closed_words! {
    /// The relation of an act, or of an operand, to what a clause names.
    pub enum Binding("binding") {
        /// Nothing is inside.
        Outside = "outside",
        /// Code runs whose effects no text shows; otherwise nothing is inside.
        Runs = "runs",
        /// Something may be inside: a part could not be read, or stands for several things.
        Maybe = "maybe",
        /// Something is inside.
        Inside = "inside",
    }
}

/// The direction of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// The rule takes something away, and binds whatever may be inside.
    Restricts,
    /// The rule gives something, and covers only what is inside for certain.
    Grants(Runs),
}

impl Way {
    /// Returns whether a grant covers acts that are open for a cause.
    fn tolerates(self, cause: Cause) -> bool {
        match cause {
            Cause::Text | Cause::Unnamed => false,
            Cause::Folder => matches!(self, Self::Grants(Runs::Folder | Runs::Any)),
            Cause::Execution => self == Self::Grants(Runs::Any),
        }
    }

    /// Returns whether the rule gives something.
    pub(super) const fn grants(self) -> bool {
        matches!(self, Self::Grants(_))
    }
}

/// The globs of a clause, compiled for both ways: `list` and `exact` for grants, `folded` for restrictions.
#[derive(Debug)]
pub(super) struct Globs {
    list: Vec<Glob>,
    folded: Vec<Glob>,
    exact: Pattern,
    /// Whether a restriction without a folder also binds trees that are read.
    trees: bool,
    /// Whether a glob lies below `~`.
    has_tilde: bool,
}

impl Globs {
    /// The globs as written.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(Glob::as_str)
    }

    /// Returns whether every glob of the other clause lies within one of these. The other clause is of a grant or, like
    /// this one, of a restriction.
    pub(super) fn cover(&self, other: &Self, fact: Option<Fact>, grants: bool) -> bool {
        let is_of_paths = fact.is_none_or(|fact| fact.kinds().has(Kind::Path));
        let others = if grants { &other.list } else { &other.folded };
        let is_within = |glob: &Glob| {
            let folded = Glob::new(&glob.as_str().to_lowercase());
            // Without a folder, a glob does not bind trees that are read.
            let binds = |wide: &Glob| !is_of_paths || !wide.literal_prefix().is_empty();
            self.folded.iter().any(|wide| *wide == folded || binds(wide) && wide.covers(&folded))
        };
        !others.is_empty() && others.iter().all(is_within)
    }

    /// Compiles globs for grants, whose regular expression with case is `exact`, and those for restrictions.
    pub(super) fn new<'g>(
        granted: impl IntoIterator<Item = &'g String>,
        restricted: &[String],
        exact: Pattern,
        trees: bool,
    ) -> Self {
        let list: Vec<Glob> = granted.into_iter().map(|glob| Glob::new(glob)).collect();
        let folded = restricted.iter().map(|glob| Glob::new(&glob.to_lowercase())).collect();
        let has_tilde = restricted.iter().any(|glob| glob.starts_with('~'));
        Self { list, folded, exact, trees, has_tilde }
    }
}

/// The folders by which paths have other names.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Folders<'f> {
    base: Option<&'f str>,
    home: Option<&'f str>,
}

impl<'f> From<&'f Facts> for Folders<'f> {
    fn from(facts: &'f Facts) -> Self {
        Self { base: facts.base.as_deref(), home: facts.home.as_deref() }
    }
}

/// The names of an operand: its value, and for a path the names below the base and below `~`.
struct Forms<'p> {
    value: &'p str,
    below: Option<&'p str>,
    tilde: Option<String>,
}

impl<'p> Forms<'p> {
    fn of(value: &'p str, folders: Folders<'_>, with_tilde: bool) -> Self {
        let home = folders.home.filter(|_| with_tilde).and_then(|home| value.strip_prefix(home));
        let tilde = home.filter(|rest| rest.is_empty() || rest.starts_with('/')).map(|rest| format!("~{rest}"));
        Self { value, below: below(value, folders.base), tilde }
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.value).chain(self.below).chain(self.tilde.as_deref())
    }
}

/// The things that a clause names: a regular expression without case, and the globs that it was made of.
#[derive(Clone, Copy)]
pub(super) struct Named<'c> {
    pub(super) pattern: &'c Pattern,
    pub(super) globs: Option<&'c Globs>,
}

impl Named<'_> {
    /// Returns how an operand relates to what is named. Of a path and the one to which its links lead, one suffices for a
    /// restriction; a grant needs both.
    pub(super) fn binds(self, operand: &Operand, folders: Folders<'_>, way: Way) -> Binding {
        let written = self.binds_written(operand, folders, way);
        let Some(led_to) = operand.led_to().map(|led_to| self.binds_written(&led_to, folders, way)) else {
            return written;
        };
        if way.grants() { written.min(led_to) } else { written.max(led_to) }
    }

    fn binds_written(self, operand: &Operand, folders: Folders<'_>, way: Way) -> Binding {
        match way {
            Way::Restricts => self.restricts(operand, folders),
            Way::Grants(_) if self.covers(operand, folders) => Binding::Inside,
            Way::Grants(_) => Binding::Outside,
        }
    }

    fn restricts(self, operand: &Operand, folders: Folders<'_>) -> Binding {
        let is_named = |text: &str| self.pattern.0.is_match(text);
        let value = operand.value.as_str();
        let forms = self.forms(operand, folders);
        // `public.salaries` is the table `salaries` of a schema.
        let bare = value.rsplit('.').next().filter(|_| operand.kind == Kind::Table);
        if !operand.pattern
            && (forms.iter().any(is_named)
                || bare.is_some_and(is_named)
                // What was sent for a host is its address.
                || operand.kind != Kind::Host && operand.original.as_deref().is_some_and(is_named))
        {
            return Binding::Inside;
        }
        if operand.kind == Kind::Path && forms.iter().any(|path| self.is_folder(path)) {
            return Binding::Inside;
        }
        if operand.kind != Kind::Path {
            let is_open = operand.pattern && self.may_meet(value);
            return if is_open { Binding::Maybe } else { Binding::Outside };
        }
        // What is removed or moved may be a folder.
        if operand.role == Role::Remove && !operand.pattern && forms.iter().any(|path| self.has_folder_in(path)) {
            return Binding::Inside;
        }
        if operand.tree {
            // A tree that is or contains the base contains what relative globs name.
            let folder = value.trim_end_matches('/');
            let holds_base = folders.base.is_some_and(|base| {
                base.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            });
            let roots = forms.iter().chain(holds_base.then_some("."));
            let found = roots.map(|root| self.holds_within(root, operand.role)).max().unwrap_or(Binding::Outside);
            if found != Binding::Outside {
                return found;
            }
        }
        let leads_up = value == ".." || value.starts_with("../") || value.starts_with('~') && value.contains("/..");
        let meets = |pattern: &str| self.may_meet(pattern) || operand.tree && self.may_hold(pattern);
        let is_wide = operand.pattern && forms.iter().any(meets);
        let is_home = value.strip_prefix('~').is_some_and(|rest| {
            [format!("/home/*{rest}"), format!("/Users/*{rest}"), format!("/root{rest}")]
                .iter()
                .any(|path| meets(path) || operand.tree && self.holds_within(path, operand.role) != Binding::Outside)
        });
        if is_wide || is_home || leads_up && self.globs.is_none_or(|globs| globs.list.iter().any(is_absolute)) {
            return Binding::Maybe;
        }
        Binding::Outside
    }

    /// Returns whether something that is named lies in a tree.
    fn holds_within(self, root: &str, role: Role) -> Binding {
        let Some(globs) = self.globs else { return Binding::Maybe };
        let root = root.to_lowercase();
        let root = root.trim_end_matches('/');
        let mut found = Binding::Outside;
        for glob in &globs.folded {
            if lies_in(glob, root) || root == "." && !is_absolute(glob) {
                return Binding::Inside;
            }
            if (globs.trees || matches!(role, Role::Write | Role::Remove)) && may_lie_below(glob, root) {
                found = Binding::Maybe;
            }
        }
        found
    }

    /// Returns whether the folder of something that is named is or lies in a folder.
    fn has_folder_in(self, path: &str) -> bool {
        let path = path.to_lowercase();
        let path = path.trim_end_matches('/');
        self.globs.is_some_and(|globs| globs.folded.iter().any(|glob| lies_in(glob, path)))
    }

    /// Returns whether a path is a folder all of which is named: what is put there is inside.
    fn is_folder(self, path: &str) -> bool {
        let Some(globs) = self.globs else { return false };
        let path = path.trim_end_matches('/').to_lowercase();
        globs.folded.iter().any(|glob| {
            let folder = glob.as_str().trim_end_matches('*').strip_suffix('/').unwrap_or_default();
            !folder.is_empty() && !folder.contains(['*', '?']) && folder == path && folder.len() < glob.as_str().len()
        })
    }

    /// Returns whether a folder that a shell's pattern may match holds something that is named.
    fn may_hold(self, pattern: &str) -> bool {
        let Some(globs) = self.globs else { return true };
        let pattern = pattern.to_lowercase();
        globs.folded.iter().any(|glob| {
            let folder = folder_of(glob);
            let ends = folder.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0).chain([folder.len()]);
            ends.take(MOST_FOLDERS).filter_map(|end| folder.get(..end)).any(|folder| meets(folder, &pattern))
        })
    }

    /// Returns whether a shell's pattern may match something that is named.
    fn may_meet(self, pattern: &str) -> bool {
        let Some(globs) = self.globs else { return true };
        let pattern = pattern.to_lowercase();
        globs.folded.iter().any(|glob| meets(glob.as_str(), &pattern))
    }

    /// Returns whether everything in a folder is inside.
    fn covers_folder(self, folder: Option<&str>) -> bool {
        let all = |folder: &str| format!("{}/*", folder.trim_end_matches('/'));
        let all = |folder: &str| Operand::new(Kind::Path, Role::Run, all(folder), "").as_pattern(true);
        folder.is_some_and(|folder| self.covers(&all(folder), Folders::default()))
    }

    fn forms<'o>(self, operand: &'o Operand, folders: Folders<'_>) -> Forms<'o> {
        Forms::of(&operand.value, folders, self.globs.is_some_and(|globs| globs.has_tilde))
    }

    fn covers(self, operand: &Operand, folders: Folders<'_>) -> bool {
        let value = operand.value.as_str();
        if value.is_empty() || value.chars().any(hides_or_breaks) || value.split('/').any(|part| part == "..") {
            return false;
        }
        let is_cased = !matches!(operand.kind, Kind::Host | Kind::Recipient);
        let is_whole = |text: &str| match self.globs {
            Some(globs) if is_cased => globs.exact.0.is_match(text),
            _ => self.pattern.0.is_match(text),
        };
        let covers_all = |text: &str| {
            let Some(globs) = self.globs else { return false };
            let covered = |text: &str| {
                let wanted = Glob::new(text);
                globs.list.iter().any(|glob| glob.covers(&wanted))
            };
            let text = &text.replace('[', "?");
            covered(text) && (!operand.tree || covered(&format!("{}/*", text.trim_end_matches('/'))))
        };
        let fits = |text: &str| if operand.pattern || operand.tree { covers_all(text) } else { is_whole(text) };
        self.forms(operand, folders).iter().any(fits)
    }
}

/// The relation of an act to a clause over the operands of some kinds.
pub(super) fn of_operands(named: Named<'_>, fact: Fact, act: &Act, facts: &Facts, way: Way) -> Binding {
    let kinds = fact.kinds();
    let folders = Folders::from(facts);
    let is_of_url = |operand: &Operand| {
        // An address stands for its host as well.
        fact == Fact::Targets && way.grants() && act.is_host_of_url(operand)
    };
    // To a rule that covers what a program does anyway, its plain words name no places.
    let is_word = |operand: &Operand| way == Way::Grants(Runs::Any) && operand.is_word();
    let is_named = |operand: &&Operand| kinds.has(operand.kind) && !is_of_url(operand) && !is_word(operand);
    let mut operands = act.operands.iter().filter(is_named);
    match way {
        Way::Restricts => {
            let found = operands.map(|operand| named.binds(operand, folders, way)).max().unwrap_or(Binding::Outside);
            found.max(openness(act, kinds))
        }
        Way::Grants(_) if !tolerates(act, kinds, way) => Binding::Outside,
        Way::Grants(Runs::Folder) if runs_folder(act, kinds) && !named.covers_folder(folders.base) => Binding::Outside,
        Way::Grants(_) if operands.all(|operand| named.binds(operand, folders, way) == Binding::Inside) => {
            Binding::Inside
        }
        Way::Grants(_) => Binding::Outside,
    }
}

/// Returns whether an act runs code of the working folder, which counts as a path.
pub(super) fn runs_folder(act: &Act, kinds: Kinds) -> bool {
    kinds.has(Kind::Path) && act.open.iter().any(|open| open.cause == Cause::Folder)
}

/// Returns whether every operand of a clause's kinds is inside.
pub(super) fn all_inside(named: Named<'_>, fact: Fact, act: &Act, facts: &Facts) -> bool {
    let mut operands = act.operands.iter().filter(|operand| fact.kinds().has(operand.kind));
    operands.all(|operand| named.binds(operand, facts.into(), Way::Grants(Runs::None)) == Binding::Inside)
}

/// The relation of an act to any clause over some kinds, by its open parts alone.
pub(super) fn openness(act: &Act, kinds: Kinds) -> Binding {
    let open = act.open.iter().filter(|open| open.kinds.meets(kinds));
    open.map(|open| of_cause(open.cause)).max().unwrap_or(Binding::Outside)
}

/// Returns whether a grant covers an act with its open parts of some kinds.
pub(super) fn tolerates(act: &Act, kinds: Kinds, way: Way) -> bool {
    act.open.iter().filter(|open| open.kinds.meets(kinds)).all(|open| way.tolerates(open.cause))
}

/// The relation of an open part to any clause over its kinds.
pub(super) const fn of_cause(cause: Cause) -> Binding {
    match cause {
        Cause::Text | Cause::Unnamed => Binding::Maybe,
        Cause::Folder | Cause::Execution => Binding::Runs,
    }
}

/// The part of a path below the base.
fn below<'p>(path: &'p str, base: Option<&str>) -> Option<&'p str> {
    let rest = path.strip_prefix(base?)?.strip_prefix('/')?;
    (!rest.is_empty()).then_some(rest)
}

/// Returns whether the folder of a glob is or lies in another one.
fn lies_in(glob: &Glob, root: &str) -> bool {
    let prefix = folder_of(glob);
    !prefix.is_empty()
        && prefix.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || root.is_empty())
}

/// The folder that everything matching a glob lies in, without a final slash; empty if there is none.
fn folder_of(glob: &Glob) -> &str {
    let text = glob.as_str();
    match text.find(['*', '?']) {
        Some(end) => text.get(..end).and_then(|literal| literal.rsplit_once('/')).map_or("", |(folder, _)| folder),
        None => text.trim_end_matches('/'),
    }
}

/// Returns whether something that matches a glob may lie below a folder: its folders match those of the glob one by one,
/// or a `*` at the start or in the last part of the glob stands for them.
fn may_lie_below(glob: &Glob, root: &str) -> bool {
    let text = glob.as_str();
    if text.starts_with('*') {
        return true;
    }
    let (mut parts, mut folders) = (text.split('/').peekable(), root.split('/'));
    while let Some(part) = parts.next() {
        let Some(folder) = folders.next() else { return true };
        let is_last = parts.peek().is_none();
        if is_last && let Some((literal, _)) = part.split_once('*') {
            return folder.starts_with(literal);
        }
        if !Glob::new(part).matches(folder) {
            return false;
        }
    }
    false
}

fn is_absolute(glob: &Glob) -> bool {
    glob.as_str().starts_with(['/', '~', '*'])
}

/// Returns whether a glob of an address ends within the host, so that it also matches longer hosts.
pub(super) fn splits_host(glob: &Glob) -> bool {
    let text = glob.as_str();
    let literal = text.get(..text.find(['*', '?']).unwrap_or(text.len())).unwrap_or_default();
    let behind = literal.split_once("://").map(|(_, rest)| rest);
    literal.len() < text.len() && behind.is_some_and(|rest| !rest.is_empty() && !rest.contains('/'))
}

/// Returns whether some text matches both a rule's glob and a shell's pattern. The shell's `*` stands for no slash and
/// no leading dot; brackets, and all between the first and the last of a name, stand for anything.
fn meets(glob: &str, pattern: &str) -> bool {
    let glob: Vec<char> = glob.chars().take(LONGEST + 1).collect();
    let mut shell: Vec<char> = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        let rest = chars.as_str();
        let part = rest.split('/').next().unwrap_or_default();
        // `[[:alpha:]]` and `[]t]` have brackets inside, so that all up to the last one may be anything.
        match part.rfind(']').filter(|_| c == '[') {
            Some(end) => {
                chars = rest.get(end + 1..).unwrap_or_default().chars();
                shell.push('*');
            }
            None => shell.push(c),
        }
    }
    if glob.len() > LONGEST || shell.len() > LONGEST {
        return true;
    }
    // The places in both to which some text leads, and whether the shell's current `*` has taken a character.
    let mut seen = vec![false; (glob.len() + 1) * (shell.len() + 1) * 2];
    let mut open = vec![(0, 0, false)];
    while let Some((at, place, has_begun)) = open.pop() {
        let number = (at * (shell.len() + 1) + place) * 2 + usize::from(has_begun);
        if seen.get(number).copied().unwrap_or(true) {
            continue;
        }
        if let Some(place) = seen.get_mut(number) {
            *place = true;
        }
        let (wanted, found) = (glob.get(at).copied(), shell.get(place).copied());
        if wanted.is_none() && found.is_none() {
            return true;
        }
        if wanted == Some('*') {
            open.push((at + 1, place, has_begun));
        }
        if found == Some('*') {
            open.push((at, place + 1, false));
        }
        let (Some(wanted), Some(found)) = (wanted, found) else { continue };
        let is_first = !has_begun && (place == 0 || shell.get(place - 1) == Some(&'/'));
        let fits = match (wanted, found) {
            ('*' | '?', _) => true,
            (c, '*' | '?') => c != '/' && !(is_first && c == '.'),
            (c, other) => c == other,
        };
        if fits {
            let next = if wanted == '*' { at } else { at + 1 };
            open.push(if found == '*' { (next, place, true) } else { (next, place + 1, false) });
        }
    }
    false
}

/// Maximum number of folders of a pattern that are compared.
const MOST_FOLDERS: usize = 32;
/// Longest pattern that is compared character by character; a longer one may match anything.
const LONGEST: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use regex::Regex;
    use std::sync::Arc;

    fn binds(glob: &str, operand: &Operand, base: Option<&str>, way: Way) -> Binding {
        let folders = Folders { base, home: Some("/home/bob") };
        let compiled = |flags: &str, globs: &[String]| {
            let one = |glob: &String| regex::escape(glob).replace("\\*", ".*").replace("\\?", ".");
            let source = globs.iter().map(one).collect::<Vec<_>>().join("|");
            Pattern(Arc::new(Regex::new(&format!("({flags})^(?:{source})$")).unwrap()))
        };
        let written = vec![glob.to_owned()];
        let granted: Vec<String> = written.iter().filter(|_| !splits_host(&Glob::new(glob))).cloned().collect();
        let globs = Globs::new(&granted, &written, compiled("?s", &granted), false);
        Named { pattern: &compiled("?is", &written), globs: Some(&globs) }.binds(operand, folders, way)
    }

    fn path(value: &str, role: Role) -> Operand {
        Operand::new(Kind::Path, role, value.to_owned(), value)
    }

    #[test]
    fn a_restriction_binds_what_may_be_inside_and_a_grant_what_is() {
        use Binding::{Inside, Maybe, Outside};
        let read = |value: &str| path(value, Role::Read);
        let tree = |value: &str, role| path(value, role).as_tree(true);
        let pattern = |value: &str| path(value, Role::Remove).as_pattern(true);
        for (glob, operand, base, restricts, grants) in [
            ("/srv/secret/*", read("/srv/secret/a"), None, Inside, Inside),
            ("/srv/secret/*", read("/SRV/secret/a"), None, Inside, Outside),
            ("/srv/secret/*", read("secret/a"), None, Outside, Outside),
            ("/srv/secret/*", read("../secret/a"), None, Maybe, Outside),
            ("src/*", read("/home/ann/src/a"), Some("/home/ann"), Inside, Inside),
            ("/srv/secret/*", tree("/srv", Role::Remove), None, Inside, Outside),
            ("/srv/secret/*", tree("/srv", Role::Read), None, Inside, Outside),
            ("/srv/secret/*", tree("/", Role::Remove), None, Inside, Outside),
            ("/srv/secret/*", tree("/srv/public", Role::Remove), None, Outside, Outside),
            ("/srv/secret/*", read("/srv/secret"), None, Inside, Outside),
            ("/srv/secret/*", path("/srv", Role::Remove), None, Inside, Outside),
            ("/srv/secret/*", path("/srv/a", Role::Remove), None, Outside, Outside),
            ("/srv/secret/*", read("/srv/secretary"), None, Outside, Outside),
            ("/srv/secret/*", read("~/../../srv/secret/a"), None, Maybe, Outside),
            ("/srv/secret/*", pattern("/srv/s*").as_tree(true), None, Maybe, Outside),
            ("/srv/secret/*", pattern("/*").as_tree(true), None, Maybe, Outside),
            ("/srv/secret/*", pattern("/s*").as_tree(true), None, Maybe, Outside),
            ("/srv/secret/*", pattern("/srv/p*").as_tree(true), None, Outside, Outside),
            ("/srv/tmp/*", tree("/srv/tmp/a", Role::Remove), None, Inside, Inside),
            ("*.env", tree("/srv", Role::Remove), None, Maybe, Outside),
            ("*.env", tree("/srv", Role::Read), None, Outside, Outside),
            ("/home/*/.ssh/*", tree("/home/ann", Role::Remove), None, Maybe, Outside),
            ("~/.ssh/*", tree("/home/bob", Role::Read), None, Inside, Outside),
            ("~/notes/*", read("/home/bob/notes/a"), None, Inside, Inside),
            ("~/notes/*", read("/home/bobby/notes/a"), None, Outside, Outside),
            ("/home/*/.ssh/*", tree("/home/ann/project", Role::Remove), None, Outside, Outside),
            ("/home/*/.ssh/*", tree("~", Role::Remove), None, Maybe, Outside),
            ("/srv/*.env", tree("/srv/app", Role::Remove), None, Maybe, Outside),
            ("/srv/a*.env", tree("/srv/b", Role::Remove), None, Outside, Outside),
            ("src/*", tree("/home/ann", Role::Remove), Some("/home/ann"), Inside, Outside),
            ("src/*", tree("/home", Role::Remove), Some("/home/ann"), Inside, Outside),
            ("src/*", tree("/home/ann/docs", Role::Remove), Some("/home/ann"), Outside, Outside),
            ("/srv/secret/*", read("..a"), None, Outside, Outside),
            ("/srv/secret/*", pattern("/srv/secre[[:alpha:]]/a"), None, Maybe, Outside),
            ("/srv/secret/*", pattern("/srv/secre[]t]/a"), None, Maybe, Outside),
            ("*.env", pattern("*.o"), None, Outside, Outside),
            ("*.env", pattern("a*"), None, Maybe, Outside),
            ("*vault*", pattern("[v]ault"), None, Maybe, Outside),
            ("/srv/tmp/*", pattern("/srv/tmp/*.log"), None, Maybe, Inside),
            ("/home/*/.ssh/*", read("~/.ssh/id"), None, Maybe, Outside),
            ("/srv/*", read("/srv/../etc"), None, Inside, Outside),
        ] {
            let found =
                (binds(glob, &operand, base, Way::Restricts), binds(glob, &operand, base, Way::Grants(Runs::None)));
            assert_eq!(found, (restricts, grants), "{glob} and {operand:?}");
        }
    }

    #[test]
    fn a_restriction_of_a_table_binds_it_in_every_schema() {
        let table = |value: &str| Operand::new(Kind::Table, Role::Read, value.to_owned(), value);
        for (value, restricts, grants) in [
            ("salaries", Binding::Inside, Binding::Inside),
            ("public.salaries", Binding::Inside, Binding::Outside),
            ("db..Salaries", Binding::Inside, Binding::Outside),
            ("salaries.id", Binding::Outside, Binding::Outside),
        ] {
            let found = (
                binds("salaries", &table(value), None, Way::Restricts),
                binds("salaries", &table(value), None, Way::Grants(Runs::None)),
            );
            assert_eq!(found, (restricts, grants), "{value}");
        }
    }

    #[test]
    fn a_grant_of_an_address_does_not_reach_another_host() {
        let url = |value: &str| Operand::new(Kind::Url, Role::Read, value.to_owned(), value);
        let evil = url("https://bank.example.evil.example/");
        assert_eq!(binds("https://bank.example*", &evil, None, Way::Grants(Runs::None)), Binding::Outside);
        assert_eq!(
            binds("https://bank.example/*", &url("https://bank.example/a"), None, Way::Grants(Runs::None)),
            Binding::Inside
        );
        assert_eq!(binds("https://bank.example*", &evil, None, Way::Restricts), Binding::Inside);
    }

    #[test]
    fn patterns_meet_if_a_text_matches_both() {
        for (glob, pattern, expected) in [
            ("*.env", "*.o", false),
            ("*.env", "*", true),
            (".env", "*", false),
            ("*/secret/*", "/srv/*", false),
            ("/srv/secret/*", "/srv/*/a", true),
            ("/srv/*", "/srv/a?", true),
            ("a?c", "*c", true),
            ("a", "b*", false),
        ] {
            assert_eq!(meets(glob, pattern), expected, "{glob} and {pattern}");
        }
    }
}
