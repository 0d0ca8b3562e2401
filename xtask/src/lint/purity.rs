//! The wire formats and the core know no clock, no random numbers, no
//! environment and no I/O: time and randomness are arguments.

use crate::repository::{File, Problem, Repository};
use crate::source::{Source, identifiers};

const PURE: [&str; 2] = ["crates/homa-wire/src/", "crates/homa-core/src/"];

/// `std` covers clocks, files, sockets, threads and the environment.
const FORBIDDEN: [&str; 8] = [
    "std",
    "Instant",
    "SystemTime",
    "rand",
    "getrandom",
    "env",
    "thread_local",
    "option_env",
];

pub(super) fn check(repository: &Repository) -> Vec<Problem> {
    let files = repository.sources();
    files
        .filter(|file| PURE.iter().any(|prefix| file.path.starts_with(prefix)))
        .flat_map(check_file)
        .collect()
}

fn check_file(file: &File) -> Vec<Problem> {
    let source = Source::new(&file.path, &file.text);
    let words = source
        .product_lines()
        .flat_map(|(number, line)| identifiers(line).map(move |word| (number, word)));
    words
        .filter(|(_, word)| FORBIDDEN.contains(word))
        .map(|(number, word)| {
            let text = format!("`{word}` must not be used here: it belongs to the host");
            Problem::new(&file.path, number, text)
        })
        .collect()
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use crate::repository::of;

    #[test]
    fn check__catches_clocks_random_numbers_and_the_environment() {
        for bad in [
            "let now = std::time::Instant::now();",
            "use std::time::SystemTime;",
            "let x: u32 = rand::random();",
            "let home = env!(\"HOME\");",
            "use std::collections::HashMap;",
        ] {
            let core = of("crates/homa-core/src/a.rs", bad);
            assert!(!check(&core).is_empty(), "{bad}");
            let engine = of("crates/homa-engine/src/a.rs", bad);
            assert!(check(&engine).is_empty(), "{bad}");
        }
    }

    #[test]
    fn check__lets_tests_and_comments_be() {
        for good in [
            "/// `std::time::Instant` is not used.",
            "#[cfg(test)]\nmod tests { use std::vec::Vec; }",
        ] {
            let core = of("crates/homa-core/src/a.rs", good);
            assert!(check(&core).is_empty(), "{good}");
        }
        let tests = of("crates/homa-core/tests/a.rs", "use std::env;");
        assert!(check(&tests).is_empty());
    }
}
