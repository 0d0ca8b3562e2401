//! What the engine costs on loopback: blocking ping-pong beside plain blocking
//! UDP in the same run, the rate of echoes of 100 B with many under way, and
//! the throughput of echoes of 500 kB.
//!
//! `cargo run --release -p homa-engine --example loopback [round trips] [ping|inline|rate|bulk]`
//!
//! With `COUNTERS=1` in the environment it also prints what was counted.

#![allow(clippy::print_stdout, reason = "it prints what it measures")]

use std::error::Error;
use std::net::UdpSocket;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use homa_datapath::{Udp, UdpOptions};
use homa_engine::{Call, CallOptions, Drive, Engine, EngineConfig, Listener};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn engine(drive: Drive, spin: Duration) -> Outcome<Arc<Engine>> {
    let datapath = Udp::bind(&UdpOptions::on("127.0.0.1:0".parse()?))?;
    let config = EngineConfig {
        drive,
        spin_before_sleep: spin,
        ..EngineConfig::default()
    };
    Ok(Engine::new(config, Box::new(datapath))?)
}

fn echo(listener: &Listener) {
    while let Some(incoming) = listener.accept().wait() {
        if let Some(responder) = incoming.responder {
            let _ = responder.respond(incoming.message);
        }
    }
}

/// Median and 99th percentile.
fn quantiles(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort_unstable();
    let at = |permille: usize| times[(times.len() - 1) * permille / 1000];
    (at(500), at(990))
}

fn plain(rounds: usize) -> Outcome<(Duration, Duration)> {
    let server = UdpSocket::bind("127.0.0.1:0")?;
    let client = UdpSocket::bind("127.0.0.1:0")?;
    client.connect(server.local_addr()?)?;
    let answering = thread::spawn(move || {
        let mut bytes = [0; 2000];
        while let Ok((length, from)) = server.recv_from(&mut bytes) {
            if length == 0 {
                return;
            }
            let _ = server.send_to(&bytes[..length], from);
        }
    });
    let mut times = Vec::with_capacity(rounds);
    let mut bytes = [7; 2000];
    for _ in 0..rounds {
        let began = Instant::now();
        client.send(&bytes[..156])?;
        client.recv(&mut bytes)?;
        times.push(began.elapsed());
    }
    client.send(&[])?;
    answering.join().map_err(|_| "the server panicked")?;
    Ok(quantiles(times))
}

fn ping(rounds: usize, drive: Drive, spin: Duration) -> Outcome<(Duration, Duration)> {
    let (client, server) = (engine(drive, spin)?, engine(drive, spin)?);
    let to = server.local_addresses()[0];
    let listener = server.listen(0)?;
    let answering = thread::spawn(move || echo(&listener));
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let began = Instant::now();
        client
            .call(to, vec![7; 100], CallOptions::default())?
            .wait()?;
        times.push(began.elapsed());
    }
    server.close();
    answering.join().map_err(|_| "the server panicked")?;
    Ok(quantiles(times))
}

/// Echoes a second of plain UDP, a system call a packet.
fn plain_echoes(count: u32, at_once: u32) -> Outcome<f64> {
    let server = UdpSocket::bind("127.0.0.1:0")?;
    let client = UdpSocket::bind("127.0.0.1:0")?;
    client.connect(server.local_addr()?)?;
    let answering = thread::spawn(move || {
        let mut bytes = [0; 2000];
        while let Ok((length, from)) = server.recv_from(&mut bytes) {
            if length == 0 {
                return;
            }
            let _ = server.send_to(&bytes[..length], from);
        }
    });
    let mut bytes = [7; 2000];
    let began = Instant::now();
    for sent in 0..count {
        if sent >= at_once {
            client.recv(&mut bytes)?;
        }
        client.send(&bytes[..156])?;
    }
    for _ in 0..at_once {
        client.recv(&mut bytes)?;
    }
    let seconds = began.elapsed().as_secs_f64();
    client.send(&[])?;
    answering.join().map_err(|_| "the server panicked")?;
    Ok(f64::from(count) / seconds)
}

/// Echoes a second of `bytes` bytes, so many under way at once.
fn echoes(count: u32, bytes: usize, at_once: usize) -> Outcome<f64> {
    let spin = Duration::ZERO;
    let (client, server) = (engine(Drive::Inline, spin)?, engine(Drive::Inline, spin)?);
    let to = server.local_addresses()[0];
    let listener = server.listen(0)?;
    let answering = thread::spawn(move || echo(&listener));
    let payload = bytes::Bytes::from(vec![7; bytes]);
    let began = Instant::now();
    let mut under_way = std::collections::VecDeque::<Call>::new();
    for _ in 0..count {
        if under_way.len() == at_once
            && let Some(call) = under_way.pop_front()
        {
            call.wait()?;
        }
        under_way.push_back(client.call(to, payload.clone(), CallOptions::default())?);
    }
    for call in under_way {
        call.wait()?;
    }
    let seconds = began.elapsed().as_secs_f64();
    if std::env::var_os("COUNTERS").is_some() {
        counters("client", &client);
        counters("server", &server);
    }
    server.close();
    answering.join().map_err(|_| "the server panicked")?;
    Ok(f64::from(count) / seconds)
}

fn counters(name: &str, engine: &Engine) {
    let stats = engine.stats();
    stats.core.each(|counter, label, value| {
        if value > 0 {
            println!("{name} {counter} {} {value}", label.unwrap_or(""));
        }
    });
    for (counter, value) in stats.engine.iter().filter(|(_, value)| *value > 0) {
        println!("{name} {counter} {value}");
    }
    for (counter, _, value) in stats.datapath.iter().filter(|(_, _, value)| *value > 0) {
        println!("{name} {counter} {value}");
    }
}

fn main() -> Outcome<()> {
    let rounds = match std::env::args().nth(1) {
        Some(count) => count.parse()?,
        None => 10_000,
    };
    let only = std::env::args().nth(2);
    let wants = |what: &str| only.as_deref().is_none_or(|only| only == what);
    if wants("ping") {
        pings(rounds)?;
    }
    if only.as_deref() == Some("inline") {
        let (median, tail) = ping(rounds, Drive::Inline, Duration::ZERO)?;
        println!("engine, blocking          p50 {median:?}  p99 {tail:?}");
    }
    if wants("rate") {
        for at_once in [1, 8, 64] {
            let plain = plain_echoes(100_000, at_once)?;
            let rate = echoes(100_000, 100, at_once as usize)?;
            println!(
                "100 B echoes, {at_once:2} at once   {:.0} k/s, plain UDP {:.0} k/s",
                rate / 1e3,
                plain / 1e3
            );
        }
    }
    if wants("bulk") {
        for at_once in [1, 2, 4, 8] {
            let rate = echoes(1000, 500_000, at_once)?;
            let gbps = rate * 500_000.0 * 8.0 / 1e9;
            println!("500 kB echoes, {at_once} at once   {gbps:.2} Gbit/s each way");
        }
    }
    Ok(())
}

fn pings(rounds: usize) -> Outcome<()> {
    let polling = Drive::Polling {
        idle: Duration::from_millis(10),
    };
    let spin = Duration::from_micros(100);
    for _ in 0..3 {
        let (median, tail) = plain(rounds)?;
        println!("plain UDP, blocking       p50 {median:?}  p99 {tail:?}");
        let (median, tail) = ping(rounds, Drive::Inline, Duration::ZERO)?;
        println!("engine, blocking          p50 {median:?}  p99 {tail:?}");
        let (median, tail) = ping(rounds, Drive::Inline, spin)?;
        println!("engine, spinning 100 us   p50 {median:?}  p99 {tail:?}");
    }
    let (median, tail) = ping(rounds, polling, spin)?;
    println!("engine, polling threads   p50 {median:?}  p99 {tail:?}");
    Ok(())
}
