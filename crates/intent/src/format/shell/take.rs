//! The words of a command whose meaning its row tells: paths, addresses, code, secrets, settings.

use std::collections::HashSet;

use rulekeep_types::facts::{Cause, Kind, Kinds, Operand, Role};
use rulekeep_types::{Operation, Resource, RiskLevel, TargetKind};

use crate::format::tables::{lines, places};
use crate::format::{guard, http, place};
use crate::programs::{Does, Takes};
use crate::reading::Act;
use crate::sign::Sign;
use crate::target;

use super::effects::Manner;
use super::operand::{Changes, behind};
use super::options::Lexed;
use super::word::Word;
use super::{Shell, assigned, base_name};

impl<'l> Shell<'l, '_> {
    /// Reads a word of a known meaning.
    pub(super) fn take(&mut self, lexed: &Lexed<'l>, word: &Word, takes: Takes, manner: Manner, depth: usize) {
        let text = word.text.as_str();
        match takes {
            Takes::Text | Takes::Words => self.printed(word),
            Takes::Image => self.image(word),
            Takes::Path { role: own, tree, remote } => {
                let becomes = manner.becomes.filter(|becomes| own != Role::Write || *becomes == Role::Named);
                let role = becomes.unwrap_or(own);
                if remote {
                    self.remote_path(word, role, tree || manner.is_tree);
                } else {
                    self.path(word, role, tree || manner.is_tree);
                }
            }
            Takes::Changed | Takes::Folder => {
                self.changes = if takes == Takes::Folder { Changes::Folder } else { Changes::Rights };
                let role = manner.becomes.unwrap_or(Role::Write);
                self.path(word, role, manner.is_tree);
                self.changes = Changes::Text;
            }
            Takes::Cwd => self.works_in(lexed, word),
            Takes::RunText => self.runs_text(word, depth),
            Takes::RunFile | Takes::Script => self.runs_file(word),
            Takes::Code(language) => self.code_in(language, word, depth),
            Takes::Url => self.url(word, Role::Read),
            Takes::SendUrl => {
                self.sends = true;
                self.url(word, Role::SendTo);
            }
            Takes::Host => self.host(word, Role::Read),
            Takes::SendHost => {
                self.sends = true;
                self.host(word, Role::SendTo);
            }
            Takes::Recipient => {
                if word.dynamic {
                    self.open(Cause::Text, Kinds::of(&[Kind::Recipient]), text);
                } else {
                    self.note_word(word, Role::SendTo);
                    let value = target::plain(TargetKind::Recipient, text);
                    self.operand(Operand::new(Kind::Recipient, Role::SendTo, value, text));
                }
            }
            Takes::Listen => self.listens(word),
            Takes::Secret => self.note_value(false, text),
            Takes::UserSecret => self.note_value(true, text),
            Takes::Data => self.sends_data(word),
            Takes::Header => self.header(word),
            Takes::RunRest | Takes::RunUntil | Takes::Entry | Takes::Method => {}
            Takes::Config => self.setting(lexed, word, depth),
            Takes::Assign => self.assigns(lexed, word),
            Takes::Mount => self.mount(word),
            Takes::Package => self.package(lexed, word),
            // A unit by its file.
            Takes::Service if text.contains('/') => self.runs_file(word),
            Takes::Environment => self.note_environment(word),
            Takes::Name | Takes::Table | Takes::Service => self.named(word, takes),
            Takes::Refspec => self.refspec(word),
            Takes::Mode => self.mode(lexed, text),
            Takes::Group => self.group(word),
            Takes::Open => self.opens(word),
            Takes::List => {
                self.path(word, Role::Read, false);
                self.open(Cause::Text, Kinds::of(&[Kind::Path]), text);
            }
            Takes::Proxy => self.proxy(word),
            Takes::Socket => self.socket(word),
            Takes::Seek => self.seeks(lexed, word),
        }
    }

    /// Notes a word that is only shown.
    pub(super) fn printed(&mut self, word: &Word) {
        if word.dynamic && names_secret_variable(&word.text) {
            let act = Act::new("read", "environment", Resource::Credential, Operation::Read, 0.7);
            self.reading.push(act.at_risk(RiskLevel::High).named_by(&word.text));
        }
    }

    /// Records the name of something.
    fn named(&mut self, word: &Word, takes: Takes) {
        if word.dynamic {
            // A name is nothing that a rule speaks of, unless it is a table's.
            if takes == Takes::Table {
                self.open(Cause::Text, Kinds::of(&[Kind::Table]), &word.text);
            }
            return;
        }
        self.note_word(word, Role::Named);
        if takes == Takes::Table {
            self.operand(Operand::new(Kind::Table, Role::Named, word.text.clone(), &word.text));
        } else if word.text.contains(['/', '.']) {
            self.path(word, Role::Named, false);
        }
    }

    /// Reads a command line that the program hands to a shell.
    pub(super) fn runs_text(&mut self, word: &Word, depth: usize) {
        let text = word.text.trim_start_matches('!');
        // An action of `tar`.
        let text = text.strip_prefix("exec=").unwrap_or(text);
        if word.dynamic && (word.text.starts_with('$') || word.text.is_empty()) {
            return self.unclear("code", &word.text);
        }
        if self.reads_code(text) {
            // A shell that gets what the program handles.
            self.unclear("shell", text);
        }
        self.line(text, depth + 1);
    }

    /// Reads a file whose code runs.
    pub(super) fn runs_file(&mut self, word: &Word) {
        let text = word.text.as_str();
        if text == "-" || text == "/dev/stdin" {
            return;
        }
        if text.contains(' ') {
            // A program with its arguments.
            return self.runs_text(word, self.depth);
        }
        if word.dynamic && super::operand::known_path(word).is_none() {
            self.unclear("script", text);
        }
        if is_remote_code(text) {
            self.runs_download_of(text);
        }
        let is_known = !word.dynamic && super::folders::stays(text);
        let resource = if is_known { Resource::Code } else { Resource::System };
        let act = Act::new("run", "code", resource, Operation::Execute, 0.8).at_risk(RiskLevel::Medium);
        self.reading.push(act.told_by(text));
        self.path(word, Role::Run, false);
        let cause = self.code_of(is_known);
        self.open(cause, Kinds::OPERANDS, text);
        self.runs_fresh(word);
    }

    /// Adds that code from an address runs.
    pub(super) fn runs_download_of(&mut self, text: &str) {
        let act = Act::new("run", "download", Resource::System, Operation::Execute, 0.8).at_risk(RiskLevel::High);
        self.reading.push(act.marked(Sign::Downloaded).told_by(text));
    }

    /// Reads the data of a request: a text, or `@file`.
    fn sends_data(&mut self, word: &Word) {
        self.sends = true;
        self.printed(word);
        let Some(file) = named_file(&word.text) else { return };
        let length = word.text.len() - file.len();
        let file = behind(word, length);
        let path = file.text.split(';').next().unwrap_or_default().to_owned();
        let file = Word { text: path, ..file };
        self.path(&file, Role::Read, false);
        // Some file, which may be any.
        let level = if file.dynamic { RiskLevel::High } else { RiskLevel::Medium };
        let act = Act::new("upload", "file", Resource::Web, Operation::Send, 0.7).at_risk(level);
        self.reading.push(act.named_by(&file.text));
        if place::is_system(&file.text) {
            let act = Act::new("upload", "system_file", Resource::Web, Operation::Send, 0.8).at_risk(RiskLevel::High);
            self.reading.push(act.marked(Sign::Sensitive).named_by(&file.text));
        }
    }

    /// Reads a setting of the program by its key.
    fn setting(&mut self, lexed: &Lexed<'l>, word: &Word, depth: usize) {
        // `ProxyCommand x` means the same as `ProxyCommand=x`.
        let text = word.text.trim_start();
        let end = text.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(text.len());
        let (key, rest) = text.split_at(end);
        let value = Word { text: rest.trim_start_matches([' ', '\t', '=']).to_owned(), ..word.clone() };
        let Some(means) = lexed.program.setting(key.trim()) else {
            self.open(Cause::Execution, Kinds::OPERANDS, &word.text);
            self.leftover(word);
            let act = Act::new("change", "setting", Resource::Config, Operation::Write, 0.6);
            return self.reading.push(act.at_risk(RiskLevel::Medium).marked(Sign::Unclear).told_by(&word.text));
        };
        self.raise(means, key);
        if let Some(takes) = means.takes
            && !value.text.is_empty()
        {
            if let Some(line) = alias_of(lexed, key.trim(), &value.text) {
                return self.line(&line, depth + 1);
            }
            if takes == Takes::RunText && !lines().usual_viewers.has(&value.text) {
                self.unclear("setting", &word.text);
            }
            self.take(lexed, &value, takes, Manner::default(), depth);
        }
    }

    /// Adds the acts and the risk of a setting or a variable.
    pub(super) fn raise(&mut self, means: &crate::programs::Means, found: &str) {
        for does in &means.does {
            match does {
                Does::Act(rule) | Does::Also(rule) => {
                    let acts: Vec<Act> = rule.acts().map(|act| act.told_by(found)).collect();
                    self.reading.extend(acts);
                }
                Does::AtLeast(level, signs) => {
                    let mut act = Act::new("change", "setting", Resource::Config, Operation::Write, 0.8);
                    act.signs = *signs;
                    self.reading.push(act.at_risk(*level).told_by(found));
                }
                Does::Runs => {
                    let cause = self.code_of(true);
                    self.open(cause, Kinds::OPERANDS, found);
                }
                Does::Only(_) | Does::Becomes(_) | Does::Tree | Does::Fills | Does::Writes => {}
            }
        }
    }

    /// Reads `NAME=value` among the words of `env`, `export` or `make`.
    fn assigns(&mut self, lexed: &Lexed<'l>, word: &Word) {
        self.note_variable(&word.text);
        if assigned(&word.text).is_none() {
            // A target of `make`.
            return self.named(word, Takes::Name);
        }
        self.keeps_no_history(&word.text);
        if let Some((name, value)) = assigned(&word.text)
            && let Some(means) = lexed.program.variable(name)
        {
            let value = Word { text: value.to_owned(), ..word.clone() };
            return self.variable(means, name, &value, self.depth);
        }
        if matches!(lexed.rest, Some((_, Takes::RunRest))) {
            // It is read with the program for which it is set.
            self.preset.push(word.clone());
        } else if super::environment::is_hostile(&word.text) {
            self.unclear("environment", &word.text);
            if let Some((_, value)) = word.text.split_once('=') {
                self.value_command(value);
            }
        } else {
            self.exported.push(word.clone());
        }
    }

    /// Records a folder of the host that a container gets: `/srv:/data`, `type=bind,source=/,target=/host`.
    fn mount(&mut self, word: &Word) {
        let text = word.text.as_str();
        let source = text.split(',').find_map(|part| {
            let (key, value) = part.split_once('=')?;
            matches!(key, "source" | "src" | "from").then_some(value)
        });
        let source = source.or_else(|| text.split(':').next().filter(|_| !text.contains("type=")));
        let Some(source) = source.filter(|source| source.contains(['/', '~', '.', '$'])) else { return };
        let is_read = text.ends_with(":ro") || text.contains("readonly");
        let is_whole = place::is_whole(source) || place::is_system(source) || source.contains(".sock");
        if is_whole || place::is_secret(source) || place::is_secret(&format!("{source}/x")) {
            self.unclear("host", text);
        }
        let source = Word { text: source.to_owned(), ..word.clone() };
        let role = if is_read { Role::Read } else { Role::Write };
        self.changes = Changes::Rights;
        self.path(&source, role, true);
        self.changes = Changes::Text;
    }

    /// Records a package, which may be code from elsewhere or a file.
    fn package(&mut self, lexed: &Lexed<'_>, word: &Word) {
        let text = word.text.as_str();
        if is_remote_code(text) {
            let is_code = lexed
                .row
                .rules
                .iter()
                .any(|rule| rule.capabilities.iter().any(|(resource, _)| *resource == Resource::Code));
            let resource = if is_code { Resource::Code } else { Resource::System };
            let act = Act::new("run", "download", resource, Operation::Execute, 0.8).at_risk(RiskLevel::High);
            self.reading.push(act.marked(Sign::Downloaded).told_by(text));
            return self.url(word, Role::Read);
        }
        let is_file =
            text.starts_with(['.', '/', '~']) || [".whl", ".tgz", ".deb", ".rpm"].iter().any(|end| text.ends_with(end));
        if is_file {
            self.runs_folder(text);
            return self.runs_file(word);
        }
        self.runs_fresh(word);
        // Code of whoever published it.
        self.open(Cause::Execution, Kinds::OPERANDS, text);
        self.named(word, Takes::Name);
    }

    /// Reads `:branch`, which deletes it, and `+branch`, which overwrites it.
    fn refspec(&mut self, word: &Word) {
        let text = word.text.as_str();
        if text.len() > 1 && text.starts_with(':') {
            let act = Act::new("delete", "branch", Resource::Code, Operation::Delete, 0.9);
            self.reading.push(act.at_risk(RiskLevel::High).told_by("git push").named_by(text));
        } else if text.len() > 1 && text.starts_with('+') {
            let act = Act::new("force", "push", Resource::Code, Operation::Write, 0.9).marked(Sign::Force);
            self.reading.push(act.at_risk(RiskLevel::High).told_by("git push").named_by(text));
        }
        self.named(word, Takes::Name);
    }

    /// Reads the rights that are set.
    fn mode(&mut self, lexed: &Lexed<'_>, mode: &str) {
        let is_downloaded = mode.contains('x') || mode.bytes().any(|digit| b"1357".contains(&digit));
        let runs = lexed.operands.iter().any(|word| self.downloads.contains(base_name(&word.text)));
        if is_downloaded && runs {
            self.runs_download_of(mode);
        }
        if super::control::opens_to_all(mode) {
            let act = Act::new("change", "mode", Resource::Permission, Operation::Admin, 0.9);
            self.reading.push(act.at_risk(RiskLevel::High).told_by(mode));
        }
    }

    /// Records the groups that a user joins. Members of some can become root.
    fn group(&mut self, word: &Word) {
        if word.text.split(',').any(|group| lines().root_groups.has(group)) {
            let act = Act::new("add", "administrator", Resource::Permission, Operation::Admin, 0.9);
            self.reading.push(act.marked(Sign::Administrator).told_by(&word.text));
        }
        self.named(word, Takes::Name);
    }

    /// Records an image and the registry that it comes from.
    fn image(&mut self, word: &Word) {
        let registry = word.text.split_once('/').map(|(registry, _)| registry).filter(|name| name.contains(['.', ':']));
        if let Some(registry) = registry {
            self.host(&Word { text: registry.to_owned(), ..word.clone() }, Role::Read);
        }
        self.named(word, Takes::Name);
    }

    /// Reads a file that the desktop opens with whatever program its kind has.
    fn opens(&mut self, word: &Word) {
        let ending = word.text.rsplit_once('.').map_or("", |(_, ending)| ending);
        if word.text.contains("://") {
            self.url(word, Role::Read);
        } else if places().running_endings.has(ending) {
            self.runs_file(word);
        } else {
            self.path(word, Role::Read, false);
        }
    }

    /// Reads a header of a request: what a file or a command gives is sent.
    fn header(&mut self, word: &Word) {
        let text = word.text.as_str();
        if text.starts_with('@') {
            self.sends_data(word);
            self.sends_output(text);
        }
        if let Some((_, host)) = text.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("host")) {
            self.host(&Word { text: host.trim().to_owned(), ..word.clone() }, Role::SendTo);
        }
        self.printed(word);
        if word.dynamic && holds_output(text) {
            self.sends_output(text);
        }
    }

    /// Adds that a request carries what a file or another command holds, where nobody looks for it.
    fn sends_output(&mut self, found: &str) {
        self.sends = true;
        let act = Act::new("send", "output", Resource::Network, Operation::Send, 0.7).at_risk(RiskLevel::High);
        self.reading.push(act.marked(Sign::Outside).told_by(found));
    }

    /// Reads the name of files that are searched for outside the folder: those of secrets are asked about.
    fn seeks(&mut self, lexed: &Lexed<'_>, word: &Word) {
        let is_outside = lexed.operands.iter().any(|root| root.text.starts_with(['/', '~', '$']));
        let values = self.looped(word);
        let names = values.iter().map(|value| value.text.as_str()).chain([word.text.as_str()]);
        // `*.pem` finds files of that ending.
        let is_secret = |name: &str| {
            let name = name.trim_start_matches('*').trim_start_matches('/');
            place::is_secret(name) || name.starts_with('.') && place::is_secret(&format!("x{name}"))
        };
        if is_outside && names.into_iter().any(is_secret) {
            let act = Act::new("find", "secret_files", Resource::Credential, Operation::Read, 0.7);
            self.reading.push(act.at_risk(RiskLevel::High).named_by(&word.text));
        }
    }

    /// Reads a proxy, which sees what is sent; one on the host itself passes nothing on.
    pub(super) fn proxy(&mut self, word: &Word) {
        let text = word.text.as_str();
        let bare = text.split_once("://").map_or(text, |(_, host)| host);
        // "HOST:PORT:OTHER:PORT" goes to the other host.
        let host = bare.split(':').nth(2).unwrap_or(bare);
        if host.is_empty() {
            return;
        }
        self.host(&Word { text: host.to_owned(), ..word.clone() }, Role::SendTo);
        if host.contains(['.', ':', '$']) && !http::is_loopback(host) {
            let act = Act::new("use", "proxy", Resource::Network, Operation::Send, 0.7).named_by(text);
            self.reading.push(act.marked(Sign::Outside).at_risk(RiskLevel::High));
        }
    }

    /// Reads the socket of a service on the host; those of containers and of the system control the host.
    fn socket(&mut self, word: &Word) {
        let text = word.text.as_str();
        let controls = places().control_sockets.iter().any(|part| text.contains(part));
        let level = if controls || word.dynamic { RiskLevel::High } else { RiskLevel::Medium };
        let act = Act::new("call", "local_service", Resource::System, Operation::Execute, 0.7).named_by(text);
        self.reading.push(act.at_risk(level));
        if guard::governs(text) {
            self.reading.push(guard::write(text));
        }
        self.path(word, Role::Named, false);
    }
}

/// The file that a value names instead of containing the data: `@file`, `name=@file`, `name=<file`.
fn named_file(value: &str) -> Option<&str> {
    value
        .strip_prefix('@')
        .or_else(|| value.split_once("=@").map(|(_, file)| file))
        .or_else(|| value.split_once("=<").map(|(_, file)| file))
        .or_else(|| value.split_once('@').filter(|(name, _)| is_field(name)).map(|(_, file)| file))
        .filter(|file| *file != "-")
}

fn is_field(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns whether a word is code outside a registry: `https://x/a.ts`, `git+ssh://x`, `github:a/b`,
/// `example.com/x@latest`.
pub(super) fn is_remote_code(word: &str) -> bool {
    word.contains("://") && !word.starts_with("file:")
        || ["git+", "github:", "gitlab:", "bitbucket:", "gist:"].iter().any(|start| word.starts_with(start))
        || word
            .split_once('@')
            .and_then(|(path, _)| path.split_once('/'))
            .is_some_and(|(host, _)| host.contains('.') && !host.starts_with('.'))
}

/// The command for which a setting gives another name: `alias.p=push`.
pub(super) fn alias_of(lexed: &Lexed<'_>, key: &str, value: &str) -> Option<String> {
    let is_alias = key.to_ascii_lowercase().starts_with("alias.") && !value.starts_with('!');
    is_alias.then(|| format!("{} {value}", lexed.program.name))
}

/// Returns whether a word holds what another command prints, not only the value of a variable.
pub(super) fn holds_output(text: &str) -> bool {
    text.match_indices('$').any(|(at, _)| {
        let next = text.get(at + 1..).and_then(|rest| rest.chars().next());
        next.is_none_or(|next| !next.is_ascii_alphanumeric() && !matches!(next, '_' | '{'))
    })
}

/// Returns whether a word contains one of these variables.
pub(super) fn names_one_of(text: &str, variables: &HashSet<String>) -> bool {
    let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    let names = text.split('$').skip(1).map(|rest| rest.split(is_end).next().unwrap_or(rest));
    !variables.is_empty() && names.into_iter().any(|name| variables.contains(name))
}

pub(super) fn names_secret_variable(word: &str) -> bool {
    lines().secret_variables.iter().any(|part| word.contains(part))
}
