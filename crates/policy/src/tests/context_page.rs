//! The page on the context of an intent, made from the keys, facts and names that this library knows.

use crate::fact::Fact;
use crate::generated::{check_page, table};
use crate::{PolicySet, condition};
use rulekeep_types::facts::{Act, Cause, Kind, Kinds, Open, Operand, Role};
use rulekeep_types::{Action, Capability, Classification, Operation, Resource};
use rulekeep_types::{Amount, CALLERS_KEYS, FACTS_KEY, Facts, Intent, PARSED_KEYS, RiskLevel};

#[test]
fn the_page_lists_every_key_and_every_name() {
    let keys = |head: &str, prefix: &str, known: &[[&str; 3]]| {
        let row = |[name, kind, meaning]: &[&str; 3]| [format!("`{prefix}{name}`"), (*kind).into(), (*meaning).into()];
        table([head, "type", "meaning"], known.iter().map(row))
    };
    let clauses = Fact::CLAUSES
        .iter()
        .map(|(clause, key, fact)| [format!("`{clause}`"), format!("`{key}`"), meaning(*fact).to_owned()]);
    let rest = [
        EXAMPLE,
        "## Keys that a caller sets\n\n",
        &keys("key", "", CALLERS),
        "\nEvery other key is yours: `match.context`, conditions and limits can read it.\n",
        "\n## Keys that parsing adds\n\n",
        "A caller's own value under one of these names stands, except for `facts`.\n\n",
        &keys("key", "", PARSED),
        "\n## Data classes\n\n",
        "A capability implies at least this class, whatever the context says; `match.classification` compares the higher of both. \
         Further classes come from [sensitive data](parsing.md#disguises-and-sensitive-data) in the request, and from the caller.\n\n",
        &table(["class", "resource"], implied_classes()),
        "\nOther resources imply none. `policy explain` names the capability that determined the class.\n",
        "\n## Facts\n\n",
        "Without `facts`, a built intent's `target`, `amount` and `currency` take their place.\n\n",
        &keys("fact", "facts.", FACTS),
        "\n## Facts in `match`\n\n",
        "Each clause lists globs. The key names the same values under `match.context`.\n\n",
        &table(["clause", "key", "compares"], clauses),
        "\n## Names in conditions\n\n",
        &table(["name", "type", "meaning"], condition::described()),
        NOTES,
    ];
    let rule = EXAMPLE.trim().trim_start_matches("```toml").trim_end_matches("```");
    assert_eq!(PolicySet::from_toml(&format!("name = \"page\"{rule}")).unwrap().warnings(), &[]);
    check_page(
        "context.md",
        "Context and facts",
        "The risk rules and the policies read these keys of an intent's context, these facts and these names.",
        &rest.concat(),
        "cargo test --lib the_page_lists_every_key_and_every_name",
    );
}

/// The classes that resources imply, the most sensitive first.
fn implied_classes() -> impl Iterator<Item = [String; 2]> {
    let floor =
        |resource: &Resource| Classification::floor(&Action::unknown(), &[Capability::new(*resource, Operation::Read)]);
    Classification::ALL.iter().rev().filter_map(move |class| {
        let of: Vec<String> = Resource::ALL
            .iter()
            .filter(|resource| floor(resource) == Some(*class))
            .map(|resource| match resource {
                Resource::Credential => format!("`{resource}` (not the public part of a key)"),
                resource => format!("`{resource}`"),
            })
            .collect();
        (!of.is_empty()).then(|| [format!("`{class}`"), of.join(", ")])
    })
}

#[test]
fn every_key_is_described() {
    let names = |known: &[[&'static str; 3]]| known.iter().map(|[name, ..]| *name).collect::<Vec<_>>();
    assert_eq!((names(CALLERS), names(PARSED)), (CALLERS_KEYS.to_vec(), PARSED_KEYS.to_vec()));
}

#[test]
fn every_fact_is_described() {
    let mut facts = Facts::default();
    let mut act = Act::new();
    act.tool = Some("t".to_owned());
    act.server = Some("s".to_owned());
    act.operands = vec![Operand::new(Kind::Path, Role::Read, "a".to_owned(), "a")];
    act.amounts = vec![Amount::new(1.0, None, 1)];
    act.open = vec![Open::new(Cause::Text, Kinds::ALL, "x".to_owned())];
    facts.acts = vec![act];
    facts.base = Some("/srv".to_owned());
    facts.home = Some("/home/a".to_owned());
    facts.formats = vec!["text".to_owned()];
    facts.readings = vec!["file:read".parse().unwrap()];
    facts.table = Some("0".to_owned());
    facts.rows = Some("0".to_owned());
    let mut intent = Intent::new("a", "b", RiskLevel::Low, ["file:read"]).unwrap();
    intent.known = Some(facts.into());
    let written = intent.members().get(FACTS_KEY).unwrap().clone();
    let names: Vec<&str> = FACTS.iter().map(|[name, ..]| *name).collect();
    assert!(written.as_object().unwrap().keys().all(|name| names.contains(&name.as_str())), "{written}");
    assert_eq!(written.as_object().unwrap().len(), names.len());
}

/// The values that a clause over the fact compares.
const fn meaning(fact: Fact) -> &'static str {
    match fact {
        Fact::Tool => "the tool of an act, without its server",
        Fact::Server => "the server of the tool",
        Fact::Formats => "the forms that were read",
        Fact::Targets => "every operand but amounts",
        Fact::Recipients => "operands of the kind `recipient`",
        Fact::Paths => "operands of the kind `path`",
        Fact::Hosts => "operands of the kind `host`: bare hosts",
        Fact::Urls => "operands of the kind `url`: whole addresses",
        Fact::Tables => "operands of the kind `table`",
        Fact::Accounts => "operands of the kind `account`",
    }
}

/// The keys that a caller sets: the name, the type and the meaning of each.
const CALLERS: &[[&str; 3]] = &[
    [
        "environment",
        "string",
        "Where the action takes place. Hooks find it by the policy's [`[environments]`](policies.md#environments). `match.environment` reads it; a name for production raises the risk of everything but reads by one level.",
    ],
    [
        "requestedBy",
        "string, or list of strings",
        "People on whose behalf the agent asks. None of them can answer the escalation.",
    ],
    ["retryOf", "string", "Id of the proof record of this agent that the request repeats. The new record names it."],
    ["callId", "string", "The caller's own id of the request, 1 to 256 characters. Records can be looked up by it."],
    [
        "cwd",
        "string",
        "The absolute folder that relative paths of the request start from. Another value makes the request invalid, as for the next two.",
    ],
    ["home", "string", "The absolute folder that `~` and `$HOME` stand for."],
    [
        "links",
        "object",
        "The absolute paths to which links lead: with `{\"/srv/a\": \"/etc\"}`, `/srv/a/b` is also `/etc/b`.",
    ],
];

/// The keys that parsing adds.
const PARSED: &[[&str; 3]] = &[
    [
        "dataClassification",
        "string",
        "Class of the data: `PUBLIC`, `INTERNAL`, `CONFIDENTIAL` or `RESTRICTED`. `match.classification` reads it, but never below what the action and the capabilities imply. A word that is none of these counts as `RESTRICTED`.",
    ],
    ["operation", "string", "Operation of the primary capability."],
    ["resource", "string", "Resource of the primary capability."],
    [
        "target",
        "string, or list of strings",
        "The first recipient, path, host, table or account, as it was sent. Rules look at all of them (`facts.targets`). In a built intent it is the list of targets.",
    ],
    [
        "recordCount",
        "number",
        "Largest number of records that the request names. More than 1,000 raise the risk by one level, unless the request only concerns `information`.",
    ],
    [
        "amount",
        "number",
        "Sum of all amounts of money in the request; absent where one is unknown or their currencies differ. A transfer is at least MEDIUM up to 100, at least HIGH below 10,000, and CRITICAL otherwise. Without an amount a payment is at least HIGH, another transfer at least MEDIUM.",
    ],
    ["currency", "string", "Currency of the amount, as an ISO 4217 code."],
    ["parseConfidence", "number", "How sure the parse is, from 0 to 1."],
    ["riskFactors", "list of strings", "Reasons for the risk level, in words."],
    ["inputFormat", "string", "Form of the input: `text`, `tool_call`, `shell`, `sql`, `http` or `code`."],
    [
        "facts",
        "object",
        "Everything that the request names (below). The parser writes it; a caller's own value is not used.",
    ],
];

/// The facts of a request.
const FACTS: &[[&str; 3]] = &[
    [
        "acts",
        "list of objects",
        "What the request does, as `{does, operands?, open?, amounts?, commands?, command?, environments?, tool?, server?}`; at most 64 acts with 256 operands and 32 open parts. An act with `open` parts may act on more than its operands.",
    ],
    ["base", "string", "The folder that relative paths start from, where `cwd` states it."],
    ["home", "string", "The folder that `~` stands for, where `home` states it."],
    ["form", "number", "The form of the facts: 2. Records of earlier versions have none."],
    ["tool", "string", "The first tool that is called, without its server."],
    ["server", "string", "The server that this tool belongs to."],
    [
        "formats",
        "list of strings",
        "Forms that were read, the outermost first: `tool_call` and `shell` for a tool that runs a command line.",
    ],
    [
        "targets",
        "list of objects",
        "The recipients, paths, hosts, tables and accounts of all acts as `{kind, role, value, original?}`. `value` is the plain form, `original` what was sent where it differs.",
    ],
    ["amounts", "list of objects", "Every amount of money of all acts as `{value, currency?, count}`."],
    [
        "unread",
        "list of objects",
        "What could not be read in all acts, as `{kind, found}`. `kind` is `target`, `amount` or `text`.",
    ],
    [
        "readings",
        "list of strings",
        "Other capabilities that an unsure reading may mean; at most 4. A decision is the strictest over all of them.",
    ],
    ["table", "string", "SHA-256 of the table of words that English was read by, in hex."],
    ["rows", "string", "SHA-256 of the labeled rows that an operator adapted the table with, in hex."],
];

const EXAMPLE: &str = r#"```toml
[[rule]]
id = "small-payments-to-our-suppliers"
effect = "allow"
match = { capabilities = ["payment:transfer"], environment = ["production"], accounts = ["DE89*"] }
when = "has(context.amount) && double(context.amount) <= 50.0 && trust.tier >= 'T3'"
```

"#;

const NOTES: &str = "
A condition that reads a missing key is an error; ask with `has(context.amount)` first.

A context has at most 64 KiB of JSON and 32 levels.

How a request is read: [parsing.md](parsing.md). How rules match: [policies.md](policies.md).
";
