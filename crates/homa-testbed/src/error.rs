//! Why a testbed cannot be had.

use std::io;

/// Why something about a testbed failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// This machine cannot do it: a program, a right or a part of the kernel is
    /// missing. The text says in one line which, and what helps.
    #[error("{0}")]
    Unavailable(String),
    /// The options ask for something that is not possible.
    #[error("{0}")]
    Options(&'static str),
    /// `ip`, `tc` or `bridge` refused a command.
    #[error("{program}: {message}")]
    Program {
        /// Which.
        program: String,
        /// What it said.
        message: String,
    },
    /// A system call failed.
    #[error("{doing}: {source}")]
    System {
        /// What was tried.
        doing: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Hosts did not hear each other in time after their links were made.
    #[error("no packet got from {from} to {to} within {seconds} s")]
    NoWay {
        /// Who sent.
        from: std::net::IpAddr,
        /// Who did not hear it.
        to: std::net::IpAddr,
        /// How long it was tried.
        seconds: u64,
    },
    /// Frames above the MTU reached the network: a host's segmentation offload
    /// was on, and what was measured is not what packets do.
    #[error("{frames} frames above the MTU were sent to {host}: turn its segmentation offload off")]
    Oversize {
        /// To which host.
        host: String,
        /// How many, all of which were dropped.
        frames: u64,
    },
}

impl Error {
    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::System { doing, source }
    }
}
