//! When the NIC will be idle (`docs/protocol.md` §6, §13).
//!
//! An estimate from the bytes handed over and the link rate; the queue that it
//! keeps short is not visible. It owns one instant, nothing else.

use crate::config::Settings;
use crate::time::{SECOND_NS, Time};

/// Bytes on the wire around a Homa packet: Ethernet (14), IPv6 (40), and the
/// 24 of preamble, checksum and gap. IPv4 has fewer; the difference is less
/// than what `max_link_usage` leaves.
const FRAME_OVERHEAD_BYTES: u64 = 14 + 40 + 24;

pub(crate) struct Pacer {
    idle_at: Time,
    /// Bits per second that may be used, or 0 where nothing is paced.
    usable_bps: u64,
    max_backlog_ns: u64,
}

impl Pacer {
    pub(crate) fn new(settings: &Settings) -> Self {
        let mut pacer = Self {
            idle_at: Time::ZERO,
            usable_bps: 0,
            max_backlog_ns: 0,
        };
        pacer.configure(settings);
        pacer
    }

    pub(crate) fn configure(&mut self, settings: &Settings) {
        self.max_backlog_ns = settings.max_nic_backlog_ns;
        self.usable_bps = settings.link_rate_bps.map_or(0, |rate| {
            (rate / 100).max(1) * u64::from(settings.max_link_usage_percent)
        });
    }

    /// Whether more DATA may be sent now.
    pub(crate) fn is_open(&self, now: Time) -> bool {
        self.idle_at.since(now) <= self.max_backlog_ns
    }

    /// When it will be open again.
    pub(crate) fn open_at(&self) -> Time {
        Time::from_nanos(self.idle_at.as_nanos().saturating_sub(self.max_backlog_ns))
    }

    /// A packet was handed to the NIC.
    pub(crate) fn charge(&mut self, now: Time, packet_bytes: u64) {
        let wire_bits = 8 * (packet_bytes + FRAME_OVERHEAD_BYTES);
        if let Some(ns) = (wire_bits * SECOND_NS).checked_div(self.usable_bps) {
            self.idle_at = self.idle_at.max(now) + ns;
        }
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use crate::config::Config;

    fn pacer(rate_bps: Option<u64>) -> Pacer {
        let config = Config {
            link_rate_bps: rate_bps,
            rtt_ns: Some(10_000),
            ..Config::default()
        };
        Pacer::new(&config.settings().unwrap())
    }

    #[test]
    fn charge__follows_the_link_rate() {
        let mut pacer = pacer(Some(10_000_000_000));
        pacer.charge(Time::ZERO, 1480);
        // (1480 + 78) bytes at 9.9 Gbit/s.
        assert_eq!(pacer.idle_at, Time::from_nanos(1558 * 8 * 100 / 99 / 10));
    }

    #[test]
    fn is_open__until_the_backlog_is_exceeded() {
        let mut pacer = pacer(Some(10_000_000_000));
        let mut sent = 0;
        while pacer.is_open(Time::ZERO) {
            pacer.charge(Time::ZERO, 1480);
            sent += 1;
        }
        assert_eq!(sent, 4, "5 us at 10 Gbit/s and the packet that crosses it");
        assert!(pacer.open_at() > Time::ZERO);
        assert!(pacer.is_open(pacer.open_at()));
    }

    #[test]
    fn charge__an_unlimited_link_is_always_open() {
        let mut pacer = pacer(None);
        for _ in 0..1000 {
            pacer.charge(Time::ZERO, 9000);
        }
        assert!(pacer.is_open(Time::ZERO));
    }
}
