//! The plots of the report: bars on a logarithmic scale, and ratios around 1.
//!
//! Inline SVG without a width of its own, so that it fits the column it is in. Colours come from the
//! page's style by class. Every mark is also named in words, since a colour alone tells nothing to
//! some readers.

use maud::{Markup, html};
use milepost_stats::bootstrap::Interval;

use crate::analysis::{Answered, Cell, Estimate, Outcome};
use crate::experiment::Metric;
use crate::layout::{View, cell_at, columns, factor, metric_title, number, ratio_text, rows};
use crate::results::Results;

/// Width of a plot in its own units; a column of the page makes them about a pixel.
const WIDTH: f64 = 460.0;

/// Where the bars begin: left of it stand the names of the servers.
const LEFT: f64 = 92.0;

/// Where the scale ends: right of it the numbers of the longest bars still fit.
const RIGHT: f64 = WIDTH - 78.0;

/// Height of one bar with its gap.
const BAR_STEP: f64 = 15.0;

/// Height of one bar.
const BAR: f64 = 10.0;

/// Height of the name of a method above its bars.
const HEADING: f64 = 19.0;

/// Height of the scale below the bars.
const AXIS: f64 = 22.0;

/// Where the scale of ratios begins: left of it stand the names of the methods, which are longer.
const LEFT_OF_RATIOS: f64 = 150.0;

/// The least distance of two labels of the scale of ratios.
const TICKS_APART: f64 = 32.0;

/// A logarithmic scale from one number to another.
#[derive(Clone, Copy, Debug)]
struct Scale {
    low: f64,
    high: f64,
    left: f64,
}

impl Scale {
    /// Spans whole decades around `values`; `None` when there is none above zero.
    fn decades(values: impl Iterator<Item = f64>) -> Option<Self> {
        let (low, high) = extremes(values)?;
        let decade = low.log10().floor();
        // A bar needs a length, so the smallest value does not stand at the very beginning.
        let low = if 10_f64.powf(decade) < low { decade } else { decade - 1.0 };
        let high = high.log10().ceil().max(low + 1.0);
        Some(Self { low: 10_f64.powf(low), high: 10_f64.powf(high), left: LEFT })
    }

    /// Returns where `value` stands.
    fn at(self, value: f64) -> f64 {
        let share = (value / self.low).ln() / (self.high / self.low).ln();
        self.left + share.clamp(0.0, 1.0) * (RIGHT - self.left)
    }

    /// Returns the powers of ten in it.
    fn ticks(self) -> Vec<f64> {
        let (low, high) = (self.low.log10().ceil() as i32, self.high.log10().floor() as i32);
        (low..=high).map(|power| 10_f64.powi(power)).collect()
    }
}

fn extremes(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let usable = values.filter(|value| value.is_finite() && *value > 0.0);
    usable.fold(None, |range, value| match range {
        None => Some((value, value)),
        Some((low, high)) => Some((value.min(low), value.max(high))),
    })
}

/// A line of a bar plot.
enum Line<'a> {
    Heading(&'a str),
    Bar { server: &'static str, title: &'static str, cell: Cell },
}

/// Draws a view: for each method a bar for each server.
pub(super) fn bars(results: &Results, view: View, id: usize) -> Markup {
    let mut lines = Vec::new();
    for row in rows(results) {
        lines.push(Line::Heading(row.title));
        for server in columns(results) {
            let cell = cell_at(results, row, server, view.target, view.connections);
            if cell != Cell::Absent {
                lines.push(Line::Bar { server: server.name(), title: server.title(), cell });
            }
        }
    }
    let estimates = lines.iter().filter_map(|line| match line {
        Line::Bar { cell: Cell::Measured(figures), .. } => Some(estimate(view.metric, figures)),
        _ => None,
    });
    let Some(scale) = Scale::decades(estimates.map(|estimate| estimate.median)) else {
        return html! { p { "Nothing was measured." } };
    };
    let height = lines.iter().map(Line::height).sum::<f64>() + AXIS;
    let mut top = 0.0;
    let placed: Vec<(f64, &Line<'_>)> = lines
        .iter()
        .map(|line| {
            let at = top;
            top += line.height();
            (at, line)
        })
        .collect();
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img"
            aria-labelledby=(format!("bars-{id}-title bars-{id}-text")) {
            title id=(format!("bars-{id}-title")) { (view.title(results)) }
            desc id=(format!("bars-{id}-text")) { (description(results, view)) }
            (axis(scale, height, number_of_decade))
            @for (top, line) in placed {
                @match line {
                    Line::Heading(title) => {
                        text.method x="0" y=(top + 14.0) { (title) }
                    },
                    Line::Bar { server, title, cell } => {
                        text.server x=(LEFT - 7.0) y=(top + 9.0) text-anchor="end" { (title) }
                        (bar(view, scale, top, server, cell))
                    },
                }
            }
        }
    }
}

fn bar(view: View, scale: Scale, top: f64, server: &str, cell: &Cell) -> Markup {
    let baseline = top + 9.0;
    match cell {
        Cell::Absent => html! {},
        Cell::Wrong { .. } => html! {
            text.bad x=(LEFT + 2.0) y=(baseline) { "✗ wrong answers" }
        },
        Cell::Failed { .. } => html! {
            text.bad x=(LEFT + 2.0) y=(baseline) { "✗ requests failed" }
        },
        Cell::Measured(figures) => {
            let Estimate { median, interval } = estimate(view.metric, figures);
            let end = scale.at(median);
            let whisker_end = interval.map_or(end, |ends| scale.at(ends.high)).max(end);
            html! {
                rect.bar.(server) x=(LEFT) y=(place(top)) width=(place(end - LEFT)) height=(BAR) rx="1.5" {}
                @if let Some(interval) = interval {
                    (whisker(scale, interval, top + BAR / 2.0))
                }
                text.value x=(place(whisker_end + 5.0)) y=(baseline) { (view.text(cell)) }
            }
        }
    }
}

fn whisker(scale: Scale, Interval { low, high }: Interval, middle: f64) -> Markup {
    let (low, high) = (scale.at(low), scale.at(high));
    let path = format!(
        "M{low:.1} {middle}H{high:.1}M{low:.1} {top}v5M{high:.1} {top}v5",
        top = middle - 2.5
    );
    html! { path.whisker d=(path) {} }
}

/// Draws the grid, with a label below each line.
fn axis(scale: Scale, height: f64, label: impl Fn(f64) -> String) -> Markup {
    html! {
        @for tick in scale.ticks() {
            @let x = place(scale.at(tick));
            line.grid x1=(x) x2=(x) y1="0" y2=(height - AXIS + 2.0) {}
            text.tick x=(x) y=(height - AXIS + 15.0) text-anchor="middle" { (label(tick)) }
        }
    }
}

fn description(results: &Results, view: View) -> String {
    let mut parts = Vec::new();
    for row in rows(results) {
        for server in columns(results) {
            let cell = cell_at(results, row, server, view.target, view.connections);
            if cell != Cell::Absent {
                parts.push(format!("{} on {}: {}", row.title, server.title(), view.text(&cell)));
            }
        }
    }
    format!("{}.", parts.join("; "))
}

impl Line<'_> {
    fn height(&self) -> f64 {
        match self {
            Self::Heading(_) => HEADING,
            Self::Bar { .. } => BAR_STEP,
        }
    }
}

/// Draws ratios as points with intervals, on a logarithmic scale with 1 marked.
pub(super) fn forest(answered: &Answered<'_>, id: usize) -> Markup {
    let ratios = || {
        answered.answers.iter().filter_map(|answer| match answer.outcome {
            Outcome::Ratio { ratio, .. } => Some((answer, ratio)),
            Outcome::Refused => None,
        })
    };
    let ends = ratios().flat_map(|(_, ratio)| {
        let ends = ratio.interval.map_or([ratio.estimate; 2], |ends| [ends.low, ends.high]);
        [ends[0], ratio.estimate, ends[1]]
    });
    let margin = answered.question.same_percent.map(|percent| 1.0 + percent / 100.0);
    let around = margin.map_or(1.0, |margin| margin);
    let Some((low, high)) = extremes(ends.chain([1.0 / around, around])) else {
        return html! {};
    };
    // Some air, so that nothing stands on the edge.
    let scale = Scale { low: low / 1.1, high: high * 1.1, left: LEFT_OF_RATIOS };
    let height = ratios().count() as f64 * BAR_STEP + AXIS;
    let metric = metric_title(answered.question.metric);
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img"
            aria-labelledby=(format!("forest-{id}-title forest-{id}-text")) {
            title id=(format!("forest-{id}-title")) {
                (answered.question.title) ": ratios of " (metric)
            }
            desc id=(format!("forest-{id}-text")) {
                @for answer in &answered.answers {
                    @let (ratio, verdict) = ratio_text(answered, answer);
                    (answer.of) " " (ratio) " " (verdict) "; "
                }
            }
            @if let Some(margin) = margin {
                @let (left, right) = (scale.at(1.0 / margin), scale.at(margin));
                rect.margin x=(place(left)) y="0" width=(place(right - left)) height=(height - AXIS + 2.0) {}
            }
            @for tick in forest_ticks(scale) {
                @let x = place(scale.at(tick));
                line.grid.one[tick == 1.0] x1=(x) x2=(x) y1="0" y2=(height - AXIS + 2.0) {}
                text.tick x=(x) y=(height - AXIS + 15.0) text-anchor="middle" { "×" (tick_label(tick)) }
            }
            @for (at, (answer, ratio)) in ratios().enumerate() {
                @let top = at as f64 * BAR_STEP;
                @let (server, method) = answer.of.split_once('/').unwrap_or(("", answer.of));
                text.server x=(LEFT_OF_RATIOS - 9.0) y=(top + 10.0) text-anchor="end" { (method) }
                @if let Some(interval) = ratio.interval {
                    (whisker(scale, interval, top + 7.0))
                }
                circle.point.(server) cx=(place(scale.at(ratio.estimate))) cy=(top + 7.0) r="3.5" {}
            }
        }
    }
}

/// Returns the marks of a scale of ratios: 1, and few others that fit its width.
fn forest_ticks(scale: Scale) -> Vec<f64> {
    const STEPS: [&[f64]; 4] = [
        &[0.9, 0.95, 1.0, 1.05, 1.1],
        &[0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0],
        &[0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0],
        &[0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1_000.0, 10_000.0],
    ];
    let fitting = |steps: &&[f64]| {
        steps.iter().copied().filter(|tick| (scale.low..=scale.high).contains(tick)).collect()
    };
    let all: Vec<Vec<f64>> = STEPS.iter().map(fitting).collect();
    // The finest whose labels do not touch.
    let legible = |ticks: &&Vec<f64>| {
        let apart = |pair: &[f64]| scale.at(pair[1]) - scale.at(pair[0]) >= TICKS_APART;
        ticks.len() > 1 && ticks.windows(2).all(apart)
    };
    all.iter().find(legible).or(all.last()).cloned().unwrap_or_default()
}

fn estimate(metric: Metric, figures: &crate::analysis::Figures) -> Estimate {
    match metric {
        Metric::TimePerRequestUs => figures.time_per_request_us,
        Metric::RequestsPerSecond => figures.requests_per_second,
        Metric::ServerCpuUsPerRequest => figures.server_cpu_us,
    }
}

fn number_of_decade(value: f64) -> String {
    if value >= 1.0 { number_without_places(value) } else { factor(value) }
}

fn tick_label(value: f64) -> String {
    if value >= 10.0 { number_without_places(value) } else { value.to_string() }
}

fn number_without_places(value: f64) -> String {
    if value >= 100.0 { number(value) } else { format!("{value:.0}") }
}

/// A tenth of a unit is finer than any screen.
fn place(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_span_whole_decades() {
        check_decades(&[17.0, 750.0], 10.0, 1_000.0);
        check_decades(&[10.0, 20.0], 1.0, 100.0); // The smallest bar still has a length.
        check_decades(&[5.0], 1.0, 10.0);
        assert!(Scale::decades([0.0, f64::NAN].into_iter()).is_none());
    }

    #[test]
    fn places_follow_the_logarithm() {
        let scale = Scale { low: 1.0, high: 100.0, left: LEFT };
        assert_eq!(scale.at(1.0), LEFT);
        assert_eq!(scale.at(100.0), RIGHT);
        assert!((scale.at(10.0) - (LEFT + RIGHT) / 2.0).abs() < 1e-9);
        assert_eq!(scale.at(1e9), RIGHT, "nothing leaves the plot");
        assert_eq!(scale.ticks(), [1.0, 10.0, 100.0]);
    }

    #[test]
    fn labels_of_ratios_do_not_touch() {
        for (low, high) in [(0.85, 1.15), (0.3, 4.4), (0.36, 28.0), (0.9, 2.6), (0.001, 5_000.0)] {
            let scale = Scale { low, high, left: LEFT_OF_RATIOS };
            let ticks = forest_ticks(scale);
            assert!(ticks.contains(&1.0), "{ticks:?}");
            assert!(ticks.len() > 1, "{ticks:?}");
            for pair in ticks.windows(2) {
                assert!(scale.at(pair[1]) - scale.at(pair[0]) >= TICKS_APART, "{ticks:?}");
            }
        }
    }

    #[track_caller]
    fn check_decades(values: &[f64], low: f64, high: f64) {
        let scale = Scale::decades(values.iter().copied()).expect("values above zero");
        assert!((scale.low / low - 1.0).abs() < 1e-9, "{scale:?}");
        assert!((scale.high / high - 1.0).abs() < 1e-9, "{scale:?}");
    }
}
