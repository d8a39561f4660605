//! Clauses of a text: where one ends and the next begins, and how each stands to
//! what is asked: an order, something forbidden, or a question about doing. What is to be written or said is
//! content and belongs to none.

use crate::parse::language::{Kind, Token};

/// How a clause stands to what the text asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stance {
    /// It may ask for something.
    Asked,
    /// It says what must not be done: "don't delete anything".
    Forbidden,
    /// It asks about an act, not for it: "how do I delete a branch?"
    About,
}

/// A clause: its words as the table knows them, and where they stand.
#[derive(Debug, Clone)]
pub(crate) struct Clause<'t> {
    pub stance: Stance,
    /// Lower-case words and placeholders; `at` has the place of each word's token.
    pub words: Vec<&'t str>,
    pub at: Vec<u32>,
    /// The place in `words` of the word that opens what is asked.
    pub head: Option<usize>,
    /// The place of the first word that is more than a lead to what is asked.
    pub first: Option<usize>,
}

impl Clause<'_> {
    /// Whether it opens with a verb, or is a question.
    pub(crate) fn is_order(&self) -> bool {
        self.head.is_some() && self.head == self.first || self.words.last() == Some(&"?")
    }

    /// Whether it is a question in English by the word that it opens with.
    pub(crate) fn opens_question(&self) -> bool {
        self.words.last() == Some(&"?") && self.words.first().is_some_and(|first| QUESTIONS.contains(first))
    }
}

/// Words that open a question.
const QUESTIONS: &[&str] = &["what", "who", "when", "where", "why", "how", "which", "whose"];

/// What is known of words before any is weighed.
pub(crate) trait Vocabulary {
    /// Whether a word may open an order.
    fn opens(&self, word: &str) -> bool;
    /// Whether a word is known at all.
    fn knows(&self, word: &str) -> bool;
}

/// Cuts the tokens into clauses.
pub(crate) fn clauses<'t>(tokens: &[Token<'t>], vocabulary: &dyn Vocabulary) -> Vec<Clause<'t>> {
    let mut cutter = Cutter { clauses: Vec::new(), words: Vec::new(), at: Vec::new(), is_content: false, vocabulary };
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
    words: Vec<&'t str>,
    at: Vec<u32>,
    /// The rest of the sentence is content.
    is_content: bool,
    vocabulary: &'v dyn Vocabulary,
}

impl<'t> Cutter<'t, '_> {
    fn word(&mut self, word: &'t str, place: u32) {
        if self.words.len() >= LONGEST_CLAUSE {
            // So that no padding dilutes what is asked, and the time stays linear.
            self.end_clause();
        }
        if !self.is_content {
            self.words.push(word);
            self.at.push(place);
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
            if JOINERS.contains(&word) && !self.words.is_empty() && self.opens_order(rest) {
                self.end_clause();
                continue;
            }
            let obeys = self.words.first().is_some_and(|first| OBEYED.contains(first));
            if (QUOTING.contains(&word) && !obeys || self.tells(word)) && !self.words.is_empty() {
                self.end_clause();
                self.is_content = true;
                return;
            }
            self.word(if word.starts_with(|c: char| c.is_ascii_digit()) { "0" } else { word }, place);
        }
    }

    /// "Tell Bob that", "note down to", "ask her whether": what follows is said to somebody, not asked for. "Tell me if" asks.
    fn tells(&self, word: &str) -> bool {
        let to_agent = matches!(self.words.last(), Some(&("me" | "us" | "you")));
        let reminds = self.words.contains(&"remind");
        matches!(word, "that" | "whether" | "if" | "to" | "not")
            && (reminds || !to_agent)
            && self.words.iter().rev().take(LONGEST_TELLING).any(|word| TELLING.contains(word))
    }

    /// Whether a word that may open an order comes next, small words aside.
    fn opens_order(&self, rest: &[Token<'_>]) -> bool {
        let mut words =
            rest.iter().take(4).take_while(|token| token.kind == Kind::Word).map(|token| first_of(token.word));
        while let Some(word) = words.next() {
            if JOINERS.contains(&word) || SKIPPED.contains(&word) {
                continue;
            }
            // "Then zorp the tables": an order by a verb that nobody knows.
            let is_obscure = !self.vocabulary.knows(word) && words.next().is_some_and(|next| FIRM.contains(&next));
            return LEADS.contains(&word) || self.vocabulary.opens(word) || is_obscure;
        }
        false
    }

    fn mark(&mut self, mark: &str, rest: &[Token<'_>]) {
        match mark.chars().next() {
            Some(':') if self.words.iter().any(|word| LEAD_INS.contains(word)) && self.words.len() <= LONGEST_LEAD => {
                // "Perform the following tasks in this order: 1. ...".
                self.words.clear();
                self.at.clear();
            }
            Some(':') => {
                let hands_over =
                    !self.words.last().is_some_and(|last| JOINERS.contains(last) || SKIPPED.contains(last))
                        && self.words.iter().any(|word| CONTENT_NOUNS.contains(word))
                        && !self.words.first().is_some_and(|first| OBEYED.contains(first));
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
        if self.words.iter().all(|word| *word == "?") {
            if let (Some(last), Some(&place)) = (self.clauses.last_mut(), self.at.first())
                && last.words.last() != Some(&"?")
            {
                last.words.push("?");
                last.at.push(place);
            }
            self.words.clear();
            self.at.clear();
            return;
        }
        let words = std::mem::take(&mut self.words);
        let at = std::mem::take(&mut self.at);
        let first = words.iter().position(|word| !OPENERS.contains(word) && !SKIPPED.contains(word));
        let head = first.filter(|&place| words.get(place).is_some_and(|word| self.vocabulary.opens(word)));
        let stance = stance(&words, head);
        self.clauses.push(Clause { stance, words, at, head, first });
    }
}

fn first_of(word: &str) -> &str {
    word.split([' ', '-']).next().unwrap_or("")
}

/// How a clause stands, by the words that it opens with.
fn stance(words: &[&str], head: Option<usize>) -> Stance {
    let lead = words.get(..head.unwrap_or(words.len()).min(LONGEST_LEAD)).unwrap_or(words);
    let asks_about = |phrase: &&[&str]| lead.starts_with(phrase) || words.starts_with(phrase);
    if ABOUT.iter().any(asks_about) {
        return Stance::About;
    }
    // "Is it possible to delete an account?" asks about it; "for me", "for you to" asks for it.
    let for_somebody = || words.iter().any(|word| matches!(*word, "you" | "me" | "us" | "someone"));
    if WHETHER.iter().any(|phrase| words.starts_with(phrase)) && !for_somebody() {
        return Stance::About;
    }
    let forbids = lead.iter().enumerate().any(|(place, word)| {
        // "Why don't you", "don't forget to", "not only" ask.
        FORBIDDING.contains(word)
            && !matches!(words.get(place + 1), Some(&("forget" | "only" | "hesitate" | "just" | "you")))
    });
    if forbids && head.is_some() { Stance::Forbidden } else { Stance::Asked }
}

/// Words of the longest clause; what goes on is another.
const LONGEST_CLAUSE: usize = 96;

/// Words of the longest lead that is looked over.
const LONGEST_LEAD: usize = 12;

/// Words that join orders.
const JOINERS: &[&str] = &["and", "then", "or", "but", "plus", "afterwards", "otherwise"];

/// Words that say nothing of what is asked and may stand before it.
const SKIPPED: &[&str] = &[
    "please",
    "pls",
    "kindly",
    "just",
    "also",
    "now",
    "then",
    "next",
    "finally",
    "first",
    "firstly",
    "secondly",
    "lastly",
    "afterwards",
    "immediately",
    "quickly",
    "simply",
    "hey",
    "hi",
    "hello",
    "ok",
    "okay",
    "so",
    "well",
    "and",
    "but",
    "furthermore",
    "additionally",
    "once",
    "again",
    "still",
    "actually",
    "maybe",
    "perhaps",
    "asap",
    "there",
    "yes",
    "no",
    "thanks",
    "today",
    "tomorrow",
    "tonight",
    "automatically",
    "recursively",
    "interactively",
    "always",
    "temporarily",
    "permanently",
    "quietly",
    "silently",
    "securely",
    "carefully",
    "directly",
    "manually",
];

/// Words that lead to an order: "could you", "I would like you to", "don't".
const OPENERS: &[&str] = &[
    "i",
    "we",
    "you",
    "u",
    "someone",
    "anyone",
    "somebody",
    "can",
    "could",
    "would",
    "will",
    "shall",
    "should",
    "must",
    "may",
    "might",
    "need",
    "needs",
    "needed",
    "want",
    "wants",
    "like",
    "love",
    "wish",
    "hope",
    "d",
    "i'd",
    "we'd",
    "i'll",
    "we'll",
    "i'm",
    "me",
    "us",
    "to",
    "let",
    "lets",
    "let's",
    "help",
    "try",
    "go",
    "ahead",
    "make",
    "sure",
    "be",
    "able",
    "possible",
    "is",
    "it",
    "if",
    "do",
    "does",
    "not",
    "never",
    "don't",
    "dont",
    "won't",
    "have",
    "has",
    "had",
    "got",
    "gotta",
    "going",
    "gonna",
    "wanna",
    "for",
    "that",
    "time",
    "trying",
    "looking",
    "ask",
    "asked",
    "request",
    "your",
    "task",
    "job",
    "goal",
    "ensure",
    "remember",
    "mind",
    "any",
    "chance",
    "agent",
    "assistant",
    "avoid",
    "without",
    "the",
    "user",
    "my",
];

/// Words behind "and" that lead to an order of their own.
const LEADS: &[&str] = &[
    "i", "we", "you", "can", "could", "would", "will", "need", "want", "i'd", "we'd", "i'll", "i'm", "let", "let's",
    "help", "try", "go", "make", "do", "not", "never", "don't", "dont", "ensure", "remember", "avoid",
];

/// Words behind which a verb is not to be done.
const FORBIDDING: &[&str] =
    &["not", "never", "don't", "dont", "won't", "without", "avoid", "can't", "cannot", "mustn't", "shouldn't"];

/// Words behind which the rest of a sentence is what is to be written or said.
const QUOTING: &[&str] = &["saying", "stating", "reads", "says"];

/// Verbs of telling: behind "that" or "to" stands what is told.
const TELLING: &[&str] =
    &["tell", "ask", "note", "say", "mention", "reply", "remind", "inform", "answer", "write", "jot"];
/// Words between such a verb and what is told.
const LONGEST_TELLING: usize = 4;

/// Nouns and verbs of which what follows a colon is the text.
const CONTENT_NOUNS: &[&str] = &[
    "message",
    "text",
    "body",
    "comment",
    "subject",
    "title",
    "note",
    "content",
    "caption",
    "tweet",
    "post",
    "reply",
    "description",
    "announcement",
    "status",
    "email",
    "words",
    "task",
    "todo",
    "ticket",
    "issue",
    "card",
    "reminder",
    "recipe",
    "story",
    "poem",
    "song",
    "joke",
    "slogan",
    "headline",
    "translate",
    "summarize",
    "summarise",
    "paraphrase",
    "proofread",
    "explain",
    "classify",
    "rephrase",
    "sentence",
    "phrase",
    "paragraph",
    "following",
    "essay",
    "lyrics",
    "quote",
    "spell",
    "check",
    "code",
    "analyze",
    "analyse",
    "interpret",
    "tell",
    "rewrite",
];

/// Words of a clause that only leads to what follows its colon.
const LEAD_INS: &[&str] = &["tasks", "steps", "things", "actions"];

/// Verbs of which what follows a colon is done, not said.
const OBEYED: &[&str] = &["do", "run", "execute", "follow", "perform", "obey", "complete"];

/// Words that stand before what is acted on.
pub(crate) const FIRM: &[&str] = &[
    "the", "my", "our", "all", "every", "each", "any", "this", "that", "these", "those", "his", "her", "their", "it",
    "them",
];

/// Openings of a question whether something can be done.
const WHETHER: &[&[&str]] = &[
    &["is", "it", "possible", "to"],
    &["is", "it", "ok", "to"],
    &["is", "it", "okay", "to"],
    &["is", "it", "allowed", "to"],
    &["can", "i"],
    &["can", "one"],
    &["may", "i"],
];

/// Openings of a question about doing.
const ABOUT: &[&[&str]] = &[
    &["how", "do", "i"],
    &["how", "do", "you"],
    &["how", "do", "we"],
    &["how", "do", "people"],
    &["how", "does"],
    &["how", "can", "i"],
    &["how", "can", "we"],
    &["how", "can", "you"],
    &["how", "could"],
    &["how", "to"],
    &["how", "would"],
    &["how", "should"],
    &["how", "is"],
    &["how", "are"],
    &["how", "did"],
    &["how", "dangerous"],
    &["what", "does"],
    &["what", "do", "you", "call"],
    &["what", "happens"],
    &["what", "would", "happen"],
    &["what", "will", "happen"],
    &["what", "would", "actually", "happen"],
    &["what", "actually", "happens"],
    &["what", "is", "the", "difference"],
    &["what", "the", "difference"],
    &["what", "is", "meant"],
    &["what", "is", "the", "best", "way"],
    &["what", "the", "best", "way"],
    &["why"],
    &["is", "it", "legal"],
    &["is", "it", "safe"],
    &["is", "it", "a", "crime"],
    &["explain"],
    &["describe", "how"],
    &["tell", "me", "how"],
    &["tell", "me", "about"],
    &["define"],
    &["does", "the"],
    &["does", "it"],
    &["should", "i"],
    &["should", "we"],
    &["am", "i", "allowed"],
    &["who", "invented"],
    &["teach", "me"],
    &["walk", "me", "through"],
    &["can", "you", "explain"],
    &["could", "you", "explain"],
    &["please", "explain"],
    &["i", "wonder"],
    &["give", "me", "a", "tutorial"],
];
