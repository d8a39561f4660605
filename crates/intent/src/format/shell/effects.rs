//! The effects of a command by its program's row: the only interpreter of rows.

use rulekeep_types::facts::{Cause, Doing, Kind, Kinds, Role, is_rebuilt};
use rulekeep_types::{Action, Capability, Operation, Resource, RiskLevel};

use crate::format::place;
use crate::programs::{Does, Input, Runs, Takes, Times};
use crate::reading::Act;
use crate::sign::Sign;

use super::operand::{Appended, here};
use super::options::{Given, Lexed};
use super::word::Word;
use super::{Shell, View, base_name};

/// The use of a command's operands, as its options change it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Manner {
    pub(super) becomes: Option<Role>,
    pub(super) is_tree: bool,
}

impl<'l> Shell<'l, '_> {
    /// Reads a command by its row. Returns the acts of the command itself, before they are recorded.
    pub(super) fn effects(&mut self, name: &str, lexed: &Lexed<'l>, arguments: View<'_>, depth: usize) {
        let before = self.reading.acts.len();
        if lexed.asks_for_help && lexed.operands.is_empty() && lexed.rest.is_none() {
            let act = Act::new("view", "help", Resource::Information, Operation::Read, 0.9);
            self.reading.push(act.at_risk(RiskLevel::Low).told_by(name));
            return;
        }
        let is_unknown_sub = lexed.sub.is_empty() && lexed.program.has_subs() && lexed.program.verbs.is_none();
        if is_unknown_sub
            && lexed.program.slots.is_empty()
            && let Some(word) = lexed.operands.first()
        {
            self.open(Cause::Text, Kinds::of(&[Kind::Command]), &word.text);
        }
        if lexed.program.has_subs() && lexed.operands.is_empty() && lexed.sub.is_empty() && self.appended.is_some() {
            self.open(Cause::Text, Kinds::of(&[Kind::Command]), name);
        }
        if lexed.hides_sub {
            let found = lexed.operands.first().map_or(name, |word| word.text.as_str());
            self.open(Cause::Text, Kinds::of(&[Kind::Command]), found);
        }
        let folders = self.folders.clone();
        for given in &lexed.options {
            if given.means.takes == Some(Takes::Cwd)
                && let Some(folder) = &given.value
            {
                self.works_in(lexed, folder);
            }
        }
        let row = lexed.row;
        let carries = matches!(lexed.rest, Some((_, Takes::RunRest | Takes::RunText)));
        let runs_text = || lexed.options.iter().any(|given| given.means.takes == Some(Takes::RunText));
        // What is carried says what is done: `timeout 5 ls`, `sh -c ls`.
        let is_wrapper =
            carries && std::ptr::eq(row, lexed.program) && !row.is_elsewhere || row.input == Input::Run && runs_text();
        let mut acts = self.stated(name, lexed, is_wrapper);
        if let Some(requested) = self.requested(lexed) {
            // The request determines what is done; what the row says about files is kept.
            acts.retain(|act| act.resource == Resource::File);
            acts.splice(0..0, requested);
        }
        let manner = manner(lexed);
        self.operands(lexed, manner, depth);
        // What is written is the target rather than what is read: `dd if=a of=b`.
        let writes = |given: &&Given<'_>| given.means.takes.is_some_and(|takes| is_path(takes, Role::Write));
        for given in lexed.options.iter().filter(writes) {
            self.given(lexed, given, manner, arguments, depth);
        }
        for given in lexed.options.iter().filter(|given| !writes(given)) {
            self.given(lexed, given, manner, arguments, depth);
        }
        if !lexed.left.is_empty() && !row.is_loose && !lexed.program.is_loose {
            for act in &mut acts {
                act.signs.add(Sign::Unclear);
            }
            if is_wrapper {
                let act = Act::new("run", "program", Resource::System, Operation::Execute, 0.6);
                acts.push(act.at_risk(RiskLevel::Medium).marked(Sign::Unclear));
            }
        }
        for word in &lexed.left {
            self.open(Cause::Execution, Kinds::OPERANDS, &word.text);
            self.leftover(word);
        }
        self.runs_code(name, lexed);
        let object = lexed.operands.first().map_or("", |word| word.text.as_str());
        let evidence = match (lexed.sub.as_str(), lexed.options.iter().find(|given| decides(given))) {
            ("", Some(given)) => format!("{name} {}", given.key),
            ("", None) => name.to_owned(),
            (sub, _) => format!("{name} {sub}"),
        };
        for act in acts {
            let object = if self.shows_secret(object) { "" } else { object };
            self.reading.push(act.told_by(&evidence).named_by(object));
        }
        if let Some((place, takes)) = lexed.rest {
            self.rest(arguments.from(place), takes, depth);
        }
        self.settle_acts(lexed, before);
        if carries {
            // The command that is carried runs in the same folder.
            self.outside.get_or_insert(folders);
        } else {
            self.folders = folders;
        }
        self.moves(name, lexed);
    }

    /// Works in another folder. Settings in a folder to which anyone may write make some programs run others.
    pub(super) fn works_in(&mut self, lexed: &Lexed<'_>, folder: &Word) {
        let is_configured = lexed.row.runs == Some(Runs::Folder) || lexed.program.has_settings();
        if is_configured && place::is_open_to_all(&folder.text) {
            self.unclear("folder", &folder.text);
        }
        if let (Ok(action), Some(step)) = ("change_directory".parse::<Action>(), self.reading.current_step()) {
            step.does.push(Doing::new(action, Capability::new(Resource::System, Operation::Read), RiskLevel::Low));
        }
        self.path(folder, Role::Named, false);
        self.go_on_in(Some(folder));
    }

    /// Reads the plain words of a command.
    fn operands(&mut self, lexed: &Lexed<'l>, manner: Manner, depth: usize) {
        let slots = lexed.slots();
        let mut reads: Vec<&Word> = Vec::new();
        let mut last_written = None;
        for (word, takes) in lexed.operands.iter().zip(&slots) {
            let Some(takes) = *takes else {
                if lexed.program.is_loose {
                    self.take(lexed, word, Takes::Name, manner, depth);
                } else {
                    self.open(Cause::Execution, Kinds::OPERANDS, &word.text);
                    self.leftover(word);
                }
                continue;
            };
            if let (Takes::Path { role: Role::Read, .. }, Some(Role::Remove), Some(name)) =
                (takes, manner.becomes, found_name(lexed))
            {
                self.take(lexed, &below(word, name), takes, manner, depth);
                continue;
            }
            if let Takes::Path { role, .. } = takes {
                match role {
                    Role::Read | Role::Remove if manner.becomes.is_none() => reads.push(word),
                    Role::Write => last_written = Some(word),
                    _ => {}
                }
            }
            self.take(lexed, word, takes, manner, depth);
        }
        let folder = lexed.options.iter().find_map(|given| match given.means.takes {
            Some(Takes::Path { role: Role::Write, .. }) if given.fills() => given.value.as_ref(),
            _ => None,
        });
        let copies = lexed.places().iter().any(|slot| is_path(slot.takes, Role::Write))
            && lexed.places().iter().any(|slot| is_path(slot.takes, Role::Read) || is_path(slot.takes, Role::Remove));
        if let Some(folder) = folder.or(last_written).filter(|_| copies) {
            self.put_into(&reads, folder, manner.is_tree);
        }
        if self.appended.is_none() {
            self.works_here(lexed, manner, depth);
        }
        self.appended_to(lexed, &slots, manner, depth);
    }

    /// Without an operand some programs use the folder in which they run.
    fn works_here(&mut self, lexed: &Lexed<'l>, manner: Manner, depth: usize) {
        let row = lexed.row;
        let Some(slot) = row.here.or(lexed.program.here) else { return };
        // Some programs write there in any case: `unzip a.zip`.
        if slot.times != Times::Any && (!lexed.operands.is_empty() || self.fed_by.is_some()) {
            return;
        }
        let writes = matches!(slot.takes, Takes::Path { role: Role::Write, .. });
        let names_output =
            lexed.options.iter().any(|given| matches!(given.means.takes, Some(Takes::Path { role: Role::Write, .. })));
        if !(writes && names_output) {
            self.take(lexed, &here(), slot.takes, manner, depth);
        }
    }

    /// Records what a copy puts into a folder: each source by its name.
    fn put_into(&mut self, sources: &[&Word], folder: &Word, is_tree: bool) {
        for source in sources {
            if source.text == "/dev/null" {
                let act = Act::new("truncate", "file", Resource::File, Operation::Delete, 0.8);
                self.reading.push(act.at_risk(RiskLevel::Medium).told_by("/dev/null").named_by(&folder.text));
                if super::control::is_trace(&folder.text) {
                    self.hides("/dev/null", &folder.text);
                }
            }
            let name = source.text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            let is_known = !source.dynamic || super::operand::known_path(source).is_some();
            if matches!(name, "" | "." | "..") || folder.text.contains(':') || !is_known {
                continue;
            }
            let text = format!("{}/{name}", folder.text.trim_end_matches('/'));
            self.path(&Word { text, wild: folder.wild || source.wild, ..folder.clone() }, Role::Write, is_tree);
        }
    }

    /// Records the words that another program appends to this command.
    fn appended_to(&mut self, lexed: &Lexed<'l>, slots: &[Option<Takes>], manner: Manner, depth: usize) {
        let Some(appended) = self.appended.take() else { return };
        if lexed.rest.is_some() {
            self.appended = Some(appended);
            return;
        }
        let last = slots.last().copied().flatten().or_else(|| lexed.places().last().map(|slot| slot.takes));
        match (last, appended) {
            (Some(Takes::Text | Takes::Words | Takes::Mode), _) => {}
            (Some(takes), Appended::Below(roots)) => {
                let manner = Manner { is_tree: true, ..manner };
                for root in &roots {
                    self.take(lexed, root, takes, manner, depth);
                }
            }
            (Some(takes), Appended::Unknown) => {
                let kinds = match takes {
                    Takes::Path { .. } => Kinds::of(&[Kind::Path]),
                    Takes::Url | Takes::SendUrl => Kinds::of(&[Kind::Host, Kind::Url, Kind::Path]),
                    Takes::Recipient => Kinds::of(&[Kind::Recipient]),
                    _ => Kinds::OPERANDS,
                };
                self.open(Cause::Text, kinds, "what is appended");
            }
            (None, Appended::Below(roots)) => {
                for root in &roots {
                    self.path(root, Role::Named, true);
                }
            }
            (None, Appended::Unknown) => self.open(Cause::Text, Kinds::OPERANDS, "what is appended"),
        }
    }

    /// Reads an option with its value.
    fn given(&mut self, lexed: &Lexed<'l>, given: &Given<'l>, manner: Manner, arguments: View<'_>, depth: usize) {
        if given.means.does.iter().any(|does| matches!(does, Does::Runs)) {
            let cause = self.code_of(true);
            self.open(cause, Kinds::OPERANDS, given.key);
        }
        if given.means.does.iter().any(|does| matches!(does, Does::Writes)) {
            self.path(&here(), Role::Write, true);
        }
        for (word, takes) in given.more.iter().zip(&given.means.more) {
            self.take(lexed, word, *takes, Manner::default(), depth);
        }
        match (given.means.takes, &given.value) {
            (Some(Takes::RunUntil), None) => {
                let (start, end) = given.words;
                let inner = arguments.up_to(end).from(start);
                self.for_each_found(lexed, inner, depth);
            }
            // The program is joined to the option: `fd -xrm`.
            (Some(Takes::RunUntil | Takes::RunRest), Some(program)) => {
                let (start, end) = given.words;
                let behind = arguments.up_to(end).from(start).words;
                let words: Vec<Word> = std::iter::once(program).chain(behind).cloned().collect();
                let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
                self.for_each_found(lexed, View { words: &words, texts: &texts }, depth);
            }
            (Some(Takes::Cwd) | None, _) | (Some(_), None) => {}
            (Some(takes), Some(value)) => {
                let is_tree = matches!(takes, Takes::Path { tree: true, .. });
                // An archive is written or read: `tar -cf`, `tar -xf`.
                let becomes = manner.becomes.filter(|role| given.fills() && *role == Role::Read);
                let takes = match (takes, becomes) {
                    (Takes::Path { tree, remote, .. }, Some(role)) => Takes::Path { role, tree, remote },
                    (takes, _) => takes,
                };
                self.take(lexed, value, takes, Manner { becomes: None, is_tree: is_tree && manner.is_tree }, depth);
            }
        }
    }

    /// Reads the command that runs for each file found: `find -exec rm {} ;`.
    fn for_each_found(&mut self, lexed: &Lexed<'l>, inner: View<'_>, depth: usize) {
        if depth > super::DEEPEST {
            return self.unclear("command", &lexed.program.name);
        }
        let found = found_name(lexed);
        let within = |root: Word| if let Some(name) = found { below(&root, name) } else { root };
        let roots = self.roots.replace(roots_of(lexed).into_iter().map(within).collect());
        let before = self.reading.acts.len();
        self.command(inner, depth + 1);
        if found.is_none() {
            self.takes_all_listed(before);
        }
        self.roots = roots;
    }

    /// Reads the words that belong together at the end of a command and are no command of their own.
    fn rest(&mut self, rest: View<'_>, takes: Takes, depth: usize) {
        match takes {
            Takes::Words => {
                for word in rest.words {
                    self.printed(word);
                }
            }
            Takes::Script => {
                let Some((script, arguments)) = rest.words.split_first() else { return };
                self.runs_file(script);
                if script.text == "-" {
                    return;
                }
                if self.lexicon.programs.exact(base_name(&script.text)).is_some() {
                    // A framework's own program: `python manage.py flush`.
                    self.command(rest, depth);
                }
                let is_written = arguments.len() < MOST_ARGUMENTS;
                for word in arguments.iter().take(MOST_ARGUMENTS) {
                    self.argument_of_script(word);
                }
                if !is_written {
                    self.open(Cause::Text, Kinds::OPERANDS, "arguments");
                }
            }
            Takes::Code(language) => {
                let words: Vec<&str> = rest.texts.to_vec();
                let text = words.join(" ");
                self.code_in(language, &Word { text, dynamic: rest.is_dynamic(), ..Word::default() }, depth);
            }
            _ => {}
        }
    }

    /// Records an argument of a script, whose meaning only the script knows.
    fn argument_of_script(&mut self, word: &Word) {
        if word.dynamic && super::operand::known_path(word).is_none() {
            self.open(Cause::Text, Kinds::OPERANDS, &word.text);
            return;
        }
        self.leftover(word);
    }

    /// Records that the command runs code that is not in its words.
    fn runs_code(&mut self, name: &str, lexed: &Lexed<'_>) {
        // What only looks runs nothing, whatever the program's other subcommands do.
        let runs = lexed.row.runs.or(lexed.program.runs.filter(|_| lexed.row.executes()));
        match runs {
            Some(Runs::Folder) => {
                let is_clean = lexed.left.is_empty() && !lexed.operands.iter().any(|word| word.dynamic || word.wild);
                let cause = self.code_of(is_clean);
                self.open(cause, Kinds::OPERANDS, name);
                self.runs_folder(name);
            }
            Some(Runs::Code) => self.open(Cause::Execution, Kinds::OPERANDS, name),
            None if lexed.program.verbs.is_some() && lexed.sub.is_empty() => {
                self.open(Cause::Execution, Kinds::OPERANDS, name);
            }
            None => {}
        }
    }

    /// Follows a change of the folder.
    fn moves(&mut self, name: &str, lexed: &Lexed<'_>) {
        match (name, lexed.operands.first()) {
            ("pushd", None) | ("popd" | "dirs", _) => self.folders = super::folders::Folders::Unknown,
            ("pushd", Some(word)) if word.text.starts_with('+') => self.folders = super::folders::Folders::Unknown,
            ("cd" | "pushd" | "chdir", to) => {
                if to.is_none() {
                    self.path(&Word { text: "~".to_owned(), ..Word::default() }, Role::Named, false);
                }
                self.change_folder(to);
            }
            _ => {}
        }
    }

    /// The paths that a command of a pipe prints: those below the operands of `find`, `ls` and the like.
    pub(super) fn producer(&self, words: &[Word]) -> Appended {
        let Some((first, arguments)) = words.split_first() else { return Appended::Unknown };
        let Some(program) = self.lexicon.programs.get(base_name(&first.text)) else { return Appended::Unknown };
        let lexed = Lexed::of(program, arguments);
        if !lexed.row.yields_paths || !lexed.left.is_empty() || lexed.rest.is_some() {
            return Appended::Unknown;
        }
        let mut roots = roots_of(&lexed);
        if roots.is_empty() {
            roots.push(here());
        }
        Appended::Below(roots)
    }
}

impl Lexed<'_> {
    /// Whether the effects reach the whole machine, or a service elsewhere.
    pub(super) fn leaves(&self) -> bool {
        self.row.leaves.or(self.program.leaves).unwrap_or(false)
    }

    /// The values of options and the operands, each also without its key.
    pub(super) fn values(&self) -> impl Iterator<Item = &str> {
        let given = self.options.iter().filter_map(|given| given.value.as_ref());
        let words = given.chain(&self.operands).chain(&self.left).map(|word| word.text.as_str());
        words.flat_map(|text| [text].into_iter().chain(text.split_once('=').map(|(_, value)| value)))
    }
}

/// The only name of what `find` looks for, if tools make that anew: `find . -name __pycache__`.
pub(super) fn found_name<'w>(lexed: &'w Lexed<'_>) -> Option<&'w str> {
    if &*lexed.program.name != "find" {
        return None;
    }
    let is_name = |key: &str| matches!(key, "-name" | "-iname" | "-path");
    // Only tests that narrow may stand in front of the name: what an action does, it does before what follows it.
    let narrows =
        |key: &str| matches!(key, "-type" | "-maxdepth" | "-mindepth" | "-depth" | "-empty" | "-xdev" | "-mount");
    let is_first = lexed.options.iter().find(|given| !narrows(given.key)).is_some_and(|given| is_name(given.key));
    let acts = |key: &str| matches!(key, "-exec" | "-execdir" | "-delete" | "-prune" | "-print" | "-print0");
    let is_plain = |key: &str| narrows(key) || is_name(key) || acts(key);
    let may_be_others = !is_first || !lexed.options.iter().all(|given| is_plain(given.key));
    let mut names = lexed.options.iter().filter(|given| is_name(given.key));
    let (first, second) = (names.next()?, names.next());
    let name = first.value.as_ref().filter(|word| !word.dynamic && second.is_none() && !may_be_others)?;
    is_rebuilt(&name.text).then_some(name.text.as_str())
}

/// A name anywhere below a folder.
fn below(folder: &Word, name: &str) -> Word {
    Word { text: format!("{}/**/{name}", folder.text.trim_end_matches('/')), wild: true, ..folder.clone() }
}

/// The operands that are paths.
fn roots_of(lexed: &Lexed<'_>) -> Vec<Word> {
    let slots = lexed.slots();
    let paths = lexed.operands.iter().zip(slots);
    paths.filter(|(_, takes)| matches!(takes, Some(Takes::Path { .. }))).map(|(word, _)| word.clone()).collect()
}

fn manner(lexed: &Lexed<'_>) -> Manner {
    let mut manner = Manner::default();
    for does in lexed.options.iter().flat_map(|given| &given.means.does) {
        match does {
            Does::Becomes(role) => manner.becomes = Some(*role),
            Does::Tree => manner.is_tree = true,
            _ => {}
        }
    }
    manner
}

fn decides(given: &Given<'_>) -> bool {
    given.means.does.iter().any(|does| matches!(does, Does::Act(_)))
}

fn is_path(takes: Takes, wanted: Role) -> bool {
    matches!(takes, Takes::Path { role, .. } if role == wanted)
}

/// Maximum number of arguments of a script that are read.
const MOST_ARGUMENTS: usize = 64;
