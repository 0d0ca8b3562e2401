//! What the networks do to packets, seen with plain sockets.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

mod common;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use common::testbed;
use homa_testbed::{Error, Faults, Host, Link, Network, Options, Switch, Wire};

const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    V4,
    V6,
}

const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

fn socket(host: &Host, family: Family) -> UdpSocket {
    let ip = match family {
        Family::V4 => host.v4(),
        Family::V6 => host.v6(),
    };
    let bind = move || UdpSocket::bind(SocketAddr::new(ip, 0));
    let socket = host.run(bind).unwrap().unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 4 << 20).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn pair(hosts: &[Host], family: Family) -> (UdpSocket, UdpSocket) {
    (socket(&hosts[0], family), socket(&hosts[1], family))
}

/// What comes until nothing has come for a while.
fn receive_all(socket: &UdpSocket) -> Vec<Vec<u8>> {
    socket
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let mut buffer = [0; 10_000];
    let mut packets = Vec::new();
    while let Ok(length) = socket.recv(&mut buffer) {
        packets.push(buffer[..length].to_vec());
    }
    packets
}

fn set_tos(socket: &UdpSocket, family: Family, tos: u8) {
    use rustix::net::sockopt::{set_ip_tos, set_ipv6_tclass};
    match family {
        Family::V4 => set_ip_tos(socket, tos).unwrap(),
        Family::V6 => set_ipv6_tclass(socket, tos.into()).unwrap(),
    }
}

#[test]
fn plain__every_host_reaches_every_other() {
    let options = Options {
        hosts: 4,
        ..Options::default()
    };
    let Some(testbed) = testbed("plain__every_host_reaches_every_other", &options) else {
        return;
    };
    for family in FAMILIES {
        let sockets: Vec<_> = testbed
            .hosts()
            .iter()
            .map(|host| socket(host, family))
            .collect();
        for (index, from) in sockets.iter().enumerate() {
            for to in sockets.iter().skip(index + 1) {
                let packet = vec![index as u8; 1452];
                from.send_to(&packet, to.local_addr().unwrap()).unwrap();
                let mut buffer = [0; 2000];
                let (length, sender) = to.recv_from(&mut buffer).unwrap();
                assert_eq!(&buffer[..length], packet);
                assert_eq!(sender, from.local_addr().unwrap());
            }
        }
    }
    testbed.verify().unwrap();
}

#[test]
fn set_link__pulls_the_cable() {
    for network in [
        Network::Plain,
        Network::Switch(Switch::default()),
        Network::Wire(Wire::default()),
    ] {
        let options = Options {
            network,
            ..Options::default()
        };
        let Some(testbed) = testbed("set_link__pulls_the_cable", &options) else {
            return;
        };
        for (family, host) in FAMILIES.into_iter().zip([0, 1]) {
            let (from, to) = pair(testbed.hosts(), family);
            let address = to.local_addr().unwrap();
            testbed.set_link(host, Link::Down).unwrap();
            // Whether the kernel says so or not, it is lost.
            let _ = from.send_to(b"lost", address);
            assert_eq!(receive_all(&to).len(), 0);
            testbed.set_link(host, Link::Up).unwrap();
            from.send_to(b"found", address).unwrap();
            assert_eq!(receive_all(&to), [b"found"], "{options:?} {family:?}");
        }
        testbed.verify().unwrap();
        assert!(testbed.set_link(2, Link::Up).is_err());
    }
}

#[test]
fn switch__counts_bytes_by_priority() {
    let options = Options {
        hosts: 2,
        mtu: 1500,
        network: Network::Switch(Switch::default()),
    };
    let Some(testbed) = testbed("switch__counts_bytes_by_priority", &options) else {
        return;
    };
    for (family, headers) in [(Family::V4, 42), (Family::V6, 62)] {
        let (from, to) = pair(testbed.hosts(), family);
        testbed.reset_statistics().unwrap();
        for priority in 0..8 {
            set_tos(&from, family, priority << 5);
            for _ in 0..=priority {
                from.send_to(&[1; 1000], to.local_addr().unwrap()).unwrap();
            }
        }
        assert_eq!(receive_all(&to).len(), 36);
        let ports = testbed.statistics().unwrap();
        assert_eq!(ports[1].host, "h2");
        let frame = 1000 + headers;
        // With priority 0 the kernel says which groups it is in, when it likes.
        assert_eq!(ports[1].sent_frames[1..], [2, 3, 4, 5, 6, 7, 8]);
        assert!(ports[1].sent_frames[0] >= 1);
        let bytes = [2, 3, 4, 5, 6, 7, 8].map(|n| n * frame);
        assert_eq!(ports[1].sent_bytes[1..], bytes);
        assert_eq!(ports[1].drops(), 0);
        assert_eq!(ports[0].sent_bytes[1..], [0; 7]);
    }
    testbed.verify().unwrap();
}

#[test]
fn switch__queues_drops_and_keeps_its_rate() {
    let buffer_bytes = 100_000;
    let options = Options {
        hosts: 2,
        mtu: 1500,
        network: Network::Switch(Switch {
            rate_bps: 50_000_000,
            buffer_bytes,
            ..Switch::default()
        }),
    };
    let Some(testbed) = testbed("switch__queues_drops_and_keeps_its_rate", &options) else {
        return;
    };
    let (from, to) = pair(testbed.hosts(), Family::V4);
    let address = to.local_addr().unwrap();
    testbed.reset_statistics().unwrap();
    let start = Instant::now();
    // 150 Mbit/s for 0.3 s: three times what the port takes.
    let mut sent = 0;
    while start.elapsed() < Duration::from_millis(300) {
        let due = start.elapsed().as_micros() * 150 / (8 * 1500);
        while sent < due {
            from.send_to(&[1; 1458], address).unwrap();
            sent += 1;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    let port = testbed.statistics().unwrap().remove(1);
    assert!(port.drops() > 0, "{port:?}");
    let rate = u128::from(port.bytes()) * 8_000 / port.observed.as_millis();
    let nominal = 35_000_000..=55_000_000;
    assert!(nominal.contains(&rate), "{rate} bit/s, {port:?}");
    let full = u64::from(buffer_bytes);
    assert!(
        (full / 2..=full).contains(&port.backlog_peak_bytes),
        "{port:?}"
    );
    assert!(
        port.backlog_mean_bytes > f64::from(buffer_bytes) / 4.0,
        "{port:?}"
    );
    assert!(port.samples > 20, "{port:?}");
}

#[test]
fn switch__urgent_packets_do_not_wait() {
    let options = Options {
        hosts: 3,
        mtu: 1500,
        network: Network::Switch(Switch {
            rate_bps: 50_000_000,
            buffer_bytes: 400_000,
            ..Switch::default()
        }),
    };
    let Some(testbed) = testbed("switch__urgent_packets_do_not_wait", &options) else {
        return;
    };
    let to = socket(&testbed.hosts()[0], Family::V4);
    let [bulk, urgent] = [1, 2].map(|host| socket(&testbed.hosts()[host], Family::V4));
    let address = to.local_addr().unwrap();
    set_tos(&urgent, Family::V4, 0xe0);
    // 240,000 bytes are 38 ms at 50 Mbit/s.
    for _ in 0..160 {
        bulk.send_to(&[0; 1458], address).unwrap();
    }
    for _ in 0..10 {
        urgent.send_to(&[1; 1458], address).unwrap();
    }
    let order: Vec<u8> = receive_all(&to).iter().map(|packet| packet[0]).collect();
    assert_eq!(order.len(), 170);
    let last_urgent = order.iter().rposition(|kind| *kind == 1).unwrap();
    assert!(last_urgent < 100, "behind {last_urgent} packets");
    assert!(testbed.statistics().unwrap()[0].backlog_peak_bytes > 0);
}

#[test]
fn wire__does_what_it_is_told() {
    let wire = Wire {
        seed: 4,
        faults: Faults {
            loss: 0.1,
            duplicate: 0.1,
            ..Faults::default()
        },
    };
    let options = Options {
        network: Network::Wire(wire.clone()),
        ..Options::default()
    };
    let Some(testbed) = testbed("wire__does_what_it_is_told", &options) else {
        return;
    };
    let control = testbed.wire().unwrap();
    for family in FAMILIES {
        let mut outcomes = Vec::new();
        for _ in 0..2 {
            control.set_faults(&wire);
            let (from, to) = pair(testbed.hosts(), family);
            for index in 0..500_u16 {
                from.send_to(&index.to_be_bytes(), to.local_addr().unwrap())
                    .unwrap();
            }
            let packets = receive_all(&to);
            let counters = control.counters();
            assert_eq!(counters.frames, 500);
            assert!((20..=90).contains(&counters.lost), "{counters:?}");
            assert!((20..=90).contains(&counters.duplicated), "{counters:?}");
            let expected = 500 - counters.lost + counters.duplicated;
            assert_eq!(packets.len() as u64, expected);
            outcomes.push(packets);
        }
        assert!(outcomes[0] == outcomes[1], "a seed repeats a run");
    }
    testbed.verify().unwrap();
}

#[test]
fn wire__reorders_and_delays() {
    let options = Options {
        network: Network::Wire(Wire::default()),
        ..Options::default()
    };
    let Some(testbed) = testbed("wire__reorders_and_delays", &options) else {
        return;
    };
    let control = testbed.wire().unwrap();
    let send = |faults: Faults| {
        control.set_faults(&Wire { seed: 1, faults });
        let (from, to) = pair(testbed.hosts(), Family::V6);
        let start = Instant::now();
        for index in 0..200_u8 {
            from.send_to(&[index], to.local_addr().unwrap()).unwrap();
        }
        let first = to.recv(&mut [0; 9]).map(|_| start.elapsed()).unwrap();
        let rest = receive_all(&to);
        assert_eq!(rest.len(), 199);
        (first, rest)
    };
    let (_, packets) = send(Faults::default());
    assert!(packets.is_sorted());
    let (_, packets) = send(Faults {
        reorder: 0.1,
        ..Faults::default()
    });
    assert!(!packets.is_sorted());
    assert!(control.counters().reordered > 0);
    let delay = Duration::from_millis(30);
    let (first, packets) = send(Faults {
        delay,
        ..Faults::default()
    });
    assert!(first >= delay, "{first:?}");
    assert!(packets.is_sorted());
}

#[test]
fn wire__damage_is_found_by_checksums() {
    let faults = Faults {
        corrupt: 1.0,
        ..Faults::default()
    };
    let options = Options {
        network: Network::Wire(Wire { seed: 9, faults }),
        ..Options::default()
    };
    let Some(testbed) = testbed("wire__damage_is_found_by_checksums", &options) else {
        return;
    };
    for family in FAMILIES {
        let (from, to) = pair(testbed.hosts(), family);
        for _ in 0..300 {
            from.send_to(&[7; 500], to.local_addr().unwrap()).unwrap();
        }
        // What is not part of a checksum (an IPv6 hop limit, a flow label, and
        // Ethernet's padding) may be other than it was.
        for packet in receive_all(&to) {
            assert_eq!(packet, [7; 500], "{family:?}");
        }
    }
    // And perhaps ICMP about some of them.
    assert!(testbed.wire().unwrap().counters().corrupted >= 600);
}

#[test]
fn routed__tells_senders_the_mtu_of_the_path() {
    let options = Options {
        network: Network::Routed { path_mtu: 1280 },
        ..Options::default()
    };
    let Some(testbed) = testbed("routed__tells_senders_the_mtu_of_the_path", &options) else {
        return;
    };
    for (family, headers) in [(Family::V4, 28), (Family::V6, 48)] {
        for forth in [true, false] {
            let (mut from, mut to) = pair(testbed.hosts(), family);
            if !forth {
                (from, to) = (to, from);
            }
            from.connect(to.local_addr().unwrap()).unwrap();
            // Fits the path.
            from.send(&vec![1; 1280 - headers]).unwrap();
            assert_eq!(receive_all(&to).len(), 1);
            // Fits the device, not the path: lost, and the kernel learns it.
            from.send(&vec![2; 1500 - headers]).unwrap();
            let end = Instant::now() + PATIENCE;
            let learnt = loop {
                std::thread::sleep(Duration::from_millis(5));
                // The ICMP error is reported once; then packets are cut.
                let _ = from.send(&vec![3; 1500 - headers]);
                if !receive_all(&to).is_empty() {
                    break true;
                }
                if Instant::now() > end {
                    break false;
                }
            };
            assert!(learnt, "{family:?} {forth}");
        }
    }
}

#[test]
fn new__says_what_is_impossible() {
    let options = Options {
        hosts: 0,
        ..Options::default()
    };
    let error = homa_testbed::Testbed::new(&options).unwrap_err();
    assert!(matches!(error, Error::Options(_)), "{error}");
}

#[test]
fn ip__gives_a_host_more_addresses() {
    let Some(testbed) = testbed("ip__gives_a_host_more_addresses", &Options::default()) else {
        return;
    };
    let host = &testbed.hosts()[1];
    host.ip(&["addr add 10.88.0.101/24 dev eth0"]).unwrap();
    let bound = host
        .run(|| -> io::Result<_> { UdpSocket::bind("10.88.0.101:0") })
        .unwrap();
    assert!(bound.is_ok(), "{bound:?}");
    let error = host.ip(&["addr add 10.88.0.300/24 dev eth0"]).unwrap_err();
    assert!(error.to_string().contains("10.88.0.300"), "{error}");
}
