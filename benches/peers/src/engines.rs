//! The engines, each ready to decide numbered requests.

use std::error::Error;

use casbin::{CoreApi, DefaultModel, Enforcer, MemoryAdapter, MgmtApi};
use cedar_policy::{Authorizer, Context, Decision as CedarDecision, Entities, PolicySet as CedarSet, Request};
use regorus::{CompiledPolicy, Engine as RegoEngine, Value};
use rulekeep::policy::PolicyRequest;
use rulekeep::trust::TrustSnapshot;
use rulekeep::{Decision, Intent, PolicySet, RiskLevel, Tier};

/// An engine with its rules loaded and its requests prepared.
pub trait Engine {
    fn name(&self) -> &'static str;
    /// Returns whether the request with this number is allowed.
    fn decide(&mut self, request: usize) -> bool;
}

/// Every engine, with one rule for each action.
pub fn all(actions: &[String], requests: &[&str]) -> Result<Vec<Box<dyn Engine>>, Box<dyn Error>> {
    Ok(vec![
        Box::new(Rulekeep::new(actions, requests)?),
        Box::new(Cedar::new(actions, requests)?),
        Box::new(Rego::new(actions, requests)?),
        Box::new(Casbin::new(actions, requests)?),
    ])
}

struct Rulekeep {
    policies: PolicySet,
    intents: Vec<Intent>,
}

impl Rulekeep {
    fn new(actions: &[String], requests: &[&str]) -> Result<Self, Box<dyn Error>> {
        let rule = |(number, action): (usize, &String)| {
            format!(r#"{{"id":"r{number}","effect":"allow","match":{{"actions":["{action}"]}}}}"#)
        };
        let rules: Vec<String> = actions.iter().enumerate().map(rule).collect();
        let policies = PolicySet::from_json(&format!(r#"{{"name":"bench","rule":[{}]}}"#, rules.join(",")))?;
        let intent = |action: &&str| Intent::new("alice", action, RiskLevel::Low, ["document:read"]);
        Ok(Self { policies, intents: requests.iter().map(intent).collect::<Result<_, _>>()? })
    }
}

impl Engine for Rulekeep {
    fn name(&self) -> &'static str {
        "rulekeep"
    }

    fn decide(&mut self, request: usize) -> bool {
        let request = PolicyRequest::new(&self.intents[request], TrustSnapshot::new(Tier::T3.middle(), Tier::T3));
        self.policies.evaluate(&request).is_ok_and(|verdict| verdict.decision == Decision::Allow)
    }
}

struct Cedar {
    authorizer: Authorizer,
    policies: CedarSet,
    entities: Entities,
    requests: Vec<Request>,
}

impl Cedar {
    fn new(actions: &[String], requests: &[&str]) -> Result<Self, Box<dyn Error>> {
        let rule = |action: &String| format!(r#"permit(principal, action == Action::"{action}", resource);"#);
        let text: Vec<String> = actions.iter().map(rule).collect();
        let request = |action: &&str| -> Result<Request, Box<dyn Error>> {
            let (principal, action, resource) =
                (r#"Agent::"alice""#.parse()?, format!(r#"Action::"{action}""#).parse()?, r#"Document::"d""#.parse()?);
            Ok(Request::new(principal, action, resource, Context::empty(), None)?)
        };
        Ok(Self {
            authorizer: Authorizer::new(),
            policies: text.join("\n").parse()?,
            entities: Entities::empty(),
            requests: requests.iter().map(request).collect::<Result<_, _>>()?,
        })
    }
}

impl Engine for Cedar {
    fn name(&self) -> &'static str {
        "cedar-policy"
    }

    fn decide(&mut self, request: usize) -> bool {
        let answer = self.authorizer.is_authorized(&self.requests[request], &self.policies, &self.entities);
        answer.decision() == CedarDecision::Allow
    }
}

struct Rego {
    policy: CompiledPolicy,
    inputs: Vec<Value>,
}

impl Rego {
    fn new(actions: &[String], requests: &[&str]) -> Result<Self, Box<dyn Error>> {
        let rule = |action: &String| format!("allow if input.action == \"{action}\"\n");
        let text: String = actions.iter().map(rule).collect();
        let mut engine = RegoEngine::new();
        engine.add_policy("bench.rego".to_owned(), format!("package bench\nimport rego.v1\ndefault allow := false\n{text}"))?;
        let policy = engine.compile_with_entrypoint(&"data.bench.allow".into())?;
        let input = |action: &&str| Value::from_json_str(&format!(r#"{{"agent":"alice","action":"{action}"}}"#));
        Ok(Self { policy, inputs: requests.iter().map(input).collect::<Result<_, _>>()? })
    }
}

impl Engine for Rego {
    fn name(&self) -> &'static str {
        "regorus"
    }

    fn decide(&mut self, request: usize) -> bool {
        self.policy.eval_with_input(self.inputs[request].clone()).is_ok_and(|value| value == Value::from(true))
    }
}

struct Casbin {
    enforcer: Enforcer,
    requests: Vec<String>,
}

impl Casbin {
    fn new(actions: &[String], requests: &[&str]) -> Result<Self, Box<dyn Error>> {
        const MODEL: &str = "[request_definition]\nr = sub, act\n[policy_definition]\np = id, act\n\
            [policy_effect]\ne = some(where (p.eft == allow))\n[matchers]\nm = r.act == p.act\n";
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let enforcer = runtime.block_on(async {
            let model = DefaultModel::from_str(MODEL).await?;
            let mut enforcer = Enforcer::new(model, MemoryAdapter::default()).await?;
            let rules = actions.iter().enumerate().map(|(number, action)| vec![format!("r{number}"), action.clone()]);
            enforcer.add_policies(rules.collect()).await?;
            Ok::<_, casbin::Error>(enforcer)
        })?;
        Ok(Self { enforcer, requests: requests.iter().map(|action| (*action).to_owned()).collect() })
    }
}

impl Engine for Casbin {
    fn name(&self) -> &'static str {
        "casbin"
    }

    fn decide(&mut self, request: usize) -> bool {
        self.enforcer.enforce(("alice", self.requests[request].as_str())).unwrap_or(false)
    }
}
