//! A number that may be missing.

use crate::number::Unit;

/// A measured number with the count of samples behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// `None`: the samples are too few to say. Infinite: it falls among what
    /// never finished. NaN counts as `None`.
    pub value: Option<f64>,
    /// How many samples.
    pub samples: u64,
}

impl Measured {
    /// A number.
    pub fn of(value: f64, samples: u64) -> Self {
        Self {
            value: Some(value),
            samples,
        }
    }

    /// Too few samples to say.
    pub fn too_few(samples: u64) -> Self {
        Self {
            value: None,
            samples,
        }
    }

    /// The number unless it is missing; perhaps infinite, never NaN.
    pub(crate) fn known(self) -> Option<f64> {
        self.value.filter(|value| !value.is_nan())
    }

    /// Beside the unit, or why not.
    pub(crate) fn text(self, unit: Unit) -> String {
        self.known()
            .map_or_else(|| self.why_missing(), |value| unit.text(value))
    }

    /// To stand where a number would.
    pub(crate) fn why_missing(self) -> String {
        format!(
            "not enough samples (n={})",
            crate::number::count(self.samples)
        )
    }
}
