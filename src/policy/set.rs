//! A policy set: loaded whole and checked whole, or not at all.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::alert::AlertRule;
use super::canonical;
use super::check;
use super::document::Document;
use super::evaluate::Engine;
use super::explain::RuleTrace;
use super::layers::Layers;
use super::limit::{LimitUse, Meter, Unused, UsedByRule};
use super::naming::DocumentNames;
use super::request::PolicyRequest;
use super::rule::Rule;
use super::verdict::{Need, PolicyVerdict};
use crate::document::{self, File, PolicyFormat, refusal};
use crate::model::{
    Decision, DenialClass, Digest, Error, Problem, Severity, Tier, TrustSnapshot, UnreadKind, risk_floor, usual_risk,
};

/// The rules that decide what agents may do; cheap to clone.
///
/// A document is checked in full when it is loaded: one wrong rule refuses the
/// whole set, and the error says where and what was probably meant.
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
    /// Whether some rule looks at the environment.
    names_environments: bool,
    engine: Engine,
    alerts: Vec<AlertRule>,
}

/// A document that a set was loaded from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PolicySource {
    /// The name that stands for it in messages.
    pub name: String,
    /// Its format.
    pub format: PolicyFormat,
    /// Its text.
    pub text: String,
}

impl PolicySet {
    /// Largest document in bytes: 10,000 rules written out plainly fit.
    pub const MAX_BYTES: usize = 4 * 1024 * 1024;

    /// The set that ships with this library: what agents of each tier may do by
    /// the risk of it. `docs/reference/recommended-policies.md` explains it.
    ///
    /// # Errors
    ///
    /// None in a build that passed its tests.
    pub fn recommended() -> Result<Self, Error> {
        Self::parse(RECOMMENDED, PolicyFormat::Toml, "recommended.toml")
    }

    /// Loads a set from TOML.
    ///
    /// # Errors
    ///
    /// [`Error::Policy`] with every problem found.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        Self::parse(text, PolicyFormat::Toml, "toml")
    }

    /// Loads a set from JSON.
    ///
    /// # Errors
    ///
    /// [`Error::Policy`] with every problem found.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        Self::parse(text, PolicyFormat::Json, "json")
    }

    /// Loads a set from a text; `name` stands for the document in messages.
    ///
    /// # Errors
    ///
    /// [`Error::Policy`] with every problem found.
    pub fn parse(text: &str, format: PolicyFormat, name: &str) -> Result<Self, Error> {
        Self::of(vec![PolicySource { name: name.to_owned(), format, text: text.to_owned() }])
    }

    /// Lays later sets over earlier ones: a base, a team's, an agent's.
    ///
    /// A later set may only narrow: its deny, escalate and degrade rules count
    /// like those of the base, and its constraints tighten; a constraint under a key of the documents' own can only be the
    /// same as before, or the rule that sets it denies what it matches, with a warning. What it allows counts
    /// by itself only for capabilities that every earlier set names under
    /// `delegates`. Of a list of reviewers it can leave people out, and its alerts stand beside
    /// the others. Ids are unique over all of them.
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
    /// [`Error::Policy`] when two rules have one id, or for an empty list.
    pub fn layered(sets: &[Self]) -> Result<Self, Error> {
        Self::of(sets.iter().flat_map(|set| set.0.sources.iter().cloned()).collect())
    }

    /// Loads a set from its documents, the base first.
    pub(crate) fn of(sources: Vec<PolicySource>) -> Result<Self, Error> {
        let mut layers = Layers::default();
        let mut content = Sha256::new();
        for source in &sources {
            let (document, problems) = read(&source.text, source.format, &mut content);
            let Some(document) = document.filter(|_| !has_errors(&problems)) else {
                return Err(refusal("policy", &source.name, problems));
            };
            layers.add(document, problems).map_err(|problems| refusal("policy", &source.name, problems))?;
        }
        let Layers { names, vocabularies, rules, delegates, reviewers, alerts, warnings } = layers;
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
            return Err(Error::Policy {
                message: "no policy set was given".to_owned(),
                problems: Vec::new(),
                proof_id: None,
            });
        }
        let mut warnings = in_document_order(warnings, &called);
        if sources.len() > 1 {
            warnings.extend(check::idle_grants(&rules, &delegates, &called));
            warnings.extend(check::covered_across(&rules, &called));
        }
        // What is said of all rules comes first.
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
            engine,
            alerts,
        })))
    }

    /// Loads a set from a file, its format told by the extension: `.toml` or `.json`.
    ///
    /// # Errors
    ///
    /// [`Error::Policy`] when the file cannot be read, has another extension, or
    /// holds a document with problems.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = File::read(path.as_ref(), "policy", Self::MAX_BYTES, too_large)?;
        Self::parse(&file.text, file.format, &file.name)
    }

    /// Every problem of a document, errors and warnings, in the order of their
    /// places; none for a document that loads and says what it seems to. Problems
    /// do not repeat the document's name.
    pub fn validate(text: &str, format: PolicyFormat) -> Vec<Problem> {
        let (document, mut problems) = read(text, format, &mut Sha256::new());
        // Warnings on half a document would mislead.
        if let Some(document) = document.filter(|_| !has_errors(&problems)) {
            let rules: Vec<_> = document.rules.iter().collect();
            problems.extend(check::warnings_of_all(&rules, &[]));
            problems.extend(document.reviewers.warnings(&rules));
            problems.sort_by_key(|problem| (problem.line, problem.column));
        }
        problems
    }

    /// The set's name, as its document gives it.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// SHA-256 over the canonical form of the vocabulary, the reviewers and the rules: the same
    /// rules have the same digest in TOML and in JSON.
    pub fn digest(&self) -> Digest {
        self.0.digest
    }

    /// SHA-256 over the canonical form of one rule and the people behind the name that it asks: what an approval that
    /// shall hold for this rule alone, as it stands, can name. None for an id that no rule has.
    pub fn rule_digest(&self, id: &str) -> Option<Digest> {
        self.0.engine.rule_digest(id)
    }

    /// Whom the rule of that id asks, at once or past its limit; none where no rule of that id asks anybody.
    pub(crate) fn need_of(&self, id: &str) -> Option<Need> {
        self.0.engine.need_of(id)
    }

    /// SHA-256 over all that the documents say, names, alerts and examples included; their format, comments and
    /// order of fields aside.
    pub(crate) fn content(&self) -> Digest {
        self.0.content
    }

    /// When somebody is to be alerted, in the order of the documents. They are no part of the digest, for no
    /// decision depends on them.
    pub fn alerts(&self) -> &[AlertRule] {
        &self.0.alerts
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.0.engine.rules.len()
    }

    /// Whether there is no rule, so that everything is denied.
    pub fn is_empty(&self) -> bool {
        self.0.engine.rules.is_empty()
    }

    /// Whether some rule can grant something at all. A set of which none can denies
    /// everything; the status of a governor says so.
    pub fn grants_something(&self) -> bool {
        self.0.grants_something
    }

    /// Whether some condition looks at the time.
    pub(crate) fn reads_now(&self) -> bool {
        self.0.engine.rules.iter().any(|rule| rule.conditions.read_now())
    }

    /// What in the document probably does not say what was meant.
    pub fn warnings(&self) -> &[Problem] {
        &self.0.warnings
    }

    /// The texts that the set was loaded from, the base first.
    pub fn sources(&self) -> impl Iterator<Item = (&str, PolicyFormat)> {
        self.0.sources.iter().map(|source| (source.text.as_str(), source.format))
    }

    /// The documents that the set was loaded from, the base first.
    pub fn documents(&self) -> &[PolicySource] {
        &self.0.sources
    }

    /// Decides on a request outside of a governor, as if nothing had been used of
    /// any limit: for tests of policies and for tools.
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
    /// [`Error::Policy`] when a condition fails and the verdict depends on it;
    /// [`Error::InvalidIntent`] when a rule names environments and the context's is no string.
    pub fn evaluate(&self, request: &PolicyRequest<'_>) -> Result<PolicyVerdict, Error> {
        // A governor has checked the intent; here nobody has.
        if self.0.names_environments {
            request.intent.check_environment()?;
        }
        self.evaluate_with(request, &mut Unused)
    }

    /// Decides on a request, as far as the counters of its limits allow.
    ///
    /// # Errors
    ///
    /// [`Error::Policy`] when a condition fails and the verdict depends on it.
    pub(crate) fn evaluate_with(
        &self,
        request: &PolicyRequest<'_>,
        meter: &mut dyn Meter,
    ) -> Result<PolicyVerdict, Error> {
        let evaluate = |request: &PolicyRequest<'_>, meter: &mut dyn Meter| {
            self.0.engine.evaluate(request, meter).map_err(|undecided| undecided.into_error(self.name()))
        };
        let best = evaluate(request, meter)?;
        let mut strictest: Option<PolicyVerdict> = None;
        for reading in request.intent.readings() {
            let intent = request.intent.read_as(reading.clone());
            let floor = risk_floor(&intent.parsed_action, &intent.required_capabilities);
            let risk = request.risk.max(floor).max(usual_risk(&reading, &intent));
            let verdict = evaluate(&PolicyRequest { intent: &intent, risk, ..*request }, meter)?;
            let known = strictest.as_ref().unwrap_or(&best);
            if verdict.decision.strictness() > known.decision.strictness() {
                strictest = Some(verdict.for_reading(&reading, &best, &request.intent.required_capabilities));
            }
        }
        Ok(strictest.unwrap_or(best))
    }

    /// What a DENY of this set is owed to.
    pub(crate) fn denial_class(&self, request: &PolicyRequest<'_>, verdict: &PolicyVerdict) -> DenialClass {
        if verdict.limits.iter().any(LimitUse::is_spent) {
            return DenialClass::Limit;
        }
        if verdict.rules.is_empty() && request.intent.has_unread(UnreadKind::ALL) {
            return DenialClass::Unread;
        }
        let trusted = PolicyRequest { trust: TrustSnapshot::new(Tier::T5.middle(), Tier::T5), ..*request };
        match self.evaluate(&trusted) {
            Ok(verdict) if verdict.decision != Decision::Deny => DenialClass::Trust,
            _ => DenialClass::Policy,
        }
    }

    /// Like [`PolicySet::evaluate`], with an amount that was used of the limits of some rules within their windows, by
    /// the ids of the rules.
    ///
    /// # Errors
    ///
    /// Those of [`PolicySet::evaluate`].
    pub fn evaluate_with_usage(
        &self,
        request: &PolicyRequest<'_>,
        used: &BTreeMap<String, f64>,
    ) -> Result<PolicyVerdict, Error> {
        self.evaluate_with(request, &mut UsedByRule(used))
    }

    /// Traces every rule of the set on a request, in the order of the documents, with an amount that was used of the
    /// limits of some rules.
    pub fn explain_with_usage(&self, request: &PolicyRequest<'_>, used: &BTreeMap<String, f64>) -> Vec<RuleTrace> {
        self.explain(request, &mut UsedByRule(used))
    }

    /// Traces every rule of the set on a request.
    pub(crate) fn explain(&self, request: &PolicyRequest<'_>, meter: &mut dyn Meter) -> Vec<RuleTrace> {
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

/// Reads a document, as far as it has the schema's shape, and adds what it says to a hash; problems come in the order
/// of their places.
fn read(text: &str, format: PolicyFormat, content: &mut Sha256) -> (Option<Document>, Vec<Problem>) {
    document::read(text, format, PolicySet::MAX_BYTES, too_large, |root, report| {
        root.note(content);
        let document = Document::read(root, report);
        check::check(&document, report);
        document
    })
}

/// The warnings of all documents, each with its document's name where there are several.
fn in_document_order(warnings: Vec<Vec<Problem>>, called: &DocumentNames) -> Vec<Problem> {
    let is_alone = warnings.len() == 1;
    let named = |(layer, warnings): (usize, Vec<Problem>)| {
        let name = called.get(layer).filter(|_| !is_alone).map(|name| format!("{name}: ")).unwrap_or_default();
        warnings.into_iter().map(move |warning| Problem { message: format!("{name}{}", warning.message), ..warning })
    };
    warnings.into_iter().enumerate().flat_map(named).collect()
}

fn has_errors(problems: &[Problem]) -> bool {
    problems.iter().any(|problem| problem.severity == Severity::Error)
}

fn too_large(size: u64) -> String {
    format!("a policy document has at most {} bytes; this one has {size}", PolicySet::MAX_BYTES)
}

const RECOMMENDED: &str = include_str!("../../policies/recommended.toml");
