//! Something over time: bytes in a queue, the use of a link.

use maud::{Markup, html};

use crate::axis::Axis;
use crate::frame::{self, Key, Plot};
use crate::number::Unit;
use crate::style::Styles;
use crate::svg::{Path, line, picture};

/// Columns into which the time is divided to draw long rows; of each column
/// the first, the lowest, the highest and the last value are drawn, so that no
/// peak is lost.
const COLUMNS: usize = 700;

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
    /// One line each.
    pub rows: Vec<TimeRow>,
    /// Drawn too, if any.
    pub limit: Option<Limit>,
}

impl OverTime {
    pub(crate) fn draw(&self, number: usize, styles: &Styles<'_>) -> Markup {
        let entries: Vec<(Key, &str)> = self
            .rows
            .iter()
            .map(|row| (Key::Line(styles.of(&row.name)), &*row.name))
            .chain(self.limit.iter().map(|limit| (Key::Limit, &*limit.name)))
            .collect();
        let (legend, top) = frame::legend(number, &entries);
        let points = || {
            let points = self.rows.iter().flat_map(|row| &row.points).copied();
            points.filter(|(at, value)| at.is_finite() && !value.is_nan())
        };
        let limit = self.limit.as_ref().map(|limit| limit.value);
        let x = Axis::linear_between(points().map(|(at, _)| at), Unit::Microseconds);
        let values = points().map(|(_, value)| value).chain(limit);
        let y = Axis::linear(values, self.unit);
        let any_infinite = points().any(|(_, value)| value == f64::INFINITY);
        let plot = Plot::new(top + 34.0, 240.0, any_infinite);
        let (grid_x, below) = plot.grid_x(&x, "time");
        let (notes, notes_height) = frame::notes(plot.bottom() + below + 8.0, &self.notes());
        let content = html! {
            (legend)
            (plot.grid_y(&y, &self.of))
            (grid_x)
            @if let Some(at) = limit.and_then(|value| plot.y(&y, value)) {
                (line("limit", (plot.left, at), (plot.right(), at)))
            }
            @for row in &self.rows {
                @let style = styles.of(&row.name);
                g class=(style.class()) data-row=(row.name) {
                    path class="line thin" stroke-dasharray=[style.dashes()]
                        d=(path(row, &plot, &x, &y).data()) {}
                }
            }
            @if points().next().is_none() { (plot.empty("not enough samples (n=0)")) }
            (plot.border())
            (notes)
        };
        picture(
            number,
            &format!("Over time: {}", self.of),
            &self.description(),
            plot.bottom() + below + 8.0 + notes_height,
            &content,
        )
    }

    fn notes(&self) -> Vec<String> {
        let empty = |row: &&TimeRow| !row.points.iter().any(|(_, value)| !value.is_nan());
        let missing = self.rows.iter().filter(empty);
        missing
            .map(|row| format!("{}: not enough samples (n=0)", row.name))
            .collect()
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

/// Steps, thinned to what can be seen.
fn path(row: &TimeRow, plot: &Plot, x: &Axis, y: &Axis) -> Path {
    let mut path = Path::default();
    let mut column: Vec<(f64, f64)> = Vec::new();
    let number_of = |at: f64| x.place(at).map(|place| (place * COLUMNS as f64) as usize);
    let mut current = None;
    for (at, value) in row.points.iter().copied() {
        let number = number_of(at).filter(|_| at.is_finite());
        let place = number.and_then(|_| Some((plot.x(x, at)?, plot.y(y, value)?)));
        let Some(place) = place else {
            draw(&mut path, &mut column);
            path.gap();
            continue;
        };
        if number != current {
            draw(&mut path, &mut column);
            current = number;
        }
        column.push(place);
    }
    draw(&mut path, &mut column);
    path
}

/// The points of a column: all of them if they are few.
fn draw(path: &mut Path, column: &mut Vec<(f64, f64)>) {
    let by_y = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
    if column.len() > 4
        && let (Some(first), Some(last)) = (column.first(), column.last())
        && let (Some(low), Some(high)) = (column.iter().min_by(by_y), column.iter().max_by(by_y))
    {
        let mut kept = [*first, *low, *high, *last];
        kept.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (x, y) in kept {
            path.step_to(x, y);
        }
    } else {
        for (x, y) in column.iter() {
            path.step_to(*x, *y);
        }
    }
    column.clear();
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
        let path = path(&row, &plot, &x, &y);
        assert!(path.data().len() < 100_000, "{}", path.data().len());
        let peak = format!(" {}L", crate::svg::Px(plot.y(&y, 900.0).unwrap()));
        assert!(path.data().contains(&peak));
    }
}
