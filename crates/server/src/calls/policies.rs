//! The calls on policy sets.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::call::Call;
use super::params::given;
use super::spec::{Spec, Verb};
use crate::gateway::Gateway;
use rulekeep::agent::AgentId;
use rulekeep::policy::PolicySource;
use rulekeep::policy::{PolicyFormat, Problem, Severity};
use rulekeep::preview::{Replay as Replayed, ReplayRange, ShadowReport};
use rulekeep::proof::Digest;
use rulekeep::system::Timestamp;
use rulekeep::{Error, PolicySet};

/// A policy document to validate.
#[derive(Deserialize, ToSchema)]
pub(super) struct Validate {
    /// The document, at most 4 MiB.
    text: String,
    format: PolicyFormat,
}

impl Call for Validate {
    const SPEC: Spec =
        Spec::post("policy/validate", "/admin/policies/validate", "Checks a policy document and lists its problems")
            .large();
    type Answer = PoliciesValidated;

    fn run(self, _: &Gateway) -> Result<PoliciesValidated, Error> {
        let problems = PolicySet::validate(&self.text, self.format);
        let valid = !problems.iter().any(|problem| problem.severity == Severity::Error);
        Ok(PoliciesValidated { valid, problems })
    }
}

/// The problems of a document.
#[derive(Serialize, ToSchema)]
pub(super) struct PoliciesValidated {
    /// Whether the document would load.
    valid: bool,
    problems: Vec<Problem>,
}

/// A policy document, or several layered documents.
#[derive(Deserialize, ToSchema)]
pub(super) struct Load {
    /// The document, at most 4 MiB.
    text: Option<String>,
    format: Option<PolicyFormat>,
    /// The layered documents, the base first.
    #[serde(default, deserialize_with = "layers")]
    #[schema(min_items = 1)]
    layers: Option<Vec<LayerForm>>,
}

impl Call for Load {
    const SPEC: Spec =
        Spec::of(Verb::Put, "policy/load", "/admin/policies", "Loads a policy set").large().errors(&[409, 422]);
    type Answer = PoliciesLoaded;

    fn run(self, gateway: &Gateway) -> Result<PoliciesLoaded, Error> {
        let set = set(self.text, self.format, self.layers)?;
        let (digest, rules, warnings) = (set.digest(), set.len(), set.warnings().to_vec());
        gateway.governor().policies().load(set)?;
        let left_behind = gateway.governor().escalations().left_behind();
        Ok(PoliciesLoaded { digest, rules, warnings, left_behind: Some(left_behind).filter(|count| *count > 0) })
    }
}

/// The policy set that was loaded.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PoliciesLoaded {
    digest: Digest,
    rules: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Problem>,
    /// The number of escalations that can be neither approved nor claimed, because they were asked for under other
    /// policies.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_behind: Option<u64>,
}

/// No parameters.
#[derive(Deserialize, ToSchema)]
pub(super) struct Get {}

impl Call for Get {
    const SPEC: Spec = Spec::get("policy/get", "/admin/policies", "Returns the policy set in force");
    type Answer = PoliciesShown;

    fn run(self, gateway: &Gateway) -> Result<PoliciesShown, Error> {
        let set = gateway.governor().policies().current();
        let documents = set.documents().to_vec();
        Ok(PoliciesShown { name: set.name().to_owned(), digest: set.digest(), rules: set.len(), documents })
    }
}

/// The policy set in force: its digest, its rules, and its documents.
#[derive(Serialize, ToSchema)]
pub(super) struct PoliciesShown {
    name: String,
    digest: Digest,
    rules: usize,
    documents: Vec<PolicySource>,
}

/// A candidate policy set, and the records to replay it on.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Replay {
    /// The document, at most 4 MiB.
    text: Option<String>,
    format: Option<PolicyFormat>,
    /// The layered documents, the base first.
    #[serde(default, deserialize_with = "layers")]
    #[schema(min_items = 1)]
    layers: Option<Vec<LayerForm>>,
    agent_id: Option<AgentId>,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
}

impl Call for Replay {
    const SPEC: Spec = Spec::post(
        "policy/replay",
        "/admin/policies/replay",
        "Decides past requests again under a candidate policy set",
    )
    .large()
    .errors(&[404, 422])
    .queried(&["agentId", "from", "to"]);
    type Answer = Replayed;

    fn run(self, gateway: &Gateway) -> Result<Replayed, Error> {
        if let (Some(from), Some(to)) = (self.from, self.to)
            && from > to
        {
            return Err(Error::query("from", "is after to"));
        }
        let mut range = given(ReplayRange::all(), self.agent_id, ReplayRange::of_agent);
        range = given(range, self.from, ReplayRange::from);
        range = given(range, self.to, ReplayRange::to);
        gateway.governor().policies().replay(&set(self.text, self.format, self.layers)?, &range, |_| {})
    }
}

/// A shadow policy set to install; `clear` removes it; without parameters it stays.
#[derive(Default, Deserialize, Serialize, ToSchema)]
pub struct Shadow {
    /// True to remove the shadow set.
    pub clear: Option<bool>,
    /// The document, at most 4 MiB.
    pub text: Option<String>,
    /// The format of the document.
    pub format: Option<PolicyFormat>,
    /// The layered documents, the base first.
    #[serde(default, deserialize_with = "layers")]
    #[schema(min_items = 1)]
    pub layers: Option<Vec<LayerForm>>,
}

impl Call for Shadow {
    const SPEC: Spec = Spec::post(
        "policy/shadow",
        "/admin/policies/shadow",
        "Sets or clears the shadow policy set, and reports its differences",
    )
    .large()
    .errors(&[422]);
    type Answer = Shadowed;

    /// Under `allOf`, because all of them may be absent.
    fn run(self, gateway: &Gateway) -> Result<Shadowed, Error> {
        if self.clear.unwrap_or_default() {
            gateway.governor().policies().shadow(None);
        } else if self.text.is_some() || self.layers.is_some() {
            gateway.governor().policies().shadow(Some(set(self.text, self.format, self.layers)?));
        }
        Ok(Shadowed { shadow: gateway.governor().policies().shadow_report() })
    }
}

/// The shadow policy set.
#[derive(Deserialize, Serialize, ToSchema)]
pub struct Shadowed {
    /// The state of the shadow set; `null` if there is none.
    #[schema(required)]
    pub shadow: Option<ShadowReport>,
}

/// One of several layered documents.
#[derive(Deserialize, Serialize, ToSchema)]
pub struct LayerForm {
    /// The document, at most 4 MiB.
    pub text: String,
    /// The format of the document.
    pub format: PolicyFormat,
}

/// Accepts objects only: an array would be read as the fields in order.
fn layers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<LayerForm>>, D::Error> {
    let wrong = |_| serde::de::Error::custom("expected a list of {text, format}, the base first");
    let layers = Vec::<Map<String, Value>>::deserialize(deserializer).map_err(wrong)?;
    let layers = layers.into_iter().map(|layer| serde_json::from_value(Value::Object(layer)));
    Ok(Some(layers.collect::<Result<Vec<_>, _>>().map_err(|error| wrong(serde::de::Error::custom(error)))?))
}

/// Loads a single document or several layered ones.
fn set(text: Option<String>, format: Option<PolicyFormat>, layers: Option<Vec<LayerForm>>) -> Result<PolicySet, Error> {
    let Some(layers) = layers else {
        let text = text.ok_or_else(|| Error::input("text", "is missing"))?;
        let format = format.ok_or_else(|| Error::input("format", "is missing"))?;
        return PolicySet::parse(&text, format, DOCUMENT);
    };
    if layers.is_empty() {
        return Err(Error::input("layers", "expected a list of {text, format}, the base first"));
    }
    let sets: Vec<PolicySet> = layers
        .iter()
        .enumerate()
        .map(|(place, layer)| PolicySet::parse(&layer.text, layer.format, &format!("layer {}", place + 1)))
        .collect::<Result<_, Error>>()?;
    PolicySet::layered(&sets)
}

/// The name in messages of a policy document without a file.
const DOCUMENT: &str = "text";
