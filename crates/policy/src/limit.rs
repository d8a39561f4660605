//! Rate limits: how often, or for how much, a rule's grant may be used within a sliding window.
//!
//! Uses are counted for each agent, for each group, for everybody together, or for the whole organisation. The caller owns the counters: a
//! [`Meter`] reports how much of a limit is used, and the caller charges what a verdict consumed. Amounts are whole
//! millionths, so that sums are exact.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::conditions::Conditions;
use super::duration;
use super::identifier::MAX_NAME_CHARS;
use super::request::PolicyRequest;
use super::rule::{Effect, Rule};
use rulekeep_types::document::{Fields, Node, Report, Value};
use rulekeep_types::facts::{Act, Doing, Kind, is_currency};
use rulekeep_types::{Capability, Facts, ORGANISATION, Operation, Share, Timestamp, closed_words};

/// The limit of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Limit {
    measure: Measure,
    window: Window,
    by: By,
    /// Set if it holds for the whole organisation.
    share: Option<Share>,
    pub(super) over: Over,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Measure {
    /// The number of actions.
    Count(u64),
    /// The sum of a number in the context, in millionths.
    Sum { key: Box<str>, most: i64 },
}

/// The length of the sliding window.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Window {
    millis: i64,
    /// As written in the document: `1h`.
    text: Box<str>,
}

closed_words! {
    /// The scope in which uses are counted together.
    pub enum By("counting") {
        /// Each agent has a counter of its own.
        Agent = "agent",
        /// Each group that the agent belongs to and the rule names has a counter; if the rule names none, each of the
        /// agent's groups.
        Group = "group",
        /// Everybody shares one counter.
        All = "all",
        /// Every governor of the organisation shares one counter.
        Organisation = "organisation",
    }
}

/// The effect of the rule after its limit is used up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Over {
    Deny,
    /// The reviewer decides.
    Escalate(Arc<str>),
}

impl Over {
    pub(super) const fn effect(&self) -> Effect {
        match self {
            Self::Deny => Effect::Deny,
            Self::Escalate(_) => Effect::Escalate,
        }
    }

    pub(super) const fn reviewer(&self) -> Option<&Arc<str>> {
        match self {
            Self::Deny => None,
            Self::Escalate(reviewer) => Some(reviewer),
        }
    }
}

/// The amount that a verdict would consume from a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    /// The counter's name: the rule, and whose uses it counts.
    pub counter: Box<str>,
    /// In millionths.
    pub amount: i64,
    /// In millionths; `i64::MAX` if an approval goes beyond the limit.
    pub most: i64,
    /// In milliseconds.
    pub window: i64,
    /// Set for a limit of the organisation: the way to obtain uses.
    pub share: Option<Share>,
}

impl Charge {
    /// Returns whether its use is taken from the organisation: an approval beyond the limit asks nobody.
    pub fn is_taken(&self) -> bool {
        self.share.is_some() && self.most != i64::MAX
    }

    /// Returns whether the charge fits. The meter is asked only if there is a bound.
    pub fn fits(&self, meter: &mut dyn Meter) -> bool {
        self.most == i64::MAX || {
            let used = meter.used(self);
            !used.is_full && used.amount.checked_add(self.amount).is_some_and(|after| after <= self.most)
        }
    }
}

/// The state of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used {
    /// The amount used within the window, in millionths.
    pub amount: i64,
    /// The time at which the oldest use leaves the window.
    pub frees_at: Option<Timestamp>,
    /// Whether the counter cannot record any more uses.
    pub is_full: bool,
}

/// The limit counters as a decision sees them.
pub trait Meter {
    /// Returns the current state of a counter.
    fn used(&mut self, charge: &Charge) -> Used;
}

/// A meter that reports every limit as unused.
pub(super) struct Unused;

impl Meter for Unused {
    fn used(&mut self, _: &Charge) -> Used {
        Used { amount: 0, frees_at: None, is_full: false }
    }
}

/// A meter with stated amounts used, by rule id.
pub(super) struct UsedByRule<'a>(pub(super) &'a BTreeMap<String, f64>);

impl Meter for UsedByRule<'_> {
    fn used(&mut self, charge: &Charge) -> Used {
        // A counter's name begins with its rule's id, which contains no slash.
        let rule = charge.counter.split('/').next().unwrap_or_default();
        let used = self.0.get(rule).copied().unwrap_or(0.0) * 1e6;
        #[expect(clippy::cast_possible_truncation, reason = "too large an amount counts as the largest")]
        let amount = used.ceil() as i64;
        Used { amount, frees_at: None, is_full: false }
    }
}

/// A limit of a policy set that holds for the whole organisation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedLimitTerms {
    /// The name of the counter: `<rule>/<measure>/organisation`.
    pub counter: String,
    /// The maximum amount within a window, in millionths.
    pub most: i64,
    /// The length of the sliding window.
    pub window: Duration,
    /// The way governors obtain uses.
    pub share: Share,
}

/// The state of a limit at the time of a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LimitUse {
    /// The rule that the limit belongs to.
    pub rule: Arc<str>,
    /// The name of the counter: the rule, and the agent, the group or everybody.
    pub counter: Box<str>,
    /// The amount used within the window before this decision, in millionths. For a limit of the organisation, 0 while
    /// it has room and `most` when it has not.
    pub used: i64,
    /// The maximum amount within a window, in millionths.
    pub most: i64,
    /// The amount that this decision asks for, in millionths; `None` if the intent does not state it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<i64>,
    /// Whether the decision consumed the amount.
    pub charged: bool,
    /// The time at which the oldest use leaves the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frees_at: Option<Timestamp>,
}

impl LimitUse {
    /// Returns whether the limit has no room for the requested amount. Also true if the amount is unknown.
    pub fn is_spent(&self) -> bool {
        self.amount.and_then(|amount| self.used.checked_add(amount)).is_none_or(|after| after > self.most)
    }
}

impl Limit {
    /// Reads a rule's `limit`.
    pub(super) fn read(node: Node, effect: Effect, conditions: &Conditions, report: &mut Report<'_>) -> Option<Self> {
        let at = node.at;
        if !matches!(effect, Effect::Allow | Effect::Degrade) {
            let message = format!("a rule with effect {effect} cannot have a limit; only allow and degrade rules can");
            report.error(at, "limit", message);
            return None;
        }
        let mut fields = Fields::of(node, "limit.", FIELDS, report)?;
        let measure = Self::measure(&mut fields, conditions, report);
        let window = Window::of(fields.take("per"), at, report);
        let by = fields.word("by", By::ALL, report).unwrap_or(By::Agent);
        let share_at = fields.place("share");
        let share = fields.word("share", Share::ALL, report);
        if let (Some(place), true) = (share_at, by != By::Organisation) {
            let message = "only a limit with by = \"organisation\" has a share; set that, or omit share";
            report.error(place, "limit.share", message);
            return None;
        }
        let share = (by == By::Organisation).then(|| share.unwrap_or(Share::Reserve));
        let over = fields.word("over", &[Effect::Deny, Effect::Escalate], report).unwrap_or(Effect::Deny);
        let reviewer_at = fields.place("reviewer");
        let reviewer = fields.line("reviewer", MAX_NAME_CHARS, report);
        let over = match (over, reviewer) {
            (Effect::Deny, None) => Over::Deny,
            (Effect::Escalate, Some(reviewer)) => Over::Escalate(reviewer.into()),
            (Effect::Escalate, None) => {
                report.error(at, "limit.reviewer", "a limit with over = \"escalate\" needs a field \"reviewer\"");
                return None;
            }
            (Effect::Deny, Some(_)) => {
                let message = "a limit with over = \"deny\" cannot have a reviewer; set over = \"escalate\"";
                report.error(reviewer_at.unwrap_or(at), "limit.reviewer", message);
                return None;
            }
            (Effect::Degrade | Effect::Allow, _) => {
                report.error(at, "limit.over", "expected deny or escalate");
                return None;
            }
        };
        let measure = measure?;
        if let Measure::Sum { key, .. } = &measure
            && share.is_some()
            && key.contains('/')
        {
            let message = "the key that a limit of the organisation sums cannot contain a slash, which separates the \
                           parts of its counter's name; send the amount under another key";
            report.error(at, "limit.sum", message);
            return None;
        }
        Some(Self { measure, window: window?, by, share, over })
    }

    fn measure(fields: &mut Fields, conditions: &Conditions, report: &mut Report<'_>) -> Option<Measure> {
        let at = fields.at;
        let (count, sum, max) = (fields.take("count"), fields.take("sum"), fields.take("max"));
        match (count, sum, max) {
            (Some(count), None, None) => {
                let most = report.whole(&count, "limit.count", MOST_COUNT)?;
                u64::try_from(most).ok().map(Measure::Count)
            }
            (None, Some(sum), Some(max)) => {
                let sum_at = sum.at;
                let key = report.line(sum, "limit.sum", MAX_KEY_CHARS);
                if let Some(wrong) = key.as_deref().and_then(|key| no_key(key, conditions)) {
                    report.error(sum_at, "limit.sum", wrong);
                    return None;
                }
                let number = match max.value {
                    #[expect(clippy::cast_precision_loss, reason = "bounds are far below 2^53")]
                    Value::Integer(number) => number as f64,
                    Value::Float(number) => number,
                    _ => f64::NAN,
                };
                let most = millionths(number).filter(|most| *most > 0);
                if most.is_none() {
                    let message = format!("expected a number above 0 and at most 9e12, found {}", max.told());
                    report.error(max.at, "limit.max", message);
                }
                Some(Measure::Sum { key: key?.into(), most: most? })
            }
            _ => {
                report.error(at, "limit", "expected either count, or sum and max");
                None
            }
        }
    }

    /// Explains why a request cannot be counted; `None` if it can.
    pub(super) fn uncounted(&self, rule: &Rule, request: &PolicyRequest<'_>) -> Option<String> {
        if let Measure::Sum { key, .. } = &self.measure {
            let of_acts = request.intent.known.as_ref().filter(|_| &**key == AMOUNT_KEY);
            if let Some(facts) = of_acts {
                if sum_of_acts(facts, |one| rule.speaks_about(one)).is_none() {
                    let what = "a sum, a number of payments or a currency is not known";
                    return Some(format!("the request names no amount that can be added up: {what}"));
                }
            } else {
                match request.intent.context.get(&**key) {
                    None | Some(serde_json::Value::Null) => {
                        return Some(format!("the request names no amount: context.{key} is absent"));
                    }
                    Some(value) if value.as_f64().and_then(millionths).is_none() => {
                        return Some(format!("context.{key} is not an amount that can be counted"));
                    }
                    Some(_) => {}
                }
            }
        }
        let is_of_no_group = self.charges(rule, request).0.is_empty();
        is_of_no_group.then(|| "the agent is in no group that the limit counts".to_owned())
    }

    /// The terms of a limit that holds for the whole organisation.
    pub(super) fn shared(&self, rule: &Rule) -> Option<SharedLimitTerms> {
        Some(SharedLimitTerms {
            counter: self.counter(rule, ORGANISATION).into(),
            most: self.most(),
            window: Duration::from_millis(self.window.millis.unsigned_abs()),
            share: self.share?,
        })
    }

    /// The maximum within a window, in millionths.
    fn most(&self) -> i64 {
        match &self.measure {
            Measure::Count(most) => i64::try_from(*most).unwrap_or(i64::MAX).saturating_mul(MILLION),
            Measure::Sum { most, .. } => *most,
        }
    }

    /// The name of a counter. Another measure means another counter: their counts are not comparable.
    fn counter(&self, rule: &Rule, whose: &str) -> Box<str> {
        match &self.measure {
            Measure::Count(_) => format!("{}/count/{whose}", rule.id).into(),
            Measure::Sum { key, .. } => format!("{}/sum of {key}/{whose}", rule.id).into(),
        }
    }

    /// Returns whether it holds for the whole organisation.
    pub(super) const fn is_shared(&self) -> bool {
        self.share.is_some()
    }

    /// The charges of a request, one for each counter, and whether the amount is known. Charges carry the amount 0
    /// otherwise.
    pub(super) fn charges(&self, rule: &Rule, request: &PolicyRequest<'_>) -> (Vec<Charge>, bool) {
        let amount = match &self.measure {
            Measure::Count(_) => Some(MILLION),
            Measure::Sum { key, .. } => match &request.intent.known {
                Some(facts) if &**key == AMOUNT_KEY => sum_of_acts(facts, |one| rule.speaks_about(one)),
                _ => request.intent.context.get(&**key).and_then(serde_json::Value::as_f64).and_then(millionths),
            },
        };
        let most = self.most();
        let charge = |whose: String| Charge {
            counter: self.counter(rule, &whose),
            amount: amount.unwrap_or(0),
            most,
            window: self.window.millis,
            share: self.share,
        };
        let charges = match self.by {
            By::Agent => vec![charge(format!("agent/{}", request.intent.agent_id))],
            By::All => vec![charge("all".to_owned())],
            By::Organisation => vec![charge(ORGANISATION.to_owned())],
            By::Group => request
                .traits
                .groups
                .iter()
                .filter(|group| rule.matches.groups.is_any() || rule.matches.groups.matches(group.as_str()))
                .map(|group| charge(format!("group/{group}")))
                .collect(),
        };
        // An agent without a group cannot be counted by group.
        let is_known = amount.is_some() && !charges.is_empty();
        (charges, is_known)
    }
}

/// The sum that acts pay which need a granted capability, in millionths; `None` if an amount or a currency is not known, or
/// there are several currencies.
pub(super) fn sum_of_acts(facts: &Facts, is_granted: impl Fn(&Capability) -> bool) -> Option<i64> {
    let pays = |act: &&Act| {
        let is_counted = |doing: &Doing| {
            let is_payment = !act.amounts.is_empty() || doing.capability.operation() == Some(Operation::Transfer);
            is_payment && is_granted(&doing.capability)
        };
        act.does.iter().any(is_counted)
    };
    let (mut sum, mut currency) = (0_i64, None);
    for act in facts.acts.iter().filter(pays) {
        if !act.is_complete(Kind::Amount) || act.amounts.is_empty() {
            return None;
        }
        for amount in &act.amounts {
            let known = *currency.get_or_insert(amount.currency.as_deref());
            if known != amount.currency.as_deref() || known.is_some_and(|currency| !is_currency(currency)) {
                return None;
            }
            let count = i64::try_from(amount.count).ok()?;
            sum = sum.checked_add(millionths(amount.value)?.checked_mul(count)?)?;
        }
    }
    Some(sum)
}

/// Explains why a text under `sum` is probably not meant as a context key and would count nothing.
fn no_key(key: &str, conditions: &Conditions) -> Option<String> {
    let says = "sum names a key of the context";
    if let Some(bare) = ["intent.context.", "context."].iter().find_map(|root| key.strip_prefix(root)) {
        return Some(format!("{says}: write {bare:?} instead of {key:?}"));
    }
    if ["intent.", "agent.", "trust."].iter().any(|root| key.starts_with(root)) || key.contains('(') {
        return Some(format!("{says}, not an expression: the context never has the key {key:?}"));
    }
    conditions.names_otherwise(key).then(|| {
        format!("{says}, and {key:?} is a name under let, which limits do not read; name the context key itself")
    })
}

/// The canonical form: one text for one meaning.
impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let over = match &self.over {
            Over::Deny => "deny".to_owned(),
            Over::Escalate(reviewer) => format!("escalate to {reviewer:?}"),
        };
        let measure = match &self.measure {
            Measure::Count(most) => format!("{most}"),
            Measure::Sum { key, most } => format!("{most} of {key:?}"),
        };
        let share = self.share.map(|share| format!(" ({share})")).unwrap_or_default();
        serializer.collect_str(&format_args!("{measure} in {} by {}{share}, then {over}", self.window.millis, self.by))
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.measure {
            Measure::Count(most) => write!(f, "{most} per {}", self.window.text)?,
            Measure::Sum { key, most } => write!(f, "{} of {key} per {}", Decimal(*most), self.window.text)?,
        }
        match self.by {
            By::Agent => f.write_str(" for each agent"),
            By::Group => f.write_str(" for each group"),
            By::All => f.write_str(" for all together"),
            By::Organisation => f.write_str(" for the whole organisation"),
        }
    }
}

/// An amount in millionths, displayed as a decimal number.
pub(super) struct Decimal(pub(super) i64);

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / MILLION, (self.0 % MILLION).unsigned_abs());
        if part == 0 {
            return write!(f, "{whole}");
        }
        let digits = format!("{part:06}");
        write!(f, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

impl Window {
    fn of(node: Option<Node>, limit_at: usize, report: &mut Report<'_>) -> Option<Self> {
        let Some(node) = node else {
            report.error(limit_at, "limit.per", "the field \"per\" is missing; expected a window such as \"1h\"");
            return None;
        };
        let at = node.at;
        let text = report.text(node, "limit.per")?;
        let millis =
            duration::millis(&text, "window").map_err(|message| report.error(at, "limit.per", message)).ok()?;
        Some(Self { millis, text: text.into() })
    }
}

/// A context number in millionths, rounded up; `None` if it is negative or too large to be counted.
pub(super) fn millionths(number: f64) -> Option<i64> {
    if number < 0.0 {
        return None;
    }
    let scaled = number * 1e6;
    // 8.05 has no exact double: a number that is a whole number of millionths except for that error counts as whole.
    let nearest = scaled.round();
    let whole = if (scaled - nearest).abs() <= scaled * 1e-12 { nearest } else { scaled.ceil() };
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    (0.0..=MOST_MILLIONTHS).contains(&whole).then_some(whole as i64)
}

const FIELDS: &[&str] = &["count", "sum", "max", "per", "by", "share", "over", "reviewer"];
/// One, in millionths.
const MILLION: i64 = 1_000_000;
const MOST_MILLIONTHS: f64 = 9e18;
const MOST_COUNT: i64 = 1_000_000;
const MAX_KEY_CHARS: usize = 128;
/// The key whose sum is that of the amounts of all acts.
pub(super) const AMOUNT_KEY: &str = "amount";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_or_are_refused() {
        assert_eq!(millionths(0.1), Some(100_000));
        assert_eq!(millionths(1e-9), Some(1), "rounded up, so that many small ones count");
        assert_eq!(
            (millionths(8.05), millionths(16.1), millionths(-0.0)),
            (Some(8_050_000), Some(16_100_000), Some(0))
        );
        assert_eq!(millionths(-9e-7), None);
        for cents in 1..100_000 {
            assert_eq!(millionths(f64::from(cents) / 100.0), Some(i64::from(cents) * 10_000));
        }
        assert_eq!((millionths(-1.0), millionths(f64::NAN), millionths(1e13)), (None, None, None));
        assert_eq!(Decimal(1_500_000).to_string(), "1.5");
    }
}
