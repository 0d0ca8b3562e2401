//! Runs one simulation of SIGCOMM 2018 and prints it beside the published
//! numbers: `sigcomm18 WORKLOAD LOAD SECONDS [SEED]`.

use homa_sim::report::Report;
use homa_sim::sigcomm18::{self, Conditions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [workload, load, seconds, ..] = arguments.as_slice() else {
        return Err("sigcomm18 WORKLOAD LOAD SECONDS [SEED]".into());
    };
    let seconds: f64 = seconds.parse()?;
    let seed = arguments.get(3).map_or(Ok(1), |seed| seed.parse())?;
    let conditions = Conditions {
        workload: workload.parse()?,
        load: load.parse()?,
        seed,
        warm_up_s: seconds * 0.2,
        measure_s: seconds,
        drain_s: seconds,
    };
    let outcome = sigcomm18::run(&conditions)?;
    println!("{:?}", outcome.counters);
    let runs = vec![(seed, outcome, cpu_s()?)];
    println!("{}", Report::sigcomm18(&conditions, runs));
    Ok(())
}

/// Seconds that this thread has run, which other processes do not lengthen.
fn cpu_s() -> Result<f64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let ns = text.split_whitespace().next().ok_or("no time")?;
    Ok(ns.parse::<f64>()? / 1e9)
}
