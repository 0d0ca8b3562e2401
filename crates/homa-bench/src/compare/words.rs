//! What a comparison shows and what it does not, in words.

use std::net::{IpAddr, SocketAddr};

use super::table::name;
use super::{Comparison, Use};
use crate::report::Report;

/// A thread that has work for more of the time than this cannot do much more.
const LIMIT_BUSY: f64 = 0.85;

/// Others may use this share of the processors before it is said.
const OTHERS_QUIET: f64 = 0.1;

/// Text to be shown below the tables.
pub(super) fn paragraphs(comparison: &Comparison) -> Vec<String> {
    let mut text = Vec::new();
    if comparison.reports.is_empty() {
        text.push("Nothing was measured.".into());
    } else if comparison
        .reports
        .chunk_by(|a, b| a.title == b.title)
        .any(|part| part.len() == 2)
    {
        text.push(
            "Ratios: above 1.00 TCP has more; of latencies that is worse, of rates better.".into(),
        );
    }
    text.extend(faults(&comparison.reports));
    text.extend(processors(&comparison.reports));
    text.extend(notes(comparison));
    if comparison.reports.iter().any(over_loopback) {
        text.push(LOOPBACK.into());
    }
    text
}

const LOOPBACK: &str = "Over loopback this shows what the software costs, and how messages of \
different length get into each other's way in the two ends. There is no switch here, no queue in a \
network and no link that could be full, so it shows nothing of what Homa is for: short messages \
that stay fast in a congested network. `homa sim` simulates such a network, and `homa bench HOST` \
measures a real one. Kernel TCP does its work inside the sender's and the receiver's system calls; \
Homa here does it in the two processes.";

/// Faults on purpose are made in Homa's datapath; TCP has none.
fn faults(reports: &[Report]) -> Option<String> {
    let faulty = |report: &Report| {
        report
            .setup
            .transport
            .iter()
            .any(|(name, _)| name == "faults")
    };
    let is_tcp = |report: &Report| report.setup.protocol == "tcp";
    (reports.iter().any(faulty) && reports.iter().any(is_tcp)).then(|| {
        "Packets of Homa were damaged on purpose, those of TCP were not: this shows what Homa does about it, and compares nothing.".into()
    })
}

/// Who was the limit, and who else was there.
fn processors(reports: &[Report]) -> Vec<String> {
    let mut text = Vec::new();
    let mut limited = Vec::new();
    let mut asked = false;
    for report in reports {
        // One RPC at a time always leaves one end idle.
        if report.setup.outstanding == 1 {
            continue;
        }
        asked = true;
        let client = report.totals.client_busy;
        let server = Use::of(report).server.unwrap_or(0.0);
        if client.max(server) >= LIMIT_BUSY {
            let end = if client >= server { "client" } else { "server" };
            limited.push(format!("{} ({}, the {end})", name(report), report.title));
        }
    }
    if !limited.is_empty() {
        text.push(format!(
            "The processor was the limit of {}: client and server have one thread each.",
            limited.join(" and ")
        ));
    } else if asked {
        text.push("The processor was not the limit: both ends had time left.".into());
    }
    let others = reports
        .iter()
        .map(|report| Use::of(report).others)
        .fold(0.0, f64::max);
    let cpus = reports.first().map_or(1, |report| report.host.cpus);
    if others > OTHERS_QUIET * cpus as f64 {
        text.push(format!(
            "Other programs used up to {others:.1} of the {cpus} processors meanwhile: latencies, p99 above all, contain waiting for them. Repeat on a quiet machine."
        ));
    }
    text
}

/// Payload of Homa, segments of TCP.
pub(super) fn sent_again(report: &Report) -> String {
    let counter = |name: &str| report.counters.get(name).copied();
    if let Some(segments) = counter("host.tcp_retransmitted_segments") {
        return format!("{segments} segm.");
    }
    match counter("core.retransmitted_bytes") {
        None => "-".into(),
        Some(bytes) => {
            let server = counter("server.core.retransmitted_bytes").unwrap_or(0);
            format!("{} B", bytes + server)
        }
    }
}

fn notes(comparison: &Comparison) -> Vec<String> {
    let mut notes = Vec::new();
    for report in &comparison.reports {
        let which = format!("{}, {}", name(report), report.title);
        for note in &report.notes {
            notes.push(format!("note ({which}): {note}"));
        }
        match (&report.error, report.end) {
            (Some(error), _) => notes.push(format!("failed ({which}): {error}")),
            (None, "interrupted") => notes.push(format!(
                "note ({which}): interrupted; {:.2} s were measured",
                report.totals.measured_s
            )),
            _ => {}
        }
    }
    let told = comparison
        .reports
        .iter()
        .any(|report| report.error.is_some());
    if let (Some(error), false) = (&comparison.error, told) {
        notes.push(format!(
            "failed in round {}: {error}",
            comparison.rounds.max(1)
        ));
    }
    if comparison.end == "interrupted" {
        notes.push(format!(
            "interrupted in round {} of {}",
            comparison.rounds.max(1),
            comparison.rounds_planned
        ));
    }
    notes
}

fn over_loopback(report: &Report) -> bool {
    report.setup.servers.iter().any(|server| {
        server
            .parse::<SocketAddr>()
            .is_ok_and(|address| match address.ip() {
                IpAddr::V4(ip) => ip.is_loopback(),
                IpAddr::V6(ip) => ip.is_loopback(),
            })
    })
}
