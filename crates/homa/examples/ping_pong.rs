//! Round trips side by side: Homa, TCP and bare UDP, two threads with a tokio
//! runtime each, one message of 100 bytes at a time over the loopback.
//!
//! ```text
//! cargo run --release -p homa --example ping_pong -- 20000
//! ```
//!
//! prints the median and the 99th percentile in microseconds. The three take
//! turns, so that what else the machine does hits all of them.

#![allow(clippy::print_stdout, reason = "this is what it is for")]

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use homa::Endpoint;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const BYTES: usize = 100;
const ROUNDS: usize = 5;

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

struct Servers {
    homa: SocketAddr,
    tcp: SocketAddr,
    udp: SocketAddr,
}

/// All three servers, on a thread of their own, for ever.
async fn serve(started: mpsc::Sender<Servers>) -> Result<()> {
    let endpoint = Endpoint::bind("127.0.0.1:0").await?;
    let homa = endpoint.local_addresses()[0];
    let server = endpoint.server(homa.port())?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let tcp = listener.local_addr()?;
    let socket = UdpSocket::bind("127.0.0.1:0").await?;
    let udp = socket.local_addr()?;
    started.send(Servers { homa, tcp, udp })?;
    let homa = async {
        while let Some(mut request) = server.accept().await {
            let message = request.take_message();
            request.reply(message)?;
        }
        Result::Ok(())
    };
    let tcp = async {
        let (mut stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let mut buffer = [0; BYTES];
        loop {
            stream.read_exact(&mut buffer).await?;
            stream.write_all(&buffer).await?;
        }
        #[allow(unreachable_code, reason = "names the type of the block's result")]
        Result::Ok(())
    };
    let udp = async {
        let mut buffer = [0; BYTES];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await?;
            socket.send_to(&buffer[..length], from).await?;
        }
        #[allow(unreachable_code, reason = "names the type of the block's result")]
        Result::Ok(())
    };
    let ((), (), ()) = tokio::try_join!(homa, tcp, udp)?;
    Ok(())
}

async fn measure<F>(count: usize, mut round_trip: F) -> Result<Vec<Duration>>
where
    F: AsyncFnMut() -> Result<()>,
{
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let start = Instant::now();
        round_trip().await?;
        times.push(start.elapsed());
    }
    Ok(times)
}

fn report(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |permille: usize| times[(times.len() - 1) * permille / 1000].as_secs_f64() * 1e6;
    println!("{name:5} p50 {:7.2} us   p99 {:7.2} us", at(500), at(990));
}

async fn call(servers: Servers, count: usize) -> Result<()> {
    let endpoint = Endpoint::client_only().await?;
    let client = endpoint.client();
    let mut stream = TcpStream::connect(servers.tcp).await?;
    stream.set_nodelay(true)?;
    let socket = UdpSocket::bind("127.0.0.1:0").await?;
    socket.connect(servers.udp).await?;
    let payload = bytes::Bytes::from_static(&[7; BYTES]);
    let (mut homa, mut tcp, mut udp) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let count = count / ROUNDS;
        let homa_round = measure(count, async || {
            client.call(servers.homa, payload.clone()).await?;
            Ok(())
        });
        let homa_round = homa_round.await?;
        let mut buffer = [0; BYTES];
        let tcp_round = measure(count, async || {
            stream.write_all(&payload).await?;
            stream.read_exact(&mut buffer).await?;
            Ok(())
        });
        let tcp_round = tcp_round.await?;
        let udp_round = measure(count, async || {
            socket.send(&payload).await?;
            socket.recv(&mut [0; BYTES]).await?;
            Ok(())
        });
        let udp_round = udp_round.await?;
        // The first round warms up.
        if round > 0 {
            homa.extend(homa_round);
            tcp.extend(tcp_round);
            udp.extend(udp_round);
        }
    }
    report("homa", homa);
    report("tcp", tcp);
    report("udp", udp);
    Ok(())
}

fn main() -> Result<()> {
    let count = std::env::args()
        .nth(1)
        .map_or(Ok(20_000), |text| text.parse())?;
    let (started, servers) = mpsc::channel();
    thread::spawn(move || {
        if let Err(error) = runtime()
            .map_err(Into::into)
            .and_then(|runtime| runtime.block_on(serve(started)))
        {
            eprintln!("server: {error}");
        }
    });
    let servers = servers.recv()?;
    runtime()?.block_on(call(servers, count))
}
