//! Emulated networks: several hosts on one Linux machine, each with a network
//! stack of its own, joined by a [`Network`] with properties that can be
//! chosen.
//!
//! ```no_run
//! use homa_testbed::{Network, Options, Switch, Testbed};
//!
//! let options = Options {
//!     hosts: 4,
//!     mtu: 9000,
//!     network: Network::Switch(Switch::default()),
//! };
//! Testbed::check(&options)?; // an error says in one line what is missing
//! let testbed = Testbed::new(&options)?;
//! let [server, client, ..] = testbed.hosts() else {
//!     return Ok(());
//! };
//! let mut command = std::process::Command::new("homa");
//! command.arg("server");
//! let mut running = server.start(command)?;
//! let socket = client.run(|| std::net::UdpSocket::bind("0.0.0.0:0"))?;
//! for port in testbed.statistics()? {
//!     println!("{}: {} drops, {:?} bytes", port.host, port.drops(), port.sent_bytes);
//! }
//! testbed.verify()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It needs the programs `ip`, `bridge` and `tc` (iproute2), and root or a
//! [user namespace](enter_user_namespace).
//!
//! # What is emulated, and what not
//!
//! Packets are real: cut to the MTU, with their checksums, through two network
//! stacks. Offloads are off, since a frame of 64 KB would cross an emulated
//! switch as one. Time is real too, so the network is at most as fast as this
//! machine's processors, which also run the hosts: a "loaded" network whose
//! ports have neither drops nor a backlog in [`PortStatistics`] was not loaded.
//!
//! # Unsafe
//!
//! A few system calls that have no safe wrapper are in `sys.rs`: entering a
//! namespace, packet sockets, and the offloads of a device.

mod check;
mod error;
mod faults;
mod host;
mod namespace;
mod netlink;
mod offload;
mod options;
mod plan;
mod statistics;
mod switch;
mod sys;
mod testbed;
mod unprivileged;
mod wire;

pub use error::Error;
pub use faults::Faults;
pub use host::{DEVICE, Host};
pub use options::{MAX_HOSTS, Network, Options, Switch, Wire};
pub use statistics::PortStatistics;
pub use testbed::{Link, Testbed};
pub use unprivileged::{enter_user_namespace, in_user_namespace};
pub use wire::{WireControl, WireCounters};
