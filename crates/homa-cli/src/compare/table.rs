//! The findings as text.

use std::fmt::Write as _;

use homa_bench::quantile::Quantile;

use super::findings::{ENOUGH_LARGE, Findings, RowFindings};
use super::setup::Setup;

const NAME: usize = 34;
const COLUMN: usize = 18;

/// One line of the table: a name, and a cell for each row of the findings.
struct Line<'a> {
    name: String,
    cell: Box<dyn Fn(&RowFindings) -> String + 'a>,
}

fn line<'a>(name: impl Into<String>, cell: impl Fn(&RowFindings) -> String + 'a) -> Line<'a> {
    Line {
        name: name.into(),
        cell: Box::new(cell),
    }
}

/// The whole text.
pub(super) fn render(setup: &Setup, findings: &Findings) -> String {
    let mut text = head(setup);
    let mut lines = vec![
        line("short messages, p50", |row| us(row.short().latency_us.p50)),
        line("short messages, p99", |row| us(row.short().latency_us.p99)),
        line(
            format!("{} B messages, p50", setup.workload.max_bytes()),
            |row| us(row.large().latency_us.p50),
        ),
        line(
            format!("{} B messages, p99", setup.workload.max_bytes()),
            |row| {
                let large = row.large();
                let few = if large.samples < ENOUGH_LARGE {
                    "?"
                } else {
                    ""
                };
                us(large.latency_us.p99) + few
            },
        ),
    ];
    for (index, class) in findings
        .rows
        .first()
        .map(|row| &row.digest.classes[..])
        .unwrap_or_default()
        .iter()
        .enumerate()
    {
        let name = format!("slowdown p50 / p99, to {} B", class.up_to_bytes);
        lines.push(line(name, move |row| {
            let slowdown = row.digest.classes.get(index);
            slowdown
                .and_then(|class| class.slowdown_unloaded)
                .map_or_else(|| "-".into(), |s| format!("{} / {}", s.p50, s.p99))
        }));
    }
    lines.extend([
        line("payload of a host", |row| {
            format!("{:.1} Mbit/s", row.goodput_bps / 1e6)
        }),
        line("carried of what was offered", |row| percent(row.carried)),
        line("frames dropped", |row| row.drops.to_string()),
        line("fullest port", |row| {
            format!("{:.0} kB", row.backlog_peak as f64 / 1e3)
        }),
        line("sent again", |row| {
            format!("{:.2} %", 100.0 * row.sent_again)
        }),
        line("not finished", |row| row.digest.all.unfinished.to_string()),
        line("processors idle", |row| percent(row.idle)),
        line("processors stolen, at most", |row| percent(row.stolen)),
        line("arrivals late, p99", |row| us(row.lateness_p99_us)),
    ]);
    let _ = write!(text, "{:NAME$}", "");
    for row in &findings.rows {
        let _ = write!(text, "{:>COLUMN$}", row.row.name);
    }
    text.push('\n');
    for line in &lines {
        let _ = write!(text, "{:NAME$}", line.name);
        for row in &findings.rows {
            let _ = write!(text, "{:>COLUMN$}", (line.cell)(row));
        }
        text.push('\n');
    }
    text.push_str(
        "Short: the smallest tenth. Latency: from when a request was due. Slowdown: latency divided by\n\
         the round trip of that size in the idle network, of the row in which it was shortest.\n\n",
    );
    for sentence in verdict(findings) {
        text.push_str(&sentence);
        text.push('\n');
    }
    text
}

fn head(setup: &Setup) -> String {
    format!(
        "\n{} hosts, all to all, {} at {:.0} % of {} Mbit/s ports (MTU {}, {} KiB of buffer); {} rounds of {} s\n\n",
        setup.hosts,
        setup.workload.name(),
        100.0 * setup.load,
        setup.rate_bps / 1_000_000,
        setup.mtu,
        setup.buffer_bytes >> 10,
        setup.rounds,
        setup.duration.as_secs_f64(),
    )
}

/// What it means, in sentences.
pub(super) fn verdict(findings: &Findings) -> Vec<String> {
    let headline = &findings.headline;
    let mut sentences = Vec::new();
    let mut say = |what: &str, ratio: Option<f64>| {
        sentences.push(match ratio {
            Some(ratio) => format!("{what}: {ratio:.2}"),
            None => format!("{what}: not known, since a value is missing or infinite"),
        });
    };
    say(
        "p99 of short messages, TCP / Homa",
        headline.short_p99_ratio,
    );
    if findings.rows.len() > 2 {
        say(
            "p99 of short messages, TCP with short ones first / Homa",
            headline.short_p99_ratio_vs_tcp_prio,
        );
        say(
            "p99 of short messages, TCP / Homa with one priority",
            headline.short_p99_ratio_one_priority,
        );
    }
    say(
        "p99 of the longest messages, TCP / Homa",
        headline.large_p99_ratio,
    );
    say("payload carried, Homa / TCP", headline.goodput_ratio);
    if findings.cpu_limits.is_empty() {
        sentences.push("Not limited by the processors.".into());
    } else {
        sentences.push(format!(
            "LIMITED BY THE PROCESSORS, do not quote: {}",
            findings.cpu_limits.join("; ")
        ));
    }
    sentences.extend(findings.remarks.iter().cloned());
    sentences
}

fn us(value: Quantile) -> String {
    match value {
        Quantile::Value(us) if us >= 10_000.0 => format!("{:.1} ms", us / 1e3),
        Quantile::Value(us) => format!("{us:.0} us"),
        other => other.to_string(),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
