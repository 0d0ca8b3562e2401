//! From what was said to a datapath: addresses are chosen, sockets opened, the
//! tap put around them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use homa_datapath::{Datapath, Raw, RawOptions, Tap, TapOptions, Udp, UdpOptions};

use crate::builder::Options;
use crate::random;
use crate::{Address, Error};

/// What carries the packets.
#[derive(Clone)]
pub(crate) enum Carrier {
    Udp,
    Raw,
    Given(Arc<dyn Datapath>),
}

/// The lowest port that is not for servers.
const FIRST_CLIENT_PORT: u16 = 32_768;
/// Free ports are plenty; a host where these are all taken has none.
const PORT_ATTEMPTS: u32 = 256;

/// Opens the datapath that the options ask for. Blocks if a name must be
/// looked up.
pub(crate) fn open(options: &Options) -> Result<Arc<dyn Datapath>, Error> {
    let datapath: Arc<dyn Datapath> = match &options.carrier {
        Carrier::Given(datapath) => datapath.clone(),
        Carrier::Udp => Arc::new(open_udp(options)?),
        Carrier::Raw => Arc::new(open_raw(options)?),
    };
    if options.capture.is_none() && options.faults.is_none() {
        return Ok(datapath);
    }
    let mut tap = TapOptions {
        capture: options.capture.clone(),
        ..TapOptions::default()
    };
    if let Some((seed, faults)) = &options.faults {
        tap.seed = Some(*seed);
        tap.transmit = faults.clone();
        tap.receive = faults.clone();
    }
    let tap = Tap::new(datapath, &tap).map_err(|source| Error::System {
        doing: "creating the capture file",
        source,
    })?;
    Ok(Arc::new(tap))
}

/// Whether opening would block on a look-up.
#[cfg(feature = "tokio")]
pub(crate) fn must_look_up(options: &Options) -> bool {
    !matches!(options.carrier, Carrier::Given(_))
        && options
            .addresses
            .iter()
            .any(|address| address.as_socket_address().is_none())
}

fn open_udp(options: &Options) -> Result<Udp, Error> {
    let mut udp = UdpOptions {
        addresses: addresses(&options.addresses)?,
        send_buffer_bytes: options.send_buffer_bytes,
        receive_buffer_bytes: options.receive_buffer_bytes,
        gso: options.offload,
        gro: options.offload,
    };
    if udp.addresses.iter().any(|address| address.port() != 0) {
        return Ok(Udp::bind(&udp)?);
    }
    // The kernel would also choose ports below 32768, which are for servers.
    let mut attempts = 0;
    loop {
        let port = FIRST_CLIENT_PORT | random::bits() as u16;
        for address in &mut udp.addresses {
            address.set_port(port);
        }
        attempts += 1;
        match Udp::bind(&udp) {
            Err(homa_datapath::BindError::InUse { .. }) if attempts < PORT_ATTEMPTS => {}
            other => return Ok(other?),
        }
    }
}

fn open_raw(options: &Options) -> Result<Raw, Error> {
    let addresses = if options.addresses.is_empty() {
        Vec::new()
    } else {
        addresses(&options.addresses)?
            .iter()
            .map(SocketAddr::ip)
            .collect()
    };
    Ok(Raw::open(&RawOptions {
        addresses,
        send_buffer_bytes: options.send_buffer_bytes,
        receive_buffer_bytes: options.receive_buffer_bytes,
    })?)
}

/// One address of each family: the first that the names have, and IPv4 too
/// where all of IPv6 was asked for.
fn addresses(wanted: &[Address]) -> Result<Vec<SocketAddr>, Error> {
    if wanted.is_empty() {
        return Ok(vec![
            (Ipv4Addr::UNSPECIFIED, 0).into(),
            (Ipv6Addr::UNSPECIFIED, 0).into(),
        ]);
    }
    let mut chosen = Vec::new();
    for address in wanted {
        let mut found = address.look_up()?;
        // A name may have many addresses; a list of them is the caller's.
        let v4 = found.iter().position(SocketAddr::is_ipv4);
        let v6 = found.iter().position(SocketAddr::is_ipv6);
        let mut first: Vec<usize> = v4.into_iter().chain(v6).collect();
        first.sort_unstable();
        found = first
            .into_iter()
            .filter_map(|at| found.get(at).copied())
            .collect();
        chosen.extend(found);
    }
    if let [SocketAddr::V6(v6)] = chosen[..]
        && v6.ip().is_unspecified()
    {
        chosen.insert(0, (IpAddr::V4(Ipv4Addr::UNSPECIFIED), v6.port()).into());
    }
    Ok(chosen)
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    fn chosen(wanted: &[&str]) -> Vec<String> {
        let wanted: Vec<Address> = wanted.iter().map(|text| (*text).into()).collect();
        addresses(&wanted)
            .unwrap()
            .iter()
            .map(SocketAddr::to_string)
            .collect()
    }

    #[test]
    fn addresses__all_of_ipv6_is_all_of_both() {
        assert_eq!(chosen(&["[::]:4000"]), ["0.0.0.0:4000", "[::]:4000"]);
        assert_eq!(chosen(&["0.0.0.0:4000"]), ["0.0.0.0:4000"]);
        assert_eq!(chosen(&["[::1]:4000"]), ["[::1]:4000"]);
    }

    #[test]
    fn addresses__none_is_any_port_of_both() {
        assert_eq!(chosen(&[]), ["0.0.0.0:0", "[::]:0"]);
    }

    #[test]
    fn open_udp__any_port_is_a_client_port() {
        for _ in 0..32 {
            let udp = open_udp(&Options::default()).unwrap();
            for address in udp.local_addresses() {
                assert!(address.port() >= FIRST_CLIENT_PORT, "{address}");
            }
        }
    }
}
