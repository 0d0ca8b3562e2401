//! Something over time: bytes in a queue, the use of a link.
//!
//! Each row has a panel of its own, all with the same axes: lines that jump
//! would hide each other.

use maud::{Markup, html};

use crate::axis::Axis;
use crate::frame::{self, Key, Plot};
use crate::number::Unit;
use crate::style::Styles;
use crate::svg::{Path, line, picture};

/// Pixels of a column of long rows; of each column the first, the lowest, the
/// highest and the last value are drawn, so that no peak is lost.
const COLUMN: f64 = 1.0;
const PANEL_HEIGHT: f64 = 110.0;
const TITLE_HEIGHT: f64 = 40.0;
/// Labels and title of the time axis.
const BELOW: f64 = 52.0;

/// The values of one row.
#[derive(Clone, Debug, Default)]
pub struct TimeRow {
    /// Its name.
    pub name: String,
    /// Time in µs and value, by rising time; a value holds until the next one.
    /// NaN is a gap.
    pub points: Vec<(f64, f64)>,
}

/// A horizontal line, such as the capacity of a buffer.
#[derive(Clone, Debug)]
pub struct Limit {
    /// What it is.
    pub name: String,
    /// In the unit of the picture.
    pub value: f64,
}

/// The picture.
#[derive(Clone, Debug)]
pub struct OverTime {
    /// What the values are: "bytes waiting at the port".
    pub of: String,
    /// Unit of the values.
    pub unit: Unit,
    /// One panel each.
    pub rows: Vec<TimeRow>,
    /// Drawn too, if any.
    pub limit: Option<Limit>,
}

impl OverTime {
    pub(crate) fn draw(&self, number: usize, styles: &Styles<'_>) -> Markup {
        let limit = self.limit.as_ref();
        let entries: Vec<(Key, &str)> = limit
            .iter()
            .map(|limit| (Key::Limit, &*limit.name))
            .collect();
        let (legend, mut top) = frame::legend(number, &entries);
        let points = || {
            let points = self.rows.iter().flat_map(|row| &row.points).copied();
            points.filter(|(at, value)| at.is_finite() && !value.is_nan())
        };
        let values = points().map(|(_, value)| value);
        let x = Axis::linear_between(points().map(|(at, _)| at), Unit::Microseconds);
        let y = Axis::linear(values.chain(limit.map(|limit| limit.value)), self.unit);
        let any_infinite = points().any(|(_, value)| value == f64::INFINITY);
        let mut panels = Vec::new();
        let mut bottom = None;
        for row in &self.rows {
            let plot = Plot::new(top + TITLE_HEIGHT, PANEL_HEIGHT, any_infinite);
            panels.push(self.panel(row, &plot, &x, &y, styles));
            top = plot.bottom();
            bottom = Some(plot);
        }
        let below = if let Some(plot) = bottom {
            plot.below_x(&x, "time")
        } else {
            let plot = Plot::new(top + TITLE_HEIGHT, PANEL_HEIGHT, false);
            top = plot.bottom();
            html! { (plot.empty("not enough samples (n=0)")) (plot.border()) }
        };
        let content = html! {
            (legend)
            @for panel in &panels { (panel) }
            (below)
        };
        picture(
            number,
            &format!("Over time: {}", self.of),
            &self.description(),
            top + BELOW,
            &content,
        )
    }

    fn panel(&self, row: &TimeRow, plot: &Plot, x: &Axis, y: &Axis, styles: &Styles<'_>) -> Markup {
        let limit = self.limit.as_ref();
        let limit = limit.and_then(|limit| plot.y(y, limit.value));
        let line_and_area = path(row, plot, x, y);
        html! {
            (plot.grid_y(y, &format!("{}: {}", row.name, self.of)))
            (plot.grid_down(x))
            @if let Some(at) = limit {
                (line("limit", (plot.left, at), (plot.right(), at)))
            }
            g class=(styles.of(&row.name).class()) data-row=(row.name) {
                path class="area" d=(line_and_area.area.data()) {}
                path class="line thin" d=(line_and_area.line.data()) {}
            }
            @if row.is_missing() { (plot.empty("not enough samples (n=0)")) }
            (plot.border())
        }
    }

    fn description(&self) -> String {
        let mut sentences = vec![format!("Lines of {} over time.", self.of)];
        for row in &self.rows {
            let values = row.points.iter().map(|(_, value)| *value);
            let high = values.filter(|v| !v.is_nan()).reduce(f64::max);
            let high = high.map_or("not enough samples".to_owned(), |high| {
                format!("at most {}", self.unit.text(high))
            });
            sentences.push(format!("{}: {high}.", row.name));
        }
        sentences.join(" ")
    }
}

impl TimeRow {
    fn is_missing(&self) -> bool {
        let mut points = self.points.iter();
        !points.any(|(at, value)| at.is_finite() && !value.is_nan())
    }
}

/// A line, and the area between it and the axis.
struct LineAndArea {
    line: Path,
    area: Path,
}

/// Steps, thinned to what can be seen.
fn path(row: &TimeRow, plot: &Plot, x: &Axis, y: &Axis) -> LineAndArea {
    let mut line = Path::default();
    let mut area = Path::default();
    let zero = plot.y(y, 0.0).unwrap_or(plot.bottom());
    let place = |(at, value): &(f64, f64)| {
        let x = plot.x(x, *at).filter(|_| at.is_finite())?;
        Some((x, plot.y(y, *value)?))
    };
    // Between gaps, and of these parts column by column.
    let places: Vec<Option<(f64, f64)>> = row.points.iter().map(place).collect();
    for part in places.split(Option::is_none) {
        let part: Vec<(f64, f64)> = part.iter().flatten().copied().collect();
        let (Some(first), Some(last)) = (part.first(), part.last()) else {
            continue;
        };
        area.to(first.0, zero);
        let column = |place: &(f64, f64)| ((place.0 - plot.left) / COLUMN) as u32;
        for chunk in part.chunk_by(|a, b| column(a) == column(b)) {
            for (x, y) in thinned(chunk) {
                line.step_to(x, y);
                area.step_to(x, y);
            }
        }
        area.to(last.0, zero);
        line.gap();
        area.gap();
    }
    LineAndArea { line, area }
}

/// The first, lowest, highest and last of a column; all of them if they are
/// few.
fn thinned(column: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let by_y = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
    let places = [
        column.first(),
        column.iter().min_by(by_y),
        column.iter().max_by(by_y),
        column.last(),
    ];
    if column.len() <= places.len() {
        return column.to_vec();
    }
    let mut kept: Vec<(f64, f64)> = places.into_iter().flatten().copied().collect();
    kept.sort_by(|a, b| a.0.total_cmp(&b.0));
    kept
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn path__long_rows_stay_small_and_keep_their_peak() {
        let points: Vec<(f64, f64)> = (0..100_000)
            .map(|index| {
                let value = if index == 54_321 { 900.0 } else { 1.0 };
                (f64::from(index), value)
            })
            .collect();
        let row = TimeRow {
            name: "a".into(),
            points,
        };
        let x = Axis::linear_between([0.0, 100_000.0], Unit::Microseconds);
        let y = Axis::linear([1000.0], Unit::Bytes);
        let plot = Plot::new(0.0, 200.0, false);
        let drawn = path(&row, &plot, &x, &y);
        assert!(
            drawn.line.data().len() < 100_000,
            "{}",
            drawn.line.data().len()
        );
        let peak = format!(" {}L", crate::svg::Px(plot.y(&y, 900.0).unwrap()));
        assert!(drawn.line.data().contains(&peak));
    }
}
