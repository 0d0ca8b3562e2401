//! The golden captures of the reference module, replayed: what one host sent is
//! given to an endpoint at the times of the capture, and what the endpoint
//! answers is compared with what the other host answered.
//!
//! Both directions of each capture: the endpoint is once the server, once the
//! client. Compared are the sets of distinct packets; where ours differ by
//! design (`docs/protocol.md`, *ours*), the difference is listed in
//! [`EXCUSES`] with its reason.

#![allow(non_snake_case, reason = "test names are function__case")]

mod replay;

use replay::{Capture, Key, Role, replay};

/// A difference that is right.
struct Excuse {
    captures: &'static [&'static str],
    role: Role,
    /// Beginning of the key, as it is printed.
    key: &'static str,
    /// Whether ours has it, or theirs.
    whose: Whose,
    #[allow(dead_code, reason = "written for the reader")]
    why: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum Whose {
    Ours,
    Theirs,
}

const EXCUSES: &[Excuse] = &[
    Excuse {
        captures: &["20"],
        role: Role::Client,
        key: "ACK 92",
        whose: Whose::Theirs,
        why: "our application takes responses at once, so that fewer acks are owed together",
    },
    Excuse {
        captures: &["40"],
        role: Role::Server,
        key: "CUTOFFS 167 version 2",
        whose: Whose::Theirs,
        why: "somebody had changed the module's cutoffs; ours have version 1",
    },
    Excuse {
        captures: &["55"],
        role: Role::Server,
        key: "DATA 27 off 2848 len 1424 of 6000 incoming 4272 again true",
        whose: Whose::Theirs,
        why: "the bytes were sent again a moment before: once per interval (§14, ours)",
    },
    Excuse {
        captures: &["55"],
        role: Role::Client,
        key: "RESEND 26 off 0 length None",
        whose: Whose::Theirs,
        why: "the module answered NEED_ACK before it had looked at the DATA that came earlier",
    },
];

/// Captures in which which ack rides on which DATA depends on how fast the
/// application took the responses.
const ACKS_BY_CHANCE: [&str; 1] = ["20"];

/// When the application of the client gave its request up.
const ABORTS: [(&str, u64); 1] = [("38", 20_000_000)];

const CAPTURES: [&str; 22] = [
    "05", "07", "01", "03", "08", "10", "12", "18", "20", "22", "23", "25", "26", "28", "30", "32",
    "34", "38", "40", "42", "53", "55",
];

fn excuse(capture: &str, role: Role, key: &Key, whose: Whose) -> Option<usize> {
    let text = key.to_string();
    EXCUSES.iter().position(|excuse| {
        excuse.captures.contains(&capture)
            && excuse.role == role
            && excuse.whose == whose
            && text.starts_with(excuse.key)
    })
}

#[test]
fn replay__reacts_as_the_reference_module() {
    let mut wrong = Vec::new();
    let mut used = [false; EXCUSES.len()];
    for number in CAPTURES {
        let capture = Capture::read(number);
        for role in [Role::Server, Role::Client] {
            let abort = ABORTS.iter().find(|(name, _)| *name == number);
            let mut theirs = capture.sent_by(role);
            let mut ours = replay(&capture, role, abort.map(|(_, ns)| *ns));
            assert_eq!(theirs.is_empty(), ours.is_empty(), "{number} {role:?}");
            if ACKS_BY_CHANCE.contains(&number) {
                theirs = theirs.iter().map(Key::without_ack).collect();
                ours = ours.iter().map(Key::without_ack).collect();
            }
            for key in theirs.difference(&ours) {
                match excuse(number, role, key, Whose::Theirs) {
                    Some(n) => used[n] = true,
                    None => wrong.push(format!("{number} {role:?}: ours does not send {key}")),
                }
            }
            for key in ours.difference(&theirs) {
                match excuse(number, role, key, Whose::Ours) {
                    Some(n) => used[n] = true,
                    None => wrong.push(format!("{number} {role:?}: only ours sends {key}")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
    assert!(!used.contains(&false), "an excuse is not needed: {used:?}");
}
