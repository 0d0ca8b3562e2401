//! The counters of an engine and of what is below it, in one list.

use homa_engine::Stats;

/// `engine.…`, `core.…` and `datapath.…`, in a fixed order.
pub(super) fn list(stats: &Stats) -> Vec<(String, u64)> {
    let mut counters: Vec<(String, u64)> = stats
        .engine
        .iter()
        .map(|(name, value)| (format!("engine.{name}"), value))
        .collect();
    stats.core.each(|name, of, value| {
        let name = match of {
            Some(of) => format!("core.{name}.{of}"),
            None => format!("core.{name}"),
        };
        counters.push((name, value));
    });
    counters.extend(
        stats
            .datapath
            .iter()
            .map(|(name, _, value)| (format!("datapath.{name}"), value)),
    );
    counters
}
