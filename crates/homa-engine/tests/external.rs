//! A driver outside of the engine, as an async runtime is one.
#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use homa_engine::{CallOptions, Drive, Engine, EngineConfig, Sending};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use support::*;

/// Rings a descriptor, as a runtime's waker does in the end.
struct Ring {
    descriptor: std::os::fd::OwnedFd,
    rung: AtomicUsize,
}

impl Ring {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            descriptor: eventfd(0, EventfdFlags::NONBLOCK).unwrap(),
            rung: AtomicUsize::new(0),
        })
    }
}

impl Wake for Ring {
    fn wake(self: Arc<Self>) {
        self.rung.fetch_add(1, Ordering::SeqCst);
        let _ = rustix::io::write(&self.descriptor, &1_u64.to_ne_bytes());
    }
}

struct Driver {
    thread: JoinHandle<usize>,
    stop: Arc<AtomicBool>,
    ring: Arc<Ring>,
}

impl Driver {
    /// Drives edge by edge: turns until there is no more, then sleeps.
    fn start(engine: &Arc<Engine>) -> Self {
        let ring = Ring::new();
        let stop = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let (engine, ring, stop) = (engine.clone(), ring.clone(), stop.clone());
            move || {
                let mut sleeps = 0;
                engine.register_driver(&Waker::from(ring.clone()));
                while !stop.load(Ordering::SeqCst) {
                    let mut turn = engine.drive();
                    while turn.more {
                        turn = engine.drive();
                    }
                    let left = turn
                        .next
                        .map(|next| next.saturating_duration_since(Instant::now()));
                    let timeout = left.map(|left| Timespec {
                        tv_sec: left.as_secs().cast_signed(),
                        tv_nsec: left.subsec_nanos().into(),
                    });
                    let descriptors = engine.descriptors();
                    let mut polled: Vec<_> = descriptors
                        .iter()
                        .map(AsFd::as_fd)
                        .chain([ring.descriptor.as_fd()])
                        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
                        .collect();
                    let _ = poll(&mut polled, timeout.as_ref());
                    let _ = rustix::io::read(&ring.descriptor, &mut [0; 8]);
                    sleeps += 1;
                }
                sleeps
            }
        });
        Self { thread, stop, ring }
    }

    fn stop(self) -> usize {
        self.stop.store(true, Ordering::SeqCst);
        self.ring.clone().wake();
        self.thread.join().unwrap()
    }
}

fn outside() -> Arc<Engine> {
    let config = EngineConfig {
        drive: Drive::External,
        ..config()
    };
    Engine::new(config, udp()).unwrap()
}

#[test]
fn drive__from_outside_does_all() {
    let (client, server) = (outside(), engine(udp()));
    let driver = Driver::start(&client);
    let listener = server.listen(0).unwrap();
    let to = address(&server);
    let options = CallOptions::until(patience());
    for size in [1, 1_000_000] {
        let call = client.call(to, pattern(size), options).unwrap();
        let request = listener.accept().wait().unwrap();
        request.responder.unwrap().respond(pattern(size)).unwrap();
        eventually("the response arrives by the driver alone", || {
            client.stats().core_gauges.client_incoming == 1
        });
        assert!(call.wait().unwrap() == pattern(size)[..]);
    }
    thread::sleep(Duration::from_millis(200));
    let sleeps = driver.stop();
    assert!(sleeps < 20_000, "slept {sleeps} times");
}

#[test]
fn register_driver__a_sleeping_driver_is_told_of_earlier_deadlines() {
    let (client, server) = (outside(), engine(udp()));
    let _listener = server.listen(0).unwrap();
    let driver = Driver::start(&client);
    thread::sleep(Duration::from_millis(20));
    let rung = driver.ring.rung.load(Ordering::SeqCst);
    let began = Instant::now();
    let options = CallOptions::until(began + Duration::from_millis(30));
    let call = client.call(address(&server), "x", options).unwrap();
    assert!(driver.ring.rung.load(Ordering::SeqCst) > rung, "not told");
    // Nobody waits: only the driver can end it.
    eventually("the deadline ends the call", || {
        client.stats().engine.deadlines_exceeded == 1
    });
    let took = began.elapsed().as_millis();
    assert!((30..150).contains(&took), "took {took} ms");
    drop(call);
    driver.stop();
}

#[test]
fn wait__blocking_callers_need_no_driver_outside() {
    let (client, server) = (outside(), outside());
    let answering = echo(server.listen(0).unwrap());
    for size in [1, 100_000] {
        call(&client, address(&server), pattern(size)).unwrap();
    }
    server.close();
    answering.join().unwrap();
}

#[test]
fn drive__with_sending_in_the_next_turn_calls_leave_together() {
    let config = EngineConfig {
        drive: Drive::External,
        sending: Sending::NextTurn,
        ..config()
    };
    let (client, server) = (Engine::new(config, udp()).unwrap(), engine(udp()));
    let listener = server.listen(0).unwrap();
    let to = address(&server);
    let ring = Ring::new();
    client.register_driver(&Waker::from(ring.clone()));
    // From a turn without anything left on, the driver may sleep.
    while client.drive().more {}
    let sends = || client.stats().datapath.tx_syscalls;
    let before = sends();
    let rung = ring.rung.load(Ordering::SeqCst);
    let calls: Vec<_> = (0..32)
        .map(|_| {
            client
                .call(to, "x", CallOptions::until(patience()))
                .unwrap()
        })
        .collect();
    assert_eq!(sends(), before, "nothing is sent by who submits");
    assert!(
        ring.rung.load(Ordering::SeqCst) > rung,
        "the driver is told"
    );
    client.drive();
    let used = sends() - before;
    assert!((1..=4).contains(&used), "{used} sends of 32 calls");
    for _ in 0..calls.len() {
        let request = listener.accept().wait().unwrap();
        request.responder.unwrap().respond("y").unwrap();
    }
    // Who waits drives.
    for call in calls {
        assert!(call.wait().unwrap() == b"y"[..]);
    }
}
