//! The command `homa`. Each subcommand is a file (or directory) of its own
//! with its arguments and a `run`; this file only lists them.
//!
//! What is *not* here: any protocol. Subcommands are views of the libraries.

#![forbid(unsafe_code)]

mod bench;
mod compare;
mod decode;
mod generate;
mod homa_options;
mod interrupt;
mod local;
mod log;
mod node;
mod ping;
mod server;
mod sim;
mod target;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Homa for Linux: tools for the Homa transport protocol.
#[derive(Parser)]
#[command(name = "homa", version, max_term_width = 100)]
#[command(
    after_help = "To begin with: `homa bench --local` measures Homa and TCP on this machine.\nEach command explains itself with --help, with examples.\nHOMA_LOG=debug prints what the library notices, to stderr."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Server(Box<server::Arguments>),
    Ping(Box<ping::Arguments>),
    Bench(Box<bench::Arguments>),
    Compare(Box<compare::Arguments>),
    Decode(decode::Arguments),
    Sim(sim::Arguments),
    Completions(generate::CompletionsArguments),
    Man(generate::ManArguments),
    #[command(hide = true)]
    Node(node::Arguments),
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    if let Err(problem) = log::begin() {
        return target::fail(target::EXIT_USAGE, problem);
    }
    match command {
        Command::Server(arguments) => server::run(&arguments),
        Command::Ping(arguments) => ping::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Decode(arguments) => decode::run(&arguments),
        Command::Sim(arguments) => sim::run(&arguments),
        Command::Completions(arguments) => generate::completions(Cli::command(), &arguments),
        Command::Man(arguments) => generate::man(Cli::command(), &arguments),
        Command::Node(arguments) => node::run(&arguments),
    }
}
