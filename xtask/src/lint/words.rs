//! The words of the protocol and no others, in the identifiers and file names
//! of the wire formats and the core.

use crate::repository::{File, Problem, Repository};
use crate::source::{Source, identifiers};

const WHERE: [&str; 2] = ["crates/homa-wire/src/", "crates/homa-core/src/"];

/// Names that say nothing.
const EMPTY: [&str; 5] = ["manager", "util", "utils", "helper", "helpers"];
/// Words of other protocols for what Homa calls RPC, message and peer.
const FOREIGN: [&str; 5] = ["flow", "connection", "session", "stream", "channel"];
/// A field of IPv6, by its name there.
const OF_IPV6: &str = "flow_label";
/// The core says outgoing and incoming.
const ABBREVIATED: [&str; 2] = ["tx", "rx"];
/// Verbs that do not say what is done.
const VAGUE: [&str; 2] = ["handle", "process"];

pub(super) fn check(repository: &Repository) -> Vec<Problem> {
    let files = repository.sources();
    files
        .filter(|file| WHERE.iter().any(|prefix| file.path.starts_with(prefix)))
        .flat_map(check_file)
        .collect()
}

fn check_file(file: &File) -> Vec<Problem> {
    let source = Source::new(&file.path, &file.text);
    let name = file.path.rsplit('/').next().unwrap_or_default();
    let name = name.trim_end_matches(".rs");
    let in_code = source
        .product_lines()
        .flat_map(|(number, line)| identifiers(line).map(move |word| (number, word)));
    std::iter::once((0, name))
        .chain(in_code)
        .filter_map(|(number, identifier)| {
            let word = banned(identifier)?;
            let text = format!("`{word}` in `{identifier}`: see \"Words\" in CONTRIBUTING.md");
            Some(Problem::new(&file.path, number, text))
        })
        .collect()
}

fn banned(identifier: &str) -> Option<String> {
    if identifier.to_lowercase().starts_with(OF_IPV6) {
        return None;
    }
    let words = split(identifier);
    let vague = words.len() > 1
        && !identifier.starts_with(char::is_uppercase)
        && words
            .first()
            .is_some_and(|first| VAGUE.contains(&first.as_str()));
    let mut bad = words.iter().filter(|word| {
        let word = word.as_str();
        EMPTY.contains(&word) || FOREIGN.contains(&word) || ABBREVIATED.contains(&word)
    });
    bad.next()
        .cloned()
        .or_else(|| words.first().filter(|_| vague).cloned())
}

/// `snake_case` and `CamelCase` as lower-case words.
fn split(identifier: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = '_';
    for c in identifier.chars() {
        if c == '_' || (c.is_uppercase() && before.is_lowercase()) {
            words.push(String::new());
        }
        if c != '_'
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use crate::repository::of;

    #[test]
    fn check__catches_words_that_are_not_ours() {
        for bad in [
            "struct GrantManager;",
            "mod util {}",
            "fn handle_packet() {}",
            "fn process_data() {}",
            "let open_streams = 1; let stream = 2;",
            "struct RxQueue;",
        ] {
            let core = of("crates/homa-core/src/a.rs", bad);
            assert_eq!(check(&core).len(), 1, "{bad}");
        }
        assert_eq!(check(&of("crates/homa-core/src/helpers.rs", "")).len(), 1);
    }

    #[test]
    fn check__lets_other_words_be() {
        for good in [
            "struct RpcHandle;",
            "let handle = rpc.handle();",
            "const FLOW_LABEL_MASK: u32 = 0xf_ffff;",
            "let overflow = 1; // the manager of a stream",
        ] {
            let core = of("crates/homa-core/src/a.rs", good);
            assert!(check(&core).is_empty(), "{good}");
        }
        assert!(check(&of("crates/homa-bench/src/a.rs", "mod stream;")).is_empty());
    }
}
