//! No allocation on the packet path: after construction and a warm-up, ten
//! thousand calls, with losses and timers among them, take no memory
//! (`D2` of the design: memory is an argument).
#![allow(
    unsafe_code,
    reason = "a counting global allocator can only be written with unsafe"
)]
#![allow(non_snake_case, reason = "test names are function__case")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::VecDeque;

use homa_core::{
    Config, Endpoint, Event, Identity, Kind, MoreDue, PeerHandle, Request, RpcHandle, Time,
};

struct Counting;

thread_local! {
    static COUNTED: Cell<Option<u64>> = const { Cell::new(None) };
}

fn count() {
    // The allocator may run while the thread is being torn down.
    let _ = COUNTED.try_with(|counted| {
        if let Some(n) = counted.get() {
            counted.set(Some(n + 1));
        }
    });
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count();
        // SAFETY: as above; `pointer` came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above; `pointer` came from `System`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct End {
    endpoint: Endpoint,
    other: PeerHandle,
}

fn end(instance: u64) -> End {
    let config = Config {
        max_rpcs: 512,
        max_peers: 8,
        ..Config::default()
    };
    let settings = config.settings().expect("valid");
    let identity = Identity {
        first_id: 1000,
        instance,
        hash_seed: instance,
    };
    let mut endpoint = Endpoint::new(settings, identity);
    let (other, _) = endpoint.add_peer(Time::from_nanos(1), 1480).expect("room");
    endpoint.listen(4000);
    End { endpoint, other }
}

/// Calls between two endpoints; one packet in `lose_every` is lost.
struct Run {
    client: End,
    server: End,
    waiting: VecDeque<RpcHandle>,
    now: Time,
    packets: u64,
    lose_every: u64,
    started: u32,
    ended: u32,
}

impl Run {
    fn lost(&mut self) -> bool {
        self.packets += 1;
        self.now = self.now + 1000;
        self.packets.is_multiple_of(self.lose_every)
    }

    fn step(&mut self, lengths: [u32; 2]) {
        let now = self.now;
        while let Some(sent) = self.client.endpoint.poll_transmit(now) {
            if !self.lost() {
                let length = sent.payload.map_or(0, |p| p.length());
                let server = &mut self.server;
                server
                    .endpoint
                    .packet(now, server.other, &sent.packet, length);
            }
        }
        while let Some(event) = self.server.endpoint.poll_event() {
            if let Event::Request { rpc, .. } = event {
                self.server.endpoint.taken(now, rpc);
                self.waiting.push_back(rpc);
            }
        }
        while let Some(rpc) = self.waiting.pop_front() {
            let _ = self.server.endpoint.respond(now, rpc, lengths[1]);
        }
        while let Some(sent) = self.server.endpoint.poll_transmit(now) {
            if !self.lost() {
                let length = sent.payload.map_or(0, |p| p.length());
                let client = &mut self.client;
                client
                    .endpoint
                    .packet(now, client.other, &sent.packet, length);
            }
        }
        while let Some(event) = self.client.endpoint.poll_event() {
            match event {
                Event::Response { rpc, .. } => {
                    self.client.endpoint.taken(now, rpc);
                    self.ended += 1;
                }
                Event::Failed { .. } => self.ended += 1,
                _ => {}
            }
        }
    }

    fn calls(&mut self, until: u32) {
        while self.ended < until {
            let lengths = match self.started % 10 {
                0 => [60_000, 100],
                5 => [100, 60_000],
                _ => [100, 100],
            };
            if self.started < until && self.started - self.ended < 64 {
                let request = Request {
                    local_port: 40_000,
                    remote_port: 4000,
                    length: lengths[0],
                    kind: Kind::Call,
                };
                let client = &mut self.client;
                client
                    .endpoint
                    .request(self.now, client.other, request)
                    .expect("room");
                self.started += 1;
            } else {
                // Everybody waits for a timer.
                self.now = self.now + 1_000_000;
            }
            self.step(lengths);
            for end in [&mut self.client, &mut self.server] {
                while end.endpoint.timeout(self.now, 16) == MoreDue::Yes {}
            }
        }
    }
}

#[test]
fn endpoint__ten_thousand_calls_take_no_memory() {
    let mut run = Run {
        client: end(1),
        server: end(2),
        waiting: VecDeque::with_capacity(1024),
        now: Time::from_nanos(1_000_000_000),
        packets: 0,
        lose_every: 97,
        started: 0,
        ended: 0,
    };
    run.calls(3000);
    COUNTED.set(Some(0));
    run.calls(13_000);
    let counted = COUNTED.take();
    assert_eq!(counted, Some(0), "allocations and releases");
    assert!(run.server.endpoint.counters().retransmitted_bytes > 0);
    assert!(run.server.endpoint.counters().granted_bytes > 0);
}

/// The test above must be able to fail.
#[test]
fn counting__sees_an_allocation() {
    COUNTED.set(Some(0));
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(COUNTED.take(), Some(2));
}
