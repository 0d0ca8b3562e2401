//! The findings as a page with pictures.

use homa_bench::host::Host;
use homa_bench::quantile::{Percentiles, Quantile};
use homa_report::{
    Bar, BarGroup, Bars, Measure, Measured, Page, Picture, Section, SizeClass, Slowdown,
    SlowdownRow, Table, Tail, TailRow, Unit,
};

use super::findings::{Findings, RowFindings};
use super::setup::Setup;
use super::table;

/// The whole page.
pub(super) fn render(setup: &Setup, findings: &Findings) -> String {
    let short_bytes = findings
        .rows
        .first()
        .map_or(0, |row| row.short().up_to_bytes);
    Page {
        title: "Homa beside TCP".into(),
        summary: table::verdict(findings),
        rows: names(findings),
        caveats: caveats(setup),
        sections: vec![
            Section::new(
                "In one table",
                "Latency counts from when a request was due to its whole response. Short messages are the smallest tenth.",
                Picture::Table(measures(findings)),
            ),
            Section::new(
                "Slowdown by message size",
                "The width of a size is its share of all messages.",
                Picture::Slowdown(slowdown(findings)),
            ),
            Section::new(
                "Tail of short messages",
                "How many of them took longer than a given time.",
                Picture::Tail(Tail {
                    of: format!("latency of messages up to {short_bytes} B"),
                    share_of: "messages".into(),
                    unit: Unit::Microseconds,
                    rows: findings
                        .rows
                        .iter()
                        .map(|row| TailRow::of_values(row.row.name, row.short_us.iter().copied()))
                        .collect(),
                }),
            ),
            Section::new(
                "Bytes that wait in the switch",
                "All queues of a port together: the mean over ports and time, and the fullest port at any time.",
                Picture::Bars(backlog(findings)),
            ),
            Section::new(
                "Use of priorities",
                "Share of the bytes through the switch; 7 is served first.",
                Picture::Bars(priorities(findings)),
            ),
        ],
        slowdown_divisor: "the round trip of a message of its size in the idle network, of the row that was fastest"
            .into(),
        setup: described(setup, findings),
        command: setup.command.clone(),
        version: format!("homa {}", env!("CARGO_PKG_VERSION")),
        seeds: vec![setup.seed],
    }
    .html()
}

fn names(findings: &Findings) -> Vec<String> {
    findings
        .rows
        .iter()
        .map(|row| row.row.name.into())
        .collect()
}

fn measured(value: Quantile, samples: u64) -> Measured {
    match value {
        Quantile::Value(value) => Measured::of(value, samples),
        Quantile::Infinite => Measured::of(f64::INFINITY, samples),
        Quantile::TooFew => Measured::too_few(samples),
    }
}

fn measures(findings: &Findings) -> Table {
    let of = |value: &dyn Fn(&RowFindings) -> Measured| -> Vec<Measured> {
        findings.rows.iter().map(value).collect()
    };
    let plain = |value: &dyn Fn(&RowFindings) -> f64| {
        of(&|row| Measured::of(value(row), row.digest.all.samples))
    };
    let us = Unit::Microseconds;
    Table {
        rows: names(findings),
        reference: Some(0),
        measures: vec![
            Measure::lower(
                "short messages, p50",
                us,
                of(&|row| measured(row.short().latency_us.p50, row.short().samples)),
            ),
            Measure::lower(
                "short messages, p99",
                us,
                of(&|row| measured(row.short().latency_us.p99, row.short().samples)),
            )
            .as_headline(),
            Measure::lower(
                "longest messages, p50",
                us,
                of(&|row| measured(row.large().latency_us.p50, row.large().samples)),
            ),
            Measure::lower(
                "longest messages, p99",
                us,
                of(&|row| measured(row.large().latency_us.p99, row.large().samples)),
            )
            .as_headline(),
            Measure::higher(
                "payload of a host",
                Unit::GbitPerS,
                plain(&|row| row.goodput_bps / 1e9),
            )
            .as_headline(),
            Measure::lower(
                "frames dropped",
                Unit::Plain,
                plain(&|row| row.drops as f64),
            ),
            Measure::lower(
                "fullest port",
                Unit::Bytes,
                plain(&|row| row.backlog_peak as f64),
            ),
            Measure::lower("sent again", Unit::Share, plain(&|row| row.sent_again)),
            Measure::higher("processors idle", Unit::Share, plain(&|row| row.idle)),
            Measure::lower(
                "arrivals late, p99",
                us,
                of(&|row| measured(row.lateness_p99_us, row.digest.all.samples)),
            ),
        ],
    }
}

fn slowdown(findings: &Findings) -> Slowdown {
    let classes = findings.rows.first().map(|row| &row.digest.classes[..]);
    let of = |row: &RowFindings, pick: &dyn Fn(&Percentiles) -> Quantile| {
        let classes = row.digest.classes.iter();
        classes
            .map(|class| match &class.slowdown_unloaded {
                Some(slowdown) => measured(pick(slowdown), class.samples),
                None => Measured::too_few(class.samples),
            })
            .collect()
    };
    Slowdown {
        classes: classes
            .unwrap_or_default()
            .iter()
            .map(|class| SizeClass {
                up_to_bytes: class.up_to_bytes.into(),
                cumulative: class.cum_frac,
            })
            .collect(),
        rows: findings
            .rows
            .iter()
            .map(|row| SlowdownRow {
                name: row.row.name.into(),
                p50: of(row, &|slowdown| slowdown.p50),
                p99: of(row, &|slowdown| slowdown.p99),
            })
            .collect(),
        published: Vec::new(),
    }
}

fn backlog(findings: &Findings) -> Bars {
    let bars = findings.rows.iter().map(|row| Bar {
        until: Some(row.backlog_peak as f64),
        ..Bar::of(row.backlog_mean, row.digest.all.samples)
    });
    Bars {
        of: "bytes in the queues of a port, mean".into(),
        until: "the fullest port".into(),
        unit: Unit::Bytes,
        rows: names(findings),
        groups: vec![BarGroup {
            name: "waiting".into(),
            bars: bars.collect(),
        }],
    }
}

fn priorities(findings: &Findings) -> Bars {
    let share = |row: &RowFindings, priority: usize| {
        let all: u64 = row.by_priority.iter().sum();
        let here = row.by_priority.get(priority).copied().unwrap_or(0);
        Bar::of(here as f64 / all.max(1) as f64, row.digest.all.samples)
    };
    Bars {
        of: "share of the bytes".into(),
        until: String::new(),
        unit: Unit::Share,
        rows: names(findings),
        groups: (0..8)
            .rev()
            .map(|priority| BarGroup {
                name: format!("priority {priority}"),
                bars: findings
                    .rows
                    .iter()
                    .map(|row| share(row, priority))
                    .collect(),
            })
            .collect(),
    }
}

fn caveats(setup: &Setup) -> Vec<String> {
    vec![
        "The hosts are network namespaces of one machine and the switch is a queueing discipline of its kernel. Packets and both transports are real, rates are lower and delays longer than in a datacenter.".into(),
        format!(
            "TCP fills the buffer it gets, so its tail is about buffer / rate: here {} KiB at {} Mbit/s are {:.1} ms. With another buffer the ratio is another.",
            setup.buffer_bytes >> 10,
            setup.rate_bps / 1_000_000,
            8e3 * f64::from(setup.buffer_bytes) / setup.rate_bps as f64
        ),
        "Homa runs as a library over UDP in each process, TCP in the kernel: Homa pays for more system calls, and at rates at which the processors decide it would be slower.".into(),
        "Each priority of a port has a queue of its own of the size of the buffer. What a port held in all its queues together is in the table.".into(),
        "TCP: TCP_NODELAY, connections to each peer as needed up to 32, an idle one first, no slow start after idle. No ECN: ports drop, they do not mark.".into(),
        "Bytes sent again are counted by Homa, and estimated from the segments sent again by TCP.".into(),
    ]
}

fn described(setup: &Setup, findings: &Findings) -> Vec<(String, String)> {
    let machine = Host::here();
    let mut lines: Vec<(String, String)> = [
        (
            "hosts",
            format!(
                "{}, one process of one thread each, client of all others and server",
                setup.hosts
            ),
        ),
        (
            "ports",
            format!(
                "{} Mbit/s, 8 strict priorities, {} B of buffer for each",
                setup.rate_bps / 1_000_000,
                setup.buffer_bytes
            ),
        ),
        ("MTU", setup.mtu.to_string()),
        (
            "workload",
            format!(
                "{}, at most {} B, responses are echoes",
                setup.workload.name(),
                setup.max_message
            ),
        ),
        (
            "load",
            format!(
                "{:.0} % of each port with headers: {:.1} requests/s of each host, Poisson",
                100.0 * setup.load,
                setup.rpcs_per_s
            ),
        ),
        (
            "rounds",
            format!(
                "{} of {} s after {} s, rows in an order that alternates; {} made again",
                setup.rounds,
                setup.duration.as_secs_f64(),
                setup.warmup.as_secs_f64(),
                findings.repeated
            ),
        ),
        ("scheduling", setup.scheduling.words().to_owned()),
        (
            "machine",
            format!(
                "{} x {}, Linux {}",
                machine.cpus, machine.cpu, machine.kernel
            ),
        ),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    for row in &findings.rows {
        for (name, value) in &row.details {
            lines.push((format!("{}: {name}", row.row.name), value.clone()));
        }
    }
    lines
}
