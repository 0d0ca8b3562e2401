//! The options of every command that has a Homa endpoint: what carries the
//! packets, what is known of the network, and what shall go wrong.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use homa_bench::homa::{Carrier, Options};
use homa_bench::workload::parse_size;
use homa_datapath::{Faults, Offload, TapOptions};

use crate::target::{EXIT_USAGE, fail, microseconds, positive_number};

/// What carries Homa packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Datapath {
    /// UDP datagrams: needs no rights.
    Udp,
    /// IP protocol 146, as the Linux module HomaModule speaks it: needs
    /// CAP_NET_RAW, one endpoint a host or network namespace.
    Raw,
}

/// See the module.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Homa")]
pub(crate) struct HomaArguments {
    /// What carries the packets; both sides must agree.
    #[arg(long, value_enum, default_value = "udp")]
    datapath: Datapath,

    /// Priority levels that the switches tell apart, 1 to 8.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=8))]
    priorities: u8,

    /// Round-trip time of a full packet in us, software included. With
    /// --link-gbps it decides how much is sent without a grant.
    #[arg(long, value_name = "US", value_parser = microseconds)]
    rtt_us: Option<Duration>,

    /// Bytes of a message sent without a grant. Default: link rate times round
    /// trip, at most 40000.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    unscheduled: Option<u32>,

    /// Bytes granted and not yet received in total. Default: 8 times
    /// --unscheduled, within 64 KiB and 400000.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_incoming: Option<u32>,

    /// No segmentation offload (GSO, GRO): each UDP packet passes the kernel
    /// alone.
    #[arg(long)]
    no_gso: bool,

    /// Record every packet of this process into a pcapng file, for `homa
    /// decode` and Wireshark. Slows down.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Print every value that the protocol would run with, and exit.
    #[arg(long)]
    pub(crate) settings: bool,

    /// To try things out: this share of packets vanishes, each way (0.01).
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, hide_default_value = true, value_parser = share, help_heading = "Homa, faults on purpose (of this process, each way)")]
    loss: f64,

    /// This share of packets comes twice.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, hide_default_value = true, value_parser = share, help_heading = "Homa, faults on purpose (of this process, each way)")]
    dup: f64,

    /// This share of packets is overtaken by three others.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, hide_default_value = true, value_parser = share, help_heading = "Homa, faults on purpose (of this process, each way)")]
    reorder: f64,

    /// In this share of packets one bit is flipped, above UDP's checksum:
    /// --verify finds it.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, hide_default_value = true, value_parser = share, help_heading = "Homa, faults on purpose (of this process, each way)")]
    corrupt: f64,

    /// This share of packets is late by 100 us to 1 ms.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, hide_default_value = true, value_parser = share, help_heading = "Homa, faults on purpose (of this process, each way)")]
    delay: f64,

    /// Decides which packets; random if not given, and printed.
    #[arg(
        long,
        value_name = "N",
        help_heading = "Homa, faults on purpose (of this process, each way)"
    )]
    fault_seed: Option<u64>,
}

impl HomaArguments {
    /// The library's options. `link_gbps` is that of the command, which may
    /// use it for other things too.
    pub(crate) fn options(&self, link_gbps: Option<f64>) -> Options {
        let mut options = Options {
            carrier: match self.datapath {
                Datapath::Udp => Carrier::Udp,
                Datapath::Raw => Carrier::Raw,
            },
            offload: if self.no_gso {
                Offload::Off
            } else {
                Offload::Auto
            },
            tap: self.tap(),
            ..Options::default()
        };
        let core = &mut options.core;
        core.priorities = self.priorities;
        core.link_rate_bps = link_gbps.map(bits_per_second);
        core.rtt_ns = self.rtt_us.map(|rtt| rtt.as_nanos() as u64);
        core.unscheduled_bytes = self.unscheduled;
        core.max_incoming_bytes = self.max_incoming;
        options
    }

    /// Whether one network namespace has room for only one endpoint.
    pub(crate) fn is_alone_in_its_namespace(&self) -> bool {
        self.datapath == Datapath::Raw
    }

    /// The options that a server must share with this client, as arguments.
    /// Faults and records stay here: they are of one process.
    pub(crate) fn for_server(&self) -> Vec<String> {
        let mut list = vec![
            format!(
                "--datapath={}",
                match self.datapath {
                    Datapath::Udp => "udp",
                    Datapath::Raw => "raw",
                }
            ),
            format!("--priorities={}", self.priorities),
        ];
        list.extend(
            self.rtt_us
                .map(|rtt| format!("--rtt-us={}", rtt.as_secs_f64() * 1e6)),
        );
        list.extend(self.unscheduled.map(|size| format!("--unscheduled={size}")));
        list.extend(
            self.max_incoming
                .map(|size| format!("--max-incoming={size}")),
        );
        list.extend(self.no_gso.then(|| "--no-gso".into()));
        list
    }

    fn tap(&self) -> Option<TapOptions> {
        let faults = Faults {
            loss: self.loss,
            duplicate: self.dup,
            reorder: self.reorder,
            corrupt: self.corrupt,
            delay: self.delay,
            ..Faults::default()
        };
        (faults.any() || self.record.is_some()).then(|| TapOptions {
            seed: self.fault_seed,
            transmit: faults.clone(),
            receive: faults,
            capture: self.record.clone(),
            ..TapOptions::default()
        })
    }

    /// The text of `--settings`.
    fn settings_text(&self, link_gbps: Option<f64>) -> Result<String, String> {
        let options = self.options(link_gbps);
        let settings = options.settings().map_err(|error| error.to_string())?;
        let mut text = String::new();
        // Writing to a String does not fail.
        let _ = writeln!(text, "datapath                 {:?}", options.carrier);
        let _ = writeln!(text, "offload                  {:?}", options.offload);
        let _ = writeln!(text, "{settings}");
        Ok(text)
    }
}

/// Prints the settings, and that is all.
pub(crate) fn show_settings(arguments: &HomaArguments, link_gbps: Option<f64>) -> ExitCode {
    match arguments.settings_text(link_gbps) {
        Ok(text) => {
            // A reader that has gone does not matter.
            let _ = io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(problem) => fail(EXIT_USAGE, problem),
    }
}

#[allow(
    clippy::cast_sign_loss,
    reason = "the parser of the option lets only positive numbers pass"
)]
fn bits_per_second(gbps: f64) -> u64 {
    (gbps * 1e9) as u64
}

/// A share of packets: from 0 to 1, or with `%`.
fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    match number.parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&(value / unit)) => Ok(value / unit),
        _ => Err("give a share of packets from 0 to 1, such as 0.01, or 1%".into()),
    }
}

fn size(text: &str) -> Result<u32, String> {
    match parse_size(text).map(u32::try_from) {
        Some(Ok(bytes)) if bytes > 0 => Ok(bytes),
        _ => Err("give a number of bytes above 0, such as 40000 or 64k".into()),
    }
}

/// The rate of the host's link in Gbit/s: `--link-gbps` of commands that have
/// no other use for it.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Homa")]
pub(crate) struct LinkArgument {
    /// Rate of this host's link in Gbit/s. DATA is paced to it, and limits fit
    /// it. Default: not known, not paced.
    #[arg(long, value_name = "GBPS", value_parser = positive_number)]
    pub(crate) link_gbps: Option<f64>,
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn share__numbers_and_percent() {
        assert_eq!(share("0.25"), Ok(0.25));
        assert_eq!(share("25%"), Ok(0.25));
        assert_eq!(share("1"), Ok(1.0));
        for bad in ["", "-0.1", "1.1", "101%", "nan", "x"] {
            assert!(share(bad).is_err(), "{bad}");
        }
    }
}
