//! The report as text: fixed columns, units in the headers.

use std::fmt::{self, Write};

use super::Report;
use crate::quantile::{Percentiles, Quantile};
use crate::recorder::Row;

/// The whole text, ending in a line feed.
pub(super) fn render(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = write_all(&mut text, report);
    text
}

/// One line, ending in a line feed.
pub(super) fn render_line(report: &Report) -> String {
    let (totals, send) = (&report.totals, &report.digest.all.latency_from_send_us);
    let mut line = format!(
        "{} {:<10} {:>7} B x {:<3} {:9.2} Kops/s {:8.3} Gbit/s out {:8.3} Gbit/s in, round trip (us): p50 {:>7} p99 {:>7} p99.9 {:>7}",
        report.setup.protocol,
        report.title,
        report.setup.request_bytes.1,
        report.setup.outstanding,
        totals.achieved_kops,
        totals.out_gbps,
        totals.in_gbps,
        send.p50,
        send.p99,
        send.p999,
    );
    if report.end != "complete" {
        line.push_str(", ");
        line.push_str(report.end);
    }
    line.push('\n');
    for note in &report.notes {
        line.push_str("note: ");
        line.push_str(note);
        line.push('\n');
    }
    line
}

fn write_all(out: &mut String, report: &Report) -> fmt::Result {
    write_setup(out, report)?;
    write_totals(out, report)?;
    write_rows(out, report)?;
    for note in &report.notes {
        writeln!(out, "note: {note}")?;
    }
    if report.end == "interrupted" {
        writeln!(
            out,
            "note: interrupted; the window ended {:.2} s after it began",
            report.totals.measured_s
        )?;
    }
    if let Some(error) = &report.error {
        writeln!(
            out,
            "failed after {:.2} s of measurement: {error}",
            report.totals.measured_s
        )?;
    }
    Ok(())
}

fn write_setup(out: &mut String, report: &Report) -> fmt::Result {
    let setup = &report.setup;
    let (shortest, longest) = setup.request_bytes;
    if !report.title.is_empty() {
        writeln!(out, "== {} ==", report.title)?;
    }
    write!(out, "{} to {}", setup.protocol, setup.servers.join(", "))?;
    for (name, value) in &setup.transport {
        write!(out, "; {name}: {value}")?;
    }
    writeln!(out)?;
    if shortest == longest {
        writeln!(out, "requests {longest} B, responses {}", setup.response)?;
    } else {
        writeln!(
            out,
            "workload {}: {} lengths, {shortest} to {longest} B, mean {:.0} B; responses {}",
            setup.workload, setup.lengths, setup.mean_request_bytes, setup.response
        )?;
    }
    match report.totals.offered_gbps.zip(report.totals.offered_kops) {
        Some((gbps, kops)) => writeln!(
            out,
            "open loop, Poisson: {gbps:.3} Gbit/s of request payload = {kops:.3} Kops/s; at most {} outstanding; seed {}",
            setup.outstanding, setup.seed
        )?,
        None => writeln!(
            out,
            "closed loop, {} outstanding; seed {}",
            setup.outstanding, setup.seed
        )?,
    }
    writeln!(
        out,
        "warm-up {} s, measured {:.2} s; spin {} us; client on {} x {}, Linux {}",
        setup.warmup_s,
        report.totals.measured_s,
        setup.spin_us,
        report.host.cpus,
        report.host.cpu,
        report.host.kernel
    )?;
    writeln!(out)
}

fn write_totals(out: &mut String, report: &Report) -> fmt::Result {
    let totals = &report.totals;
    writeln!(
        out,
        "achieved {:.3} Kops/s, {:.3} Gbit/s out, {:.3} Gbit/s in; {} RPCs finished, {} unfinished{}",
        totals.achieved_kops,
        totals.out_gbps,
        totals.in_gbps,
        totals.finished,
        totals.unfinished,
        totals
            .client_cores
            .map_or_else(String::new, |cores| format!(
                "; client used {cores:.2} cores"
            )),
    )?;
    if let Some(spread) = &report.digest.spread {
        writeln!(
            out,
            "latency from due (us): min {:.1}, mean {:.1}, max {:.1}; mean wait before send {:.1}",
            spread.min_us, spread.mean_us, spread.max_us, spread.mean_wait_us
        )?;
    }
    let send = &report.digest.all.latency_from_send_us;
    writeln!(
        out,
        "round trip from send (us): p50 {}, p99 {}, p99.9 {}",
        send.p50, send.p99, send.p999
    )?;
    if let Some(mean) = report.digest.all.slowdown_ideal_mean {
        writeln!(out, "mean slowdown over ideal: {mean:.2}")?;
    }
    writeln!(out)
}

fn write_rows(out: &mut String, report: &Report) -> fmt::Result {
    let ideal = &report.setup.ideal;
    writeln!(
        out,
        "Latency is from due to complete. Slowdown A: over {} us + 8 x length / {} Gbit/s.",
        ideal.base_us, ideal.link_gbps
    )?;
    match &report.unloaded {
        None => writeln!(out, "Slowdown B: no unloaded baseline was measured.")?,
        Some(points) => {
            write!(
                out,
                "Slowdown B: over the unloaded median measured before (us):"
            )?;
            for point in points {
                write!(out, " {} B {:.1}", point.size_bytes, point.p50_us)?;
            }
            writeln!(out)?;
        }
    }
    writeln!(
        out,
        "{:>9} {:>6} {:>9} {:>6} | {:^26} | {:^23} | {:^23}",
        "length", "cum.", "samples", "unfin.", "latency (us)", "slowdown A", "slowdown B"
    )?;
    let head = format!("{:>7} {:>7} {:>7}", "p50", "p99", "p99.9");
    writeln!(
        out,
        "{:>9} {:>6} {:>9} {:>6} | {:>8} {:>8} {:>8} | {head} | {head}",
        "<= (B)", "frac.", "", "", "p50", "p99", "p99.9"
    )?;
    for row in &report.digest.classes {
        write_row(out, &row.up_to_bytes.to_string(), row)?;
    }
    if report.digest.classes.len() > 1 {
        write_row(out, "all", &report.digest.all)?;
    }
    Ok(())
}

fn write_row(out: &mut String, length: &str, row: &Row) -> fmt::Result {
    let three = |p: &Percentiles, width: usize| {
        format!("{:>width$} {:>width$} {:>width$}", p.p50, p.p99, p.p999)
    };
    let none = Percentiles {
        p50: Quantile::TooFew,
        p99: Quantile::TooFew,
        p999: Quantile::TooFew,
    };
    writeln!(
        out,
        "{length:>9} {:>6.3} {:>9} {:>6} | {} | {} | {}",
        row.cum_frac,
        row.samples,
        row.unfinished,
        three(&row.latency_us, 8),
        three(&row.slowdown_ideal, 7),
        three(row.slowdown_unloaded.as_ref().unwrap_or(&none), 7),
    )
}
