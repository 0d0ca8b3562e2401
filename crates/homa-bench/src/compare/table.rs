//! A comparison as tables for people who have never seen either protocol's
//! numbers: what was done, a column a protocol, the unit in each line, ratios.

use std::fmt::{self, Write};

use super::words;
use super::{Comparison, Use};
use crate::quantile::{Percentiles, Quantile};
use crate::report::Report;

/// Width of the text before the columns, and of a column.
const TEXT: usize = 46;
const COLUMN: usize = 12;

/// The whole text, ending in a line feed.
pub fn render(comparison: &Comparison) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = write_all(&mut text, comparison);
    text
}

fn write_all(out: &mut String, comparison: &Comparison) -> fmt::Result {
    let parts: Vec<&[Report]> = comparison
        .reports
        .chunk_by(|a, b| a.title == b.title)
        .collect();
    if let Some(first) = parts.first() {
        write_protocols(out, comparison, first)?;
    }
    for part in &parts {
        writeln!(out)?;
        write_part(out, part)?;
    }
    for paragraph in words::paragraphs(comparison) {
        writeln!(out)?;
        write_wrapped(out, &paragraph)?;
    }
    Ok(())
}

/// Lines of at most this many characters.
const WIDTH: usize = 96;

fn write_wrapped(out: &mut String, text: &str) -> fmt::Result {
    let mut column = 0;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > WIDTH {
            writeln!(out)?;
            column = 0;
        }
        if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    writeln!(out)
}

fn write_protocols(out: &mut String, comparison: &Comparison, part: &[Report]) -> fmt::Result {
    let host = &part[0].host;
    writeln!(
        out,
        "Rounds: {}; each protocol in turn with the same requests (seed {}); client on {} x {}, Linux {}",
        comparison.rounds, part[0].setup.seed, host.cpus, host.cpu, host.kernel
    )?;
    for report in part {
        write!(
            out,
            "{}: to {}",
            name(report),
            report.setup.servers.join(", ")
        )?;
        for (name, value) in &report.setup.transport {
            write!(out, "; {name}: {value}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn write_part(out: &mut String, part: &[Report]) -> fmt::Result {
    write_what(out, &part[0])?;
    if part[0].digest.classes.len() > 1 {
        write_classes(out, part)?;
        writeln!(out)?;
    }
    head(out, "", part)?;
    write_rates(out, part)?;
    if part[0].digest.classes.len() <= 1 {
        write_round_trips(out, part)?;
    }
    write_effort(out, part)
}

fn write_what(out: &mut String, first: &Report) -> fmt::Result {
    let setup = &first.setup;
    let (shortest, longest) = setup.request_bytes;
    let title = capitalized(&first.title);
    if shortest == longest {
        write!(out, "{title}: requests of {longest} B, ")?;
    } else {
        write!(
            out,
            "{title} {}: requests of {shortest} to {longest} B, mean {:.0} B, ",
            setup.workload, setup.mean_request_bytes
        )?;
    }
    match first.totals.offered_gbps.zip(first.totals.offered_kops) {
        Some((gbps, kops)) => write!(
            out,
            "{} Gbit/s = {} Kops/s offered at random moments",
            digits(gbps),
            digits(kops)
        )?,
        None if setup.outstanding == 1 => write!(out, "one at a time")?,
        None => write!(out, "{} at a time", setup.outstanding)?,
    }
    writeln!(
        out,
        "; responses: {}; {:.1} s measured for each",
        setup.response, first.totals.measured_s
    )
}

/// A line for each tenth of the messages.
fn write_classes(out: &mut String, part: &[Report]) -> fmt::Result {
    writeln!(
        out,
        "Latency in us, from when a request was due until its response was there:"
    )?;
    let compared = part.len() == 2;
    write!(out, "{:<26}", "")?;
    for report in part {
        write!(out, "{:>22}", name(report))?;
    }
    if compared {
        write!(out, "{:>22}", ratio_name(part))?;
    }
    writeln!(out)?;
    write!(out, "{:<26}", "request")?;
    for _ in 0..part.len() + usize::from(compared) {
        write!(out, "{:>11}{:>11}", "p50", "p99")?;
    }
    writeln!(out)?;
    let mut shorter = 0.0;
    for row in 0..part[0].digest.classes.len() {
        let class = &part[0].digest.classes[row];
        let share = (class.cum_frac - shorter) * 100.0;
        shorter = class.cum_frac;
        let text = format!("up to {} B ({share:.0} %)", class.up_to_bytes);
        write_class(out, &text, part, |report| {
            report.digest.classes.get(row).map(|row| row.latency_us)
        })?;
    }
    write_class(out, "all", part, |report| {
        Some(report.digest.all.latency_us)
    })
}

fn write_class(
    out: &mut String,
    text: &str,
    part: &[Report],
    of: impl Fn(&Report) -> Option<Percentiles>,
) -> fmt::Result {
    write!(out, "{text:<26}")?;
    let none = Percentiles {
        p50: Quantile::TooFew,
        p99: Quantile::TooFew,
        p999: Quantile::TooFew,
    };
    let found: Vec<Percentiles> = part
        .iter()
        .map(|report| of(report).unwrap_or(none))
        .collect();
    for percentiles in &found {
        write!(out, "{:>11}{:>11}", percentiles.p50, percentiles.p99)?;
    }
    if let [one, other] = &found[..] {
        write!(
            out,
            "{:>11}{:>11}",
            ratio(other.p50, one.p50),
            ratio(other.p99, one.p99)
        )?;
    }
    writeln!(out)
}

fn write_rates(out: &mut String, part: &[Report]) -> fmt::Result {
    numbers(out, "RPCs, thousands a second", part, |report| {
        report.totals.achieved_kops
    })?;
    numbers(out, "goodput of requests, Gbit/s", part, |report| {
        report.totals.out_gbps
    })?;
    if part[0].setup.response != "echo" {
        numbers(out, "goodput of responses, Gbit/s", part, |report| {
            report.totals.in_gbps
        })?;
    }
    Ok(())
}

fn write_round_trips(out: &mut String, part: &[Report]) -> fmt::Result {
    // In an open loop the wait in the client counts.
    let open = part[0].totals.offered_kops.is_some();
    let (what, of): (_, fn(&Report) -> &Percentiles) = if open {
        ("latency from due", |report| &report.digest.all.latency_us)
    } else {
        ("round trip", |report| {
            &report.digest.all.latency_from_send_us
        })
    };
    quantiles(out, &format!("{what} p50, us"), part, |report| {
        of(report).p50
    })?;
    quantiles(out, &format!("{what} p99, us"), part, |report| {
        of(report).p99
    })?;
    quantiles(out, &format!("{what} p99.9, us"), part, |report| {
        of(report).p999
    })
}

fn write_effort(out: &mut String, part: &[Report]) -> fmt::Result {
    if part.iter().any(|report| report.totals.unfinished > 0) {
        line(out, "RPCs not finished", part, |report| {
            report.totals.unfinished.to_string()
        })?;
    }
    line(out, "sent again", part, words::sent_again)?;
    line(out, "client has work, % of the time", part, |report| {
        percent(report.totals.client_busy)
    })?;
    if part.iter().any(|report| Use::of(report).server.is_some()) {
        line(out, "server has work, % of the time", part, |report| {
            Use::of(report).server.map_or_else(|| "-".into(), percent)
        })?;
    }
    Ok(())
}

fn head(out: &mut String, text: &str, part: &[Report]) -> fmt::Result {
    write!(out, "{text:<TEXT$}")?;
    for report in part {
        write!(out, "{:>COLUMN$}", name(report))?;
    }
    if part.len() == 2 {
        write!(out, "{:>COLUMN$}", ratio_name(part))?;
    }
    writeln!(out)
}

fn line(
    out: &mut String,
    text: &str,
    part: &[Report],
    of: impl Fn(&Report) -> String,
) -> fmt::Result {
    write!(out, "{text:<TEXT$}")?;
    for report in part {
        write!(out, "{:>COLUMN$}", of(report))?;
    }
    writeln!(out)
}

fn numbers(
    out: &mut String,
    text: &str,
    part: &[Report],
    of: impl Fn(&Report) -> f64,
) -> fmt::Result {
    quantiles_shown(
        out,
        text,
        part,
        |report| Quantile::Value(of(report)),
        |report| digits(of(report)),
    )
}

fn quantiles(
    out: &mut String,
    text: &str,
    part: &[Report],
    of: impl Fn(&Report) -> Quantile,
) -> fmt::Result {
    quantiles_shown(out, text, part, &of, |report| of(report).to_string())
}

fn quantiles_shown(
    out: &mut String,
    text: &str,
    part: &[Report],
    of: impl Fn(&Report) -> Quantile,
    show: impl Fn(&Report) -> String,
) -> fmt::Result {
    write!(out, "{text:<TEXT$}")?;
    for report in part {
        write!(out, "{:>COLUMN$}", show(report))?;
    }
    if let [one, other] = part {
        write!(out, "{:>COLUMN$}", ratio(of(other), of(one)))?;
    }
    writeln!(out)
}

fn ratio(over: Quantile, under: Quantile) -> String {
    match (over, under) {
        (Quantile::Value(over), Quantile::Value(under)) if under > 0.0 => {
            format!("{:.2}", over / under)
        }
        _ => "-".into(),
    }
}

fn ratio_name(part: &[Report]) -> String {
    match part {
        [one, other] => format!("{}/{}", name(other), name(one)),
        _ => String::new(),
    }
}

/// Of the time; clocks are read one after the other, so it may be a little more
/// than all of it.
fn percent(share: f64) -> String {
    format!("{:.0}", share.min(1.0) * 100.0)
}

/// Three digits that count.
fn digits(value: f64) -> String {
    match value {
        value if value < 1.0 => format!("{value:.3}"),
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

fn capitalized(text: &str) -> String {
    let mut rest = text.chars();
    rest.next()
        .map(|first| first.to_uppercase().chain(rest).collect())
        .unwrap_or_default()
}

/// As people write it.
pub(super) fn name(report: &Report) -> &'static str {
    match report.setup.protocol {
        "homa" => "Homa",
        "tcp" => "TCP",
        other => other,
    }
}
