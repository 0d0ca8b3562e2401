//! What the processors of this machine did.

use std::fs;

use super::CompareError;

/// Clock ticks of all processors since the start of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticks {
    total: u64,
    idle: u64,
    stolen: u64,
}

/// Shares of the time between two looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub(super) struct Shares {
    /// Nothing to do but what the spinners do, which run when nobody else
    /// wants to and are "nice" for that reason.
    pub(super) idle: f64,
    /// Taken by the hypervisor for other machines.
    pub(super) stolen: f64,
}

impl Ticks {
    /// Looks.
    pub(super) fn now() -> Result<Self, CompareError> {
        let text = fs::read_to_string("/proc/stat")?;
        Self::parse(&text)
            .ok_or_else(|| CompareError::Failed("/proc/stat has no line of all processors".into()))
    }

    /// user, nice, system, idle, iowait, irq, softirq, steal.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let fields: Vec<u64> = line
            .split_whitespace()
            .map_while(|field| field.parse().ok())
            .collect();
        let [_, nice, _, idle, iowait, _, _, stolen] = *fields.get(..8)? else {
            return None;
        };
        Some(Self {
            total: fields.iter().take(8).sum(),
            idle: nice + idle + iowait,
            stolen,
        })
    }

    /// What happened since an earlier look.
    pub(super) fn since(self, before: Self) -> Shares {
        let total = self.total.saturating_sub(before.total).max(1) as f64;
        Shares {
            idle: self.idle.saturating_sub(before.idle) as f64 / total,
            stolen: self.stolen.saturating_sub(before.stolen) as f64 / total,
        }
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn since__shares_of_the_time_between() {
        let before = Ticks::parse("cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 1").unwrap();
        let after = Ticks::parse("cpu  20 10 25 30 5 0 5 5 0 0\n").unwrap();
        let shares = after.since(before);
        assert!((shares.idle - 0.45).abs() < 1e-9);
        assert!((shares.stolen - 0.05).abs() < 1e-9);
        assert_eq!(Ticks::parse("cpu 1 2 3"), None);
        assert!(Ticks::now().is_ok());
    }
}
