//! The gateway as a process of its own, for programs that start it: governance in memory or in a folder, and one of
//! the two entry points.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use rulekeep::policy::{PolicyFormat, PolicySet};
use rulekeep::{Agent, Governor, Tier};
use rulekeep_mcp::{CallError, Calls, Downstream, Governed, ProxyOptions, WrapOptions, proxy, wrap};
use rulekeep_server::Access;
use rulekeep_server::gateway::{Gateway, KeyDraft, Plan, Scope};
use serde_json::Value;
use tokio::net::TcpListener;

/// The environment variable that makes this program a gateway.
pub(crate) const ROLE: &str = "RULEKEEP_MCP_TEST_ROLE";

const POLICIES: &str = r#"
name = "peers"

[reviewers]
ops = ["ann"]

[[rule]]
id = "reads"
effect = "allow"
match.capabilities = ["*:read", "email:send"]

[[rule]]
id = "no-deletions"
effect = "deny"
match.capabilities = ["*:delete"]

[[rule]]
id = "mail-needs-ops"
effect = "escalate"
match.capabilities = ["email:send"]
reviewer = "ops"
"#;

const OPEN: &str = r#"
name = "conformance"

[[rule]]
id = "all"
effect = "allow"
match.capabilities = ["*:*"]
"#;

/// Governance in this process.
struct Office {
    gateway: Gateway,
    key: Access,
}

impl Calls for Office {
    fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        let answer = self.key.call(&self.gateway, method, &params.to_string());
        let answer = answer.map_err(|error| CallError::new(error.code(), error.to_string()))?;
        Ok(serde_json::from_str(answer.get()).unwrap())
    }
}

/// Serves until the client disconnects: `wrap COMMAND...`, `proxy URL`, or `listen URL`, which prints the address. With
/// `open-` before it, every call is granted.
pub(crate) fn run(role: &str, arguments: &[String]) {
    let (role, text) = match role.strip_prefix("open-") {
        Some(role) => (role, OPEN),
        None => (role, POLICIES),
    };
    let policies = PolicySet::parse(text, PolicyFormat::Toml, "tests.toml").unwrap();
    let governor = Governor::builder().policies(policies).open_in_memory().unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T5)).unwrap();
    let gateway = Gateway::new(&governor).unwrap();
    let plan = Plan::enterprise(1_000_000, 1_000_000).unwrap();
    let key = gateway.keys().create(KeyDraft::new(Scope::Admin, plan)).unwrap();
    let calls = Arc::new(Office { gateway, key: Access::Key(key.key.expose().to_owned()) });
    let governed = Governed::new("wiki").agent("a").user_reviewer("ann").wait(Duration::ZERO);
    let url = || arguments[0].clone();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        match role {
            "wrap" => wrap(calls, WrapOptions::new(governed, arguments)).await.unwrap(),
            "proxy" => proxy(calls, ProxyOptions::new(governed, url(), Downstream::Stdio)).await.unwrap(),
            "listen" => {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                println!("http://{}/mcp", listener.local_addr().unwrap());
                std::io::stdout().flush().unwrap();
                proxy(calls, ProxyOptions::new(governed, url(), Downstream::Http(listener))).await.unwrap();
            }
            other => panic!("no such role: {other}"),
        }
    });
}
