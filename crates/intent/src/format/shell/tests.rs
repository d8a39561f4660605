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

#[test]
fn a_command_names_the_environment_that_it_is_directed_at() {
    let lexicon = Lexicon::shared().unwrap();
    for (line, expected) in [
        ("kubectl --context prod-eu delete pod web", "prod-eu"),
        ("sudo kubectl get pods --context=prod", "prod"),
        ("bash -c 'kubectl --context prod get pods'", "prod"),
        ("C=prod; kubectl --context $C get pods", "prod"),
        ("kubectl config use-context prod && kubectl delete pod web", "prod"),
        ("kubectx prod", "prod"),
        ("helm --kube-context prod upgrade web ./chart", "prod"),
        ("AWS_PROFILE=prod aws s3 rm s3://b/k", "prod"),
        ("export AWS_PROFILE=prod; aws s3 rm s3://b/k", "prod"),
        ("aws --profile prod s3 ls", "prod"),
        ("aws s3 ls --profile=prod", "prod"),
        ("terraform workspace select prod", "prod"),
        ("TF_WORKSPACE=prod terraform apply", "prod"),
        ("gcloud compute instances list --project=shop-prod", "shop-prod"),
        ("./deploy.sh --env production", "production"),
        ("deploy --environment=production", "production"),
        ("npx serverless deploy --stage prod", "prod"),
        ("RAILS_ENV=production bin/rails db:migrate", "production"),
        ("aws --profile prod s3 ls; kubectl --context stage get pods", "prod stage"),
        // What names none.
        ("kubectl get pods", ""),
        ("kubectl --context \"$UNKNOWN\" get pods", ""),
        ("docker run --env STAGE=prod img", ""),
        ("AWS_PROFILE=prod ls", ""),
        ("cargo build --profile release", ""),
        ("git commit -m 'use kubectl --context prod'", ""),
        ("grep --context 3 prod a.txt", ""),
    ] {
        let reading = read(line, &lexicon);
        let named: Vec<&str> = reading.steps.iter().flat_map(|act| &act.environments).map(String::as_str).collect();
        assert_eq!(named.join(" "), expected, "{line}");
    }
}
