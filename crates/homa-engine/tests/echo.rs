//! Messages of every size, there and back, on every kind of datapath.
#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use homa_datapath::{Datapath, Faults, MemNetwork, Offload, Tap, TapOptions, Udp, UdpOptions};
use homa_engine::{Drive, Engine, Message};
use support::*;

const SIZES: [usize; 12] = [
    1, 2, 100, 1415, 1416, 1417, 16_384, 16_385, 39_999, 40_001, 300_000, 1_000_000,
];

fn echo_sizes(client: &Arc<Engine>, server: &Arc<Engine>, sizes: &[usize]) {
    let answering = echo(server.listen(0).unwrap());
    for &size in sizes {
        let sent = pattern(size);
        let back = call(client, address(server), sent.clone()).unwrap();
        assert!(back == sent[..], "{size} bytes came back changed");
    }
    server.close();
    assert_eq!(answering.join().unwrap(), sizes.len() as u32);
}

#[test]
fn call__every_size_in_memory() {
    let network = MemNetwork::new();
    let (client, server) = (engine(mem(&network)), engine(mem(&network)));
    echo_sizes(&client, &server, &SIZES);
    let stats = client.stats();
    assert_eq!(stats.engine_gauges.calls, 0);
    assert_eq!(stats.engine_gauges.page_bytes, 0);
    assert_eq!(stats.engine.packets_not_made, 0);
}

#[test]
fn call__every_size_over_udp() {
    let (client, server) = (engine(udp()), engine(udp()));
    echo_sizes(&client, &server, &SIZES);
}

#[test]
fn call__many_chunks_are_gathered() {
    let (client, server) = (engine(udp()), engine(udp()));
    let answering = echo(server.listen(0).unwrap());
    let sent = pattern(200_000);
    let message: Message = sent
        .chunks(777)
        .map(bytes::Bytes::copy_from_slice)
        .collect();
    assert!(call(&client, address(&server), message).unwrap() == sent[..]);
    server.close();
    answering.join().unwrap();
}

#[test]
fn call__five_megabytes_with_extensions() {
    let network = MemNetwork::new();
    let engine = || {
        let mut config = config();
        config.core.max_message_bytes = 5_000_000;
        Engine::new(config, mem(&network)).unwrap()
    };
    echo_sizes(&engine(), &engine(), &[5_000_000, 1_000_001, 5]);
}

fn lossy(inner: Box<dyn Datapath>, seed: u64) -> Box<dyn Datapath> {
    let faults = Faults {
        loss: 0.05,
        ..Faults::default()
    };
    let options = TapOptions {
        seed: Some(seed),
        transmit: faults.clone(),
        receive: faults,
        ..TapOptions::default()
    };
    Box::new(Tap::new(inner, &options).unwrap())
}

#[test]
fn call__with_five_percent_loss_each_way() {
    let network = MemNetwork::new();
    let client = engine(lossy(mem(&network), 1));
    let server = engine(lossy(mem(&network), 2));
    let mut sizes = vec![100; 50];
    sizes.extend(SIZES);
    echo_sizes(&client, &server, &sizes);
    assert!(client.stats().datapath.tap_tx_lost > 0);
    assert!(server.stats().core.retransmitted_bytes > 0);
}

#[test]
fn call__with_delay_and_reordering() {
    let network = MemNetwork::new();
    let faults = Faults {
        delay: 0.5,
        delay_min: Duration::from_micros(300),
        delay_max: Duration::from_micros(900),
        ..Faults::default()
    };
    let options = TapOptions {
        seed: Some(3),
        transmit: faults,
        held_packets: 4096,
        ..TapOptions::default()
    };
    let tap = |inner| Box::new(Tap::new(inner, &options).unwrap()) as Box<dyn Datapath>;
    let (client, server) = (engine(tap(mem(&network))), engine(tap(mem(&network))));
    echo_sizes(&client, &server, &[1, 5000, 100_000, 1_000_000]);
}

#[test]
fn call__to_oneself() {
    let network = MemNetwork::new();
    for datapath in [mem(&network), udp()] {
        let both = engine(datapath);
        echo_sizes(&both, &both.clone(), &[1, 1500, 100_000, 1_000_000]);
    }
}

#[test]
fn call__to_oneself_by_every_address() {
    let options = UdpOptions::on("0.0.0.0:0".parse().unwrap());
    let both = engine(Box::new(Udp::bind(&options).unwrap()));
    let port = address(&both).port();
    let answering = echo(both.listen(0).unwrap());
    for ip in ["127.0.0.1", "127.0.0.2", "127.0.0.3", "0.0.0.0"] {
        let to = format!("{ip}:{port}").parse().unwrap();
        let sent = pattern(70_000);
        assert!(call(&both, to, sent.clone()).unwrap() == sent[..], "{ip}");
    }
    both.close();
    answering.join().unwrap();
}

#[test]
fn call__over_ipv6_and_without_offloads() {
    let options = UdpOptions {
        gso: Offload::Off,
        gro: Offload::Off,
        ..UdpOptions::on("[::1]:0".parse().unwrap())
    };
    let bind = || Box::new(Udp::bind(&options).unwrap());
    echo_sizes(&engine(bind()), &engine(bind()), &[1, 1_000_000]);
}

#[test]
fn call__polling_engines() {
    let engine = || {
        let mut config = config();
        config.drive = Drive::Polling {
            idle: Duration::from_millis(1),
        };
        config.spin_before_sleep = Duration::from_micros(50);
        Engine::new(config, udp()).unwrap()
    };
    echo_sizes(&engine(), &engine(), &[1, 1, 1, 100_000, 1_000_000]);
}

#[test]
fn call__spinning_callers() {
    let engine = || {
        let mut config = config();
        config.spin_before_sleep = Duration::from_micros(100);
        Engine::new(config, udp()).unwrap()
    };
    echo_sizes(&engine(), &engine(), &[1, 1, 1, 100_000, 1_000_000]);
}

#[test]
fn send__one_way_message_is_delivered_once() {
    let (client, server) = (engine(udp()), engine(udp()));
    let listener = server.listen(0).unwrap();
    for size in [1, 5000, 500_000] {
        let sent = pattern(size);
        let options = homa_engine::CallOptions::until(patience());
        let message = client.send(address(&server), sent.clone(), options);
        let incoming = listener.accept().wait().unwrap();
        assert_eq!(incoming.kind, homa_engine::Kind::OneWay);
        assert!(incoming.responder.is_none());
        assert!(incoming.message == sent[..]);
        message.unwrap().wait().unwrap();
    }
    assert!(listener.try_accept().is_none());
}
