//! The clauses of a text: their boundaries, and the stance of each: a request, a prohibition, or a question about
//! doing something. Text that is to be written or said is content and belongs to no clause.

use crate::language::{Kind, Token};
use crate::roles::{Role, Roles, ask_about, ask_whether};

/// The stance of a clause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Stance {
    /// The clause may ask for something.
    #[default]
    Asked,
    /// The clause says what must not be done: "don't delete anything".
    Forbidden,
    /// The clause asks about an act, not for it: "how do I delete a branch?"
    About,
}

/// A clause: its words in the form that the table knows, and their places.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clause<'t> {
    pub stance: Stance,
    /// Lower-case words and placeholders; `at` has the place of each word's token.
    pub words: Vec<&'t str>,
    pub at: Vec<u32>,
    /// The roles of each word.
    pub roles: Vec<Roles>,
    /// The place in `words` of the word that starts the request.
    pub head: Option<usize>,
    /// The place of the first word that is not introductory.
    pub first: Option<usize>,
}

impl<'t> Clause<'t> {
    fn push(&mut self, word: &'t str, place: u32, roles: Roles) {
        if self.words.is_empty() {
            self.words.reserve(USUAL_CLAUSE);
            self.at.reserve(USUAL_CLAUSE);
            self.roles.reserve(USUAL_CLAUSE);
        }
        self.words.push(word);
        self.at.push(place);
        self.roles.push(roles);
    }

    /// Determines the stance by the first words.
    fn stance(&self) -> Stance {
        let words = self.words.as_slice();
        let lead = words.get(..self.head.unwrap_or(words.len()).min(LONGEST_LEAD)).unwrap_or(words);
        // "Is it possible to delete an account?" asks about it; "for me" and "for you to" ask for it.
        let for_somebody = || words.iter().any(|word| matches!(*word, "you" | "me" | "us" | "someone"));
        if ask_about(words) || ask_whether(words) && !for_somebody() {
            return Stance::About;
        }
        // "Why don't you", "don't forget to" and "not only" are requests.
        let asks = |next: Option<&&str>| matches!(next, Some(&("forget" | "only" | "hesitate" | "just" | "you")));
        let forbids = (0..lead.len()).any(|place| self.has(place, Role::Negation) && !asks(words.get(place + 1)));
        if forbids && self.head.is_some() { Stance::Forbidden } else { Stance::Asked }
    }

    /// Returns whether the clause starts with a verb, or is a question.
    pub(crate) fn is_order(&self) -> bool {
        self.head.is_some() && self.head == self.first || self.words.last() == Some(&"?")
    }

    /// The same order from a later word on.
    pub(crate) fn from(&self, place: usize) -> Self {
        Self {
            stance: self.stance,
            words: self.words.iter().skip(place).copied().collect(),
            at: self.at.iter().skip(place).copied().collect(),
            roles: self.roles.iter().skip(place).copied().collect(),
            head: Some(0),
            first: Some(0),
        }
    }

    /// Returns whether the word at a place has this role.
    pub(crate) fn has(&self, place: usize, role: Role) -> bool {
        self.roles.get(place).is_some_and(|roles| roles.has(role))
    }

    /// Returns whether any word has this role.
    pub(crate) fn any(&self, role: Role) -> bool {
        self.roles.iter().any(|roles| roles.has(role))
    }

    /// Returns whether the first word makes it an English question.
    pub(crate) fn opens_question(&self) -> bool {
        self.words.last() == Some(&"?") && self.has(0, Role::Question)
    }
}

/// Knowledge about words before any of them is weighed.
pub(crate) trait Vocabulary {
    /// Returns whether a word may start an order.
    fn opens(&self, word: &str) -> bool;
    /// Returns whether a word is known.
    fn knows(&self, word: &str) -> bool;
}

/// Splits the tokens into clauses.
pub(crate) fn clauses<'t>(tokens: &[Token<'t>], vocabulary: &dyn Vocabulary) -> Vec<Clause<'t>> {
    let mut cutter = Cutter { clauses: Vec::new(), current: Clause::default(), is_content: false, vocabulary };
    for (place, token) in tokens.iter().enumerate() {
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        match token.kind {
            Kind::Stop => {
                if token.text.starts_with('?') {
                    cutter.word("?", place);
                }
                cutter.end_sentence();
            }
            Kind::Mark => cutter.mark(token.word, tokens.get(place as usize + 1..).unwrap_or(&[])),
            Kind::Number(_) => {
                if token.text.starts_with(['$', '€', '£']) {
                    cutter.word("$", place);
                }
                cutter.word("0", place);
            }
            Kind::Quoted => cutter.word("quotation", place),
            Kind::CodeSpan => cutter.word("codespan", place),
            Kind::Email => cutter.word("emailaddress", place),
            Kind::Url => cutter.word("url", place),
            Kind::Path => {
                cutter.word("filepath", place);
                if let Some((_, ending)) = token.word.rsplit_once('.').filter(|(_, ending)| ending.len() <= 5) {
                    cutter.word(ending, place);
                }
            }
            Kind::Word => cutter.words(token, place, tokens),
        }
    }
    cutter.end_sentence();
    cutter.clauses
}

struct Cutter<'t, 'v> {
    clauses: Vec<Clause<'t>>,
    current: Clause<'t>,
    /// Whether the rest of the sentence is content.
    is_content: bool,
    vocabulary: &'v dyn Vocabulary,
}

impl<'t> Cutter<'t, '_> {
    fn word(&mut self, word: &'t str, place: u32) {
        self.word_of(word, place, Roles::of(word));
    }

    fn word_of(&mut self, word: &'t str, place: u32, roles: Roles) {
        if self.current.words.len() >= LONGEST_CLAUSE {
            // Padding must not dilute the request, and the time has to stay linear.
            self.end_clause();
        }
        if !self.is_content {
            self.current.push(word, place, roles);
        }
    }

    fn words(&mut self, token: &Token<'t>, place: u32, tokens: &[Token<'t>]) {
        if self.is_content {
            return;
        }
        for word in token.word.split(|c: char| !(c.is_alphanumeric() || c == '\'')).filter(|word| !word.is_empty()) {
            let word = word.strip_suffix("'s").unwrap_or(word).trim_matches('\'');
            if word.is_empty() {
                continue;
            }
            let rest = tokens.get(place as usize + 1..).unwrap_or(&[]);
            let roles = if word.len() == token.word.len() { token.roles } else { Roles::of(word) };
            let is_inside = !self.current.words.is_empty();
            if roles.has(Role::Conjunction) && is_inside && self.opens_order(rest) {
                self.end_clause();
                continue;
            }
            let obeys = self.current.has(0, Role::Obeys);
            if (roles.has(Role::Quotes) && !obeys || self.tells(word)) && is_inside {
                self.end_clause();
                self.is_content = true;
                return;
            }
            if word.starts_with(|c: char| c.is_ascii_digit()) {
                self.word("0", place);
            } else {
                self.word_of(word, place, roles);
            }
        }
    }

    /// Returns whether the words that follow are told to somebody rather than requested: "tell Bob that", "note down
    /// to", "ask her whether". "Tell me if" is a request.
    fn tells(&self, word: &str) -> bool {
        let Clause { words, roles, .. } = &self.current;
        let to_agent = || matches!(words.last(), Some(&("me" | "us" | "you")));
        matches!(word, "that" | "whether" | "if" | "to" | "not")
            && roles.iter().rev().take(LONGEST_TELLING).any(|roles| roles.has(Role::Tells))
            && (!to_agent() || words.contains(&"remind"))
    }

    /// Returns whether the next word, function words aside, may start an order.
    fn opens_order(&self, rest: &[Token<'_>]) -> bool {
        let mut words =
            rest.iter().take(4).take_while(|token| token.kind == Kind::Word).map(|token| first_of(token.word));
        while let Some(word) = words.next() {
            let roles = Roles::of(word);
            if roles.has_any(&[Role::Conjunction, Role::Filler]) {
                continue;
            }
            // "Then zorp the tables": an order with an unknown verb.
            let is_obscure =
                !self.vocabulary.knows(word) && words.next().is_some_and(|next| Roles::of(next).has(Role::Firm));
            return roles.has(Role::Lead) || self.vocabulary.opens(word) || is_obscure;
        }
        false
    }

    fn mark(&mut self, mark: &str, rest: &[Token<'_>]) {
        match mark.chars().next() {
            // "Perform the following tasks in this order: 1. ...".
            Some(':') if self.current.any(Role::Announces) && self.current.words.len() <= LONGEST_LEAD => {
                self.current = Clause::default();
            }
            Some(':') => {
                let last = self.current.roles.last().copied().unwrap_or_default();
                let hands_over = !last.has_any(&[Role::Conjunction, Role::Filler])
                    && self.current.any(Role::Content)
                    && !self.current.has(0, Role::Obeys);
                self.end_clause();
                self.is_content |= hands_over;
            }
            Some(';' | '–' | '—') => self.end_clause(),
            Some(',') if self.opens_order(rest) => self.end_clause(),
            _ => {}
        }
    }

    fn end_sentence(&mut self) {
        self.end_clause();
        self.is_content = false;
    }

    fn end_clause(&mut self) {
        let mut clause = std::mem::take(&mut self.current);
        if clause.words.iter().all(|word| *word == "?") {
            if let (Some(last), Some(&place)) = (self.clauses.last_mut(), clause.at.first())
                && last.words.last() != Some(&"?")
            {
                last.push("?", place, Roles::of("?"));
            }
            return;
        }
        let leads = [Role::Opener, Role::Filler, Role::Conjunction];
        clause.first = clause.roles.iter().position(|roles| !roles.has_any(&leads));
        clause.head =
            clause.first.filter(|&place| clause.words.get(place).is_some_and(|word| self.vocabulary.opens(word)));
        clause.stance = clause.stance();
        self.clauses.push(clause);
    }
}

fn first_of(word: &str) -> &str {
    word.split([' ', '-']).next().unwrap_or("")
}

/// Maximum number of words of a clause; what follows is another clause.
const LONGEST_CLAUSE: usize = 96;

/// Initial capacity for the words of a clause.
const USUAL_CLAUSE: usize = 16;

/// Maximum number of introductory words that are checked.
const LONGEST_LEAD: usize = 12;

/// Maximum number of words between a verb of telling and what is told.
const LONGEST_TELLING: usize = 4;
