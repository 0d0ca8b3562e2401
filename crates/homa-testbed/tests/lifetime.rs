//! Testbeds come and go without leaving anything behind, however they end.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::testbed;
use homa_testbed::{Network, Options, Switch, Testbed, Wire, in_user_namespace};

/// In the program that the tests start to kill it.
const VICTIM: &str = "HOMA_TESTBED_VICTIM";

/// The kernel's numbers of the namespaces that somebody is in.
fn namespaces() -> BTreeSet<PathBuf> {
    let tasks = fs::read_dir("/proc").unwrap().flatten().flat_map(|entry| {
        // Entries that are not processes, and processes that have just ended.
        let threads = fs::read_dir(entry.path().join("task")).into_iter();
        threads.flatten().flatten()
    });
    let links = tasks.filter_map(|task| fs::read_link(task.path().join("ns/net")).ok());
    links.collect()
}

fn namespace_of(path: &Path) -> PathBuf {
    fs::read_link(path).unwrap()
}

fn are_gone(gone: &[PathBuf]) -> bool {
    let end = Instant::now() + Duration::from_secs(5);
    while Instant::now() < end {
        let now = namespaces();
        if gone.iter().all(|namespace| !now.contains(namespace)) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

fn sleep() -> Command {
    let mut command = Command::new("sleep");
    command.arg("1000");
    command
}

#[test]
fn drop__leaves_nothing() {
    let networks = [
        Network::Plain,
        Network::Switch(Switch::default()),
        Network::Wire(Wire::default()),
        Network::Routed { path_mtu: 1280 },
    ];
    let devices = || fs::read_to_string("/proc/net/dev").unwrap().lines().count();
    let before = devices();
    for network in networks {
        let options = Options {
            network,
            hosts: 3,
            ..Options::default()
        };
        // Twice in a row.
        for _ in 0..2 {
            let Some(testbed) = testbed("drop__leaves_nothing", &options) else {
                return;
            };
            let hosts = testbed.hosts();
            let made: Vec<_> = hosts
                .iter()
                .map(|host| namespace_of(&host.network_path()))
                .collect();
            assert!(made.iter().all(|made| namespaces().contains(made)));
            let mut running = hosts[0].start(sleep()).unwrap();
            assert!(running.try_wait().unwrap().is_none());
            drop(testbed);
            assert!(!running.wait().unwrap().success(), "killed with its host");
            assert!(are_gone(&made), "{options:?}");
        }
    }
    assert_eq!(devices(), before);
}

#[test]
fn panic__leaves_nothing() {
    let options = Options::default();
    let Some(testbed) = testbed("panic__leaves_nothing", &options) else {
        return;
    };
    let made = namespace_of(&testbed.hosts()[0].network_path());
    let outcome = std::thread::spawn(move || {
        let _testbed = testbed;
        panic!("on purpose: the testbed is dropped while unwinding");
    })
    .join();
    assert!(outcome.is_err());
    assert!(are_gone(&[made]));
}

#[test]
fn run__gives_panics_back_and_lives_on() {
    let Some(testbed) = testbed("run__gives_panics_back_and_lives_on", &Options::default()) else {
        return;
    };
    let host = &testbed.hosts()[0];
    let task = host.spawn(|| panic!("on purpose")).unwrap();
    assert!(task.join().is_err());
    assert_eq!(host.run(|| 3).unwrap(), 3);
}

#[test]
fn output__is_that_of_the_host() {
    let Some(testbed) = testbed("output__is_that_of_the_host", &Options::default()) else {
        return;
    };
    for host in testbed.hosts() {
        let mut command = Command::new("ip");
        command.args(["-o", "addr", "show", "dev", "eth0"]);
        let output = host.output(command).unwrap();
        assert!(output.contains(&host.v4().to_string()), "{output}");
        assert!(output.contains(&host.v6().to_string()), "{output}");
    }
    let host = &testbed.hosts()[0];
    let error = host.output(Command::new("no-such-program")).unwrap_err();
    assert!(error.to_string().contains("no-such-program"), "{error}");
    let error = host.output(Command::new("false")).unwrap_err();
    assert!(error.to_string().starts_with("false"), "{error}");
}

/// Not a test but what the tests below start: a program with a testbed.
#[test]
fn victim__waits_to_be_killed() {
    if std::env::var_os(VICTIM).is_none() {
        return;
    }
    let testbed = Testbed::new(&Options::default()).unwrap();
    let _running: Vec<Child> = testbed
        .hosts()
        .iter()
        .map(|host| host.start(sleep()).unwrap())
        .collect();
    for host in testbed.hosts() {
        println!("made {}", namespace_of(&host.network_path()).display());
    }
    println!("ready");
    std::thread::sleep(Duration::from_secs(1000));
}

/// A program with a testbed, and the namespaces that it has made.
fn victim(mut command: Command) -> (Child, Vec<PathBuf>) {
    command
        .args(["--exact", "victim__waits_to_be_killed", "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let lines = output.lines().map(Result::unwrap);
    let made = lines
        .take_while(|line| line != "ready")
        .filter_map(|line| Some(line.strip_prefix("made ")?.into()));
    let made: Vec<PathBuf> = made.collect();
    assert_eq!(made.len(), 2);
    (child, made)
}

#[test]
fn kill__leaves_nothing() {
    if testbed("kill__leaves_nothing", &Options::default()).is_none() {
        return;
    }
    let (mut child, made) = victim(Command::new(std::env::current_exe().unwrap()));
    assert!(made.iter().all(|made| namespaces().contains(made)));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(are_gone(&made));
}

#[test]
fn interrupt__leaves_nothing() {
    if testbed("interrupt__leaves_nothing", &Options::default()).is_none() {
        return;
    }
    let (mut child, made) = victim(Command::new(std::env::current_exe().unwrap()));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    child.wait().unwrap();
    assert!(are_gone(&made));
}

#[test]
fn user_namespace__needs_no_root() {
    let allowed = in_user_namespace("true").output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        let why = "`unshare --user --map-root-user --net` is not permitted";
        return homa_test::skip("user_namespace__needs_no_root", why);
    }
    let (mut child, made) = victim(in_user_namespace(std::env::current_exe().unwrap()));
    assert!(made.iter().all(|made| namespaces().contains(made)));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(are_gone(&made));
}
