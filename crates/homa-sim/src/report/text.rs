//! The report as a table.

use std::fmt;

use super::Report;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let homa = &self.protocols.homa;
        writeln!(
            f,
            "{}, load {}, {} s measured after {} s, {} seed(s)",
            self.scenario,
            self.load,
            self.measure_s,
            self.warm_up_s,
            self.runs.len()
        )?;
        writeln!(
            f,
            "Slowdown by message size; what was published is in brackets.\n"
        )?;
        writeln!(
            f,
            "{:>10} {:>10} {:>7} {:>16} {:>16} {:>17}",
            "up to (B)", "messages", "cum. %", "mean", "p50", "p99"
        )?;
        for row in &homa.slowdown.by_size {
            let found = &row.found;
            write!(
                f,
                "{:>10} {:>10} {:>7.2}",
                found.up_to_bytes,
                found.messages,
                100.0 * found.cumulative
            )?;
            let published = row.published;
            pair(f, 7, found.mean, published.map(|row| row.mean))?;
            pair(f, 7, found.p50, published.map(|row| row.p50))?;
            pair(f, 8, found.p99, published.map(|row| row.p99))?;
            writeln!(f)?;
        }
        writeln!(f)?;
        for (name, value, published) in [
            (
                "mean",
                homa.slowdown.mean,
                self.published.map(|published| published.mean),
            ),
            (
                "p99, shorter half",
                homa.slowdown.p99_short_half,
                self.published.map(|published| published.p99_short_half),
            ),
            (
                "p99, any size",
                homa.slowdown.p99_any,
                self.published.map(|published| published.p99_any),
            ),
        ] {
            write!(f, "{name:<18}")?;
            pair(f, 8, value, published)?;
            writeln!(f)?;
        }
        if let Some(spread) = homa.slowdown.spread {
            let [least, most] = spread.mean;
            write!(f, "over the seeds: mean {least:.3} to {most:.3}")?;
            if let Some([least, most]) = spread.p99_short_half {
                write!(f, ", p99 of the shorter half {least:.2} to {most:.2}")?;
            }
            writeln!(f)?;
        }
        writeln!(
            f,
            "p99 of the shorter half {} µs, of messages beyond 99 % {} µs",
            known(homa.short_p99_us, 1),
            known(homa.large_p99_us, 1)
        )?;
        writeln!(
            f,
            "messages {}, unfinished {}",
            homa.slowdown.messages, homa.slowdown.unfinished
        )?;
        let refused: u64 = self.runs.iter().map(|run| run.refused).sum();
        if refused > 0 {
            writeln!(
                f,
                "REFUSED {refused}: the core had no room, do not use this run"
            )?;
        }
        for run in &self.runs {
            writeln!(
                f,
                "seed {}: trace {:016x}, links used {:.3}, most waiting {} B, virtual {:.4} s, CPU {:.2} s",
                run.seed,
                run.trace_hash,
                run.link_use,
                run.most_waiting_bytes,
                run.virtual_s,
                run.cpu_s
            )?;
        }
        write!(
            f,
            "{:.2} million packet hops per second of CPU",
            self.packet_hops_per_s / 1e6
        )
    }
}

fn pair(
    f: &mut fmt::Formatter<'_>,
    width: usize,
    found: f64,
    published: Option<f64>,
) -> fmt::Result {
    write!(f, " {:>width$}", known(found, 2))?;
    match published {
        Some(value) => write!(f, " {:>8}", format!("({value:.2})")),
        None => write!(f, " {:>8}", ""),
    }
}

/// With so many decimals, or a dash.
fn known(value: f64, decimals: usize) -> String {
    if value.is_nan() {
        return "-".to_owned();
    }
    format!("{value:.decimals$}")
}
