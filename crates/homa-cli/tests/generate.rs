//! Manual pages and completions.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step of a test's set-up is a failed test"
)]

mod common;

use std::path::PathBuf;

use common::run;

#[test]
fn completions__know_commands_and_options() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = run(&["completions", shell]);
        assert_eq!(ran.code, 0, "{shell}: {ran:?}");
        for word in ["compare", "tcp-congestion", "decode"] {
            assert!(ran.out.contains(word), "{shell}: {word}");
        }
    }
    assert_eq!(run(&["completions", "sh"]).code, 2);
}

#[test]
fn man__a_page_for_each_command() {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("man");
    let ran = run(&["man", directory.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let page = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
    assert!(page("homa.1").contains("compare"));
    assert!(page("homa-compare.1").contains("256Ki"));
    for command in ["server", "ping", "bench", "decode", "sim"] {
        assert!(page(&format!("homa-{command}.1")).starts_with(".ie"));
    }
    assert!(!directory.join("homa-node.1").exists());
    std::fs::remove_dir_all(directory).unwrap();
    let ran = run(&["man", "/proc/no"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("cannot write to /proc/no"), "{ran:?}");
}
