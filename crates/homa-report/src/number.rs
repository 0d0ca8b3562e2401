//! Numbers with units, as people write them: 12.3 µs, 1 MB, 9.41 Gbit/s.

/// What a number counts. Decimal prefixes throughout: 1 kB is 1000 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Microseconds; shown as ns, µs, ms or s.
    Microseconds,
    /// Bytes; shown as B to TB.
    Bytes,
    /// Gigabits per second; shown as bit/s to Tbit/s.
    GbitPerS,
    /// A share of 1; shown in percent.
    Share,
    /// A number without unit, a slowdown for example.
    Plain,
}

/// One form of a unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prefix {
    /// How many of the unit one of these is.
    pub(crate) factor: f64,
    pub(crate) name: &'static str,
}

const fn prefix(factor: f64, name: &'static str) -> Prefix {
    Prefix { factor, name }
}

const MICROSECONDS: [Prefix; 4] = [
    prefix(1e-3, "ns"),
    prefix(1.0, "µs"),
    prefix(1e3, "ms"),
    prefix(1e6, "s"),
];
const BYTES: [Prefix; 5] = [
    prefix(1.0, "B"),
    prefix(1e3, "kB"),
    prefix(1e6, "MB"),
    prefix(1e9, "GB"),
    prefix(1e12, "TB"),
];
const GBIT_PER_S: [Prefix; 5] = [
    prefix(1e-9, "bit/s"),
    prefix(1e-6, "kbit/s"),
    prefix(1e-3, "Mbit/s"),
    prefix(1.0, "Gbit/s"),
    prefix(1e3, "Tbit/s"),
];
const SHARE: [Prefix; 1] = [prefix(0.01, "%")];
const PLAIN: [Prefix; 1] = [prefix(1.0, "")];

/// From here to the next prefix, three digits would round up to 1000.
const ROUNDS_UP: f64 = 0.9995;

impl Unit {
    fn prefixes(self) -> &'static [Prefix] {
        match self {
            Self::Microseconds => &MICROSECONDS,
            Self::Bytes => &BYTES,
            Self::GbitPerS => &GBIT_PER_S,
            Self::Share => &SHARE,
            Self::Plain => &PLAIN,
        }
    }

    /// The form in which a number of this size is shown.
    pub(crate) fn prefix_for(self, value: f64) -> Prefix {
        let prefixes = self.prefixes();
        let fits = |prefix: &&Prefix| value.abs() >= prefix.factor * ROUNDS_UP;
        let smallest = prefixes.first().copied().unwrap_or(prefix(1.0, ""));
        prefixes
            .iter()
            .rev()
            .find(fits)
            .copied()
            .unwrap_or(smallest)
    }

    /// Three digits and the unit.
    pub(crate) fn text(self, value: f64) -> String {
        let prefix = self.prefix_for(value);
        with_unit(&digits(value / prefix.factor), prefix)
    }

    /// The same without zeros at the end: for sizes and ticks.
    pub(crate) fn short(self, value: f64) -> String {
        let prefix = self.prefix_for(value);
        let digits = digits(value / prefix.factor);
        with_unit(without_zeros(&digits), prefix)
    }
}

/// A space that does not break lines stands before the unit.
fn with_unit(digits: &str, prefix: Prefix) -> String {
    let wordless = prefix.name.is_empty() || !digits.contains(|c: char| c.is_ascii_digit());
    if wordless {
        digits.to_owned()
    } else {
        format!("{digits}\u{a0}{}", prefix.name)
    }
}

/// Three digits, all of them in front of the point if there are more.
fn digits(value: f64) -> String {
    let size = value.abs();
    if value.is_nan() {
        "none".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "∞" } else { "−∞" }.to_owned()
    } else if value == 0.0 {
        "0".to_owned()
    } else if !(1e-3..1e7).contains(&size) {
        format!("{value:.1e}")
    } else if size >= 999.5 {
        grouped(&format!("{value:.0}"))
    } else {
        // The first of the three digits is before the point or behind it.
        let decimals = if size >= 99.95 {
            0
        } else if size >= 9.995 {
            1
        } else if size >= 0.9995 {
            2
        } else {
            3
        };
        format!("{value:.decimals$}")
    }
}

fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') && !digits.contains('e') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    }
}

/// 1234567 as 1,234,567.
pub(crate) fn count(value: u64) -> String {
    grouped(&value.to_string())
}

fn grouped(digits: &str) -> String {
    let mut text = String::new();
    let length = digits.len();
    for (index, c) in digits.chars().enumerate() {
        let behind = length - index;
        let first = text.is_empty() || text == "-";
        if behind.is_multiple_of(3) && !first {
            text.push(',');
        }
        text.push(c);
    }
    text
}

/// How many times one number is another, for a table.
pub(crate) fn times(ratio: f64) -> String {
    let digits = digits(ratio);
    format!("{}×", without_zeros(&digits))
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn text__three_digits_and_the_unit_that_fits() {
        for (unit, value, expected) in [
            (Unit::Microseconds, 12.345, "12.3 µs"),
            (Unit::Microseconds, 0.25, "250 ns"),
            (Unit::Microseconds, 999.9, "1.00 ms"),
            (Unit::Microseconds, 2.5e6, "2.50 s"),
            (Unit::Bytes, 1460.0, "1.46 kB"),
            (Unit::Bytes, 0.0, "0 B"),
            (Unit::GbitPerS, 9.413, "9.41 Gbit/s"),
            (Unit::GbitPerS, 0.0253, "25.3 Mbit/s"),
            (Unit::Share, 0.801, "80.1 %"),
            (Unit::Plain, 2.287, "2.29"),
            (Unit::Plain, 12_345.6, "12,346"),
            (Unit::Plain, -1234.0, "-1,234"),
            (Unit::Plain, -123.0, "-123"),
            (Unit::Plain, 1e9, "1.0e9"),
            (Unit::Microseconds, f64::INFINITY, "∞"),
            (Unit::Microseconds, f64::NAN, "none"),
        ] {
            assert_eq!(unit.text(value).replace('\u{a0}', " "), expected);
        }
    }

    #[test]
    fn short__has_no_zeros_at_the_end() {
        for (unit, value, expected) in [
            (Unit::Bytes, 1e6, "1 MB"),
            (Unit::Bytes, 100.0, "100 B"),
            (Unit::Bytes, 9_728_000.0, "9.73 MB"),
            (Unit::Share, 0.001, "0.1 %"),
            (Unit::Plain, 20.0, "20"),
        ] {
            assert_eq!(unit.short(value).replace('\u{a0}', " "), expected);
        }
    }

    #[test]
    fn count__in_groups_of_three() {
        assert_eq!(count(7), "7");
        assert_eq!(count(123), "123");
        assert_eq!(count(1_234_567), "1,234,567");
    }

    #[test]
    fn times__of_a_ratio() {
        assert_eq!(times(15.0), "15×");
        assert_eq!(times(0.312), "0.312×");
    }
}
