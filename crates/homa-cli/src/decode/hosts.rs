//! Names for addresses, as given with `--hosts`.

use std::collections::HashMap;
use std::net::IpAddr;
use std::str::FromStr;

/// One `NAME=ADDRESS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    name: String,
    address: IpAddr,
}

impl FromStr for Host {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, address) = text.split_once('=').ok_or("write NAME=ADDRESS")?;
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err("the name must not be empty or contain spaces".into());
        }
        let address = address
            .parse()
            .map_err(|_| format!("{address:?} is not an IPv4 or IPv6 address"))?;
        Ok(Self {
            name: name.into(),
            address,
        })
    }
}

/// All names.
pub(crate) struct Hosts(HashMap<IpAddr, String>);

impl Hosts {
    pub(crate) fn new(hosts: &[Host]) -> Self {
        Self(
            hosts
                .iter()
                .map(|host| (host.address, host.name.clone()))
                .collect(),
        )
    }

    /// The host's name, or its address where it has none.
    pub(crate) fn show(&self, address: IpAddr) -> String {
        self.name(address)
            .map_or_else(|| address.to_string(), str::to_owned)
    }

    /// The host's name, if it has one.
    pub(crate) fn name(&self, address: IpAddr) -> Option<&str> {
        self.0.get(&address).map(String::as_str)
    }
}
