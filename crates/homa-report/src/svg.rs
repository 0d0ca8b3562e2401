//! The pieces that pictures are drawn with.

use std::fmt::{self, Write as _};

use maud::{Markup, html};

/// Width of every picture in pixels; a page shows it at most this wide.
pub(crate) const WIDTH: f64 = 860.0;
/// Size of the text in pictures.
pub(crate) const FONT: f64 = 13.0;

/// A coordinate, to a tenth of a pixel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Px(pub(crate) f64);

impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round();
        // Never reached with places from an axis; a picture must not break.
        let tenths = if tenths.is_finite() { tenths } else { 0.0 };
        // Adding 0 turns -0 into 0.
        write!(f, "{}", tenths / 10.0 + 0.0)
    }
}

impl maud::Render for Px {
    fn render_to(&self, buffer: &mut String) {
        // Writing to a String does not fail.
        let _ = write!(buffer, "{self}");
    }
}

/// Where a text is fixed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A line of text.
pub(crate) fn text(x: f64, y: f64, anchor: Anchor, content: &str) -> Markup {
    let anchor = match anchor {
        Anchor::Start => "start",
        Anchor::Middle => "middle",
        Anchor::End => "end",
    };
    html! { text x=(Px(x)) y=(Px(y)) text-anchor=(anchor) { (content) } }
}

/// A straight line of a class of the style sheet.
pub(crate) fn line(class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> Markup {
    html! { line class=(class) x1=(Px(x1)) y1=(Px(y1)) x2=(Px(x2)) y2=(Px(y2)) {} }
}

/// A path in pieces.
#[derive(Debug, Default)]
pub(crate) struct Path {
    data: String,
    at: Option<(f64, f64)>,
}

impl Path {
    /// The next point; the first one after a gap begins a piece.
    pub(crate) fn to(&mut self, x: f64, y: f64) {
        let command = if self.at.is_some() { 'L' } else { 'M' };
        // Writing to a String does not fail.
        let _ = write!(self.data, "{command}{} {}", Px(x), Px(y));
        self.at = Some((x, y));
    }

    /// First along x, then along y.
    pub(crate) fn step_to(&mut self, x: f64, y: f64) {
        if let Some((_, before)) = self.at {
            self.to(x, before);
        }
        self.to(x, y);
    }

    /// What follows is not joined to what was.
    pub(crate) fn gap(&mut self) {
        self.at = None;
    }

    pub(crate) fn data(&self) -> &str {
        &self.data
    }
}

/// A whole picture with what a screen reader says about it.
pub(crate) fn picture(
    number: usize,
    title: &str,
    description: &str,
    height: f64,
    content: &Markup,
) -> Markup {
    let (title_id, description_id) = (format!("p{number}-title"), format!("p{number}-desc"));
    html! {
        svg xmlns="http://www.w3.org/2000/svg" role="img"
            aria-labelledby=(format!("{title_id} {description_id}"))
            viewBox=(format!("0 0 {} {}", Px(WIDTH), Px(height)))
        {
            title id=(title_id) { (title) }
            desc id=(description_id) { (description) }
            (content)
        }
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn px__tenths_and_nothing_odd() {
        let texts = [1.25, 3.0, -0.01, f64::NAN, f64::INFINITY].map(|x| Px(x).to_string());
        assert_eq!(texts, ["1.3", "3", "0", "0", "0"]);
    }

    #[test]
    fn path__steps_and_gaps() {
        let mut path = Path::default();
        path.to(0.0, 5.0);
        path.step_to(2.0, 7.0);
        path.gap();
        path.step_to(4.0, 1.0);
        assert_eq!(path.data(), "M0 5L2 5L2 7M4 1");
    }
}
