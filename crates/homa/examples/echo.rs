//! A server that sends every request back, and its client.
//!
//! ```text
//! cargo run -p homa --example echo -- serve 127.0.0.1:4000
//! cargo run -p homa --example echo -- call 127.0.0.1:4000 "hello"
//! ```

#![allow(clippy::print_stdout, reason = "this is what it is for")]

use std::time::Duration;

use homa::Endpoint;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

async fn serve(address: &str) -> Result<()> {
    let endpoint = Endpoint::bind(address).await?;
    let server = endpoint.server(endpoint.port().ok_or("no port")?)?;
    println!("serving on port {}", server.port());
    while let Some(mut request) = server.accept().await {
        let message = request.take_message();
        request.reply(message)?;
    }
    Ok(())
}

async fn call(address: &str, text: &str) -> Result<()> {
    let endpoint = Endpoint::client_only().await?;
    let client = endpoint.client();
    let reply = client
        .call(address, text.to_owned())
        .deadline(Duration::from_secs(1))
        .await?;
    println!("{}", String::from_utf8_lossy(&reply.into_bytes()));
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["serve", address] => serve(address).await,
        ["call", address, text] => call(address, text).await,
        _ => Err("usage: echo serve ADDRESS | echo call ADDRESS TEXT".into()),
    }
}
