//! The permissions of Codex: its configuration, and its `.rules` files.

use rulekeep::PolicySet;
use rulekeep::document;
use rulekeep::policy::PolicyFormat;
use serde_json::Value;

use super::starlark::{self, Value as Starlark};
use super::{Effect, Import, Subject};

impl Import<'_> {
    pub(super) fn codex(&mut self, file: &str, text: &str) -> Result<(), String> {
        let too_large = |_| String::new();
        let read =
            document::read(text, PolicyFormat::Toml, PolicySet::MAX_BYTES, too_large, |root, _| root.into_json());
        let (Some(config), _) = read else {
            return Err(read.1.first().map_or_else(|| "expected TOML".to_owned(), |problem| problem.message.clone()));
        };
        let word = |key: &str| config[key].as_str().unwrap_or_default().to_owned();
        let (mode, approval) = (word("sandbox_mode"), word("approval_policy"));
        let edits = |pattern: Option<String>| Subject::Files { changed: true, pattern };
        let place = format!("{file} sandbox_mode");
        match mode.as_str() {
            "" => {}
            "read-only" if approval == "never" => self.permit(Effect::Deny, edits(None), &place, &mode),
            "read-only" => self.permit(Effect::Ask, edits(None), &place, &mode),
            "workspace-write" if approval != "untrusted" => {
                self.permit(Effect::Allow, edits(Some("./**".to_owned())), &place, &mode);
                for folder in config["sandbox_workspace_write"]["writable_roots"].as_array().into_iter().flatten() {
                    let folder = folder.as_str().unwrap_or_default().trim_end_matches('/');
                    let place = format!("{file} sandbox_workspace_write.writable_roots");
                    self.permit(Effect::Allow, edits(Some(format!("{folder}/**"))), &place, folder);
                }
            }
            _ => self.note(&place, &mode, "left out: what it lets through without asking, rules deny"),
        }
        if !mode.is_empty() {
            self.note(&place, &mode, "a sandbox holds commands back where rules cannot see; keep it in Codex");
        }
        if !approval.is_empty() || config["approval_policy"].is_object() {
            self.note(
                &format!("{file} approval_policy"),
                &config["approval_policy"].to_string(),
                "what no rule names is denied, and not asked about",
            );
        }
        for key in ["profiles", "permissions", "default_permissions", "apps"] {
            if config.get(key).is_some() {
                self.note(&format!("{file} {key}"), "a setting", "left out: rules have no word for it");
            }
        }
        for (server, options) in config["mcp_servers"].as_object().into_iter().flatten() {
            let place = format!("{file} mcp_servers.{server}");
            let names = |key: &str| -> Option<Vec<String>> {
                Some(options[key].as_array()?.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            };
            for name in names("disabled_tools").unwrap_or_default() {
                self.permit(
                    Effect::Deny,
                    Subject::Server(server.clone(), name.clone()),
                    &format!("{place}.disabled_tools"),
                    &name,
                );
            }
            if let Some(names) = names("enabled_tools") {
                self.permit(
                    Effect::Deny,
                    Subject::ServerBut(server.clone(), names),
                    &format!("{place}.enabled_tools"),
                    "enabled_tools",
                );
            }
        }
        Ok(())
    }

    pub(super) fn codex_rules(&mut self, file: &str, text: &str) -> Result<(), String> {
        for call in starlark::read(text)? {
            let place = format!("{file} line {}", call.line);
            let of = |key: &str| call.arguments.iter().find(|(name, _)| name == key).map(|(_, value)| value);
            let (Some(Starlark::List(pattern)), "prefix_rule") = (of("pattern"), call.name.as_str()) else {
                self.note(&place, &call.name, "left out: only prefix_rule with a pattern is understood");
                continue;
            };
            let effect = match of("decision") {
                None => Some(Effect::Allow),
                Some(Starlark::Text(word)) => match word.as_str() {
                    "allow" => Some(Effect::Allow),
                    "prompt" => Some(Effect::Ask),
                    "forbidden" => Some(Effect::Deny),
                    _ => None,
                },
                Some(Starlark::List(_)) => None,
            };
            // Anything that is not understood is asked about.
            let effect = effect.unwrap_or(Effect::Ask);
            let (commands, is_whole) = commands(pattern);
            if commands.is_empty() || !is_whole && effect == Effect::Allow {
                self.note(&place, "prefix_rule", "left out: it has no words, or too many alternatives");
                continue;
            }
            if !is_whole {
                self.note(
                    &place,
                    "prefix_rule",
                    "it has too many alternatives, so it holds for every command with that beginning",
                );
            }
            for command in commands {
                self.permit(effect, self.host.shell(Some(command.clone())), &place, &command);
            }
        }
        Ok(())
    }
}

/// Returns the beginnings of commands that a pattern matches, one for each choice among alternatives, and whether the
/// whole pattern is in them. A word with blanks is quoted.
fn commands(pattern: &[Starlark]) -> (Vec<String>, bool) {
    let quoted = |word: &str| {
        if word.is_empty() || word.contains(char::is_whitespace) { format!("'{word}'") } else { word.to_owned() }
    };
    let mut begun = Vec::new();
    for token in pattern {
        let choices = match token {
            Starlark::Text(_) => std::slice::from_ref(token),
            Starlark::List(words) => words.as_slice(),
        };
        let texts: Option<Vec<String>> = choices
            .iter()
            .map(|word| if let Starlark::Text(word) = word { Some(quoted(word)) } else { None })
            .collect();
        let Some(texts) = texts.filter(|texts| texts.len() * begun.len().max(1) <= MOST_COMMANDS) else {
            return (begun, false);
        };
        begun = if begun.is_empty() {
            texts
        } else {
            begun.iter().flat_map(|start| texts.iter().map(move |word| format!("{start} {word}"))).collect()
        };
    }
    (begun, true)
}

const MOST_COMMANDS: usize = 64;
