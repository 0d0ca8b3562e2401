//! What `server`, `ping` and `bench` share: how servers and protocols are
//! named on the command line, and what exit codes mean.

use std::fmt::Display;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use homa_bench::error::BenchError;
use homa_bench::homa;
use homa_bench::message::{MIN_REQUEST_BYTES, ResponseSize};
use homa_bench::tcp::{self, Congestion};
use homa_bench::transport::Transport;
use homa_bench::workload::parse_size;

/// Where servers listen unless told otherwise.
pub(crate) const DEFAULT_PORT: u16 = 4000;

/// [`homa_bench::run::DEFAULT_SPIN`] as an option's default.
pub(crate) const DEFAULT_POLL_US: &str = "100";

/// A run that failed or is not complete.
pub(crate) const EXIT_FAILED: u8 = 1;
/// A command line that makes no sense.
pub(crate) const EXIT_USAGE: u8 = 2;

/// A protocol that carries the RPCs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocol {
    /// Homa.
    Homa,
    /// TCP with a pool of connections.
    Tcp,
}

/// One protocol or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocols {
    /// Homa.
    Homa,
    /// TCP.
    Tcp,
    /// Homa and TCP.
    Both,
}

impl Protocols {
    /// As a list.
    pub(crate) fn list(self) -> &'static [Protocol] {
        match self {
            Self::Homa => &[Protocol::Homa],
            Self::Tcp => &[Protocol::Tcp],
            Self::Both => &[Protocol::Homa, Protocol::Tcp],
        }
    }
}

/// What it takes to reach servers, for every protocol.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    pub(crate) homa: homa::Options,
    pub(crate) tcp_connections: NonZeroUsize,
    pub(crate) tcp_congestion: Congestion,
}

impl Reach {
    /// Makes the client's side.
    pub(crate) fn connect(
        &self,
        protocol: Protocol,
        servers: &[SocketAddr],
    ) -> Result<Box<dyn Transport>, BenchError> {
        Ok(match protocol {
            Protocol::Homa => Box::new(homa::Client::connect(servers, self.homa.clone())?),
            Protocol::Tcp => Box::new(tcp::Client::connect(
                servers,
                self.tcp_connections,
                self.tcp_congestion.clone(),
            )?),
        })
    }
}

/// Says `error: ...` and gives the exit code.
pub(crate) fn fail(code: u8, error: impl Display) -> ExitCode {
    // Nobody to tell if stderr is gone.
    let _ = writeln!(io::stderr(), "error: {error}");
    ExitCode::from(code)
}

/// Resolves `HOST[:PORT],HOST[:PORT]...`, each to its first address.
pub(crate) fn resolve(list: &str) -> Result<Vec<SocketAddr>, String> {
    list.split(',')
        .map(|host| resolve_one(host.trim()))
        .collect()
}

fn resolve_one(host: &str) -> Result<SocketAddr, String> {
    if let Some(address) = literal(host) {
        return Ok(address);
    }
    let (name, port) = match host.rsplit_once(':') {
        None => (host, DEFAULT_PORT),
        Some((name, port)) => match port.parse() {
            Ok(port) => (name, port),
            Err(_) => return Err(format!("`{port}` in `{host}` is not a port (1 to 65535)")),
        },
    };
    let unknown = |reason: &dyn Display| {
        format!(
            "cannot resolve `{name}` ({reason}): give HOST or HOST:PORT with a name or address that this machine knows"
        )
    };
    if name.is_empty() {
        return Err(unknown(&"no name"));
    }
    (name, port)
        .to_socket_addrs()
        .map_err(|error| unknown(&error))?
        .next()
        .ok_or_else(|| unknown(&"no address"))
}

/// `1.2.3.4`, `1.2.3.4:5`, `::1`, `[::1]`, `[::1]:5`.
fn literal(host: &str) -> Option<SocketAddr> {
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(host);
    bare.parse::<IpAddr>()
        .map(|ip| SocketAddr::new(ip, DEFAULT_PORT))
        .or_else(|_| host.parse())
        .ok()
}

/// An address to listen on: `ADDR:PORT`, `ADDR`, `:PORT` or `PORT`.
pub(crate) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    if let Some(address) = literal(text) {
        return Ok(address);
    }
    let port = text.strip_prefix(':').unwrap_or(text);
    port.parse()
        .map(|port| SocketAddr::from(([0, 0, 0, 0], port)))
        .map_err(|_| {
            "give ADDR:PORT, ADDR, :PORT or PORT, such as 127.0.0.1:4000 or [::]:4000".into()
        })
}

/// `echo` or a length in bytes.
pub(crate) fn response_size(text: &str) -> Result<ResponseSize, String> {
    if text.eq_ignore_ascii_case("echo") {
        return Ok(ResponseSize::Echo);
    }
    match parse_size(text).map(u32::try_from) {
        Some(Ok(bytes)) if bytes > 0 && bytes <= tcp::MAX_MESSAGE_BYTES => {
            Ok(ResponseSize::Fixed(bytes))
        }
        _ => Err(format!(
            "give `echo` or a length from 1 to {} bytes, such as 100 or 64k",
            tcp::MAX_MESSAGE_BYTES
        )),
    }
}

/// A request length in bytes.
pub(crate) fn request_size(text: &str) -> Result<u32, String> {
    match parse_size(text).map(u32::try_from) {
        Some(Ok(bytes)) if bytes >= MIN_REQUEST_BYTES => Ok(bytes),
        _ => Err(format!(
            "give a length of at least {MIN_REQUEST_BYTES} bytes, such as 100, 64k or 1m"
        )),
    }
}

/// Seconds, whole or with a fraction, at least 0.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    text.strip_suffix('s')
        .unwrap_or(text)
        .parse()
        .ok()
        .and_then(|value| Duration::try_from_secs_f64(value).ok())
        .filter(|duration| *duration < Duration::from_secs(1_000_000))
        .ok_or_else(|| "give seconds, such as 10 or 0.5".into())
}

/// Seconds above 0.
pub(crate) fn positive_seconds(text: &str) -> Result<Duration, String> {
    seconds(text).and_then(|duration| {
        if duration.is_zero() {
            Err("give more than 0 seconds".into())
        } else {
            Ok(duration)
        }
    })
}

/// Microseconds, whole or with a fraction, at least 0.
pub(crate) fn microseconds(text: &str) -> Result<Duration, String> {
    text.strip_suffix("us")
        .unwrap_or(text)
        .parse::<f64>()
        .ok()
        .and_then(|value| Duration::try_from_secs_f64(value / 1e6).ok())
        .filter(|duration| *duration < Duration::from_secs(10))
        .ok_or_else(|| "give microseconds, such as 100 (0: never spin)".into())
}

/// A number above 0, with `k` and `m` for thousand and million.
pub(crate) fn positive_number(text: &str) -> Result<f64, String> {
    let lower = text.to_ascii_lowercase();
    let (number, factor) = match (lower.strip_suffix('k'), lower.strip_suffix('m')) {
        (Some(number), _) => (number, 1e3),
        (_, Some(number)) => (number, 1e6),
        _ => (&lower[..], 1.0),
    };
    match number.parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value * factor),
        _ => Err("give a number above 0, such as 2.5 or 100k".into()),
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn resolve__ports_families_and_lists() {
        let found = resolve("127.0.0.1,127.0.0.2:5,::1,[::1]:6,[::1]").unwrap();
        let text: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            text,
            [
                "127.0.0.1:4000",
                "127.0.0.2:5",
                "[::1]:4000",
                "[::1]:6",
                "[::1]:4000"
            ]
        );
        assert!(
            resolve("127.0.0.1:70000")
                .unwrap_err()
                .contains("not a port")
        );
        assert!(resolve("").unwrap_err().contains("cannot resolve"));
        assert!(
            resolve("a.invalid")
                .unwrap_err()
                .contains("cannot resolve `a.invalid`")
        );
    }

    #[test]
    fn listen_address__short_forms() {
        let text = |given| listen_address(given).map(|address| address.to_string());
        assert_eq!(text(":7"), Ok("0.0.0.0:7".into()));
        assert_eq!(text("7"), Ok("0.0.0.0:7".into()));
        assert_eq!(text("127.0.0.1"), Ok("127.0.0.1:4000".into()));
        assert_eq!(text("[::]:9"), Ok("[::]:9".into()));
        assert!(text("here").is_err());
    }

    #[test]
    fn default_poll__is_the_library_s() {
        assert_eq!(
            microseconds(DEFAULT_POLL_US),
            Ok(homa_bench::run::DEFAULT_SPIN)
        );
    }

    #[test]
    fn numbers__units_and_nonsense() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(microseconds("50us"), Ok(Duration::from_micros(50)));
        assert_eq!(positive_number("100k"), Ok(100_000.0));
        assert_eq!(response_size("64k"), Ok(ResponseSize::Fixed(64_000)));
        assert_eq!(request_size("8"), Ok(8));
        for bad in ["", "-1", "nan", "inf", "x"] {
            assert!(seconds(bad).is_err() && microseconds(bad).is_err(), "{bad}");
            assert!(
                positive_number(bad).is_err() && response_size(bad).is_err(),
                "{bad}"
            );
        }
        assert!(positive_seconds("0").is_err() && positive_number("0").is_err());
        assert!(request_size("7").is_err() && response_size("0").is_err());
    }
}
