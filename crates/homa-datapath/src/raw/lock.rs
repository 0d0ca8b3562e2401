//! One raw endpoint a network namespace.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::BindError;

/// The name whose owner owns raw Homa. Abstract unix names belong to the
/// network namespace and vanish with the process, however it ends. Anyone in
/// the namespace can take the name: a local user can keep raw Homa from
/// starting, but not more.
const NAME: &[u8] = b"homa/raw-ip-146";

/// The lock, until dropped.
pub(super) struct NamespaceLock {
    _socket: UnixDatagram,
}

impl NamespaceLock {
    pub(super) fn take() -> Result<Self, BindError> {
        let system = |source| BindError::System {
            call: "taking the lock of raw IP",
            source,
        };
        let address = SocketAddr::from_abstract_name(NAME).map_err(system)?;
        match UnixDatagram::bind_addr(&address) {
            Ok(socket) => Ok(Self { _socket: socket }),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(BindError::RawOwned),
            Err(error) => Err(system(error)),
        }
    }
}
