//! The core must run where there is no operating system beneath it.
//!
//! Two proofs that `homa-wire` and `homa-core` need no `std`: they build for a
//! target that has none, and they link into a static library with a panic
//! handler and an allocator of its own, which the compiler refuses (E0152) as
//! soon as any dependency brings `std`. The second needs no target installed;
//! that it can fail is shown each time, by bringing `std` in on purpose.
//!
//! Besides: the library crates must compile for aarch64.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{Outcome, cargo, collect, show, skipped};
use crate::repository::root;

const BARE_TARGET: &str = "x86_64-unknown-none";
const OTHER_TARGET: &str = "aarch64-unknown-linux-gnu";
const BARE_CRATES: [&str; 2] = ["homa-wire", "homa-core"];
const LIBRARIES: [&str; 5] = [
    "homa-wire",
    "homa-core",
    "homa-datapath",
    "homa-engine",
    "homa",
];

pub(crate) fn run() -> Outcome {
    on_target("build", BARE_TARGET, &BARE_CRATES)?;
    guard()?;
    on_target("check", OTHER_TARGET, &LIBRARIES)
}

fn on_target(verb: &str, target: &str, crates: &[&str]) -> Outcome {
    if let Err(why) = install(target) {
        skipped(target, &why);
        return Ok(());
    }
    let mut command = cargo();
    command.args([verb, "--target", target]).current_dir(root());
    for name in crates {
        command.args(["--package", name]);
    }
    show(&mut command)?;
    println!("no-std: {} for {target}: ok", crates.join(", "));
    Ok(())
}

/// Adds the target's standard library; the reason if that does not work.
fn install(target: &str) -> Result<(), String> {
    let mut command = Command::new("rustup");
    command.args(["target", "add", target]).current_dir(root());
    let output = collect(&mut command).map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    let last = message.lines().last().unwrap_or("rustup failed");
    Err(last.to_owned())
}

fn guard() -> Outcome {
    let directory = write_guard()?;
    show(&mut build_guard(&directory))?;
    println!("no-std: a static library of its own around homa-core: ok");
    let mut with_std = build_guard(&directory);
    let output = collect(with_std.args(["--features", "std"]))?;
    let message = String::from_utf8_lossy(&output.stderr);
    if output.status.success() || !message.contains("E0152") {
        return Err(format!("the guard does not notice std:\n{message}").into());
    }
    println!("no-std: the same with std is refused: ok");
    Ok(())
}

/// A package outside of the workspace, since its panic strategy is its own.
fn write_guard() -> Result<PathBuf, Box<dyn std::error::Error>> {
    let root = root();
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let directory = target.join("no-std-guard");
    std::fs::create_dir_all(&directory)?;
    let core = root.join("crates/homa-core");
    let manifest = include_str!("../guard/manifest").replace("HOMA_CORE", &core.to_string_lossy());
    std::fs::write(directory.join("Cargo.toml"), manifest)?;
    std::fs::write(directory.join("lib.rs"), include_str!("../guard/lib.rs"))?;
    // The versions that everything else is built with.
    std::fs::copy(root.join("Cargo.lock"), directory.join("Cargo.lock"))?;
    Ok(directory)
}

fn build_guard(directory: &Path) -> Command {
    let mut command = cargo();
    command
        .args(["build", "--target-dir", "build"])
        .current_dir(directory);
    command
}
