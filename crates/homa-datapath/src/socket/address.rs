//! Socket addresses as the kernel has them.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Room for a socket address of either family.
///
/// Invariant: all bytes are initialised, as every constructor starts from the
/// longer variant.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) union Name {
    v6: libc::sockaddr_in6,
    v4: libc::sockaddr_in,
}

impl Default for Name {
    fn default() -> Self {
        Self {
            v6: libc::sockaddr_in6 {
                sin6_family: libc::AF_UNSPEC as libc::sa_family_t,
                sin6_port: 0,
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: [0; 16] },
                sin6_scope_id: 0,
            },
        }
    }
}

impl Name {
    /// The address in the kernel's form, and its length in bytes.
    pub(crate) fn of(address: &SocketAddr) -> (Self, libc::socklen_t) {
        let mut name = Self::default();
        let length = name.set(address);
        (name, length)
    }

    /// Overwrites the address and returns its length in bytes.
    pub(crate) fn set(&mut self, address: &SocketAddr) -> libc::socklen_t {
        match address {
            SocketAddr::V4(address) => {
                self.v4 = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: address.port().to_be(),
                    sin_addr: libc::in_addr {
                        s_addr: u32::from_ne_bytes(address.ip().octets()),
                    },
                    sin_zero: [0; 8],
                };
                size_of::<libc::sockaddr_in>() as libc::socklen_t
            }
            SocketAddr::V6(address) => {
                self.v6 = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: address.port().to_be(),
                    sin6_flowinfo: 0,
                    sin6_addr: libc::in6_addr {
                        s6_addr: address.ip().octets(),
                    },
                    sin6_scope_id: address.scope_id(),
                };
                size_of::<libc::sockaddr_in6>() as libc::socklen_t
            }
        }
    }

    /// The address that the kernel wrote, `length` bytes of it.
    pub(crate) fn address(&self, length: libc::socklen_t) -> Option<SocketAddr> {
        let length = length as usize;
        // SAFETY: all bytes are initialised and any bits are a valid
        // `sockaddr_in6`, which is plain integers; the family is at the same
        // place in both variants.
        let v6 = unsafe { self.v6 };
        match libc::c_int::from(v6.sin6_family) {
            libc::AF_INET if length >= size_of::<libc::sockaddr_in>() => {
                // SAFETY: as above, for `sockaddr_in`, which is not longer.
                let v4 = unsafe { self.v4 };
                Some(SocketAddr::V4(SocketAddrV4::new(
                    Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes()),
                    u16::from_be(v4.sin_port),
                )))
            }
            libc::AF_INET6 if length >= size_of::<libc::sockaddr_in6>() => {
                Some(SocketAddr::V6(SocketAddrV6::new(
                    Ipv6Addr::from(v6.sin6_addr.s6_addr),
                    u16::from_be(v6.sin6_port),
                    0,
                    v6.sin6_scope_id,
                )))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn address__is_the_inverse_of_of() {
        for address in [
            "127.0.0.2:4000".parse::<SocketAddr>().unwrap(),
            "[2001:db8::7]:65535".parse().unwrap(),
            "[fe80::1%3]:1".parse().unwrap(),
        ] {
            let (name, length) = Name::of(&address);
            assert_eq!(name.address(length), Some(address));
            assert_eq!(name.address(length - 1), None);
        }
        assert_eq!(Name::default().address(28), None);
    }
}
