//! Bars in groups: use of priorities, of links, times of steps.
//!
//! They lie, so that long names and numbers have room.

use maud::{Markup, html};

use crate::axis::Axis;
use crate::frame::{self, Key};
use crate::measured::Measured;
use crate::number::Unit;
use crate::style::{Style, Styles};
use crate::svg::{Anchor, FONT, Px, WIDTH, line, picture, text};
use crate::text::{fit, width};

/// One bar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// Its length.
    pub value: Measured,
    /// A thin line goes on to here, to a high percentile for example.
    pub until: Option<f64>,
}

impl Bar {
    /// A bar without a line.
    pub fn of(value: f64, samples: u64) -> Self {
        Self {
            value: Measured::of(value, samples),
            until: None,
        }
    }
}

/// The bars of one thing, one for each row in their order.
#[derive(Clone, Debug, Default)]
pub struct BarGroup {
    /// Its name: a priority, a link, a step.
    pub name: String,
    /// What is not there is missing.
    pub bars: Vec<Bar>,
}

/// The picture.
#[derive(Clone, Debug)]
pub struct Bars {
    /// What the bars are: "share of the bytes".
    pub of: String,
    /// What the thin line is; empty if there are none.
    pub until: String,
    /// Unit of all values.
    pub unit: Unit,
    /// Names of the rows.
    pub rows: Vec<String>,
    /// From top to bottom.
    pub groups: Vec<BarGroup>,
}

const BAR: f64 = 15.0;
const BETWEEN_BARS: f64 = 3.0;
const BETWEEN_GROUPS: f64 = 12.0;
/// Widest names of groups.
const MOST_NAME: f64 = 240.0;
/// Room for what is infinite.
const STRIP: f64 = 44.0;

/// Where bars are drawn.
struct Area<'a> {
    left: f64,
    right: f64,
    /// Where infinite values end, beyond all others.
    infinite: f64,
    axis: &'a Axis,
}

impl Area<'_> {
    fn x(&self, value: f64) -> f64 {
        if value == f64::INFINITY {
            return self.infinite;
        }
        let place = self.axis.place(value).unwrap_or(0.0);
        self.left + place * (self.right - self.left)
    }
}

impl BarGroup {
    fn bar(&self, row: usize) -> Bar {
        self.bars.get(row).copied().unwrap_or(Bar {
            value: Measured::too_few(0),
            until: None,
        })
    }
}

impl Bars {
    fn label(&self, bar: Bar) -> String {
        let value = bar.value.text(self.unit);
        match bar.until.filter(|until| !until.is_nan()) {
            Some(until) if bar.value.known().is_some() => {
                format!("{value} ({})", self.unit.text(until))
            }
            _ => value,
        }
    }

    pub(crate) fn draw(&self, number: usize, styles: &Styles<'_>) -> Markup {
        let row_styles: Vec<Style> = self.rows.iter().map(|row| styles.of(row)).collect();
        let entries: Vec<(Key, &str)> = row_styles
            .iter()
            .zip(&self.rows)
            .map(|(style, row)| (Key::Bar(*style), &**row))
            .collect();
        let (legend, legend_height) = frame::legend(number, &entries);
        let top = legend_height + 34.0;
        let per_group = self.rows.len() as f64 * (BAR + BETWEEN_BARS) + BETWEEN_GROUPS;
        let bottom = top + (self.groups.len() as f64 * per_group).max(40.0) + 6.0;

        let names = self.groups.iter().map(|group| width(&group.name, FONT));
        let name_width = names.fold(20.0, f64::max).min(MOST_NAME);
        let bars = || {
            let rows = self.rows.len();
            let of_group = move |group| (0..rows).map(move |row| BarGroup::bar(group, row));
            self.groups.iter().flat_map(of_group)
        };
        let labels = bars().map(|bar| width(&self.label(bar), FONT));
        let label_width = labels.fold(0.0, f64::max);
        let ends = || {
            bars()
                .flat_map(|bar| [bar.value.known(), bar.until])
                .flatten()
        };
        let axis = Axis::linear(ends(), self.unit);
        let infinite = WIDTH - label_width - 16.0;
        let any_infinite = ends().any(|end| end == f64::INFINITY);
        let area = Area {
            left: name_width + 14.0,
            right: infinite - if any_infinite { STRIP } else { 0.0 },
            infinite,
            axis: &axis,
        };
        let content = html! {
            defs { @for style in &row_styles { (style.pattern(number)) } }
            (legend)
            (self.scale(&area, top, bottom))
            @for (index, group) in self.groups.iter().enumerate() {
                @let y = top + BETWEEN_GROUPS / 2.0 + 3.0 + index as f64 * per_group;
                (self.group(group, y, &area, number, &row_styles))
            }
            (line("border", (area.x(0.0), top), (area.x(0.0), bottom)))
            @if self.groups.is_empty() || self.rows.is_empty() {
                g class="missing" {
                    (text(area.left + 12.0, top + 26.0, Anchor::Start, "not enough samples (n=0)"))
                }
            }
        };
        picture(
            number,
            &self.of,
            &self.description(),
            bottom + 26.0,
            &content,
        )
    }

    fn scale(&self, area: &Area<'_>, top: f64, bottom: f64) -> Markup {
        let mut title = self.of.clone();
        if !area.axis.unit_name.is_empty() {
            title = format!("{title} ({})", area.axis.unit_name);
        }
        if !self.until.is_empty() {
            title = format!("{title}; thin line, in brackets: {}", self.until);
        }
        let ticks = area.axis.ticks.iter();
        let mut labels: Vec<(f64, String)> = ticks
            .map(|tick| (area.x(tick.at), tick.text.clone()))
            .collect();
        if area.infinite > area.right {
            labels.push((area.infinite, "∞".to_owned()));
        }
        html! {
            @for tick in &area.axis.ticks {
                (line("grid", (area.x(tick.at), top), (area.x(tick.at), bottom)))
            }
            @if area.infinite > area.right {
                (line("grid", (area.infinite, top), (area.infinite, bottom)))
            }
            @for (x, label) in frame::with_room(labels) {
                (text(x, bottom + 18.0, Anchor::Middle, &label))
            }
            g class="axis-title" {
                (text(2.0, top - 10.0, Anchor::Start, &fit(&title, FONT, WIDTH - 4.0)))
            }
        }
    }

    fn group(
        &self,
        group: &BarGroup,
        top: f64,
        area: &Area<'_>,
        number: usize,
        styles: &[Style],
    ) -> Markup {
        let height = self.rows.len() as f64 * (BAR + BETWEEN_BARS) - BETWEEN_BARS;
        let name = fit(&group.name, FONT, area.left - 14.0);
        html! {
            (text(area.left - 8.0, top + height / 2.0 + 4.5, Anchor::End, &name))
            @for (row, style) in styles.iter().enumerate() {
                @let y = top + row as f64 * (BAR + BETWEEN_BARS);
                @let bar = group.bar(row);
                g class=(style.class()) data-row=(self.rows[row]) {
                    (self.one(bar, y, area, &style.fill(number)))
                }
            }
        }
    }

    fn one(&self, bar: Bar, y: f64, area: &Area<'_>, fill: &str) -> Markup {
        let label = self.label(bar);
        let baseline = y + BAR - 3.0;
        let Some(value) = bar.value.known() else {
            return html! {
                g class="missing" { (text(area.left + 6.0, baseline, Anchor::Start, &label)) }
            };
        };
        let (zero, end) = (area.x(0.0), area.x(value));
        let until = bar.until.filter(|until| *until > value);
        let thin_end = until.map_or(end, |until| area.x(until));
        let middle = y + BAR / 2.0;
        html! {
            rect class="bar" fill=(fill) x=(Px(zero.min(end))) y=(Px(y))
                width=(Px((end - zero).abs())) height=(Px(BAR)) {}
            @if until.is_some() {
                (line("whisker", (end, middle), (thin_end, middle)))
                (line("whisker", (thin_end, y + 3.0), (thin_end, y + BAR - 3.0)))
            }
            (text(thin_end.max(zero) + 6.0, baseline, Anchor::Start, &label))
        }
    }

    fn description(&self) -> String {
        let mut sentences = vec![format!("Bars: {}.", self.of)];
        for group in &self.groups {
            let values: Vec<String> = self
                .rows
                .iter()
                .enumerate()
                .map(|(row, name)| format!("{name} {}", self.label(group.bar(row))))
                .collect();
            sentences.push(format!("{}: {}.", group.name, values.join("; ")));
        }
        sentences.join(" ")
    }
}
