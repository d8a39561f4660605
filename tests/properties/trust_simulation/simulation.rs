//! Trust over time: an honest agent beside a careless one and four that play
//! the system, each in a governor of its own, drawn to an SVG.
//!
//! ```text
//! cargo run --release --example trust_simulation [-- FILE.svg]
//! ```
//!
//! Time and chance are given, so two runs write the same bytes. Exit code: 0, or
//! 1 when an agent that plays the system ends no lower than the honest one.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rulekeep::system::{Clock, Timestamp};
use rulekeep::trust::Score;
use rulekeep::{Durability, Error, Governor, Intent, Outcome, PolicySet, RiskLevel, Tier};

fn main() -> ExitCode {
    let file = std::env::args().nth(1).map_or_else(|| PathBuf::from("trust_simulation.svg"), PathBuf::from);
    match run(&file) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("trust_simulation: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Whether honesty paid best.
fn run(file: &PathBuf) -> Result<bool, String> {
    let courses = simulate(DAYS).map_err(|error| format!("{}: {error}", error.code()))?;
    print!("{}", table(&courses));
    std::fs::write(file, draw(&courses)).map_err(|error| format!("{}: {error}", file.display()))?;
    println!("\n{}", file.display());
    let honest = courses.iter().find(|course| course.character == Character::Honest).map(Course::end);
    Ok(courses.iter().all(|course| course.character == Character::Honest || Some(course.end()) < honest))
}

/// How long is looked at.
pub(crate) const DAYS: usize = 400;

/// How an agent behaves.
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
    /// All of them, the honest one first.
    pub(crate) const ALL: [Self; 6] =
        [Self::Honest, Self::Careless, Self::Farming, Self::Sleeper, Self::Hoarder, Self::Sybil];

    /// The name in the table and beside the line.
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

    /// What it does on a day, each act with what becomes of it.
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

    /// How many of the successes that it kept back it reports on a day, the last first.
    const fn reports_late(self, day: usize) -> usize {
        if matches!(self, Self::Hoarder) && day > STRIKE { 10 } else { 0 }
    }

    /// The name that it acts under.
    fn agent(self, day: usize) -> String {
        match self {
            Self::Sybil => format!("{}-{}", self.name(), day / NAME_DAYS),
            _ => self.name().to_owned(),
        }
    }

    const fn colour(self) -> &'static str {
        // SOURCE: Okabe and Ito's palette, which those who see fewer colours can tell apart.
        match self {
            Self::Honest => "#009e73",
            Self::Careless => "#e69f00",
            Self::Farming => "#0072b2",
            Self::Sleeper => "#d55e00",
            Self::Hoarder => "#56b4e9",
            Self::Sybil => "#cc79a7",
        }
    }
}

/// What becomes of an act.
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
/// How long the sybil keeps a name.
const NAME_DAYS: usize = 14;

/// What an agent's trust came to.
#[derive(Debug, Clone)]
pub(crate) struct Course {
    /// Whose.
    pub(crate) character: Character,
    /// The score at the end of each day, of the name that it then had.
    pub(crate) scores: Vec<Score>,
    /// The tier in force at the end.
    pub(crate) tier: Tier,
    /// How much it did.
    pub(crate) acts: usize,
    /// How much of that did harm.
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

/// Everything is allowed: what is looked at is trust alone.
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

/// The courses as a picture: an SVG document.
pub(crate) fn draw(courses: &[Course]) -> String {
    let days = courses.iter().map(|course| course.scores.len()).max().unwrap_or(0).max(1);
    let x = |day: usize| LEFT + WIDTH * day / days;
    let y = |score: Score| TOP + HEIGHT - HEIGHT * usize::from(score.get()) / usize::from(Score::MAX.get());
    let (right, bottom) = (LEFT + WIDTH, TOP + HEIGHT);
    let mut svg = String::from(HEAD);
    for &tier in Tier::ALL {
        let (lowest, height, name) = (tier.lowest(), y(tier.lowest()), tier.name());
        // Writing to a String cannot fail.
        let _ = writeln!(svg, r##"<path d="M{LEFT} {height}H{right}" stroke="#d0d0d0"/>"##);
        let _ = writeln!(svg, r##"<text x="{}" y="{}" fill="#707070">{tier} {name}</text>"##, LEFT + 6, height - 5);
        let _ = writeln!(svg, r#"<text x="{}" y="{}" text-anchor="end">{lowest}</text>"#, LEFT - 6, height + 4);
    }
    let _ = writeln!(svg, r#"<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="black"/>"#);
    for day in (0..=days).step_by(50) {
        let _ = writeln!(svg, r#"<text x="{}" y="{}" text-anchor="middle">{day}</text>"#, x(day), bottom + 18);
    }
    let _ = writeln!(svg, r#"<text x="{}" y="{}" text-anchor="middle">days</text>"#, LEFT + WIDTH / 2, bottom + 38);
    for course in courses {
        let (colour, name) = (course.character.colour(), course.character.name());
        let points: Vec<String> =
            (1..).zip(&course.scores).map(|(day, score)| format!("{},{}", x(day), y(*score))).collect();
        let _ = writeln!(
            svg,
            r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"/>"#,
            points.join(" ")
        );
        let _ = writeln!(svg, r#"<text x="{}" y="{}" fill="{colour}">{name}</text>"#, right + 6, y(course.end()) + 4);
    }
    svg + "</svg>\n"
}

const HEAD: &str = r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 540" font-family="sans-serif" font-size="13">
<rect width="960" height="540" fill="white"/>
<text x="448" y="30" font-size="22" text-anchor="middle">Trust over time</text>
"#;

/// The plot within the picture.
const LEFT: usize = 56;
const TOP: usize = 48;
const WIDTH: usize = 800;
const HEIGHT: usize = 440;

/// A clock that shows what it was last set to.
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
