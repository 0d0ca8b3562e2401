//! Axes: which range they show, where their ticks are, and where a value is.

use crate::number::Unit;

/// Numbers nearer to 0 or farther from it are drawn as if they were here, so
/// that no range overflows.
const SMALLEST: f64 = 1e-150;
const LARGEST: f64 = 1e150;

/// Labels on a logarithmic axis at most.
const MOST_DECADES: f64 = 8.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Linear,
    Log,
}

/// A labelled place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) text: String,
}

/// A range with ticks.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    /// Lowest first, all within the range.
    pub(crate) ticks: Vec<Tick>,
    /// Between the ticks, without labels.
    pub(crate) minor: Vec<f64>,
    /// The unit of all ticks, if they have one in common and leave it to the
    /// title.
    pub(crate) unit_name: &'static str,
}

impl Axis {
    /// Logarithmic, around the values that are finite and above 0.
    pub(crate) fn log(values: impl IntoIterator<Item = f64>, unit: Unit) -> Self {
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for value in values {
            if value.is_finite() && value > 0.0 {
                low = low.min(value);
                high = high.max(value);
            }
        }
        if high == 0.0 {
            (low, high) = (1.0, 10.0);
        }
        let low = step_down(low.clamp(SMALLEST, LARGEST));
        let mut high = step_up(high.clamp(SMALLEST, LARGEST));
        if high <= low {
            high = step_up(low * 1.5);
        }
        let decades = (high / low).log10();
        let first = low.log10().floor() as i32;
        let last = high.log10().ceil() as i32;
        let every = (decades / MOST_DECADES).ceil().max(1.0) as i32;
        let factors: &[f64] = if decades <= 0.8 {
            &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0]
        } else if decades <= 2.2 {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0]
        };
        let within = |at: &f64| (low * 0.999_999..=high * 1.000_001).contains(at);
        let ticks = (first..=last)
            .filter(|decade| decade.rem_euclid(every) == 0)
            .flat_map(|decade| factors.iter().map(move |f| f * 10.0_f64.powi(decade)))
            .filter(within)
            .map(|at| Tick {
                at,
                text: unit.short(at),
            })
            .collect();
        let minor = if decades <= 5.0 {
            (first..=last)
                .flat_map(|decade| (1..10).map(move |f| f64::from(f) * 10.0_f64.powi(decade)))
                .filter(within)
                .collect()
        } else {
            Vec::new()
        };
        Self {
            scale: Scale::Log,
            low,
            high,
            ticks,
            minor,
            unit_name: "",
        }
    }

    /// From 0 (or the lowest value below it) to the largest finite value.
    pub(crate) fn linear(values: impl IntoIterator<Item = f64>, unit: Unit) -> Self {
        Self::linear_between(values.into_iter().chain([0.0]), unit)
    }

    /// From the lowest to the largest finite value.
    pub(crate) fn linear_between(values: impl IntoIterator<Item = f64>, unit: Unit) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            if value.is_finite() {
                low = low.min(value.clamp(-LARGEST, LARGEST));
                high = high.max(value.clamp(-LARGEST, LARGEST));
            }
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        let prefix = unit.prefix_for(low.abs().max(high.abs()));
        let mut step = nice_step((high - low) / 5.0);
        // A range too narrow to be counted in steps: widen it.
        if step <= (low.abs().max(high.abs()) * 1e-12).max(SMALLEST) {
            let around = low.abs().max(high.abs());
            step = if around > SMALLEST {
                nice_step(around / 5.0)
            } else {
                prefix.factor
            };
        }
        let mut first = (low / step + 1e-9).floor();
        let mut last = (high / step - 1e-9).ceil();
        if last <= first {
            first = first.min((low / step).floor());
            last = first + 1.0;
        }
        let steps = ((last - first) as u32).min(50);
        let decimals = decimals(step / prefix.factor);
        let ticks = (0..=steps)
            .map(|index| {
                let at = (first + f64::from(index)) * step;
                Tick {
                    at,
                    text: tick_text(at / prefix.factor, decimals),
                }
            })
            .collect();
        Self {
            scale: Scale::Linear,
            low: first * step,
            high: last * step,
            ticks,
            minor: Vec::new(),
            unit_name: prefix.name,
        }
    }

    /// Where a value is, from 0 (lowest) to 1; beyond the range it is at the
    /// edge. Nothing for NaN.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        if value.is_nan() {
            return None;
        }
        let value = value.clamp(self.low, self.high);
        let place = match self.scale {
            Scale::Linear => {
                // Halves, since the range itself may overflow.
                (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0)
            }
            Scale::Log => (value / self.low).log10() / (self.high / self.low).log10(),
        };
        place.is_finite().then(|| place.clamp(0.0, 1.0))
    }
}

fn tick_text(value: f64, decimals: usize) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".to_owned()
    } else if (1e-4..1e7).contains(&size) {
        format!("{value:.decimals$}")
    } else {
        format!("{value:.1e}")
    }
}

/// Digits behind the point that a step needs.
fn decimals(step: f64) -> usize {
    (0..6_i32)
        .find(|digits| {
            let scaled = step * 10.0_f64.powi(*digits);
            (scaled - scaled.round()).abs() < 1e-6 * scaled
        })
        .map_or(6, |digits| digits as usize)
}

/// The power of ten at or below a positive number.
fn decade(value: f64) -> f64 {
    10.0_f64.powi((value.log10() + 1e-9).floor() as i32)
}

/// 1, 2 or 5 times a power of ten, at or below.
fn step_down(value: f64) -> f64 {
    let decade = decade(value);
    let steps = [5.0, 2.0, 1.0].into_iter();
    steps
        .map(|step| step * decade)
        .find(|step| *step <= value * (1.0 + 1e-9))
        .unwrap_or(decade)
}

/// The same, at or above.
fn step_up(value: f64) -> f64 {
    let decade = decade(value);
    let steps = [1.0, 2.0, 5.0, 10.0].into_iter();
    steps
        .map(|step| step * decade)
        .find(|step| *step >= value * (1.0 - 1e-9))
        .unwrap_or(decade)
}

/// 1, 2, 2.5 or 5 times a power of ten, at or above.
fn nice_step(value: f64) -> f64 {
    if !value.is_finite() || value <= SMALLEST {
        return 0.0;
    }
    let decade = decade(value);
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter();
    steps
        .map(|step| step * decade)
        .find(|step| *step >= value * (1.0 - 1e-9))
        .unwrap_or(decade)
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> String {
        let texts: Vec<&str> = axis.ticks.iter().map(|tick| &*tick.text).collect();
        texts.join("|").replace('\u{a0}', " ")
    }

    #[test]
    fn log__ticks_for_given_ranges() {
        for (values, unit, expected) in [
            (vec![1.05, 31.0], Unit::Plain, "1|2|5|10|20|50"),
            (vec![1.0, 1.0], Unit::Plain, "1|1.5|2"),
            (vec![3.0], Unit::Plain, "2|3|5"),
            (vec![1.2, 4000.0], Unit::Plain, "1|10|100|1,000"),
            (
                vec![0.01, 1.0],
                Unit::Share,
                "1 %|2 %|5 %|10 %|20 %|50 %|100 %",
            ),
            (
                vec![8.0, 90_000.0],
                Unit::Microseconds,
                "10 µs|100 µs|1 ms|10 ms|100 ms",
            ),
            (vec![], Unit::Plain, "1|2|5|10"),
            (vec![-4.0, f64::NAN, f64::INFINITY], Unit::Plain, "1|2|5|10"),
        ] {
            let axis = Axis::log(values.clone(), unit);
            assert_eq!(labels(&axis), expected, "{values:?}");
        }
    }

    #[test]
    fn log__few_ticks_for_a_huge_range() {
        let axis = Axis::log([f64::MIN_POSITIVE, f64::MAX], Unit::Bytes);
        assert!((4..=10).contains(&axis.ticks.len()), "{:?}", axis.ticks);
        assert!(axis.minor.is_empty());
    }

    #[test]
    fn linear__ticks_for_given_ranges() {
        for (values, unit, expected, unit_name) in [
            (vec![93_000.0], Unit::Bytes, "0|20|40|60|80|100", "kB"),
            (vec![0.81], Unit::Share, "0|20|40|60|80|100", "%"),
            (vec![9.4], Unit::GbitPerS, "0|2|4|6|8|10", "Gbit/s"),
            (
                vec![1200.0],
                Unit::Microseconds,
                "0.00|0.25|0.50|0.75|1.00|1.25",
                "ms",
            ),
            (vec![0.0], Unit::Bytes, "0|1", "B"),
            (vec![], Unit::Plain, "0|1", ""),
            (vec![-5.0, 5.0], Unit::Plain, "-6|-4|-2|0|2|4|6", ""),
        ] {
            let axis = Axis::linear(values.clone(), unit);
            let expected = expected.replace("0.00", "0");
            assert_eq!(labels(&axis), expected, "{values:?}");
            assert_eq!(axis.unit_name, unit_name, "{values:?}");
        }
    }

    #[test]
    fn linear_between__does_not_begin_at_zero() {
        let axis = Axis::linear_between([1e6, 1.4e6], Unit::Microseconds);
        assert_eq!(labels(&axis), "1.0|1.1|1.2|1.3|1.4");
    }

    #[test]
    fn place__ends_middle_and_beyond() {
        let near = |a: Option<f64>, b: f64| (a.unwrap() - b).abs() < 1e-9;
        let log = Axis::log([1.0, 100.0], Unit::Plain);
        assert!(near(log.place(10.0), 0.5));
        assert!(near(log.place(0.0), 0.0) && near(log.place(f64::INFINITY), 1.0));
        assert_eq!(log.place(f64::NAN), None);
        let linear = Axis::linear([10.0], Unit::Plain);
        assert!(near(linear.place(2.5), 0.25));
        assert!(near(linear.place(-1.0), 0.0) && near(linear.place(11.0), 1.0));
        let whole = Axis::linear([f64::MIN, f64::MAX], Unit::Plain);
        assert!(near(whole.place(0.0), 0.5));
    }
}
