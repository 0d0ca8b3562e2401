//! Measures by row, with ratios to one of the rows.

use maud::{Markup, html};

use crate::measured::Measured;
use crate::number::{Unit, times};

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Times, slowdowns.
    Lower,
    /// Rates.
    Higher,
    /// Neither.
    Neither,
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Measure {
    /// Its name.
    pub name: String,
    /// Unit of its values.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// By row, in their order; what is not there is missing.
    pub values: Vec<Measured>,
    /// Also shown in large at the top of the page.
    pub headline: bool,
}

impl Measure {
    /// Lower is better.
    pub fn lower(name: &str, unit: Unit, values: Vec<Measured>) -> Self {
        Self {
            name: name.to_owned(),
            unit,
            better: Better::Lower,
            values,
            headline: false,
        }
    }

    /// Higher is better.
    pub fn higher(name: &str, unit: Unit, values: Vec<Measured>) -> Self {
        Self {
            better: Better::Higher,
            ..Self::lower(name, unit, values)
        }
    }

    /// At the top of the page too.
    #[must_use]
    pub fn as_headline(mut self) -> Self {
        self.headline = true;
        self
    }

    fn value(&self, row: usize) -> Measured {
        let missing = Measured::too_few(0);
        self.values.get(row).copied().unwrap_or(missing)
    }

    /// How a row stands to the reference: "15× lower".
    fn ratio(&self, row: usize, reference: usize) -> Option<String> {
        let value = self.value(row).known()?;
        let reference = self.value(reference).known()?;
        if !(value > 0.0 && reference > 0.0) || value.is_infinite() || reference.is_infinite() {
            return None;
        }
        let ratio = value / reference;
        if is_same(ratio) {
            return Some("the same".to_owned());
        }
        Some(if ratio < 1.0 {
            format!("{} lower", times(1.0 / ratio))
        } else {
            format!("{} higher", times(ratio))
        })
    }

    /// The class of a ratio: better, worse or neither.
    fn verdict(&self, row: usize, reference: usize) -> &'static str {
        let (Some(value), Some(reference)) =
            (self.value(row).known(), self.value(reference).known())
        else {
            return "ratio";
        };
        let better = match self.better {
            _ if is_same(value / reference) => false,
            Better::Lower => value < reference,
            Better::Higher => value > reference,
            Better::Neither => false,
        };
        if better { "ratio better" } else { "ratio" }
    }
}

/// Closer than the three digits that are shown.
fn is_same(ratio: f64) -> bool {
    (0.995..=1.005).contains(&ratio)
}

/// The table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Names of the rows; they are the columns on paper.
    pub rows: Vec<String>,
    /// Index of the row that the others are compared to.
    pub reference: Option<usize>,
    /// The lines.
    pub measures: Vec<Measure>,
}

impl Table {
    fn reference(&self) -> Option<usize> {
        self.reference.filter(|index| *index < self.rows.len())
    }

    pub(crate) fn draw(&self) -> Markup {
        let reference = self.reference();
        html! {
            div class="scroll" {
                table class="measures" {
                    thead {
                        tr {
                            th { "measure" }
                            @for (index, row) in self.rows.iter().enumerate() {
                                th {
                                    (row)
                                    @if Some(index) == reference && self.rows.len() > 1 {
                                        div class="ratio" { "the reference" }
                                    }
                                }
                            }
                        }
                    }
                    tbody {
                        @for measure in &self.measures {
                            tr {
                                th { (measure.name) }
                                @for row in 0..self.rows.len() {
                                    td { (cell(measure, row, reference)) }
                                }
                            }
                        }
                    }
                }
            }
            @if let Some(name) = reference.and_then(|index| self.rows.get(index)) {
                p class="small" {
                    "Below each value: how it stands to " (name) ". Bold: it is better. n: samples."
                }
            }
        }
    }

    /// Cards: the headlines of the first row that is not the reference.
    pub(crate) fn headlines(&self) -> Markup {
        let reference = self.reference();
        let row = (0..self.rows.len()).find(|row| Some(*row) != reference);
        let names = row.and_then(|row| Some((row, self.rows.get(row)?)));
        let against = reference.and_then(|index| Some((index, self.rows.get(index)?)));
        let (Some((row, name)), Some((index, other))) = (names, against) else {
            return html! {};
        };
        html! {
            @for measure in self.measures.iter().filter(|measure| measure.headline) {
                div class="card" {
                    div { (measure.name) }
                    @let ratio = measure.ratio(row, index);
                    div class="large" {
                        (ratio.unwrap_or_else(|| measure.value(row).text(measure.unit)))
                    }
                    div class="small" {
                        (name) ": " (measure.value(row).text(measure.unit)) "; "
                        (other) ": " (measure.value(index).text(measure.unit))
                    }
                }
            }
        }
    }

    pub(crate) fn any_headline(&self) -> bool {
        self.reference().is_some()
            && self.rows.len() > 1
            && self.measures.iter().any(|measure| measure.headline)
    }
}

fn cell(measure: &Measure, row: usize, reference: Option<usize>) -> Markup {
    let value = measure.value(row);
    let compared = reference
        .filter(|index| *index != row)
        .and_then(|index| Some((measure.ratio(row, index)?, measure.verdict(row, index))));
    html! {
        @if value.known().is_some() {
            (value.text(measure.unit))
        } @else {
            span class="missing" { (value.text(measure.unit)) }
        }
        @if let Some((ratio, class)) = compared {
            div class=(class) { (ratio) }
        }
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    fn measure(homa: f64, tcp: f64) -> Measure {
        let values = vec![Measured::of(homa, 100), Measured::of(tcp, 100)];
        Measure::lower("p99", Unit::Plain, values)
    }

    #[test]
    fn ratio__says_how_many_times() {
        assert_eq!(measure(2.0, 30.0).ratio(0, 1).unwrap(), "15× lower");
        assert_eq!(measure(30.0, 20.0).ratio(0, 1).unwrap(), "1.5× higher");
        assert_eq!(measure(2.0, 2.001).ratio(0, 1).unwrap(), "the same");
    }

    #[test]
    fn ratio__of_what_has_none_is_left_out() {
        for (a, b) in [
            (0.0, 1.0),
            (1.0, 0.0),
            (f64::INFINITY, 1.0),
            (1.0, f64::INFINITY),
            (f64::NAN, 1.0),
        ] {
            assert_eq!(measure(a, b).ratio(0, 1), None);
        }
    }

    #[test]
    fn verdict__lower_or_higher() {
        let lower = measure(1.0, 2.0);
        assert_eq!(lower.verdict(0, 1), "ratio better");
        let higher = Measure::higher("rate", Unit::GbitPerS, lower.values);
        assert_eq!(higher.verdict(0, 1), "ratio");
        assert_eq!(measure(2.0, 2.001).verdict(0, 1), "ratio");
    }
}
