//! What all views of one endpoint share: the engine, who drives it, and what
//! happens when the last view is dropped.
//!
//! Invariant: the engine is closed when nobody can reach it any more, after
//! what was under way has had `linger` to end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use homa_datapath::Datapath;
use homa_engine::{Drive, Engine, EngineConfig, Listener, Sending, TosMap};

use crate::address::Families;
use crate::builder::{Driving, Options};
use crate::failure::listen_error;
use crate::{Error, Stats};

/// A polling thread sleeps after this long without traffic.
const POLLING_IDLE: Duration = Duration::from_millis(10);
/// Deadlines further ahead than this are none.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 86_400);

pub(crate) struct Shared {
    pub(crate) engine: Arc<Engine>,
    pub(crate) families: Families,
    pub(crate) default_deadline: Option<Duration>,
    pub(crate) linger: Duration,
    pub(crate) home: Home,
}

/// Who drives the engine when nobody calls.
pub(crate) enum Home {
    /// A task of a tokio runtime.
    #[cfg(feature = "tokio")]
    Task(Arc<crate::driver::Control>),
    /// A thread of the engine.
    Thread,
}

/// A point in time and the duration that it came from, for error messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    pub(crate) at: Instant,
    pub(crate) given: Duration,
}

impl Deadline {
    /// From now on; `None` where that is beyond all clocks.
    pub(crate) fn after(given: Duration) -> Option<Self> {
        if given > FOREVER {
            return None;
        }
        Some(Self {
            at: after(given),
            given,
        })
    }
}

/// The time from now on; what is beyond all clocks is very far ahead.
pub(crate) fn after(time: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(time.min(FOREVER)).unwrap_or(now)
}

impl Shared {
    pub(crate) fn local_addresses(&self) -> Vec<SocketAddr> {
        self.engine.local_addresses()
    }

    /// The UDP port of the endpoint; raw IP has none.
    pub(crate) fn port(&self) -> Option<u16> {
        self.engine
            .local_addresses()
            .first()
            .map(SocketAddr::port)
            .filter(|port| *port != 0)
    }

    /// Takes a port for a server.
    pub(crate) fn listen(&self, port: u16) -> Result<Listener, Error> {
        if port == 0 {
            return Err(Error::WrongPort {
                port,
                own: self.port(),
            });
        }
        self.engine.listen(port).map_err(listen_error)
    }

    pub(crate) fn default_deadline(&self) -> Option<Deadline> {
        self.default_deadline.and_then(Deadline::after)
    }

    pub(crate) fn stats(&self) -> Stats {
        Stats::new(self.engine.stats())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        match &self.home {
            #[cfg(feature = "tokio")]
            Home::Task(control) => {
                self.engine.begin_shutdown();
                control.close_at(after(self.linger));
            }
            Home::Thread => {
                self.engine.shutdown(after(self.linger));
            }
        }
    }
}

/// Makes an engine. `drive` is who drives it unless a polling thread does.
pub(crate) fn start(
    options: &Options,
    datapath: Arc<dyn Datapath>,
    drive: Drive,
) -> Result<(Arc<Engine>, Families), Error> {
    let mut core = options.protocol.clone();
    // Requests of other hosts take up to three quarters of the table; ours
    // must always find the room that they were promised.
    let wanted = u32::try_from(options.max_rpcs_in_flight)
        .unwrap_or(u32::MAX)
        .saturating_mul(2);
    core.max_rpcs = core.max_rpcs.max(wanted);
    if options.dscp.iter().any(|code_point| *code_point > 63) {
        return Err(Error::Option {
            option: "dscp",
            reason: "a DSCP is 0 to 63; the TOS byte is four times that",
        });
    }
    if options.max_rpcs_in_flight == 0 || options.max_bytes_in_flight == 0 {
        return Err(Error::Option {
            option: "max_rpcs_in_flight, max_bytes_in_flight",
            reason: "with 0 no call could ever start; use 1 or more",
        });
    }
    let families = Families::of(&datapath.local_addresses());
    let engine = Engine::new(
        EngineConfig {
            core,
            drive: match options.driving {
                Driving::Sleeping => drive,
                Driving::Polling => Drive::Polling { idle: POLLING_IDLE },
            },
            sending: Sending::AtOnce,
            spin_before_sleep: options.spin,
            max_calls: u32::try_from(options.max_rpcs_in_flight).unwrap_or(u32::MAX),
            max_outgoing_bytes: options.max_bytes_in_flight as u64,
            max_response_bytes: options.max_reply_bytes as u64,
            max_waiting_requests: u32::try_from(options.max_requests_waiting).unwrap_or(u32::MAX),
            tos: TosMap::from_dscp(options.dscp),
            identity: None,
        },
        Box::new(datapath),
    )?;
    Ok((engine, families))
}
