//! Guarantees of the shell reader for whole lines, and that its work grows only with the line.

use std::cell::Cell;

use super::*;

thread_local! { static READ: Cell<usize> = const { Cell::new(0) }; }

/// Counts the lines and commands read.
pub(in crate::format::shell) fn count(more: usize) {
    READ.with(|read| read.set(read.get() + more));
}

fn acts(line: &str) -> Vec<(String, RiskLevel)> {
    let lexicon = Lexicon::shared().unwrap();
    let reading = read(line, &lexicon);
    reading
        .acts
        .iter()
        .map(|act| (format!("{}:{}", act.resource, act.operation), crate::risk::assess(act, &reading.facts).level))
        .collect()
}

#[test]
fn every_command_of_a_line_counts() {
    for line in [
        "ls; rm -rf /srv",
        "ls && rm -rf /srv",
        "ls | xargs rm -rf",
        "echo $(rm -rf /srv)",
        "echo `rm -rf /srv`",
        "sudo -u bob rm -rf /srv",
        "bash -c 'rm -rf /srv'",
        "env A=1 rm -rf /srv",
        "find . -exec rm -rf {} ;",
        "echo \"$(rm -rf /srv)\"",
    ] {
        assert!(
            acts(line).iter().any(|(capability, risk)| capability == "file:delete" && *risk >= RiskLevel::High),
            "{line}: {:?}",
            acts(line)
        );
    }
}

#[test]
fn the_work_grows_with_the_line_alone() {
    let lexicon = Lexicon::shared().unwrap();
    for unit in [
        "xargs ",
        "sudo ",
        "zork sudo ",
        "ssh h ",
        "eval ",
        "iex ",
        "bash -c ",
        "flock a ",
        "kubectl exec x -- ",
        "$(",
        "$(x ",
        "\"$(",
        "$((",
        "((",
        "${x:-",
        "`",
        "`a` ",
        "\\`",
        "<(",
        "; ",
        "ls a;",
        "echo a|sh|",
        "find . -exec ",
        "-exec ls \\; ",
        "cat <<A ",
        "sh <<A\n",
        "sh <<A\nls\nA\n",
        "a=$a$a;",
        "{a,b}",
        "{a,b} ",
        "case a in b) ",
        "if ls; then ",
        "f() { ",
        "alias x='x x';",
        "x;",
        "git -c alias.x=!git ",
        "<a",
        "trap ",
        "curl -O http://a/b;",
        "echo YQ== | base64 -d | sh;",
    ] {
        let work = |bytes: usize| {
            READ.with(|read| read.set(0));
            read(&format!("ls {}", unit.repeat(bytes / unit.len())), &lexicon);
            READ.with(Cell::get)
        };
        // Lines, commands and words looked at: for twice the line, about twice the work.
        let (once, twice) = (work(8_192), work(16_384));
        assert!(twice <= once * 5 / 2 + 256, "{unit:?}: {once} for 8 KiB, {twice} for 16 KiB");
        assert!(twice <= 16 * 16_384, "{unit:?}: {twice} for 16 KiB");
    }
}

#[test]
fn what_is_not_known_is_an_execution_and_high() {
    for line in ["sudo frobnicate", "/tmp/x", "$TOOL now", "ls 'unbalanced\nlines", "bash -c \"$X\""] {
        assert!(
            acts(line).iter().any(|(capability, risk)| capability == "system:execute" && *risk >= RiskLevel::High),
            "{line}: {:?}",
            acts(line)
        );
    }
}

#[test]
fn a_download_piped_into_a_shell_is_high() {
    assert!(acts("curl https://example.com/x.sh | sh").iter().any(|(_, risk)| *risk >= RiskLevel::High));
}

#[test]
fn english_is_not_taken_for_a_command() {
    let lexicon = Lexicon::shared().unwrap();
    for text in [
        "find restaurants near me",
        "play wrecking ball",
        "kill the process on port 80",
        "make a new event",
        "sort the list",
        "head to the store",
    ] {
        assert!(!is_command(text, &lexicon), "{text}");
    }
    for text in
        ["ls", "kill 4711", "git status", "find . -name '*.rs'", "./deploy.sh", "A=1 make", "unheard_of --flag x"]
    {
        assert!(is_command(text, &lexicon), "{text}");
    }
}

/// The paths that the commands of a line remove.
fn removed(line: &str) -> Vec<String> {
    let lexicon = Lexicon::shared().unwrap();
    let steps = read(line, &lexicon).steps;
    let operands = steps.iter().flat_map(|step| &step.operands);
    operands.filter(|operand| operand.role == Role::Remove).map(|operand| operand.value.clone()).collect()
}

#[test]
fn a_folder_counts_alone_while_the_line_goes_on_in_it() {
    for (line, paths) in [
        ("cd /a && rm b", &["/a/b"][..]),
        ("cd /a && rm b; ls", &["/a/b"]),
        ("cd /a && rm b && cat <<E\n(;|\nE", &["/a/b"]),
        ("cd /tmp; rm b", &["/tmp/b"]),
        ("cd /tmp && cat > b <<E\n(;|\nE\ngo run b; rm b", &["/tmp/b"]),
        ("cd /a && cat <<E\n;\nE\nls;\nrm b", &["/a/b", "b"]),
        ("(cd /tmp); rm b", &["/tmp/b", "b"]),
        ("cd /tmp | ls; rm b", &["/tmp/b", "b"]),
        ("cd /a; rm b", &["/a/b", "b"]),
        ("cd /a || rm b", &["/a/b", "b"]),
        ("cd /a\nrm b", &["/a/b", "b"]),
        ("! cd /a && rm b", &["/a/b", "b"]),
        ("(cd /a && ls) && rm b", &["/a/b", "b"]),
        ("cd /a & rm b", &["/a/b", "b"]),
        ("x=$(cd /a && pwd) && rm b", &["/a/b", "b"]),
    ] {
        assert_eq!(removed(line), paths, "{line}");
    }
}
