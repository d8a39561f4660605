//! The intent parser: turns an agent's request into an intent that policies can evaluate.
//!
//! Its input is a text (an English request, a structured tool call, a shell command line, SQL or an HTTP request) and
//! the caller's context. Its output is a [`ParseResult`]: action, capabilities, risk with its factors, confidence,
//! and alternative readings. It guarantees that the same request gives the same result, that no input panics, that
//! the time grows linearly with the input's length, and that a request it does not understand is reported as such and
//! never rated harmless.
//!
//! A request passes through these modules: `normalize` (the text as a person sees it, and texts derived from it),
//! `derived` (reads each of them), `format` (detects the format and calls its reader), `language` (English) and
//! `manipulation` (instruction overrides and concealment). The resulting acts of a `reading` are assessed by `risk`,
//! `classification` and `confidence`, and `verdict` assembles the answer. Knowledge of words and programs is data
//! (`data/*.toml`), read by `document` and indexed by `lexicon` and `programs`.

use rulekeep_types::parts::ParseExplanationParts;
mod catalogue;
mod classification;
mod codes;
mod confidence;
mod derived;
mod document;
mod explain;
mod format;
mod injection;
mod language;
mod learned;
mod lexicon;
mod manipulation;
mod normalize;
mod place;
mod programs;
mod reading;
mod risk;
mod roles;
mod sign;
mod table;
mod target;
mod verdict;

#[cfg(test)]
mod governing_tests;
#[cfg(test)]
mod host_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

use format::ToolTurn;
#[doc(hidden)]
#[cfg(feature = "training")]
pub use learned::training;
use lexicon::Lexicon;
use normalize::Normalized;
use reading::Reading;
use rulekeep_types::{
    Action, AgentId, CatalogueReport, Classification, Error, IntentId, MAX_INPUT_BYTES, ParseExplanation, ParseResult,
    RiskLevel, Timestamp, check_context, names_production,
};
use sign::{Sign, Signs};
use verdict::Verdict;
pub use {
    catalogue::{Catalogue, RatedTool, Ruled, ToolRuling},
    classification::{Concealer, Redaction, conceal_text, has_secrets, prepare},
    format::{Role as ArgumentRole, argument_role, calls_of},
    injection::Order,
    normalize::seen_as,
    verdict::ParseRequest,
};

/// Parses requests into intents.
///
/// ```
/// use rulekeep::intent::Parser;
/// use rulekeep::RiskLevel;
/// use serde_json::Map;
///
/// let parser = Parser::new()?;
/// let parsed = parser.parse_text(&"support-1".parse()?, "Delete all customer records", &Map::new())?;
/// assert_eq!(parsed.intent.required_capabilities[0].as_str(), "customer:delete");
/// assert!(parsed.intent.risk_level >= RiskLevel::High);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Parser {
    lexicon: Arc<Lexicon>,
    requires_base: bool,
}

impl Parser {
    /// Creates a parser with the built-in word table, which is loaded once per process.
    ///
    /// # Errors
    ///
    /// [`Error::Internal`] if the built-in data does not load, which a test rules out.
    pub fn new() -> Result<Self, Error> {
        Lexicon::shared().map(|lexicon| Self { lexicon, requires_base: false })
    }

    /// Creates a parser that reads the given labeled requests as labeled, and similar wording alike. Use it for the
    /// vocabulary of a trade or the commands of a company.
    ///
    /// ```
    /// use rulekeep::intent::Parser;
    /// use serde_json::Map;
    ///
    /// let parser = Parser::with_rows(
    ///     "#device:execute H
    ///     Slew the gantry to bay 4
    ///     slew crane two || device:execute|HIGH",
    /// )?;
    /// let parsed = parser.parse_text(&"yard-1".parse()?, "Slew the gantry to bay 7", &Map::new())?;
    /// assert_eq!(parsed.intent.required_capabilities[0].as_str(), "device:execute");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] with the line and what was expected; [`Error::PayloadTooLarge`] for more than 10,000 rows.
    pub fn with_rows(rows: &str) -> Result<Self, Error> {
        let lexicon = Lexicon::shared()?;
        let rows = learned::rows::read(rows)?;
        let table = learned::rows::adapt(&learned::IntentTable::shared()?, &rows, &lexicon)?;
        Ok(Self::of(Lexicon::clone(&lexicon).with_table(Arc::new(table))))
    }

    fn of(lexicon: Lexicon) -> Self {
        Self { lexicon: Arc::new(lexicon), requires_base: false }
    }

    /// Leaves an act open if it names a relative path and the context has no `cwd`.
    #[must_use]
    pub const fn require_base(mut self) -> Self {
        self.requires_base = true;
        self
    }

    /// Parses a text outside a governor, for tools that inspect the parser's result. The intent has a nil id and the
    /// time 1970-01-01.
    ///
    /// # Errors
    ///
    /// * [`Error::InvalidInput`] for a blank input or a context that is nested too deep.
    /// * [`Error::PayloadTooLarge`] for an input or a context above its size limit.
    pub fn parse_text(
        &self,
        agent_id: &AgentId,
        input: &str,
        context: &Map<String, Value>,
    ) -> Result<ParseResult, Error> {
        let at = Timestamp::from_millis(0);
        let parsed = self.parse(&ParseRequest { agent_id, input, context, id: IntentId::new(at, 0), at }, &NO_TOOLS)?;
        Ok(parsed.result)
    }

    /// Parses a text outside a governor and explains the result: the words or arguments that led to the operation,
    /// the resource, each capability and each risk factor.
    ///
    /// ```
    /// use rulekeep::intent::Parser;
    /// use serde_json::Map;
    ///
    /// let explained = Parser::new()?.explain_text(&"a".parse()?, "Delete all customer records", &Map::new())?;
    /// let act = &explained.evidence[0];
    /// assert_eq!(act.operation.as_deref(), Some("Delete"));
    /// assert!(act.risk_factors.iter().any(|factor| factor.found.as_deref() == Some("all")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// See [`Parser::parse_text`].
    pub fn explain_text(
        &self,
        agent_id: &AgentId,
        input: &str,
        context: &Map<String, Value>,
    ) -> Result<ParseExplanation, Error> {
        let at = Timestamp::from_millis(0);
        let request = ParseRequest { agent_id, input, context, id: IntentId::new(at, 0), at };
        self.explain(&request, &NO_TOOLS).map(|(explained, _)| explained)
    }

    /// Parses a request. The result depends only on the request and the catalogue.
    pub fn parse(&self, request: &ParseRequest<'_>, tools: &Catalogue) -> Result<Parsed, Error> {
        let (readings, redaction) = self.read(request.input, request.context, tools)?;
        let is_set =
            readings.all().all(|reading| !reading.acts.is_empty() && reading.acts.iter().all(|act| act.is_set));
        Ok(Parsed {
            result: readings.verdict(&self.lexicon).into_result(request, &readings.joined(), &redaction),
            is_set,
            redaction,
        })
    }

    /// Parses a request and returns the evidence.
    pub fn explain(
        &self,
        request: &ParseRequest<'_>,
        tools: &Catalogue,
    ) -> Result<(ParseExplanation, Redaction), Error> {
        let (readings, redaction) = self.read(request.input, request.context, tools)?;
        let verdict = readings.verdict(&self.lexicon);
        let evidence = verdict.evidence();
        Ok((
            ParseExplanation::from(ParseExplanationParts {
                parse: verdict.into_result(request, &readings.joined(), &redaction),
                evidence,
            }),
            redaction,
        ))
    }

    /// The parts of a text that must not be stored.
    pub fn redaction(&self, input: &str, tools: &Catalogue) -> Redaction {
        self.read(input, &Map::new(), tools).map(|(_, redaction)| redaction).unwrap_or_default()
    }

    fn read(
        &self,
        input: &str,
        context: &Map<String, Value>,
        tools: &Catalogue,
    ) -> Result<(Readings, Redaction), Error> {
        let size = input.len();
        if size > MAX_INPUT_BYTES {
            return Err(Error::PayloadTooLarge { what: "input", size, limit: MAX_INPUT_BYTES });
        }
        check_context(context)?;
        place::check(context)?;
        let normalized = normalize::normalize(input, &self.lexicon);
        if normalized.text.trim().is_empty() && normalized.unseen.is_empty() {
            return Err(Error::input("input", "is blank; expected what the agent wants to do"));
        }
        let first = tools.index().turn(0);
        let (reading, mut redaction) = self.read_in_turn(&normalized, context, &first);
        let mut readings = Readings { first: reading, others: Vec::new() };
        let mut turns = first.turns();
        for turn in 1.. {
            if turn >= turns {
                break;
            }
            let known = tools.index().turn(turn);
            let (reading, found) = self.read_in_turn(&normalized, context, &known);
            turns = turns.max(known.turns());
            readings.others.push(reading);
            redaction.join(found);
        }
        Ok((readings, redaction))
    }

    fn read_in_turn(
        &self,
        normalized: &Normalized<'_>,
        context: &Map<String, Value>,
        known: &ToolTurn<'_>,
    ) -> (Reading, Redaction) {
        let (mut reading, decoded) = derived::read_on(normalized, &self.lexicon, known);
        reading.settle();
        reading.seal();
        place::Place::of(context).complete(&mut reading, self.requires_base);
        let contents = classification::scan(&normalized.text, &decoded);
        contents.mark_addresses(&mut reading);
        contents.mark(&mut reading);
        reading.facts.contents = Some(contents.class());
        reading.facts.signs = reading.facts.signs.with(surroundings(context));
        let is_whole = matches!(normalized.text, Cow::Borrowed(_)) && normalized.unseen.is_empty();
        let redaction = contents.redaction(&mut reading, is_whole);
        (reading, redaction)
    }

    /// Rates the relevance of every tool of a catalogue to a request, in catalogue order.
    pub fn rated_tools(&self, request: &str, tools: &Catalogue) -> Vec<RatedTool> {
        tools.rated(request, &self.lexicon)
    }

    /// The orders to the reader in a text that an agent reads.
    pub fn orders_in(&self, text: &str) -> Vec<Order> {
        injection::orders_in(text, &self.lexicon)
    }

    /// Returns the catalogue with the tools of one load added.
    pub fn load_tools(
        &self,
        tools: &Catalogue,
        definitions: &Value,
        server: Option<&str>,
    ) -> Result<(Catalogue, CatalogueReport), Error> {
        tools.load(definitions, server, &self.lexicon)
    }

    /// The risk floor that the name of a hand-built action implies, by its verb and by words such as `all` or
    /// `production`.
    pub fn action_floor(&self, action: &Action) -> RiskLevel {
        format::name_floor(action, &self.lexicon)
    }
}

/// The readings of one request: several if it calls a tool whose name several servers use.
struct Readings {
    first: Reading,
    others: Vec<Reading>,
}

impl Readings {
    fn all(&self) -> impl Iterator<Item = &Reading> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The worst verdict of the readings, with the capabilities that any of them needs.
    fn verdict(&self, lexicon: &Lexicon) -> Verdict<'_> {
        self.others.iter().map(Verdict::of).fold(Verdict::of(&self.first), |one, other| one.or(other, lexicon))
    }

    /// The readings joined into one.
    fn joined(&self) -> Cow<'_, Reading> {
        let mut all = Cow::Borrowed(&self.first);
        self.others.iter().for_each(|other| all.to_mut().join(other));
        all
    }
}

/// A parse result, and whether an operator determined all of it.
#[derive(Debug)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct Parsed {
    pub result: ParseResult,
    /// Every act belongs to a tool that an operator overrode, so the risk floor of the rubric does not apply.
    pub is_set: bool,
    /// The parts of the text that must not be stored.
    pub redaction: Redaction,
}

/// The empty catalogue, for a parser without a governor.
static NO_TOOLS: std::sync::LazyLock<Catalogue> = std::sync::LazyLock::new(Catalogue::default);

/// Signs from the caller's context: environment and data classification.
fn surroundings(context: &Map<String, Value>) -> Signs {
    let word = |key: &str| context.get(key).and_then(Value::as_str);
    let mut signs = Signs::default();
    if word("environment").is_some_and(names_production) {
        signs.add(Sign::Production);
    }
    if word("dataClassification").is_some_and(|class| Classification::of_word(class) >= Classification::Confidential) {
        signs.add(Sign::Declared);
    }
    signs
}

/// The code in the README is compiled and run with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
