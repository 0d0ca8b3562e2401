//! What a packet costs, in instructions, against thresholds.
//!
//! Runs the example `cost` of `homa-core` under callgrind twice, with two
//! numbers of RPCs: the difference in instructions over the difference in
//! packets is the cost of one packet, without the set-up. Instructions do not
//! depend on what else the machine does.
//!
//! Two costs: that of a packet's way through both ends, from being chosen at
//! the sender to the receiver's verdict, with everything that the protocol does
//! on the way; and the whole, with what applications ask for and are told
//! (a call, a response, two events and the end of each are part of every RPC of
//! two packets) and the loop around it.

use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

use crate::command::{Outcome, cargo, collect, show, skipped, text};
use crate::repository::root;

/// The whole, headers typed, 64 RPCs outstanding: what is aimed at,
const GOAL_WHOLE: u64 = 800;
/// and what must not be exceeded: what is reached, and 2 %.
const MOST_WHOLE: u64 = 1_345;
/// The part of it that is a packet's way through both ends, likewise.
const MOST_WAY: u64 = 815;
/// The whole with many outstanding, in percent of that with 64.
const MOST_PERCENT: u64 = 150;

/// The functions on a packet's way. No one of them calls another.
const WAY: [&str; 2] = [
    "*Endpoint*next_transmit*",
    "homa_core::endpoint::Endpoint::packet",
];

/// RPCs outstanding, and the two numbers of RPCs; both exceed the former, so
/// that it is reached in both runs.
const FEW: (u32, u32, u32) = (64, 2_000, 12_000);
const MANY: [(u32, u32, u32); 2] = [(4_096, 10_000, 30_000), (100_000, 150_000, 250_000)];

pub(crate) fn run() -> Outcome {
    if Command::new("valgrind").arg("--version").output().is_err() {
        skipped("cost", "valgrind is not installed");
        return Ok(());
    }
    let program = build()?;
    let outstanding = FEW.0;
    let way = per_packet(&program, FEW, &WAY)?;
    let few = per_packet(&program, FEW, &[])?;
    println!(
        "cost: {few} instructions a packet with {outstanding} outstanding (at most {MOST_WHOLE}, goal {GOAL_WHOLE})"
    );
    println!(
        "cost: {way} of them on a packet's way, without what applications do (at most {MOST_WAY})"
    );
    let mut failures = Vec::new();
    if way > MOST_WAY {
        failures.push(format!("{way} instructions on a packet's way"));
    }
    if few > MOST_WHOLE {
        failures.push(format!("{few} instructions a packet"));
    }
    if way < few / 3 {
        failures.push(format!(
            "only {way} instructions on a packet's way: the functions named here are not those that do the work"
        ));
    }
    for sizes in MANY {
        let outstanding = sizes.0;
        let many = per_packet(&program, sizes, &[])?;
        let percent = many * 100 / few.max(1);
        println!("cost: {many} with {outstanding}: {percent} % of that (at most {MOST_PERCENT} %)");
        if percent > MOST_PERCENT {
            failures.push(format!("{percent} % with {outstanding} outstanding"));
        }
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(format!("cost: {}", failures.join(", ")).into())
    }
}

fn build() -> Result<PathBuf, Box<dyn Error>> {
    let mut command = cargo();
    command
        .args([
            "build",
            "--release",
            "--package",
            "homa-core",
            "--example",
            "cost",
        ])
        .current_dir(root());
    show(&mut command)?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Ok(target.join("release/examples/cost"))
}

/// Counts only while one of the functions runs, if any are named.
fn per_packet(
    program: &PathBuf,
    sizes: (u32, u32, u32),
    functions: &[&str],
) -> Result<u64, Box<dyn Error>> {
    let (outstanding, fewer, more) = sizes;
    let small = measure(program, outstanding, fewer, functions)?;
    let large = measure(program, outstanding, more, functions)?;
    small
        .up_to(large)
        .ok_or_else(|| "cost: more RPCs did not cost more".into())
}

#[derive(Clone, Copy)]
struct Measured {
    instructions: u64,
    packets: u64,
}

impl Measured {
    fn up_to(self, other: Self) -> Option<u64> {
        let instructions = other.instructions.checked_sub(self.instructions)?;
        let packets = other.packets.checked_sub(self.packets)?;
        (packets > 0).then(|| instructions / packets)
    }
}

fn measure(
    program: &PathBuf,
    outstanding: u32,
    rpcs: u32,
    functions: &[&str],
) -> Result<Measured, Box<dyn Error>> {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(
            functions
                .iter()
                .map(|name| format!("--toggle-collect={name}")),
        )
        .arg(program)
        .args(["--outstanding", &outstanding.to_string()])
        .args(["--rpcs", &rpcs.to_string()]);
    let output = collect(&mut command)?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let report = String::from_utf8_lossy(&output.stderr);
    let measured = number_after(&report, "Collected : ").zip(number_after(&printed, "packets "));
    match measured {
        Some((instructions, packets)) if output.status.success() => Ok(Measured {
            instructions,
            packets,
        }),
        _ => Err(format!("{}:\n{printed}{report}", text(&command)).into()),
    }
}

fn number_after(text: &str, mark: &str) -> Option<u64> {
    let (_, rest) = text.split_once(mark)?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn number_after__reads_what_valgrind_and_the_example_print() {
        let report = "==7== Events    : Ir\n==7== Collected : 28400123\n==7==\n";
        assert_eq!(number_after(report, "Collected : "), Some(28_400_123));
        assert_eq!(
            number_after("packets 40000\nrpcs 1\n", "packets "),
            Some(40_000)
        );
        assert_eq!(number_after("nothing", "packets "), None);
    }

    #[test]
    fn up_to__is_the_cost_without_the_set_up() {
        let at = |instructions, packets| Measured {
            instructions,
            packets,
        };
        assert_eq!(at(1_000, 10).up_to(at(6_000, 20)), Some(500));
        assert_eq!(at(1_000, 10).up_to(at(6_000, 10)), None);
        assert_eq!(at(1_000, 10).up_to(at(500, 20)), None);
    }
}
