//! Writes a page of made-up numbers, to look at: `sample.html`, or the file
//! given as the argument.
//!
//! ```sh
//! cargo run -p homa-report --example sample
//! ```

#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "an example that says what it wrote, and numbers that are made up"
)]

use homa_report::{
    Bar, BarGroup, Bars, Limit, Measure, Measured, OverTime, Page, Picture, PublishedClass,
    PublishedCurve, Section, SizeClass, Slowdown, SlowdownRow, Table, Tail, TailRow, TimeRow, Unit,
};

const HOMA: &str = "Homa";
const TCP: &str = "TCP (cubic)";
const DCTCP: &str = "DCTCP";

/// Sizes at the tenths of a workload like W4.
const DECILES: [u64; 10] = [
    315, 376, 502, 561, 662, 960, 6_387, 49_408, 120_373, 10_000_000,
];

/// A fixed sequence between 0 and 1.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        // Knuth's multiplier; good enough for a picture.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn classes() -> Vec<SizeClass> {
    let tenths = DECILES.iter().zip(1..);
    tenths
        .map(|(size, tenth)| SizeClass {
            up_to_bytes: *size,
            cumulative: f64::from(tenth) / 10.0,
        })
        .collect()
}

fn row(name: &str, p50: [f64; 10], p99: [f64; 10]) -> SlowdownRow {
    let all = |values: [f64; 10]| values.map(|value| Measured::of(value, 41_250)).to_vec();
    SlowdownRow {
        name: name.into(),
        p50: all(p50),
        p99: all(p99),
    }
}

fn slowdown() -> Slowdown {
    let homa = row(
        HOMA,
        [1.08, 1.09, 1.11, 1.1, 1.12, 1.13, 1.2, 1.42, 1.9, 2.6],
        [1.9, 1.92, 1.98, 2.0, 2.05, 2.2, 2.6, 3.4, 6.1, 24.0],
    );
    let mut tcp = row(
        TCP,
        [3.1, 3.0, 3.2, 3.3, 3.3, 3.1, 3.6, 4.8, 4.2, 2.2],
        [
            61.0,
            58.0,
            64.0,
            66.0,
            60.0,
            55.0,
            71.0,
            90.0,
            42.0,
            f64::INFINITY,
        ],
    );
    if let Some(last) = tcp.p99.get_mut(8) {
        *last = Measured::too_few(37);
    }
    let dctcp = row(
        DCTCP,
        [1.6, 1.6, 1.7, 1.7, 1.7, 1.7, 2.1, 3.0, 3.1, 2.1],
        [9.1, 9.0, 9.4, 9.8, 9.9, 10.1, 14.0, 22.0, 19.0, 12.0],
    );
    let published = classes()
        .into_iter()
        .zip([1.5, 1.52, 1.53, 1.55, 1.6, 1.7, 2.29, 2.9, 5.2, 21.0])
        .map(|(class, p99)| PublishedClass {
            class,
            p50: 1.0 + (p99 - 1.0) * 0.12,
            p99,
        })
        .collect();
    Slowdown {
        classes: classes(),
        rows: vec![homa, tcp, dctcp],
        published: vec![PublishedCurve {
            name: "Homa, published".into(),
            source: "the paper it comes from; these are made up".into(),
            classes: published,
        }],
    }
}

fn tail() -> Tail {
    let mut numbers = Numbers(7);
    // Pareto tails over a floor, in µs.
    let mut latencies = |count: usize, floor: f64, spread: f64, shape: f64| -> Vec<f64> {
        (0..count)
            .map(|_| floor + spread * (numbers.next().max(1e-9).powf(-1.0 / shape) - 1.0))
            .collect()
    };
    let homa = latencies(200_000, 14.0, 2.0, 2.4);
    let mut tcp = latencies(200_000, 19.0, 22.0, 1.5);
    tcp.iter_mut().take(60).for_each(|x| *x = f64::INFINITY);
    let dctcp = latencies(200_000, 18.0, 9.0, 1.9);
    Tail {
        of: "latency of messages up to 1 kB".into(),
        share_of: "messages".into(),
        unit: Unit::Microseconds,
        rows: vec![
            TailRow::of_values(HOMA, homa),
            TailRow::of_values(TCP, tcp),
            TailRow::of_values(DCTCP, dctcp),
        ],
    }
}

fn queue() -> OverTime {
    let mut numbers = Numbers(3);
    let mut row = |name: &str, grow: f64, most: f64| {
        let mut bytes = 0.0_f64;
        let points = (0..4000).map(|index| {
            let burst = if numbers.next() < 0.02 { grow } else { 0.0 };
            bytes = (bytes * 0.985 - 300.0 + burst * numbers.next()).clamp(0.0, most);
            (f64::from(index) * 25.0, bytes)
        });
        TimeRow {
            name: name.into(),
            points: points.collect(),
        }
    };
    OverTime {
        of: "bytes waiting at the port to host 3".into(),
        unit: Unit::Bytes,
        rows: vec![
            row(HOMA, 60_000.0, 150_000.0),
            row(TCP, 400_000.0, 250_000.0),
        ],
        limit: Some(Limit {
            name: "buffer of the port".into(),
            value: 256_000.0,
        }),
    }
}

fn bars(of: &str, unit: Unit, rows: &[&str], groups: &[(&str, &[f64])]) -> Bars {
    Bars {
        of: of.into(),
        until: String::new(),
        unit,
        rows: rows.iter().map(|row| (*row).to_owned()).collect(),
        groups: groups
            .iter()
            .map(|(name, values)| BarGroup {
                name: (*name).into(),
                bars: values.iter().map(|value| Bar::of(*value, 1000)).collect(),
            })
            .collect(),
    }
}

fn steps() -> Bars {
    let names = [
        "all-to-all, 8 hosts, 64 kB",
        "incast, 16 to 1, 100 kB",
        "ring, 1 MB",
    ];
    let times: [[(f64, f64); 3]; 3] = [
        [(410.0, 470.0), (1900.0, 14_000.0), (800.0, 2_600.0)],
        [(1_330.0, 1_420.0), (2_700.0, 21_000.0), (1_510.0, 3_900.0)],
        [(6_800.0, 7_000.0), (7_100.0, 9_800.0), (6_900.0, 8_100.0)],
    ];
    let group = |(name, times): (&str, [(f64, f64); 3])| BarGroup {
        name: name.into(),
        bars: times
            .iter()
            .map(|(median, p99)| Bar {
                value: Measured::of(*median, 500),
                until: Some(*p99),
            })
            .collect(),
    };
    let mut groups: Vec<BarGroup> = names.into_iter().zip(times).map(group).collect();
    if let Some(bar) = groups.get_mut(2).and_then(|group| group.bars.get_mut(1)) {
        bar.value = Measured::too_few(12);
    }
    Bars {
        of: "time of a step, median".into(),
        until: "99th percentile".into(),
        unit: Unit::Microseconds,
        rows: vec![HOMA.into(), TCP.into(), DCTCP.into()],
        groups,
    }
}

fn table() -> Table {
    let of = |values: [f64; 3]| values.map(|value| Measured::of(value, 412_500)).to_vec();
    let mut last = of([2.1, 0.0, 3.0]);
    if let Some(missing) = last.get_mut(1) {
        *missing = Measured::too_few(37);
    }
    let plain = Unit::Plain;
    Table {
        rows: vec![HOMA.into(), TCP.into(), DCTCP.into()],
        reference: Some(1),
        measures: vec![
            Measure::lower(
                "slowdown of the shorter half, p99",
                plain,
                of([2.05, 60.2, 9.9]),
            )
            .as_headline(),
            Measure::lower(
                "latency up to 1 kB, p50",
                Unit::Microseconds,
                of([15.1, 32.6, 21.8]),
            ),
            Measure::lower(
                "latency up to 1 kB, p99",
                Unit::Microseconds,
                of([27.3, 461.0, 110.0]),
            )
            .as_headline(),
            Measure::lower(
                "latency up to 1 kB, p99.9",
                Unit::Microseconds,
                of([49.0, 2_180.0, 351.0]),
            ),
            Measure::lower("slowdown of 1 MB and more, p99.9", plain, last),
            Measure::higher("goodput", Unit::GbitPerS, of([7.91, 7.88, 7.9])).as_headline(),
            Measure::lower(
                "most bytes waiting at a port",
                Unit::Bytes,
                of([141_000.0, 256_000.0, 88_000.0]),
            ),
        ],
    }
}

pub(crate) fn page() -> Page {
    let priorities: [(&str, &[f64]); 8] = [
        ("P7 (highest)", &[0.04]),
        ("P6", &[0.11]),
        ("P5", &[0.19]),
        ("P4", &[0.08]),
        ("P3", &[0.05]),
        ("P2", &[0.09]),
        ("P1", &[0.17]),
        ("P0 (lowest)", &[0.27]),
    ];
    let links: [(&str, &[f64]); 3] = [
        ("hosts to switches", &[0.801, 0.799, 0.8]),
        ("switches to spines", &[0.602, 0.598, 0.6]),
        ("switches to hosts", &[0.803, 0.8, 0.801]),
    ];
    Page {
        title: "Homa beside TCP and DCTCP, workload W4 at 80 % load".into(),
        summary: vec!["All numbers of this page are made up, to show what a page looks like.".into()],
        rows: vec![HOMA.into(), TCP.into(), DCTCP.into()],
        caveats: vec![
            "One machine plays all hosts: absolute latencies are those of its scheduler, only the ratios carry over.".into(),
            "TCP's largest messages did not all finish; their 99th percentile is infinite.".into(),
        ],
        sections: vec![
            Section::new("In one table", "Medians over five rounds; the protocols took turns in each.", Picture::Table(table())),
            Section::new("Slowdown by message size", "A message of any size should take little longer than it would alone.", Picture::Slowdown(slowdown())),
            Section::new("The tail of short messages", "Every message up to 1 kB.", Picture::Tail(tail())),
            Section::new("Waiting at a port", "The busiest one.", Picture::OverTime(queue())),
            Section::new("Steps of groups of transfers", "A step ends when its last transfer does.", Picture::Bars(steps())),
            Section::new("Use of priorities", "Of the bytes that Homa sent.", Picture::Bars(bars("share of bytes", Unit::Share, &[HOMA], &priorities))),
            Section::new("Use of links", "While messages counted.", Picture::Bars(bars("share of capacity", Unit::Share, &[HOMA, TCP, DCTCP], &links))),
        ],
        slowdown_divisor: "the time that the same message takes on an idle network".into(),
        setup: [
            ("Workload", "W4, cut at 10 MB, mean 121 kB; open loop, Poisson arrivals"),
            ("Load", "0.80 of the links of the hosts, headers counted"),
            ("Hosts", "8 in network namespaces, 1 Gbit/s each, one switch with 8 priorities"),
            ("Duration", "30 s after 5 s of warm-up, 5 rounds"),
            ("Kernel", "Linux 6.12.0, x86_64"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec(),
        command: "homa compare --workload w4 --load 0.8 --rounds 5 --duration 30s --seed 1 --html report.html".into(),
        version: "homa 0.1.0".into(),
        seeds: vec![1, 2, 3, 4, 5],
    }
}

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1);
    let path = path.unwrap_or_else(|| "sample.html".to_owned());
    std::fs::write(&path, page().html())?;
    println!("{path}");
    Ok(())
}
