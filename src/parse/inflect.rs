//! English morphology, made once when a lexicon is read, so that a lookup is
//! one step: the spellings of a verb's forms and of a noun's plural.

use std::collections::BTreeMap;

/// How a verb is inflected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Base,
    Third,
    Ing,
    Past,
}

/// A verb's forms. Of a phrase ("turn on") the first word is inflected.
pub(super) fn verb_forms(lemma: &str, irregular: &BTreeMap<String, String>) -> Vec<(Form, String)> {
    let (verb, rest) = lemma.split_once(' ').map_or((lemma, ""), |(verb, rest)| (verb, rest));
    let whole = |form: &str| if rest.is_empty() { form.to_owned() } else { format!("{form} {rest}") };
    let mut forms =
        vec![(Form::Third, whole(&third(verb))), (Form::Ing, whole(&ing(verb))), (Form::Past, whole(&past(verb)))];
    for (spelling, base) in irregular {
        if base == verb {
            forms.push((Form::Past, whole(spelling)));
        }
    }
    // Last, so that the base form wins where a verb's past is spelled alike ("set", "read").
    forms.push((Form::Base, whole(verb)));
    forms
}

/// A noun's singular and plural.
pub(super) fn noun_forms(noun: &str) -> [String; 2] {
    [noun.to_owned(), third(noun)]
}

fn third(word: &str) -> String {
    if let Some(stem) = word.strip_suffix('y').filter(|stem| !ends_in_vowel(stem)) {
        return format!("{stem}ies");
    }
    let sibilant = ["s", "x", "z", "ch", "sh"].iter().any(|end| word.ends_with(end));
    if sibilant { format!("{word}es") } else { format!("{word}s") }
}

fn ing(word: &str) -> String {
    if let Some(stem) = word.strip_suffix("ie") {
        return format!("{stem}ying");
    }
    if let Some(stem) = word.strip_suffix('e').filter(|stem| !stem.ends_with(['e', 'o'])) {
        return format!("{stem}ing");
    }
    format!("{}ing", doubled(word))
}

fn past(word: &str) -> String {
    if word.ends_with('e') {
        return format!("{word}d");
    }
    if let Some(stem) = word.strip_suffix('y').filter(|stem| !ends_in_vowel(stem)) {
        return format!("{stem}ied");
    }
    format!("{}ed", doubled(word))
}

/// The word with its last consonant doubled, where English does ("stop", "stopp").
fn doubled(word: &str) -> String {
    let mut end = word.chars().rev();
    let (last, middle, before) = (end.next(), end.next(), end.next());
    let (Some(last), Some(middle), Some(before)) = (last, middle, before) else { return word.to_owned() };
    let short = end.next().is_none_or(|c| !is_vowel(c)) && word.len() <= 5
        || ["mit", "fer", "cel", "cur", "pel"].iter().any(|stem| word.ends_with(stem));
    if short
        && is_vowel(middle)
        && !is_vowel(before)
        && !is_vowel(last)
        && !"wxy".contains(last)
        && !is_unstressed(word)
    {
        format!("{word}{last}")
    } else {
        word.to_owned()
    }
}

/// Short verbs whose last syllable is weak, and so are not doubled.
fn is_unstressed(word: &str) -> bool {
    ["er", "en", "it", "or", "et", "on", "el"].iter().any(|end| word.ends_with(end))
        && word.chars().filter(|&c| is_vowel(c)).count() > 1
        && !["mit", "fer", "cel", "cur", "pel"].iter().any(|stem| word.ends_with(stem))
}

fn ends_in_vowel(word: &str) -> bool {
    word.chars().next_back().is_some_and(is_vowel)
}

const fn is_vowel(c: char) -> bool {
    matches!(c, 'a' | 'e' | 'i' | 'o' | 'u')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_forms_are_spelled_as_english_does() {
        for (verb, third, ing, past) in [
            ("send", "sends", "sending", "sended"),
            ("stop", "stops", "stopping", "stopped"),
            ("copy", "copies", "copying", "copied"),
            ("delete", "deletes", "deleting", "deleted"),
            ("edit", "edits", "editing", "edited"),
            ("transfer", "transfers", "transferring", "transferred"),
            ("purchase", "purchases", "purchasing", "purchased"),
            ("book", "books", "booking", "booked"),
        ] {
            let forms = verb_forms(verb, &BTreeMap::new());
            for (form, spelling) in [(Form::Third, third), (Form::Ing, ing), (Form::Past, past)] {
                assert!(forms.contains(&(form, spelling.to_owned())), "{verb}: {forms:?}");
            }
        }
    }

    #[test]
    fn a_phrase_is_inflected_at_its_verb() {
        let forms = verb_forms("turn on", &BTreeMap::new());
        assert!(forms.contains(&(Form::Ing, "turning on".to_owned())));
    }
}
