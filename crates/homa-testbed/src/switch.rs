//! A switch port with eight strict priorities and a rate, out of Linux's HTB.
//!
//! One class has the port's rate, and under it each priority has a class whose
//! own rate is next to nothing. So all that they send is *borrowed* from the
//! parent, and what may be borrowed HTB gives to the most urgent class that has
//! packets. A ninth class takes frames longer than the MTU and drops them: a
//! frame that a network card would still have cut is not what crosses a switch.

use crate::options::Switch;

/// Ethernet's header.
const FRAME_HEADER_BYTES: u32 = 14;
/// Preamble, gap and checksum: what a frame takes on the wire besides.
const WIRE_OVERHEAD_BYTES: u32 = 24;
/// A frame of the least length, with the overhead.
const WIRE_LEAST_BYTES: u32 = 84;
/// What a port may send at once after it was idle. Timers of the kernel are not
/// fine enough for less: 30 us cost 6 % of the rate.
const BURST_US: u64 = 100;

/// The class of the least urgent priority; the others follow.
const FIRST_CLASS: u32 = 0x10;
/// The class of frames above the MTU.
const OVERSIZE_CLASS: u32 = 0x18;
/// The major number of HTB's handle.
const ROOT: u32 = 1;

/// Whose queue a queueing discipline of a port is, by the class above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    Priority(usize),
    Oversize,
}

impl Queue {
    pub(crate) fn of_parent(parent: u32) -> Option<Self> {
        match parent.checked_sub(ROOT << 16)? {
            OVERSIZE_CLASS => Some(Self::Oversize),
            class @ FIRST_CLASS..OVERSIZE_CLASS => {
                Some(Self::Priority((class - FIRST_CLASS) as usize))
            }
            _ => None,
        }
    }
}

/// The name of a host's port.
pub(crate) fn port_name(host: usize) -> String {
    format!("p{}", host + 1)
}

/// What `tc` is told about a port.
pub(crate) fn port_script(device: &str, mtu: u32, switch: &Switch) -> Vec<String> {
    let frame = mtu + FRAME_HEADER_BYTES;
    let rate = switch.rate_bps;
    let burst = (rate / 8 * BURST_US / 1_000_000).max(2 * u64::from(frame));
    let size = format!("overhead {WIRE_OVERHEAD_BYTES} mpu {WIRE_LEAST_BYTES}");
    let mut lines = vec![
        format!("qdisc add dev {device} root handle {ROOT}: htb default 17 direct_qlen 2"),
        format!(
            "class add dev {device} parent {ROOT}: classid {ROOT}:1 htb rate {rate}bit \
             ceil {rate}bit burst {burst} cburst {burst} quantum {frame} {size}"
        ),
    ];
    let queue = |class: u32, urgency: u32, limit: u32| {
        [
            format!(
                "class add dev {device} parent {ROOT}:1 classid {ROOT}:{class:x} htb rate 8kbit \
                 ceil {rate}bit burst {frame} cburst {burst} prio {urgency} quantum {frame} {size}"
            ),
            format!(
                "qdisc add dev {device} parent {ROOT}:{class:x} handle {class:x}: \
                 bfifo limit {limit}"
            ),
        ]
    };
    for priority in 0..8 {
        let class = FIRST_CLASS + priority;
        lines.extend(queue(class, 7 - priority, switch.buffer_bytes));
    }
    // No frame fits one byte.
    lines.extend(queue(OVERSIZE_CLASS, 7, 1));
    lines.push(format!(
        "filter add dev {device} parent {ROOT}: protocol all prio 1 bpf bytecode \"{}\"",
        classifier(frame)
    ));
    lines
}

/// Which class a frame belongs to, as a program of classic BPF that returns it:
/// one for both families, and nothing to compile.
fn classifier(longest_frame: u32) -> String {
    const LOAD_LENGTH: u16 = 0x80;
    const LOAD_HALF: u16 = 0x28;
    const LOAD_BYTE: u16 = 0x30;
    const JUMP_IF_GREATER: u16 = 0x25;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const JUMP: u16 = 0x05;
    const SHIFT_RIGHT: u16 = 0x74;
    const AND: u16 = 0x54;
    const ADD: u16 = 0x04;
    const RETURN: u16 = 0x06;
    const RETURN_RESULT: u16 = 0x16;
    let class = |minor| (ROOT << 16) + minor;
    // (code, how many to skip if true, if false, operand)
    let program: [(u16, u8, u8, u32); 15] = [
        (LOAD_LENGTH, 0, 0, 0),
        (JUMP_IF_GREATER, 12, 0, longest_frame),
        // EtherType.
        (LOAD_HALF, 0, 0, 12),
        (JUMP_IF_EQUAL, 0, 3, 0x0800),
        // IPv4: TOS is the second byte.
        (LOAD_BYTE, 0, 0, 15),
        (SHIFT_RIGHT, 0, 0, 5),
        (JUMP, 0, 0, 4),
        (JUMP_IF_EQUAL, 0, 5, 0x86dd),
        // IPv6: four bits of version, eight of traffic class, four of the label.
        (LOAD_HALF, 0, 0, 14),
        (SHIFT_RIGHT, 0, 0, 9),
        (AND, 0, 0, 7),
        (ADD, 0, 0, class(FIRST_CLASS)),
        (RETURN_RESULT, 0, 0, 0),
        (RETURN, 0, 0, class(FIRST_CLASS + 7)),
        (RETURN, 0, 0, class(OVERSIZE_CLASS)),
    ];
    let lines = program.map(|(code, jump_if, jump_if_not, operand)| {
        format!("{code} {jump_if} {jump_if_not} {operand}")
    });
    format!("{},{}", lines.len(), lines.join(","))
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn queue__is_known_by_the_class_above_it() {
        assert_eq!(Queue::of_parent(0x1_0010), Some(Queue::Priority(0)));
        assert_eq!(Queue::of_parent(0x1_0017), Some(Queue::Priority(7)));
        assert_eq!(Queue::of_parent(0x1_0018), Some(Queue::Oversize));
        for parent in [0, 0x1_0000, 0x1_000f, 0x1_0019, 0x2_0010, u32::MAX] {
            assert_eq!(Queue::of_parent(parent), None, "{parent:x}");
        }
    }

    #[test]
    fn port_script__has_nine_queues_and_one_filter() {
        let switch = Switch {
            rate_bps: 1_000_000_000,
            buffer_bytes: 100_000,
            ..Switch::default()
        };
        let lines = port_script("p1", 1500, &switch);
        let count = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
        assert_eq!(count("bfifo limit 100000"), 8);
        assert_eq!(count("bfifo limit 1"), 9);
        assert_eq!(count("filter add"), 1);
        // 100 us at 1 Gbit/s.
        assert_eq!(count("burst 12500 cburst 12500"), 1);
        assert!(lines.iter().all(|line| line.contains("dev p1 ")));
    }

    /// Runs the classifier on a frame, as the kernel would.
    fn class_of(frame: &[u8]) -> u32 {
        let text = classifier(1514);
        let program: Vec<Vec<u32>> = text
            .split(',')
            .skip(1)
            .map(|line| line.split(' ').map(|n| n.parse().unwrap()).collect())
            .collect();
        assert_eq!(text.split(',').next().unwrap(), program.len().to_string());
        let (mut at, mut result) = (0, 0);
        loop {
            let [code, if_true, if_false, operand] = program[at][..] else {
                panic!("four numbers");
            };
            let index = operand as usize;
            at += 1;
            let jump = |condition| if condition { if_true } else { if_false } as usize;
            match code {
                0x80 => result = frame.len() as u32,
                0x28 => result = u32::from(frame[index]) << 8 | u32::from(frame[index + 1]),
                0x30 => result = frame[index].into(),
                0x25 => at += jump(result > operand),
                0x15 => at += jump(result == operand),
                0x05 => at += index,
                0x74 => result >>= operand,
                0x54 => result &= operand,
                0x04 => result += operand,
                0x06 => return operand,
                0x16 => return result,
                other => panic!("no such instruction: {other:x}"),
            }
        }
    }

    #[test]
    fn classifier__reads_the_priority_of_both_families() {
        let frame = |ether_type: u16, start: [u8; 2]| {
            let mut frame = vec![0xff; 60];
            frame[12..14].copy_from_slice(&ether_type.to_be_bytes());
            frame[14..16].copy_from_slice(&start);
            frame
        };
        for priority in 0..8_u8 {
            let class = 0x1_0010 + u32::from(priority);
            for rest in [0, 0x1f] {
                let tos = priority << 5 | rest;
                assert_eq!(class_of(&frame(0x0800, [0x45, tos])), class);
                let v6 = [0x60 | tos >> 4, tos << 4 | 0xf];
                assert_eq!(class_of(&frame(0x86dd, v6)), class);
            }
        }
        assert_eq!(class_of(&frame(0x0806, [0, 1])), 0x1_0017);
    }

    #[test]
    fn classifier__tells_frames_above_the_mtu_apart() {
        assert_eq!(class_of(&[0; 1514]), 0x1_0017);
        assert_eq!(class_of(&[0; 1515]), 0x1_0018);
    }
}
