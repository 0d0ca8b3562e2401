//! Writes the packets that pass a tap into a capture.

use std::io::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::pcapng::{Direction, Writer};
use crate::counters::CounterCells;
use crate::{Kind, Meta, Path, headers};

/// A capture is complete up to this long ago if the process is killed while
/// packets pass; it is complete when the tap is dropped or flushed.
const FLUSH_INTERVAL: Duration = Duration::from_millis(200);

pub(super) struct Recorder {
    writer: Writer<Box<dyn Write + Send>>,
    kind: Kind,
    local: Vec<SocketAddr>,
    flushed: Instant,
}

impl Recorder {
    pub(super) fn new(
        output: Box<dyn Write + Send>,
        kind: Kind,
        local: Vec<SocketAddr>,
    ) -> std::io::Result<Self> {
        let name = match kind {
            Kind::Udp => "homa-udp",
            Kind::Raw => "homa-raw",
            Kind::Mem => "homa-mem",
        };
        Ok(Self {
            writer: Writer::new(output, name)?,
            kind,
            local,
            flushed: Instant::now(),
        })
    }

    pub(super) fn record(
        &mut self,
        direction: Direction,
        meta: &Meta,
        bytes: &[u8],
        comment: Option<&str>,
        counters: &CounterCells,
    ) {
        let local = self.local_end(&meta.path);
        let (source, destination) = match direction {
            Direction::Inbound => (meta.path.remote, local),
            Direction::Outbound => (local, meta.path.remote),
        };
        let mut header = [0; headers::MAX_BYTES];
        let length = headers::write(
            &mut header,
            self.kind,
            &source,
            &destination,
            meta.tos,
            bytes,
        );
        let time_ns = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.as_nanos() as u64);
        let written = length.is_some_and(|length| {
            self.writer
                .packet(time_ns, direction, &[&header[..length], bytes], comment)
                .is_ok()
        });
        if written {
            counters.tap_recorded.increment();
        } else {
            counters.tap_record_failures.increment();
        }
        if self.flushed.elapsed() > FLUSH_INTERVAL {
            self.flush(counters);
        }
    }

    pub(super) fn flush(&mut self, counters: &CounterCells) {
        self.flushed = Instant::now();
        if self.writer.flush().is_err() {
            counters.tap_record_failures.increment();
        }
    }

    /// The own end of a path, as far as known: the kernel may have chosen the
    /// address.
    fn local_end(&self, path: &Path) -> SocketAddr {
        let bound = self
            .local
            .iter()
            .find(|local| local.is_ipv4() == path.remote.is_ipv4());
        let unknown: SocketAddr = match path.remote {
            SocketAddr::V4(_) => ([0; 4], 0).into(),
            SocketAddr::V6(_) => ([0; 16], 0).into(),
        };
        let mut local = bound.copied().unwrap_or(unknown);
        if let Some(address) = path.local {
            local.set_ip(address);
        }
        local
    }
}
