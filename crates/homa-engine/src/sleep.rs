//! Sleeping on descriptors, to the nanosecond, and being woken.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use homa_datapath::Datapath;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// Wakes a sleeping driver from any thread.
#[derive(Debug)]
pub(crate) struct Alarm(OwnedFd);

impl Alarm {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self(eventfd(0, flags)?))
    }

    /// Makes the next sleep end at once, or this one.
    pub(crate) fn ring(&self) {
        // Failing with EAGAIN means that it rings already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    fn quiet(&self) {
        let mut count = [0; 8];
        // Failing with EAGAIN means that it was quiet.
        let _ = rustix::io::read(&self.0, &mut count);
    }
}

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// Time is up.
    Time,
    /// The alarm rang, and nothing else happened.
    Alarm,
    /// A descriptor is ready.
    Ready,
    /// A descriptor is in error: the network has something to say.
    Trouble,
}

/// Sleeps until a descriptor of the datapath is readable (`writable` also
/// writable), the alarm rings, or time is up; `None` is for ever.
pub(crate) fn sleep(
    datapath: &dyn Datapath,
    alarm: &Alarm,
    writable: Option<RawFd>,
    timeout: Option<Duration>,
) -> Woken {
    let descriptors = datapath.descriptors();
    let mut polled = Vec::with_capacity(descriptors.len() + 1);
    polled.push(PollFd::new(&alarm.0, PollFlags::IN));
    for descriptor in &descriptors {
        let mut events = PollFlags::IN;
        if writable == Some(descriptor.as_raw_fd()) {
            events |= PollFlags::OUT;
        }
        polled.push(PollFd::new(descriptor, events));
    }
    wait(&mut polled, alarm, timeout)
}

/// Sleeps until the alarm rings or time is up.
pub(crate) fn rest(alarm: &Alarm, timeout: Option<Duration>) -> Woken {
    wait(&mut [PollFd::new(&alarm.0, PollFlags::IN)], alarm, timeout)
}

fn wait(polled: &mut [PollFd<'_>], alarm: &Alarm, timeout: Option<Duration>) -> Woken {
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    match poll(polled, timeout.as_ref()) {
        Ok(0) => return Woken::Time,
        Ok(_) => {}
        // A signal: look around and sleep again.
        Err(_) => return Woken::Alarm,
    }
    let Some((first, rest)) = polled.split_first() else {
        return Woken::Time;
    };
    if !first.revents().is_empty() {
        alarm.quiet();
    }
    let all = rest
        .iter()
        .fold(PollFlags::empty(), |all, one| all | one.revents());
    if all.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL) {
        Woken::Trouble
    } else if all.is_empty() {
        Woken::Alarm
    } else {
        Woken::Ready
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn rest__ends_with_the_alarm_or_the_time() {
        let alarm = Alarm::new().unwrap();
        let began = Instant::now();
        let timeout = Duration::from_micros(1500);
        assert_eq!(rest(&alarm, Some(timeout)), Woken::Time);
        assert!(began.elapsed() >= timeout);
        alarm.ring();
        alarm.ring();
        assert_eq!(rest(&alarm, None), Woken::Alarm);
        assert_eq!(rest(&alarm, Some(Duration::ZERO)), Woken::Time);
    }
}
