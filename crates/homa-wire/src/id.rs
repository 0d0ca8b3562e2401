//! RPC identifiers: as this endpoint knows them, and as the sender of a packet
//! knows them (`docs/protocol.md` §2). They differ in the lowest bit, so they
//! are different types and only the two conversions here cross over.

use core::fmt;

/// An RPC id as *this* endpoint knows it: even where it is the client, odd
/// where it is the server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RpcId(pub u64);

/// An RPC id as the *sender* of a packet knows it: the `sender_id` field.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SenderId(pub u64);

impl RpcId {
    /// Whether this endpoint is the client of the RPC.
    pub const fn is_client(self) -> bool {
        self.0 & 1 == 0
    }

    /// The value to put into a packet that this endpoint sends.
    pub const fn to_sender(self) -> SenderId {
        SenderId(self.0)
    }
}

impl SenderId {
    /// The id by which the *receiver* of the packet knows the RPC.
    pub const fn to_local(self) -> RpcId {
        RpcId(self.0 ^ 1)
    }

    /// Whether the packet was sent by the client of its RPC.
    pub const fn from_client(self) -> bool {
        self.0 & 1 == 0
    }
}

impl fmt::Debug for RpcId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rpc {}", self.0)
    }
}

impl fmt::Debug for SenderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sender id {}", self.0)
    }
}

impl fmt::Display for RpcId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for SenderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
