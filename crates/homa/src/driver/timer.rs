//! A timer with nanosecond deadlines: a timerfd that tokio watches.

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub(super) struct Timer {
    fd: AsyncFd<OwnedFd>,
    /// When it fires; `None`: not at all.
    fires_at: Option<Instant>,
}

impl Timer {
    pub(super) fn new() -> io::Result<Self> {
        let fd = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        Ok(Self {
            fd: super::watch(fd, Interest::READABLE)?,
            fires_at: None,
        })
    }

    /// Forgets that it has fired and asks to be woken when it does. It is not
    /// read: setting it again makes it unreadable.
    pub(super) fn settle(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while let Poll::Ready(guard) = self.fd.poll_read_ready(cx) {
            guard?.clear_ready();
            self.fires_at = None;
        }
        Ok(())
    }

    /// Wakes the task at `at` or earlier.
    pub(super) fn set(&mut self, at: Option<Instant>, cx: &Context<'_>) -> io::Result<()> {
        let Some(at) = at else {
            return Ok(());
        };
        if self.fires_at.is_some_and(|fires_at| fires_at <= at) {
            return Ok(());
        }
        let left = at.saturating_duration_since(Instant::now());
        if left.is_zero() {
            cx.waker().wake_by_ref();
            return Ok(());
        }
        timerfd_settime(
            self.fd.get_ref(),
            TimerfdTimerFlags::empty(),
            &Itimerspec {
                it_interval: Timespec::default(),
                it_value: timespec(left),
            },
        )?;
        self.fires_at = Some(at);
        Ok(())
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    async fn fired(timer: &mut Timer) {
        std::future::poll_fn(|cx| {
            timer.settle(cx).unwrap();
            match timer.fires_at {
                None => Poll::Ready(()),
                Some(_) => Poll::Pending,
            }
        })
        .await;
    }

    async fn set(timer: &mut Timer, at: Instant) {
        std::future::poll_fn(|cx| {
            timer.set(Some(at), cx).unwrap();
            Poll::Ready(())
        })
        .await;
    }

    #[tokio::test]
    async fn set__fires_on_time_again_and_again() {
        let mut timer = Timer::new().unwrap();
        for _ in 0..3 {
            let at = Instant::now() + Duration::from_micros(300);
            set(&mut timer, at).await;
            fired(&mut timer).await;
            assert!(Instant::now() >= at);
        }
    }

    #[tokio::test]
    async fn set__later_leaves_it_and_earlier_does_not() {
        let mut timer = Timer::new().unwrap();
        let start = Instant::now();
        let near = start + Duration::from_secs(1000);
        set(&mut timer, near).await;
        set(&mut timer, start + Duration::from_secs(2000)).await;
        assert_eq!(timer.fires_at, Some(near));
        let soon = Instant::now() + Duration::from_millis(1);
        set(&mut timer, soon).await;
        fired(&mut timer).await;
        assert!(Instant::now() >= soon);
    }
}
