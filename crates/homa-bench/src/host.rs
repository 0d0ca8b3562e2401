//! What a reader must know of the machine, and what this process used of it.

use std::fs;
use std::time::Duration;

use serde::Serialize;

/// The machine a report was made on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Host {
    /// Kernel release.
    pub kernel: String,
    /// Processor model.
    pub cpu: String,
    /// Logical processors this process may use.
    pub cpus: usize,
}

impl Host {
    /// Reads /proc; what cannot be read is `unknown`.
    pub fn here() -> Self {
        let unknown = || "unknown".to_owned();
        let cpu = fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        });
        Self {
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .map_or_else(|_| unknown(), |text| text.trim().to_owned()),
            cpu: cpu.unwrap_or_else(unknown),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// Processor time of all threads of this process so far; nothing where the
/// kernel does not tell.
pub fn process_cpu_time() -> Option<Duration> {
    let mut total_ns = 0;
    for task in fs::read_dir("/proc/self/task").ok()? {
        // A thread may end meanwhile.
        let Ok(text) = fs::read_to_string(task.ok()?.path().join("schedstat")) else {
            continue;
        };
        total_ns += text.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(Duration::from_nanos(total_ns))
}

/// What the processors of this machine have done so far, in clock ticks of
/// 10 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    /// All time.
    pub total: u64,
    /// Nothing to do, or waiting for disks.
    pub idle: u64,
    /// Programs of low priority.
    pub nice: u64,
    /// Taken by the hypervisor for other machines.
    pub stolen: u64,
}

impl Ticks {
    /// Reads /proc; nothing where it does not tell.
    pub fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// user, nice, system, idle, iowait, irq, softirq, steal.
    fn parse(stat: &str) -> Option<Self> {
        let fields: Vec<u64> = stat
            .lines()
            .find_map(|line| line.strip_prefix("cpu "))?
            .split_whitespace()
            .map_while(|field| field.parse().ok())
            .collect();
        let counted = fields.get(..8)?;
        let [_, nice, _, idle, iowait, _, _, stolen] = *counted else {
            return None;
        };
        Some(Self {
            total: counted.iter().sum(),
            idle: idle + iowait,
            nice,
            stolen,
        })
    }

    /// Time with something to do.
    pub fn busy(self) -> Duration {
        Duration::from_millis((self.total - self.idle) * 10)
    }
}

/// TCP segments sent again in this network namespace so far.
pub fn tcp_retransmitted_segments() -> Option<u64> {
    tcp_retransmitted_segments_of(std::process::id())
}

/// TCP segments sent again so far in the network namespace of a process.
pub fn tcp_retransmitted_segments_of(process: u32) -> Option<u64> {
    retransmitted(&fs::read_to_string(format!("/proc/{process}/net/snmp")).ok()?)
}

/// A line of names, then one of values.
fn retransmitted(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    names
        .split_whitespace()
        .zip(values.split_whitespace())
        .find_map(|(name, value)| (name == "RetransSegs").then(|| value.parse().ok())?)
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn ticks__busy_is_without_idle_and_iowait() {
        let stat = "cpu  1 2 3 1000 500 4 5 6 7 8\ncpu0 1 2 3";
        let ticks = Ticks::parse(stat).unwrap();
        assert_eq!(ticks.busy(), Duration::from_millis(210));
        assert_eq!((ticks.nice, ticks.stolen), (2, 6));
        assert_eq!(Ticks::parse("cpu  1 2"), None);
        assert!(Ticks::now().is_some());
    }

    #[test]
    fn retransmitted__by_name() {
        let snmp = "Ip: A B\nIp: 1 2\nTcp: InSegs RetransSegs X\nTcp: 5 6 7\n";
        assert_eq!(retransmitted(snmp), Some(6));
        assert_eq!(retransmitted("Tcp: A\nTcp: 1\n"), None);
        assert!(tcp_retransmitted_segments().is_some());
    }

    #[test]
    fn process_cpu_time__grows_with_work() {
        let before = process_cpu_time().unwrap();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(60) {}
        let used = process_cpu_time().unwrap().saturating_sub(before);
        assert!(used > Duration::from_millis(5), "{used:?}");
        assert!(Host::here().cpus > 0);
    }
}
