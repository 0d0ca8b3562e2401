//! The core in a home without an operating system: its own panic handler, its
//! own allocator. See `xtask/src/no_std.rs`.

#![no_std]

#[cfg(feature = "std")]
extern crate std;

use core::alloc::{GlobalAlloc, Layout};

use homa_core::{Config, Endpoint, Identity, Time};

struct NoMemory;

// SAFETY: it never gives out memory.
unsafe impl GlobalAlloc for NoMemory {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static MEMORY: NoMemory = NoMemory;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// Uses enough of the core that all of it must link.
#[unsafe(no_mangle)]
pub extern "C" fn homa_guard(now_ns: u64) -> bool {
    let identity = Identity {
        first_id: now_ns,
        instance: now_ns,
        hash_seed: now_ns,
    };
    let Ok(settings) = Config::default().settings() else {
        return false;
    };
    let mut endpoint = Endpoint::new(settings, identity);
    let now = Time::from_nanos(now_ns);
    endpoint.poll_transmit(now).is_none() && endpoint.next_timeout(now).is_none()
}
