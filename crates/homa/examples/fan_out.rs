//! Asks many servers at once, each with the same deadline, and says who missed
//! it: what a search or a cache front end does for every page.
//!
//! ```text
//! cargo run -p homa --example fan_out -- 16 50
//! ```
//!
//! starts 16 servers in this process, one of which takes longer than the 50 ms
//! that each call may take, and one address where nobody is.

#![allow(clippy::print_stdout, reason = "this is what it is for")]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use homa::{Endpoint, Error};
use tokio::task::JoinSet;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A server that works for `service` on every request.
async fn start_server(service: Duration) -> Result<SocketAddr> {
    let endpoint = Endpoint::bind("127.0.0.1:0").await?;
    let address = endpoint.local_addresses()[0];
    let server = endpoint.server(address.port())?;
    tokio::spawn(async move {
        while let Some(request) = server.accept().await {
            tokio::spawn(async move {
                tokio::select! {
                    () = tokio::time::sleep(service) => {
                        // A client that is gone meanwhile is no trouble.
                        let _ = request.reply("here is my part");
                    }
                    () = request.cancelled() => println!("told to stop: nobody waits"),
                }
            });
        }
    });
    Ok(address)
}

async fn fan_out(servers: usize, deadline: Duration) -> Result<()> {
    let mut addresses = Vec::new();
    for index in 0..servers {
        let slow = index == 0;
        addresses.push(start_server(if slow { 4 * deadline } else { deadline / 10 }).await?);
    }
    // Port 1 is nobody's.
    addresses.push(([127, 0, 0, 1], 1).into());

    let endpoint = Endpoint::client_only().await?;
    let client = endpoint.client();
    let mut calls = JoinSet::new();
    let start = Instant::now();
    for address in addresses {
        let client = client.clone();
        calls.spawn(async move {
            let reply = client.call(address, "your part?").deadline(deadline).await;
            (address, reply)
        });
    }
    let mut parts = 0;
    while let Some(joined) = calls.join_next().await {
        match joined? {
            (_, Ok(_)) => parts += 1,
            (address, Err(Error::DeadlineExceeded { .. })) => println!("missed it: {address}"),
            (address, Err(error)) => println!("failed: {address}: {error}"),
        }
    }
    println!("{parts} parts after {:?}", start.elapsed());
    endpoint.shutdown(Duration::from_secs(1)).await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let servers = arguments.next().map_or(Ok(16), |text| text.parse())?;
    let deadline = arguments.next().map_or(Ok(50), |text| text.parse())?;
    fan_out(servers, Duration::from_millis(deadline)).await
}
