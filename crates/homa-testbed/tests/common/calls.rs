//! A server that counts how often it executes what, and callers that check
//! every byte.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use homa::blocking::{Endpoint, Pending};
use homa::{Builder, Error, Request, Stats};
use homa_testbed::Host;

/// The port of every server.
pub(crate) const PORT: u16 = 4000;
/// Calls of one byte are told apart by it.
pub(crate) const MAX_CALLS: usize = 256;
/// Longer than any call here may take on a slow and busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Silence that only ends a call if nothing is heard any more at all.
pub(crate) const LONG: Duration = Duration::from_secs(5);
/// The silence that ends a call by default.
pub(crate) const DEFAULT: Duration = Duration::from_millis(100);
/// How long an endpoint may take to end.
const SHUTDOWN: Duration = Duration::from_secs(2);

/// What carries the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    Udp,
    Raw,
}

/// An endpoint in a host: one that serves has [`PORT`], one that calls any.
///
/// `silence` is what it takes for a peer that is gone. A test that is not about
/// that waits for [`LONG`], because on a machine with more to do than it has
/// processors everybody is silent at times.
pub(crate) fn open(host: &Host, carrier: Carrier, role: Role, silence: Duration) -> Endpoint {
    host.run(move || open_here(carrier, role, silence)).unwrap()
}

/// The same, where the thread is.
pub(crate) fn open_here(carrier: Carrier, role: Role, silence: Duration) -> Endpoint {
    let build = || {
        let builder: Builder<homa::Blocking> = Endpoint::builder().timeout(silence);
        let builder = match (carrier, role) {
            (Carrier::Raw, _) => builder.raw(),
            (Carrier::Udp, Role::Server) => builder.bind(SocketAddr::from(([0; 16], PORT))),
            (Carrier::Udp, Role::Client) => builder,
        };
        builder.build()
    };
    // A program that a test beside this one is just starting has a copy of all
    // descriptors for a moment, also of those of the endpoint before.
    for _ in 0..100 {
        match build() {
            Err(Error::RawOwned | Error::PortInUse { .. }) => {
                std::thread::sleep(Duration::from_millis(10));
            }
            built => return built.unwrap(),
        }
    }
    build().unwrap()
}

/// What an endpoint is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    Server,
}

/// Requests executed, by their content, which is different in every call.
pub(crate) type Executed = HashMap<Vec<u8>, u32>;

/// A server in a host that answers with what [`answer_to`] says.
pub(crate) struct Server {
    pub(crate) endpoint: Endpoint,
    executed: Arc<Mutex<Executed>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(host: &Host, carrier: Carrier, silence: Duration) -> Self {
        let endpoint = open(host, carrier, Role::Server, silence);
        let listening = endpoint.clone();
        let server = host.run(move || listening.server(PORT).unwrap()).unwrap();
        let executed = Arc::new(Mutex::new(Executed::new()));
        let counts = executed.clone();
        let serve = move || {
            for request in &server {
                execute(request, &counts);
            }
        };
        let thread = Some(host.spawn(serve).unwrap());
        Self {
            endpoint,
            executed,
            thread,
        }
    }

    /// What was executed, and how often.
    pub(crate) fn executed(&self) -> Executed {
        self.executed.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.endpoint.shutdown(SHUTDOWN);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }
}

fn execute(mut request: Request, counts: &Mutex<Executed>) {
    let bytes = request.take_message().into_bytes().to_vec();
    let answer = answer_to(&bytes);
    *counts.lock().unwrap().entry(bytes).or_default() += 1;
    // An error says that the client is gone, which it knows best itself.
    let _ = request.reply(answer);
}

/// As long as the request, and every byte another one.
pub(crate) fn answer_to(request: &[u8]) -> Vec<u8> {
    request.iter().map(|byte| !byte).collect()
}

/// The request of the `call`-th call: it begins with the number and tells at
/// every place where it is.
pub(crate) fn request(call: usize, length: usize) -> Vec<u8> {
    assert!(call < MAX_CALLS);
    let byte = |at: usize| {
        let mixed = (at as u32 ^ (call as u32) << 20).wrapping_mul(2_654_435_761);
        mixed.to_be_bytes()[0]
    };
    let mut bytes: Vec<u8> = (0..length).map(byte).collect();
    bytes[0] = call as u8;
    bytes
}

/// What came of calls.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) succeeded: usize,
    pub(crate) failures: Vec<Error>,
    /// Requests that must have been executed once, and those that may have.
    sent: Vec<(Vec<u8>, Expected)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Once,
    AtMostOnce,
}

/// Makes calls of one length, all of them at once, and waits for their ends.
pub(crate) fn call_all(
    client: &Endpoint,
    to: IpAddr,
    length: usize,
    calls: usize,
    outcome: &mut Outcome,
) {
    let begun: Vec<(Vec<u8>, Pending)> = (0..calls)
        .map(|call| {
            let request = request(call, length);
            let pending = client
                .client()
                .call(SocketAddr::new(to, PORT), request.clone())
                .deadline(PATIENCE)
                .start()
                .unwrap();
            (request, pending)
        })
        .collect();
    for (request, pending) in begun {
        let expected = match pending.wait() {
            Ok(reply) => {
                let reply = reply.into_bytes();
                assert!(
                    reply == answer_to(&request),
                    "the reply of {length} bytes is not what was sent"
                );
                outcome.succeeded += 1;
                Expected::Once
            }
            Err(error) => {
                outcome.failures.push(error);
                Expected::AtMostOnce
            }
        };
        outcome.sent.push((request, expected));
    }
}

impl Outcome {
    /// Each request of a successful call was executed exactly once, each other
    /// one at most once, and nothing else was executed.
    pub(crate) fn check_executions(&self, executed: &Executed) {
        let mut known = 0;
        for (request, expected) in &self.sent {
            let times = executed.get(request).copied().unwrap_or(0);
            let length = request.len();
            match expected {
                Expected::Once => assert_eq!(times, 1, "{length} bytes, call {}", request[0]),
                Expected::AtMostOnce => {
                    assert!(times <= 1, "{length} bytes executed {times} times");
                }
            }
            known += times;
        }
        let all: u32 = executed.values().sum();
        assert_eq!(all, known, "something was executed that nobody sent");
    }
}

/// A counter of an endpoint, the sum over its labels.
pub(crate) fn count(stats: &Stats, group: &str, name: &str) -> u64 {
    let mut samples = stats
        .iter()
        .filter(|sample| sample.group == group && sample.name == name)
        .peekable();
    assert!(
        samples.peek().is_some(),
        "there is no counter {group}/{name}"
    );
    samples.map(|sample| sample.value).sum()
}
