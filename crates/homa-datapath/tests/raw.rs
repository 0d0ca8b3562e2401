//! The raw datapath, in network namespaces.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test program"
)]

mod common;

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use common::{Namespace, Packet, errors, pattern, receive, send, skipped};
use homa_datapath::{
    BindError, Datapath, NetworkErrorKind, Path, Raw, RawOptions, Refusal, SendBatch, reserve_port,
};
use homa_wire::checksum::{Addresses, is_valid};

/// Two hosts on one link.
fn hosts() -> Result<(Namespace, Namespace), String> {
    let (a, b) = (Namespace::new()?, Namespace::new()?);
    a.link("va", &b, "vb")?;
    a.ip(&[
        "addr add 10.1.0.1/24 dev va",
        "addr add fd01::1/64 dev va nodad",
        "link set va up",
    ])?;
    b.ip(&[
        "addr add 10.1.0.2/24 dev vb",
        "addr add fd01::2/64 dev vb nodad",
        "link set vb up",
    ])?;
    a.warm_up("10.1.0.1:0", &b, "10.1.0.2:0")?;
    a.warm_up("[fd01::1]:0", &b, "[fd01::2]:0")?;
    Ok((a, b))
}

fn open(namespace: &Namespace) -> Raw {
    namespace.run(|| Raw::open(&RawOptions::default()).unwrap())
}

fn to(address: &str) -> Path {
    Path::to(SocketAddr::new(address.parse().unwrap(), 0))
}

fn assert_checksum(packet: &Packet) {
    let path = &packet.meta.path;
    let addresses = Addresses::new(path.remote.ip(), path.local.unwrap()).unwrap();
    assert!(is_valid(&addresses, &[&packet.bytes]));
}

fn without_checksum(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[16..18].fill(0);
    bytes
}

#[test]
fn send__round_trips_v4_and_v6() {
    let (a, b) = match hosts() {
        Ok(hosts) => hosts,
        Err(why) => return skipped("send__round_trips_v4_and_v6", &why),
    };
    let (client, server) = (open(&a), open(&b));
    for (from, target, max_packet) in [("10.1.0.1", "10.1.0.2", 1480), ("fd01::1", "fd01::2", 1460)]
    {
        let path = to(target);
        assert_eq!(client.max_packet(&path), max_packet);
        let mut batch = SendBatch::default();
        let lengths = [28, 33, 1424, 1424, max_packet, 57];
        for (index, length) in lengths.into_iter().enumerate() {
            batch
                .push(&path, (index as u8) << 5, length)
                .unwrap()
                .copy_from_slice(&pattern(index, length));
        }
        client.seal(&mut batch);
        let outcome = client.send(&mut batch);
        assert_eq!(outcome.sent, lengths.len(), "{outcome:?}");
        let packets = receive(&server, lengths.len());
        assert_eq!(packets.len(), lengths.len());
        for (index, packet) in packets.iter().enumerate() {
            let sent = pattern(index, lengths[index]);
            assert_eq!(without_checksum(&packet.bytes), without_checksum(&sent));
            assert_checksum(packet);
            assert_eq!(packet.meta.tos, (index as u8) << 5);
            assert_eq!(packet.meta.path.remote, to(from).remote);
            assert_eq!(packet.meta.path.local, Some(target.parse().unwrap()));
            assert!(packet.meta.interface > 1);
        }
        // And back, on the path the request came from.
        send(&server, &packets[0].meta.path, 0xe0, &pattern(9, 80));
        let answer = receive(&client, 1).remove(0);
        assert_checksum(&answer);
        assert_eq!(
            (answer.meta.tos, answer.meta.path.remote),
            (0xe0, path.remote)
        );
    }
    assert_eq!(client.counters().tx_packets, 12);
    assert_eq!(server.counters().rx_packets, 12);
}

#[test]
fn send__above_the_mtu_is_fragmented() {
    let (a, b) = match hosts() {
        Ok(hosts) => hosts,
        Err(why) => return skipped("send__above_the_mtu_is_fragmented", &why),
    };
    let (client, server) = (open(&a), open(&b));
    for target in ["10.1.0.2", "fd01::2"] {
        let bytes = pattern(1, 4000);
        send(&client, &to(target), 0x20, &bytes);
        let packet = receive(&server, 1).remove(0);
        assert_eq!(without_checksum(&packet.bytes), without_checksum(&bytes));
        assert_checksum(&packet);
    }
}

#[test]
fn open__one_owner_a_namespace() {
    let (a, b) = match (Namespace::new(), Namespace::new()) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(why), _) | (_, Err(why)) => return skipped("open__one_owner_a_namespace", &why),
    };
    let first = open(&a);
    let error = a.run(|| Raw::open(&RawOptions::default()).err().unwrap());
    assert!(matches!(error, BindError::RawOwned));
    assert_eq!(
        error.to_string(),
        "another Homa endpoint already owns raw IP in this network namespace"
    );
    let _elsewhere = open(&b);
    drop(first);
    // The name is free at once, unless a test beside this one is just starting
    // a program, which has all descriptors for a moment.
    let again = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        a.run(|| Raw::open(&RawOptions::default()).is_ok())
    });
    assert!(again);
}

#[test]
fn open__without_the_capability_says_what_to_do() {
    let host = match Namespace::new() {
        Ok(host) => host,
        Err(why) => return skipped("open__without_the_capability_says_what_to_do", &why),
    };
    let message = host.run(|| {
        // linux/capability.h: version 3, this thread; no capabilities at all.
        let header = [0x2008_0522_u32, 0];
        let none = [0_u32; 6];
        // SAFETY: the kernel reads 8 and 24 bytes, which is what the arrays are.
        let result = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) };
        assert_eq!(result, 0);
        Raw::open(&RawOptions::default()).err().unwrap().to_string()
    });
    assert!(message.contains("CAP_NET_RAW"), "{message}");
}

#[test]
fn errors__host_without_homa_is_reported() {
    let (a, b) = match hosts() {
        Ok(hosts) => hosts,
        Err(why) => return skipped("errors__host_without_homa_is_reported", &why),
    };
    let client = open(&a);
    for target in ["10.1.0.2", "fd01::2"] {
        send(&client, &to(target), 0, &pattern(4, 100));
        let reports = errors(&client);
        assert!(
            !reports.is_empty(),
            "from {target}: {:?}",
            client.counters()
        );
        let report = reports[0].clone();
        assert_eq!(report.kind, NetworkErrorKind::ProtocolUnsupported);
        assert_eq!(report.remote, to(target).remote);
        assert_eq!(
            without_checksum(&report.quoted),
            without_checksum(&pattern(4, 100))
        );
    }
    assert_eq!(client.counters().icmp_protocol_unsupported, 2);
    drop(b);
}

#[test]
fn refuse__the_client_hears_port_unreachable() {
    let (a, b) = match hosts() {
        Ok(hosts) => hosts,
        Err(why) => return skipped("refuse__the_client_hears_port_unreachable", &why),
    };
    let (client, server) = (open(&a), open(&b));
    for target in ["10.1.0.2", "fd01::2"] {
        send(&client, &to(target), 0xe0, &pattern(5, 700));
        let packet = receive(&server, 1).remove(0);
        let refusal = server.refuse(&packet.meta.path, &packet.bytes);
        assert_eq!(refusal, Refusal::Answered);
        let reports = errors(&client);
        assert!(
            !reports.is_empty(),
            "from {target}: {:?}",
            client.counters()
        );
        let report = reports[0].clone();
        assert_eq!(report.kind, NetworkErrorKind::PortClosed);
        assert_eq!(report.remote, to(target).remote);
        assert!(report.quoted.len() >= 56);
        assert!(packet.bytes.starts_with(&report.quoted));
        // The error costs no packet.
        send(&client, &to(target), 0, &pattern(6, 60));
        assert_eq!(receive(&server, 1).len(), 1);
    }
    let group = to("224.0.0.1");
    assert_eq!(server.refuse(&group, &[0; 28]), Refusal::Failed);
    let refused = (0..100)
        .filter(|_| server.refuse(&to("10.1.0.1"), &[0; 28]) == Refusal::RateLimited)
        .count();
    assert!(refused >= 30, "{refused} of 100 at once were limited");
    let counters = server.counters();
    assert_eq!(counters.icmp_answers_limited as usize, refused);
    assert_eq!(counters.icmp_answers as usize, 2 + 100 - refused);
    assert_eq!(counters.icmp_answers_failed, 1);
}

#[test]
fn receive__own_packets_over_loopback() {
    let host = match Namespace::new() {
        Ok(host) => host,
        Err(why) => return skipped("receive__own_packets_over_loopback", &why),
    };
    let raw = open(&host);
    for target in ["127.0.0.1", "127.0.0.2", "::1"] {
        let local: IpAddr = target.parse().unwrap();
        send(&raw, &to(target), 0x20, &pattern(1, 3000));
        let packet = receive(&raw, 1).remove(0);
        assert_eq!(packet.meta.path.local, Some(local));
        assert_checksum(&packet);
    }
}

#[test]
fn reserve_port__nobody_else_gets_it() {
    let free = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let reserved = reserve_port(free).unwrap();
    assert_eq!(reserved.port(), free);
    for taker in ["127.0.0.1", "::1", "0.0.0.0"] {
        let address = SocketAddr::new(taker.parse().unwrap(), free);
        assert!(UdpSocket::bind(address).is_err(), "{address}");
    }
    assert!(matches!(reserve_port(free), Err(BindError::InUse { .. })));
    drop(reserved);
    let other = UdpSocket::bind(("127.0.0.1", free)).unwrap();
    assert!(matches!(reserve_port(free), Err(BindError::InUse { .. })));
    drop(other);
    assert!(reserve_port(free).is_ok());
    assert!(reserve_port(0).is_err());
}
