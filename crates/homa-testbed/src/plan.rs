//! Addresses, and what `ip` is told so that hosts have them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::host::DEVICE;
use crate::options::{Network, Options};
use crate::switch::port_name;

/// The bridge in the middle.
const BRIDGE: &str = "br0";

/// Host `index` (from 0): 10.88.0.1 and fd88::1 are the first ones; behind a
/// router 10.88.1.1 and fd88:0:0:1::1.
pub(crate) fn addresses(network: &Network, index: usize) -> (Ipv4Addr, Ipv6Addr) {
    let number = index as u8 + 1;
    let wide = u16::from(number);
    match network {
        Network::Routed { .. } => (
            Ipv4Addr::new(10, 88, number, 1),
            Ipv6Addr::new(0xfd88, 0, 0, wide, 0, 0, 0, 1),
        ),
        _ => (
            Ipv4Addr::new(10, 88, 0, number),
            Ipv6Addr::new(0xfd88, 0, 0, 0, 0, 0, 0, wide),
        ),
    }
}

fn hardware_address(index: usize) -> String {
    format!("02:88:00:00:00:{:02x}", index + 1)
}

/// The gateway of a host behind a router.
fn gateways(index: usize) -> (Ipv4Addr, Ipv6Addr) {
    let number = index as u8 + 1;
    (
        Ipv4Addr::new(10, 88, number, 254),
        Ipv6Addr::new(0xfd88, 0, 0, u16::from(number), 0, 0, 0, 254),
    )
}

/// The commands of the middle: what joins the hosts, and a link to each of
/// them. `threads` are the hosts' threads, which stand for their namespaces.
pub(crate) fn middle(options: &Options, threads: &[i32]) -> Vec<String> {
    let mtu = options.mtu;
    let bridged = matches!(options.network, Network::Plain | Network::Switch(_));
    let mut lines = vec!["link set lo up".to_owned()];
    if bridged {
        lines.push(format!(
            "link add {BRIDGE} mtu {mtu} type bridge stp_state 0 forward_delay 0 mcast_snooping 0"
        ));
        lines.push(format!("link set {BRIDGE} up"));
    }
    for (index, thread) in threads.iter().enumerate() {
        let port = port_name(index);
        let address = hardware_address(index);
        lines.push(format!(
            "link add {port} mtu {mtu} type veth peer name {DEVICE} mtu {mtu} address {address} \
             netns {thread}"
        ));
        if bridged {
            lines.push(format!("link set {port} master {BRIDGE}"));
        }
        if let Network::Routed { path_mtu } = options.network {
            let (v4, v6) = gateways(index);
            let (host_v4, host_v6) = addresses(&options.network, index);
            // Routes of our own, because those that come with an address have
            // the MTU of the device.
            lines.extend([
                format!("addr add {v4}/24 dev {port} noprefixroute"),
                format!("addr add {v6}/64 dev {port} nodad noprefixroute"),
                format!("link set {port} up"),
                format!("route add {host_v4}/32 dev {port} mtu lock {path_mtu}"),
                format!("route add {host_v6}/128 dev {port} mtu lock {path_mtu}"),
            ]);
        } else {
            lines.push(format!("link set {port} up"));
        }
    }
    lines
}

/// The commands of one host.
pub(crate) fn host(options: &Options, index: usize) -> Vec<String> {
    let (v4, v6) = addresses(&options.network, index);
    let mut lines = vec![
        "link set lo up".to_owned(),
        format!("addr add {v4}/24 dev {DEVICE}"),
        format!("addr add {v6}/64 dev {DEVICE} nodad"),
        format!("link set {DEVICE} up"),
    ];
    if let Network::Routed { .. } = options.network {
        let (v4, v6) = gateways(index);
        lines.push(format!("route add default via {v4} dev {DEVICE}"));
        lines.push(format!("route add default via {v6} dev {DEVICE}"));
        return lines;
    }
    // Nobody needs to ask who has which address: no first packet waits for an
    // answer, and no answer gets lost.
    for other in (0..options.hosts).filter(|other| *other != index) {
        let (v4, v6) = addresses(&options.network, other);
        lines.push(neighbour(v4.into(), other));
        lines.push(neighbour(v6.into(), other));
    }
    lines
}

/// The command by which a host knows who has an address.
pub(crate) fn neighbour(ip: IpAddr, index: usize) -> String {
    let address = hardware_address(index);
    format!("neigh replace {ip} lladdr {address} dev {DEVICE} nud permanent")
}

/// The command by which a host has one more address, in the network of the
/// first.
pub(crate) fn more(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => format!("addr add {ip}/24 dev {DEVICE}"),
        IpAddr::V6(ip) => format!("addr add {ip}/64 dev {DEVICE} nodad"),
    }
}

/// What `bridge` is told: who is at which port, so that nothing is flooded.
pub(crate) fn stations(hosts: usize) -> Vec<String> {
    (0..hosts)
        .map(|index| {
            let (port, address) = (port_name(index), hardware_address(index));
            format!("fdb replace {address} dev {port} master static")
        })
        .collect()
}

/// The host that a frame is for, by its hardware address; nothing for groups.
pub(crate) fn station(frame: &[u8]) -> Option<usize> {
    match frame.get(..6)? {
        [0x02, 0x88, 0, 0, 0, number] => usize::from(*number).checked_sub(1),
        _ => None,
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn addresses__of_the_last_host_are_still_valid() {
        let (v4, v6) = addresses(&Network::Plain, 249);
        assert_eq!(v4.to_string(), "10.88.0.250");
        assert_eq!(v6.to_string(), "fd88::fa");
        let (v4, v6) = addresses(&Network::Routed { path_mtu: 1280 }, 1);
        assert_eq!(v4.to_string(), "10.88.2.1");
        assert_eq!(v6.to_string(), "fd88:0:0:2::1");
    }

    #[test]
    fn station__is_in_the_hardware_address() {
        let frame = [2, 0x88, 0, 0, 0, 3, 2, 0x88, 0, 0, 0, 1, 8, 0];
        assert_eq!(station(&frame), Some(2));
        assert_eq!(hardware_address(2), "02:88:00:00:00:03");
        assert_eq!(station(&[0xff; 14]), None);
        assert_eq!(station(&frame[..5]), None);
    }

    #[test]
    fn host__knows_all_others() {
        let options = Options {
            hosts: 3,
            ..Options::default()
        };
        let lines = host(&options, 1);
        let neighbours = lines.iter().filter(|line| line.starts_with("neigh"));
        assert_eq!(neighbours.count(), 4);
        assert!(lines.iter().any(|line| line.contains("10.88.0.2/24")));
    }
}
