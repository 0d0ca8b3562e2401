//! What the tests share.

use homa_testbed::{Options, Testbed};

/// A testbed, or `None` after saying why it cannot be had here.
pub(crate) fn testbed(test: &str, options: &Options) -> Option<Testbed> {
    if let Err(why) = Testbed::check(options) {
        homa_test::skip(test, &why.to_string());
        return None;
    }
    Some(Testbed::new(options).unwrap())
}
