//! Runs one simulation of SIGCOMM 2018 and prints it beside the published
//! numbers: `sigcomm18 WORKLOAD LOAD SECONDS [SEED]`.

use std::time::Instant;

use homa_sim::published::{self, Curve};
use homa_sim::sigcomm18::{self, Conditions};
use homa_sim::slowdown::Slowdowns;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [workload, load, seconds, ..] = arguments.as_slice() else {
        return Err("sigcomm18 WORKLOAD LOAD SECONDS [SEED]".into());
    };
    let (workload, load, seconds): (u8, f64, f64) =
        (workload.parse()?, load.parse()?, seconds.parse()?);
    let conditions = Conditions {
        workload,
        load,
        seed: arguments.get(3).map_or(Ok(1), |seed| seed.parse())?,
        warm_up_s: seconds * 0.2,
        measure_s: seconds,
        drain_s: seconds,
    };
    let start = Instant::now();
    let mut outcome = sigcomm18::run(&conditions)?;
    let wall_s = start.elapsed().as_secs_f64();
    let classes = outcome.slowdowns.classes();
    let reference = published::classes(Curve::Homa, workload, load);
    println!("   size   messages  cum%   mean  (pub)    p50  (pub)    p99  (pub)");
    for class in &classes {
        let row = reference
            .iter()
            .find(|row| row.up_to_bytes == class.up_to_bytes);
        let (mean, p50, p99) = row.map_or((0.0, 0.0, 0.0), |row| (row.mean, row.p50, row.p99));
        println!(
            "{:>8} {:>9} {:>6.2} {:>6.2} {mean:>6.2} {:>6.2} {p50:>6.2} {:>6.2} {p99:>6.2}",
            class.up_to_bytes,
            class.messages,
            100.0 * class.cumulative,
            class.mean,
            class.p50,
            class.p99
        );
    }
    let found = Slowdowns::summary(&classes);
    let paper = published::summary(&reference);
    println!(
        "mean            {:.3}  published {:.3}",
        found.mean, paper.mean
    );
    println!(
        "p99 short half  {:.3}  published {:.3}",
        found.p99_short_half, paper.p99_short_half
    );
    println!(
        "p99 any         {:.2}  published {:.2}",
        found.p99_any, paper.p99_any
    );
    println!(
        "unfinished {} of {}, used {:.3} of the links, most waiting {} B",
        found.unfinished,
        found.messages + found.unfinished,
        outcome.used,
        outcome.most_waiting_bytes
    );
    println!("{:?}", outcome.counters);
    println!(
        "trace_hash {:016x}  virtual {:.4} s  wall {wall_s:.2} s  {:.3} M packet hops/s",
        outcome.trace_hash,
        outcome.virtual_s,
        outcome.counters.packet_hops as f64 / wall_s / 1e6
    );
    Ok(())
}
