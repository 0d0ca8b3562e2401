//! Whom to call, and whom to be: socket addresses and host names.
//!
//! An address in numbers costs nothing. A host name is looked up with the
//! system's resolver, which blocks: the async calls do that on a thread of its
//! own, at every call. Whoever calls often looks up once
//! ([`Endpoint::resolve`](crate::Endpoint::resolve)) and keeps the address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, ToSocketAddrs};

use crate::Error;

/// A socket address or a host name with a port.
///
/// ```
/// use homa::Address;
///
/// let literal: Address = "127.0.0.1:4000".into();
/// let name: Address = ("kv.example", 4000).into();
/// assert_eq!(literal.to_string(), "127.0.0.1:4000");
/// assert_eq!(name.to_string(), "kv.example:4000");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address(Form);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Form {
    Numbers(SocketAddr),
    /// `host:port`, not checked yet.
    Name(String),
}

/// The families of addresses that an endpoint has a socket for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Families {
    pub(crate) v4: Has,
    pub(crate) v6: Has,
}

/// Whether an endpoint has a socket of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Has {
    Yes,
    No,
}

impl Families {
    pub(crate) fn of(addresses: &[SocketAddr]) -> Self {
        let has = |found: bool| if found { Has::Yes } else { Has::No };
        Self {
            v4: has(addresses.iter().any(SocketAddr::is_ipv4)),
            v6: has(addresses.iter().any(SocketAddr::is_ipv6)),
        }
    }

    pub(crate) fn include(self, address: &SocketAddr) -> bool {
        match address {
            SocketAddr::V4(_) => self.v4 == Has::Yes,
            SocketAddr::V6(_) => self.v6 == Has::Yes,
        }
    }

    fn name(self) -> &'static str {
        match (self.v4, self.v6) {
            (Has::Yes, Has::Yes) => "IPv4 and IPv6",
            (Has::Yes, Has::No) => "IPv4 only",
            (Has::No, Has::Yes) => "IPv6 only",
            (Has::No, Has::No) => "no address",
        }
    }
}

impl Address {
    /// The address, if it is known without looking it up.
    pub fn as_socket_address(&self) -> Option<SocketAddr> {
        match self.0 {
            Form::Numbers(address) => Some(address),
            Form::Name(_) => None,
        }
    }

    /// All addresses that the name has. Blocks while the resolver works.
    pub(crate) fn look_up(&self) -> Result<Vec<SocketAddr>, Error> {
        match &self.0 {
            Form::Numbers(address) => Ok(vec![*address]),
            Form::Name(name) => match name.to_socket_addrs() {
                Ok(addresses) => Ok(addresses.collect()),
                Err(source) => Err(Error::Resolve {
                    name: name.clone(),
                    source,
                }),
            },
        }
    }

    /// The first address of a family that the endpoint has. Blocks while the
    /// resolver works.
    pub(crate) fn look_up_one(&self, families: Families) -> Result<SocketAddr, Error> {
        if let Some(known) = self.known(families) {
            return known;
        }
        self.look_up()?
            .into_iter()
            .map(canonical)
            .find(|address| families.include(address))
            .ok_or_else(|| self.unreachable_for(families))
    }

    /// The address, if it is in numbers and of a family that the endpoint has;
    /// `None` if it must be looked up.
    pub(crate) fn known(&self, families: Families) -> Option<Result<SocketAddr, Error>> {
        let address = canonical(self.as_socket_address()?);
        Some(if families.include(&address) {
            Ok(address)
        } else {
            Err(self.unreachable_for(families))
        })
    }

    fn unreachable_for(&self, families: Families) -> Error {
        Error::NoAddress {
            name: self.to_string(),
            families: families.name(),
        }
    }
}

/// An IPv4 address in IPv6 clothes (`::ffff:1.2.3.4`) is the IPv4 address:
/// that is what packets from it will say.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(ip.into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Numbers(address) => address.fmt(f),
            Form::Name(name) => f.write_str(name),
        }
    }
}

impl From<&str> for Address {
    fn from(name: &str) -> Self {
        Self(match name.parse() {
            Ok(address) => Form::Numbers(address),
            Err(_) => Form::Name(name.to_owned()),
        })
    }
}

impl From<String> for Address {
    fn from(name: String) -> Self {
        Self(match name.parse() {
            Ok(address) => Form::Numbers(address),
            Err(_) => Form::Name(name),
        })
    }
}

impl From<&String> for Address {
    fn from(name: &String) -> Self {
        Self::from(name.as_str())
    }
}

impl From<(&str, u16)> for Address {
    fn from((host, port): (&str, u16)) -> Self {
        Self(match host.parse::<IpAddr>() {
            Ok(ip) => Form::Numbers((ip, port).into()),
            Err(_) => Form::Name(format!("{host}:{port}")),
        })
    }
}

impl From<(String, u16)> for Address {
    fn from((host, port): (String, u16)) -> Self {
        (host.as_str(), port).into()
    }
}

impl From<(IpAddr, u16)> for Address {
    fn from(address: (IpAddr, u16)) -> Self {
        Self(Form::Numbers(address.into()))
    }
}

impl From<(Ipv4Addr, u16)> for Address {
    fn from(address: (Ipv4Addr, u16)) -> Self {
        Self(Form::Numbers(address.into()))
    }
}

impl From<(Ipv6Addr, u16)> for Address {
    fn from(address: (Ipv6Addr, u16)) -> Self {
        Self(Form::Numbers(address.into()))
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self(Form::Numbers(address))
    }
}

impl From<&SocketAddr> for Address {
    fn from(address: &SocketAddr) -> Self {
        Self(Form::Numbers(*address))
    }
}

impl From<SocketAddrV4> for Address {
    fn from(address: SocketAddrV4) -> Self {
        Self(Form::Numbers(address.into()))
    }
}

impl From<SocketAddrV6> for Address {
    fn from(address: SocketAddrV6) -> Self {
        Self(Form::Numbers(address.into()))
    }
}

impl From<&Self> for Address {
    fn from(address: &Self) -> Self {
        address.clone()
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    const V4: Families = Families {
        v4: Has::Yes,
        v6: Has::No,
    };

    #[test]
    fn known__numbers_need_no_look_up() {
        let address: Address = "127.0.0.1:9".into();
        assert_eq!(
            address.known(V4).map(Result::ok),
            Some(Some(([127, 0, 0, 1], 9).into()))
        );
    }

    #[test]
    fn known__wrong_family_says_what_there_is() {
        let address: Address = "[::1]:9".into();
        let error = address.known(V4).and_then(Result::err).unwrap();
        assert!(error.to_string().contains("IPv4 only"), "{error}");
    }

    #[test]
    fn known__mapped_address_is_the_ipv4_address() {
        let address: Address = "[::ffff:127.0.0.1]:9".into();
        assert_eq!(
            address.known(V4).map(Result::ok),
            Some(Some(([127, 0, 0, 1], 9).into()))
        );
    }

    #[test]
    fn look_up_one__name_takes_the_family_that_there_is() {
        let address: Address = ("localhost", 7).into();
        assert_eq!(address.as_socket_address(), None);
        assert_eq!(address.look_up_one(V4).unwrap(), ([127, 0, 0, 1], 7).into());
    }

    #[test]
    fn look_up__no_port_is_an_error_with_the_name() {
        let error = Address::from("localhost").look_up().unwrap_err();
        assert!(matches!(error, Error::Resolve { ref name, .. } if name == "localhost"));
    }
}
