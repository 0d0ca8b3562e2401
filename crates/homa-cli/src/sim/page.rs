//! The report of a simulation as a page with pictures.

#![allow(
    clippy::cast_precision_loss,
    reason = "bytes in a queue, far below 2^53, are drawn"
)]

use homa_report::{
    Bar, BarGroup, Bars, Measure, Measured, Page, Picture, PublishedClass, PublishedCurve, Section,
    SizeClass, Slowdown, SlowdownRow, Table, Unit,
};
use homa_sim::published::{Curve, classes};
use homa_sim::report::{Numbers, Report};
use homa_sim::sigcomm18::Conditions;

const HOMA: &str = "Homa";
const PUBLISHED: &str = "published";

/// The whole page; `command` repeats the run.
pub(super) fn render(report: &Report, conditions: &Conditions, command: String) -> String {
    let homa = &report.protocols.homa;
    Page {
        title: format!("{} at load {}", report.scenario, report.load),
        summary: vec![verdict(report)],
        rows: vec![HOMA.into()],
        caveats: vec![
            "Time, links and switches are simulated; the protocol at every host is the one that runs in a process. Software takes a fixed time, so nothing here says how fast a processor is.".into(),
            "A percentile is given only for classes of 1,000 messages or more.".into(),
        ],
        sections: vec![
            Section::new(
                "In one table",
                "Slowdowns as in SIGCOMM 2018; the shorter half are the classes up to the median.",
                Picture::Table(table(report)),
            ),
            Section::new(
                "Slowdown by message size",
                "The width of a size is its share of all messages.",
                Picture::Slowdown(slowdown(homa, conditions)),
            ),
            Section::new(
                "Use of priorities",
                "Share of the bytes that hosts sent; 7 is served first.",
                Picture::Bars(priorities(homa)),
            ),
            Section::new(
                "Bytes that wait in switches",
                "All queues of a port together.",
                Picture::Bars(waiting(homa)),
            ),
        ],
        slowdown_divisor:
            "the time of a message of its size in the idle network, by the formula of SIGCOMM 2018"
                .into(),
        setup: setup(report, conditions),
        command,
        version: format!("homa {}", env!("CARGO_PKG_VERSION")),
        seeds: report.runs.iter().map(|run| run.seed).collect(),
    }
    .html()
}

fn verdict(report: &Report) -> String {
    let found = report.protocols.homa.slowdown.mean;
    match report.published {
        Some(published) => format!(
            "Mean slowdown {found:.2}; {:.2} was published for these conditions.",
            published.mean
        ),
        None => format!("Mean slowdown {found:.2}; nothing was published for this load."),
    }
}

fn table(report: &Report) -> Table {
    let slowdown = &report.protocols.homa.slowdown;
    let pair = |found: f64, published: Option<f64>| {
        let samples = slowdown.messages;
        let published = published.map(|value| Measured::of(value, 0));
        [Some(Measured::of(found, samples)), published]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
    };
    let published = report.published;
    let mut rows = vec![HOMA.to_owned()];
    if published.is_some() {
        rows.push(PUBLISHED.to_owned());
    }
    Table {
        reference: published.map(|_| 1),
        rows,
        measures: vec![
            Measure::lower(
                "mean slowdown",
                Unit::Plain,
                pair(slowdown.mean, published.map(|it| it.mean)),
            )
            .as_headline(),
            Measure::lower(
                "p99 slowdown, shorter half",
                Unit::Plain,
                pair(
                    slowdown.p99_short_half,
                    published.map(|it| it.p99_short_half),
                ),
            )
            .as_headline(),
            Measure::lower(
                "p99 slowdown, any size",
                Unit::Plain,
                pair(slowdown.p99_any, published.map(|it| it.p99_any)),
            ),
        ],
    }
}

fn slowdown(homa: &Numbers, conditions: &Conditions) -> Slowdown {
    let rows = &homa.slowdown.by_size;
    let of = |value: f64, messages: u64| {
        if value.is_nan() {
            Measured::too_few(messages)
        } else {
            Measured::of(value, messages)
        }
    };
    Slowdown {
        classes: rows
            .iter()
            .map(|row| SizeClass {
                up_to_bytes: row.found.up_to_bytes.into(),
                cumulative: row.found.cumulative,
            })
            .collect(),
        rows: vec![SlowdownRow {
            name: HOMA.into(),
            p50: rows
                .iter()
                .map(|row| of(row.found.p50, row.found.messages))
                .collect(),
            p99: rows
                .iter()
                .map(|row| of(row.found.p99, row.found.messages))
                .collect(),
        }],
        published: published(conditions).into_iter().collect(),
    }
}

fn published(conditions: &Conditions) -> Option<PublishedCurve> {
    let rows = classes(Curve::Homa, conditions.workload, conditions.load);
    let total: f64 = rows.iter().map(|row| row.count_percent).sum();
    let mut seen = 0.0;
    let classes: Vec<PublishedClass> = rows
        .iter()
        .map(|row| {
            seen += row.count_percent / total;
            PublishedClass {
                class: SizeClass {
                    up_to_bytes: row.up_to_bytes.into(),
                    cumulative: seen.min(1.0),
                },
                p50: row.p50,
                p99: row.p99,
            }
        })
        .collect();
    (!classes.is_empty()).then(|| PublishedCurve {
        name: "Homa, published".into(),
        source: "data of the figures of SIGCOMM 2018".into(),
        classes,
    })
}

fn priorities(homa: &Numbers) -> Bars {
    let messages = homa.slowdown.messages;
    Bars {
        of: "share of the bytes".into(),
        until: String::new(),
        unit: Unit::Share,
        rows: vec![HOMA.into()],
        groups: homa
            .share_by_priority
            .iter()
            .enumerate()
            .rev()
            .map(|(priority, share)| BarGroup {
                name: format!("priority {priority}"),
                bars: vec![Bar::of(*share, messages)],
            })
            .collect(),
    }
}

fn waiting(homa: &Numbers) -> Bars {
    Bars {
        of: "bytes in the queues of a port, mean".into(),
        until: "the fullest port".into(),
        unit: Unit::Bytes,
        rows: vec![HOMA.into()],
        groups: homa
            .waiting
            .iter()
            .map(|stage| BarGroup {
                name: stage.stage.into(),
                bars: vec![Bar {
                    until: Some(stage.most_bytes as f64),
                    ..Bar::of(stage.mean_bytes, homa.slowdown.messages)
                }],
            })
            .collect(),
    }
}

fn setup(report: &Report, conditions: &Conditions) -> Vec<(String, String)> {
    let hashes: Vec<String> = report
        .runs
        .iter()
        .map(|run| format!("{:016x}", run.trace_hash))
        .collect();
    [
        (
            "network",
            "144 hosts in nine racks, four spines, 10 and 40 Gbit/s, every packet on a random way"
                .to_owned(),
        ),
        (
            "workload",
            format!("W{} of SIGCOMM 2018, one-way messages", conditions.workload),
        ),
        (
            "virtual time",
            format!(
                "{} s measured after {} s",
                report.measure_s, report.warm_up_s
            ),
        ),
        ("traces", hashes.join(", ")),
        (
            "speed",
            format!(
                "{:.2} million packet hops per second of CPU",
                report.packet_hops_per_s / 1e6
            ),
        ),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}
