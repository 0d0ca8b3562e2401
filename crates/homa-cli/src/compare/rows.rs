//! The rows: what is compared.

use homa_bench::node::talk::Carrier;
use homa_bench::tcp::DEFAULT_CONNECTIONS;

use super::arguments::{self, Arguments};

/// RPCs with shorter requests are urgent where TCP has priorities.
pub(super) const URGENT_BELOW: u32 = 10_000;

/// What the software of both ends adds to a round trip, about, µs.
const SOFTWARE_US: u64 = 150;

/// How long a full packet takes on a link, µs.
fn packet_us(mtu: u32, link_bps: u64) -> u64 {
    u64::from(mtu) * 8 * 1_000_000 / link_bps.max(1)
}

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    /// In JSON.
    pub(super) key: &'static str,
    /// For people.
    pub(super) name: &'static str,
    /// What carries its RPCs.
    pub(super) carrier: Carrier,
}

/// The row that the others are held against: plain TCP.
pub(super) const TCP: &str = "tcp";
/// TCP as an operator can make it today.
pub(super) const TCP_PRIORITY: &str = "tcp_prio";
/// Homa with all that it has.
pub(super) const HOMA: &str = "homa";
/// Homa on switches without priorities.
pub(super) const HOMA_ONE: &str = "homa_one_priority";

/// The rows that the options ask for, in the order of the table.
pub(super) fn rows(arguments: &Arguments, link_bps: u64) -> Vec<Row> {
    let tcp = |key, name, urgent_below| Row {
        key,
        name,
        carrier: Carrier::Tcp {
            connections: DEFAULT_CONNECTIONS.get(),
            congestion: arguments.cc.clone(),
            urgent_below,
        },
    };
    if arguments.tcp_against_itself {
        return vec![tcp(TCP, "TCP", 0), tcp(HOMA, "TCP again", 0)];
    }
    let homa = |key, name, priorities| Row {
        key,
        name,
        carrier: Carrier::Homa {
            raw: arguments.datapath == arguments::Carrier::Raw,
            priorities,
            link_bps,
            rtt_us: 2 * packet_us(arguments.mtu, link_bps) + SOFTWARE_US,
            buffer_bytes: arguments.buffer.into(),
        },
    };
    vec![
        tcp(TCP, "TCP", 0),
        homa(HOMA, "Homa", 8),
        tcp(TCP_PRIORITY, "TCP, short first", URGENT_BELOW),
        homa(HOMA_ONE, "Homa, 1 priority", 1),
    ]
}
