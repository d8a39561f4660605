//! The page on the context of an intent, made from the keys, facts and names that this library knows.

use crate::fact::Fact;
use crate::generated::{check_page, table};
use crate::{PolicySet, condition};
use rulekeep_types::context_key::{CALLERS, FACTS, PARSED};

#[test]
fn the_page_lists_every_key_and_every_name() {
    let keys = |head: &str, prefix: &str, known: &[[&str; 3]]| {
        let row = |[name, kind, meaning]: &[&str; 3]| [format!("`{prefix}{name}`"), (*kind).into(), (*meaning).into()];
        table([head, "type", "meaning"], known.iter().map(row))
    };
    let clauses = Fact::CLAUSES
        .iter()
        .map(|(clause, key, fact)| [format!("`{clause}`"), format!("`{key}`"), fact.meaning().to_owned()]);
    let rest = [
        EXAMPLE,
        "## Keys that a caller sets\n\n",
        &keys("key", "", CALLERS),
        "\nEvery other key is yours: `match.context`, conditions and limits can read it.\n",
        "\n## Keys that parsing adds\n\n",
        "A caller's own value under one of these names stands, except for `facts`.\n\n",
        &keys("key", "", PARSED),
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
