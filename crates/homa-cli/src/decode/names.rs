//! Words for values that are numbers on the wire.

use homa_wire::{AbortCode, Features};

pub(crate) fn abort_code(code: AbortCode) -> &'static str {
    match code {
        AbortCode::Refused => "refused",
        AbortCode::Dropped => "dropped",
        AbortCode::Cancelled => "cancelled",
        AbortCode::TooLarge => "too large",
        AbortCode::PortClosed => "port closed",
        AbortCode::ShuttingDown => "shutting down",
        AbortCode::Stale => "stale",
        AbortCode::Other(_) => "unknown",
    }
}

const FEATURES: [(Features, &str); 5] = [
    (Features::RESPONSE_LIMIT, "response-limit"),
    (Features::CHECKSUM, "checksum"),
    (Features::LARGE_MESSAGES, "large-messages"),
    (Features::ONE_WAY, "one-way"),
    (Features::ABORT, "abort"),
];

/// The names of the features in the set; unknown ones as one number.
pub(crate) fn features(features: Features) -> Vec<String> {
    let mut names: Vec<String> = FEATURES
        .iter()
        .filter(|(feature, _)| features.contains(*feature))
        .map(|(_, name)| (*name).to_owned())
        .collect();
    let known = FEATURES
        .iter()
        .fold(0, |known, (feature, _)| known | feature.0);
    if features.0 & !known != 0 {
        names.push(format!("{:#04x}", features.0 & !known));
    }
    names
}
