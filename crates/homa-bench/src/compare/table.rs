//! A comparison as one table for people who have never seen either protocol's
//! numbers: what was done, a column a transport, the unit in each line.

use std::fmt::{self, Write};

use super::Comparison;
use crate::quantile::Quantile;
use crate::report::Report;

/// Width of the text before the columns, and of a column.
const TEXT: usize = 58;
const COLUMN: usize = 10;

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
    let (short, workloads): (Vec<&[Report]>, Vec<&[Report]>) = parts
        .into_iter()
        .partition(|part| part[0].setup.request_bytes.0 == part[0].setup.request_bytes.1);
    if let Some(first) = short.first() {
        head(out, "", first)?;
        for part in short {
            write_short(out, part)?;
        }
    }
    for part in workloads {
        writeln!(out)?;
        write_workload(out, part)?;
    }
    let notes = notes(comparison);
    if !notes.is_empty() {
        writeln!(out)?;
        for note in notes {
            writeln!(out, "{note}")?;
        }
    }
    Ok(())
}

fn head(out: &mut String, text: &str, part: &[Report]) -> fmt::Result {
    write!(out, "{text:<TEXT$}")?;
    for report in part {
        write!(out, "{:>COLUMN$}", name(report))?;
    }
    writeln!(out)
}

fn line(out: &mut String, text: &str, values: impl Iterator<Item = String>) -> fmt::Result {
    write!(out, "{text:<TEXT$}")?;
    for value in values {
        write!(out, "{value:>COLUMN$}")?;
    }
    writeln!(out)
}

/// Messages of one length.
fn write_short(out: &mut String, part: &[Report]) -> fmt::Result {
    let setup = &part[0].setup;
    let length = setup.request_bytes.1;
    let what = match setup.offered_rpcs_per_s {
        Some(rate) => format!("RPCs of {length} B, {:.1} thousand a second", rate / 1e3),
        None if setup.outstanding == 1 => format!("one RPC of {length} B at a time"),
        None => format!("{} RPCs of {length} B at a time", setup.outstanding),
    };
    let rtt = |of: fn(&Report) -> Quantile| part.iter().map(move |report| us(of(report)));
    let p50 = |report: &Report| report.digest.all.latency_from_send_us.p50;
    let p99 = |report: &Report| report.digest.all.latency_from_send_us.p99;
    if setup.outstanding > 1 {
        if length >= 10_000 {
            line(
                out,
                &format!("{what}: Gbit/s each way"),
                part.iter().map(|r| format!("{:.2}", r.totals.out_gbps)),
            )?;
        } else {
            line(
                out,
                &format!("{what}: thousand RPCs/s"),
                part.iter()
                    .map(|r| format!("{:.1}", r.totals.achieved_kops)),
            )?;
        }
        return line(out, "    round trip, 99 % are below (us)", rtt(p99));
    }
    line(out, &format!("{what}: round trip, median (us)"), rtt(p50))?;
    line(out, "    99 % are below (us)", rtt(p99))
}

/// Messages of many lengths: a line for each tenth of them.
fn write_workload(out: &mut String, part: &[Report]) -> fmt::Result {
    let setup = &part[0].setup;
    let totals = &part[0].totals;
    let load = match totals.offered_gbps.zip(totals.offered_kops) {
        Some((gbps, kops)) => {
            format!("{gbps:.2} Gbit/s of requests ({kops:.2} thousand a second, at random moments)")
        }
        None => format!("{} RPCs at a time", setup.outstanding),
    };
    writeln!(
        out,
        "Workload {}: requests of {} to {} B, mean {:.0} B, {load}; responses: {}.",
        setup.workload,
        setup.request_bytes.0,
        setup.request_bytes.1,
        setup.mean_request_bytes,
        setup.response
    )?;
    writeln!(
        out,
        "Time from when a request was due until its response was there (us):"
    )?;
    write!(out, "{:<30}", "")?;
    for report in part {
        write!(out, "{:>24}", name(report))?;
    }
    writeln!(out)?;
    write!(out, "{:<30}", "requests")?;
    for _ in part {
        write!(out, "{:>12}{:>12}", "median", "99 % below")?;
    }
    writeln!(out)?;
    let mut shorter = 0.0;
    for row in 0..part[0].digest.classes.len() {
        let class = &part[0].digest.classes[row];
        let share = (class.cum_frac - shorter) * 100.0;
        shorter = class.cum_frac;
        let text = format!("up to {} B ({share:.0} %)", class.up_to_bytes);
        write_row(out, &text, part, |report| {
            report.digest.classes.get(row).map(|row| &row.latency_us)
        })?;
    }
    write_row(out, "all", part, |report| {
        Some(&report.digest.all.latency_us)
    })
}

fn write_row<'a>(
    out: &mut String,
    text: &str,
    part: &'a [Report],
    of: impl Fn(&'a Report) -> Option<&'a crate::quantile::Percentiles>,
) -> fmt::Result {
    write!(out, "{text:<30}")?;
    for report in part {
        let (p50, p99) = of(report).map_or((Quantile::TooFew, Quantile::TooFew), |percentiles| {
            (percentiles.p50, percentiles.p99)
        });
        write!(out, "{:>12}{:>12}", us(p50), us(p99))?;
    }
    writeln!(out)
}

fn name(report: &Report) -> &'static str {
    match report.setup.protocol {
        "homa" => "Homa",
        "tcp" => "TCP",
        other => other,
    }
}

fn us(quantile: Quantile) -> String {
    quantile.to_string()
}

fn notes(comparison: &Comparison) -> Vec<String> {
    let mut notes = Vec::new();
    for report in &comparison.reports {
        let which = format!("{}, {}", name(report), report.title);
        for note in &report.notes {
            notes.push(format!("note ({which}): {note}"));
        }
        if report.end == "interrupted" {
            notes.push(format!("note ({which}): interrupted here"));
        }
        if let Some(error) = &report.error {
            notes.push(format!("failed ({which}): {error}"));
        }
    }
    notes
}
