//! Byte-exact views of the packets, `docs/protocol.md` §2, §3 and §20. Every
//! field is big endian and has alignment one; fields named `zero*` are unused
//! on the wire and must be zero.

use zerocopy::network_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

macro_rules! layouts {
    ($($(#[$doc:meta])* $name:ident = $bytes:literal { $($field:ident : $ty:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
        #[repr(C)]
        pub(crate) struct $name { $(pub(crate) $field: $ty),* }
        const _: () = assert!(size_of::<$name>() == $bytes);
    )*};
}

layouts! {
    /// In front of every packet.
    Common = 28 {
        source_port: U16,
        destination_port: U16,
        sequence: U32,
        zero: [u8; 3],
        packet_type: u8,
        doff: u8,
        flags: u8,
        window: U16,
        checksum: U16,
        urgent: U16,
        sender_id: U64,
    }
    /// DATA, after the common header.
    Data = 28 {
        message_length: U32,
        incoming: U32,
        ack_client_id: U64,
        ack_server_port: U16,
        cutoff_version: U16,
        retransmit: u8,
        response_limit_log2: u8,
        message_flags: u8,
        zero: u8,
        segment_offset: U32,
    }
    /// GRANT, after the common header.
    Grant = 5 { offset: U32, priority: u8 }
    /// RESEND, after the common header.
    Resend = 9 { offset: U32, length: U32, priority: u8 }
    /// CUTOFFS, after the common header.
    Cutoffs = 34 { cutoffs: [U32; 8], version: U16 }
    /// One further RPC acknowledged by an ACK.
    AckEntry = 10 { client_id: U64, server_port: U16 }
    /// ACK, after the common header.
    Ack = 52 { count: U16, entries: [AckEntry; 5] }
    /// ABORT, after the common header.
    Abort = 1 { code: u8 }
    /// The trailer by which endpoints of this project know each other.
    Trailer = 16 {
        magic: [u8; 4],
        version: u8,
        features: u8,
        zero: U16,
        instance: U64,
    }
}
