//! A key-value store: requests that change something, refusals, and a handler
//! on another task.
//!
//! ```text
//! cargo run -p homa --example key_value -- serve 127.0.0.1:4000
//! cargo run -p homa --example key_value -- set 127.0.0.1:4000 colour blue
//! cargo run -p homa --example key_value -- get 127.0.0.1:4000 colour
//! ```
//!
//! The format is the simplest that works: a request is `get KEY` or
//! `set KEY VALUE`; the first byte of the reply says what follows: `+` a value,
//! `-` that there is none. What is neither is refused.

#![allow(clippy::print_stdout, reason = "this is what it is for")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use homa::{Endpoint, Request};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
type Store = Arc<Mutex<HashMap<Vec<u8>, Vec<u8>>>>;

fn answer(mut request: Request, store: &Store) -> std::result::Result<(), homa::Error> {
    let message = request.take_message().into_bytes();
    let mut words = message.splitn(3, |byte| *byte == b' ');
    let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
    match (words.next(), words.next(), words.next()) {
        (Some(b"get"), Some(key), None) => request.reply(match store.get(key) {
            Some(value) => [b"+", value.as_slice()].concat(),
            None => b"-".to_vec(),
        }),
        (Some(b"set"), Some(key), Some(value)) => {
            let old = store.insert(key.to_vec(), value.to_vec());
            request.reply(match old {
                Some(old) => [b"+", old.as_slice()].concat(),
                None => b"-".to_vec(),
            })
        }
        _ => {
            request.refuse();
            Ok(())
        }
    }
}

async fn serve(address: &str) -> Result<()> {
    let endpoint = Endpoint::bind(address).await?;
    let server = endpoint.server(endpoint.port().ok_or("no port")?)?;
    println!("serving on port {}", server.port());
    let store = Store::default();
    while let Some(request) = server.accept().await {
        let store = store.clone();
        tokio::spawn(async move {
            let peer = request.peer();
            if let Err(error) = answer(request, &store) {
                eprintln!("{peer}: {error}");
            }
        });
    }
    Ok(())
}

async fn ask(address: &str, request: String) -> Result<()> {
    let endpoint = Endpoint::client_only().await?;
    let reply = endpoint
        .client()
        .call(address, request)
        .deadline(Duration::from_secs(1))
        .await?
        .into_bytes();
    match reply.split_first() {
        Some((b'+', value)) => println!("{}", String::from_utf8_lossy(value)),
        _ => println!("(nothing)"),
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["serve", address] => serve(address).await,
        ["get", address, key] => ask(address, format!("get {key}")).await,
        ["set", address, key, value] => ask(address, format!("set {key} {value}")).await,
        _ => Err("usage: key_value serve ADDRESS | get ADDRESS KEY | set ADDRESS KEY VALUE".into()),
    }
}
