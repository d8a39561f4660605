//! The parser: CEL's grammar, read by recursive descent directly into checked nodes. Chains are loops, and nesting is
//! counted before it is entered.

use super::check::Builder;
use super::construct;
use super::error::ConditionError;
use super::facts::Typed;
use super::names::{self, METHODS, Method};
use super::token::{LITERAL_WORDS, Token, TokenKind, is_reserved, tokens};
use super::tree::{Macro, Operator, Relation};
use super::types::Type;
use super::value::Value;
use super::{Bound, MAX_DEPTH};

type Result<T> = std::result::Result<T, ConditionError>;

/// Parses a whole source; the returned builder knows what it reads.
pub(super) fn parse<'b>(source: &str, bindings: &'b [Bound]) -> Result<(Typed, Builder<'b>)> {
    let tokens = tokens(source)?;
    let mut parser = Parser { tokens: &tokens, next: 0, nesting: 0, builder: Builder::new(bindings) };
    let typed = parser.expression()?;
    match parser.peek() {
        TokenKind::End => Ok((typed, parser.builder)),
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

struct Parser<'t, 's, 'b> {
    tokens: &'t [Token<'s>],
    next: usize,
    nesting: u32,
    builder: Builder<'b>,
}

impl<'t, 's> Parser<'t, 's, '_> {
    /// `a ? b : c`, or just `a`.
    fn expression(&mut self) -> Result<Typed> {
        // INVARIANT: every recursion into the grammar passes through here.
        if self.nesting >= MAX_DEPTH {
            return Err(ConditionError::new(self.at(), format!("nested more than {MAX_DEPTH} deep")));
        }
        self.nesting += 1;
        let condition = self.or()?;
        let at = self.at();
        let typed = if self.take("?") {
            let yes = self.or()?;
            self.must_be(":")?;
            let no = self.expression()?;
            construct::ternary(at, condition, yes, no)?
        } else {
            condition
        };
        self.nesting -= 1;
        Ok(typed)
    }

    fn or(&mut self) -> Result<Typed> {
        self.logical("||", true, Self::and)
    }

    fn and(&mut self) -> Result<Typed> {
        self.logical("&&", false, Self::relation)
    }

    fn logical(&mut self, sign: &str, decides: bool, term: fn(&mut Self) -> Result<Typed>) -> Result<Typed> {
        let first = term(self)?;
        let at = self.at();
        if !self.take(sign) {
            return Ok(first);
        }
        let mut terms = vec![first, term(self)?];
        while self.take(sign) {
            terms.push(term(self)?);
        }
        construct::logical(at, decides, terms)
    }

    fn relation(&mut self) -> Result<Typed> {
        let mut left = self.sum()?;
        loop {
            let at = self.at();
            let relation = match self.peek() {
                TokenKind::Name("in") => None,
                TokenKind::Mark("==") => Some(Relation::Equal),
                TokenKind::Mark("!=") => Some(Relation::Unequal),
                TokenKind::Mark("<") => Some(Relation::Less),
                TokenKind::Mark("<=") => Some(Relation::AtMost),
                TokenKind::Mark(">") => Some(Relation::Greater),
                TokenKind::Mark(">=") => Some(Relation::AtLeast),
                _ => return Ok(left),
            };
            self.next += 1;
            let right = self.sum()?;
            left = match relation {
                Some(relation) => construct::compare(at, relation, left, right)?,
                None => self.builder.member(at, left, right)?,
            };
        }
    }

    fn sum(&mut self) -> Result<Typed> {
        self.arithmetic(&[("+", Operator::Add), ("-", Operator::Subtract)], Self::product)
    }

    fn product(&mut self) -> Result<Typed> {
        let operators = [("*", Operator::Multiply), ("/", Operator::Divide), ("%", Operator::Remainder)];
        self.arithmetic(&operators, Self::unary)
    }

    fn arithmetic(&mut self, operators: &[(&str, Operator)], term: fn(&mut Self) -> Result<Typed>) -> Result<Typed> {
        let first = term(self)?;
        let mut steps = Vec::new();
        loop {
            let at = self.at();
            let TokenKind::Mark(mark) = self.peek() else { break };
            let Some(operator) = names::find(operators, mark) else { break };
            self.next += 1;
            steps.push((at, operator, term(self)?));
        }
        if steps.is_empty() { Ok(first) } else { self.builder.arithmetic(first, steps) }
    }

    /// A value after any number of `!`, or any number of `-`.
    fn unary(&mut self) -> Result<Typed> {
        let at = self.at();
        let nots = self.count("!");
        if nots > 0 {
            let inner = self.member()?;
            // Two of them do not change the value, but still require a bool.
            return (0..2 - nots % 2).try_fold(inner, |inner, _| construct::not(at, inner));
        }
        let minuses = self.count("-");
        if minuses == 0 {
            return self.member();
        }
        // The last sign belongs to the number, because the smallest int has no positive counterpart.
        if let TokenKind::Int(digits) = *self.peek() {
            self.next += 1;
            let value = 0_i64.checked_sub_unsigned(digits);
            let value = value.ok_or_else(|| ConditionError::new(at, "the integer does not fit 64 bits"))?;
            let number = construct::constant(at, Value::Int(value), Type::Int)?;
            let number = self.follow(number)?;
            return Self::negated(at, minuses - 1, number);
        }
        let inner = self.member()?;
        Self::negated(at, minuses, inner)
    }

    fn negated(at: usize, signs: usize, inner: Typed) -> Result<Typed> {
        let times = if signs == 0 { 0 } else { 2 - signs % 2 };
        (0..times).try_fold(inner, |inner, _| construct::negate(at, inner))
    }

    fn member(&mut self) -> Result<Typed> {
        let first = self.primary()?;
        self.follow(first)
    }

    /// The fields, indexes and calls that follow a value.
    fn follow(&mut self, mut value: Typed) -> Result<Typed> {
        loop {
            if self.take(".") {
                let at = self.at();
                let name = self.field_name()?;
                value =
                    if self.take("(") { self.method(at, value, name)? } else { self.builder.field(at, value, name)? };
            } else if self.peek() == &TokenKind::Mark("[") {
                let at = self.at();
                self.next += 1;
                let index = self.expression()?;
                self.must_be("]")?;
                value = self.builder.index(at, value, index)?;
            } else {
                return Ok(value);
            }
        }
    }

    /// The arguments of `x.name(`.
    fn method(&mut self, at: usize, of: Typed, name: &'s str) -> Result<Typed> {
        if let Some(Method::Macro(kind)) = names::find(METHODS, name) {
            return self.macro_call(at, kind, of);
        }
        let arguments = self.arguments(")")?;
        construct::method(at, of, name, arguments)
    }

    fn macro_call(&mut self, at: usize, kind: Macro, range: Typed) -> Result<Typed> {
        let variable_at = self.at();
        let variable = match *self.peek() {
            TokenKind::Name(name) if !is_reserved(name) => name,
            _ => return Err(self.unexpected("a name for the item")),
        };
        self.next += 1;
        self.must_be(",")?;
        self.builder.open(at, &range, variable_at, variable)?;
        let body = self.expression()?;
        self.must_be(")")?;
        self.builder.close(at, kind, range, body)
    }

    fn primary(&mut self) -> Result<Typed> {
        let at = self.at();
        let kind = self.peek();
        self.next += 1;
        match kind {
            TokenKind::Int(digits) => {
                let value = i64::try_from(*digits);
                let value = value.map_err(|_| ConditionError::new(at, "the integer does not fit 64 bits"))?;
                construct::constant(at, Value::Int(value), Type::Int)
            }
            TokenKind::Double(value) => construct::constant(at, Value::Double(*value), Type::Double),
            TokenKind::Text(text) => construct::constant(at, Value::Text(text.clone().into()), Type::Text),
            TokenKind::Name(name) => self.name(at, name),
            TokenKind::Mark("(") => {
                let inner = self.expression()?;
                self.must_be(")")?;
                Ok(inner)
            }
            TokenKind::Mark("[") => {
                let items = self.arguments("]")?;
                construct::list(at, items)
            }
            TokenKind::Mark("{") => Err(ConditionError::new(at, "map literals are not supported")),
            _ => {
                self.next -= 1;
                Err(self.unexpected("a value"))
            }
        }
    }

    fn name(&mut self, at: usize, name: &'s str) -> Result<Typed> {
        match name {
            "true" | "false" => return construct::constant(at, Value::Bool(name == "true"), Type::Bool),
            "null" => return construct::constant(at, Value::Null, Type::Null),
            _ if is_reserved(name) => return Err(ConditionError::new(at, format!("{name:?} is a reserved word"))),
            _ => {}
        }
        if self.take("(") {
            if name == names::HAS {
                let of = self.expression()?;
                self.must_be(")")?;
                self.builder.note_asked(&of.node);
                return construct::has(at, of);
            }
            let arguments = self.arguments(")")?;
            return construct::function(at, name, arguments);
        }
        if Builder::is_group(name) && self.take(".") {
            let at = self.at();
            let field = self.field_name()?;
            return self.builder.root_field(at, name, field);
        }
        self.builder.name(at, name)
    }

    fn field_name(&mut self) -> Result<&'s str> {
        match *self.peek() {
            TokenKind::Name(name) if !LITERAL_WORDS.contains(&name) => {
                self.next += 1;
                Ok(name)
            }
            _ => Err(self.unexpected("the name of a field")),
        }
    }

    /// Comma-separated expressions up to the closing mark.
    fn arguments(&mut self, close: &str) -> Result<Vec<Typed>> {
        let mut found = Vec::new();
        while !self.take(close) {
            found.push(self.expression()?);
            if !self.take(",") {
                self.must_be(close)?;
                break;
            }
        }
        Ok(found)
    }

    fn count(&mut self, mark: &str) -> usize {
        let mut count = 0;
        while self.take(mark) {
            count += 1;
        }
        count
    }

    fn take(&mut self, mark: &str) -> bool {
        let found = matches!(self.peek(), TokenKind::Mark(found) if *found == mark);
        self.next += usize::from(found);
        found
    }

    fn must_be(&mut self, mark: &str) -> Result<()> {
        if self.take(mark) { Ok(()) } else { Err(self.unexpected(&format!("{mark:?}"))) }
    }

    fn unexpected(&self, expected: &str) -> ConditionError {
        let found = match self.peek() {
            TokenKind::Name(name) => format!("{name:?}"),
            TokenKind::Int(_) | TokenKind::Double(_) => "a number".to_owned(),
            TokenKind::Text(_) => "a string".to_owned(),
            TokenKind::Mark(mark) => format!("{mark:?}"),
            TokenKind::End => "the end".to_owned(),
        };
        let meant = match self.peek() {
            TokenKind::Name(name) => names::sign_for(name),
            _ => None,
        };
        let meant = meant.map(|sign| format!("; did you mean {sign}?")).unwrap_or_default();
        ConditionError::new(self.at(), format!("expected {expected}, found {found}{meant}"))
    }

    fn peek(&self) -> &'t TokenKind<'s> {
        self.tokens.get(self.next).map_or(&TokenKind::End, |token| &token.kind)
    }

    fn at(&self) -> usize {
        self.tokens.get(self.next).or(self.tokens.last()).map_or(0, |token| token.at)
    }
}
