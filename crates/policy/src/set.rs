//! A policy set: loaded and checked as a whole, or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::alert::AlertRule;
use super::binding::{self, Binding};
use super::canonical;
use super::check;
use super::document::Document;
use super::environments::Environments;
use super::evaluate::Engine;
use super::explain::RuleTrace;
use super::layers::Layers;
use super::limit::{LimitUse, Meter, SharedLimitTerms, Unused, UsedByRule};
use super::naming::DocumentNames;
use super::request::PolicyRequest;
use super::rule::{Effect, Rule};
use super::verdict::{Need, PolicyVerdict};
use rulekeep_types::document::{self, File, PolicyFormat, refusal};
use rulekeep_types::facts::{Facts, Kinds};
use rulekeep_types::{
    AgentId, Decision, DenialClass, DeniedPath, Digest, Error, Problem, Severity, Tier, TrustSnapshot, risk_floor,
    usual_risk,
};

/// The rules that decide what agents may do. Cloning is cheap.
///
/// A document is checked completely when it is loaded. A single wrong rule refuses the whole set; the error gives the
/// place and suggests what was probably meant.
///
/// ```
/// use rulekeep::PolicySet;
///
/// let policies = PolicySet::from_toml(r#"
///     name = "support"
///
///     [[rule]]
///     id = "reading-is-fine"
///     effect = "allow"
///     match = { agents = ["support-*"], capabilities = ["*:read"], risk = { max = "MEDIUM" } }
///     constraints = { maxRecords = 100 }
///
///     [[rule]]
///     id = "refunds-need-a-person"
///     effect = "escalate"
///     reviewer = "finance-lead"
///     reason = "Refunds move money."
///     match = { actions = ["refund_*"], capabilities = ["payment:*"] }
/// "#)?;
/// assert_eq!((policies.name(), policies.len()), ("support", 2));
///
/// let mistyped = r#"{"name": "x", "rule": [{"id": "a", "effect": "deny", "match": {"capabilities": ["payment:trasnfer"]}}]}"#;
/// let error = PolicySet::from_json(mistyped).unwrap_err();
/// assert!(error.to_string().contains("did you mean \"payment:transfer\"?"));
/// # Ok::<(), rulekeep::Error>(())
/// ```
#[derive(Clone)]
pub struct PolicySet(Arc<Inner>);

struct Inner {
    name: String,
    digest: Digest,
    content: Digest,
    /// The documents that the set was loaded from, the base first.
    sources: Vec<PolicySource>,
    warnings: Vec<Problem>,
    grants_something: bool,
    /// Set if a rule has an `environment` clause.
    names_environments: bool,
    environments: Environments,
    engine: Engine,
    alerts: Vec<AlertRule>,
}

/// A document that a policy set was loaded from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PolicySource {
    /// The document's name in messages.
    pub name: String,
    /// The document's format, TOML or JSON.
    pub format: PolicyFormat,
    /// The complete text of the document.
    pub text: String,
}

impl PolicySet {
    /// Maximum size of a document, in bytes: enough for 10,000 plainly written rules.
    pub const MAX_BYTES: usize = 4 * 1024 * 1024;

    /// The policy set that ships with this library. It decides by agent tier and risk; see
    /// `docs/reference/recommended-policies.md`.
    ///
    /// # Errors
    ///
    /// None in practice: the tests load this set.
    pub fn recommended() -> Result<Self, Error> {
        Self::parse(RECOMMENDED, PolicyFormat::Toml, "recommended.toml")
    }

    /// Loads a set from TOML text.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] with every problem found.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        Self::parse(text, PolicyFormat::Toml, "toml")
    }

    /// Loads a set from JSON text.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] with every problem found.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        Self::parse(text, PolicyFormat::Json, "json")
    }

    /// Loads a set from text; `name` identifies the document in messages.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] with every problem found.
    pub fn parse(text: &str, format: PolicyFormat, name: &str) -> Result<Self, Error> {
        Self::of(vec![PolicySource { name: name.to_owned(), format, text: text.to_owned() }])
    }

    /// Layers policy sets, the base first: for example a company's, a team's and an agent's.
    ///
    /// A later set may only narrow what the earlier sets grant:
    ///
    /// * Its deny, escalate and degrade rules apply like those of the base.
    /// * Its constraints tighten. A constraint under a key of the documents' own has no known direction and must keep
    ///   the earlier value; a rule that sets another value denies what it matches, with a warning.
    /// * Its allow rules grant only capabilities that every earlier set lists under `delegates`.
    /// * It may remove people from a list of reviewers, and add alerts.
    ///
    /// Rule ids must be unique across all sets.
    ///
    /// ```
    /// use rulekeep::PolicySet;
    ///
    /// let base = PolicySet::from_toml("name = \"base\"\ndelegates = [\"web:read\"]\n[[rule]]\nid = \"mail\"\neffect = \"allow\"\nmatch.capabilities = [\"email:*\"]")?;
    /// let team = PolicySet::from_toml("name = \"team\"\n[[rule]]\nid = \"no-sending\"\neffect = \"deny\"\nmatch.capabilities = [\"email:send\"]")?;
    /// assert_eq!(PolicySet::layered(&[base, team])?.len(), 2);
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] if two rules have the same id, if the list is empty, or if a later set leaves nobody to
    /// answer for a reviewer.
    pub fn layered(sets: &[Self]) -> Result<Self, Error> {
        Self::of(sets.iter().flat_map(|set| set.0.sources.iter().cloned()).collect())
    }

    /// Loads a set from its documents, the base first.
    pub fn of(sources: Vec<PolicySource>) -> Result<Self, Error> {
        let mut layers = Layers::default();
        let mut content = Sha256::new();
        for source in &sources {
            let (document, problems) = read(&source.text, source.format, &mut content);
            let Some(document) = document.filter(|_| !has_errors(&problems)) else {
                return Err(refusal("policy", &source.name, problems));
            };
            layers.add(document, problems).map_err(|problems| refusal("policy", &source.name, problems))?;
        }
        let Layers { names, vocabularies, rules, delegates, reviewers, environments, alerts, warnings } = layers;
        let documents: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
        let called = DocumentNames::of(&documents);
        let doubles = check::ids_across_layers(&rules, &called);
        if !doubles.is_empty() {
            return Err(refusal("policy", &names.join(" + "), doubles));
        }
        if let Some((rule, wrong)) = reviewers.unanswerable(&rules) {
            let message = format!("rule {:?} at {}: {wrong}", rule.id, called.place(rule));
            let problem = Problem::new(rule.line, 1, Severity::Error, message);
            return Err(refusal("policy", &names.join(" + "), vec![problem]));
        }
        if let Some(message) = check::too_many_steps(&rules) {
            let problem = Problem::new(1, 1, Severity::Error, message);
            return Err(refusal("policy", &names.join(" + "), vec![problem]));
        }
        if sources.is_empty() {
            let message = "no policy set was given".to_owned();
            return Err(Error::InvalidPolicy { message, problems: Vec::new(), cause: None });
        }
        let mut warnings = in_document_order(warnings, &called);
        if sources.len() > 1 {
            warnings.extend(check::idle_grants(&rules, &delegates, &called));
            warnings.extend(check::covered_across(&rules, &called));
        }
        // Warnings about all rules come first.
        let all: Vec<&Rule> = rules.iter().collect();
        warnings.splice(0..0, check::warnings_of_all(&all, &delegates));
        warnings.extend(reviewers.warnings(&all));
        let grants_something = check::grants_something(&rules, &delegates);
        let names_environments = rules.iter().any(|rule| rule.matches.looks_at_environment());
        let digest = canonical::digest(&vocabularies, &delegates, &reviewers, &rules);
        let engine = Engine::new(rules, vocabularies, delegates, reviewers, &documents);
        let name = names.join(" + ");
        let content = Digest::new(content.finalize().into());
        Ok(Self(Arc::new(Inner {
            name,
            digest,
            content,
            sources,
            warnings,
            grants_something,
            names_environments,
            environments,
            engine,
            alerts,
        })))
    }

    /// Loads a set from a file. The extension, `.toml` or `.json`, determines the format.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] if the file cannot be read, has another extension, or contains a document with problems.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = File::read(path.as_ref(), "policy", Self::MAX_BYTES, too_large)?;
        Self::parse(&file.text, file.format, &file.name)
    }

    /// Returns every problem of a document, errors and warnings, sorted by place. The list is empty for a document
    /// that loads without warnings. The messages do not repeat the document's name.
    pub fn validate(text: &str, format: PolicyFormat) -> Vec<Problem> {
        let (document, mut problems) = read(text, format, &mut Sha256::new());
        // Warnings about an incomplete document would mislead.
        if let Some(document) = document.filter(|_| !has_errors(&problems)) {
            let rules: Vec<_> = document.rules.iter().collect();
            problems.extend(check::warnings_of_all(&rules, &[]));
            problems.extend(document.reviewers.warnings(&rules));
            problems.sort_by_key(|problem| (problem.line, problem.column));
        }
        problems
    }

    /// The set's name, as given in its document.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// SHA-256 over the canonical form of the vocabulary, the reviewers and the rules. The same rules have the same
    /// digest in TOML and in JSON.
    pub fn digest(&self) -> Digest {
        self.0.digest
    }

    /// SHA-256 over the canonical form of one rule and the people it asks; `None` if no rule has this id. An approval
    /// can name it to apply only while the rule is unchanged.
    pub fn rule_digest(&self, id: &str) -> Option<Digest> {
        self.0.engine.rule_digest(id)
    }

    /// The reviewer that the rule with this id asks, at once or past its limit; `None` if there is no such rule or it
    /// asks nobody.
    pub fn need_of(&self, id: &str) -> Option<Need> {
        self.0.engine.need_of(id)
    }

    /// SHA-256 over everything that the documents say, including names, alerts and examples. Format, comments and the
    /// order of fields do not count.
    pub fn content(&self) -> Digest {
        self.0.content
    }

    /// The alert rules, in document order. They are not part of the digest, because no decision depends on them.
    pub fn alerts(&self) -> &[AlertRule] {
        &self.0.alerts
    }

    /// The number of rules.
    pub fn len(&self) -> usize {
        self.0.engine.rules.len()
    }

    /// Returns whether the set has no rules and therefore denies everything.
    pub fn is_empty(&self) -> bool {
        self.0.engine.rules.is_empty()
    }

    /// Returns whether at least one rule can grant something. A set without such a rule denies everything, and the
    /// governor's status reports it.
    pub fn grants_something(&self) -> bool {
        self.0.grants_something
    }

    /// Returns whether any condition reads `now`.
    pub fn reads_now(&self) -> bool {
        self.0.engine.rules.iter().any(|rule| rule.conditions.read_now())
    }

    /// The environment that the commands of a request mean by the names of clusters, profiles and workspaces, by the
    /// document's `[environments]`. No decision depends on the table itself, so it is not part of the digest.
    ///
    /// # Errors
    ///
    /// A sentence if they mean several, or one and others that are not listed: no rule could bind all of them.
    pub fn environment_of(&self, facts: &Facts) -> Result<Option<&str>, String> {
        let named = facts.acts.iter().flat_map(|act| &act.environments);
        let meant: BTreeSet<&str> = named.flat_map(|name| self.0.environments.of(name)).collect();
        let (listed, has_others) = (meant.iter().filter(|one| !one.is_empty()), meant.contains(""));
        let listed: Vec<&str> = listed.copied().collect();
        match *listed {
            [] => Ok(None),
            [one] if !has_others => Ok(Some(one)),
            _ => {
                let others = if has_others { " and one that is not named or not listed" } else { "" };
                let listed = listed.join(" and ");
                Err(format!("the commands mean the environments {listed}{others}; run one command for each"))
            }
        }
    }

    /// The patterns of paths that a rule denies to an agent, or to any agent without one. What runs for the agent is kept
    /// from them; conditions and further clauses of the rules do not count.
    pub fn denied_paths(&self, agent: Option<&AgentId>) -> impl Iterator<Item = DeniedPath> {
        let agent = agent.cloned();
        let concerns =
            move |rule: &Rule| agent.as_ref().is_none_or(|agent| rule.matches.agents.matches(agent.as_str()));
        let denies = move |rule: &&Rule| rule.effect == Effect::Deny && concerns(rule);
        self.0.engine.rules.iter().filter(denies).flat_map(Rule::denied_paths)
    }

    /// Warnings about parts of the documents that probably do not mean what was intended.
    pub fn warnings(&self) -> &[Problem] {
        &self.0.warnings
    }

    /// The text and format of each document, the base first.
    pub fn sources(&self) -> impl Iterator<Item = (&str, PolicyFormat)> {
        self.0.sources.iter().map(|source| (source.text.as_str(), source.format))
    }

    /// The documents that the set was loaded from, the base first.
    pub fn documents(&self) -> &[PolicySource] {
        &self.0.sources
    }

    /// Decides a request outside a governor, with all limits unused: for policy tests and tools.
    ///
    /// ```
    /// use rulekeep::policy::PolicyRequest;
    /// use rulekeep::trust::{Score, TrustSnapshot};
    /// use rulekeep::{Decision, Intent, PolicySet, RiskLevel, Tier};
    ///
    /// let policies = PolicySet::from_toml("name = \"p\"\n[[rule]]\nid = \"r\"\neffect = \"allow\"\nmatch.capabilities = [\"web:read\"]")?;
    /// let intent = Intent::new("a", "open_page", RiskLevel::Low, ["web:read"])?;
    /// let verdict = policies.evaluate(&PolicyRequest::new(&intent, TrustSnapshot::new(Tier::T3.middle(), Tier::T3)))?;
    /// assert_eq!(verdict.decision, Decision::Allow);
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// * [`Error::PolicyFailed`] if a condition fails and the verdict depends on it.
    /// * [`Error::InvalidIntent`] if a rule has an `environment` clause and the context's `environment` is not a
    ///   string.
    pub fn evaluate(&self, request: &PolicyRequest<'_>) -> Result<PolicyVerdict, Error> {
        // A governor has checked the intent already; here nobody has.
        if self.0.names_environments {
            request.intent.check_environment()?;
        }
        self.evaluate_with(request, &mut Unused)
    }

    /// Decides a request against the current state of its limit counters.
    ///
    /// # Errors
    ///
    /// [`Error::PolicyFailed`] if a condition fails and the verdict depends on it.
    pub fn evaluate_with(&self, request: &PolicyRequest<'_>, meter: &mut dyn Meter) -> Result<PolicyVerdict, Error> {
        let evaluate = |request: &PolicyRequest<'_>, meter: &mut dyn Meter| {
            self.0.engine.evaluate(request, meter).map_err(|undecided| undecided.into_error(self.name()))
        };
        let best = evaluate(request, meter)?;
        let mut strictest: Option<PolicyVerdict> = None;
        let readings = request.intent.known.as_ref().map_or(&[][..], |facts| &facts.readings);
        for reading in readings {
            let intent = request.intent.read_as(reading.clone());
            let floor = risk_floor(&intent.parsed_action, &intent.required_capabilities);
            let risk = request.risk.max(floor).max(usual_risk(reading, &intent));
            let verdict = evaluate(&PolicyRequest { intent: &intent, risk, ..*request }, meter)?;
            let known = strictest.as_ref().unwrap_or(&best);
            if verdict.decision.strictness() > known.decision.strictness() {
                strictest = Some(verdict.for_reading(reading, &best, &request.intent.required_capabilities));
            }
        }
        Ok(strictest.unwrap_or(best))
    }

    /// Returns the limits that hold for the whole organisation, in document order.
    pub fn shared_limits(&self) -> Vec<SharedLimitTerms> {
        let shared = |rule: &Rule| rule.limit.as_ref()?.shared(rule);
        self.0.engine.rules.iter().filter_map(shared).collect()
    }

    /// Classifies the cause of this set's DENY.
    pub fn denial_class(&self, request: &PolicyRequest<'_>, verdict: &PolicyVerdict) -> DenialClass {
        if verdict.limits.iter().any(LimitUse::is_spent) {
            return DenialClass::Limit;
        }
        let is_open =
            || {
                request.intent.known.as_ref().is_some_and(|facts| {
                    facts.acts.iter().any(|act| binding::openness(act, Kinds::ALL) == Binding::Maybe)
                })
            };
        if verdict.rewrite.is_some() || verdict.rules.is_empty() && is_open() {
            return DenialClass::Unread;
        }
        let trusted = PolicyRequest { trust: TrustSnapshot::new(Tier::T5.middle(), Tier::T5), ..*request };
        match self.evaluate(&trusted) {
            Ok(verdict) if verdict.decision != Decision::Deny => DenialClass::Trust,
            _ => DenialClass::Policy,
        }
    }

    /// Like [`PolicySet::evaluate`], with the amounts already used of some limits within their windows, by rule id.
    ///
    /// # Errors
    ///
    /// See [`PolicySet::evaluate`].
    pub fn evaluate_with_usage(
        &self,
        request: &PolicyRequest<'_>,
        used: &BTreeMap<String, f64>,
    ) -> Result<PolicyVerdict, Error> {
        self.evaluate_with(request, &mut UsedByRule(used))
    }

    /// Traces every rule of the set on a request, in document order, with the amounts already used of some limits, by
    /// rule id.
    pub fn explain_with_usage(&self, request: &PolicyRequest<'_>, used: &BTreeMap<String, f64>) -> Vec<RuleTrace> {
        self.explain(request, &mut UsedByRule(used))
    }

    /// Traces every rule of the set on a request.
    pub fn explain(&self, request: &PolicyRequest<'_>, meter: &mut dyn Meter) -> Vec<RuleTrace> {
        self.0.engine.explain(request, meter)
    }
}

impl fmt::Debug for PolicySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicySet")
            .field("name", &self.name())
            .field("digest", &self.digest())
            .field("rules", &self.len())
            .finish_non_exhaustive()
    }
}

/// Reads a document as far as it follows the schema, and adds its content to a hash. Problems are sorted by place.
fn read(text: &str, format: PolicyFormat, content: &mut Sha256) -> (Option<Document>, Vec<Problem>) {
    document::read(text, format, PolicySet::MAX_BYTES, too_large, |root, report| {
        root.note(content);
        let document = Document::read(root, report);
        check::check(&document, report);
        document
    })
}

/// The warnings of all documents, each prefixed with its document's name if there are several documents.
fn in_document_order(warnings: Vec<Vec<Problem>>, called: &DocumentNames) -> Vec<Problem> {
    let is_alone = warnings.len() == 1;
    let named = |(layer, warnings): (usize, Vec<Problem>)| {
        let name = called.get(layer).filter(|_| !is_alone).map(|name| format!("{name}: ")).unwrap_or_default();
        warnings.into_iter().map(move |mut warning| {
            warning.message.insert_str(0, &name);
            warning
        })
    };
    warnings.into_iter().enumerate().flat_map(named).collect()
}

fn has_errors(problems: &[Problem]) -> bool {
    problems.iter().any(|problem| problem.severity == Severity::Error)
}

fn too_large(size: u64) -> String {
    format!("a policy document has at most {} bytes; this one has {size}", PolicySet::MAX_BYTES)
}

const RECOMMENDED: &str = include_str!("recommended.toml");
