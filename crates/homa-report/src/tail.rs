//! Which share is above a value: the complementary distribution, both axes
//! logarithmic, so that the rare and long ones can be seen.

use maud::{Markup, html};

use crate::axis::Axis;
use crate::frame::{self, Key, Plot};
use crate::number::{Unit, count};
use crate::style::Styles;
use crate::svg::{Path, picture};

/// Points kept of a row by [`TailRow::of_values`] at most.
const MOST_POINTS: usize = 400;
/// A row has no shape with fewer samples.
const FEWEST_SAMPLES: u64 = 20;

/// One point of the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailPoint {
    /// In the unit of the picture.
    pub value: f64,
    /// Share of samples (or of time) above the value.
    pub above: f64,
}

/// The curve of one row.
#[derive(Clone, Debug, Default)]
pub struct TailRow {
    /// Its name.
    pub name: String,
    /// How many samples.
    pub samples: u64,
    /// By rising value. If the last share is not 0, that much is infinite.
    pub points: Vec<TailPoint>,
}

/// The picture.
#[derive(Clone, Debug)]
pub struct Tail {
    /// What the values are: "latency of messages up to 1 kB", "bytes waiting".
    pub of: String,
    /// What the shares are of: "messages", "time".
    pub share_of: String,
    /// Unit of the values.
    pub unit: Unit,
    /// One line each.
    pub rows: Vec<TailRow>,
}

impl TailRow {
    /// The curve of these values; infinite ones never finished, NaN is left
    /// out. A few hundred points are kept, most of them in the tail.
    pub fn of_values(name: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().filter(|v| !v.is_nan()).collect();
        values.sort_unstable_by(f64::total_cmp);
        let total = values.len();
        let finite = values.partition_point(|value| value.is_finite());
        let mut points: Vec<TailPoint> = Vec::new();
        for above in ranks(total) {
            let index = total - 1 - above;
            if let Some(value) = values.get(index).filter(|_| index < finite) {
                let above = values.len() - values.partition_point(|other| other <= value);
                let above = above as f64 / total as f64;
                if points.last().is_none_or(|last| last.value < *value) {
                    let value = *value;
                    points.push(TailPoint { value, above });
                }
            }
        }
        Self {
            name: name.to_owned(),
            samples: total as u64,
            points,
        }
    }

    fn is_missing(&self) -> bool {
        self.samples < FEWEST_SAMPLES || !self.points.iter().any(|point| is_drawable(*point))
    }
}

/// How many samples lie above a kept one: from all of them down to none, in
/// equal ratios.
fn ranks(total: usize) -> Vec<usize> {
    let Some(last) = total.checked_sub(1) else {
        return Vec::new();
    };
    let mut ranks: Vec<usize> = (0..=MOST_POINTS)
        .map(|index| {
            let share = 1.0 - index as f64 / MOST_POINTS as f64;
            (((last as f64 + 1.0).powf(share) - 1.0) as usize).min(last)
        })
        .collect();
    // Equal ratios leave the short ones out: some in equal distances too.
    ranks.extend((0..=40).map(|index| last / 40 * index));
    ranks.push(last);
    ranks.sort_unstable_by(|a, b| b.cmp(a));
    ranks.dedup();
    ranks
}

fn is_drawable(point: TailPoint) -> bool {
    point.value.is_finite() && (0.0..=1.0).contains(&point.above)
}

impl Tail {
    pub(crate) fn draw(&self, number: usize, styles: &Styles<'_>) -> Markup {
        let entries: Vec<(Key, &str)> = self
            .rows
            .iter()
            .map(|row| (Key::Line(styles.of(&row.name)), &*row.name))
            .collect();
        let (legend, top) = frame::legend(number, &entries);
        let points = || {
            let rows = self.rows.iter().filter(|row| !row.is_missing());
            let points = rows.flat_map(|row| &row.points).copied();
            points.filter(|point| is_drawable(*point))
        };
        let x = Axis::log(points().map(|point| point.value), self.unit);
        // Below the last share, so that the lines do not end on the edge.
        let lowest = points()
            .map(|point| point.above)
            .filter(|above| *above > 0.0);
        let lowest = lowest.reduce(f64::min).unwrap_or(0.01);
        let y = Axis::log([lowest * 0.7, 1.0], Unit::Share);
        let plot = Plot::new(top + 36.0, 320.0, false);
        let below = 48.0;
        let (notes, notes_height) = frame::notes(plot.bottom() + below + 8.0, &self.notes());
        let content = html! {
            (legend)
            (plot.grid_y(&y, &format!("share of {} above", self.share_of)))
            (plot.grid_down(&x))
            (plot.below_x(&x, &self.of))
            @for row in self.rows.iter().filter(|row| !row.is_missing()) {
                @let style = styles.of(&row.name);
                g class=(style.class()) data-row=(row.name) {
                    path class="line" stroke-dasharray=[style.dashes()]
                        d=(path(row, &plot, &x, &y).data()) {}
                }
            }
            @if points().next().is_none() { (plot.empty(&self.why_empty())) }
            (plot.border())
        };
        let content = html! { (content) (notes) };
        picture(
            number,
            &format!("Share of {} above: {}", self.share_of, self.of),
            &self.description(),
            plot.bottom() + below + 8.0 + notes_height,
            &content,
        )
    }

    fn why_empty(&self) -> String {
        let rows = self.rows.iter();
        let samples = rows.fold(0_u64, |sum, row| sum.saturating_add(row.samples));
        format!("not enough samples (n={})", count(samples))
    }

    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self
            .rows
            .iter()
            .filter(|row| row.is_missing())
            .map(|row| {
                format!(
                    "{}: not enough samples (n={})",
                    row.name,
                    count(row.samples)
                )
            })
            .collect();
        let mut drawn = self.rows.iter().filter(|row| !row.is_missing());
        let is_zero = |point: &TailPoint| is_drawable(*point) && point.value <= 0.0;
        if drawn.any(|row| row.points.iter().any(is_zero)) {
            notes.push("What is 0 is at the left edge.".to_owned());
        }
        for row in self.rows.iter().filter(|row| !row.is_missing()) {
            if let Some(last) = row.points.last().filter(|last| last.above > 0.0) {
                notes.push(format!(
                    "{}: the line goes on to the right edge, for {} are infinite (did not finish).",
                    row.name,
                    Unit::Share.short(last.above)
                ));
            }
        }
        notes
    }

    fn description(&self) -> String {
        let mut sentences = vec![format!(
            "For each value the share of {} above it, both axes logarithmic.",
            self.share_of
        )];
        for row in &self.rows {
            let at = |share: f64| {
                let mut points = row.points.iter();
                let point = points.find(|point| point.above <= share);
                point.map_or_else(|| "∞".to_owned(), |point| self.unit.text(point.value))
            };
            if row.is_missing() {
                sentences.push(format!("{}: not enough samples.", row.name));
            } else {
                sentences.push(format!(
                    "{}: half are above {}, 1 % above {}.",
                    row.name,
                    at(0.5),
                    at(0.01)
                ));
            }
        }
        sentences.join(" ")
    }
}

/// Steps down at each value; what is infinite goes on to the right edge.
fn path(row: &TailRow, plot: &Plot, x: &Axis, y: &Axis) -> Path {
    let mut path = Path::default();
    path.to(plot.left, plot.top);
    let mut last = 0.0;
    for point in row.points.iter().filter(|point| is_drawable(**point)) {
        if let (Some(x), Some(y)) = (plot.x(x, point.value), plot.y(y, point.above)) {
            // A share of 0 is below any logarithmic axis: its edge.
            path.step_to(x, y);
            last = point.above;
            if point.above == 0.0 {
                break;
            }
        }
    }
    if last > 0.0
        && let Some(y) = plot.y(y, last)
    {
        path.to(plot.right(), y);
    }
    path
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    fn above(row: &TailRow, value: f64) -> f64 {
        let point = row.points.iter().rev().find(|point| point.value <= value);
        point.map_or(1.0, |point| point.above)
    }

    #[test]
    fn of_values__is_exact_at_its_points_and_small() {
        let row = TailRow::of_values("a", (1..=100_000).map(f64::from));
        assert_eq!(row.samples, 100_000);
        assert!(row.points.len() < 500);
        for point in &row.points {
            assert!((point.above - (1.0 - point.value / 100_000.0)).abs() < 1e-9);
        }
        assert!((above(&row, 50_000.0) - 0.5).abs() < 0.03);
        assert!((above(&row, 99_900.0) - 0.001).abs() < 0.000_1);
        assert!(row.points.last().unwrap().above.abs() < 1e-9);
    }

    #[test]
    fn of_values__infinite_ones_remain_above() {
        let values = (1..=90).map(f64::from).chain([f64::INFINITY; 10]);
        let row = TailRow::of_values("a", values);
        assert!((row.points.last().unwrap().above - 0.1).abs() < 1e-9);
    }

    #[test]
    fn of_values__equal_ones_are_one_step() {
        let row = TailRow::of_values("a", [5.0; 30]);
        let one = TailPoint {
            value: 5.0,
            above: 0.0,
        };
        assert_eq!(row.points, [one]);
    }

    #[test]
    fn of_values__none_and_nan() {
        assert!(TailRow::of_values("a", []).is_missing());
        assert!(TailRow::of_values("a", [f64::NAN; 50]).is_missing());
    }
}
