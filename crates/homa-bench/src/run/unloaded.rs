//! The unloaded baseline: one RPC at a time, size by size.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use super::Setup;
use crate::arrivals::Arrival;
use crate::baseline::{Unloaded, UnloadedPoint};
use crate::classes::SizeClasses;
use crate::driver::Driver;
use crate::error::BenchError;
use crate::quantile::{Quantile, quantile};
use crate::stop::Stop;
use crate::transport::PeerIndex;

/// A baseline point ends early after this time, if it has some samples.
const UNLOADED_POINT_TIME: Duration = Duration::from_millis(700);
const UNLOADED_MIN_SAMPLES: usize = 10;

/// One RPC at a time for the shortest size and the upper end of each class.
pub(super) fn measure_unloaded(
    driver: &mut Driver<'_>,
    setup: &Setup,
    classes: &SizeClasses,
    peers: NonZeroUsize,
    stop: &Stop,
) -> Result<Option<Unloaded>, BenchError> {
    if setup.unloaded_rpcs == 0 {
        return Ok(None);
    }
    let shortest = setup
        .workload
        .points()
        .first()
        .map(|point| point.size_bytes);
    let mut sizes: Vec<u32> = classes
        .as_slice()
        .iter()
        .map(|class| class.up_to_bytes)
        .collect();
    sizes.extend(shortest);
    sizes.sort_unstable();
    sizes.dedup();
    let mut points = Vec::new();
    for size_bytes in sizes {
        let mut rtts_us = Vec::new();
        let begin = Instant::now();
        // The first tenth warms caches and connections up.
        let discarded = setup.unloaded_rpcs / 10;
        for round in 0..setup.unloaded_rpcs + discarded {
            let enough = rtts_us.len() >= UNLOADED_MIN_SAMPLES.min(setup.unloaded_rpcs);
            if stop.requested() || (enough && begin.elapsed() > UNLOADED_POINT_TIME) {
                break;
            }
            let rtt = one_rpc(driver, size_bytes, PeerIndex(round % peers), stop)?;
            if round >= discarded {
                rtts_us.extend(rtt.map(|rtt| rtt.as_nanos() as f64 / 1e3));
            }
        }
        if let Quantile::Value(p50_us) = quantile(&mut rtts_us, 0, 0.5, 1) {
            points.push(UnloadedPoint {
                size_bytes,
                p50_us,
                samples: rtts_us.len() as u64,
            });
        }
    }
    Ok(Unloaded::new(points))
}

/// The round trip of one RPC; nothing if it failed or was stopped.
fn one_rpc(
    driver: &mut Driver<'_>,
    size_bytes: u32,
    peer: PeerIndex,
    stop: &Stop,
) -> Result<Option<Duration>, BenchError> {
    let intended = Instant::now();
    driver.start(Arrival {
        intended,
        size_bytes,
        peer,
    })?;
    let mut rtt = None;
    while driver.outstanding() > 0 && !stop.requested() {
        driver.step(Instant::now() + Duration::from_secs(1), |ended| {
            rtt = ended
                .result
                .ok()
                .map(|()| ended.at.saturating_duration_since(ended.sent));
        })?;
    }
    Ok(rtt)
}
