//! Peers that are broken or mean waste no more than their share.
#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use homa_engine::{CallOptions, Engine};
use homa_wire::{Body, Data, MAX_HEADER_LENGTH, Packet, SenderId};
use support::*;

/// A DATA packet of a request with one byte of payload.
fn announcement(from: SocketAddr, to: SocketAddr, id: u64, length: u32, offset: u32) -> Vec<u8> {
    let data = Data {
        message_length: length,
        incoming: 40_000,
        ..Data::default()
    };
    let body = Body::Data(data.at(offset));
    let packet = Packet::new(from.port(), to.port(), SenderId(id), body);
    let mut bytes = vec![0; MAX_HEADER_LENGTH];
    let header = packet.emit(&mut bytes).unwrap();
    bytes.truncate(header + 1);
    bytes
}

#[test]
fn turn__garbage_at_full_speed_does_not_stop_others() {
    let (client, server) = (engine(udp()), engine(udp()));
    let answering = echo(server.listen(0).unwrap());
    let to = address(&server);
    let stop = Arc::new(AtomicBool::new(false));
    let flood = thread::spawn({
        let stop = stop.clone();
        move || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let own = socket.local_addr().unwrap();
            let mut seed = 1_u64;
            let mut packet = [0; 200];
            while !stop.load(Ordering::Relaxed) {
                for byte in &mut packet {
                    seed = seed
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    *byte = (seed >> 56) as u8;
                }
                // One in four looks right, up to its type.
                if seed.is_multiple_of(4) {
                    packet[..2].copy_from_slice(&own.port().to_be_bytes());
                    packet[2..4].copy_from_slice(&to.port().to_be_bytes());
                    packet[11] = 0x10 + (seed >> 8) as u8 % 10;
                }
                let length = (seed >> 16) as usize % packet.len();
                let _ = socket.send_to(&packet[..length], to);
            }
        }
    });
    let began = Instant::now();
    let mut calls = 0;
    while began.elapsed() < Duration::from_millis(500) {
        call(&client, to, pattern(5000)).unwrap();
        calls += 1;
    }
    stop.store(true, Ordering::Relaxed);
    flood.join().unwrap();
    let stats = server.stats();
    assert!(stats.engine.packets_short > 100, "{:?}", stats.engine);
    assert!(stats.engine.packets_short_for_type > 0);
    assert!(stats.engine.packets_of_unknown_type > 100);
    assert!(calls > 20, "only {calls} calls in half a second");
    server.close();
    answering.join().unwrap();
}

#[test]
fn place__announcements_pin_next_to_nothing() {
    let (client, server) = (engine(udp()), engine(udp()));
    let answering = echo(server.listen(0).unwrap());
    let to = address(&server);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let own = socket.local_addr().unwrap();
    for id in 1..=2000 {
        let packet = announcement(own, to, 2 * id, 1_000_000, 0);
        assert_eq!(packet.len(), 57);
        socket.send_to(&packet, to).unwrap();
        if id % 100 == 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }
    eventually("the announcements arrive", || {
        server.stats().core_gauges.server_incoming > 1000
    });
    let held = server.stats().engine_gauges.page_bytes;
    assert!(held < 2000 * 200, "{held} bytes for 2000 announcements");
    call(&client, to, pattern(1_000_000)).unwrap();
    // And go away again.
    eventually("the announced requests are given up", || {
        let stats = server.stats();
        stats.core_gauges.server_incoming == 0 && stats.engine_gauges.page_bytes == 0
    });
    server.close();
    answering.join().unwrap();
}

#[test]
fn place__scattered_bytes_use_up_only_their_own_share() {
    let server = {
        let mut config = config();
        config.core.buffer_bytes = 4_000_000;
        Engine::new(config, udp()).unwrap()
    };
    let client = engine(udp());
    let answering = echo(server.listen(0).unwrap());
    let to = address(&server);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let own = socket.local_addr().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let attack = thread::spawn({
        let stop = stop.clone();
        move || {
            let mut id = 2;
            while !stop.load(Ordering::Relaxed) {
                for page in 0..60 {
                    // The last byte of each page: a whole page for each.
                    let offset = 16_384 * (page + 1) - 1;
                    let packet = announcement(own, to, id, 1_000_000, offset);
                    let _ = socket.send_to(&packet, to);
                }
                id += 2;
                thread::sleep(Duration::from_micros(500));
            }
        }
    });
    eventually("the attack has had its share", || {
        server.stats().engine.messages_without_memory > 10
    });
    for _ in 0..5 {
        let response = call(&client, to, pattern(500_000)).unwrap();
        assert!(response == pattern(500_000)[..]);
    }
    let held = server.stats().engine_gauges.page_bytes;
    assert!(held <= 8_000_000, "{held} bytes");
    stop.store(true, Ordering::Relaxed);
    attack.join().unwrap();
    server.close();
    answering.join().unwrap();
}

#[test]
fn place__full_buffers_drain_one_after_the_other() {
    let server = {
        let mut config = config();
        config.core.buffer_bytes = 2_000_000;
        Engine::new(config, udp()).unwrap()
    };
    let listener = server.listen(0).unwrap();
    let to = address(&server);
    let clients: Vec<_> = (0..4).map(|_| engine(udp())).collect();
    let options = CallOptions::until(patience());
    let calls: Vec<_> = clients
        .iter()
        .flat_map(|client| [client, client])
        .map(|client| client.call(to, pattern(700_000), options).unwrap())
        .collect();
    // Nothing is taken for a while: the buffers fill up.
    eventually("somebody waits for memory", || {
        server.stats().core.buffer_waits > 0
    });
    let answering = echo(listener);
    for call in calls {
        assert!(call.wait().unwrap() == pattern(700_000)[..]);
    }
    let stats = server.stats();
    assert_eq!(stats.core_gauges.buffer_bytes, 0);
    assert_eq!(stats.engine_gauges.page_bytes, 0);
    server.close();
    assert_eq!(answering.join().unwrap(), 8);
}
