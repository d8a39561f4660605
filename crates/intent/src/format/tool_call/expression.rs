//! Calls written as expressions: `send_email(to="x")`, `[a.b(c=1), d()]`.

use std::borrow::Cow;

use serde_json::Number;

use super::json::{Field, Json};

/// A call written as an expression.
#[derive(Debug, PartialEq)]
pub(super) struct Written<'a> {
    pub name: &'a str,
    pub arguments: Json<'a>,
}

/// The kind of expression that a text is.
#[derive(Debug, PartialEq)]
pub(super) enum Expression<'a> {
    Calls(Vec<Written<'a>>),
    /// A text that starts and ends like a call, but cannot be parsed.
    Broken,
    None,
}

/// Parses a text that is a single call, or a list of calls, and nothing else.
pub(super) fn read(text: &str) -> Expression<'_> {
    let text = text.trim();
    let is_list = text.starts_with('[') && text.ends_with(']');
    let inner = if is_list { text.get(1..text.len() - 1).unwrap_or("") } else { text };
    let inner = inner.trim().trim_end_matches(';').trim_end();
    let Some((first, rest)) = inner.split_once('(') else { return Expression::None };
    if !inner.ends_with(')') || !is_name(first) {
        return Expression::None;
    }
    let is_plain_word = !first.contains(['_', '.']) && !has_camel(first);
    if !is_list && is_plain_word && !opens_with_key(rest) {
        // "f(x)" is arithmetic and "call me(now)" is English.
        return Expression::None;
    }
    let mut cutter = Cutter { text: inner, at: 0, values: 0 };
    let mut calls = Vec::new();
    loop {
        let Some(call) = cutter.call() else { return Expression::Broken };
        calls.push(call);
        cutter.blank();
        if cutter.rest().is_empty() {
            return Expression::Calls(calls);
        }
        if !(cutter.take(',') || cutter.take(';')) {
            return Expression::Broken;
        }
        cutter.blank();
    }
}

fn is_name(name: &str) -> bool {
    name.len() > 2
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

fn has_camel(name: &str) -> bool {
    name.bytes().zip(name.bytes().skip(1)).any(|(one, next)| one.is_ascii_lowercase() && next.is_ascii_uppercase())
}

fn opens_with_key(rest: &str) -> bool {
    rest.split_once('=').is_some_and(|(key, _)| is_key(key.trim()))
}

fn is_key(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

struct Cutter<'a> {
    text: &'a str,
    at: usize,
    values: usize,
}

impl<'a> Cutter<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn blank(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn take(&mut self, mark: char) -> bool {
        let found = self.rest().starts_with(mark);
        self.at += if found { mark.len_utf8() } else { 0 };
        found
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let end =
            rest.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.' | '-' | '+')).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or("")
    }

    fn call(&mut self) -> Option<Written<'a>> {
        let name = self.word();
        if name.is_empty() || !self.take('(') {
            return None;
        }
        let fields = self.fields(')', '=', 1)?;
        Some(Written { name, arguments: Json::Fields(fields) })
    }

    /// Parses `key=value` or `value` items up to the closing mark.
    fn fields(&mut self, close: char, link: char, depth: usize) -> Option<Vec<Field<'a>>> {
        let mut fields: Vec<Field<'a>> = Vec::new();
        loop {
            self.blank();
            if self.take(close) {
                return Some(fields);
            }
            let start = self.at;
            let key = self.key(link);
            if key.is_none() {
                self.at = start;
            }
            let value = self.value(depth)?;
            fields.push((key.unwrap_or(Cow::Borrowed("argument")), value));
            self.blank();
            if !self.take(',') && !self.rest().starts_with(close) {
                return None;
            }
        }
    }

    fn key(&mut self, link: char) -> Option<Cow<'a, str>> {
        let key = match self.rest().chars().next()? {
            quote @ ('"' | '\'') => self.quoted(quote)?,
            _ => Cow::Borrowed(Some(self.word()).filter(|word| is_key(word))?),
        };
        self.blank();
        (self.take(link) && !self.rest().starts_with('=')).then_some(key)
    }

    fn value(&mut self, depth: usize) -> Option<Json<'a>> {
        self.blank();
        self.values += 1;
        if depth > DEEPEST || self.values > MOST_VALUES {
            return None;
        }
        match self.rest().chars().next()? {
            quote @ ('"' | '\'') => self.quoted(quote).map(Json::Text),
            '[' | '(' => {
                let close = if self.take('[') {
                    ']'
                } else {
                    self.at += 1;
                    ')'
                };
                let items = self.fields(close, '\u{0}', depth + 1)?;
                Some(Json::List(items.into_iter().map(|(_, value)| value).collect()))
            }
            '{' => {
                self.at += 1;
                self.fields('}', ':', depth + 1).map(Json::Fields)
            }
            _ => {
                let start = self.at;
                let word = self.word();
                if self.rest().starts_with('(') {
                    // A call as a value: its result is unknown, but the call is made.
                    self.at = start;
                    let call = self.call()?;
                    return Some(Json::Fields(vec![
                        (Cow::Borrowed("name"), Json::Text(Cow::Borrowed(call.name))),
                        (Cow::Borrowed("arguments"), call.arguments),
                    ]));
                }
                match word {
                    "" => None,
                    "True" | "true" => Some(Json::Bool(true)),
                    "False" | "false" => Some(Json::Bool(false)),
                    "None" | "null" => Some(Json::Null),
                    word => {
                        let number = word.parse().ok().and_then(Number::from_f64);
                        Some(number.map_or(Json::Text(Cow::Borrowed(word)), Json::Number))
                    }
                }
            }
        }
    }

    fn quoted(&mut self, quote: char) -> Option<Cow<'a, str>> {
        let rest = self.rest().get(1..)?;
        let mut escaped = false;
        let end = rest.char_indices().find(|&(_, c)| {
            let ends = c == quote && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let (end, _) = end?;
        self.at += end + 2;
        let inner = rest.get(..end)?;
        if !inner.contains('\\') {
            return Some(Cow::Borrowed(inner));
        }
        let mut plain = String::with_capacity(inner.len());
        let mut characters = inner.chars();
        while let Some(c) = characters.next() {
            match (c, if c == '\\' { characters.next() } else { None }) {
                (_, Some('n')) => plain.push('\n'),
                (_, Some('t')) => plain.push('\t'),
                (_, Some(other)) => plain.push(other),
                (c, None) => plain.push(c),
            }
        }
        Some(Cow::Owned(plain))
    }
}

/// Maximum nesting depth of an expression.
const DEEPEST: usize = 24;
/// Maximum number of values of an expression.
const MOST_VALUES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> String {
        match read(text) {
            Expression::Calls(calls) => calls.iter().map(|call| call.name).collect::<Vec<_>>().join(" "),
            Expression::Broken => "broken".to_owned(),
            Expression::None => "none".to_owned(),
        }
    }

    #[test]
    fn an_expression_is_told_from_other_texts() {
        for (text, expected) in [
            ("send_email(to='x', body=\"a (b), c\")", "send_email"),
            ("[a.b(c=1), d(e=[1, 2], f={'g': h(1)})]", "a.b d"),
            ("sendEmail(to='it\\'s')", "sendEmail"),
            ("search(query='x')", "search"),
            ("get_x(); drop_y()", "get_x drop_y"),
            ("delete_x(a='b", "none"),
            ("delete_x(a='b)", "broken"),
            ("delete_x(a=!!)", "broken"),
            ("delete_x(a) and more (b)", "broken"),
            ("call me (now)", "none"),
            ("f(x)", "none"),
            ("[Calendar] show it (now)", "none"),
        ] {
            assert_eq!(names(text), expected, "{text}");
        }
    }

    #[test]
    fn the_values_of_an_expression_keep_their_kinds() {
        let Expression::Calls(calls) = read("pay_x(amount=20.5, to=['a', 'b'], all=True)") else { panic!() };
        let Json::Fields(fields) = &calls[0].arguments else { panic!() };
        assert_eq!(fields[0], ("amount".into(), Json::Number(Number::from_f64(20.5).unwrap())));
        assert_eq!(fields[1].1, Json::List(vec![Json::Text("a".into()), Json::Text("b".into())]));
        assert_eq!(fields[2].1, Json::Bool(true));
    }
}
