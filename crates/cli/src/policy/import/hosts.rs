//! The places and formats of permissions in each host's settings.
// SOURCE: code.claude.com/docs/en/permissions, developers.openai.com/codex, cursor.com/docs/cli/reference/permissions and
// .../reference/permissions, geminicli.com/docs/reference/configuration, opencode.ai/docs/permissions; read 2026-11-25.

use std::path::Path;

use jsonc_parser::{JsonArray, JsonObject, JsonValue, ParseOptions, parse_to_value};

use super::{Effect, Host, Import, Permission, Subject};

impl Import<'_> {
    /// Reads a file of the host.
    pub(super) fn read(&mut self, file: &Path, text: &str) -> Result<(), String> {
        let name = file.display().to_string();
        match (self.host, file.extension().and_then(|end| end.to_str())) {
            (Host::Codex, Some("toml")) => self.codex(&name, text),
            (Host::Codex, _) => self.codex_rules(&name, text),
            (host, _) => {
                let value = parse_to_value(text, &ParseOptions::default()).map_err(|error| error.to_string())?;
                let Some(JsonValue::Object(settings)) = value else { return Err("expected a JSON object".to_owned()) };
                match host {
                    Host::Claude => self.claude(&name, &settings),
                    Host::Cursor => self.cursor(&name, &settings),
                    Host::Gemini => self.gemini(&name, &settings),
                    Host::Opencode | Host::Codex => self.opencode(&name, &settings),
                }
                Ok(())
            }
        }
    }

    pub(super) fn permit(&mut self, effect: Effect, subject: Subject, place: &str, said: &str) {
        let (place, said) = (place.to_owned(), said.to_owned());
        self.add(&Permission { effect, subject, except: Vec::new(), place, said });
    }

    /// Adds a permission for each text in a list; other items are reported.
    fn each(
        &mut self,
        list: Option<&JsonArray<'_>>,
        effect: Effect,
        place: &str,
        subject: impl Fn(Host, &str) -> Subject,
    ) {
        for (number, item) in list.into_iter().flat_map(JsonArray::iter).enumerate() {
            let place = format!("{place}[{number}]");
            match item {
                JsonValue::String(said) => self.permit(effect, subject(self.host, said), &place, said),
                _ => self.note(&place, "an entry", "expected a text"),
            }
        }
    }

    fn claude(&mut self, file: &str, settings: &JsonObject<'_>) {
        let Some(permissions) = settings.get_object("permissions") else {
            return self.note(file, "permissions", "there are none in this file");
        };
        for (list, effect) in [("allow", Effect::Allow), ("ask", Effect::Ask), ("deny", Effect::Deny)] {
            self.each(permissions.get_array(list), effect, &format!("{file} permissions.{list}"), called);
        }
        let mode = permissions.get_string("defaultMode").map_or("default", |mode| mode.as_ref());
        let place = format!("{file} permissions.defaultMode");
        let more = permissions.get_array("additionalDirectories");
        let within = |pattern: &str| Subject::Files { changed: true, pattern: Some(pattern.to_owned()) };
        match mode {
            "default" | "dontAsk" => {}
            "acceptEdits" => {
                self.permit(Effect::Allow, within("./**"), &place, mode);
                let place = format!("{file} permissions.additionalDirectories");
                self.each(more, Effect::Allow, &place, |_, folder| {
                    within(&format!("/{}/**", folder.trim_end_matches('/')))
                });
            }
            "plan" => self.permit(Effect::Deny, Subject::Files { changed: true, pattern: None }, &place, mode),
            _ => self.note(&place, mode, "left out: it would allow everything that no rule denies"),
        }
        if more.is_some() && mode != "acceptEdits" {
            self.note(
                &format!("{file} permissions.additionalDirectories"),
                "a list",
                "left out: it allows nothing by itself",
            );
        }
        let known = ["allow", "ask", "deny", "defaultMode", "additionalDirectories"];
        self.unknown(&format!("{file} permissions"), permissions, &known);
    }

    fn cursor(&mut self, file: &str, settings: &JsonObject<'_>) {
        let permissions = settings.get_object("permissions");
        for (list, effect) in [("allow", Effect::Allow), ("deny", Effect::Deny)] {
            let all = permissions.and_then(|permissions| permissions.get_array(list));
            self.each(all, effect, &format!("{file} permissions.{list}"), called);
        }
        if let Some(permissions) = permissions {
            self.unknown(&format!("{file} permissions"), permissions, &["allow", "deny"]);
        }
        let command = |host: Host, said: &str| host.shell(Some(said.to_owned()));
        self.each(
            settings.get_array("terminalAllowlist"),
            Effect::Allow,
            &format!("{file} terminalAllowlist"),
            command,
        );
        self.each(settings.get_array("mcpAllowlist"), Effect::Allow, &format!("{file} mcpAllowlist"), |_, said| {
            of_server(said)
        });
        for key in ["autoRun", "approvalMode", "sandbox"].into_iter().filter(|key| settings.get(key).is_some()) {
            self.note(&format!("{file} {key}"), "a setting", "left out: rules have no word for it");
        }
    }

    fn gemini(&mut self, file: &str, settings: &JsonObject<'_>) {
        let tools = settings.get_object("tools");
        let of = |new: &str, old: &str| {
            tools
                .and_then(|tools| tools.get_array(new))
                .map(|list| (format!("{file} tools.{new}"), list))
                .or_else(|| settings.get_array(old).map(|list| (format!("{file} {old}"), list)))
        };
        if let Some((place, list)) = of("allowed", "allowedTools") {
            self.each(Some(list), Effect::Allow, &place, called);
        }
        if let Some((place, list)) = of("exclude", "excludeTools") {
            self.each(Some(list), Effect::Deny, &place, called);
        }
        if let Some((place, list)) = of("core", "coreTools") {
            let named: Vec<&str> = list
                .iter()
                .filter_map(|item| if let JsonValue::String(text) = item { Some(text.as_ref()) } else { None })
                .collect();
            let own = self.host.tools();
            let all = [own.shell, own.read, own.change, own.fetch, &["google_web_search", "save_memory"]].concat();
            let is_named = |tool: &&&str| named.iter().any(|said| said.split('(').next() == Some(**tool));
            let others: Vec<String> =
                all.iter().filter(|tool| !is_named(tool)).map(|tool| (*tool).to_owned()).collect();
            if !others.is_empty() {
                self.permit(Effect::Deny, Subject::Tools(others), &place, &named.join(", "));
            }
            // Of a tool with a part, nothing else is offered.
            let mut except = Vec::new();
            for said in named.iter().filter(|said| said.contains('(')) {
                match called(self.host, said) {
                    Subject::Shell { command: Some(command), .. } => except.push(command),
                    subject => self.permit(Effect::Ask, subject, &place, said),
                }
            }
            let is_whole = |said: &&str| own.shell.contains(said) || *said == "ShellTool";
            if !except.is_empty() && !named.iter().any(is_whole) {
                let (subject, said) = (self.host.shell(None), named.join(", "));
                self.add(&Permission { effect: Effect::Deny, subject, except, place, said });
            }
        }
        if let Some(tools) = tools {
            self.unknown(&format!("{file} tools"), tools, &["allowed", "exclude", "core"]);
        }
        for (server, list) in [("excluded", Effect::Deny), ("allowed", Effect::Allow)] {
            let all = settings.get_object("mcp").and_then(|mcp| mcp.get_array(server));
            if list == Effect::Deny {
                self.each(all, list, &format!("{file} mcp.{server}"), |_, name| {
                    Subject::Server(name.to_owned(), "*".to_owned())
                });
            } else if all.is_some() {
                self.note(
                    &format!("{file} mcp.{server}"),
                    "a list",
                    "left out: which servers there are is no permission",
                );
            }
        }
        let servers = settings.get_object("mcpServers").cloned().map(JsonObject::take_inner);
        for (server, options) in servers.into_iter().flatten() {
            let JsonValue::Object(options) = options else { continue };
            let place = format!("{file} mcpServers.{server}");
            let named = |name: &str| Subject::Server(server.to_string(), name.to_owned());
            if options.get_boolean("trust") == Some(true) {
                self.permit(Effect::Allow, named("*"), &place, "trust");
            }
            self.each(options.get_array("excludeTools"), Effect::Deny, &format!("{place}.excludeTools"), |_, name| {
                named(name)
            });
            if let Some(list) = options.get_array("includeTools") {
                self.permit(
                    Effect::Deny,
                    Subject::ServerBut(server.to_string(), texts(list)),
                    &format!("{place}.includeTools"),
                    "includeTools",
                );
            }
        }
    }

    /// The last matching permission decides, so a restricting rule excepts what later ones allow.
    fn opencode(&mut self, file: &str, settings: &JsonObject<'_>) {
        for (tool, is_on) in settings.get_object("tools").into_iter().flat_map(|tools| tools.clone().take_inner()) {
            if is_on == JsonValue::Boolean(false) {
                self.permit(
                    Effect::Deny,
                    Subject::Tools(vec![tool.to_string()]),
                    &format!("{file} tools.{tool}"),
                    "false",
                );
            }
        }
        if settings.get("agent").is_some() {
            self.note(&format!("{file} agent"), "permissions of agents", "left out: only those of all agents are read");
        }
        let place = format!("{file} permission");
        match settings.get("permission") {
            Some(JsonValue::String(word)) => self.opencode_tool(&place, "*", &JsonValue::String(word.clone()), &[]),
            Some(JsonValue::Object(permission)) => {
                let all: Vec<_> = permission.clone().take_inner().into_iter().collect();
                for (number, (tool, said)) in all.iter().enumerate() {
                    let later: Vec<&str> = all.iter().skip(number + 1).map(|(tool, _)| tool.as_ref()).collect();
                    self.opencode_tool(&format!("{place}.{tool}"), tool, said, &later);
                }
            }
            Some(_) => self.note(&place, "a value", "expected a word or an object"),
            None => self.note(&place, "permission", "there is none in this file"),
        }
    }

    fn opencode_tool(&mut self, place: &str, tool: &str, said: &JsonValue<'_>, later: &[&str]) {
        let rules: Vec<(String, String)> = match said {
            JsonValue::String(word) => vec![("*".to_owned(), word.to_string())],
            JsonValue::Object(rules) => rules
                .clone()
                .take_inner()
                .into_iter()
                .map(|(pattern, word)| {
                    (
                        pattern.to_string(),
                        if let JsonValue::String(word) = word { word.to_string() } else { String::new() },
                    )
                })
                .collect(),
            _ => Vec::new(),
        };
        if rules.is_empty() {
            self.note(place, tool, "expected allow, ask, deny, or an object of them");
        }
        for (number, (pattern, word)) in rules.iter().enumerate() {
            let Some(effect) = effect_of(word) else {
                self.note(place, &format!("{pattern}: {word}"), "expected allow, ask or deny");
                continue;
            };
            let whole = (pattern != "*").then(|| pattern.clone());
            let subject = match tool {
                "*" if effect < Effect::Allow && later.is_empty() => Subject::Tools(vec!["*".to_owned()]),
                "*" if effect < Effect::Allow => {
                    self.note(place, word, "what no rule names is denied, and not asked about");
                    continue;
                }
                "bash" => self.host.shell(whole),
                // The host asks outside its folder, so an allow ends there.
                "edit" | "read" if effect == Effect::Allow && whole.is_none() => {
                    Subject::Files { changed: tool == "edit", pattern: Some("**".to_owned()) }
                }
                "edit" | "read" => Subject::Files { changed: tool == "edit", pattern: whole },
                "webfetch" if whole.is_none() => Subject::Fetch(None),
                "*" | "external_directory" | "doom_loop" => Subject::Other(None),
                _ if whole.is_none() => Subject::Tools(vec![tool.to_owned()]),
                _ => Subject::Other(Some(tool.to_owned())),
            };
            let freer = |(_, word): &&(String, String)| effect_of(word).is_some_and(|other| other > effect);
            let except = rules.iter().skip(number + 1).filter(freer).map(|(pattern, _)| pattern.clone()).collect();
            self.add(&Permission {
                effect,
                subject,
                except,
                place: place.to_owned(),
                said: format!("{pattern}: {word}"),
            });
        }
    }

    fn unknown(&mut self, place: &str, of: &JsonObject<'_>, known: &[&str]) {
        for (key, _) in of.clone().take_inner() {
            if !known.contains(&key.as_ref()) {
                self.note(&format!("{place}.{key}"), "a setting", "left out: it is not known");
            }
        }
    }
}

impl Host {
    /// The commands of the host's shell tools.
    pub(super) fn shell(self, command: Option<String>) -> Subject {
        Subject::Shell { tools: self.tools().shell, command }
    }
}

fn effect_of(word: &str) -> Option<Effect> {
    Some(match word {
        "allow" => Effect::Allow,
        "ask" => Effect::Ask,
        "deny" => Effect::Deny,
        _ => return None,
    })
}

/// Parses a permission of the form `Tool` or `Tool(what)`.
fn called(host: Host, said: &str) -> Subject {
    let said = said.trim();
    let (tool, what) = match said.split_once('(') {
        Some((tool, rest)) => (tool, rest.strip_suffix(')').map(|what| Some(what.trim()))),
        None => (said, Some(None)),
    };
    let Some(what) = what else { return Subject::Other(Some(tool.to_owned())) };
    let part = what.filter(|what| !matches!(*what, "*" | "**" | "")).map(str::to_owned);
    let own = host.tools();
    // A host writes a pattern after the first name of a family, and means the whole family.
    for (family, changed) in [(own.read, false), (own.change, true)] {
        if family.first() == Some(&tool) {
            return Subject::Files { changed, pattern: what.map(str::to_owned) };
        }
    }
    match tool {
        "Mcp" => of_server(what.unwrap_or("*")),
        "Bash" if host == Host::Claude => Subject::Shell { tools: &["Bash"], command: part },
        "PowerShell" if host == Host::Claude => Subject::Shell { tools: &["PowerShell"], command: part },
        _ if tool == "ShellTool" || own.shell.contains(&tool) => host.shell(part),
        _ if own.fetch.contains(&tool) => {
            Subject::Fetch(part.map(|what| what.trim_start_matches("domain:").to_owned()))
        }
        _ if part.is_some() => Subject::Other(Some(tool.to_owned())),
        _ => match tool.strip_prefix("mcp__").map(|rest| rest.split_once("__").unwrap_or((rest, "*"))) {
            Some((server, name)) => Subject::Server(server.to_owned(), name.to_owned()),
            None => Subject::Tools(vec![tool.to_owned()]),
        },
    }
}

/// Parses `server:tool`, as Cursor writes it.
fn of_server(said: &str) -> Subject {
    let (server, tool) = said.split_once([':', ',']).unwrap_or((said, "*"));
    Subject::Server(server.trim().to_owned(), tool.trim().to_owned())
}

fn texts(list: &JsonArray<'_>) -> Vec<String> {
    list.iter()
        .filter_map(|item| if let JsonValue::String(text) = item { Some(text.to_string()) } else { None })
        .collect()
}
