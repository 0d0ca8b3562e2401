//! The UDP datapath on real sockets.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test program"
)]

mod common;

use std::net::{IpAddr, SocketAddr, UdpSocket};

use common::{Namespace, errors, pattern, receive, send, skipped};
use homa_datapath::{
    Blocked, Datapath, NetworkErrorKind, Offload, Path, SendBatch, Udp, UdpOptions,
};

fn on(address: &str) -> Udp {
    Udp::bind(&UdpOptions::on(address.parse().unwrap())).unwrap()
}

fn address(udp: &Udp) -> SocketAddr {
    udp.local_addresses()[0]
}

/// Sends 44 packets of 1472 bytes and checks each.
fn full_super_packet(from: &Udp, to: &Udp) {
    let mut batch = SendBatch::default();
    let path = Path::to(address(to));
    for index in 0..44 {
        let slot = batch.push(&path, 0xa0, 1472).unwrap();
        slot.copy_from_slice(&pattern(index, 1472));
    }
    let outcome = from.send(&mut batch);
    assert_eq!((outcome.sent, outcome.still_queued), (44, 0), "{outcome:?}");
    assert!(batch.is_empty());
    let packets = receive(to, 44);
    assert_eq!(packets.len(), 44);
    for (index, packet) in packets.iter().enumerate() {
        assert_eq!(packet.bytes, pattern(index, 1472), "packet {index}");
        assert_eq!(packet.meta.tos, 0xa0);
        assert_eq!(packet.meta.path.remote, address(from));
        assert_eq!(packet.meta.path.local, Some(address(to).ip()));
        assert_eq!(packet.meta.interface, 1);
    }
    let counters = to.counters();
    assert_eq!((counters.rx_packets, counters.rx_bytes), (44, 44 * 1472));
}

#[test]
fn send__super_packet_v4() {
    let (from, to) = (on("127.0.0.1:0"), on("127.0.0.1:0"));
    full_super_packet(&from, &to);
    assert!(from.gso());
    let (sent, received) = (from.counters(), to.counters());
    assert_eq!((sent.tx_syscalls, sent.tx_super_packets), (1, 1));
    assert_eq!((sent.tx_packets, sent.tx_bytes), (44, 44 * 1472));
    assert_eq!(received.rx_super_packets, 1, "GRO keeps it whole");
}

#[test]
fn send__super_packet_v6() {
    full_super_packet(&on("[::1]:0"), &on("[::1]:0"));
}

#[test]
fn send__without_offloads_the_same_packets_arrive() {
    let mut options = UdpOptions::on("127.0.0.1:0".parse().unwrap());
    options.gso = Offload::Off;
    options.gro = Offload::Off;
    let (from, to) = (Udp::bind(&options).unwrap(), Udp::bind(&options).unwrap());
    full_super_packet(&from, &to);
    let counters = from.counters();
    assert_eq!((counters.tx_super_packets, counters.tx_syscalls), (0, 1));
    assert_eq!(to.counters().rx_super_packets, 0);
}

#[test]
fn send__super_packet_to_a_receiver_without_gro() {
    let mut options = UdpOptions::on("[::1]:0".parse().unwrap());
    options.gro = Offload::Off;
    full_super_packet(&on("[::1]:0"), &Udp::bind(&options).unwrap());
}

#[test]
fn send__mixed_peers_priorities_and_sizes() {
    let from = Udp::bind(&UdpOptions::default()).unwrap();
    let peers = [on("127.0.0.1:0"), on("[::1]:0"), on("127.0.0.2:0")];
    let mut batch = SendBatch::default();
    let mut expected = vec![Vec::new(); peers.len()];
    for index in 0..90 {
        // Runs of equal packets, broken by each of the three.
        let peer = (index / 7) % peers.len();
        let tos = [0x00, 0x20, 0xe0][(index / 5) % 3];
        let length = [1400, 1400, 1400, 62][index % 4];
        let bytes = pattern(index, length);
        batch
            .push(&Path::to(address(&peers[peer])), tos, length)
            .unwrap()
            .copy_from_slice(&bytes);
        expected[peer].push((tos, bytes));
    }
    let outcome = from.send(&mut batch);
    assert_eq!((outcome.sent, outcome.dropped), (90, 0), "{outcome:?}");
    for (peer, expected) in peers.iter().zip(expected) {
        let packets = receive(peer, expected.len());
        let seen: Vec<_> = packets
            .into_iter()
            .map(|packet| (packet.meta.tos, packet.bytes))
            .collect();
        assert!(
            seen == expected,
            "order, bytes and TOS of {:?}",
            address(peer)
        );
    }
}

#[test]
fn send__source_address_of_a_wildcard_bind() {
    let server = Udp::bind(&UdpOptions::default()).unwrap();
    let port = address(&server).port();
    assert_eq!(server.local_addresses()[1].port(), port);
    let client = on("127.0.0.1:0");
    for target in ["127.0.0.1", "127.0.0.2"] {
        let target: IpAddr = target.parse().unwrap();
        send(&client, &Path::to((target, port).into()), 0x40, b"request");
        let request = receive(&server, 1).remove(0);
        assert_eq!(request.meta.path.local, Some(target));
        send(&server, &request.meta.path, 0x60, b"response");
        let response = receive(&client, 1).remove(0);
        assert_eq!(response.meta.path.remote, (target, port).into());
        assert_eq!(
            (response.meta.tos, &response.bytes[..]),
            (0x60, &b"response"[..])
        );
    }
}

#[test]
fn errors__closed_port_is_reported_and_nothing_else_is_lost() {
    for host in ["127.0.0.1:0", "[::1]:0"] {
        let (from, to) = (on(host), on(host));
        let closed = {
            let socket = UdpSocket::bind(host).unwrap();
            socket.local_addr().unwrap()
        };
        send(&from, &Path::to(closed), 0, &pattern(1, 100));
        // The pending error must cost neither the next packets sent ...
        for index in 0..5 {
            send(&from, &Path::to(address(&to)), 0, &pattern(index, 90));
            send(&from, &Path::to(closed), 0, &pattern(1, 100));
        }
        // ... nor one received.
        send(&to, &Path::to(address(&from)), 0, b"hello");
        assert_eq!(receive(&from, 1).len(), 1);
        assert_eq!(receive(&to, 5).len(), 5);
        let report = errors(&from).remove(0);
        assert_eq!(report.remote, closed);
        assert_eq!(report.kind, NetworkErrorKind::PortClosed);
        assert_eq!(report.quoted, pattern(1, 100));
        let counters = from.counters();
        assert!(counters.icmp_port_closed >= 1);
        assert!(counters.tx_pending_errors + counters.rx_pending_errors >= 1);
        assert_eq!(counters.tx_packets, 11);
    }
}

#[test]
fn send__unreachable_is_dropped_counted_and_reported() {
    let from = Udp::bind(&UdpOptions::default()).unwrap();
    let to = on("127.0.0.1:0");
    let mut batch = SendBatch::default();
    // The broadcast address needs a permission that nobody asked for; the
    // source is not ours; port 0 is not a port.
    let broadcast = Path::to("255.255.255.255:9".parse().unwrap());
    let foreign = Path {
        remote: address(&to),
        local: Some("203.0.113.7".parse().unwrap()),
    };
    let no_port = Path::to("127.0.0.1:0".parse().unwrap());
    for path in [broadcast, foreign, no_port] {
        batch.push(&path, 0, 64).unwrap().fill(1);
        batch.push(&path, 0, 64).unwrap().fill(1);
        batch.push(&Path::to(address(&to)), 0, 64).unwrap().fill(2);
    }
    let outcome = from.send(&mut batch);
    assert_eq!((outcome.sent, outcome.dropped), (3, 6), "{outcome:?}");
    assert_eq!(receive(&to, 3).len(), 3);
    let counters = from.counters();
    assert_eq!(
        counters.tx_dropped_forbidden
            + counters.tx_dropped_bad_address
            + counters.tx_dropped_unreachable,
        6,
        "{counters:?}"
    );
    let reports = errors(&from);
    assert_eq!(reports.len(), 3, "{reports:?}");
    assert!(
        reports
            .iter()
            .all(|report| report.kind == NetworkErrorKind::HostUnreachable
                && report.quoted == [1; 64])
    );
    assert!(from.gso(), "a bad address is not a lack of GSO");
}

#[test]
fn send__other_family_is_dropped_and_counted() {
    let from = on("127.0.0.1:0");
    let mut batch = SendBatch::default();
    batch
        .push(&Path::to("[::1]:9".parse().unwrap()), 0, 64)
        .unwrap()
        .fill(0);
    let outcome = from.send(&mut batch);
    assert_eq!(
        (outcome.dropped, from.counters().tx_dropped_bad_address),
        (1, 1)
    );
}

#[test]
fn bind__bad_lists_and_taken_ports_say_so() {
    let two = ["127.0.0.1:0", "127.0.0.2:0"];
    let mut options = UdpOptions {
        addresses: two.iter().map(|text| text.parse().unwrap()).collect(),
        ..UdpOptions::default()
    };
    let message = |options: &UdpOptions| Udp::bind(options).err().unwrap().to_string();
    assert!(message(&options).contains("one IPv4 and/or one IPv6"));
    options.addresses.clear();
    assert!(message(&options).contains("one IPv4 and/or one IPv6"));
    let first = on("127.0.0.1:0");
    options.addresses = vec![address(&first)];
    assert!(message(&options).contains("in use"));
    options.addresses = vec!["203.0.113.7:0".parse().unwrap()];
    assert!(message(&options).contains("not an address of this host"));
}

#[test]
fn receive__full_kernel_buffer_is_counted() {
    let from = on("127.0.0.1:0");
    let mut options = UdpOptions::on("127.0.0.1:0".parse().unwrap());
    options.receive_buffer_bytes = 16_384;
    let to = Udp::bind(&options).unwrap();
    let path = Path::to(address(&to));
    let mut sent = 0;
    for index in 0..60 {
        send(&from, &path, 0, &pattern(index, 1000));
        sent += 1;
    }
    let arrived = receive(&to, 60).len();
    assert!(arrived < 60);
    // The count travels with the next packet.
    send(&from, &path, 0, &pattern(0, 1000));
    receive(&to, 1);
    assert_eq!(to.counters().rx_kernel_drops as usize, sent - arrived);
}

/// Hosts a and b with a router between them whose link to b carries 1300.
fn narrow_path() -> Result<(Namespace, Namespace, Namespace), String> {
    let (a, router, b) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
    a.link("va", &router, "ra")?;
    b.link("vb", &router, "rb")?;
    a.ip(&[
        "addr add 10.1.0.1/24 dev va",
        "addr add fd01::1/64 dev va nodad",
        "link set va up",
        "route add default via 10.1.0.2",
        "-6 route add default via fd01::2",
    ])?;
    b.ip(&[
        "link set vb mtu 1300",
        "addr add 10.2.0.1/24 dev vb",
        "addr add fd02::1/64 dev vb nodad",
        "link set vb up",
        "route add default via 10.2.0.2",
        "-6 route add default via fd02::2",
    ])?;
    router.ip(&[
        "link set rb mtu 1300",
        "addr add 10.1.0.2/24 dev ra",
        "addr add 10.2.0.2/24 dev rb",
        "addr add fd01::2/64 dev ra nodad",
        "addr add fd02::2/64 dev rb nodad",
        "link set ra up",
        "link set rb up",
    ])?;
    router.set("net/ipv4/ip_forward", "1")?;
    router.set("net/ipv6/conf/all/forwarding", "1")?;
    a.warm_up("10.1.0.1:0", &b, "10.2.0.1:0")?;
    a.warm_up("[fd01::1]:0", &b, "[fd02::1]:0")?;
    Ok((a, router, b))
}

#[test]
fn errors__narrow_path_is_learned_and_old_packets_still_arrive() {
    let (a, _router, b) = match narrow_path() {
        Ok(hosts) => hosts,
        Err(why) => {
            return skipped(
                "errors__narrow_path_is_learned_and_old_packets_still_arrive",
                &why,
            );
        }
    };
    for (host_a, host_b, header) in [("10.1.0.1", "10.2.0.1", 28), ("[fd01::1]", "[fd02::1]", 48)] {
        let from = a.run(move || on(&format!("{host_a}:0")));
        let to = b.run(move || on(&format!("{host_b}:0")));
        let path = Path::to(address(&to));
        let wide = 1500 - header;
        assert_eq!(from.max_packet(&path), wide, "asked from another namespace");
        let bytes = pattern(3, wide);
        send(&from, &path, 0, &bytes);
        let report = errors(&from).remove(0);
        assert_eq!(report.remote, address(&to));
        let max_packet = 1300 - header;
        assert_eq!(report.kind, NetworkErrorKind::PacketTooBig { max_packet });
        assert!(bytes.starts_with(&report.quoted[..56]));
        assert_eq!(from.max_packet(&path), max_packet);
        // A retransmission of what was cut for the wide path is fragmented,
        // alone and in a super-packet.
        send(&from, &path, 0xe0, &bytes);
        let packet = receive(&to, 1).remove(0);
        assert_eq!((packet.meta.tos, &packet.bytes), (0xe0, &bytes));
        let mut batch = SendBatch::default();
        for index in 0..4 {
            batch
                .push(&path, 0xe0, wide)
                .unwrap()
                .copy_from_slice(&pattern(index, wide));
        }
        assert_eq!(from.send(&mut batch).sent, 4);
        let packets = receive(&to, 4);
        assert_eq!(packets.len(), 4);
        for (index, packet) in packets.iter().enumerate() {
            assert_eq!(packet.bytes, pattern(index, wide));
        }
        assert_eq!(from.counters().tx_gso_too_big, 1);
        assert!(from.gso(), "GSO works for packets that fit");
    }
}

#[test]
fn send__no_route_is_reported() {
    let host = match Namespace::new() {
        Ok(host) => host,
        Err(why) => return skipped("send__no_route_is_reported", &why),
    };
    let from = host.run(|| Udp::bind(&UdpOptions::default()).unwrap());
    let mut batch = SendBatch::default();
    for remote in ["192.0.2.1:9", "[2001:db8::1]:9"] {
        let path = Path::to(remote.parse().unwrap());
        batch.push(&path, 0, 28).unwrap().fill(0);
        assert_eq!(
            from.max_packet(&path),
            if path.remote.is_ipv4() { 548 } else { 1232 }
        );
    }
    assert_eq!(from.send(&mut batch).dropped, 2);
    assert_eq!(from.counters().tx_dropped_unreachable, 2);
    let reports = errors(&from);
    assert!(
        reports
            .iter()
            .all(|report| report.kind == NetworkErrorKind::HostUnreachable)
    );
    assert_eq!(reports.len(), 2);
}

#[test]
fn send__what_blocks_stays_in_order() {
    let (a, b) = match (Namespace::new(), Namespace::new()) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(why), _) | (_, Err(why)) => return skipped("send__what_blocks_stays_in_order", &why),
    };
    let made = a.link("va", &b, "vb").and_then(|()| {
        // An address that nobody has holds packets in the neighbour queue,
        // charged to the socket.
        a.ip(&["addr add 10.3.0.1/24 dev va", "link set va up"])?;
        b.ip(&["link set vb up"])
    });
    if let Err(why) = made {
        return skipped("send__what_blocks_stays_in_order", &why);
    }
    let from = a.run(|| {
        let mut options = UdpOptions::on("10.3.0.1:0".parse().unwrap());
        options.send_buffer_bytes = 8192;
        options.gso = Offload::Off;
        Udp::bind(&options).unwrap()
    });
    let path = Path::to("10.3.0.9:9".parse().unwrap());
    let mut batch = SendBatch::default();
    for index in 0..100 {
        batch.push(&path, 0, 1400).unwrap().fill(index);
    }
    let outcome = from.send(&mut batch);
    assert!(outcome.sent < 100 && outcome.dropped == 0, "{outcome:?}");
    assert_eq!(outcome.still_queued, 100 - outcome.sent);
    assert!(matches!(outcome.blocked, Some(Blocked::UntilWritable(_))));
    let next = batch.first().unwrap();
    assert_eq!(next.bytes[0] as usize, outcome.sent);
    assert_eq!(from.counters().tx_would_block, 1);
}
