//! Reading the `prefix_rule(...)` calls of Codex's `.rules` files, which are Starlark. Anything else is reported
//! unchanged.

/// A call `name(key = value, ...)` at the top level of a file.
pub(super) struct Call {
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) arguments: Vec<(String, Value)>,
}

/// A string, or a list.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    List(Vec<Value>),
}

/// Parses a file of calls.
pub(super) fn read(text: &str) -> Result<Vec<Call>, String> {
    let mut reader = Reader { text, at: 0 };
    let mut calls = Vec::new();
    loop {
        reader.skip();
        if reader.rest().is_empty() {
            return Ok(calls);
        }
        let line = reader.line();
        let call = reader.call().ok_or_else(|| {
            format!("line {}: expected calls such as prefix_rule(pattern = [\"git\", \"status\"])", reader.line())
        })?;
        calls.push(Call { line, ..call });
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn line(&self) -> usize {
        self.text.get(..self.at).unwrap_or_default().matches('\n').count() + 1
    }

    /// Skips blanks and comments.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start().len();
            let comment = if rest.starts_with('#') { rest.find('\n').unwrap_or(rest.len()) } else { 0 };
            if blank + comment == 0 {
                return;
            }
            self.at += blank.max(comment);
        }
    }

    fn sign(&mut self, sign: char) -> Option<()> {
        self.skip();
        self.rest().starts_with(sign).then(|| self.at += sign.len_utf8())
    }

    fn word(&mut self) -> Option<String> {
        self.skip();
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        self.at += end;
        (end > 0).then(|| rest[..end].to_owned())
    }

    fn call(&mut self) -> Option<Call> {
        let name = self.word()?;
        self.sign('(')?;
        let mut arguments = Vec::new();
        while self.sign(')').is_none() {
            let key = self.word()?;
            self.sign('=')?;
            arguments.push((key, self.value(0)?));
            if self.sign(',').is_none() {
                self.sign(')')?;
                break;
            }
        }
        Some(Call { line: 0, name, arguments })
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if self.sign('[').is_none() {
            return self.string().map(Value::Text);
        }
        let mut items = Vec::new();
        while self.sign(']').is_none() {
            items.push((depth < MAX_DEPTH).then(|| self.value(depth + 1))??);
            if self.sign(',').is_none() {
                self.sign(']')?;
                break;
            }
        }
        Some(Value::List(items))
    }

    fn string(&mut self) -> Option<String> {
        self.skip();
        let quote = self.rest().chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let mut text = String::new();
        let mut signs = self.rest().char_indices().skip(1);
        while let Some((at, sign)) = signs.next() {
            match sign {
                '\\' => text.push(signs.next()?.1),
                '\n' => return None,
                _ if sign == quote => {
                    self.at += at + 1;
                    return Some(text);
                }
                _ => text.push(sign),
            }
        }
        None
    }
}

const MAX_DEPTH: usize = 4;
