//! What this machine must have, tried one after the other, so that what is
//! missing can be named.

use crate::namespace::Namespace;
use crate::options::{Network, Options};
use crate::switch::port_script;
use crate::{Error, Testbed, offload, sys};

impl Testbed {
    /// Whether this machine can have such a testbed; costs some milliseconds.
    ///
    /// # Errors
    ///
    /// [`Error::Options`], and [`Error::Unavailable`] with one line that says
    /// what is missing: a right, a program, a part of the kernel. A command line
    /// prints it and exits with status 2.
    pub fn check(options: &Options) -> Result<(), Error> {
        options.check()?;
        let namespace = Namespace::new("check")?;
        try_to(
            &namespace,
            "ip",
            &["link add p1 type veth peer name eth0".to_owned()],
            "virtual links (CONFIG_VETH)",
        )?;
        let device = "p1";
        namespace.on_thread(move || offload::turn_off(device))?;
        match &options.network {
            Network::Plain => try_bridge(&namespace),
            Network::Switch(switch) => {
                try_bridge(&namespace)?;
                let script = port_script(device, options.mtu, switch);
                try_to(
                    &namespace,
                    "tc",
                    &script,
                    "switch ports (CONFIG_NET_SCH_HTB, CONFIG_NET_SCH_FIFO, CONFIG_NET_CLS_BPF)",
                )
            }
            Network::Wire(_) => namespace
                .on_thread(move || sys::packet_socket(device))
                .map(drop)
                .map_err(|error| {
                    Error::Unavailable(format!(
                        "no packet sockets (CAP_NET_RAW, CONFIG_PACKET): {error}"
                    ))
                }),
            Network::Routed { .. } => namespace.set("net/ipv4/ip_forward", "1"),
        }
    }
}

fn try_bridge(namespace: &Namespace) -> Result<(), Error> {
    let commands = ["link add br0 type bridge", "link set p1 master br0"];
    let commands = commands.map(str::to_owned);
    try_to(namespace, "ip", &commands, "bridges (CONFIG_BRIDGE)")?;
    namespace.batch("bridge", &[])
}

/// A refusal means that a part of the kernel is missing.
fn try_to(
    namespace: &Namespace,
    program: &'static str,
    lines: &[String],
    what: &str,
) -> Result<(), Error> {
    namespace
        .batch(program, lines)
        .map_err(|error| match error {
            Error::Program { program, message } => {
                Error::Unavailable(format!("no {what}: {program}: {message}"))
            }
            other => other,
        })
}
