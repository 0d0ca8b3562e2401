//! Manual pages and completions, from the same definitions as `--help`.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::target::{EXIT_FAILED, fail};

/// Print completions for a shell.
#[derive(Args)]
#[command(
    after_help = "For bash: homa completions bash > ~/.local/share/bash-completion/completions/homa"
)]
pub(crate) struct CompletionsArguments {
    /// Which shell.
    shell: Shell,
}

/// Write manual pages, one for each command.
#[derive(Args)]
#[command(after_help = "To install them: homa man /usr/local/share/man/man1")]
pub(crate) struct ManArguments {
    /// Where to; made if it is not there.
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
}

/// Prints completions for `command`.
pub(crate) fn completions(mut command: Command, arguments: &CompletionsArguments) -> ExitCode {
    clap_complete::generate(arguments.shell, &mut command, "homa", &mut io::stdout());
    ExitCode::SUCCESS
}

/// Writes the pages of `command`.
pub(crate) fn man(command: Command, arguments: &ManArguments) -> ExitCode {
    let directory = &arguments.directory;
    let written = std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(command, directory));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(
            EXIT_FAILED,
            format!("cannot write to {}: {error}", directory.display()),
        ),
    }
}
