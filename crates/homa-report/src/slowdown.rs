//! Slowdown by message size, as the Homa papers draw it.
//!
//! The x axis counts messages, not bytes: each class of size is as wide as its
//! share of the messages, and a step says its slowdown. The 99th percentile and
//! the median have a panel each with a logarithmic axis of its own.

mod numbers;

use maud::{Markup, html};

use crate::axis::Axis;
use crate::frame::{self, Key, Plot};
use crate::measured::Measured;
use crate::number::{Unit, count};
use crate::style::Styles;
use crate::svg::{Path, line, picture};

/// Messages longer than those of the class before, up to a size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeClass {
    /// Longest message of the class, in bytes.
    pub up_to_bytes: u64,
    /// Share of all messages that are in this class or a shorter one, up to 1.
    pub cumulative: f64,
}

/// The slowdowns of one row (a protocol, a setting).
#[derive(Clone, Debug, Default)]
pub struct SlowdownRow {
    /// Its name.
    pub name: String,
    /// Median by class; what is not there is missing.
    pub p50: Vec<Measured>,
    /// 99th percentile by class.
    pub p99: Vec<Measured>,
}

/// A class of a published curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedClass {
    /// The class.
    pub class: SizeClass,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// A curve that others published.
#[derive(Clone, Debug, Default)]
pub struct PublishedCurve {
    /// What it is of.
    pub name: String,
    /// Where it was published.
    pub source: String,
    /// Shortest first.
    pub classes: Vec<PublishedClass>,
}

/// The picture.
#[derive(Clone, Debug, Default)]
pub struct Slowdown {
    /// Classes of size, shortest first.
    pub classes: Vec<SizeClass>,
    /// One line each.
    pub rows: Vec<SlowdownRow>,
    /// Drawn dashed and in grey.
    pub published: Vec<PublishedCurve>,
}

/// A percentile: its name and how to get it.
struct Panel {
    name: &'static str,
    of_row: fn(&SlowdownRow) -> &[Measured],
    of_published: fn(&PublishedClass) -> f64,
}

const PANELS: [Panel; 2] = [
    Panel {
        name: "99th percentile",
        of_row: |row| &row.p99,
        of_published: |class| class.p99,
    },
    Panel {
        name: "Median",
        of_row: |row| &row.p50,
        of_published: |class| class.p50,
    },
];

const PANEL_HEIGHT: f64 = 220.0;
const TITLE_HEIGHT: f64 = 40.0;
/// Pixels.
const NARROW: f64 = 18.0;

/// One step of a line.
struct Step {
    from: f64,
    to: f64,
    value: Option<f64>,
}

/// Slowdowns are above 0; anything else is no measurement.
fn drawable(value: f64) -> Option<f64> {
    (value > 0.0).then_some(value)
}

/// Where classes begin and end, as shares of the messages.
fn spans(classes: impl Iterator<Item = SizeClass>) -> impl Iterator<Item = (f64, f64)> {
    let mut before = 0.0_f64;
    classes.map(move |class| {
        let share = class.cumulative;
        let end = if share.is_finite() { share } else { before };
        let from = before;
        before = end.clamp(before, 1.0);
        (from, before)
    })
}

impl Slowdown {
    fn value(measured: Option<&Measured>) -> Option<f64> {
        measured.and_then(|m| m.known()).and_then(drawable)
    }

    fn steps_of_row(&self, panel: &Panel, row: &SlowdownRow) -> Vec<Step> {
        let measured = (panel.of_row)(row);
        spans(self.classes.iter().copied())
            .enumerate()
            .map(|(index, (from, to))| Step {
                from,
                to,
                value: Self::value(measured.get(index)),
            })
            .collect()
    }

    fn steps_of_published(panel: &Panel, curve: &PublishedCurve) -> Vec<Step> {
        spans(curve.classes.iter().map(|class| class.class))
            .zip(&curve.classes)
            .map(|((from, to), class)| Step {
                from,
                to,
                value: drawable((panel.of_published)(class)),
            })
            .collect()
    }

    pub(crate) fn draw(&self, number: usize, styles: &Styles<'_>) -> Markup {
        let published: Vec<String> = self.published.iter().map(legend_name).collect();
        let entries: Vec<(Key, &str)> = self
            .rows
            .iter()
            .map(|row| (Key::Marked(styles.of(&row.name)), &*row.name))
            .chain(
                published
                    .iter()
                    .enumerate()
                    .map(|(index, name)| (Key::Published(index), &**name)),
            )
            .collect();
        let (legend, mut top) = frame::legend(number, &entries);
        let mut panels = Vec::new();
        let mut last = None;
        for panel in &PANELS {
            let (markup, plot) = self.panel(panel, top + TITLE_HEIGHT, styles);
            top = plot.bottom();
            panels.push(markup);
            last = Some(plot);
        }
        let axis = last.map(|plot| self.axis_x(&plot));
        let (notes, notes_height) = frame::notes(top + 56.0, &self.notes());
        let content = html! {
            (legend)
            @for panel in &panels { (panel) }
            @if let Some(axis) = axis { (axis) }
            (notes)
        };
        picture(
            number,
            "Slowdown by message size",
            &self.description(),
            top + 56.0 + notes_height,
            &content,
        )
    }

    fn panel(&self, panel: &Panel, top: f64, styles: &Styles<'_>) -> (Markup, Plot) {
        let rows: Vec<Vec<Step>> = self
            .rows
            .iter()
            .map(|row| self.steps_of_row(panel, row))
            .collect();
        let published: Vec<Vec<Step>> = self
            .published
            .iter()
            .map(|curve| Self::steps_of_published(panel, curve))
            .collect();
        let values = || {
            let steps = rows.iter().chain(&published).flatten();
            steps.filter_map(|step| step.value)
        };
        // A slowdown of 1 is the best possible: the axis shows it.
        let axis = Axis::log(values().chain([1.0]), Unit::Plain);
        let plot = Plot::new(top, PANEL_HEIGHT, values().any(f64::is_infinite));
        let markup = html! {
            (plot.grid_y(&axis, &format!("{} of slowdown", panel.name)))
            @for (from, _) in spans(self.classes.iter().copied()).skip(1) {
                (line("minor", (plot.across(from), plot.top), (plot.across(from), plot.bottom())))
            }
            @for (index, steps) in published.iter().enumerate() {
                (draw_steps("published", Some(frame::published_dashes(index)), steps, &plot, &axis))
                @for (x, y) in markers(steps, &plot, &axis, 0.5) {
                    (frame::published_marker(x, y))
                }
            }
            @for (index, (row, steps)) in self.rows.iter().zip(&rows).enumerate() {
                @let style = styles.of(&row.name);
                @let place = (index as f64 + 1.0) / (rows.len() as f64 + 1.0);
                g class=(style.class()) data-row=(row.name) {
                    (draw_steps("line", style.dashes(), steps, &plot, &axis))
                    @for (x, y) in markers(steps, &plot, &axis, place) {
                        (style.marker(x, y))
                    }
                }
            }
            @if values().next().is_none() {
                (plot.empty(&format!("not enough samples (n={})", count(self.samples(panel)))))
            }
            (plot.border())
        };
        (markup, plot)
    }

    /// Of all rows and classes.
    fn samples(&self, panel: &Panel) -> u64 {
        let measured = self.rows.iter().flat_map(|row| (panel.of_row)(row));
        measured.fold(0, |sum, m| sum.saturating_add(m.samples))
    }

    fn axis_x(&self, plot: &Plot) -> Markup {
        let ends = spans(self.classes.iter().copied()).zip(&self.classes);
        let labels = ends
            .map(|((_, to), class)| {
                let size = Unit::Bytes.short(class.up_to_bytes as f64);
                (plot.across(to), size)
            })
            .collect();
        html! {
            (plot.labels_x(labels))
            g class="axis-title" {
                (plot.title_x("message size: each step is as wide as its share of the messages, up to the size at its end"))
            }
        }
    }

    /// What the lines do not show.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for panel in &PANELS {
            for row in &self.rows {
                let gaps: Vec<String> = self
                    .classes
                    .iter()
                    .enumerate()
                    .filter_map(|(index, class)| {
                        let measured = (panel.of_row)(row).get(index);
                        let samples = measured.map_or(0, |m| m.samples);
                        let size = Unit::Bytes.short(class.up_to_bytes as f64);
                        Self::value(measured)
                            .is_none()
                            .then(|| format!("up to {size} (n={})", count(samples)))
                    })
                    .collect();
                if !gaps.is_empty() {
                    notes.push(format!(
                        "{} of {}: not enough samples {}",
                        panel.name,
                        row.name,
                        gaps.join(", ")
                    ));
                }
            }
        }
        let mut all = self
            .rows
            .iter()
            .flat_map(|row| row.p50.iter().chain(&row.p99));
        if all.any(|m| m.known() == Some(f64::INFINITY)) {
            notes.push("∞: the percentile falls among messages that did not finish.".to_owned());
        }
        notes
    }

    /// For who does not see it.
    fn description(&self) -> String {
        let mut sentences = vec![String::from(
            "Steps over the share of messages, shortest messages first.",
        )];
        for row in &self.rows {
            for panel in &PANELS {
                let values: Vec<f64> = (panel.of_row)(row)
                    .iter()
                    .filter_map(|m| Self::value(Some(m)))
                    .collect();
                let low = values.iter().copied().fold(f64::INFINITY, f64::min);
                let high = values.iter().copied().fold(0.0, f64::max);
                let range = if values.is_empty() {
                    "not enough samples".to_owned()
                } else {
                    format!(
                        "from {} to {}",
                        Unit::Plain.text(low),
                        Unit::Plain.text(high)
                    )
                };
                sentences.push(format!("{}, {}: {range}.", row.name, panel.name));
            }
        }
        sentences.join(" ")
    }
}

fn legend_name(curve: &PublishedCurve) -> String {
    if curve.source.is_empty() {
        curve.name.clone()
    } else {
        format!("{} ({})", curve.name, curve.source)
    }
}

fn draw_steps(
    class: &str,
    dashes: Option<&str>,
    steps: &[Step],
    plot: &Plot,
    axis: &Axis,
) -> Markup {
    let mut path = Path::default();
    for step in steps {
        match step.value.and_then(|value| plot.y(axis, value)) {
            Some(y) => {
                path.to(plot.across(step.from), y);
                path.to(plot.across(step.to), y);
            }
            None => path.gap(),
        }
    }
    html! {
        path class=(class) stroke-dasharray=[dashes] d=(path.data()) {}
    }
}

/// Places of markers: in each step at this share of its width, unless the step
/// is so narrow that they would hide it.
fn markers(steps: &[Step], plot: &Plot, axis: &Axis, place: f64) -> Vec<(f64, f64)> {
    steps
        .iter()
        .filter(|step| plot.width * (step.to - step.from) >= NARROW)
        .filter_map(|step| {
            let y = plot.y(axis, step.value?)?;
            Some((plot.across(step.from + place * (step.to - step.from)), y))
        })
        .collect()
}
