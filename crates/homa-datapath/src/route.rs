//! What is known about the way to a host: its MTU, and the source address that
//! the kernel would choose.
//!
//! The kernel knows both, ICMP included: a scratch socket that is connected to
//! the host tells. It is opened with the datapath's own sockets, so that it
//! belongs to their network namespace whichever thread asks. The answer is kept for [`ROUTE_LIFETIME`], so a changed
//! route or MTU is seen within that time; an MTU that ICMP reported to one of
//! our own sockets holds for [`LEARNED_LIFETIME`] at once.
//!
//! Bounded: [`SETS`] × [`WAYS`] hosts, the one asked for longest ago gives way.
//! Nothing is allocated after the cache is made.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::Path;
use crate::counters::Cell;
use crate::socket::{Family, Socket, lock};

/// How long the kernel's answer is believed.
const ROUTE_LIFETIME: Duration = Duration::from_secs(10);
/// How long an MTU that ICMP reported is believed before the kernel is asked
/// again (which keeps it for 10 minutes, if it believed it).
const LEARNED_LIFETIME: Duration = Duration::from_secs(60);
/// 256 × 4 = 1024 hosts: 80 KiB.
const SETS: usize = 256;
const WAYS: usize = 4;

/// Smallest MTU that is believed: the kernel's own bound for IPv4
/// (`min_pmtu`), and what every IPv6 link must carry. An attacker who forges
/// ICMP can bring packets down to this and no further.
const MINIMUM_MTU_V4: usize = 552;
const MINIMUM_MTU_V6: usize = 1280;
/// What is assumed where the kernel knows no way.
const FALLBACK_MTU_V4: usize = 576;
const FALLBACK_MTU_V6: usize = 1280;

#[derive(Clone, Copy)]
struct Entry {
    address: IpAddr,
    scope: u32,
    route: Route,
    expires: Instant,
    used: u64,
}

/// The way to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// Bytes of the longest IP packet.
    pub(crate) mtu: usize,
    /// The own address that the kernel would send from, if there is a way.
    pub(crate) source: Option<IpAddr>,
}

struct Table {
    entries: Box<[Option<Entry>]>,
    clock: u64,
    scratch_v4: Option<Socket>,
    scratch_v6: Option<Socket>,
}

/// The cache.
pub(crate) struct Routes {
    hasher: RandomState,
    table: Mutex<Table>,
}

impl Routes {
    pub(crate) fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            table: Mutex::new(Table {
                entries: vec![None; SETS * WAYS].into_boxed_slice(),
                clock: 0,
                scratch_v4: Socket::open(Family::V4, libc::SOCK_DGRAM, 0).ok(),
                scratch_v6: Socket::open(Family::V6, libc::SOCK_DGRAM, 0).ok(),
            }),
        }
    }

    /// The way to `path.remote`; asks the kernel, counting in `lookups`, if
    /// that is not known. The source is the one without regard to `path.local`.
    pub(crate) fn get(&self, path: &Path, lookups: &Cell) -> Route {
        let now = Instant::now();
        let (address, scope) = key(&path.remote);
        let set = self.set_of(address, scope);
        let mut table = lock(&self.table);
        table.clock += 1;
        let clock = table.clock;
        for entry in table.entries[set..set + WAYS].iter_mut().flatten() {
            if entry.address == address && entry.scope == scope && entry.expires > now {
                entry.used = clock;
                return entry.route;
            }
        }
        lookups.increment();
        let route = table.ask_kernel(&path.remote);
        insert(
            &mut table.entries[set..set + WAYS],
            Entry {
                address,
                scope,
                route,
                expires: now + ROUTE_LIFETIME,
                used: clock,
            },
        );
        route
    }

    /// Takes over what ICMP reported: `mtu` bytes, or 0 when it did not tell.
    /// Returns the MTU believed from now on.
    pub(crate) fn learn(&self, remote: &SocketAddr, mtu: u32, lookups: &Cell) -> usize {
        let before = self.get(&Path::to(*remote), lookups);
        let family = Family::of(remote.ip());
        // The kernel has seen the report first and believes it or not; its
        // word also helps when the report has no number.
        lookups.increment();
        let (address, scope) = key(remote);
        let set = self.set_of(address, scope);
        let mut table = lock(&self.table);
        table.clock += 1;
        let clock = table.clock;
        let kernel = table.ask_kernel(remote);
        let reported = match mtu as usize {
            0 => kernel.mtu,
            bytes => bytes.min(kernel.mtu),
        };
        let mtu = reported.max(minimum_mtu(family)).min(before.mtu);
        insert(
            &mut table.entries[set..set + WAYS],
            Entry {
                address,
                scope,
                route: Route { mtu, ..kernel },
                expires: Instant::now() + LEARNED_LIFETIME,
                used: clock,
            },
        );
        mtu
    }

    /// Forgets a host, so that the kernel is asked anew.
    pub(crate) fn forget(&self, remote: &SocketAddr) {
        let (address, scope) = key(remote);
        let set = self.set_of(address, scope);
        let mut table = lock(&self.table);
        for way in &mut table.entries[set..set + WAYS] {
            if way.is_some_and(|entry| entry.address == address && entry.scope == scope) {
                *way = None;
            }
        }
    }

    fn set_of(&self, address: IpAddr, scope: u32) -> usize {
        (self.hasher.hash_one((address, scope)) as usize % SETS) * WAYS
    }
}

/// Puts an entry in place of the same host, an empty way, or the one used
/// longest ago.
fn insert(ways: &mut [Option<Entry>], entry: Entry) {
    let place = ways.iter_mut().min_by_key(|way| match way {
        Some(old) if old.address == entry.address && old.scope == entry.scope => (0, 0),
        None => (1, 0),
        Some(old) => (2, old.used),
    });
    if let Some(place) = place {
        *place = Some(entry);
    }
}

fn key(remote: &SocketAddr) -> (IpAddr, u32) {
    match remote {
        SocketAddr::V4(remote) => ((*remote.ip()).into(), 0),
        SocketAddr::V6(remote) => ((*remote.ip()).into(), remote.scope_id()),
    }
}

fn minimum_mtu(family: Family) -> usize {
    match family {
        Family::V4 => MINIMUM_MTU_V4,
        Family::V6 => MINIMUM_MTU_V6,
    }
}

impl Table {
    fn ask_kernel(&self, remote: &SocketAddr) -> Route {
        let (mtu, scratch) = match Family::of(remote.ip()) {
            Family::V4 => (FALLBACK_MTU_V4, &self.scratch_v4),
            Family::V6 => (FALLBACK_MTU_V6, &self.scratch_v6),
        };
        scratch
            .as_ref()
            .and_then(|socket| ask(socket, remote))
            .unwrap_or(Route { mtu, source: None })
    }
}

/// Nothing is sent: connecting a UDP socket only looks the route up. Port 9
/// (discard) stands for the port that raw paths do not have.
fn ask(scratch: &Socket, remote: &SocketAddr) -> Option<Route> {
    let mut target = *remote;
    target.set_port(9);
    scratch.connect(&target).ok()?;
    let mtu = match scratch.family {
        Family::V4 => scratch.get(libc::SOL_IP, libc::IP_MTU),
        Family::V6 => scratch.get(libc::SOL_IPV6, libc::IPV6_MTU),
    };
    let source = scratch.local_address();
    // Else the source found now would be kept for the next host.
    scratch.disconnect().ok()?;
    Some(Route {
        mtu: usize::try_from(mtu.ok()?).ok()?,
        source: source.ok().map(|address| address.ip()),
    })
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn get__loopback_is_asked_for_once() {
        let (routes, lookups) = (Routes::new(), Cell::default());
        let path = Path::to("127.0.0.1:7".parse().unwrap());
        let route = routes.get(&path, &lookups);
        assert!(route.mtu >= 1500, "{route:?}");
        assert_eq!(route.source, Some([127, 0, 0, 1].into()));
        assert_eq!(routes.get(&path, &lookups), route);
        assert_eq!(lookups.get(), 1);
        routes.forget(&path.remote);
        routes.get(&path, &lookups);
        assert_eq!(lookups.get(), 2);
    }

    #[test]
    fn learn__never_raises_and_never_below_the_minimum() {
        let (routes, lookups) = (Routes::new(), Cell::default());
        let remote = "127.0.0.1:7".parse().unwrap();
        assert_eq!(routes.learn(&remote, 1400, &lookups), 1400);
        assert_eq!(routes.get(&Path::to(remote), &lookups).mtu, 1400);
        assert_eq!(routes.learn(&remote, 1450, &lookups), 1400);
        assert_eq!(routes.learn(&remote, 68, &lookups), MINIMUM_MTU_V4);
    }

    #[test]
    fn insert__many_hosts_stay_bounded() {
        let (routes, lookups) = (Routes::new(), Cell::default());
        for host in 0..3000_u32 {
            let address = IpAddr::V4((0x7f00_0000 + host).into());
            routes.get(&Path::to(SocketAddr::new(address, 1)), &lookups);
        }
        assert_eq!(lock(&routes.table).entries.len(), SETS * WAYS);
        let last = Path::to("127.0.11.183:1".parse().unwrap());
        let before = lookups.get();
        routes.get(&last, &lookups);
        assert_eq!(lookups.get(), before, "the newest host is still known");
    }
}
