//! Classes of message sizes: tenths of the messages, shortest first.

use crate::workload::Workload;

/// Messages longer than the class before, up to `up_to_bytes`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeClass {
    /// Longest message of the class, in bytes.
    pub up_to_bytes: u32,
    /// Fraction of messages in this and the shorter classes.
    pub cumulative: f64,
}

/// The classes of a workload: at most ten, fewer where one size makes up more
/// than a tenth.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeClasses(Vec<SizeClass>);

impl SizeClasses {
    /// The deciles of the workload's messages (not of its bytes).
    pub fn deciles(workload: &Workload) -> Self {
        let mut classes: Vec<SizeClass> = Vec::new();
        for tenth in 1..=10 {
            // A little less than the tenth, so that rounding in a file does
            // not push a boundary to the next size.
            let up_to_bytes = workload.quantile_bytes(f64::from(tenth) / 10.0 - 1e-9);
            if classes
                .last()
                .is_none_or(|last| last.up_to_bytes < up_to_bytes)
            {
                classes.push(SizeClass {
                    up_to_bytes,
                    cumulative: workload.fraction_up_to(up_to_bytes),
                });
            }
        }
        Self(classes)
    }

    /// Shortest first.
    pub fn as_slice(&self) -> &[SizeClass] {
        &self.0
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn deciles__cover_the_workload() {
        for name in ["w1", "w2", "w3", "w4", "w5"] {
            let workload = Workload::parse(name).unwrap().clamped(8, 1_000_000);
            let classes = SizeClasses::deciles(&workload);
            let last = classes.as_slice().last().unwrap();
            assert_eq!(last.up_to_bytes, workload.max_bytes());
            assert!((last.cumulative - 1.0).abs() < 1e-12);
            assert!((5..=10).contains(&classes.as_slice().len()));
        }
    }

    #[test]
    fn deciles__one_size_is_one_class() {
        let classes = SizeClasses::deciles(&Workload::fixed(100).unwrap());
        assert_eq!(
            classes.as_slice(),
            [SizeClass {
                up_to_bytes: 100,
                cumulative: 1.0
            }]
        );
    }
}
