//! Tests that did not run: what a log says against what `.ci/skips` allows.
//!
//! A test that cannot run here prints `SKIPPED name: why` (`homa_test::skip`)
//! and passes. That is only honest if somebody looks: every such line must
//! have been foreseen.

use std::collections::BTreeMap;

use crate::command::Outcome;
use crate::repository::root;

/// Lines `name: why it may be skipped`; `#` begins a comment.
pub(crate) const ALLOWED: &str = ".ci/skips";

pub(crate) fn run(log: &str) -> Outcome {
    let allowed = std::fs::read_to_string(root().join(ALLOWED))?;
    let log = std::fs::read(log).map_err(|error| format!("{log}: {error}"))?;
    let log = String::from_utf8_lossy(&log);
    let skipped = skipped(&log);
    for (name, why) in &skipped {
        println!("SKIPPED {name}: {why}");
    }
    let unexpected = unexpected(&skipped, &allowed);
    if unexpected.is_empty() {
        println!("skips: {} skipped, all of them foreseen", skipped.len());
        return Ok(());
    }
    Err(format!("skipped, but not in {ALLOWED}: {}", unexpected.join(", ")).into())
}

/// Entries of the list with their lines; `None` is a line of another shape.
pub(crate) fn entries(text: &str) -> impl Iterator<Item = (usize, Option<(&str, &str)>)> {
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|(index, line)| {
            let entry = line
                .split_once(": ")
                .filter(|(_, why)| !why.trim().is_empty());
            (index + 1, entry)
        })
}

/// The skips in a log, which may be glued to the line of a test's name.
fn skipped(log: &str) -> BTreeMap<&str, &str> {
    const MARK: &str = "SKIPPED ";
    log.lines()
        .filter_map(|line| {
            let start = line.find(MARK)?;
            let glued = start > 0 && !line.get(..start)?.ends_with(' ');
            if glued {
                return None;
            }
            line.get(start + MARK.len()..)?.split_once(": ")
        })
        .collect()
}

fn unexpected<'a>(skipped: &BTreeMap<&'a str, &str>, allowed: &str) -> Vec<&'a str> {
    let allowed: Vec<&str> = entries(allowed)
        .filter_map(|(_, entry)| entry)
        .map(|(name, _)| name)
        .collect();
    let names = skipped.keys().copied();
    names.filter(|name| !allowed.contains(name)).collect()
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    const LOG: &str = "test a ... ok\nSKIPPED b: no root\ntest c ... SKIPPED d: no raw sockets: EPERM\n\
                       the SKIPPED\nSKIPPED b: no root\n";

    #[test]
    fn skipped__finds_every_name_once() {
        let expected = BTreeMap::from([("b", "no root"), ("d", "no raw sockets: EPERM")]);
        assert_eq!(skipped(LOG), expected);
    }

    #[test]
    fn unexpected__is_what_the_list_does_not_have() {
        assert_eq!(unexpected(&skipped(LOG), "# x\nb: why\n"), ["d"]);
        assert!(unexpected(&skipped(LOG), "b: why\nd: why\n").is_empty());
    }
}
