//! How numbers are written as JSON.

use serde::Serializer;

/// A number, the text `inf`, or null where it is not known.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
pub(super) fn number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() {
        serializer.serialize_f64((value * 1e4).round() / 1e4)
    } else if value.is_nan() {
        serializer.serialize_none()
    } else {
        serializer.serialize_str("inf")
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
pub(super) fn hexadecimal<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{value:016x}"))
}
