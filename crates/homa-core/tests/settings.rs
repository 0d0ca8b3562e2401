//! What follows from what a user says of the network (`docs/protocol.md` §5 to
//! §7, §18), and what cannot be.

#![allow(non_snake_case, reason = "test names are function__case")]

use homa_core::{
    Config, ConfigError, LARGEST_MESSAGE_BYTES, MILLISECOND_NS, STANDARD_MESSAGE_BYTES, Settings,
};

fn on(link_rate_bps: u64, rtt_ns: u64) -> Config {
    Config {
        link_rate_bps: Some(link_rate_bps),
        rtt_ns: Some(rtt_ns),
        ..Config::default()
    }
}

fn settings(config: &Config) -> Settings {
    config.settings().expect("what is possible")
}

const GBPS: u64 = 1_000_000_000;

#[test]
fn settings__defaults_are_those_of_the_module() {
    let s = settings(&Config::default());
    assert_eq!(s.unscheduled_bytes, 40_000);
    assert_eq!(s.max_incoming_bytes, 320_000, "8 times that");
    assert_eq!(s.window_bytes, None);
    assert_eq!((s.max_overcommit, s.priorities), (8, 8));
    assert_eq!((s.fifo_grant_bytes, s.pacer_fifo_permille), (50_000, 50));
    assert_eq!(s.resend_ns, 5 * MILLISECOND_NS);
    assert_eq!(s.resend_interval_ns, 5 * MILLISECOND_NS);
    assert_eq!(s.timeout_ns, 100 * MILLISECOND_NS);
    assert_eq!(s.request_ack_ns, 2 * MILLISECOND_NS);
    assert_eq!((s.max_link_usage_percent, s.pacer_bypass_bytes), (99, 1000));
    assert_eq!(s.max_message_bytes, STANDARD_MESSAGE_BYTES);
    assert_eq!((s.control_priority(), s.second_priority()), (7, 6));
}

/// §5: unscheduled = clamp(rate × RTT, 2 packets, 40,000).
#[test]
fn settings__unscheduled_bytes_are_a_round_trip() {
    assert_eq!(settings(&on(10 * GBPS, 20_000)).unscheduled_bytes, 25_000);
    assert_eq!(settings(&on(100 * GBPS, 20_000)).unscheduled_bytes, 40_000);
    assert_eq!(settings(&on(GBPS, 1_000)).unscheduled_bytes, 2 * 1424);
    let given = Config {
        unscheduled_bytes: Some(7),
        ..on(10 * GBPS, 20_000)
    };
    assert_eq!(settings(&given).unscheduled_bytes, 7);
}

/// §5: `max_incoming` = clamp(8 × unscheduled, 64 KB, 400,000), never above half of
/// a known switch buffer.
#[test]
fn settings__max_incoming_fits_into_the_switch() {
    let most = |config: &Config| settings(config).max_incoming_bytes;
    assert_eq!(most(&on(10 * GBPS, 20_000)), 200_000);
    assert_eq!(most(&on(GBPS, 1_000)), 64 << 10);
    let behind = |switch_buffer_bytes| Config {
        switch_buffer_bytes: Some(switch_buffer_bytes),
        ..on(10 * GBPS, 20_000)
    };
    assert_eq!(most(&behind(100_000)), 50_000);
    assert_eq!(most(&behind(1_000_000)), 200_000);
    assert_eq!(most(&behind(0)), 2 * 1424, "something must go");
    let given = Config {
        max_incoming_bytes: Some(1_000_000),
        ..behind(100_000)
    };
    assert_eq!(most(&given), 1_000_000, "explicit values win");
}

/// §7: RESEND after at least 4 × `max_incoming` ÷ rate; §14: a time-out leaves room
/// for three of them.
#[test]
fn settings__slow_links_are_given_time() {
    let slow = settings(&on(10_000_000, 1_000_000));
    assert_eq!(slow.max_incoming_bytes, 64 << 10);
    assert_eq!(slow.resend_ns, 4 * (64 << 10) * 8 * 100, "at 10 Mbit/s");
    assert_eq!(slow.timeout_ns, 4 * slow.resend_ns);
    assert!(slow.patience_ns >= slow.timeout_ns);
    let fast = settings(&on(10 * GBPS, 20_000));
    assert_eq!(fast.resend_ns, 5 * MILLISECOND_NS);
}

/// §6: max(5 µs, 2 packets, 2 × the lateness of timers), at most 1 ms.
#[test]
fn settings__backlog_covers_two_packets_and_late_timers() {
    let backlog = |config: &Config| settings(config).max_nic_backlog_ns;
    assert_eq!(backlog(&on(100 * GBPS, 10_000)), 5_000);
    assert_eq!(backlog(&on(GBPS, 10_000)), 2 * (1424 + 114) * 8);
    assert_eq!(backlog(&on(1_000_000, 10_000)), MILLISECOND_NS);
    let late = |timer_lateness_ns| Config {
        timer_lateness_ns,
        ..on(100 * GBPS, 10_000)
    };
    assert_eq!(backlog(&late(60_000)), 120_000);
    assert_eq!(backlog(&late(10 * MILLISECOND_NS)), MILLISECOND_NS);
}

/// §12: once per increment × 8 ÷ (fraction × rate).
#[test]
fn settings__fifo_grants_take_their_share() {
    let interval = |permille| {
        let config = Config {
            grant_fifo_permille: permille,
            ..on(10 * GBPS, 10_000)
        };
        settings(&config).fifo_grant_interval_ns
    };
    assert_eq!(interval(50), 800_000);
    assert_eq!(interval(500), 80_000);
}

/// §8.1: what is sent again is still remembered where it was finished.
#[test]
fn settings__patience_ends_before_the_memory_of_finished_rpcs() {
    for lifetime_ms in [200, 1000, 4000, 60_000] {
        let s = settings(&Config {
            duplicate_lifetime_ns: lifetime_ms * MILLISECOND_NS,
            ..Config::default()
        });
        assert_eq!(s.patience_ns, lifetime_ms * MILLISECOND_NS / 4 * 3);
        assert!(s.patience_ns < s.duplicate_lifetime_ns);
    }
}

#[test]
fn settings__what_cannot_be_is_named() {
    let error = |config: Config| config.settings().expect_err("it cannot be");
    let d = Config::default;
    for priorities in [0, 9] {
        let config = Config { priorities, ..d() };
        assert_eq!(error(config), ConfigError::Priorities(priorities));
    }
    for max_overcommit in [0, 9] {
        let config = Config {
            max_overcommit,
            ..d()
        };
        assert_eq!(error(config), ConfigError::Overcommit(max_overcommit));
    }
    for max_message_bytes in [0, LARGEST_MESSAGE_BYTES + 1] {
        let config = Config {
            max_message_bytes,
            ..d()
        };
        assert_eq!(error(config), ConfigError::MessageBytes(max_message_bytes));
    }
    let (given, least) = (1_999_999, 2_000_000);
    let config = Config {
        buffer_bytes: given,
        ..d()
    };
    assert_eq!(error(config), ConfigError::BufferBytes { given, least });
    let config = Config {
        grant_fifo_permille: 501,
        ..d()
    };
    let (field, most) = ("grant_fifo_permille", 500);
    assert_eq!(error(config), ConfigError::Share { field, most });
    for (config, field) in [
        (
            Config {
                link_rate_bps: Some(0),
                ..d()
            },
            "link_rate_bps",
        ),
        (
            Config {
                unscheduled_bytes: Some(0),
                ..d()
            },
            "unscheduled_bytes",
        ),
        (
            Config {
                window_bytes: Some(0),
                ..d()
            },
            "window_bytes",
        ),
        (
            Config {
                resend_interval_ns: Some(0),
                ..d()
            },
            "resend_interval_ns",
        ),
        (
            Config {
                timeout_ns: 0,
                ..d()
            },
            "timeout_ns",
        ),
        (Config { max_rpcs: 0, ..d() }, "max_rpcs"),
        (
            Config {
                max_peers: 0,
                ..d()
            },
            "max_peers",
        ),
    ] {
        assert_eq!(error(config), ConfigError::Zero { field });
    }
}

/// Whatever a user writes is an error or works; nothing overflows.
#[test]
fn settings__extremes_do_not_overflow() {
    let extreme = Config {
        link_rate_bps: Some(u64::MAX),
        rtt_ns: Some(u64::MAX),
        switch_buffer_bytes: Some(u64::MAX),
        unscheduled_bytes: Some(u32::MAX),
        max_incoming_bytes: Some(u32::MAX),
        window_bytes: Some(u32::MAX),
        fifo_grant_bytes: u32::MAX,
        resend_ns: Some(u64::MAX),
        resend_interval_ns: Some(u64::MAX),
        timeout_ns: u64::MAX,
        request_ack_ns: u64::MAX,
        duplicate_lifetime_ns: u64::MAX,
        max_nic_backlog_ns: Some(u64::MAX),
        timer_lateness_ns: u64::MAX,
        ..Config::default()
    };
    let s = settings(&extreme);
    assert_eq!(s.timeout_ns, u64::MAX);
    assert_eq!(s.reclaim_ns, u64::MAX);
}
