//! The five distributions as the simulations of SIGCOMM 2018 used them.
//!
//! They differ from the built-in `w1` … `w5`, which are those of the Linux
//! benchmark: short sizes are not merged, nothing is capped, and W5 is counted
//! in packets. A size that appears twice is one point.

use crate::{Point, Workload, WorkloadError, csv};

/// Payload of a packet by which W5's sizes are multiplied, in bytes: an
/// Ethernet frame of 1500 without IPv4, UDP and 30 bytes of Homa.
pub const W5_PACKET_BYTES: u32 = 1442;

/// The first point may be a size that nobody has.
const TEXTS: [&str; 5] = [
    include_str!("../../../workloads/w1_sim2018.csv"),
    include_str!("../../../workloads/w2_sim2018.csv"),
    include_str!("../../../workloads/w3_sim2018.csv"),
    include_str!("../../../workloads/w4_sim2018.csv"),
    include_str!("../../../workloads/w5_sim2018.csv"),
];

/// Workload `number`, 1 to 5.
pub fn sim2018(number: u8) -> Result<Workload, WorkloadError> {
    let name = format!("w{number}_sim2018");
    let text = usize::from(number)
        .checked_sub(1)
        .and_then(|index| TEXTS.get(index))
        .ok_or_else(|| WorkloadError::Unknown { spec: name.clone() })?;
    let unit_bytes = if number == 5 { W5_PACKET_BYTES } else { 1 };
    let mut points: Vec<Point> = Vec::new();
    for (index, line) in text.lines().enumerate().skip(1) {
        let mut point = csv::parse_line(line, index + 1).map_err(|source| WorkloadError::Csv {
            path: name.clone(),
            source,
        })?;
        point.size_bytes *= unit_bytes;
        match points.last_mut() {
            Some(last) if last.size_bytes == point.size_bytes => {
                last.cumulative = point.cumulative;
            }
            None if point.cumulative <= 0.0 => {}
            _ => points.push(point),
        }
    }
    if let Some(last) = points.last_mut() {
        last.cumulative = 1.0;
    }
    Ok(Workload { name, points })
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn sim2018__published_means() {
        // The means that the files of the simulator state.
        for (number, mean) in [
            (1, 187.77),
            (2, 440.79),
            (3, 2927.35),
            (4, 127_796.6),
            (5, 1744.7 * f64::from(W5_PACKET_BYTES)),
        ] {
            let workload = sim2018(number).unwrap();
            let found = workload.mean_bytes();
            assert!((found / mean - 1.0).abs() < 0.01, "w{number}: {found}");
        }
    }

    #[test]
    fn sim2018__points_rise() {
        for number in 1..=5 {
            let workload = sim2018(number).unwrap();
            for pair in workload.points().windows(2) {
                assert!(pair[0].size_bytes < pair[1].size_bytes, "w{number}");
                assert!(pair[0].cumulative < pair[1].cumulative, "w{number}");
            }
        }
        assert_eq!(sim2018(5).unwrap().points()[0].size_bytes, W5_PACKET_BYTES);
    }

    #[test]
    fn sim2018__there_are_five() {
        assert!(matches!(sim2018(0), Err(WorkloadError::Unknown { .. })));
        assert!(matches!(sim2018(6), Err(WorkloadError::Unknown { .. })));
    }
}
