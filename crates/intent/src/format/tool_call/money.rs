//! The amount of a payment as a whole: what the arguments add to it, and what multiplies it. A number that is not known
//! to be no amount leaves the amount open, which counts as more than every limit.

use rulekeep_types::facts::is_currency;
use rulekeep_types::{MAX_CONTEXT_DEPTH, Operation, Resource, RiskLevel, UnreadKind, json_depth};

use crate::sign::Sign;

use super::super::name;
use super::super::tools::{Role, tools};
use super::arguments::Arguments;
use super::effects::money;
use super::json::{Field, Json, values};
use super::shape::Call;

impl Arguments<'_, '_> {
    /// Reads all arguments of a payment for what they do to its amount.
    pub(super) fn whole_amount(&mut self, call: &Call<'_>) {
        let pays = |operation| operation == Operation::Transfer;
        let from = self.first_amount.min(self.reader.reading.facts.amounts.len());
        let is_standing = (self.act.operation, self.act.resource) == (Operation::Write, Resource::Payment)
            && self.reader.reading.facts.amounts.len() > from;
        if !is_standing && !pays(self.act.operation) && !self.reader.reading.acts.iter().any(|act| pays(act.operation))
        {
            return;
        }
        let mut factor = 1.0;
        for value in &call.arguments {
            self.part("", value, &mut factor);
        }
        for (key, value) in call.beside.iter().copied() {
            self.part(key, value, &mut factor);
        }
        if factor > MOST_TIMES {
            return self.reader.reading.facts.note_unread(UnreadKind::Amount, &factor.to_string());
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and the maximum, as just checked"
        )]
        let times = factor.ceil().max(1.0) as u64;
        self.reader.reading.multiply_amounts(from, times);
        let is_small = self.reader.reading.facts.total().is_some_and(|(sum, _)| sum <= SMALL);
        if is_standing && !is_small {
            // A standing order makes later payments without another request.
            self.act.risk = self.act.risk.max(Some(RiskLevel::High));
        }
    }

    /// INVARIANT: the depth is bounded by the reader's check, and that of a text by its own.
    fn part(&mut self, key: &str, value: &Json<'_>, factor: &mut f64) {
        match value {
            Json::Fields(fields) => fields.iter().for_each(|(inner, value): &Field<'_>| {
                // "amount": {"value": 20, "currency": "EUR"} is one amount, which has been read.
                let is_read = tools().role(key) == Some(Role::Amount) && tools().value("amounts", inner);
                if !is_read {
                    self.part(inner, value, factor);
                }
            }),
            Json::List(items) => self.several(key, items, factor),
            Json::Number(number) => self.number_of(key, number.as_f64().unwrap_or_default(), factor),
            // Arguments given as JSON in a string.
            Json::Text(text) if text.trim_start().starts_with('{') => {
                if json_depth(text) <= MAX_CONTEXT_DEPTH {
                    values(text).0.iter().for_each(|inner| self.part(key, inner, factor));
                }
            }
            Json::Text(text) => self.text_of(key, text, factor),
            Json::Bool(true) => self.flag_of(key, factor),
            Json::Bool(false) | Json::Null => {}
        }
    }

    /// Reads a list: several payees or dates are several payments.
    fn several(&mut self, key: &str, items: &[Json<'_>], factor: &mut f64) {
        let words = name::words(key);
        let is_plain = items.iter().all(|item| matches!(item, Json::Text(_) | Json::Number(_)));
        let multiplies = tools().role(key) == Some(Role::Recipient) || has(&words, "factors");
        if is_plain && multiplies {
            return factor_of(items.len(), factor);
        }
        for item in items {
            self.part(key, item, factor);
        }
    }

    fn number_of(&mut self, key: &str, number: f64, factor: &mut f64) {
        let words = name::words(key);
        let role = tools().role(key);
        let facts = &mut self.reader.reading.facts;
        let names_unit = words
            .windows(2)
            .any(|pair| matches!(pair, [sum, per] if per == "per" && tools().role(sum) == Some(Role::Amount)));
        match () {
            () if role == Some(Role::Amount) => {}
            () if names_unit || has(&words, "surplus") => facts.note_amount(number.abs(), None),
            () if has(&words, "factors") || role == Some(Role::Count) => {
                if number > 0.0 {
                    *factor *= number;
                } else if number < 0.0 {
                    facts.note_unread(UnreadKind::Amount, key);
                }
            }
            () if number == 0.0 || role == Some(Role::Idle) || has(&words, "no_amounts") => {}
            () => facts.note_unread(UnreadKind::Amount, key),
        }
    }

    fn text_of(&mut self, key: &str, text: &str, factor: &mut f64) {
        let words = name::words(key);
        let role = tools().role(key);
        let facts = &mut self.reader.reading.facts;
        if has(&words, "periods") {
            return match times_a_month(text) {
                Some(times) => *factor *= times,
                None => facts.note_unread(UnreadKind::Amount, text),
            };
        }
        let is_currency = |word: &str| is_currency(word) || tools().value("currencies", word);
        match role {
            Some(Role::Amount) => {
                // "90 BTC" and "ninety" are no sums that can be counted.
                let mut letters = text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
                let is_named = tools().value("everything", text);
                let is_part = text.contains('%');
                if !is_named && (is_part || letters.any(|word| !is_currency(word)) || money(text).is_none()) {
                    facts.note_unread(UnreadKind::Amount, text);
                }
            }
            Some(Role::Currency) if !is_currency(text) => facts.note_unread(UnreadKind::Amount, text),
            Some(Role::Recipient) if is_group(text) => facts.note_unread(UnreadKind::Amount, text),
            // "a, b, c": three payees.
            Some(Role::Recipient) if text.contains([',', ';']) => {
                let payees = text.split([',', ';']).filter(|payee| !payee.trim().is_empty()).count();
                factor_of(payees, factor);
            }
            _ if has(&words, "denominations") && !is_currency(text) && is_unit(text) => {
                facts.note_unread(UnreadKind::Amount, text);
            }
            // A number as text; the number of an account is none.
            _ if (matches!(role, None | Some(Role::Count)) || has(&words, "factors"))
                && let Ok(number) = text.trim().parse::<f64>() =>
            {
                self.number_of(key, number, factor);
            }
            _ => {}
        }
    }

    fn flag_of(&mut self, key: &str, factor: &mut f64) {
        let words = name::words(key);
        words.iter().filter_map(|word| times_a_month(word)).for_each(|times| *factor *= times);
        if has(&words, "totals") {
            self.sign(Sign::AllMoney, key);
        }
        if has(&words, "totals") || has(&words, "periods") {
            self.reader.reading.facts.note_unread(UnreadKind::Amount, key);
        }
    }
}

/// Multiplies by the number of those that are paid.
fn factor_of(payees: usize, factor: &mut f64) {
    #[expect(clippy::cast_precision_loss, reason = "lengths of lists are far below 2^53")]
    let count = payees.max(1) as f64;
    *factor *= count;
}

/// The number of payments within a month of a payment that recurs; `None` if the text does not say.
fn times_a_month(text: &str) -> Option<f64> {
    let text = text.trim().to_ascii_lowercase();
    // A date on which something is due.
    let is_date = text.len() >= 8
        && text.starts_with(|c: char| c.is_ascii_digit())
        && text.contains('-')
        && !text.contains(['*', ' ']);
    let known = |list: &str| tools().value(list, &text);
    match () {
        () if is_date || known("off") || known("monthly") => Some(1.0),
        () if known("weekly") => Some(5.0),
        () if known("daily") => Some(31.0),
        () if known("hourly") => Some(744.0),
        () => None,
    }
}

/// Returns whether a payee is a group, each of which is paid.
fn is_group(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or("");
    tools().value("everybody", text) || tools().value("everybody", first) || matches!(first, "each" | "every")
}

/// Returns whether a text is the short name of a unit.
fn is_unit(text: &str) -> bool {
    (2..=12).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

fn has(words: &[String], list: &str) -> bool {
    words.iter().any(|word| tools().value(list, word))
}

/// The largest sum of an everyday payment.
const SMALL: f64 = 100.0;
/// Maximum number of payments that an amount is multiplied by.
const MOST_TIMES: f64 = 1e12;

#[cfg(test)]
mod tests {
    use rulekeep_types::RiskLevel;

    #[test]
    fn the_amount_of_a_payment_is_counted_whole_or_open() {
        let parser = crate::Parser::new().unwrap();
        for (arguments, amount) in [
            (r#""amount":90,"note":"lunch""#, Some(90.0)),
            (r#""amount":9,"tip":1"#, Some(10.0)),
            (r#""amount":90,"tip":9000"#, Some(9090.0)),
            (r#""amount":90,"quantity":3"#, Some(270.0)),
            (r#""amount":90,"recipients":["a","b"]"#, Some(180.0)),
            (r#""amount":90,"cc":"a, b""#, Some(180.0)),
            (r#""amount":90,"units":"3""#, Some(270.0)),
            (r#""amount":"90%""#, None),
            (r#""amount":90,"recurring":"daily""#, Some(2790.0)),
            (r#""amount":9,"interval":"month""#, Some(9.0)),
            (r#""amount":90,"recurring":false,"invoice_id":77,"date":"2026-12-01""#, Some(90.0)),
            (r#""price_per_night":90,"nights":2"#, Some(180.0)),
            (r#""amount":90,"exponent":6"#, None),
            (r#""amount":90,"amount_override":9000"#, None),
            (r#""amount":90,"currency":"BTC""#, None),
            (r#""amount":"90 BTC""#, None),
            (r#""amount":90,"recurring":true"#, None),
            (r#""amount":90,"schedule":"* * * * *""#, None),
        ] {
            let call = format!(r#"{{"tool":"pay","arguments":{{"to":"Bob",{arguments}}}}}"#);
            let intent = parser.parse_text(&"tester".parse().unwrap(), &call, &serde_json::Map::new()).unwrap().intent;
            assert_eq!(intent.context.get("amount").and_then(serde_json::Value::as_f64), amount, "{arguments}");
            assert!(amount.is_some() || intent.risk_level >= RiskLevel::High, "{arguments}");
        }
    }

    #[test]
    fn arguments_in_a_string_multiply_the_amount_too() {
        let parser = crate::Parser::new().unwrap();
        let call = r#"{"name":"pay","arguments":"{\"to\":\"Bob\",\"amount\":90,\"quantity\":3}"}"#;
        let intent = parser.parse_text(&"tester".parse().unwrap(), call, &serde_json::Map::new()).unwrap().intent;
        assert_eq!(intent.context.get("amount").and_then(serde_json::Value::as_f64), Some(270.0));
    }
}
