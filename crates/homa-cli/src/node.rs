//! `homa node`: one host of `homa compare`. Not for people.

use std::io::Read;
use std::process::ExitCode;
use std::thread;

use clap::Args;
use homa_bench::stop::Stop;

use crate::target::EXIT_FAILED;

/// One host of `homa compare`: it takes its orders from there.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Only keep a processor awake until the standard input ends.
    #[arg(long)]
    spin: bool,
}

/// Plays its part until the standard input ends.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let stop = Stop::new();
    if arguments.spin {
        spin(&stop);
        return ExitCode::SUCCESS;
    }
    match homa_bench::node::run(&stop) {
        Ok(()) => ExitCode::SUCCESS,
        // It has said why where it is read.
        Err(_) => ExitCode::from(EXIT_FAILED),
    }
}

fn spin(stop: &Stop) {
    let ended = stop.clone();
    thread::spawn(move || {
        // An error is an end too.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        ended.request();
    });
    while !stop.requested() {
        std::hint::spin_loop();
    }
}
