//! What is around the lines of a picture: axes, grid, legend, notes.

use maud::{Markup, html};

use crate::axis::Axis;
use crate::style::Style;
use crate::svg::{Anchor, FONT, Path, Px, WIDTH, line, text};
use crate::text::{fit, width, wrap};

/// Height of a line of text.
pub(crate) const LINE: f64 = 18.0;
/// Room for the labels of the y axis.
const LEFT: f64 = 74.0;
/// Half of the last label of the x axis.
const RIGHT: f64 = 34.0;
/// Height of the strip above an axis where infinite values are.
const STRIP: f64 = 24.0;
/// Free pixels between two labels.
const BETWEEN: f64 = 8.0;

/// The rectangle in which values are drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plot {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// Taken from the top for infinite values; 0 if there are none.
    strip: f64,
}

impl Plot {
    /// As wide as the picture allows, `top` including the strip.
    pub(crate) fn new(top: f64, height: f64, any_infinite: bool) -> Self {
        Self {
            left: LEFT,
            top,
            width: WIDTH - LEFT - RIGHT,
            height,
            strip: if any_infinite { STRIP } else { 0.0 },
        }
    }

    pub(crate) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// Where a share of the width is.
    pub(crate) fn across(&self, share: f64) -> f64 {
        self.left + share * self.width
    }

    pub(crate) fn x(&self, axis: &Axis, value: f64) -> Option<f64> {
        axis.place(value).map(|place| self.across(place))
    }

    /// Infinite values are at the top edge.
    pub(crate) fn y(&self, axis: &Axis, value: f64) -> Option<f64> {
        if value == f64::INFINITY && self.strip > 0.0 {
            return Some(self.top + 8.0);
        }
        let height = self.height - self.strip;
        axis.place(value)
            .map(|place| self.bottom() - place * height)
    }

    /// Horizontal lines with labels, and the title of the axis above them.
    pub(crate) fn grid_y(&self, axis: &Axis, title: &str) -> Markup {
        let across = |class: &str, y: f64| line(class, (self.left, y), (self.right(), y));
        let title = with_unit(title, axis);
        html! {
            @for minor in axis.minor.iter().filter_map(|at| self.y(axis, *at)) {
                (across("minor", minor))
            }
            @for tick in &axis.ticks {
                @if let Some(y) = self.y(axis, tick.at) {
                    (across("grid", y))
                    (text(self.left - 8.0, y + 4.5, Anchor::End, &tick.text))
                }
            }
            @if self.strip > 0.0 {
                (across("minor", self.top + self.strip))
                (text(self.left - 8.0, self.top + 13.0, Anchor::End, "∞"))
            }
            g class="axis-title" {
                (text(2.0, self.top - 12.0, Anchor::Start, &fit(&title, FONT, WIDTH - 4.0)))
            }
        }
    }

    /// Vertical lines.
    pub(crate) fn grid_down(&self, axis: &Axis) -> Markup {
        let down = |class: &str, x: f64| line(class, (x, self.top), (x, self.bottom()));
        let minor = axis.minor.iter().filter_map(|at| self.x(axis, *at));
        let ticks = axis.ticks.iter().filter_map(|tick| self.x(axis, tick.at));
        html! {
            @for x in minor { (down("minor", x)) }
            @for x in ticks { (down("grid", x)) }
        }
    }

    /// Labels and title of the axis below the plot; they take 48 pixels.
    pub(crate) fn below_x(&self, axis: &Axis, title: &str) -> Markup {
        let ticks = axis.ticks.iter();
        let labels = ticks.filter_map(|tick| Some((self.x(axis, tick.at)?, tick.text.clone())));
        html! {
            (self.labels_x(labels.collect()))
            g class="axis-title" { (self.title_x(&with_unit(title, axis))) }
        }
    }

    /// The title of the x axis.
    pub(crate) fn title_x(&self, title: &str) -> Markup {
        let title = fit(title, FONT, self.width);
        let middle = self.left + self.width / 2.0;
        text(middle, self.bottom() + 40.0, Anchor::Middle, &title)
    }

    /// Labels below the plot; those without room are left out, the last one
    /// never.
    pub(crate) fn labels_x(&self, labels: Vec<(f64, String)>) -> Markup {
        let y = self.bottom() + 18.0;
        html! {
            @for (x, label) in with_room(labels) {
                (line("tick", (x, self.bottom()), (x, self.bottom() + 5.0)))
                (text(x, y, Anchor::Middle, &label))
            }
        }
    }

    /// The edge, over grid and values.
    pub(crate) fn border(&self) -> Markup {
        html! {
            rect class="border" x=(Px(self.left)) y=(Px(self.top))
                width=(Px(self.width)) height=(Px(self.height)) {}
        }
    }

    /// Instead of values, if there are none.
    pub(crate) fn empty(&self, why: &str) -> Markup {
        let middle = (self.left + self.width / 2.0, self.top + self.height / 2.0);
        let why = fit(why, FONT, self.width - 20.0);
        html! { g class="missing" { (text(middle.0, middle.1, Anchor::Middle, &why)) } }
    }
}

fn with_unit(title: &str, axis: &Axis) -> String {
    match axis.unit_name {
        "" => title.to_owned(),
        unit => format!("{title} ({unit})"),
    }
}

/// From the last to the first, those that do not touch the one after them.
pub(crate) fn with_room(mut labels: Vec<(f64, String)>) -> Vec<(f64, String)> {
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut left_edge = f64::INFINITY;
    let mut kept: Vec<(f64, String)> = Vec::new();
    for (x, label) in labels.into_iter().rev() {
        let half = width(&label, FONT) / 2.0;
        if x + half + BETWEEN <= left_edge {
            left_edge = x - half;
            kept.push((x, label));
        }
    }
    kept.reverse();
    kept
}

/// What a legend explains.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Key {
    /// A line with markers.
    Marked(Style),
    /// A line.
    Line(Style),
    /// A bar.
    Bar(Style),
    /// A published curve; there may be several.
    Published(usize),
    /// A limit.
    Limit,
}

/// Dashes of a published curve.
pub(crate) fn published_dashes(index: usize) -> &'static str {
    ["4 3", "1.5 3", "8 3 2 3"][index % 3]
}

/// A marker of a published curve.
pub(crate) fn published_marker(x: f64, y: f64) -> Markup {
    let mut path = Path::default();
    for (dx, dy) in [(-3.2, -3.2), (3.2, 3.2)] {
        path.to(x + dx, y + dy);
    }
    path.gap();
    for (dx, dy) in [(-3.2, 3.2), (3.2, -3.2)] {
        path.to(x + dx, y + dy);
    }
    html! { path class="cross" d=(path.data()) {} }
}

/// Keys and names above the plot, as many lines as they need. Returns the
/// height too.
pub(crate) fn legend(picture: usize, entries: &[(Key, &str)]) -> (Markup, f64) {
    const SAMPLE: f64 = 38.0;
    let mut places = Vec::new();
    let (mut x, mut row) = (2.0, 0.0);
    for (key, name) in entries {
        let name = fit(name, FONT, WIDTH - SAMPLE - 20.0);
        let wide = SAMPLE + 8.0 + width(&name, FONT) + 14.0;
        if x > 2.0 && x + wide > WIDTH {
            (x, row) = (2.0, row + 1.0);
        }
        places.push((x, row * (LINE + 2.0) + 12.0, *key, name));
        x += wide;
    }
    let markup = html! {
        g class="legend" {
            @for (x, y, key, name) in &places {
                (sample(picture, *key, *x, *y, SAMPLE))
                (text(x + SAMPLE + 8.0, y + 4.5, Anchor::Start, name))
            }
        }
    };
    let height = if places.is_empty() {
        0.0
    } else {
        (row + 1.0) * (LINE + 2.0) + 6.0
    };
    (markup, height)
}

fn sample(picture: usize, key: Key, x: f64, y: f64, wide: f64) -> Markup {
    let straight = |class: &str, dashes: Option<&str>| {
        html! {
            line class=(class) stroke-dasharray=[dashes]
                x1=(Px(x)) y1=(Px(y)) x2=(Px(x + wide)) y2=(Px(y)) {}
        }
    };
    let middle = x + wide / 2.0;
    match key {
        Key::Marked(style) => html! {
            g class=(style.class()) {
                (straight("line", style.dashes()))
                (style.marker(middle, y))
            }
        },
        Key::Line(style) => {
            html! { g class=(style.class()) { (straight("line", style.dashes())) } }
        }
        Key::Bar(style) => html! {
            g class=(style.class()) {
                rect class="bar" fill=(style.fill(picture)) x=(Px(x)) y=(Px(y - 6.0))
                    width=(Px(wide)) height="12" {}
            }
        },
        Key::Published(index) => html! {
            (straight("published", Some(published_dashes(index))))
            (published_marker(middle, y))
        },
        Key::Limit => straight("limit", None),
    }
}

/// Lines of text below a picture that say what it does not show. Returns the
/// height too.
pub(crate) fn notes(top: f64, notes: &[String]) -> (Markup, f64) {
    let lines: Vec<String> = notes
        .iter()
        .flat_map(|note| wrap(note, FONT, WIDTH - 4.0))
        .collect();
    let markup = html! {
        g class="notes" {
            @for (index, note) in lines.iter().enumerate() {
                (text(2.0, top + (index as f64 + 0.8) * LINE, Anchor::Start, note))
            }
        }
    };
    (markup, lines.len() as f64 * LINE)
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn with_room__keeps_the_last_and_what_does_not_touch() {
        let labels = |xs: &[f64]| xs.iter().map(|x| (*x, "100 kB".to_owned())).collect();
        let kept: Vec<f64> = with_room(labels(&[0.0, 90.0, 100.0, 130.0, 200.0]))
            .iter()
            .map(|(x, _)| *x)
            .collect();
        assert_eq!(kept, [0.0, 130.0, 200.0]);
    }

    #[test]
    fn legend__goes_to_another_line_and_stays_inside() {
        let name = "a protocol with a long name".repeat(2);
        let entries: Vec<(Key, &str)> = (0..4)
            .map(|index| (Key::Line(Style::new(index)), &*name))
            .collect();
        let (_, one) = legend(1, &entries[..1]);
        let (_, four) = legend(1, &entries);
        assert!(four > one);
        assert!(legend(1, &[]).1.abs() < 1e-9);
    }

    #[test]
    fn plot__infinite_values_are_above_all_others() {
        let plot = Plot::new(10.0, 200.0, true);
        let axis = Axis::log([1.0, 100.0], crate::number::Unit::Plain);
        let top = plot.y(&axis, f64::INFINITY).unwrap();
        assert!(top < plot.y(&axis, 100.0).unwrap() && top >= plot.top);
        assert!(plot.y(&axis, 1.0).unwrap() <= plot.bottom());
    }
}
