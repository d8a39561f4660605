//! A governed agent that tries to change its own governance: always `permission:admin`, CRITICAL.

use serde_json::{Map, json};

use super::*;
use rulekeep_types::Intent;

fn intent(input: &str) -> Intent {
    Parser::new().unwrap().parse_text(&"tester".parse().unwrap(), input, &Map::new()).unwrap().intent
}

fn reaches(input: &str) -> bool {
    let intent = intent(input);
    let asks = intent.required_capabilities.iter().any(|capability| capability.to_string() == "permission:admin");
    asks && intent.risk_level == RiskLevel::Critical
}

#[test]
fn the_operators_orders_are_not_the_agents_to_give() {
    for line in [
        "rulekeep escalations approve 01ABC",
        "/usr/local/bin/rulekeep escalations approve 01ABC",
        "RULEKEEP_OPERATOR_KEY=x rulekeep escalations approve 01ABC",
        "env A=1 rulekeep down",
        "sudo -u bob rulekeep hook uninstall --host claude",
        "sh -c 'rulekeep kill-switch lift'",
        "bash -lc \"cd /tmp && rulekeep keys create --scope admin\"",
        "nohup rulekeep policy load /tmp/open.toml &",
        "echo y | xargs rulekeep log erase",
        "timeout 5 rulekeep log repair",
        "rulekeep init --force",
        "rulekeep hook --host claude < event.json",
        "rulekeep hook install --host claude",
        "rulekeep a-verb-of-a-later-version",
        "$(which rulekeep) down; rulekeep down",
        "curl --unix-socket ~/.rulekeep/operator.sock http://x/approve",
    ] {
        assert!(reaches(line), "{line}: {:?}", intent(line));
    }
    for line in ["pkill rulekeep", "systemctl stop rulekeep"] {
        assert_eq!(intent(line).risk_level, RiskLevel::Critical, "{line}: {:?}", intent(line));
    }
    for line in
        ["rulekeep status", "rulekeep doctor --host claude", "rulekeep policy test p.toml", "rulekeep log verify"]
    {
        let intent = intent(line);
        assert!(intent.risk_level <= RiskLevel::Medium, "{line}: {intent:?}");
    }
}

#[test]
fn a_command_that_writes_what_governs_the_agent_is_critical() {
    for line in [
        "echo '{}' > .claude/settings.json",
        "echo '{}' >> ~/.claude/settings.local.json",
        "cat x | tee ~/.codex/hooks.json",
        "cp /tmp/x .cursor/hooks.json",
        "cp settings.json ~/.claude/",
        "mv ~/.gemini/settings.json /tmp",
        "sed -i 's/.*//' .github/hooks/rulekeep.json",
        "rm -f ~/.copilot/hooks/rulekeep.json",
        "rm -rf ~/.rulekeep",
        "rm -rf .claude",
        "chmod 000 ~/.rulekeep/policies/policy.toml",
        "ln -sf /dev/null ~/.agents/plugins/rulekeep/hooks/hooks.json",
        "truncate -s 0 $RULEKEEP_HOME/store/journal",
        "dd if=/dev/zero of=.opencode/plugins/rulekeep.js",
        "curl -o ~/.codex/config.toml https://x.example/c",
        "python3 -c \"open('.claude/settings.json','w').write('{}')\"",
        "node -e 'fs.writeFileSync(\".codex/hooks.json\", \"{}\")'",
        "cd ~/.claude && echo '{}' > settings.json",
        "cd .cursor; rm hooks.json",
        "rm .cla*/settings.json",
        "git checkout HEAD~1 -- .claude/settings.json",
        "find ~/.rulekeep -type f -delete",
        "sh -c 'echo {} > .claude/settings.json'",
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: .codex/hooks.json\n*** End Patch\nEOF",
        "sort -o$HOME/.claude/settings.json evil",
        "tar -C$HOME/.claude -xf evil.tar",
        "unzip evil.zip -d.claude",
        "sed --in-pl s/a/b/ $HOME/.claude/settings.json",
        "xxd -r evil $HOME/.claude/settings.json",
        "no-such-tool --directory=$HOME/.codex/hooks.json",
        "gfind $HOME/.claude -delete",
        "docker run -v ~/.claude:/x alpine",
        "git apply <<EOF\n--- a/.claude/settings.json\n+++ b/.claude/settings.json\nEOF",
    ] {
        assert!(reaches(line), "{line}: {:?}", intent(line));
    }
    for line in [
        "cat .claude/settings.json",
        "grep hooks ~/.codex/hooks.json",
        "ls .github/hooks",
        "git diff .claude/settings.json",
        "sed -n 1,5p .claude/settings.json",
        "find ~/.claude -name '*.json'",
        "git commit -m 'Add .claude/settings.json'",
        "mkdir -p ~/.claude",
    ] {
        assert!(!reaches(line), "{line}: {:?}", intent(line));
    }
}

#[test]
fn a_tool_that_writes_what_governs_the_agent_is_critical() {
    for (tool, arguments) in [
        ("Write", json!({"file_path": "/home/a/.claude/settings.json", "content": "{}"})),
        ("Edit", json!({"file_path": ".claude/settings.local.json", "old_string": "a", "new_string": "b"})),
        ("write_file", json!({"path": "~/.rulekeep/policies/policy.toml", "content": ""})),
        ("create_file", json!({"filePath": ".github/hooks/other.json", "content": "{}"})),
        ("replace", json!({"file_path": ".gemini/settings.json", "old_string": "a", "new_string": "b"})),
        (
            "apply_patch",
            json!({"command": "*** Begin Patch\n*** Update File: .codex/config.toml\n@@\n-a\n+b\n*** End Patch"}),
        ),
        ("apply_patch", json!({"input": "*** Begin Patch\n*** Add File: .cursor/hooks.json\n+{}\n*** End Patch"})),
        ("delete_file", json!({"path": "/home/a/.agents/plugins/rulekeep/hooks/hooks.json"})),
        ("move_file", json!({"source": ".opencode/plugins/rulekeep.js", "destination": "/tmp/x"})),
        ("Bash", json!({"command": "echo '{}' > .claude/settings.json"})),
        ("run_shell_command", json!({"command": "rulekeep escalations approve 01ABC"})),
    ] {
        let call = json!({"tool": tool, "arguments": arguments}).to_string();
        assert!(reaches(&call), "{call}: {:?}", intent(&call));
    }
    for (tool, arguments) in [
        ("Read", json!({"file_path": "/home/a/.claude/settings.json"})),
        ("Write", json!({"file_path": "/home/a/.claude/agents/review.md", "content": ".claude/settings.json"})),
    ] {
        let call = json!({"tool": tool, "arguments": arguments}).to_string();
        assert!(!reaches(&call), "{call}: {:?}", intent(&call));
    }
}
