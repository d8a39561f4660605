//! Charts as SVG. Only numbers and times from the log are used in them.

use std::ops::Range;

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use rulekeep::Decision;

use super::span::Span;
use super::tally::Decisions;

/// The color of a decision. Decisions differ in lightness too, for print without colors.
pub(super) const fn color(decision: Decision) -> RGBColor {
    match decision {
        Decision::Allow => RGBColor(0x8f, 0xc9, 0xa3),
        Decision::Degrade => RGBColor(0xe9, 0xc4, 0x6a),
        Decision::Escalate => RGBColor(0x4f, 0x81, 0xbd),
        Decision::Deny => RGBColor(0xa6, 0x2b, 0x2b),
    }
}

/// Decisions in the order in which they are stacked, from the bottom.
pub(super) const STACKED: [Decision; Decision::ALL.len()] =
    [Decision::Allow, Decision::Degrade, Decision::Escalate, Decision::Deny];

/// The colors of curves: those of Okabe and Ito, which people with defective color vision can distinguish.
pub(super) const CURVES: [RGBColor; 8] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x00, 0x00, 0x00),
    RGBColor(0x8c, 0x8c, 0x2e),
];

/// A chart as SVG, or the error of drawing it.
pub(super) type Drawn = Result<String, Box<dyn std::error::Error>>;

/// Draws the decisions of each interval as stacked columns.
pub(super) fn decisions(span: &Span, by_interval: &[Decisions]) -> Drawn {
    let most = by_interval.iter().map(|interval| interval.iter().sum()).max().unwrap_or(1).max(1);
    let columns = by_interval.iter().enumerate().flat_map(|(place, interval)| {
        let (left, right) = (as_f64(place as u64) + GAP, as_f64(place as u64 + 1) - GAP);
        let mut top = 0;
        STACKED
            .into_iter()
            .filter(|decision| interval[*decision as usize] > 0)
            .map(move |decision| {
                let bottom = top;
                top += interval[decision as usize];
                Rectangle::new([(left, as_f64(bottom)), (right, as_f64(top))], color(decision).filled())
            })
            .collect::<Vec<_>>()
    });
    drawn(CHART, |root| {
        let mut chart = over_time(span, 0.0..as_f64(most) * HEADROOM, &root)?;
        chart.draw_series(columns)?;
        Ok(())
    })
}

/// Draws the trust scores of agents over time, as steps.
pub(super) fn scores(span: &Span, agents: &[&[(u32, u16)]]) -> Drawn {
    let all = || agents.iter().flat_map(|scores| scores.iter().map(|(_, score)| *score));
    let bottom = all().min().unwrap_or(0) / 100 * 100;
    let top = (all().max().unwrap_or(0) / 100 + 1) * 100;
    drawn(CHART, |root| {
        let mut chart = over_time(span, f64::from(bottom)..f64::from(top), &root)?;
        for (scores, color) in agents.iter().zip(CURVES) {
            let (mut points, mut last) = (Vec::with_capacity(scores.len() * 2 + 1), None);
            for (place, score) in *scores {
                let (at, score) = (f64::from(*place), f64::from(*score));
                points.extend(last.map(|before| (at, before)));
                points.push((at, score));
                last = Some(score);
            }
            points.extend(last.map(|score| (as_f64(span.count as u64), score)));
            chart.draw_series(LineSeries::new(points, color.stroke_width(2)))?;
        }
        Ok(())
    })
}

/// Draws one bar of decisions, as long as their share of `most`.
pub(super) fn bar(decisions: &Decisions, most: u64) -> Drawn {
    drawn(BAR, |root| {
        let scale = f64::from(BAR.0) / as_f64(most.max(1));
        let mut sum = 0;
        for decision in STACKED {
            let from = sum;
            sum += decisions[decision as usize];
            let [left, right] = [from, sum].map(|end| in_pixels(as_f64(end) * scale));
            if right > left {
                root.draw(&Rectangle::new(
                    [(left, 0), (right, in_pixels(f64::from(BAR.1)))],
                    color(decision).filled(),
                ))?;
            }
        }
        Ok(())
    })
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Failure = Box<dyn std::error::Error>;

fn drawn(size: (u32, u32), draw: impl FnOnce(Area<'_>) -> Result<(), Failure>) -> Drawn {
    let mut text = String::new();
    let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
    draw(root.clone())?;
    root.present()?;
    drop(root);
    Ok(text)
}

/// Draws axes with the period below and values beside it.
fn over_time<'a, 'b>(
    span: &Span,
    values: Range<f64>,
    root: &'a Area<'b>,
) -> Result<ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>, Failure> {
    let mut chart = ChartBuilder::on(root)
        .margin(6)
        .margin_right(24)
        .x_label_area_size(26)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..as_f64(span.count as u64), values)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE.mix(0.0))
        .bold_line_style(BLACK.mix(0.12))
        .axis_style(BLACK.mix(0.5))
        .x_labels(6)
        .y_labels(5)
        .label_style(("sans-serif", 15))
        .x_label_formatter(&|place| label(span, *place))
        .y_label_formatter(&|value| if value.fract() == 0.0 { format!("{value}") } else { String::new() })
        .draw()?;
    Ok(chart)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "places of intervals: few and not negative"
)]
fn label(span: &Span, place: f64) -> String {
    if place.fract() == 0.0 { span.label(place as usize) } else { String::new() }
}

#[expect(clippy::cast_precision_loss, reason = "a chart shows three digits")]
const fn as_f64(count: u64) -> f64 {
    count as f64
}

#[expect(clippy::cast_possible_truncation, reason = "at most the width of a chart")]
fn in_pixels(length: f64) -> i32 {
    length.round() as i32
}

const CHART: (u32, u32) = (860, 250);
const BAR: (u32, u32) = (200, 12);
/// Half of the gap between two columns, as a share of an interval.
const GAP: f64 = 0.06;
/// The room above the highest column.
const HEADROOM: f64 = 1.05;
