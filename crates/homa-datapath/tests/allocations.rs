//! Nothing is allocated per packet or per call.
//!
//! One test in its own program, since it counts for the whole program.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(clippy::unwrap_used, reason = "a test program")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use homa_datapath::{Datapath, MemNetwork, Path, ReceiveBatch, SendBatch, Udp, UdpOptions};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Sends from one to the other, with closed ports and errors in between, and
/// returns the packets that arrived and the allocations made.
fn traffic(from: &dyn Datapath, to: &dyn Datapath, target: SocketAddr) -> (usize, u64) {
    let (mut batch, mut received) = (SendBatch::default(), ReceiveBatch::default());
    let (mut arrived, mut errors) = (0, 0);
    let path = Path::to(target);
    let mut nobody = path;
    nobody.remote.set_port(1);
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for round in 0..100 {
        for index in 0..50_u8 {
            batch.push(&path, index & 0xe0, 1400).unwrap().fill(index);
        }
        if round % 10 == 0 {
            batch.push(&nobody, 0, 100).unwrap().fill(0);
        }
        assert!(from.max_packet(&path) > 1000);
        from.send(&mut batch);
        while to.receive(&mut received).unwrap() > 0 {
            arrived += received.iter().count();
        }
        from.errors(&mut |_| errors += 1);
        from.counters();
    }
    let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
    assert!(errors > 0);
    (arrived, allocations)
}

#[test]
fn send_and_receive__without_allocation() {
    let options = UdpOptions::on("127.0.0.1:0".parse().unwrap());
    let (from, to) = (Udp::bind(&options).unwrap(), Udp::bind(&options).unwrap());
    assert_eq!(traffic(&from, &to, to.local_addresses()[0]), (5000, 0));
    let network = MemNetwork::new();
    let from = network.endpoint(([10, 0, 0, 1], 9).into()).unwrap();
    let to = network.endpoint(([10, 0, 0, 2], 9).into()).unwrap();
    assert_eq!(traffic(&from, &to, to.local_addresses()[0]), (5000, 0));
}
