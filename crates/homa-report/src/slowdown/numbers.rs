//! The numbers behind the picture, for who wants to copy them.

use maud::{Markup, html};

use super::{Slowdown, drawable};
use crate::measured::Measured;
use crate::number::{Unit, count};

impl Slowdown {
    /// The numbers of the picture as a table.
    pub(crate) fn numbers(&self) -> Markup {
        html! {
            details {
                summary { "The numbers of this picture" }
                div class="scroll" {
                    table {
                        thead {
                            tr {
                                th { "up to" }
                                th { "share of messages" }
                                @for row in &self.rows {
                                    th { (row.name) ", messages" }
                                    th { (row.name) ", median" }
                                    th { (row.name) ", 99th percentile" }
                                }
                                @for curve in &self.published {
                                    th { (curve.name) ", median" }
                                    th { (curve.name) ", 99th percentile" }
                                }
                            }
                        }
                        tbody {
                            @for (index, class) in self.classes.iter().enumerate() {
                                tr {
                                    th { (Unit::Bytes.short(class.up_to_bytes as f64)) }
                                    td { (Unit::Share.short(class.cumulative)) }
                                    @for row in &self.rows {
                                        td { (samples_text(row.p99.get(index).or(row.p50.get(index)))) }
                                        td { (number_text(row.p50.get(index))) }
                                        td { (number_text(row.p99.get(index))) }
                                    }
                                    @for curve in &self.published {
                                        @let same = curve.classes.iter().find(|published| {
                                            published.class.up_to_bytes == class.up_to_bytes
                                        });
                                        td { (published_text(same.map(|class| class.p50))) }
                                        td { (published_text(same.map(|class| class.p99))) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn samples_text(measured: Option<&Measured>) -> String {
    count(measured.map_or(0, |m| m.samples))
}

fn number_text(measured: Option<&Measured>) -> String {
    Slowdown::value(measured).map_or_else(|| "too few".to_owned(), |value| Unit::Plain.text(value))
}

fn published_text(value: Option<f64>) -> String {
    value
        .and_then(drawable)
        .map_or_else(|| "–".to_owned(), |value| Unit::Plain.text(value))
}
