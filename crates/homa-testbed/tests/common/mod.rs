//! What the tests share.

#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod calls;

use homa_testbed::{Host, Options, Testbed};

/// A testbed, or `None` after saying why it cannot be had here.
pub(crate) fn testbed(test: &str, options: &Options) -> Option<Testbed> {
    if let Err(why) = Testbed::check(options) {
        homa_test::skip(test, &why.to_string());
        return None;
    }
    Some(Testbed::new(options).unwrap())
}

/// Its first two hosts: one that calls and one that serves.
pub(crate) fn pair(testbed: &Testbed) -> [&Host; 2] {
    [&testbed.hosts()[0], &testbed.hosts()[1]]
}
