//! What an engine tells those who trace it.
#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fmt::{Debug, Write};
use std::net::UdpSocket;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use homa_engine::CallError;
use support::*;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Keeps every event as a line.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut line = event.metadata().target().to_owned();
        event.record(&mut Line(&mut line));
        self.0.lock().unwrap().push(line);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl Lines {
    fn has(&self, parts: &[&str]) -> bool {
        let lines = self.0.lock().unwrap();
        lines
            .iter()
            .any(|line| parts.iter().all(|part| line.contains(part)))
    }
}

#[test]
fn events__peers_errors_failed_calls_and_shutdown() {
    let lines = Lines::default();
    tracing::subscriber::with_default(lines.clone(), || {
        let client = engine(udp());
        let closed = {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.local_addr().unwrap()
        };
        let error = call(&client, closed, "x").unwrap_err();
        assert_eq!(error, CallError::PortClosed);
        client.shutdown(Instant::now() + Duration::from_secs(1));
        let remote = closed.to_string();
        for parts in [
            ["homa_engine", "new peer", remote.as_str()],
            ["network error", "ended=1", remote.as_str()],
            ["call failed", "error=", ""],
            ["draining", "", ""],
        ] {
            assert!(lines.has(&parts), "no {parts:?} in {:?}", lines.0.lock());
        }
    });
}
