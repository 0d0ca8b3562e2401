//! `homa decode`: prints the Homa packets in capture files.
//!
//! Exit status: 0 all well, 1 something claims to be Homa and cannot be
//! parsed, 2 a file cannot be read (to its end). A closed output is no error.

mod hosts;
mod json;
mod names;
mod text;

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use homa_capture::{Capture, CaptureError, Content, Frame, LinkType, Record, UdpGuess, UdpRule};

use hosts::{Host, Hosts};

const EXAMPLES: &str = "\
Examples:
  homa decode trace.pcap
      One line for each Homa packet, hosts as addresses.
  homa decode --hosts client=10.0.0.1,client=fd00:1::1,server=10.0.0.2 trace.pcap
      The same with names; a host may have several addresses.
  tcpdump -i eth0 -U -w - 'ip proto 146 or ip6 proto 146' | homa decode -
      Live, from standard input.
  homa decode --udp-port 4000 trace.pcapng
      Homa in UDP, from or to port 4000.
  homa decode --json trace.pcap | jq 'select(.type == \"GRANT\") | .offset'
      One JSON object for each line.

Each line has: frame number, seconds since the first frame, sending host, IP version (/UDP in UDP, \
/TCP disguised as TCP), TOS byte (the top three bits are the priority), ports, packet type, id of \
the RPC as its sender knows it (even: from the client), the packet's fields, and bytes after the \
IP or UDP header. DATA: off is where the payload goes, len its length, of the length of the \
message, inc how much comes without grants, seq and seg the two fields that may hold the offset \
(-1: not used), retx 1 if sent before, cutver the version of the priority cutoffs used.

Packets that claim to be Homa and cannot be parsed have a line of their own: SHORT and the type \
where the sender sent too few bytes, CUT and the type where the capture kept too few (use a larger \
snap length, 160 bytes are enough for all headers), TYPE_0x.. where the type is unknown.

Exit status: 0 all well, 1 some packet could not be parsed, 2 a file could not be read.";

/// Print the Homa packets in capture files.
///
/// Reads pcap and pcapng files (micro- or nanoseconds, either byte order)
/// with Ethernet, VLAN, raw IP, Linux "any" or loopback framing, and finds
/// Homa as IP protocol 146, in UDP, or disguised as TCP.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
#[command(after_help = "Try --help for examples and the meaning of each field.")]
pub(crate) struct Arguments {
    /// Capture files; - is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Names for addresses.
    #[arg(long, value_name = "NAME=ADDRESS,...", value_delimiter = ',')]
    hosts: Vec<Host>,

    /// A UDP port that carries Homa; may be given several times.
    ///
    /// Datagrams from or to it are taken for Homa whatever they contain. Given
    /// alone, no other UDP port counts.
    #[arg(long, value_name = "PORT")]
    udp_port: Vec<u16>,

    /// How to find Homa on other UDP ports [default: same-ports].
    #[arg(long, value_name = "RULE")]
    udp: Option<UdpChoice>,

    /// Print one JSON object per line, with every field.
    ///
    /// Ids and instances have 64 bits: read them with a parser that keeps
    /// all digits.
    #[arg(long)]
    json: bool,

    /// Add receiver, TTL and checksum to each line, and to ICMP errors the
    /// packet they are about.
    #[arg(long, short)]
    verbose: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum UdpChoice {
    /// Datagrams whose UDP ports are the Homa ports too (blind behind NAT).
    SamePorts,
    /// Datagrams that parse as Homa (may find other things as well).
    AnyPlausible,
    /// None.
    None,
}

impl Arguments {
    fn udp_rule(&self) -> UdpRule {
        let choice = match self.udp {
            Some(choice) => choice,
            None if self.udp_port.is_empty() => UdpChoice::SamePorts,
            None => UdpChoice::None,
        };
        let guess = match choice {
            UdpChoice::SamePorts => UdpGuess::SamePorts,
            UdpChoice::AnyPlausible => UdpGuess::AnyPlausible,
            UdpChoice::None => UdpGuess::Nothing,
        };
        UdpRule {
            ports: self.udp_port.clone(),
            guess,
        }
    }
}

/// A frame that has to do with Homa, and where it was found.
struct Found<'a> {
    file: &'a Path,
    record: Record<'a>,
    /// Since the first frame of the file.
    relative_ns: Option<i64>,
    frame: Frame<'a>,
}

/// Why decoding a file stopped.
enum Stop {
    Open(io::Error),
    Capture(CaptureError),
    Output(io::Error),
}

/// What was found in a file that could be read.
#[derive(Default)]
struct Tally {
    frames: u64,
    lines: u64,
    unparsed: u64,
    unsupported: Option<(u16, u32)>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let mut output = BufWriter::new(io::stdout().lock());
    let mut status = 0;
    for file in &arguments.files {
        let mut tally = Tally::default();
        let complaint = match decode_file(arguments, file, &mut output, &mut tally) {
            Ok(()) => tally.unsupported.map(|(link_type, interface)| {
                format!(
                    "interface {interface} has link type {link_type}, which is not supported, so \
                     its frames were left out; capture on the Ethernet or \"any\" device instead"
                )
            }),
            Err(Stop::Open(error)) => Some(advise(&error)),
            Err(Stop::Capture(error)) => Some(error.to_string()),
            Err(Stop::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                return ExitCode::from(status);
            }
            Err(Stop::Output(error)) => {
                complain(Path::new("standard output"), &error.to_string());
                return ExitCode::from(2);
            }
        };
        if let Err(error) = output.flush() {
            if error.kind() == io::ErrorKind::BrokenPipe {
                return ExitCode::from(status);
            }
            complain(Path::new("standard output"), &error.to_string());
            return ExitCode::from(2);
        }
        if tally.unparsed > 0 {
            status = status.max(1);
        }
        if let Some(complaint) = complaint {
            complain(file, &complaint);
            status = 2;
        } else if tally.lines == 0 {
            let frames = tally.frames;
            complain(
                file,
                &format!("no Homa packet in {frames} frames (for Homa in UDP, try --udp-port)"),
            );
        }
    }
    ExitCode::from(status)
}

fn complain(file: &Path, message: &str) {
    // If even standard error is closed there is nobody left to tell.
    let _ = writeln!(io::stderr(), "homa decode: {}: {message}", file.display());
}

fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Ok(file)
}

/// What is wrong with a file that cannot be opened, and what to do.
fn advise(error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::NotFound => "check the path; - stands for standard input",
        io::ErrorKind::PermissionDenied => {
            "become its owner, or pipe it in: sudo cat FILE | homa decode -"
        }
        io::ErrorKind::IsADirectory => "name the capture files in it",
        _ => return format!("cannot be opened: {error}"),
    };
    format!("cannot be opened: {error}; {advice}")
}

fn decode_file(
    arguments: &Arguments,
    file: &Path,
    output: &mut impl Write,
    tally: &mut Tally,
) -> Result<(), Stop> {
    let live = file == Path::new("-");
    let reader: Box<dyn Read> = if live {
        Box::new(io::stdin().lock())
    } else {
        Box::new(open(file).map_err(Stop::Open)?)
    };
    if arguments.files.len() > 1 && !arguments.json {
        writeln!(output, "# {}", file.display()).map_err(Stop::Output)?;
    }
    let hosts = Hosts::new(&arguments.hosts);
    let udp = arguments.udp_rule();
    let mut capture = Capture::new(reader);
    let mut start_ns = None;
    while let Some(record) = capture.next_record().map_err(Stop::Capture)? {
        tally.frames += 1;
        if let LinkType::Other(link_type) = record.link_type {
            tally
                .unsupported
                .get_or_insert((link_type, record.interface));
        }
        let start_ns = *start_ns.get_or_insert(record.time_ns);
        let Some(frame) = Frame::parse(&record, &udp) else {
            continue;
        };
        let relative_ns = record
            .time_ns
            .zip(start_ns)
            .map(|(time, start)| time.saturating_sub(start));
        let found = Found {
            file,
            record,
            relative_ns,
            frame,
        };
        tally.lines += 1;
        tally.unparsed += u64::from(match &frame.content {
            Content::Homa(homa) => homa.packet.is_err(),
            Content::Fragment(_) => true,
            Content::Icmp(_) => false,
        });
        let written = match (arguments.json, arguments.verbose) {
            (true, _) => json::write(output, &found, &hosts),
            (false, false) => text::write(output, &found, &hosts, text::Detail::Short),
            (false, true) => text::write(output, &found, &hosts, text::Detail::Long),
        };
        written.map_err(Stop::Output)?;
        if live {
            output.flush().map_err(Stop::Output)?;
        }
    }
    Ok(())
}
