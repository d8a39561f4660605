//! Random scopes and random programs of known type, from a seed.

use serde_json::{Value as Json, json};

use super::Facts;
use rulekeep_types::{RiskLevel, Tier, Timestamp};

/// A small random generator (xorshift64*), so that a seed gives the same program everywhere.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(high).unwrap() % bound
    }

    pub(super) fn pick<'t, T: ?Sized>(&mut self, of: &[&'t T]) -> &'t T {
        of[self.below(of.len())]
    }
}

/// The type of a generated expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Bool,
    Int,
    Double,
    Text,
    Timestamp,
    Duration,
    Ints,
    Texts,
    /// A list of any items.
    Dyns,
    Dyn,
    Map,
}

impl Of {
    /// Returns whether it has to be a list: over a map, the `cel` crate keeps no order for `map` and `filter`.
    fn is_list(self) -> bool {
        matches!(self, Self::Ints | Self::Texts | Self::Dyns)
    }
}

pub(super) const EVERY: [Of; 10] =
    [Of::Bool, Of::Int, Of::Double, Of::Text, Of::Timestamp, Of::Duration, Of::Ints, Of::Texts, Of::Dyns, Of::Dyn];

/// A random agent with its intent and context.
pub(super) fn facts(random: &mut Random) -> Facts {
    let mut context = serde_json::Map::new();
    for key in KEYS {
        let value = match (key, random.below(8)) {
            (_, 0) => continue,
            (_, 1) => json(random, 2),
            ("amount" | "count", _) => json!(INTS[random.below(INTS.len())]),
            ("rate", _) => json!(DOUBLES[random.below(DOUBLES.len())]),
            ("name" | "target", _) => json!(random.pick(&WORDS)),
            ("flag", _) => json!(random.below(2) == 1),
            ("tags", _) => (0..4).map(|_| json(random, 0)).collect(),
            _ => json!({ "amount": json(random, 1), "name": json(random, 1), "flag": json(random, 0) }),
        };
        context.insert(key.to_owned(), value);
    }
    let labels =
        |random: &mut Random| (0..random.below(4)).map(|_| random.pick(&WORDS[1..]).parse().unwrap()).collect();
    Facts {
        agent_id: random.pick(&WORDS).to_owned(),
        labels: labels(random),
        groups: labels(random),
        attributes: json!({ "team": random.pick(&WORDS), "level": json(random, 1) }).as_object().unwrap().clone(),
        action: random.pick(&WORDS).to_owned(),
        risk: RiskLevel::ALL[random.below(4)],
        capabilities: (0..random.below(3)).map(|_| random.pick(&CAPABILITIES).parse().unwrap()).collect(),
        context,
        score: u16::try_from(random.below(1_001)).unwrap(),
        tier: Tier::ALL[random.below(6)],
        now: Timestamp::from_millis(i64::try_from(random.below(2_000_000_000)).unwrap() * 1_000),
    }
}

fn json(random: &mut Random, depth: usize) -> Json {
    match random.below(if depth == 0 { 6 } else { 8 }) {
        0 => Json::Null,
        1 => json!(random.below(2) == 1),
        2 => json!(INTS[random.below(INTS.len())]),
        3 => json!(DOUBLES[random.below(DOUBLES.len())]),
        4 | 5 => json!(random.pick(&WORDS)),
        6 => (0..random.below(4)).map(|_| json(random, depth - 1)).collect(),
        _ => {
            let mut map = serde_json::Map::new();
            for _ in 0..random.below(3) {
                map.insert(random.pick(&KEYS).to_owned(), json(random, depth - 1));
            }
            map.into()
        }
    }
}

/// Writes random programs. `variables` are those of the surrounding macros.
pub(super) struct Writer<'r> {
    pub(super) random: &'r mut Random,
    pub(super) variables: Vec<(&'static str, Of)>,
}

impl Writer<'_> {
    pub(super) fn expression(&mut self, of: Of, depth: usize) -> String {
        if !self.variables.is_empty() && self.random.below(3) == 0 {
            let fitting: Vec<&str> = self
                .variables
                .iter()
                .filter(|(_, is)| *is == of || *is == Of::Dyn && !of.is_list())
                .map(|(name, _)| *name)
                .collect();
            if !fitting.is_empty() {
                return self.random.pick(&fitting).to_owned();
            }
        }
        if depth == 0 {
            return self.leaf(of);
        }
        // A value of unknown type may stand anywhere, and sometimes fails there.
        match self.random.below(14) {
            0 | 1 => return self.leaf(of),
            2 if of != Of::Dyn && !of.is_list() => return self.dynamic(depth - 1),
            3 => {
                let condition = self.expression(Of::Bool, depth - 1);
                let (yes, no) = (self.expression(of, depth - 1), self.expression(of, depth - 1));
                return format!("({condition} ? {yes} : {no})");
            }
            _ => {}
        }
        match of {
            Of::Bool => self.truth(depth - 1),
            Of::Int => self.int(depth - 1),
            Of::Double => self.double(depth - 1),
            Of::Text => self.text(depth - 1),
            Of::Timestamp => self.timestamp(depth - 1),
            Of::Duration => self.duration(depth - 1),
            Of::Ints => self.list(Of::Int, depth - 1),
            Of::Texts => self.list(Of::Text, depth - 1),
            Of::Dyns => self.list(Of::Dyn, depth - 1),
            Of::Dyn => self.dynamic(depth - 1),
            Of::Map => self.leaf(of),
        }
    }

    fn leaf(&mut self, of: Of) -> String {
        let random = &mut *self.random;
        match of {
            Of::Bool => random.pick(&["true", "false", "has(context.flag)", "('a' in agent.labels)"]).to_owned(),
            Of::Int => match random.below(4) {
                0 => "trust.score".to_owned(),
                1 => random.pick(&["0x1F", "size(agent.labels)", "-9223372036854775808"]).to_owned(),
                _ => INTS[random.below(INTS.len())].to_string(),
            },
            Of::Double => format!("{:?}", DOUBLES[random.below(DOUBLES.len())]),
            Of::Text => match random.below(3) {
                0 => random.pick(&["intent.action", "agent.id"]).to_owned(),
                1 => random.pick(&[r"'\x61\u00e9'", r"r'a\b'", r#""""a"b""""#, r"'\141\n'"]).to_owned(),
                _ => format!("{:?}", random.pick(&WORDS)),
            },
            Of::Timestamp => random
                .pick(&[
                    "now",
                    "now",
                    "timestamp('2024-02-29T23:00:01.25Z')",
                    "timestamp('0001-01-01T00:00:00Z')",
                    "timestamp('2026-01-31T09:30:00Z')",
                    "timestamp('1969-12-31T23:59:58.5Z')",
                    "timestamp('9999-12-31T23:59:59Z')",
                ])
                .to_owned(),
            Of::Duration => random
                .pick(&["duration('1h30m')", "duration('-36h')", "duration('1.5s')", "duration('250ms')"])
                .to_owned(),
            Of::Ints => random.pick(&["[1, 2, 3]", "[0, 2, 7]", "[1, 9223372036854775807]"]).to_owned(),
            Of::Texts => random
                .pick(&["agent.labels", "agent.groups", "intent.capabilities", "['a', 'finance', '12']"])
                .to_owned(),
            Of::Dyns => random.pick(&["[1, 'a', 2.0, null]", "[true, [1], 2]", "[2.5, 2, 1]", "[]"]).to_owned(),
            Of::Dyn => self.path(),
            Of::Map => random.pick(&["context", "agent.attributes", "intent.context"]).to_owned(),
        }
    }

    fn path(&mut self) -> String {
        let random = &mut *self.random;
        let key = random.pick(&KEYS);
        match random.below(6) {
            0 => format!("context[{key:?}]"),
            1 if random.below(4) == 0 => format!("context.{key}.{}", random.pick(&KEYS)),
            1 => "agent.attributes.level".to_owned(),
            2 => format!("context.nested.{}", random.pick(&KEYS)),
            3 => format!("context.tags[{}]", random.below(5)),
            _ => format!("context.{key}"),
        }
    }

    fn dynamic(&mut self, depth: usize) -> String {
        match self.random.below(6) {
            0 => {
                let (left, right) = (self.path(), self.path());
                // Inside a macro nothing may grow, and a dyn value might be a list.
                let signs = ["-", "*", "/", "%", "+"];
                let sign = self.sign(&signs[..if self.variables.is_empty() { 5 } else { 4 }]);
                format!("({left} {sign} {right})")
            }
            1 => format!("{}[{}]", self.leaf(Of::Map), self.expression(Of::Text, depth)),
            2 => format!("({})[{}]", self.expression(Of::Dyns, depth), self.expression(Of::Int, depth.min(1))),
            _ => self.path(),
        }
    }

    fn truth(&mut self, depth: usize) -> String {
        let pair = |writer: &mut Self, of| (writer.expression(of, depth), writer.expression(of, depth));
        match self.random.below(18) {
            16 | 17 => {
                let (left, right) = (self.number(), self.number());
                format!("({left} {} {right})", self.sign(&["==", "!=", "<", "<=", ">", ">="]))
            }
            0 | 1 => {
                let terms: Vec<String> =
                    (0..2 + self.random.below(3)).map(|_| self.expression(Of::Bool, depth)).collect();
                format!("({})", terms.join(self.sign(&[" && ", " || "])))
            }
            2 => {
                let (left, right) = pair(self, Of::Bool);
                format!("({left} && {right} || !{left})")
            }
            3 => format!("!({})", self.expression(Of::Bool, depth)),
            4 => {
                let numbers = [Of::Int, Of::Double, Of::Dyn];
                let (left, right) = (numbers[self.random.below(3)], numbers[self.random.below(3)]);
                let (left, right) = (self.expression(left, depth), self.expression(right, depth));
                format!("({left} {} {right})", self.sign(&["==", "!=", "<", "<=", ">", ">="]))
            }
            5 | 6 => {
                let ordered = [Of::Int, Of::Double, Of::Text, Of::Timestamp, Of::Duration, Of::Bool, Of::Dyn];
                let of = ordered[self.random.below(ordered.len())];
                let (left, right) = pair(self, of);
                format!("({left} {} {right})", self.sign(&["==", "!=", "<", "<=", ">", ">="]))
            }
            7 => {
                let of = EVERY[self.random.below(EVERY.len())];
                let (left, right) = (self.expression(of, depth), self.expression(Of::Dyn, depth));
                format!("({left} {} {right})", self.sign(&["==", "!="]))
            }
            8 => {
                let (of, lists) = [
                    (Of::Int, Of::Ints),
                    (Of::Text, Of::Texts),
                    (Of::Dyn, Of::Dyns),
                    (Of::Text, Of::Map),
                    (Of::Dyn, Of::Dyn),
                ][self.random.below(5)];
                format!("({} in {})", self.expression(of, depth), self.expression(lists, depth))
            }
            9 => format!("has(context.{}.{})", self.random.pick(&KEYS), self.random.pick(&KEYS)),
            10 => format!("has(context.{})", self.random.pick(&KEYS)),
            11 | 12 => {
                let (left, right) = pair(self, Of::Text);
                format!("({left}).{}({right})", self.sign(&["contains", "startsWith", "endsWith"]))
            }
            13 => {
                let pattern = self.sign(&["^[a-f]+$", "fin.nce", "é|a", "", "(?i)REFUND"]);
                format!("({}).matches('{pattern}')", self.expression(Of::Text, depth))
            }
            _ => {
                let name = self.sign(&["all", "exists", "exists_one"]);
                self.each(name, None, Of::Bool, depth)
            }
        }
    }

    fn int(&mut self, depth: usize) -> String {
        match self.random.below(8) {
            0 => {
                let of = [Of::Text, Of::Texts, Of::Ints, Of::Map, Of::Dyn][self.random.below(5)];
                format!("size({})", self.expression(of, depth))
            }
            1 => format!("({}).size()", self.expression(Of::Text, depth)),
            2 => {
                let of = [Of::Int, Of::Double, Of::Text, Of::Timestamp, Of::Dyn][self.random.below(5)];
                format!("int({})", self.expression(of, depth))
            }
            3 => {
                let part = self.sign(&[
                    "FullYear",
                    "Month",
                    "Date",
                    "DayOfMonth",
                    "DayOfYear",
                    "DayOfWeek",
                    "Hours",
                    "Minutes",
                    "Seconds",
                    "Milliseconds",
                ]);
                let zone = self.sign(&[
                    "",
                    "",
                    "'Europe/Berlin'",
                    "'America/St_Johns'",
                    "'Asia/Kathmandu'",
                    "'UTC'",
                    "'-09:30'",
                    "'02:00'",
                    "intent.risk",
                ]);
                format!("({}).get{part}({zone})", self.expression(Of::Timestamp, depth))
            }
            4 => format!("-({})", self.expression(Of::Int, depth)),
            5 => format!("({})[{}]", self.expression(Of::Ints, depth), self.random.below(3)),
            _ => {
                let parts: Vec<String> = (0..3).map(|_| self.expression(Of::Int, depth)).collect();
                let (first, second) = (self.sign(&["+", "-", "*", "/", "%"]), self.sign(&["+", "-", "*", "/", "%"]));
                format!("({} {first} {} {second} {})", parts[0], parts[1], parts[2])
            }
        }
    }

    fn double(&mut self, depth: usize) -> String {
        match self.random.below(4) {
            0 => {
                let of = [Of::Int, Of::Double, Of::Text, Of::Dyn][self.random.below(4)];
                format!("double({})", self.expression(of, depth))
            }
            1 => format!("-({})", self.expression(Of::Double, depth)),
            _ => {
                let (left, right) = (self.expression(Of::Double, depth), self.expression(Of::Double, depth));
                format!("({left} {} {right})", self.sign(&["+", "-", "*", "/"]))
            }
        }
    }

    fn text(&mut self, depth: usize) -> String {
        match self.random.below(3) {
            0 => {
                let of = [Of::Int, Of::Text, Of::Bool, Of::Double][self.random.below(4)];
                format!("string({})", self.expression(of, depth))
            }
            1 => format!("({})[{}]", self.expression(Of::Texts, depth), self.random.below(2)),
            // Inside a macro texts are not concatenated.
            _ if !self.variables.is_empty() => self.leaf(Of::Text),
            _ => format!("({} + {})", self.expression(Of::Text, depth), self.expression(Of::Text, depth)),
        }
    }

    fn timestamp(&mut self, depth: usize) -> String {
        let (time, span) = (self.expression(Of::Timestamp, depth), self.expression(Of::Duration, depth));
        match self.random.below(3) {
            0 => format!("({time} + {span})"),
            1 => format!("({span} + {time})"),
            _ => format!("({time} - {span})"),
        }
    }

    fn duration(&mut self, depth: usize) -> String {
        let (of, signs): (Of, &[&str]) =
            if self.random.below(2) == 0 { (Of::Timestamp, &["-"]) } else { (Of::Duration, &["+", "-"]) };
        let (left, right) = (self.expression(of, depth), self.expression(of, depth));
        format!("({left} {} {right})", self.sign(signs))
    }

    fn list(&mut self, of: Of, depth: usize) -> String {
        let lists = match of {
            Of::Int => Of::Ints,
            Of::Text => Of::Texts,
            _ => Of::Dyns,
        };
        match self.random.below(5) {
            0 => self.each("filter", Some(lists), Of::Bool, depth),
            1 => self.each("map", None, of, depth),
            2 if self.variables.is_empty() => {
                format!("({} + {})", self.expression(lists, depth), self.expression(lists, depth))
            }
            _ => {
                let items: Vec<String> = (0..self.random.below(4)).map(|_| self.expression(of, depth)).collect();
                format!("[{}]", items.join(", "))
            }
        }
    }

    /// A macro over a list, of the given kind or any, at most two levels deep.
    fn each(&mut self, name: &str, over: Option<Of>, body: Of, depth: usize) -> String {
        let Some(variable) = ["x", "y"].get(self.variables.len()).copied() else {
            return self.leaf(if name == "map" || name == "filter" { over.unwrap_or(Of::Dyns) } else { Of::Bool });
        };
        let over = over.unwrap_or([Of::Ints, Of::Texts, Of::Dyns][self.random.below(3)]);
        let ordered = name == "map" || name == "filter";
        let over = if !ordered && self.random.below(4) == 0 { [Of::Dyn, Of::Map][self.random.below(2)] } else { over };
        let range = self.expression(over, depth);
        let item = match over {
            Of::Ints => Of::Int,
            Of::Texts | Of::Map => Of::Text,
            _ => Of::Dyn,
        };
        self.variables.push((variable, item));
        let body = if body == Of::Bool && self.random.below(2) == 0 {
            self.question(variable, item)
        } else {
            self.expression(body, depth)
        };
        self.variables.pop();
        format!("({range}).{name}({variable}, {body})")
    }

    /// An expression that holds for some items and fails for others.
    fn question(&mut self, variable: &str, item: Of) -> String {
        let asked = match item {
            Of::Int => format!("{} % {variable}", self.leaf(Of::Int)),
            Of::Text => format!("int({variable})"),
            _ => variable.to_owned(),
        };
        format!("({asked} {} {})", self.sign(&["==", "!=", "<", ">="]), self.leaf(Of::Int))
    }

    fn number(&mut self) -> String {
        let of = [Of::Int, Of::Double][self.random.below(2)];
        self.leaf(of)
    }

    fn sign(&mut self, of: &[&'static str]) -> &'static str {
        self.random.pick(of)
    }
}

pub(super) const KEYS: [&str; 8] = ["amount", "count", "rate", "name", "flag", "tags", "nested", "target"];
pub(super) const WORDS: [&str; 9] = ["", "a", "finance", "refund_order", "é", "12", "-3.5", "T3", "日本"];
const CAPABILITIES: [&str; 3] = ["payment:transfer", "email:send", "file:read"];
const INTS: [i64; 12] = [0, 1, 2, 2, 3, 7, -7, 12, 100, 9_007_199_254_740_992, i64::MAX, i64::MIN + 1];
const DOUBLES: [f64; 10] = [0.0, 1.0, 2.5, -7.5, 100.0, 1e300, 9_007_199_254_740_992.0, 9.3e18, 1e-7, 2.0];
