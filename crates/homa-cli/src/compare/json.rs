//! The findings as JSON, with everything that was measured and how.

use homa_bench::host::Host;
use homa_bench::quantile::Quantile;
use serde_json::{Value, json};

use super::findings::{Findings, RowFindings};
use super::setup::Setup;

/// The whole text.
pub(super) fn render(setup: &Setup, findings: &Findings) -> String {
    let rows: serde_json::Map<String, Value> = findings
        .rows
        .iter()
        .map(|found| (found.row.key.to_owned(), row(found)))
        .collect();
    let value = json!({
        "headline": findings.headline,
        "cpu_limited": !findings.cpu_limits.is_empty(),
        "cpu_limits": findings.cpu_limits,
        "loaded": findings.loaded,
        "remarks": findings.remarks,
        "rows": rows,
        "slowdown": {
            "ideal": findings.ideal,
            "unloaded": findings.unloaded,
        },
        "setup": {
            "command": setup.command,
            "version": env!("CARGO_PKG_VERSION"),
            "machine": Host::here(),
            "scheduling": setup.scheduling.words(),
            "hosts": setup.hosts,
            "rate_bps": setup.rate_bps,
            "buffer_bytes": setup.buffer_bytes,
            "mtu": setup.mtu,
            "load": setup.load,
            "workload": setup.workload.name(),
            "max_message": setup.max_message,
            "rpcs_per_s": setup.rpcs_per_s,
            "seed": setup.seed,
            "rounds": setup.rounds,
            "rounds_repeated": findings.repeated,
            "warmup_s": setup.warmup.as_secs_f64(),
            "duration_s": setup.duration.as_secs_f64(),
            "drain_s": setup.drain.as_secs_f64(),
        },
    });
    format!("{value:#}\n")
}

fn row(found: &RowFindings) -> Value {
    let (short, large) = (found.short(), found.large());
    json!({
        "name": found.row.name,
        "carrier": found.row.carrier,
        "details": found.details,
        "short_us": short.latency_us,
        "short_samples": short.samples,
        "large_us": large.latency_us,
        "large_samples": large.samples,
        "digest": found.digest,
        "unloaded": found.unloaded,
        "goodput_bps": found.goodput_bps,
        "carried": found.carried,
        "drops": found.drops,
        "backlog_peak_bytes": found.backlog_peak,
        "backlog_mean_bytes": found.backlog_mean,
        "sent_again_bytes": found.sent_again_bytes,
        "sent_again": found.sent_again,
        "bytes_by_priority": found.by_priority,
        "idle": found.idle,
        "stolen": found.stolen,
        "lateness_p99_us": match found.lateness_p99_us {
            Quantile::Value(us) => json!(us),
            _ => Value::Null,
        },
        "failed": found.failed,
        "first_failure": found.first_failure,
    })
}
