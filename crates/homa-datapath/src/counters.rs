//! The one list of counters that every datapath feeds and every view reads.
//!
//! [`Counters`] is a snapshot: plain numbers, iterable by name. The living
//! cells are atomics with relaxed order: each is right by itself, and a
//! snapshot taken while packets move may be a packet apart between two cells.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$attribute:meta])* $name:ident: $help:literal,)+) => {
        /// A snapshot of a datapath's counters; what does not apply to a
        /// datapath stays 0.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counters {
            $(#[doc = $help] pub $name: u64,)+
        }

        impl Counters {
            /// Every counter as (name, help, value), in a fixed order.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$((stringify!($name), $help, self.$name),)+].into_iter()
            }

            /// The sum of two snapshots, cell by cell.
            #[must_use]
            pub fn plus(&self, other: &Self) -> Self {
                Self { $($name: self.$name.wrapping_add(other.$name),)+ }
            }
        }

        /// The living cells behind [`Counters`].
        #[derive(Debug, Default)]
        pub(crate) struct CounterCells {
            $(pub(crate) $name: Cell,)+
        }

        impl CounterCells {
            pub(crate) fn snapshot(&self) -> Counters {
                Counters { $($name: self.$name.get(),)+ }
            }
        }
    };
}

/// One counter.
#[derive(Debug, Default)]
pub(crate) struct Cell(AtomicU64);

impl Cell {
    pub(crate) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    pub(crate) fn increment(&self) {
        self.add(1);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

counters! {
    tx_packets: "Homa packets handed to the kernel or queue",
    tx_bytes: "bytes of Homa packets handed to the kernel or queue",
    tx_syscalls: "system calls made to send",
    tx_super_packets: "sends that carried more than one packet (UDP GSO)",
    tx_gso_fallbacks: "groups sent packet by packet because the kernel or device refused UDP GSO",
    tx_gso_too_big: "groups sent packet by packet because their packets exceed the path MTU",
    tx_would_block: "calls of send that left packets because a buffer or queue was full",
    tx_no_buffers: "calls of send that left packets because the kernel answered ENOBUFS",
    tx_pending_errors: "socket errors of earlier packets that were met, and retried, when sending",
    tx_dropped_too_big: "packets dropped: longer than can be sent (EMSGSIZE)",
    tx_dropped_unreachable: "packets dropped: no route, or the host does not answer",
    tx_dropped_forbidden: "packets dropped: a local rule forbids them (EPERM, EACCES)",
    tx_dropped_bad_address: "packets dropped: no socket of that family, or a source that is not ours",
    tx_dropped_other: "packets dropped: any other error",
    rx_packets: "Homa packets received",
    rx_bytes: "bytes of Homa packets received",
    rx_syscalls: "system calls made to receive",
    rx_super_packets: "receives that carried more than one packet (UDP GRO)",
    rx_kernel_drops: "packets that the kernel dropped because the socket's receive buffer was full",
    rx_truncated: "received messages dropped because they did not fit the buffer",
    rx_malformed: "received messages dropped because of a bad IP header or sender address",
    rx_pending_errors: "socket errors of earlier packets that were met, and retried, when receiving",
    icmp_port_closed: "ICMP: port unreachable",
    icmp_protocol_unsupported: "ICMP: protocol unreachable or unknown next header",
    icmp_host_unreachable: "ICMP: destination unreachable for any other reason",
    icmp_packet_too_big: "ICMP: fragmentation needed or packet too big",
    icmp_other: "ICMP errors of other types, ignored",
    errors_lost: "errors about own sends not reported because too many waited",
    icmp_answers: "ICMP port unreachable sent in answer to a packet",
    icmp_answers_limited: "ICMP port unreachable not sent: rate limit",
    icmp_answers_failed: "ICMP port unreachable not sent: the kernel refused it",
    mtu_lookups: "questions to the kernel about a path's MTU",
    tap_recorded: "packets written to the capture",
    tap_record_failures: "packets not written to the capture because of an I/O error",
    tap_tx_lost: "packets dropped on purpose when sending",
    tap_tx_duplicated: "packets sent twice on purpose",
    tap_tx_reordered: "packets held back on purpose when sending so that later ones overtake",
    tap_tx_delayed: "packets delayed on purpose when sending",
    tap_tx_corrupted: "packets with bits flipped on purpose when sending",
    tap_rx_lost: "packets dropped on purpose when receiving",
    tap_rx_duplicated: "packets delivered twice on purpose",
    tap_rx_reordered: "packets held back on purpose when receiving so that later ones overtake",
    tap_rx_delayed: "packets delayed on purpose when receiving",
    tap_rx_corrupted: "packets with bits flipped on purpose when receiving",
    tap_overflow: "packets that a full queue of held packets did not delay or duplicate",
}
