//! Agents that game their trust over 400 days end below an honest one.

mod simulation;

use rulekeep::Tier;
use rulekeep::trust::Score;
use simulation::{Character, DAYS};

#[test]
fn who_plays_the_system_ends_below_the_honest() {
    let courses = simulation::simulate(DAYS).unwrap();
    let course = |character| courses.iter().find(|course| course.character == character).unwrap();
    let honest = course(Character::Honest);
    assert!(honest.tier >= Tier::T4, "{}", simulation::table(&courses));
    for character in [Character::Careless, Character::Farming, Character::Sleeper, Character::Hoarder, Character::Sybil]
    {
        assert!(course(character).end() < honest.end(), "{}", simulation::table(&courses));
    }
    let farming = course(Character::Farming);
    assert!(farming.scores.iter().all(|score| score.tier() <= Tier::T3), "{}", simulation::table(&courses));
    let sybil = &course(Character::Sybil).scores;
    assert!(sybil.iter().all(|score| *score < Tier::T2.lowest()), "no name of many is trusted");
    let sleeper = &course(Character::Sleeper).scores;
    let before = sleeper[..300].iter().max().copied().unwrap_or(Score::MIN);
    assert!(sleeper[300..].iter().all(|score| score.tier() < before.tier()), "what a strike costs is not back soon");

    let hoarder = &course(Character::Hoarder).scores;
    assert!(hoarder[299] >= before, "until its strike it is trusted as the sleeper is");
    assert!(hoarder[300..].is_sorted_by(|one, next| one >= next), "what it kept back lifts it no more");
    assert!(hoarder.last() < sleeper.last());

    // The scores in docs/reference/trust.md.
    let ends: Vec<u16> = courses.iter().map(|course| course.end().get()).collect();
    assert_eq!(ends, [1000, 320, 649, 737, 200, 209], "{}", simulation::table(&courses));
}
