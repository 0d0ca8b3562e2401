//! How rows are told apart: colour, dashes, marker and hatch, each on its own
//! enough for the first seven rows.
//!
//! Colours are those of Okabe and Ito without yellow on white; the style sheet
//! names them `--c0` to `--c6` for light and for dark (`style.css`).

use maud::{Markup, html};

use crate::svg::Px;

/// Styles before they repeat; rows beyond combine colours and dashes anew.
const COUNT: usize = 7;

/// The style of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style(usize);

const DASHES: [Option<&str>; COUNT] = [
    None,
    Some("9 4"),
    Some("14 4 3 4"),
    Some("5 3"),
    Some("14 3 3 3 3 3"),
    Some("20 5"),
    Some("2.5 3"),
];

impl Style {
    /// Of the row with this index.
    pub(crate) fn new(index: usize) -> Self {
        Self(index)
    }

    fn colour(self) -> usize {
        self.0 % COUNT
    }

    /// Sets the colour `--c` for what is inside.
    pub(crate) fn class(self) -> String {
        format!("r{}", self.colour())
    }

    /// For lines; `None` is solid.
    pub(crate) fn dashes(self) -> Option<&'static str> {
        let shift = self.0 / COUNT;
        DASHES.get((self.0 + shift) % COUNT).copied().flatten()
    }

    /// A marker around this place.
    pub(crate) fn marker(self, x: f64, y: f64) -> Markup {
        let path = |d: String| html! { path class="marker" d=(d) {} };
        let at = |dx: f64, dy: f64| format!("{} {}", Px(x + dx), Px(y + dy));
        match self.colour() {
            0 => html! { circle class="marker" cx=(Px(x)) cy=(Px(y)) r="3.8" {} },
            1 => {
                html! { rect class="marker" x=(Px(x - 3.5)) y=(Px(y - 3.5)) width="7" height="7" {} }
            }
            2 => path(format!(
                "M{}L{}L{}Z",
                at(0.0, -4.6),
                at(4.5, 3.6),
                at(-4.5, 3.6)
            )),
            3 => path(format!(
                "M{}L{}L{}L{}Z",
                at(0.0, -5.0),
                at(5.0, 0.0),
                at(0.0, 5.0),
                at(-5.0, 0.0)
            )),
            4 => path(format!(
                "M{}L{}L{}Z",
                at(0.0, 4.6),
                at(4.5, -3.6),
                at(-4.5, -3.6)
            )),
            5 => {
                html! { circle class="marker hollow" cx=(Px(x)) cy=(Px(y)) r="3.8" {} }
            }
            _ => {
                html! { rect class="marker hollow" x=(Px(x - 3.5)) y=(Px(y - 3.5)) width="7" height="7" {} }
            }
        }
    }

    /// What fills the bars; the pattern is in [`Style::pattern`] of the same
    /// picture.
    pub(crate) fn fill(self, picture: usize) -> String {
        format!("url(#p{picture}-h{})", self.0)
    }

    /// The definition that [`Style::fill`] refers to.
    pub(crate) fn pattern(self, picture: usize) -> Markup {
        let id = format!("p{picture}-h{}", self.0);
        let lines = match self.colour() {
            0 => "",
            1 => "M-2 2L2 -2M0 8L8 0M6 10L10 6",
            2 => "M2 2h1.6M6 6h1.6",
            3 => "M-2 6L2 10M0 0L8 8M6 -2L10 2",
            4 => "M0 2h8M0 6h8",
            5 => "M2 0v8M6 0v8",
            _ => "M0 0L8 8M0 8L8 0",
        };
        let strength = if lines.is_empty() { "1" } else { "0.3" };
        html! {
            pattern id=(id) class=(self.class()) width="8" height="8" patternUnits="userSpaceOnUse" {
                rect class="ground" width="8" height="8" fill-opacity=(strength) {}
                path class="hatch" d=(lines) {}
            }
        }
    }
}

/// The styles of all rows of a page by their names.
#[derive(Debug)]
pub(crate) struct Styles<'a>(Vec<&'a str>);

impl<'a> Styles<'a> {
    pub(crate) fn new(names: Vec<&'a str>) -> Self {
        Self(names)
    }

    pub(crate) fn of(&self, name: &str) -> Style {
        let index = self.0.iter().position(|known| *known == name);
        Style::new(index.unwrap_or(self.0.len()))
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn style__rows_differ_without_colour() {
        let seven: Vec<Style> = (0..COUNT).map(Style::new).collect();
        let differ = |texts: Vec<String>| texts.iter().collect::<HashSet<_>>().len() == COUNT;
        assert!(differ(
            seven.iter().map(|s| format!("{:?}", s.dashes())).collect()
        ));
        assert!(differ(seven.iter().map(|s| s.marker(0.0, 0.0).0).collect()));
        let hatch = |s: &Style| s.pattern(1).0.split(" d=").nth(1).unwrap().to_owned();
        assert!(differ(seven.iter().map(hatch).collect()));
    }

    #[test]
    fn style__rows_beyond_the_palette_are_new_combinations() {
        let all: HashSet<(String, Option<&str>)> = (0..COUNT * COUNT)
            .map(|index| (Style::new(index).class(), Style::new(index).dashes()))
            .collect();
        assert_eq!(all.len(), COUNT * COUNT);
    }
}
