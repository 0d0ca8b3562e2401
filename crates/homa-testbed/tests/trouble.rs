//! What happens to calls when networks change and peers go, over real sockets.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

mod common;

use std::io::{BufRead, BufReader, Lines};
use std::net::{IpAddr, SocketAddr};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use common::calls::{
    Carrier, DEFAULT, LONG, Outcome, PORT, Role, Server, answer_to, call_all, count, open,
    open_here, request,
};
use common::{kernel_counter, pair, testbed};
use homa::{Error, blocking};
use homa_testbed::{Host, Link, Network, Options, Switch};

const CARRIERS: [Carrier; 2] = [Carrier::Udp, Carrier::Raw];

fn addresses(host: &Host) -> [IpAddr; 2] {
    [host.v4(), host.v6()]
}

#[test]
fn path_mtu__smaller_than_that_of_the_links() {
    let options = Options {
        network: Network::Routed { path_mtu: 1280 },
        ..Options::default()
    };
    for carrier in CARRIERS {
        // What hosts have learnt about paths goes with them.
        let Some(testbed) = testbed("path_mtu__smaller_than_that_of_the_links", &options) else {
            return;
        };
        let [client_host, server_host] = pair(&testbed);
        for to in addresses(server_host) {
            let server = Server::start(server_host, carrier, LONG);
            let client = open(client_host, carrier, Role::Client, LONG);
            let mut outcome = Outcome::default();
            let start = Instant::now();
            for (length, calls) in [(1, 10), (1_424, 10), (40_000, 4), (1_000_000, 2)] {
                call_all(&client, to, length, calls, &mut outcome);
            }
            let took = start.elapsed();
            assert_eq!(outcome.succeeded, 26, "{carrier:?} {to}: {outcome:?}");
            outcome.check_executions(&server.executed());
            assert!(took < Duration::from_secs(5), "{carrier:?} {to}: {took:?}");
            // Both ends were told, and believed it; but the kernel lets routers
            // cut what leaves in super-packets over IPv4.
            for (stats, host) in [
                (client.stats(), client_host),
                (server.endpoint.stats(), server_host),
            ] {
                let told = count(&stats, "datapath", "icmp_packet_too_big");
                let cut = kernel_counter(host, "Ip", "ReasmOKs");
                let sent = count(&stats, "datapath", "tx_packets");
                let about = format!("{carrier:?} {to}: {told} of {sent}, {cut} put together");
                assert!(told > 0 || (cut > 0 && to.is_ipv4()), "{about}");
                assert!(told < sent / 4, "{about}");
            }
        }
    }
}

/// 1 MB takes 0.4 s.
fn slow() -> Options {
    Options {
        network: Network::Switch(Switch {
            rate_bps: 20_000_000,
            buffer_bytes: 1_000_000,
            ..Switch::default()
        }),
        ..Options::default()
    }
}

#[test]
fn link__down_for_a_moment_in_the_middle_of_a_call() {
    let test = "link__down_for_a_moment_in_the_middle_of_a_call";
    let Some(testbed) = testbed(test, &slow()) else {
        return;
    };
    let [client_host, server_host] = pair(&testbed);
    for carrier in CARRIERS {
        for (to, host) in addresses(server_host).into_iter().zip([0, 1]) {
            let server = Server::start(server_host, carrier, LONG);
            let client = open(client_host, carrier, Role::Client, LONG);
            let sent = request(0, 1_000_000);
            let address = SocketAddr::new(to, PORT);
            let call = client.client().call(address, sent.clone()).start().unwrap();
            std::thread::sleep(Duration::from_millis(150));
            testbed.set_link(host, Link::Down).unwrap();
            std::thread::sleep(Duration::from_millis(40));
            testbed.set_link(host, Link::Up).unwrap();
            let reply = call.wait();
            let what = format!("{carrier:?} {to}");
            let reply = reply.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(reply.into_bytes() == answer_to(&sent), "{what}");
            assert_eq!(server.executed(), [(sent, 1)].into(), "{what}");
            let stats = [client.stats(), server.endpoint.stats()];
            let again = |stats| count(stats, "core", "retransmitted_bytes");
            assert!(stats.iter().map(again).sum::<u64>() > 0, "{what}");
        }
    }
}

#[test]
fn link__down_for_good_ends_the_call_in_time() {
    let test = "link__down_for_good_ends_the_call_in_time";
    let Some(testbed) = testbed(test, &slow()) else {
        return;
    };
    let [client_host, server_host] = pair(&testbed);
    for carrier in CARRIERS {
        for to in addresses(server_host) {
            let server = Server::start(server_host, carrier, DEFAULT);
            let client = open(client_host, carrier, Role::Client, DEFAULT);
            let address = SocketAddr::new(to, PORT);
            let sent = request(0, 1_000_000);
            let call = client.client().call(address, sent).start().unwrap();
            std::thread::sleep(Duration::from_millis(100));
            testbed.set_link(1, Link::Down).unwrap();
            let start = Instant::now();
            let error = call.wait().unwrap_err();
            let took = start.elapsed();
            let what = format!("{carrier:?} {to}: {error} after {took:?}");
            let known = matches!(error, Error::Timeout { .. } | Error::HostUnreachable { .. });
            assert!(known && error.may_have_executed(), "{what}");
            assert!(took < Duration::from_secs(1), "{what}");
            assert!(server.executed().values().sum::<u32>() <= 1, "{what}");
            // And when the link is back all goes on.
            testbed.set_link(1, Link::Up).unwrap();
            let mut outcome = Outcome::default();
            call_all(&client, to, 1_000, 1, &mut outcome);
            assert_eq!(outcome.succeeded, 1, "{what}; then {outcome:?}");
        }
    }
}

#[test]
fn reply__comes_from_the_address_that_was_asked() {
    let test = "reply__comes_from_the_address_that_was_asked";
    let Some(testbed) = testbed(test, &Options::default()) else {
        return;
    };
    let [client_host, server_host] = pair(&testbed);
    let more = ["10.88.0.102", "fd88::102"].map(|ip| ip.parse().unwrap());
    for ip in more {
        testbed.add_address(1, ip).unwrap();
    }
    for carrier in CARRIERS {
        let endpoint = open(server_host, carrier, Role::Server, LONG);
        let listening = endpoint.clone();
        let server = server_host.run(move || listening.server(PORT).unwrap());
        let server = server.unwrap();
        let serving = server_host
            .spawn(move || {
                for request in &server {
                    let asked = request.local_address().to_string();
                    request.reply(asked).unwrap();
                }
            })
            .unwrap();
        let client = open(client_host, carrier, Role::Client, LONG);
        for ip in addresses(server_host).into_iter().chain(more) {
            let address = SocketAddr::new(ip, PORT);
            for length in [1, 50_000] {
                // A reply from elsewhere belongs to no call, and this one fails.
                let reply = client.client().call(address, vec![0; length]).wait();
                let reply = reply.unwrap_or_else(|error| panic!("{carrier:?} {ip}: {error}"));
                assert_eq!(reply.into_bytes(), address.to_string());
            }
        }
        endpoint.shutdown(Duration::from_secs(1));
        serving.join().unwrap();
    }
}

/// Which carrier the program that is killed uses.
const PEER: &str = "HOMA_TESTBED_PEER";
/// A request that begins with it is never answered.
const HOLD: u8 = 255;

/// Not a test but the program that the test below starts and kills.
#[test]
fn peer__serves_until_it_is_killed() {
    let Ok(carrier) = std::env::var(PEER) else {
        return;
    };
    let carrier = match carrier.as_str() {
        "raw" => Carrier::Raw,
        _ => Carrier::Udp,
    };
    let endpoint = open_here(carrier, Role::Server, LONG);
    let server = endpoint.server(PORT).unwrap();
    println!("ready");
    let mut held = Vec::new();
    for mut request in &server {
        let bytes = request.take_message().into_bytes();
        println!("executed {} {}", bytes[0], bytes.len());
        if bytes[0] == HOLD {
            held.push(request);
        } else {
            let _ = request.reply(answer_to(&bytes));
        }
    }
}

/// That program, running.
struct Peer {
    child: Child,
    output: Lines<BufReader<ChildStdout>>,
}

impl Peer {
    fn start(host: &Host, carrier: Carrier) -> Self {
        let carrier = match carrier {
            Carrier::Udp => "udp",
            Carrier::Raw => "raw",
        };
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "peer__serves_until_it_is_killed", "--nocapture"])
            .env(PEER, carrier)
            .stdout(Stdio::piped());
        let mut child = host.start(command).unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut peer = Self { child, output };
        assert!(peer.says("ready"));
        peer
    }

    /// Reads on until it says this, or ends.
    fn says(&mut self, line: &str) -> bool {
        self.output.any(|said| said.unwrap() == line)
    }

    /// Kills it; how often each request was executed.
    fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let lines = self.output.map(Result::unwrap);
        lines.filter(|line| line.starts_with("executed")).collect()
    }
}

fn call(client: &blocking::Endpoint, to: IpAddr, request: &[u8]) -> blocking::Pending {
    let address = SocketAddr::new(to, PORT);
    let call = client.client().call(address, request.to_vec());
    call.deadline(Duration::from_secs(20)).start().unwrap()
}

#[test]
fn peer__killed_and_restarted() {
    let Some(testbed) = testbed("peer__killed_and_restarted", &slow()) else {
        return;
    };
    let [client_host, server_host] = pair(&testbed);
    for carrier in CARRIERS {
        let client = open(client_host, carrier, Role::Client, DEFAULT);
        for to in addresses(server_host) {
            let what = format!("{carrier:?} {to}");
            let mut peer = Peer::start(server_host, carrier);
            let small = request(1, 100);
            let reply = call(&client, to, &small).wait();
            let reply = reply.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(reply.into_bytes(), answer_to(&small));
            // One that the peer is at work on, and one that is on its way.
            let held = call(&client, to, &[HOLD; 10]);
            assert!(peer.says(&format!("executed {HOLD} 10")), "{what}");
            let large_request = request(2, 1_000_000);
            let large = call(&client, to, &large_request);
            std::thread::sleep(Duration::from_millis(50));
            let executed = peer.kill();
            assert_eq!(executed.len(), 0, "{what}: {executed:?}");
            let start = Instant::now();
            let peer = Peer::start(server_host, carrier);
            let error = held.wait().map(|_| ()).unwrap_err();
            let about = format!("{what}: {error} after {:?}", start.elapsed());
            assert!(start.elapsed() < Duration::from_secs(2), "{about}");
            assert!(says_that_the_peer_is_gone(&error), "{about}");
            assert!(error.may_have_executed(), "{about}");
            // The old one never had all of it, so it may be sent to the new one.
            let large = large.wait();
            assert!(start.elapsed() < Duration::from_secs(5), "{what}");
            // The new one serves, and executes nothing that the old one had.
            let reply = call(&client, to, &small).wait();
            let reply = reply.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(reply.into_bytes(), answer_to(&small));
            let executed = peer.kill();
            let times = |what: &str| executed.iter().filter(|line| *line == what).count();
            assert_eq!(times("executed 1 100"), 1, "{what}: {executed:?}");
            match (large, times("executed 2 1000000")) {
                (Ok(reply), 1) => assert!(reply.into_bytes() == answer_to(&large_request)),
                (Ok(_), times) => panic!("{what}: executed {times} times"),
                (Err(error), times) => {
                    let about = format!("{what}: {error}, executed {times} times");
                    assert!(says_that_the_peer_is_gone(&error), "{about}");
                    assert!(
                        times == 0 || times == 1 && error.may_have_executed(),
                        "{about}"
                    );
                }
            }
        }
    }
}

fn says_that_the_peer_is_gone(error: &Error) -> bool {
    matches!(
        error,
        Error::PeerRestarted { .. }
            | Error::ServerGone { .. }
            | Error::PortClosed { .. }
            | Error::ProtocolUnsupported { .. }
            | Error::HostUnreachable { .. }
            | Error::Timeout { .. }
    )
}
