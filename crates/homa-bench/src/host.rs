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

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use std::time::Instant;

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
