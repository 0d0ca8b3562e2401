//! What the tests share: endpoints that echo, and a peer made by hand that
//! speaks the wire format over a plain UDP socket and does what no real peer
//! would.

#![allow(
    dead_code,
    reason = "every test file uses some of it, and none uses all"
)]

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use homa::{Endpoint, Message, Server};
use homa_wire::{Body, Data, Packet, PacketType, SenderId};

/// Longer than anything here may take on a slow and busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// An endpoint on a free loopback port with a server that sends requests back.
pub(crate) async fn echo_endpoint() -> (Endpoint, SocketAddr) {
    let endpoint = Endpoint::bind("127.0.0.1:0").await.unwrap();
    let address = endpoint.local_addresses()[0];
    spawn_echo(serve(&endpoint));
    (endpoint, address)
}

/// A server on the endpoint's own port.
pub(crate) fn serve(endpoint: &Endpoint) -> Server {
    endpoint.server(endpoint.port().unwrap()).unwrap()
}

/// Sends every request of a server back.
pub(crate) fn spawn_echo(server: Server) {
    tokio::spawn(async move {
        while let Some(mut request) = server.accept().await {
            let message = request.take_message();
            let _ = request.reply(message);
        }
    });
}

/// Bytes that tell where they are.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (at as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0])
        .collect()
}

pub(crate) fn bytes(message: Message) -> Vec<u8> {
    message.into_bytes().to_vec()
}

/// Fails the test instead of hanging it.
pub(crate) async fn soon<F: IntoFuture>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future.into_future())
        .await
        .expect("this hangs")
}

/// Runs a test in a network namespace of its own, where loopback is up, with
/// the MTU of an Ethernet, and nothing else is: the test's program runs itself
/// again, this test alone.
pub(crate) fn in_namespace<F: Future<Output = ()>>(test: &str, body: impl FnOnce() -> F) {
    const INSIDE: &str = "HOMA_TEST_IN_NAMESPACE";
    if std::env::var_os(INSIDE).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        return runtime.block_on(body());
    }
    let shell = |command: &str| {
        let mut unshare = std::process::Command::new("unshare");
        unshare.args(["--net", "sh", "-c", command]);
        unshare
    };
    match shell("ip link set lo mtu 1500 up").output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            return homa_test::skip(test, &String::from_utf8_lossy(&output.stderr));
        }
        Err(error) => return homa_test::skip(test, &format!("unshare: {error}")),
    }
    let output =
        shell("ip link set lo mtu 1500 up && exec \"$PROGRAM\" --exact \"$TEST\" --nocapture")
            .env("PROGRAM", std::env::current_exe().unwrap())
            .env("TEST", test)
            .env(INSIDE, "1")
            .output()
            .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A peer made by hand.
pub(crate) struct HandMade {
    pub(crate) socket: UdpSocket,
}

impl HandMade {
    pub(crate) fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        Self { socket }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    pub(crate) fn port(&self) -> u16 {
        self.address().port()
    }

    pub(crate) fn send(&self, to: SocketAddr, sender_id: u64, body: Body, payload: &[u8]) {
        let packet = Packet::new(self.port(), to.port(), SenderId(sender_id), body);
        let mut buffer = vec![0; packet.header_length()];
        packet.emit(&mut buffer).unwrap();
        buffer.extend_from_slice(payload);
        self.socket.send_to(&buffer, to).unwrap();
    }

    /// The next packet, or `None` after `wait` without one.
    pub(crate) fn receive(&self, wait: Duration) -> Option<(Packet, Vec<u8>, SocketAddr)> {
        self.socket.set_read_timeout(Some(wait)).unwrap();
        let mut buffer = vec![0; 65_536];
        let (length, from) = self.socket.recv_from(&mut buffer).ok()?;
        let (packet, payload) = Packet::parse(&buffer[..length]).unwrap();
        Some((packet, payload.to_vec(), from))
    }

    /// The next packet of one type; others are skipped.
    pub(crate) fn expect(&self, kind: PacketType) -> (Packet, Vec<u8>, SocketAddr) {
        let end = Instant::now() + Duration::from_secs(10);
        while Instant::now() < end {
            if let Some(found) = self.receive(Duration::from_secs(1))
                && found.0.body.packet_type() == kind
            {
                return found;
            }
        }
        panic!("no {} came", kind.name());
    }

    /// A DATA packet.
    pub(crate) fn send_data(
        &self,
        to: SocketAddr,
        sender_id: u64,
        message_length: u32,
        offset: u32,
        payload: &[u8],
    ) {
        self.send(
            to,
            sender_id,
            data(message_length, message_length, offset),
            payload,
        );
    }
}

/// The body of a DATA packet.
pub(crate) fn data(message_length: u32, incoming: u32, offset: u32) -> Body {
    Body::Data(Data {
        message_length,
        incoming,
        ack: None,
        cutoff_version: 0,
        retransmit: false,
        response_limit_log2: 0,
        one_way: false,
        sequence: offset,
        segment_offset: Some(offset),
    })
}
