//! The grammar of one sentence: whether it is a question, and how each of its
//! verbs is asked for, if it is.

use crate::model::Operation;
use crate::parse::lexicon::{Form, Function, Lexicon, VerbId};

use super::content::is_of_text;
use super::heads::Manner;
use super::preamble::is_addressee;
use super::token::{Kind, Token};

/// A sentence, and what its words say of one another.
pub(super) struct Sentence<'t, 'a> {
    pub tokens: &'t [Token<'a>],
    pub from: usize,
    pub to: usize,
    pub lexicon: &'t Lexicon,
}

impl Sentence<'_, '_> {
    /// Whether the sentence is a question of fact: it opens with a question word or an auxiliary.
    pub(super) fn is_question(&self, opening: usize) -> bool {
        let Some(token) = self.tokens.get(opening) else { return false };
        let ends_in_mark = self.tokens.get(self.to).is_some_and(|stop| stop.text.contains('?'));
        let next_is_not = self.tokens.get(opening + 1).is_some_and(|next| next.is(Function::Negation));
        match token.entry.function {
            _ if next_is_not => false,
            // "When you post it, add a comment" asks for the comment.
            Some(Function::Question) => {
                let inverts = self
                    .tokens
                    .get(opening + 1)
                    .is_some_and(|next| next.is(Function::Auxiliary) || next.is(Function::Modal));
                ends_in_mark || inverts || !matches!(token.word, "when" | "where")
            }
            Some(Function::Auxiliary) => {
                // "Have a look", "do it" are no questions; "is it", "are there", "do i have" are.
                ends_in_mark || matches!(token.word, "is" | "are" | "am" | "was" | "were" | "does" | "did")
            }
            _ => {
                // "In which year ...?", "After how many seconds does it fall?"
                ends_in_mark
                    && (matches!(token.word, "who" | "when" | "where" | "which" | "whose")
                        || (opening..self.to)
                            .any(|index| self.tokens.get(index).is_some_and(|near| near.is(Function::Question))))
            }
        }
    }

    /// "Can i", "is it": an auxiliary and its subject.
    pub(super) fn opens_as_question(&self, opening: usize) -> bool {
        let is_helper = self
            .tokens
            .get(opening)
            .is_some_and(|token| token.is(Function::Modal) || token.is(Function::Auxiliary) && token.word != "do");
        is_helper
            && self
                .tokens
                .get(opening + 1)
                .is_some_and(|next| next.is(Function::Pronoun) || next.is(Function::Determiner))
    }

    /// How the verb at `index` is asked for, if it is.
    pub(super) fn manner(&self, index: usize, in_question: bool) -> Option<Manner> {
        let token = self.tokens.get(index)?;
        if token.kind != Kind::Word || token.is(Function::Constraint) || self.is_label(index) {
            return None;
        }
        let (verb, form) = token.entry.verb?;
        if self.lexicon.verb(verb).lemma.starts_with("looking") {
            return Some(Manner::Asked);
        }
        let before = self.before(index);
        let lead = before.and_then(|place| self.tokens.get(place));
        if form == Form::Ing {
            // "Free up space by clearing the table": the means is what is done.
            let is_means = lead.is_some_and(|lead| lead.word == "by")
                && matches!(
                    self.lexicon.verb(verb).operation,
                    Operation::Delete | Operation::Admin | Operation::Transfer | Operation::Execute
                );
            // "Roll back to a snapshot, destroying newer ones": it comes along.
            let comes_along = before.is_some_and(|place| place > self.from)
                && lead.is_some_and(|lead| matches!(lead.word, "," | "(" | "and" | "while" | "then"))
                && matches!(
                    self.lexicon.verb(verb).operation,
                    Operation::Delete | Operation::Admin | Operation::Transfer | Operation::Send
                )
                && token.entry.noun.is_none()
                && self.lately(index).any(|place| {
                    self.tokens
                        .get(place)
                        .is_some_and(|token| token.entry.verb.is_some_and(|(_, form)| form == Form::Base))
                });
            // "The database needs deleting."
            let is_needed = lead.is_some_and(|lead| matches!(lead.word, "needs" | "requires" | "wants"));
            if is_needed {
                return Some(Manner::Asked);
            }
            let is_led = lead.is_some_and(|lead| lead.is(Function::Lead));
            return (is_means || is_led || comes_along).then_some(Manner::Asked);
        }
        // "Removes all listed folders": a description of what is done opens without a subject.
        let opens = before.is_none() && form == Form::Third && index + 1 < self.to && !self.reads_as_noun(index);
        if opens && !in_question {
            return Some(Manner::Asked);
        }
        // "It would be great if you deleted it"; "tell me if you deleted it" asks whether.
        let hinted = form == Form::Past
            && lead.is_some_and(|lead| lead.word == "you")
            && before
                .and_then(|place| self.before(place))
                .filter(|&place| self.tokens.get(place).is_some_and(|token| token.word == "if"))
                .is_some_and(|place| self.lately(place).any(|earlier| self.is_wishful(earlier)));
        if hinted {
            return Some(Manner::Asked);
        }
        if form != Form::Base {
            return None;
        }
        let Some((place, lead)) = before.zip(lead) else {
            return (!in_question && !self.reads_as_noun(index)).then_some(Manner::Asked);
        };
        // "The header, which you should skip".
        let is_relative = self
            .before(place)
            .and_then(|earlier| self.tokens.get(earlier))
            .is_some_and(|earlier| matches!(earlier.word, "which" | "that" | "who"));
        if lead.is(Function::Lead) && is_relative {
            return None;
        }
        if lead.is(Function::Lead) {
            return Some(if is_of_speaker(lead.word) { Manner::Wished } else { Manner::Asked });
        }
        match lead.entry.function {
            // "You can't not wipe it" asks; what is simply negated does not.
            Some(Function::Negation) => self
                .before(place)
                .and_then(|earlier| self.tokens.get(earlier))
                .is_some_and(|earlier| {
                    earlier.is(Function::Negation) && lead.word == "not" && matches!(earlier.word, "can't" | "cannot")
                })
                .then_some(Manner::Asked),
            Some(Function::Pronoun) => self.after_subject(place, lead.word, self.harms(verb)).or_else(|| {
                // "Someone please stop it", "to speed it up".
                let begs = lead.word != "i" && lead.word != "we" && self.opens_behind_preamble(index, place);
                begs.then_some(Manner::Asked)
            }),
            Some(Function::Modal) => self.after_modal(place, index),
            // "The link to reset it" names a link.
            Some(Function::Preposition) if lead.word == "to" && self.describes(place) => None,
            // "Related to water and sanitation", "access to email".
            Some(Function::Preposition) if lead.word == "to" && self.is_noun_after_to(place, index) => None,
            Some(Function::Preposition) if lead.word == "to" => self.after_to(place),
            Some(Function::Conjunction) if in_question => self.takes_object(index).then_some(Manner::Asked),
            Some(Function::Conjunction) => {
                (token.entry.noun.is_none() || self.takes_object(index)).then_some(Manner::Asked)
            }
            // "<file>" is a placeholder.
            _ if matches!(lead.word, "<" | "=") => None,
            // "(start an interactive session)" is a remark.
            _ if lead.word == "(" && place > self.from => Some(Manner::Mentioned),
            _ if matches!(lead.kind, Kind::Mark) => {
                (!in_question && !self.reads_as_noun(index)).then_some(Manner::Asked)
            }
            // "If it is still pending cancel it": the condition ends where the order begins.
            _ => (!in_question && self.opens_behind_preamble(index, place)
                || self.is_conditional(index) && self.takes_object(index) && !lead.word.ends_with('s')
                || self.causes(index) && self.harms(verb) && index + 1 < self.to)
                .then_some(Manner::Asked),
        }
    }

    /// Whether a condition or a time stands before: "if", "when", "once".
    fn is_conditional(&self, index: usize) -> bool {
        self.lately(index).any(|place| {
            self.tokens
                .get(place)
                .is_some_and(|token| matches!(token.word, "if" | "when" | "once" | "whenever" | "after"))
        })
    }

    /// "Should be deleted", "make sure they are removed", "I want it wiped": asked for in the passive.
    pub(super) fn passive(&self, index: usize) -> Option<(Manner, VerbId)> {
        if let Some(verb) = self.ends_up_gone(index) {
            return Some((Manner::Asked, verb));
        }
        let (verb, form) = self.tokens.get(index)?.entry.verb?;
        let helper_at = self.before(index)?;
        let helper = self.tokens.get(helper_at)?;
        let is_be = matches!(helper.word, "be" | "get" | "being" | "gets" | "is" | "are");
        // "Must be shut down": the participle is spelled like the base form.
        if form != Form::Past && !(form == Form::Base && helper.word == "be") {
            return None;
        }
        let constrained =
            || self.lately(helper_at).any(|place| self.tokens.get(place).is_some_and(|t| t.is(Function::Constraint)));
        if is_be {
            let earlier = self.before(helper_at).and_then(|place| self.tokens.get(place));
            let wanted = earlier
                .is_some_and(|earlier| matches!(earlier.word, "should" | "must" | "to" | "shall" | "please" | "will"));
            // "Make sure nothing is lost".
            let spared = (self.from.max(helper_at.saturating_sub(3))..helper_at).any(|place| {
                self.tokens.get(place).is_some_and(|token| {
                    token.is(Function::Negation) || matches!(token.word, "nothing" | "no" | "none" | "nobody")
                })
            });
            let asks = matches!(helper.word, "be" | "get") && wanted || constrained();
            return (asks && !spared).then_some((Manner::Asked, verb));
        }
        let causes =
            self.tokens.get(self.from).is_some_and(|opening| matches!(opening.word, "get" | "have" | "want" | "see"));
        let causes = causes || self.is_caused(helper_at);
        let wishes = causes || (self.from..helper_at).take(4).any(|place| self.is_bare_wish(place));
        let is_object = helper.entry.noun.is_some()
            || helper.is(Function::Pronoun)
            || matches!(helper.kind, Kind::Number(_) | Kind::Path | Kind::Url | Kind::Email);
        let ends = self.tokens.get(index + 1).filter(|_| index + 1 < self.to).is_none_or(|next| {
            next.kind == Kind::Mark
                || matches!(
                    next.word,
                    "to" | "from"
                        | "into"
                        | "now"
                        | "immediately"
                        | "asap"
                        | "today"
                        | "right"
                        | "completely"
                        | "for"
                        | "by"
                        | "before"
                        | "tonight"
                        | "tomorrow"
                        | "forever"
                )
        });
        (wishes && is_object && ends).then_some((Manner::Wished, verb))
    }

    /// "Could you have the table purged", "and get it wiped": somebody is to bring it about.
    fn is_caused(&self, helper_at: usize) -> bool {
        (self.from.max(helper_at.saturating_sub(8))..helper_at).any(|place| {
            self.tokens.get(place).is_some_and(|token| matches!(token.word, "have" | "get"))
                && self.before(place).is_some_and(|earlier| {
                    self.tokens.get(earlier).is_some_and(|lead| {
                        lead.is(Function::Lead)
                            || lead.word == "and"
                            || is_addressee(lead.word)
                                && self
                                    .before(earlier)
                                    .and_then(|modal| self.tokens.get(modal))
                                    .is_some_and(|modal| modal.is(Function::Modal))
                    })
                })
        })
    }

    /// "Turn the heating up", "log me in": the verb that a particle behind its object makes.
    pub(super) fn with_particle(&self, index: usize) -> Option<VerbId> {
        let phrases = self.lexicon.phrases(self.tokens.get(index)?.word);
        (index + 2..self.to.min(index + 6)).find_map(|place| {
            let particle = self.tokens.get(place).filter(|token| PARTICLES.contains(&token.word))?;
            let ends = particle.word == "into"
                || self.tokens.get(place + 1).filter(|_| place + 1 < self.to).is_none_or(|next| {
                    next.kind == Kind::Mark
                        || next.is(Function::Preposition)
                        || next.is(Function::Conjunction)
                        || next.is(Function::Filler)
                        || matches!(next.kind, Kind::Number(_))
                });
            let phrase = phrases.iter().find(|phrase| matches!(&*phrase.rest, [only] if **only == *particle.word))?;
            phrase.entry.verb.filter(|&(_, form)| ends && form == Form::Base).map(|(verb, _)| verb)
        })
    }

    /// "could you send", "can i find", "if you could send": what the subject before the verb makes of it.
    fn after_subject(&self, place: usize, subject: &str, harms: bool) -> Option<Manner> {
        let earlier = self.before(place).and_then(|earlier| self.tokens.get(earlier))?;
        let asks = earlier.is(Function::Modal) || earlier.is(Function::Lead);
        if asks && (matches!(subject, "i" | "we") || is_addressee(subject)) {
            return Some(Manner::Asked);
        }
        // "Play some jazz while you delete my mails."
        (harms && subject == "you" && earlier.word == "while").then_some(Manner::Asked)
    }

    /// Whether what the verb does could do harm.
    fn harms(&self, verb: VerbId) -> bool {
        matches!(
            self.lexicon.verb(verb).operation,
            Operation::Delete | Operation::Admin | Operation::Transfer | Operation::Send
        )
    }

    /// "Have the agent delete them", "have someone wire it".
    fn causes(&self, index: usize) -> bool {
        self.tokens.get(self.from).is_some_and(|opening| matches!(opening.word, "have" | "let" | "make"))
            && index <= self.from + 5
    }

    /// "if you could send" asks; "you can send" only mentions, and without an object not even that.
    fn after_modal(&self, place: usize, index: usize) -> Option<Manner> {
        let subject = self.before(place)?;
        let condition = self.before(subject).and_then(|earlier| self.tokens.get(earlier));
        if self.tokens.get(subject).is_some_and(|token| token.word == "you")
            && condition.is_some_and(|token| token.word == "if")
        {
            return Some(Manner::Asked);
        }
        // "Ask Bob whether we should drop it": the question is his.
        if condition.is_some_and(|token| matches!(token.word, "whether" | "if")) {
            return None;
        }
        (index + 1 < self.to).then_some(Manner::Mentioned)
    }

    /// "want to send" asks; "a script to send" only mentions; "not to send" neither.
    pub(super) fn after_to(&self, place: usize) -> Option<Manner> {
        // "Tell Bob not to delete it".
        if place > self.from && self.tokens.get(place - 1).is_some_and(|before| before.is(Function::Negation)) {
            return None;
        }
        let near = (self.from..place).rev().take(4);
        for index in near {
            let Some(token) = self.tokens.get(index) else { break };
            // "I'm about to speak to her": what comes next, not what is asked.
            if token.word == "about" && index + 1 == place {
                return Some(Manner::Mentioned);
            }
            if token.is(Function::Want) {
                // "The task they need to do" is theirs.
                let of_others = !(token.word == "possible" && self.is_polite_question(self.from))
                    && self
                        .before(index)
                        .and_then(|earlier| self.tokens.get(earlier))
                        .is_some_and(|earlier| matches!(earlier.word, "they" | "he" | "she" | "it" | "who" | "which"));
                if of_others {
                    return None;
                }
                let refuses = self.before(index).and_then(|earlier| self.tokens.get(earlier)).is_some_and(|earlier| {
                    earlier.is(Function::Negation) || matches!(earlier.word, "no" | "neither" | "nor")
                });
                if refuses {
                    return None;
                }
                // "Is it possible for you to", "would you be able to", "your task is to": polite orders.
                if matches!(token.word, "possible" | "able" | "task" | "job" | "goal" | "asked" | "ask" | "request") {
                    return Some(Manner::Asked);
                }
                return if is_plan(token.word) { Some(Manner::Mentioned) } else { Some(Manner::Wished) };
            }
            if token.kind == Kind::Mark {
                break;
            }
        }
        Some(Manner::Mentioned)
    }

    /// "Note: ...", "Subject: ...": a label, not an order.
    fn is_label(&self, index: usize) -> bool {
        let does = |(verb, _): (VerbId, Form)| {
            !matches!(self.lexicon.verb(verb).operation, Operation::Read | Operation::Write)
        };
        if self.tokens.get(index).is_some_and(|token| token.entry.verb.is_some_and(does) && token.entry.noun.is_none())
        {
            // "Delete: all files" orders.
            return false;
        }
        // "Summarize: ...", "Open a ticket: ..." ask for it.
        if self.tokens.get(index).is_some_and(|token| is_of_text(token.word) || token.word.contains(' ')) {
            return false;
        }
        self.before(index).is_none_or(|place| self.tokens.get(place).is_some_and(|token| token.kind == Kind::Stop))
            && self.tokens.get(index + 1).is_some_and(|next| next.word.starts_with(':'))
    }

    /// Whether "to" is a preposition before a word that can be a noun as well.
    fn is_noun_after_to(&self, place: usize, index: usize) -> bool {
        let is_noun = self.tokens.get(index).is_some_and(|token| token.entry.noun.is_some());
        let joins = self.before(place).and_then(|earlier| self.tokens.get(earlier)).is_some_and(|earlier| {
            matches!(
                earlier.word,
                "related"
                    | "access"
                    | "response"
                    | "belonging"
                    | "similar"
                    | "next"
                    | "close"
                    | "compared"
                    | "reply"
                    | "due"
                    | "relating"
                    | "pertaining"
                    | "according"
                    | "relevant"
                    | "addition"
                    | "subscribed"
                    | "attached"
            )
        });
        joins || is_noun && !self.takes_object(index) && self.reads_as_noun(index)
    }

    /// Whether the "to" at `place` goes on describing a noun of telling rather than asking.
    fn describes(&self, place: usize) -> bool {
        self.before(place).and_then(|earlier| self.tokens.get(earlier)).is_some_and(|noun| {
            // "Create a task to delete it" deletes nothing yet.
            let is_item = matches!(noun.word, "task" | "ticket" | "issue" | "card") && self.makes_something(place);
            is_item
                || matches!(
                    noun.word,
                    "link" | "url" | "website" | "page" | "form" | "instructions" | "steps" | "guide" | "tutorial"
                    // "A reminder to pay" pays nothing.
                    | "reminder" | "alarm" | "todo" | "to-do" | "note" | "timer" | "event" | "meeting" | "workshop"
                )
        })
    }

    /// Whether the sentence asks, before `place`, to write something down.
    fn makes_something(&self, place: usize) -> bool {
        self.lately(place)
            .filter_map(|earlier| self.tokens.get(earlier)?.entry.verb)
            .any(|(verb, form)| form == Form::Base && self.lexicon.verb(verb).operation == Operation::Write)
    }

    /// "It would be great", "i'd be glad".
    fn is_wishful(&self, index: usize) -> bool {
        self.tokens.get(index).is_some_and(|token| {
            token.is(Function::Modal) || matches!(token.word, "i'd" | "it'd" | "we'd" | "appreciate" | "great" | "nice")
        })
    }

    /// "I need the logs", "I want a burger".
    pub(super) fn is_bare_wish(&self, index: usize) -> bool {
        let Some(token) = self.tokens.get(index) else { return false };
        matches!(token.word, "need" | "want" | "require" | "like")
            && self
                .before(index)
                .and_then(|place| self.tokens.get(place))
                .is_some_and(|lead| matches!(lead.word, "i" | "we") || lead.is(Function::Modal) || lead.word == "i'd")
    }

    /// Whether a word that can be a noun stands where only a noun can: "order status", "Email from Bob".
    fn reads_as_noun(&self, index: usize) -> bool {
        let Some(token) = self.tokens.get(index) else { return false };
        if token.entry.noun.is_none() {
            return false;
        }
        match self.tokens.get(index + 1).filter(|_| index + 1 < self.to) {
            None => true,
            Some(next) => {
                next.is(Function::Auxiliary)
                    || (next.is(Function::Preposition) && !matches!(next.word, "to" | "for" | "with" | "in" | "from"))
            }
        }
    }

    /// Whether what follows can be a verb's object.
    pub(super) fn takes_object(&self, index: usize) -> bool {
        self.tokens.get(index + 1).filter(|_| index + 1 < self.to).is_some_and(|next| {
            next.is(Function::Determiner)
                || next.is(Function::Pronoun)
                // A name: "message Ida".
                || next.kind == Kind::Word && next.text.starts_with(char::is_uppercase)
                || matches!(next.kind, Kind::Quoted | Kind::Number(_) | Kind::Email | Kind::Path | Kind::Url)
        })
    }

    /// The places shortly before: far enough for a clause, near enough for the time to stay linear.
    pub(super) fn lately(&self, index: usize) -> std::ops::Range<usize> {
        self.from.max(index.saturating_sub(LOOK_BACK))..index
    }

    /// The token before, politeness and adverbs aside.
    pub(super) fn before(&self, index: usize) -> Option<usize> {
        self.lately(index).rev().find(|&place| !is_skipped(self.tokens, place))
    }
}

/// Tokens that are looked back over for what a clause hangs on.
const LOOK_BACK: usize = 40;

/// Words that make another verb of the one before them, also from behind its object.
const PARTICLES: &[&str] = &["up", "down", "on", "off", "in", "out", "back", "away", "over", "into"];

/// "i want to", "we need to": a lead that tells the speaker's wish.
fn is_of_speaker(lead: &str) -> bool {
    ["i ", "i'", "we ", "we'"].iter().any(|start| lead.starts_with(start))
}

/// "planning to travel": what the speaker is about to do, not what is asked.
fn is_plan(word: &str) -> bool {
    matches!(word, "plan" | "planning" | "going" | "ready" | "prepared" | "keen" | "eager" | "about")
}

/// Words that say nothing on what is asked: fillers, and adverbs in -ly that the lexicon does not know.
pub(super) fn is_skipped(tokens: &[Token<'_>], index: usize) -> bool {
    tokens.get(index).is_some_and(|token| {
        token.is(Function::Filler)
            // "@bot delete it": whom it speaks to.
            || token.word.starts_with('@')
            || (token.kind == Kind::Word
                && token.word.ends_with("ly")
                && token.entry.verb.is_none()
                && token.entry.noun.is_none()
                && token.entry.function.is_none())
    })
}
