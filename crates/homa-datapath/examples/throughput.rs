//! Packets a second over UDP on loopback, with and without segmentation
//! offload: one thread sends, one receives, both spin.
//!
//! `cargo run --release -p homa-datapath --example throughput [packet bytes]`
//!
//! Numbers of one run on one machine compare the rows with each other, nothing
//! more. There is no congestion control, so the receiver loses what it is too
//! slow for; the received column is the throughput.

#![allow(clippy::print_stdout, reason = "an example that prints a table")]
#![allow(clippy::cast_precision_loss, reason = "rates need no 53 bits")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use homa_datapath::{BindError, Datapath, Offload, Path, ReceiveBatch, SendBatch, Udp, UdpOptions};

const DURATION: Duration = Duration::from_secs(2);
/// Bytes that may be under way: like a grant window, so that the receiver's
/// buffer is not simply flooded.
const WINDOW_BYTES: u64 = 400_000;

fn main() -> Result<(), BindError> {
    let bytes = std::env::args()
        .nth(1)
        .and_then(|argument| argument.parse().ok())
        .unwrap_or(1472);
    println!("packets of {bytes} bytes, {DURATION:?} each row");
    println!(
        "gso gro |  sent kpps | received kpps | Gbit/s | packets/send call | packets/receive call"
    );
    for (gso, gro) in [
        (Offload::Off, Offload::Off),
        (Offload::On, Offload::Off),
        (Offload::On, Offload::On),
    ] {
        run(gso, gro, bytes)?;
    }
    Ok(())
}

fn bind(gso: Offload, gro: Offload) -> Result<Udp, BindError> {
    let mut options = UdpOptions::on(([127, 0, 0, 1], 0).into());
    (options.gso, options.gro) = (gso, gro);
    Udp::bind(&options)
}

fn run(gso: Offload, gro: Offload, bytes: usize) -> Result<(), BindError> {
    let sender = bind(gso, gro)?;
    let receiver = Arc::new(bind(gso, gro)?);
    let stop = Arc::new(AtomicBool::new(false));
    let path = Path::to(receiver.local_addresses()[0]);
    let receiving = std::thread::spawn({
        let (receiver, stop) = (receiver.clone(), stop.clone());
        move || {
            let mut batch = ReceiveBatch::default();
            let mut sum = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                if receiver.receive(&mut batch).is_err() {
                    return sum;
                }
                for (bytes, _) in batch.iter() {
                    sum = sum.wrapping_add(u64::from(bytes[0]));
                }
            }
            sum
        }
    });
    let mut batch = SendBatch::default();
    let start = Instant::now();
    let mut lost = 0;
    let mut stalled = Instant::now();
    while start.elapsed() < DURATION {
        let (sent, received) = (sender.counters().tx_bytes, receiver.counters().rx_bytes);
        if sent.saturating_sub(received + lost) > WINDOW_BYTES {
            if stalled.elapsed() > Duration::from_millis(2) {
                lost = sent - received;
            }
            std::hint::spin_loop();
            continue;
        }
        stalled = Instant::now();
        // As much as a pacer would let out at once: one super-packet.
        for _ in 0..44 {
            if let Some(slot) = batch.push(&path, 0x20, bytes) {
                slot[0] = 1;
            }
        }
        sender.send(&mut batch);
    }
    let seconds = start.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    let _sum = receiving.join();
    let (sent, received) = (sender.counters(), receiver.counters());
    let busy_calls = received.rx_syscalls.max(1);
    println!(
        "{:3} {:3} | {:10.0} | {:13.0} | {:6.2} | {:17.1} | {:19.2}",
        if gso == Offload::On { "on" } else { "off" },
        if gro == Offload::On { "on" } else { "off" },
        sent.tx_packets as f64 / seconds / 1e3,
        received.rx_packets as f64 / seconds / 1e3,
        received.rx_bytes as f64 * 8.0 / seconds / 1e9,
        sent.tx_packets as f64 / sent.tx_syscalls.max(1) as f64,
        received.rx_packets as f64 / busy_calls as f64,
    );
    Ok(())
}
