//! The published slowdowns of SIGCOMM 2018, to compare with.
//!
//! The paper's own plot data for Homa and for the SRPT oracle, at loads 0.5 and
//! 0.8, by workload and class of size (`data/sigcomm18.csv`).

/// One class of size of one curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedClass {
    /// Longest message of the class, in bytes.
    pub up_to_bytes: u32,
    /// Share of all messages that are in the class, in 1/100.
    pub count_percent: f64,
    /// Mean slowdown.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// A curve of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    /// Homa.
    Homa,
    /// The bound that the authors computed.
    SrptOracle,
}

impl Curve {
    fn name(self) -> &'static str {
        match self {
            Self::Homa => "Homa",
            Self::SrptOracle => "SRPT-Oracle",
        }
    }
}

const TEXT: &str = include_str!("../data/sigcomm18.csv");

/// The classes of a curve for workload `number` (1 to 5), shortest first;
/// none for a load that was not published.
pub fn classes(curve: Curve, number: u8, load: f64) -> Vec<PublishedClass> {
    let workload = format!("W{number}");
    let rows = TEXT.lines().skip(1).filter_map(|line| {
        let mut fields = line.split(',');
        let names_curve = fields.next()? == curve.name();
        let at: f64 = fields.next()?.parse().ok()?;
        let names_workload = fields.next()? == workload;
        let bytes: f64 = fields.next()?.parse().ok()?;
        let count_percent = fields.next()?.parse().ok()?;
        let mut numbers = fields.skip(2).map(str::parse::<f64>);
        let mut number = || numbers.next()?.ok();
        let class = PublishedClass {
            up_to_bytes: bytes.min(f64::from(u32::MAX)) as u32,
            count_percent,
            mean: number()?,
            p50: number()?,
            p99: number()?,
        };
        (names_curve && names_workload && (at - load).abs() < 1e-9).then_some(class)
    });
    let mut classes: Vec<PublishedClass> = rows.collect();
    classes.sort_by_key(|class| class.up_to_bytes);
    classes
}

/// The same three numbers as [`crate::slowdown::Summary`], of published classes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PublishedSummary {
    /// Mean, classes weighted by their messages.
    pub mean: f64,
    /// Largest 99th percentile among the shorter half.
    pub p99_short_half: f64,
    /// Largest 99th percentile.
    pub p99_any: f64,
}

/// Summarises published classes.
pub fn summary(classes: &[PublishedClass]) -> PublishedSummary {
    let total: f64 = classes.iter().map(|class| class.count_percent).sum();
    let mut summary = PublishedSummary::default();
    let mut before = 0.0;
    for class in classes {
        summary.mean += class.mean * class.count_percent / total;
        if before < 0.5 * total {
            summary.p99_short_half = summary.p99_short_half.max(class.p99);
        }
        summary.p99_any = summary.p99_any.max(class.p99);
        before += class.count_percent;
    }
    summary
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn summary__the_numbers_of_the_paper() {
        for (number, mean, short, any) in [
            (1, 1.38, 2.01, 25.8),
            (2, 1.43, 2.00, 15.9),
            (3, 1.46, 2.22, 22.6),
            (4, 1.49, 2.29, 25.6),
            (5, 1.73, 1.56, 17.5),
        ] {
            let found = summary(&classes(Curve::Homa, number, 0.8));
            assert!((found.mean - mean).abs() < 0.006, "W{number} {found:?}");
            assert!(
                (found.p99_short_half - short).abs() < 0.006,
                "W{number} {found:?}"
            );
            assert!((found.p99_any - any).abs() < 0.06, "W{number} {found:?}");
        }
    }

    #[test]
    fn classes__none_for_other_loads() {
        assert!(classes(Curve::Homa, 4, 0.7).is_empty());
        assert!(classes(Curve::SrptOracle, 6, 0.8).is_empty());
        assert!(!classes(Curve::SrptOracle, 1, 0.5).is_empty());
    }
}
