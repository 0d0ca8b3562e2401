//! `homa ping`: one RPC after another, a line for each.

#![allow(
    clippy::cast_precision_loss,
    reason = "counts become rates and shares, far below 2^53"
)]

use std::io::{self, Write};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use homa_bench::error::BenchError;
use homa_bench::message::ResponseSize;
use homa_bench::ping::{self, Answer, AnswerOutcome, Setup, Summary};
use homa_bench::run::Verify;
use homa_bench::tcp::Congestion;

use crate::homa_options::{HomaArguments, LinkArgument, show_settings};
use crate::interrupt::stop_on_signals;
use crate::target::{
    DEFAULT_POLL_US, EXIT_FAILED, EXIT_USAGE, Protocol, Reach, fail, microseconds,
    positive_seconds, request_size, resolve, response_size, seconds,
};

const EXAMPLES: &str = "\
Examples:
  homa ping 10.0.0.2
      One RPC of 100 bytes a second to `homa server` there, until Ctrl-C.
  homa ping -c 1000 -i 0 10.0.0.2
      A thousand as fast as answers come, with p99.
  homa ping -s 500k --response-size 100 -c 5 10.0.0.2:5000,10.0.0.3
      Long requests, short responses, two servers in turn.

The time is from just before the send until the whole response is in memory. With pauses between \
RPCs it contains waking up the server, which is asleep by then.

Exit status: 0 every RPC answered, 1 some lost or the server not there, 2 bad usage.";

/// Measure round trips to `homa server`, one at a time.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
#[command(after_help = "Try --help for examples.")]
pub(crate) struct Arguments {
    /// Servers: HOST or HOST:PORT (default port 4000), several with commas.
    #[arg(value_name = "HOST[:PORT],...", required_unless_present = "settings")]
    servers: Option<String>,

    /// Stop after this many RPCs to each server. Default: go on until Ctrl-C.
    #[arg(short = 'c', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Length of requests in bytes (100, 64k, 1m), at least 8.
    #[arg(short = 's', long, value_name = "SIZE", default_value = "100", value_parser = request_size)]
    size: u32,

    /// Seconds from the start of one RPC to the next; 0: at once.
    #[arg(short = 'i', long, value_name = "SECS", default_value = "1", value_parser = seconds)]
    interval: Duration,

    /// An RPC without response for this long is lost, in seconds.
    #[arg(short = 'W', long, value_name = "SECS", default_value = "2", value_parser = positive_seconds)]
    timeout: Duration,

    /// Length of responses: `echo`, or bytes.
    #[arg(long, value_name = "echo|SIZE", default_value = "echo", value_parser = response_size)]
    response_size: ResponseSize,

    /// Protocol.
    #[arg(long, value_enum, default_value = "homa")]
    protocol: Protocol,

    /// Look for the response without sleeping for this many microseconds;
    /// the server has the same option.
    #[arg(long, value_name = "US", default_value = DEFAULT_POLL_US, value_parser = microseconds)]
    poll: Duration,

    /// Compare every byte of every response.
    #[arg(long)]
    verify: bool,

    /// Only the summary.
    #[arg(short = 'q', long)]
    quiet: bool,

    /// JSON lines on stdout instead of text: `rpc` and `summary`.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    homa: HomaArguments,

    #[command(flatten)]
    link: LinkArgument,
}

/// Pings until the count is reached or a signal comes.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    if arguments.homa.settings {
        return show_settings(&arguments.homa, arguments.link.link_gbps);
    }
    let servers = match resolve(arguments.servers.as_deref().unwrap_or_default()) {
        Ok(servers) => servers,
        Err(problem) => return fail(EXIT_USAGE, problem),
    };
    let reach = Reach {
        homa: arguments.homa.options(arguments.link.link_gbps),
        tcp_connections: NonZeroUsize::MIN,
        tcp_congestion: Congestion::System,
    };
    let stop = match stop_on_signals() {
        Ok(stop) => stop,
        Err(error) => return fail(EXIT_FAILED, error),
    };
    let mut transport = match reach.connect(arguments.protocol, &servers) {
        Ok(transport) => transport,
        Err(error) => return fail(EXIT_FAILED, error),
    };
    let longest = arguments
        .size
        .max(arguments.response_size.bytes_for(arguments.size));
    if longest > transport.max_message_bytes() {
        return fail(
            EXIT_USAGE,
            BenchError::MessageTooLong {
                bytes: longest.into(),
                limit: transport.max_message_bytes().into(),
                protocol: transport.protocol(),
            },
        );
    }
    let setup = Setup {
        size_bytes: arguments.size,
        response: arguments.response_size,
        count: arguments.count,
        interval: arguments.interval,
        timeout: arguments.timeout,
        spin: arguments.poll,
        verify: if arguments.verify {
            Verify::Bytes
        } else {
            Verify::Length
        },
    };
    let voice = Voice {
        arguments,
        servers: &servers,
        protocol: transport.protocol(),
    };
    voice.begin();
    let (summaries, error) = ping::ping(transport.as_mut(), &setup, &stop, &mut |answer| {
        voice.answer(answer);
    });
    for (server, summary) in servers.iter().zip(&summaries) {
        voice.summary(server, summary);
    }
    if let Some(error) = error {
        return fail(EXIT_FAILED, error);
    }
    let all_answered = summaries.iter().all(|s| s.sent > 0 && s.answered == s.sent);
    ExitCode::from(if all_answered { 0 } else { EXIT_FAILED })
}

struct Voice<'a> {
    arguments: &'a Arguments,
    servers: &'a [SocketAddr],
    protocol: &'static str,
}

impl Voice<'_> {
    fn response_text(&self) -> String {
        match self.arguments.response_size {
            ResponseSize::Echo => "echoed".into(),
            ResponseSize::Fixed(bytes) => format!("responses of {bytes} B"),
        }
    }

    fn begin(&self) {
        if !self.arguments.json {
            let servers: Vec<String> = self.servers.iter().map(ToString::to_string).collect();
            say(&format!(
                "homa ping {} over {}: requests of {} B, {}",
                servers.join(", "),
                self.protocol,
                self.arguments.size,
                self.response_text()
            ));
        }
    }

    fn answer(&self, answer: &Answer) {
        if self.arguments.quiet {
            return;
        }
        let server = self.servers[answer.peer.0];
        let sequence = answer.sequence;
        if self.arguments.json {
            let (rtt_us, problem) = match &answer.outcome {
                AnswerOutcome::Rtt(rtt) => (Some(rtt.as_secs_f64() * 1e6), None),
                AnswerOutcome::Lost => (None, Some("lost")),
                AnswerOutcome::Failed(reason) => (None, Some(&reason[..])),
            };
            say(&serde_json::json!({
                "event": "rpc", "server": server.to_string(), "seq": sequence,
                "rtt_us": rtt_us, "problem": problem,
            }));
            return;
        }
        let bytes = self.arguments.response_size.bytes_for(self.arguments.size);
        match &answer.outcome {
            AnswerOutcome::Rtt(rtt) => say(&format!(
                "{bytes} B from {server}: rpc={sequence} time={:.1} us",
                rtt.as_secs_f64() * 1e6
            )),
            AnswerOutcome::Lost => say(&format!(
                "no response from {server}: rpc={sequence}, waited {} s",
                self.arguments.timeout.as_secs_f64()
            )),
            AnswerOutcome::Failed(reason) => {
                say(&format!("failed at {server}: rpc={sequence}: {reason}"));
            }
        }
    }

    fn summary(&self, server: &SocketAddr, summary: &Summary) {
        if self.arguments.json {
            say(&serde_json::json!({
                "event": "summary", "schema_version": 1, "protocol": self.protocol,
                "server": server.to_string(), "request_bytes": self.arguments.size,
                "summary": summary,
            }));
            return;
        }
        let lost = summary.sent - summary.answered;
        say(&format!(
            "--- {server} over {}: {} RPCs, {} answered, {lost} lost ({:.1} %)",
            self.protocol,
            summary.sent,
            summary.answered,
            lost as f64 * 100.0 / summary.sent.max(1) as f64
        ));
        if let Some(rtt) = summary.rtt_us {
            say(&format!(
                "rtt min/avg/p50/p99/max = {:.1}/{:.1}/{}/{}/{:.1} us",
                rtt.min, rtt.avg, rtt.p50, rtt.p99, rtt.max
            ));
        }
    }
}

/// One line on stdout; a reader that has gone does not matter.
fn say(line: &dyn std::fmt::Display) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
