//! The system calls that have no safe wrapper: the only `unsafe` of this crate.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use rustix::process::{Signal, set_parent_process_death_signal};

/// Frames wait here while the thread that forwards them is not running.
const PACKET_BUFFER_BYTES: usize = 8 << 20;

/// Moves the calling thread, and no other, into a new network namespace.
pub(crate) fn unshare_network() -> io::Result<()> {
    // SAFETY: no pointers. Only the namespace of the calling thread changes;
    // open sockets keep theirs.
    let result = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The program gets SIGKILL when the thread that starts it ends.
pub(crate) fn end_with_this_thread(command: &mut Command) {
    // SAFETY: between fork and exec only one system call is made; it allocates
    // nothing and takes no locks.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
}

/// A non-blocking socket that receives every frame that arrives at a device of
/// the calling thread's namespace, with its Ethernet header, and sends such
/// frames.
pub(crate) fn packet_socket(device: &str) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // Protocol 0: nothing comes in before bind has said from where.
    let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
    if sockopt::set_socket_recv_buffer_size_force(&socket, PACKET_BUFFER_BYTES).is_err() {
        sockopt::set_socket_recv_buffer_size(&socket, PACKET_BUFFER_BYTES)?;
    }
    let index = name_to_index(&socket, device)?;
    let on: libc::c_int = 1;
    // SAFETY: the kernel reads the four bytes of `on`.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_IGNORE_OUTGOING,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as libc::sa_family_t,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: i32::try_from(index).map_err(io::Error::other)?,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the kernel reads as many bytes as the struct has.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of_val(&address) as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(socket)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Any socket of the calling thread's namespace, to ask for devices by name.
fn control_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    Ok(socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        flags,
        None,
    )?)
}

fn request(device: &str) -> io::Result<libc::ifreq> {
    // SAFETY: an `ifreq` is integers, arrays and pointers, for all of which
    // zeros are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // One byte stays zero: the name ends there.
    if device.len() >= request.ifr_name.len() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    Ok(request)
}

/// Whether a device of the calling thread's namespace can carry packets.
pub(crate) fn is_running(device: &str) -> io::Result<bool> {
    let socket = control_socket()?;
    let mut request = request(device)?;
    // SAFETY: the kernel reads the name and writes the flags of the struct.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has written this member of the union.
    let flags = i32::from(unsafe { request.ifr_ifru.ifru_flags });
    let wanted = libc::IFF_UP | libc::IFF_RUNNING;
    Ok(flags & wanted == wanted)
}

/// A device whose features are looked at and changed (linux/ethtool.h).
pub(crate) struct Ethtool<'a> {
    socket: OwnedFd,
    device: &'a str,
}

const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
/// The set of names that are features.
const ETH_SS_FEATURES: u32 = 4;
/// ETH_GSTRING_LEN in words.
const NAME_WORDS: usize = 8;

/// 32 features, a bit each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FeatureBlock {
    /// Those that can be changed.
    pub(crate) available: u32,
    /// Those that are on.
    pub(crate) active: u32,
}

impl<'a> Ethtool<'a> {
    /// A device of the calling thread's namespace.
    pub(crate) fn new(device: &'a str) -> io::Result<Self> {
        Ok(Self {
            socket: control_socket()?,
            device,
        })
    }

    /// # Safety
    ///
    /// `command` must be as long as what the kernel reads and writes for the
    /// command in its first word.
    unsafe fn call(&self, command: &mut [u32]) -> io::Result<()> {
        let mut request = request(self.device)?;
        request.ifr_ifru.ifru_data = command.as_mut_ptr().cast();
        // SIOCETHTOOL, which libc does not have for every target.
        let number: libc::c_ulong = 0x8946;
        // SAFETY: the request lives until the call returns, and so does the
        // command, whose length the caller answers for.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), number as _, &raw mut request) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// The names of all features, in the order of their bits.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        // Command, reserved, a mask of 64 bits, and one number for its one bit.
        let mut count = [ETHTOOL_GSSET_INFO, 0, 0, 0, 0];
        let mask = (1_u64 << ETH_SS_FEATURES).to_ne_bytes();
        for (word, bytes) in count[2..4].iter_mut().zip(mask.chunks_exact(4)) {
            *word = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        // SAFETY: one bit of the mask is set, so one number is written.
        unsafe { self.call(&mut count)? };
        let names = count[4] as usize;
        let mut strings = vec![0; 3 + names * NAME_WORDS];
        strings[0] = ETHTOOL_GSTRINGS;
        strings[1] = ETH_SS_FEATURES;
        strings[2] = count[4];
        // SAFETY: there is room for as many names as the kernel has just said;
        // the number is fixed when the kernel is built.
        unsafe { self.call(&mut strings)? };
        Ok(strings[3..].chunks_exact(NAME_WORDS).map(name).collect())
    }

    /// The state of so many features.
    pub(crate) fn features(&self, names: usize) -> io::Result<Vec<FeatureBlock>> {
        let blocks = names.div_ceil(32);
        let mut command = vec![0; 2 + blocks * 4];
        command[0] = ETHTOOL_GFEATURES;
        command[1] = blocks as u32;
        // SAFETY: four words for each of the blocks that the second word says.
        unsafe { self.call(&mut command)? };
        let blocks = command[2..].chunks_exact(4).map(|words| FeatureBlock {
            available: words[0],
            active: words[2],
        });
        Ok(blocks.collect())
    }

    /// Turns features off: a word for each block.
    pub(crate) fn turn_off(&self, features: &[u32]) -> io::Result<()> {
        let mut command = vec![ETHTOOL_SFEATURES, features.len() as u32];
        for block in features {
            // Which to change, and to what.
            command.extend([*block, 0]);
        }
        // SAFETY: two words for each of the blocks that the second word says.
        unsafe { self.call(&mut command) }
    }
}

fn name(words: &[u32]) -> String {
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes.push(0);
    CStr::from_bytes_until_nul(&bytes).map_or_else(
        |_| String::new(),
        |name| name.to_string_lossy().into_owned(),
    )
}
