//! Models that would break a promise, and the messages that refuse them.

use super::*;
use crate::model::Error;

fn refusal(json: &str) -> (&'static str, String) {
    let model: TrustModel = serde_json::from_str(json).unwrap();
    match model.checked() {
        Err(Error::InvalidInput { field, message }) => (field, message),
        other => panic!("{json} gave {other:?}"),
    }
}

#[test]
fn the_default_model_is_valid_and_an_empty_document_is_it() {
    assert_eq!(serde_json::from_str::<TrustModel>("{}").unwrap().checked().unwrap(), TrustModel::default());
}

#[test]
fn an_invalid_model_is_refused_with_field_found_and_expected() {
    for (json, field, message) in [
        (
            r#"{"failureLoss":{"LOW":0,"MEDIUM":15,"HIGH":60,"CRITICAL":250},"successGain":{"LOW":0,"MEDIUM":0,"HIGH":0,"CRITICAL":0}}"#,
            "trustModel.failureLoss",
            "found LOW 0; expected LOW at least 1",
        ),
        (
            r#"{"failureLoss":{"LOW":3,"MEDIUM":5,"HIGH":60,"CRITICAL":250}}"#,
            "trustModel.failureLoss",
            "found MEDIUM 5; expected MEDIUM at least 6",
        ),
        (
            r#"{"failureLoss":{"LOW":6,"MEDIUM":15,"HIGH":60,"CRITICAL":210}}"#,
            "trustModel.failureLoss",
            "found CRITICAL 210; expected CRITICAL at least 211",
        ),
        (
            r#"{"failureLoss":{"LOW":300,"MEDIUM":15,"HIGH":60,"CRITICAL":250}}"#,
            "trustModel.failureLoss",
            "found LOW 300, MEDIUM 15, HIGH 60, CRITICAL 250; expected at most 1000, and never less at a higher risk",
        ),
        (
            r#"{"successGain":{"LOW":3,"MEDIUM":6,"HIGH":12,"CRITICAL":21}}"#,
            "trustModel.successGain",
            "found LOW 3, MEDIUM 6, HIGH 12, CRITICAL 21; expected at most 20, and never less at a higher risk",
        ),
        (r#"{"lowRiskCeiling":"T5"}"#, "trustModel.lowRiskCeiling", "found T5; expected T0 to T3"),
        (r#"{"promotionMargin":300}"#, "trustModel.promotionMargin", "found 300; expected 0 to 50"),
        (r#"{"dailyGainCap":101}"#, "trustModel.dailyGainCap", "found 101; expected 0 to 100"),
        (r#"{"probationDays":0}"#, "trustModel.probationDays", "found 0; expected 1 to 365"),
        (r#"{"denialStreak":0}"#, "trustModel.denialStreak", "found 0; expected 1 to 100"),
        (
            r#"{"observabilityCeilings":{"blackBox":900,"greyBox":800,"whiteBox":1000}}"#,
            "trustModel.observabilityCeilings",
            "found 900, 800, 1000; expected never less for an agent that shows more: blackBox <= greyBox <= whiteBox",
        ),
    ] {
        assert_eq!(refusal(json), (field, message.to_owned()));
    }
}

#[test]
fn a_governor_with_an_invalid_model_makes_no_store() {
    let folder = tempfile::tempdir().unwrap();
    let model = TrustModel { promotion_margin: 300, ..TrustModel::default() };
    let error = crate::Governor::builder().trust_model(model).open(folder.path()).err().unwrap();
    assert_eq!(error.code(), "INVALID_INPUT");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn misspelt_fields_and_scores_out_of_range_do_not_load() {
    for json in [r#"{"promotionMargn":3}"#, r#"{"idleDriftFloor":1001}"#, r#"{"denialLoss":{"LOW":1}}"#] {
        assert!(serde_json::from_str::<TrustModel>(json).is_err(), "{json}");
    }
}
