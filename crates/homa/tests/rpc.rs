//! What an application does all day, over real UDP on the loopback and in
//! process: calls, one-way messages, deadlines, cancellation, errors that name
//! their cause.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail the test"
)]
#![cfg(feature = "tokio")]

mod common;

use std::time::{Duration, Instant};

use common::{bytes, echo_endpoint, pattern, serve, soon, spawn_echo};
use homa::datapath::MemNetwork;
use homa::{Endpoint, Error, Kind, Message};

const MS: Duration = Duration::from_millis(1);

#[tokio::test]
async fn call__every_interesting_length_comes_back() {
    let (_server, address) = echo_endpoint().await;
    let endpoint = Endpoint::client_only().await.unwrap();
    let client = endpoint.client();
    for length in [
        1, 2, 100, 1416, 1417, 39_999, 40_000, 40_001, 65_535, 300_000, 999_999, 1_000_000,
    ] {
        let sent = pattern(length);
        let reply = soon(client.call(address, sent.clone())).await.unwrap();
        assert_eq!(reply.len(), length);
        assert!(bytes(reply) == sent, "{length} bytes came back changed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn call__many_at_once_on_several_threads() {
    let (_server, address) = echo_endpoint().await;
    let endpoint = Endpoint::client_only().await.unwrap();
    let tasks: Vec<_> = (0..200_usize)
        .map(|index| {
            let client = endpoint.client();
            tokio::spawn(async move {
                for round in 0..10 {
                    let sent = pattern(1 + index * 37 + round);
                    let reply = client.call(address, sent.clone()).await.unwrap();
                    assert!(bytes(reply) == sent);
                }
            })
        })
        .collect();
    for task in tasks {
        soon(task).await.unwrap();
    }
}

#[tokio::test]
async fn call__ipv6() {
    let server = Endpoint::bind("[::1]:0").await.unwrap();
    spawn_echo(serve(&server));
    let endpoint = Endpoint::client_only().await.unwrap();
    let address = server.local_addresses()[0];
    assert!(address.is_ipv6());
    let reply = soon(endpoint.client().call(address, "six")).await.unwrap();
    assert_eq!(bytes(reply), b"six");
}

#[tokio::test]
async fn call__in_process() {
    let network = MemNetwork::new();
    let at = |host: u8| std::net::SocketAddr::from(([10, 0, 0, host], 4000));
    let [server, client] = [1, 2].map(|host| {
        Endpoint::builder()
            .datapath(network.endpoint(at(host)).unwrap())
            .build()
    });
    let (server, client) = (server.await.unwrap(), client.await.unwrap());
    spawn_echo(server.server(4000).unwrap());
    let sent = pattern(500_000);
    let reply = soon(client.client().call(at(1), sent.clone()))
        .await
        .unwrap();
    assert!(bytes(reply) == sent);
}

#[tokio::test]
async fn call__to_oneself() {
    let (endpoint, address) = echo_endpoint().await;
    let sent = pattern(200_000);
    let reply = soon(endpoint.client().call(address, sent.clone()))
        .await
        .unwrap();
    assert!(bytes(reply) == sent);
}

#[tokio::test]
async fn call__message_of_many_chunks() {
    let (_server, address) = echo_endpoint().await;
    let endpoint = Endpoint::client_only().await.unwrap();
    let chunks: Vec<bytes::Bytes> = (0..100_u8)
        .map(|n| vec![n; usize::from(n) + 1].into())
        .collect();
    let whole = chunks.concat();
    let message: Message = chunks.into_iter().collect();
    let reply = soon(endpoint.client().call(address, message))
        .await
        .unwrap();
    assert_eq!(bytes(reply), whole);
}

#[tokio::test]
async fn request__says_where_it_is_from() {
    let server = Endpoint::bind("127.0.0.1:0").await.unwrap();
    let accepting = serve(&server);
    let endpoint = Endpoint::bind("127.0.0.1:0").await.unwrap();
    let address = server.local_addresses()[0];
    let call = tokio::spawn(endpoint.client().call(address, "who?").into_future());
    let request = soon(accepting.accept()).await.unwrap();
    assert_eq!(request.peer(), endpoint.local_addresses()[0]);
    assert_eq!(request.local_address(), address);
    assert_eq!(request.kind(), Kind::Call);
    assert_eq!(request.message().len(), 4);
    request.reply("you").unwrap();
    assert_eq!(bytes(soon(call).await.unwrap().unwrap()), b"you");
}

#[tokio::test]
async fn reply__from_another_thread_much_later() {
    let server = Endpoint::bind("127.0.0.1:0").await.unwrap();
    let accepting = serve(&server);
    let endpoint = Endpoint::client_only().await.unwrap();
    let address = server.local_addresses()[0];
    let call = tokio::spawn(endpoint.client().call(address, "slow").into_future());
    let request = soon(accepting.accept()).await.unwrap();
    std::thread::spawn(move || {
        // Three times the silence that would fail the call.
        std::thread::sleep(300 * MS);
        request.reply("done").unwrap();
    });
    assert_eq!(bytes(soon(call).await.unwrap().unwrap()), b"done");
}

#[tokio::test]
async fn send__one_way_is_delivered_once() {
    let server = Endpoint::bind("127.0.0.1:0").await.unwrap();
    let accepting = serve(&server);
    let endpoint = Endpoint::client_only().await.unwrap();
    let address = server.local_addresses()[0];
    let client = endpoint.client();
    let sent = pattern(100_000);
    let sending = tokio::spawn(client.send(address, sent.clone()).into_future());
    let mut request = soon(accepting.accept()).await.unwrap();
    assert_eq!(request.kind(), Kind::OneWay);
    assert!(bytes(request.take_message()) == sent);
    soon(sending).await.unwrap().unwrap();
    assert!(matches!(request.reply("?"), Err(Error::OneWay)));
}

#[tokio::test]
async fn deadline__passes_and_the_server_is_told() {
    let server = Endpoint::bind("127.0.0.1:0").await.unwrap();
    let accepting = serve(&server);
    let endpoint = Endpoint::client_only().await.unwrap();
    let address = server.local_addresses()[0];
    let client = endpoint.client();
    let start = Instant::now();
    let call = tokio::spawn(client.call(address, "slow").deadline(50 * MS).into_future());
    let request = soon(accepting.accept()).await.unwrap();
    soon(request.cancelled()).await;
    assert!(request.is_cancelled());
    let error = soon(call).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::DeadlineExceeded { .. }), "{error}");
    assert!(error.may_have_executed());
    let took = start.elapsed();
    assert!(took >= 50 * MS, "{took:?}");
    assert!(matches!(request.reply("too late"), Err(Error::ClientGone)));
}

#[tokio::test]
async fn deadline__default_of_the_endpoint() {
    let server = Endpoint::bind("127.0.0.1:0").await.unwrap();
    let _never_answers = serve(&server);
    let endpoint = Endpoint::builder()
        .default_deadline(30 * MS)
        .build()
        .await
        .unwrap();
    let client = endpoint.client();
    let call = client.call(server.local_addresses()[0], "x");
    let error = soon(call).await.unwrap_err();
    assert!(
        matches!(error, Error::DeadlineExceeded { deadline, .. } if deadline == 30 * MS),
        "{error}"
    );
}

#[tokio::test]
async fn deadline__zero_has_passed() {
    let (_server, address) = echo_endpoint().await;
    let endpoint = Endpoint::client_only().await.unwrap();
    let call = endpoint
        .client()
        .call(address, "x")
        .deadline(Duration::ZERO);
    let error = soon(call).await.unwrap_err();
    assert!(matches!(error, Error::DeadlineExceeded { .. }), "{error}");
}

#[tokio::test]
async fn deadline__longer_than_any_clock() {
    let (_server, address) = echo_endpoint().await;
    let endpoint = Endpoint::client_only().await.unwrap();
    let call = endpoint.client().call(address, "x").deadline(Duration::MAX);
    assert_eq!(bytes(soon(call).await.unwrap()), b"x");
}

#[tokio::test]
async fn drop__of_a_call_cancels_it_at_the_server() {
    let server = Endpoint::bind("127.0.0.1:0").await.unwrap();
    let accepting = serve(&server);
    let endpoint = Endpoint::client_only().await.unwrap();
    let client = endpoint.client();
    let call = tokio::spawn(client.call(server.local_addresses()[0], "x").into_future());
    let request = soon(accepting.accept()).await.unwrap();
    assert!(!request.is_cancelled());
    call.abort();
    soon(request.cancelled()).await;
    let error = request.reply("nobody").unwrap_err();
    assert!(matches!(error, Error::ClientGone), "{error}");
}

#[tokio::test]
async fn refuse__the_client_is_told() {
    let server = Endpoint::bind("127.0.0.1:0").await.unwrap();
    let accepting = serve(&server);
    let endpoint = Endpoint::client_only().await.unwrap();
    let client = endpoint.client();
    let call = tokio::spawn(client.call(server.local_addresses()[0], "x").into_future());
    soon(accepting.accept()).await.unwrap().refuse();
    let error = soon(call).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
}

#[tokio::test]
async fn drop__of_a_request_tells_the_client() {
    let server = Endpoint::bind("127.0.0.1:0").await.unwrap();
    let accepting = serve(&server);
    let endpoint = Endpoint::client_only().await.unwrap();
    let client = endpoint.client();
    let call = tokio::spawn(client.call(server.local_addresses()[0], "x").into_future());
    drop(soon(accepting.accept()).await.unwrap());
    let error = soon(call).await.unwrap().unwrap_err();
    assert!(
        matches!(error, Error::DroppedWithoutAnswer { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn panic__in_a_server_task_tells_the_client() {
    let server = Endpoint::bind("127.0.0.1:0").await.unwrap();
    let accepting = serve(&server);
    tokio::spawn(async move {
        let _request = accepting.accept().await.unwrap();
        panic!("on purpose: the request is dropped while unwinding");
    });
    let endpoint = Endpoint::client_only().await.unwrap();
    let call = endpoint.client().call(server.local_addresses()[0], "x");
    let error = soon(call).await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::DroppedWithoutAnswer { .. } | Error::PortClosed { .. }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn name__is_looked_up() {
    let (_server, address) = echo_endpoint().await;
    let endpoint = Endpoint::client_only().await.unwrap();
    let client = endpoint.client();
    let reply = soon(client.call(("localhost", address.port()), "x")).await;
    // Where "localhost" is ::1 first, nobody has that port there.
    match reply {
        Ok(reply) => assert_eq!(bytes(reply), b"x"),
        Err(error) => assert!(matches!(error, Error::PortClosed { .. }), "{error}"),
    }
    let v4_only = Endpoint::bind("127.0.0.1:0").await.unwrap();
    let found = soon(v4_only.resolve(("localhost", 4000))).await.unwrap();
    assert_eq!(found, ([127, 0, 0, 1], 4000).into());
    let error = soon(client.call("no-port", "x")).await.unwrap_err();
    assert!(matches!(error, Error::Resolve { .. }), "{error}");
    assert!(!error.may_have_executed());
}

#[tokio::test]
async fn stats__count_what_happened() {
    let (server, address) = echo_endpoint().await;
    let endpoint = Endpoint::client_only().await.unwrap();
    for _ in 0..3 {
        soon(endpoint.client().call(address, "x")).await.unwrap();
    }
    let of = |stats: &homa::Stats, group: &str, name: &str| {
        stats
            .iter()
            .find(|sample| sample.group == group && sample.name == name)
            .unwrap_or_else(|| panic!("no {group}/{name}"))
            .value
    };
    let stats = endpoint.stats();
    assert_eq!(of(&stats, "core", "requests_started"), 3);
    assert_eq!(of(&stats, "core", "responses_received"), 3);
    assert!(of(&stats, "datapath", "tx_packets") >= 3);
    let stats = server.stats();
    assert_eq!(of(&stats, "core", "requests_received"), 3);
    let names: std::collections::HashSet<_> = stats
        .iter()
        .map(|sample| (sample.group, sample.name, sample.label))
        .collect();
    assert_eq!(
        names.len(),
        stats.iter().count(),
        "every sample has its own name"
    );
}

#[tokio::test]
async fn settings__say_what_was_derived() {
    let endpoint = Endpoint::builder()
        .link_rate_bps(1_000_000_000)
        .rtt(Duration::from_micros(80))
        .priorities(4)
        .build()
        .await
        .unwrap();
    let settings = endpoint.settings();
    assert_eq!(settings.unscheduled_bytes, 10_000);
    assert_eq!(settings.priorities, 4);
    let text = settings.to_string();
    assert!(text.contains("unscheduled_bytes        10000"), "{text}");
}
