//! What the processors of this machine did.

use homa_bench::host::Ticks;

use super::CompareError;

/// Shares of the time between two looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub(super) struct Shares {
    /// Nothing to do but what the spinners do, which run when nobody else
    /// wants to and are "nice" for that reason.
    pub(super) idle: f64,
    /// Taken by the hypervisor for other machines.
    pub(super) stolen: f64,
}

/// Looks.
pub(super) fn ticks() -> Result<Ticks, CompareError> {
    Ticks::now()
        .ok_or_else(|| CompareError::Failed("/proc/stat has no line of all processors".into()))
}

impl Shares {
    /// What happened between two looks.
    pub(super) fn between(before: Ticks, after: Ticks) -> Self {
        let total = after.total.saturating_sub(before.total).max(1) as f64;
        let idle = |ticks: Ticks| ticks.idle + ticks.nice;
        Self {
            idle: idle(after).saturating_sub(idle(before)) as f64 / total,
            stolen: after.stolen.saturating_sub(before.stolen) as f64 / total,
        }
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn between__shares_of_the_time() {
        let before = Ticks {
            total: 0,
            idle: 0,
            nice: 0,
            stolen: 0,
        };
        let after = Ticks {
            total: 100,
            idle: 35,
            nice: 10,
            stolen: 5,
        };
        let shares = Shares::between(before, after);
        assert!((shares.idle - 0.45).abs() < 1e-9);
        assert!((shares.stolen - 0.05).abs() < 1e-9);
        assert!(ticks().is_ok());
    }
}
