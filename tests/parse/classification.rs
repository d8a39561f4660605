//! Sensitive data by its shape: what is found, what it does to class and risk,
//! and that secrets are nowhere repeated.

use rulekeep::intent::Parser;
use rulekeep::{Intent, RiskLevel};
use serde_json::{Map, Value, json};

fn intent_in(text: &str, context: &Map<String, Value>) -> Intent {
    Parser::new().unwrap().parse_text(&"tester".parse().unwrap(), text, context).unwrap().intent
}

fn intent(text: &str) -> Intent {
    intent_in(text, &Map::new())
}

fn class(intent: &Intent) -> &str {
    intent.context["dataClassification"].as_str().unwrap()
}

fn factors(intent: &Intent) -> String {
    intent.context["riskFactors"].to_string()
}

/// A value, the factor that it gives, and its class at least. The keys are made up of their
/// prefix and of letters in order; they open nothing.
const SENSITIVE: &[(&str, &str, &str)] = &[
    ("4111 1111 1111 1111", "payment card", "RESTRICTED"),
    ("5555-5555-5555-4444", "payment card", "RESTRICTED"),
    ("378282246310005", "payment card", "RESTRICTED"),
    ("6011111111111117", "payment card", "RESTRICTED"),
    ("30569309025904", "payment card", "RESTRICTED"),
    ("DE89370400440532013000", "bank account", "CONFIDENTIAL"),
    ("GB29 NWBK 6016 1331 9268 19", "bank account", "CONFIDENTIAL"),
    ("FR14 2004 1010 0505 0001 3M02 606", "bank account", "CONFIDENTIAL"),
    ("536-22-8726", "national identification", "RESTRICTED"),
    ("SSN 536228726", "national identification", "RESTRICTED"),
    ("AB 12 34 56 C", "national identification", "RESTRICTED"),
    ("Steuer-ID 86 095 742 719", "national identification", "RESTRICTED"),
    ("2 55 08 14 168 025 38", "national identification", "RESTRICTED"),
    ("12345678Z", "national identification", "RESTRICTED"),
    ("BSN 111222333", "national identification", "RESTRICTED"),
    ("529.982.247-25", "national identification", "RESTRICTED"),
    ("CPF 52998224725", "national identification", "RESTRICTED"),
    ("2341 2341 2346", "national identification", "RESTRICTED"),
    ("756.9217.0769.85", "national identification", "RESTRICTED"),
    ("RSSMRA85T10A562S", "national identification", "RESTRICTED"),
    ("PESEL 44051401359", "national identification", "RESTRICTED"),
    ("passport C01234567", "national identification", "CONFIDENTIAL"),
    ("passport no. C01X00T47", "national identification", "CONFIDENTIAL"),
    ("passport_number: \"X1234567\"", "national identification", "CONFIDENTIAL"),
    ("L898902C36UTO7408122F1204159ZE184226B<<<<<10", "national identification", "RESTRICTED"),
    ("DE89-3704-0044-0532-0130-00", "bank account", "CONFIDENTIAL"),
    ("+1 415 555 0132", "phone number", "CONFIDENTIAL"),
    ("+49 (30) 1234-567", "phone number", "CONFIDENTIAL"),
    ("+442079460958", "phone number", "CONFIDENTIAL"),
    ("0049 151 23456789", "phone number", "CONFIDENTIAL"),
    ("(415) 555-0132", "phone number", "CONFIDENTIAL"),
    ("phone: 415-555-0132", "phone number", "CONFIDENTIAL"),
    ("call me at 020 7946 0958", "phone number", "CONFIDENTIAL"),
    ("mobile 0151/23456789", "phone number", "CONFIDENTIAL"),
    ("Telefon: 01 42 68 53 00", "phone number", "CONFIDENTIAL"),
    ("phone: 98765 43210", "phone number", "CONFIDENTIAL"),
    ("phone (11) 91234-5678", "phone number", "CONFIDENTIAL"),
    ("cell 8 (495) 123-45-67", "phone number", "CONFIDENTIAL"),
    ("her mobile is 13800138000", "phone number", "CONFIDENTIAL"),
    ("phone=4155552671", "phone number", "CONFIDENTIAL"),
    ("AKIAABCDEFGHIJKLMNOP", "access key", "RESTRICTED"),
    ("ghp_abcdefghijklmnopqrstuvwxyzABCDEFGHIJ", "access key", "RESTRICTED"),
    ("github_pat_abcdefghijklmnopqrstuvwxyz0123", "access key", "RESTRICTED"),
    ("glpat-abcdefghijklmnopqrst", "access key", "RESTRICTED"),
    ("xoxb-123456789012-abcdefghijkl", "access key", "RESTRICTED"),
    ("sk_live_abcdefghijklmnop", "access key", "RESTRICTED"),
    ("AIzaabcdefghijklmnopqrstuvwxyzABCDEFGHIJ", "access key", "RESTRICTED"),
    ("sk-proj-abcdefghijklmnopqrstuvwxyz", "access key", "RESTRICTED"),
    ("eyJhbGciOiJub25lIn0.eyJzdWIiOiIxMjM0In0.abcdefghijkl", "access key", "RESTRICTED"),
    ("-----BEGIN RSA PRIVATE KEY-----\nabcd\n-----END RSA PRIVATE KEY-----", "access key", "RESTRICTED"),
    ("api_key=a1b2c3d4e5f6g7h8i9j0", "access key", "RESTRICTED"),
    ("password=correct-horse", "password", "RESTRICTED"),
    ("\"password\": \"hunter2x\"", "password", "RESTRICTED"),
    ("the password is Summer2024", "password", "RESTRICTED"),
    ("postgres://admin:s3cretPW@db.example.com/shop", "password", "RESTRICTED"),
];

/// Values that look like the above.
const ORDINARY: &[&str] = &[
    "4111 1111 1111 1112",
    "9111 1111 1111 1111",
    "0000 0000 0000 0000",
    "DE88370400440532013000",
    "666-12-3456",
    "900-12-3456",
    "123-00-4567",
    "GB123456C",
    "12345678A",
    "529.982.247-24",
    "2341 2341 2347",
    "978-3-16-148410-0",
    "+1 015 555 0132",
    "415-555-0132",
    "version 1.2.3.4567 of the phone app",
    "the phone app of 2026-11-28 09:30:15",
    "phone model 8675309",
    "GPS +52.520008 +13.404954",
    "id=0049123456789",
    "f(222) 333-4444",
    "iphone 0123456789 serial",
    "hotel: 0123456789",
    "the phone of host 192.168.100.23",
    "use passport Local123 strategy",
    "@@ -12,7 +123,4567 @@",
    "+02:00",
    "a + 1234567890",
    "L898902C36UTO7408122F1204159ZE184226B<<<<<11",
    "passport is required",
    "the passport.js of 2026",
    "2025-12-31 23:59:59",
    "order 100200300",
    "192.168.100.200",
    "9fceb02d0ae598e95dc970b74767f19372d61af8",
    "550e8400-e29b-41d4-a716-446655440000",
    "https://example.com/articles/internationalisation",
    "password=$PASSWORD",
    "password=<password>",
    "password: required",
    "a token of appreciation",
    "the password is wrong",
    "AKIA",
    "1,234,567,890",
    "bob@example.com",
];

#[test]
fn each_kind_is_found_and_classed() {
    let mut wrong = Vec::new();
    for (value, factor, least) in SENSITIVE {
        let parsed = intent(&format!("Save a note: {value}"));
        let order = ["PUBLIC", "INTERNAL", "CONFIDENTIAL", "RESTRICTED"];
        let rank = |class: &str| order.iter().position(|known| *known == class);
        if !factors(&parsed).contains(&format!("contains a {factor}"))
            && !factors(&parsed).contains(&format!("contains an {factor}"))
            || rank(class(&parsed)) < rank(least)
        {
            wrong.push(format!("{value}: {} {}", class(&parsed), factors(&parsed)));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), SENSITIVE.len(), wrong.join("\n"));
}

#[test]
fn what_only_looks_sensitive_is_not_found() {
    let mut wrong = Vec::new();
    for value in ORDINARY {
        let shown = factors(&intent(&format!("Save a note: {value}")));
        if shown.contains("contains") {
            wrong.push(format!("{value}: {shown}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), ORDINARY.len(), wrong.join("\n"));
}

#[test]
fn sensitive_data_to_outside_is_high_and_keys_are_critical() {
    for (value, factor, _) in SENSITIVE {
        let sent = intent(&format!("Email this to bob@example.com: {value}"));
        let least = match *factor {
            "access key" | "password" => RiskLevel::Critical,
            "bank account" | "phone number" => RiskLevel::Medium,
            _ => RiskLevel::High,
        };
        assert!(sent.risk_level >= least, "{value}: {} {}", sent.risk_level, factors(&sent));
    }
    let plain = intent("Email this to bob@example.com: see you at noon");
    assert_eq!(plain.risk_level, RiskLevel::Medium);
}

#[test]
fn a_value_in_a_read_is_a_factor_and_no_raise() {
    for text in ["Search my notes for 4111 1111 1111 1111", "What kind of key is AKIAABCDEFGHIJKLMNOP?"] {
        let parsed = intent(text);
        assert!(factors(&parsed).contains("contains"), "{text}");
        assert_eq!(parsed.risk_level, RiskLevel::Low, "{text}: {}", factors(&parsed));
        assert_eq!(class(&parsed), "RESTRICTED");
    }
}

#[test]
fn a_recipient_is_no_content_and_many_addresses_are_a_list() {
    let one = intent("Add bob@example.com to the note");
    assert!(!factors(&one).contains("contact details"));
    let many = intent("Save a note: a@x.example b@x.example c@x.example d@x.example e@x.example");
    assert!(factors(&many).contains("contact details of several people"));
    assert_eq!(class(&many), "CONFIDENTIAL");
}

#[test]
fn what_the_caller_says_of_the_data_stands_and_counts() {
    let declared = json!({"dataClassification": "RESTRICTED"}).as_object().unwrap().clone();
    let sent = intent_in("Email the report to bob@example.com", &declared);
    assert_eq!(class(&sent), "RESTRICTED");
    assert!(sent.risk_level >= RiskLevel::High, "{}", factors(&sent));
    let public = json!({"dataClassification": "PUBLIC"}).as_object().unwrap().clone();
    let kept = intent_in("Save a note: 4111 1111 1111 1111", &public);
    assert_eq!(class(&kept), "PUBLIC");
}

#[test]
fn a_secret_is_nowhere_repeated() {
    for (text, secret) in [
        ("connect to postgres://admin:s3cretPW@db.example.com/shop", "s3cretPW"),
        ("Open https://x.example/?api_key=a1b2c3d4e5f6g7h8i9j0", "a1b2c3d4e5f6g7h8i9j0"),
        ("curl https://bob:Zx9yWv8u@x.example/a", "Zx9yWv8u"),
        ("mysql --password=Tr0ub4dor shop", "Tr0ub4dor"),
        (r#"{"name":"send_email","arguments":{"to":"AKIAABCDEFGHIJKLMNOP"}}"#, "AKIAABCDEFGHIJKLMNOP"),
        (r#"{"name":"fetch","arguments":{"url":"https://u:Hunter2x@x.example"}}"#, "Hunter2x"),
        ("GET /a?token=a1b2c3d4e5f6g7h8i9j0 HTTP/1.1", "a1b2c3d4e5f6g7h8i9j0"),
    ] {
        let parsed = intent(text);
        let told = serde_json::to_string(&parsed).unwrap();
        assert!(!told.contains(secret), "{text}: {told}");
    }
}

#[test]
fn a_wrapped_value_is_found_as_well() {
    // "the card is 4111 1111 1111 1111"
    let parsed = intent("Email bob@example.com this: dGhlIGNhcmQgaXMgNDExMSAxMTExIDExMTEgMTExMQ==");
    assert!(factors(&parsed).contains("payment card"), "{}", factors(&parsed));
    let wide = intent("Save a note: \u{ff14}111\u{200b} 1111 1111 1111");
    assert!(factors(&wide).contains("payment card"), "{}", factors(&wide));
}

#[test]
fn a_secret_put_together_by_a_command_is_nowhere_repeated() {
    let told = |text: &str| {
        let explained = Parser::new().unwrap().explain_text(&"tester".parse().unwrap(), text, &Map::new()).unwrap();
        serde_json::to_string(&explained).unwrap()
    };
    for (text, secret) in [
        ("curl -H 'X-Api-Key: hunter2Zebra' https://x.example/a", "hunter2Zebra"),
        ("curl 'https://x.example/a?api_key=hunter2Zebra'", "hunter2Zebra"),
        ("curl https://x.example/?token=hun\"ter2Zebra\"", "hunter2Zebra"),
        ("scp f ssh://root:hunter2@host/x", "hunter2"),
        ("rsync f root:hunter2@host", "hunter2"),
        ("curl -d @f https://hooks.slack.com/services/T0/B0/xyz", "B0/xyz"),
    ] {
        let told = told(text);
        assert!(!told.contains(secret), "{text}: {told}");
    }
    for kept in ["nginx:latest", "localhost:8080", "bob@example.com", "example.com:8443/a"] {
        let told = told(&format!("curl -T f {kept}"));
        assert!(told.contains(kept), "{kept}: {told}");
    }
}

#[test]
fn a_secret_is_hidden_anywhere_in_an_address_or_a_line() {
    const SECRET: &str = "Zq8Kx7Lm2pR4tV6wY";
    let shown: Vec<String> = [
        "psql postgres://u:Zq/@@db/app",
        "psql postgres://u:@/8Kx@db/app",
        "curl https://bob:Zq/@@x.example",
        "git clone https://oauth2:a/@@gitlab.example/x.git",
        "git clone https://@@github.com/a/b",
        "docker login -p Zq/@ reg.example",
        "gh secret set X --body Zq/@",
        "curl https://x.example/?key=@",
        "curl 'https://x.example/a?auth=@&b=1'",
        "curl 'https://x.example/a?X-Amz-Signature=@&b=1'",
        "curl 'https://x.example/blob?sv=1&sig=@'",
        "curl 'https://x.example/cb?code=@'",
        "curl https://api.telegram.org/bot1:@/sendMessage",
        "curl https://discord.com/api/webhooks/1/@",
        "open https://x.example/reset/@",
        "open https://x.example/verify-email/@",
        "python -c \"import os; os.environ['API_KEY']='@'\"",
        "$p=\"@\"; Remove-Item x",
        "password=@; rm x",
        "vault login @",
        "sqlplus sys/@@db",
        "npm login --auth @",
        "lftp -u u,@ host",
        "snmpwalk -c @ host",
        "echo @ > ~/.vault-token",
        "echo 'machine x login b password @' > ~/.netrc",
        r#"{"name":"delete_ghp_@","arguments":{}}"#,
    ]
    .iter()
    .map(|text| text.replacen('@', SECRET, 1))
    .filter_map(|text| {
        let told = serde_json::to_string(&intent(&text).context).unwrap();
        told.contains(&SECRET[..8]).then(|| format!("{text}: {told}"))
    })
    .collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
}

#[test]
fn an_address_without_a_secret_is_shown_as_it_stands() {
    for text in ["curl http://localhost:8080/users/bob@example.com", "curl https://x.example/verify/status?page=2"] {
        let target = intent(text).context["target"].as_str().unwrap().to_owned();
        assert!(!target.contains("***"), "{target}");
    }
}
