//! A command line cut into its simple commands, their words and redirections,
//! and the insides of substitutions.

/// A line cut into simple commands.
#[derive(Default)]
pub(super) struct Lexer {
    pub commands: Vec<Command>,
    /// The insides of `$(...)` and backquotes.
    pub nested: Vec<String>,
    pub unbalanced: bool,
}

#[derive(Default)]
pub(super) struct Command {
    pub words: Vec<String>,
    pub writes: Vec<String>,
    pub reads: Vec<String>,
    /// Behind a pipe.
    pub is_fed: bool,
}

impl Lexer {
    #[expect(clippy::too_many_lines, reason = "one state machine reads better whole")]
    pub(super) fn split(line: &str) -> Self {
        let mut lexer = Self::default();
        let mut command = Command::default();
        let mut word = String::new();
        let (mut has_word, mut redirect) = (false, ' ');
        let mut chars = line.chars().peekable();
        macro_rules! end_word {
            () => {
                if has_word {
                    let done = std::mem::take(&mut word);
                    match std::mem::replace(&mut redirect, ' ') {
                        '>' => command.writes.push(done),
                        '<' => command.reads.push(done),
                        _ => command.words.push(done),
                    }
                    has_word = false;
                }
            };
        }
        while let Some(c) = chars.next() {
            match c {
                '\\' => {
                    has_word = true;
                    word.extend(chars.next().filter(|&next| next != '\n'));
                }
                '\'' => {
                    has_word = true;
                    let mut closed = false;
                    for inner in chars.by_ref() {
                        if inner == '\'' {
                            closed = true;
                            break;
                        }
                        word.push(inner);
                    }
                    lexer.unbalanced |= !closed;
                }
                '"' => {
                    has_word = true;
                    let mut closed = false;
                    while let Some(inner) = chars.next() {
                        match inner {
                            '"' => {
                                closed = true;
                                break;
                            }
                            '\\' => word.extend(chars.next()),
                            '`' => {
                                word.push('$');
                                lexer.backquoted(&mut chars);
                            }
                            '$' if chars.peek() == Some(&'(') => {
                                word.push('$');
                                lexer.substituted(&mut chars);
                            }
                            other => word.push(other),
                        }
                    }
                    lexer.unbalanced |= !closed;
                }
                '`' => {
                    has_word = true;
                    word.push('$');
                    lexer.backquoted(&mut chars);
                }
                '$' if chars.peek() == Some(&'(') => {
                    has_word = true;
                    word.push('$');
                    lexer.substituted(&mut chars);
                }
                '>' | '<' => {
                    if word.chars().all(|digit| digit.is_ascii_digit()) {
                        word.clear();
                        has_word = false;
                    }
                    end_word!();
                    if c == '<' && chars.peek() == Some(&'(') {
                        lexer.substituted(&mut chars);
                        // The file that stands for it is told when it runs.
                        (has_word, word) = (true, "$".to_owned());
                        continue;
                    }
                    while chars.next_if(|&next| matches!(next, '>' | '<' | '|')).is_some() {}
                    if chars.next_if_eq(&'&').is_some() {
                        if chars.next_if(|&next| next.is_ascii_digit() || next == '-').is_none() {
                            redirect = c;
                        }
                    } else {
                        redirect = c;
                    }
                }
                '|' | '&' | ';' | '\n' => {
                    end_word!();
                    let piped = c == '|' && chars.peek() != Some(&'|');
                    while chars.next_if(|&next| matches!(next, '|' | '&' | ';')).is_some() {}
                    lexer.commands.push(std::mem::take(&mut command));
                    command.is_fed = piped;
                }
                '(' | ')' if !has_word => {}
                '#' if !has_word => {
                    chars.by_ref().find(|&inner| inner == '\n');
                }
                c if c.is_whitespace() => end_word!(),
                other => {
                    has_word = true;
                    word.push(other);
                }
            }
        }
        end_word!();
        let _ = (has_word, redirect);
        lexer.commands.push(command);
        lexer
    }

    fn backquoted(&mut self, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
        let mut inner = String::new();
        let mut closed = false;
        for c in chars.by_ref() {
            if c == '`' {
                closed = true;
                break;
            }
            inner.push(c);
        }
        self.unbalanced |= !closed;
        self.nested.push(inner);
    }

    /// The inside of `$( ... )`, its own brackets counted.
    fn substituted(&mut self, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
        chars.next();
        let (mut inner, mut open) = (String::new(), 1_usize);
        for c in chars.by_ref() {
            match c {
                '(' => open += 1,
                ')' => open -= 1,
                _ => {}
            }
            if open == 0 {
                break;
            }
            inner.push(c);
        }
        self.unbalanced |= open > 0;
        self.nested.push(inner);
    }
}
