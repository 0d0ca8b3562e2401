//! Two hosts and a program in each of them, without root if need be:
//! `cargo run -p homa-testbed --example two_hosts`.

#![forbid(unsafe_code)]

use std::io::Write;
use std::process::{Command, ExitCode};

use homa_testbed::{Network, Options, Switch, Testbed, enter_user_namespace};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "two_hosts: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    enter_user_namespace()?;
    let options = Options {
        network: Network::Switch(Switch::default()),
        ..Options::default()
    };
    Testbed::check(&options)?;
    let testbed = Testbed::new(&options)?;
    let mut out = std::io::stdout();
    for host in testbed.hosts() {
        let mut command = Command::new("ip");
        command.args(["-brief", "address"]);
        writeln!(out, "{}:\n{}", host.name(), host.output(command)?)?;
    }
    for port in testbed.statistics()? {
        writeln!(
            out,
            "{}: {} bytes, {} drops",
            port.host,
            port.bytes(),
            port.drops()
        )?;
    }
    Ok(testbed.verify()?)
}
