//! The page around the pictures.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::model::{Page, Picture, Section};
use crate::style::Styles;
use crate::table::Table;

/// In the page, since it must need nothing besides itself.
const STYLE: &str = include_str!("style.css");

/// Nothing may be loaded and no script runs, whatever text finds its way in.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

pub(crate) fn render(page: &Page) -> String {
    let styles = Styles::new(page.row_names());
    let title = if page.title.is_empty() {
        "Homa report"
    } else {
        &page.title
    };
    let markup = html! {
        (DOCTYPE)
        html lang="en" xmlns="http://www.w3.org/1999/xhtml" {
            head {
                // Closed, as XML wants it.
                (PreEscaped("<meta charset=\"utf-8\"/>"))
                (PreEscaped("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>"))
                (PreEscaped(format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"/>")))
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    h1 { (title) }
                    @for paragraph in &page.summary { p { (paragraph) } }
                    (headlines(page))
                    (caveats(page))
                    @for (index, section) in page.sections.iter().enumerate() {
                        (self::section(section, index + 1, &styles))
                    }
                    (how(page))
                }
            }
        }
    };
    only_xml(&markup.0)
}

/// Control characters that XML does not allow, which no escape can save.
fn only_xml(text: &str) -> String {
    let allowed = |c: char| {
        matches!(c, '\t' | '\n' | '\r') || !(c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}'))
    };
    let replaced = |c: char| {
        if allowed(c) {
            c
        } else {
            char::REPLACEMENT_CHARACTER
        }
    };
    text.chars().map(replaced).collect()
}

fn headlines(page: &Page) -> Markup {
    let tables = page
        .sections
        .iter()
        .filter_map(|section| match &section.picture {
            Picture::Table(table) if table.any_headline() => Some(table),
            _ => None,
        });
    let cards: Vec<Markup> = tables.map(Table::headlines).collect();
    html! {
        @if !cards.is_empty() {
            div class="cards" { @for card in &cards { (card) } }
        }
    }
}

fn caveats(page: &Page) -> Markup {
    html! {
        @if !page.caveats.is_empty() {
            div class="caveats" {
                h2 { "Caveats" }
                ul { @for caveat in &page.caveats { li { (caveat) } } }
            }
        }
    }
}

fn section(section: &Section, number: usize, styles: &Styles<'_>) -> Markup {
    let (drawing, behind) = match &section.picture {
        Picture::Slowdown(chart) => (chart.draw(number, styles), chart.numbers()),
        Picture::Tail(chart) => (chart.draw(number, styles), html! {}),
        Picture::OverTime(chart) => (chart.draw(number, styles), html! {}),
        Picture::Bars(chart) => (chart.draw(number, styles), html! {}),
        Picture::Table(table) => (html! {}, table.draw()),
    };
    html! {
        section {
            h2 { (section.heading) }
            @for paragraph in &section.text { p { (paragraph) } }
            @if !drawing.0.is_empty() { figure { (drawing) } }
            (behind)
        }
    }
}

fn how(page: &Page) -> Markup {
    let texts = [&page.slowdown_divisor, &page.command, &page.version];
    if page.setup.is_empty() && page.seeds.is_empty() && texts.iter().all(|text| text.is_empty()) {
        return html! {};
    }
    let seeds: Vec<String> = page.seeds.iter().map(ToString::to_string).collect();
    let facts = [
        ("Measured with", page.version.clone()),
        (
            if seeds.len() == 1 { "Seed" } else { "Seeds" },
            seeds.join(", "),
        ),
    ];
    let facts = page
        .setup
        .iter()
        .map(|(name, value)| (&**name, value.clone()))
        .chain(facts.into_iter().filter(|(_, value)| !value.is_empty()));
    html! {
        section {
            h2 { "How it was measured" }
            @if !page.slowdown_divisor.is_empty() {
                p {
                    strong { "Slowdown" }
                    " is the time that a message took, divided by " (page.slowdown_divisor)
                    ". 1 is the best possible, 2 is twice as long. A message that did not finish "
                    "counts as infinite. A percentile that too few samples support is not shown."
                }
            }
            dl {
                @for (name, value) in facts {
                    div { dt { (name) } dd { (value) } }
                }
            }
            @if !page.command.is_empty() {
                p { "This command repeats it (a click selects all of it):" }
                pre tabindex="0" { code { (page.command) } }
            }
        }
    }
}
