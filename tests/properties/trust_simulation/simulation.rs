//! Six agents over many days: an honest one, a careless one and four that game their trust. Each acts in a governor of
//! its own, with a fixed clock and a fixed seed, so that two runs give the same scores.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rulekeep::system::{Clock, Timestamp};
use rulekeep::trust::Score;
use rulekeep::{Durability, Error, Governor, Intent, Outcome, PolicySet, RiskLevel, Tier};

/// The length of the simulation, in days.
pub(crate) const DAYS: usize = 400;

/// The behavior of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Character {
    /// Ten acts a day of all risks up to HIGH, of which one in a thousand fails.
    Honest,
    /// The same acts, of which one in twenty fails.
    Careless,
    /// Forty harmless reads a day, called riskier than they are.
    Farming,
    /// Like the honest one and never failing, until it strikes.
    Sleeper,
    /// Like the sleeper, but it keeps half of its successes back, and lives off them after its strike.
    Hoarder,
    /// Like the honest one, but it strikes every fourteenth day, and comes back the day after under a new name.
    Sybil,
}

impl Character {
    /// Every character, the honest one first.
    pub(crate) const ALL: [Self; 6] =
        [Self::Honest, Self::Careless, Self::Farming, Self::Sleeper, Self::Hoarder, Self::Sybil];

    /// The name in the table.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Honest => "honest",
            Self::Careless => "careless",
            Self::Farming => "farming",
            Self::Sleeper => "sleeper",
            Self::Hoarder => "hoarder",
            Self::Sybil => "sybil",
        }
    }

    /// The acts of a day, each with its fate.
    fn acts(self, day: usize, chance: &mut Chance) -> Vec<(Act, Fate)> {
        use Act::{Customer, Document, Payment, Public, Secret};
        let ordinary =
            [Document, Document, Customer, Document, Secret, Document, Customer, Document, Document, Customer];
        let mut fails_once_in = |many| if chance.one_in(many) { Fate::Harm } else { Fate::Good };
        match self {
            Self::Honest => ordinary.map(|act| (act, fails_once_in(1000))).to_vec(),
            Self::Careless => ordinary.map(|act| (act, fails_once_in(20))).to_vec(),
            Self::Farming => vec![(Public, Fate::Good); 40],
            Self::Sleeper | Self::Hoarder if day == STRIKE => vec![(Payment, Fate::Harm); 3],
            Self::Sybil if day % NAME_DAYS == NAME_DAYS - 1 => vec![(Payment, Fate::Harm)],
            Self::Sleeper | Self::Sybil => ordinary.map(|act| (act, Fate::Good)).to_vec(),
            Self::Hoarder if day > STRIKE => Vec::new(),
            Self::Hoarder => ordinary.into_iter().flat_map(|act| [(act, Fate::Good), (act, Fate::KeptBack)]).collect(),
        }
    }

    /// The number of kept-back successes that it reports on a day, the newest first.
    const fn reports_late(self, day: usize) -> usize {
        if matches!(self, Self::Hoarder) && day > STRIKE { 10 } else { 0 }
    }

    /// The name it acts under on a day.
    fn agent(self, day: usize) -> String {
        match self {
            Self::Sybil => format!("{}-{}", self.name(), day / NAME_DAYS),
            _ => self.name().to_owned(),
        }
    }
}

/// The fate of an act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It succeeds, which is reported at once.
    Good,
    /// It succeeds, which is not reported yet.
    KeptBack,
    /// It does harm.
    Harm,
}

/// The day on which the sleeper and the hoarder strike.
const STRIKE: usize = 300;
/// The days after which the sybil changes its name.
const NAME_DAYS: usize = 14;

/// The course of an agent's trust.
#[derive(Debug, Clone)]
pub(crate) struct Course {
    /// The agent.
    pub(crate) character: Character,
    /// The score at the end of each day, under the name of that day.
    pub(crate) scores: Vec<Score>,
    /// The tier in force at the end.
    pub(crate) tier: Tier,
    /// The number of its acts.
    pub(crate) acts: usize,
    /// The number of acts that did harm.
    pub(crate) failures: usize,
}

impl Course {
    /// The score at the end.
    pub(crate) fn end(&self) -> Score {
        self.scores.last().copied().unwrap_or(Score::MIN)
    }
}

/// Lets each character act for so many days, each in a governor of its own.
///
/// # Errors
///
/// Those of the governor, which here are none.
pub(crate) fn simulate(days: usize) -> Result<Vec<Course>, Error> {
    Character::ALL.into_iter().map(|character| live(character, days)).collect()
}

fn live(character: Character, days: usize) -> Result<Course, Error> {
    let clock = Hand::default();
    let governor = Governor::builder()
        .policies(PolicySet::from_toml(EVERYTHING)?)
        .durability(Durability::Buffered)
        .clock(clock.clone())
        .auto_register()
        .open_in_memory()?;
    let mut chance = Chance(6);
    let mut course = Course { character, scores: Vec::new(), tier: Tier::T1, acts: 0, failures: 0 };
    let mut kept_back = Vec::new();
    for day in 0..days {
        let agent = character.agent(day);
        clock.set(day, 0);
        for _ in 0..character.reports_late(day) {
            kept_back.pop().map(|proof_id| governor.report(&proof_id, Outcome::Success)).transpose()?;
        }
        for (place, (act, fate)) in character.acts(day, &mut chance).into_iter().enumerate() {
            clock.set(day, place);
            let verdict = governor.enforce(&act.intent(&agent)?)?;
            match fate {
                Fate::Good => _ = governor.report(&verdict.proof_id, Outcome::Success)?,
                Fate::Harm => _ = governor.report(&verdict.proof_id, Outcome::Failure)?,
                Fate::KeptBack => kept_back.push(verdict.proof_id),
            }
            course.acts += 1;
            course.failures += usize::from(fate == Fate::Harm);
        }
        let trust = governor.agents().get(&agent)?.trust;
        course.scores.push(trust.score);
        course.tier = trust.tier;
    }
    governor.close()?;
    Ok(course)
}

/// Policies that allow every act, so that only trust moves.
const EVERYTHING: &str = r#"
name = "everything"
[[rule]]
id = "everything"
effect = "allow"
match.capabilities = ["information:read", "document:read", "customer:read", "credential:read", "payment:transfer"]
"#;

#[derive(Debug, Clone, Copy)]
enum Act {
    /// LOW, called MEDIUM.
    Public,
    /// LOW.
    Document,
    /// MEDIUM.
    Customer,
    /// HIGH.
    Secret,
    /// CRITICAL, by its amount.
    Payment,
}

impl Act {
    fn intent(self, agent: &str) -> Result<Intent, Error> {
        match self {
            Self::Public => Intent::new(agent, "look_up_weather", RiskLevel::Medium, ["information:read"]),
            Self::Document => Intent::new(agent, "read_document", RiskLevel::Low, ["document:read"]),
            Self::Customer => Intent::new(agent, "read_customer", RiskLevel::Medium, ["customer:read"]),
            Self::Secret => Intent::new(agent, "read_secret", RiskLevel::High, ["credential:read"]),
            Self::Payment => Intent::new(agent, "send_money", RiskLevel::Critical, ["payment:transfer"])
                .map(|intent| intent.with_context("amount", 50_000)),
        }
    }
}

/// A small table of the courses.
pub(crate) fn table(courses: &[Course]) -> String {
    let mut text = String::from("agent       acts  failures  score after 100   200   300   all days  tier\n");
    for course in courses {
        let after = |days: usize| course.scores.get(days - 1).map_or_else(|| "-".to_owned(), Score::to_string);
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:9} {:6} {:9} {:>16} {:>5} {:>5} {:>10}  {} {}",
            course.character.name(),
            course.acts,
            course.failures,
            after(100),
            after(200),
            after(300),
            course.end(),
            course.tier,
            course.tier.name(),
        );
    }
    text
}

/// A clock that the simulation sets.
#[derive(Clone, Default)]
struct Hand(Arc<AtomicI64>);

impl Hand {
    /// The nth act of a day, ten minutes after the one before.
    fn set(&self, day: usize, place: usize) {
        let minutes = i64::try_from(day * 24 * 60 + place * 10).unwrap_or(i64::MAX / 60_000);
        self.0.store(START + minutes * 60_000, Ordering::SeqCst);
    }
}

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst).max(START))
    }
}

/// 2026-01-01T08:00:00Z
const START: i64 = 1_767_254_400_000;

/// Chance from a seed, the same on every machine.
struct Chance(u64);

impl Chance {
    fn one_in(&mut self, many: u64) -> bool {
        // SOURCE: G. Steele et al., SplitMix64, as in Java's SplittableRandom.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).is_multiple_of(many)
    }
}
