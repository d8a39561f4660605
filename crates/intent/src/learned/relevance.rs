//! The relevance of each tool of a set to a request: the words they share, weighted by rarity among the tools, and
//! the similarity of their meaning by the word table.

use crate::lexicon::Lexicon;
use crate::roles::Roles;
use crate::table::Table;

use super::table::IntentTable;

/// The texts of a tool's definition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolText<'t> {
    pub name: &'t str,
    pub description: &'t str,
    /// The names and descriptions of its parameters.
    pub parameters: &'t str,
}

/// Tools prepared for relevance ratings.
#[derive(Debug)]
pub(crate) struct Relevance {
    tools: Vec<Profile>,
    /// The number of tools that each word occurs in.
    known_by: Table<u32>,
}

/// The words of a text in base form with their weights, and their direction in the word table.
#[derive(Debug, Default)]
struct Profile {
    words: Table<f64>,
    meaning: Vec<f64>,
}

impl Relevance {
    /// Prepares the tools.
    pub(crate) fn of<'t>(tools: impl IntoIterator<Item = ToolText<'t>>, lexicon: &Lexicon) -> Self {
        let profile = |tool: ToolText<'_>| {
            let mut profile = Profile::default();
            for (text, weight) in [(tool.name, NAME), (tool.description, 1.0), (tool.parameters, PARAMETERS)] {
                profile.add(text, weight, lexicon);
            }
            profile
        };
        let tools: Vec<Profile> = tools.into_iter().map(profile).collect();
        let mut known_by = Table::<u32>::default();
        for word in tools.iter().flat_map(|tool| tool.words.keys()) {
            *known_by.entry(word.clone()).or_default() += 1;
        }
        Self { tools, known_by }
    }

    /// The relevance of each tool to the request, from about 0 to about 1, in tool order. Scores are comparable
    /// within one set of tools only.
    pub(crate) fn scores(&self, request: &str, lexicon: &Lexicon) -> Vec<f64> {
        let mut asked = Profile::default();
        asked.add(request, 1.0, lexicon);
        let own = self.length(&asked);
        let score = |tool: &Profile| {
            let shared = asked.words.iter().filter_map(|(word, weight)| {
                let rarity = self.rarity(word);
                Some(weight * tool.words.get(word)? * rarity * rarity)
            });
            let words = shared.sum::<f64>() / (own * self.length(tool)).max(f64::MIN_POSITIVE);
            words + MEANING * cosine(&asked.meaning, &tool.meaning)
        };
        self.tools.iter().map(score).collect()
    }

    /// The weight with which a word distinguishes the tools (inverse document frequency).
    /// SOURCE: Spärck Jones, "A statistical interpretation of term specificity", 1972.
    fn rarity(&self, word: &str) -> f64 {
        let all = u32::try_from(self.tools.len()).unwrap_or(u32::MAX);
        let known_by = self.known_by.get(word).copied().unwrap_or_default();
        ((f64::from(all) + 1.0) / (f64::from(known_by) + 0.5)).ln()
    }

    fn length(&self, profile: &Profile) -> f64 {
        profile.words.iter().map(|(word, weight)| (weight * self.rarity(word)).powi(2)).sum::<f64>().sqrt()
    }
}

impl Profile {
    fn add(&mut self, text: &str, weight: f64, lexicon: &Lexicon) {
        let mut counts = Table::<u32>::default();
        for word in words(text).filter(|word| !Roles::of(word).is_small()) {
            if let Some(table) = lexicon.table() {
                table.add_direction(&word, weight, &mut self.meaning);
            }
            *counts.entry(stem(&word, lexicon.table()).into()).or_default() += 1;
        }
        for (word, count) in counts {
            *self.words.entry(word).or_default() += weight * (1.0 + f64::from(count).ln());
        }
    }
}

/// The words of a text or name in lower case: `getUser_id` becomes get, user, id.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut before = ' ';
    let mut spaced = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if c.is_uppercase() && (before.is_lowercase() || before.is_ascii_digit()) {
            spaced.push(' ');
        }
        spaced.extend(if c.is_alphabetic() { c } else { ' ' }.to_lowercase());
        before = c;
    }
    let words: Vec<String> = spaced.split_whitespace().filter(|word| word.len() > 1).map(str::to_owned).collect();
    words.into_iter()
}

/// The base verb or the singular of a word.
fn stem(word: &str, table: Option<&IntentTable>) -> String {
    let Some(table) = table else { return word.to_owned() };
    let base = table.base(word);
    if *base != *word {
        return base.into_owned();
    }
    table.singular(word).map_or_else(|| word.to_owned(), str::to_owned)
}

fn cosine(one: &[f64], other: &[f64]) -> f64 {
    let of = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(a, b)| a * b).sum::<f64>();
    let length = (of(one, one) * of(other, other)).sqrt();
    if length > 0.0 { of(one, other) / length } else { 0.0 }
}

/// The weights of words in names and in parameters relative to the description, and of the direction relative to the
/// words.
/// SOURCE: chosen on 810 calls of the Berkeley function-calling benchmark.
const NAME: f64 = 2.0;
const PARAMETERS: f64 = 0.3;
const MEANING: f64 = 0.2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_that_serves_a_request_scores_above_strangers() {
        let lexicon = Lexicon::shared().unwrap();
        let tool = |name, description| ToolText { name, description, parameters: "" };
        let tools = [
            tool("get_weather", "Returns the forecast for a city."),
            tool("sendEmail", "Sends an email to a recipient."),
            tool("refund_order", "Refunds an order that a customer paid."),
            tool("list_files", "Lists the files of a folder."),
        ];
        let relevance = Relevance::of(tools, &lexicon);
        for (request, wanted) in [
            ("Will it rain in Bremen? Look at the forecast.", 0),
            ("Please mail the figures to Ada", 1),
            ("The customer wants the money for her order back", 2),
            ("Which files are there in the reports folder?", 3),
        ] {
            let scores = relevance.scores(request, &lexicon);
            let best = (0..scores.len()).max_by(|&one, &other| scores[one].total_cmp(&scores[other])).unwrap();
            assert_eq!(best, wanted, "{request}: {scores:?}");
        }
    }

    #[test]
    fn no_tools_no_words_and_unknown_words_score_nothing() {
        let lexicon = Lexicon::shared().unwrap();
        assert!(Relevance::of([], &lexicon).scores("Send it", &lexicon).is_empty());
        let relevance = Relevance::of([ToolText { name: "", description: "", parameters: "" }], &lexicon);
        assert_eq!(relevance.scores("", &lexicon), [0.0]);
        assert_eq!(relevance.scores("zorp blarg", &lexicon), [0.0]);
    }
}
