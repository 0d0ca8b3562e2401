//! What `docs/coverage.md` and `docs/scenarios.md` say of tests is true: each
//! test that they name exists, each section of the protocol has its rules, and
//! each packet script is named.

#![allow(non_snake_case, reason = "test names are function__case")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Sections of `docs/protocol.md` that say what an implementation does.
const SECTIONS: [u32; 17] = [1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16, 17, 18, 20];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_default()
}

/// Words in backticks that name a test.
fn tests(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|word| word.contains("::") || is_script(word))
}

/// `s11_…`, without a suffix.
fn is_script(word: &str) -> bool {
    let section = word.strip_prefix('s').and_then(|rest| rest.split_once('_'));
    section.is_some_and(|(section, _)| section.len() == 2 && section.parse::<u8>().is_ok())
}

fn exists(test: &str) -> bool {
    let Some((path, name)) = test.split_once("::") else {
        return root().join(format!("tests/packets/{test}.pkt")).is_file();
    };
    let text = read(&format!("crates/{path}"));
    let call = format!("fn {name}(");
    // A test, and not whatever function has that name.
    name.contains("__")
        && text.lines().any(|line| {
            line.trim_start()
                .trim_start_matches("async ")
                .starts_with(&call)
        })
}

fn missing(text: &str) -> Vec<&str> {
    tests(text).filter(|test| !exists(test)).collect()
}

#[test]
fn coverage__every_test_exists() {
    let text = read("docs/coverage.md");
    assert!(tests(&text).count() > 200);
    assert_eq!(missing(&text), Vec::<&str>::new());
}

#[test]
fn scenarios__every_test_exists() {
    let text = read("docs/scenarios.md");
    assert!(tests(&text).count() > 50);
    assert_eq!(missing(&text), Vec::<&str>::new());
}

/// The threat model names functions without their paths: scripts only.
#[test]
fn security__every_script_exists() {
    let text = read("docs/security.md");
    assert!(tests(&text).count() > 10);
    assert_eq!(missing(&text), Vec::<&str>::new());
}

/// Every row of a table names a test.
#[test]
fn tables__no_row_is_without_a_test() {
    for path in ["docs/coverage.md", "docs/scenarios.md"] {
        let text = read(path);
        let is_row = |line: &&str| {
            let head = line.starts_with("| rule") || line.starts_with("| packet |");
            let head = head || line.starts_with("| no.") || line.starts_with("| trouble");
            line.starts_with('|') && !line.starts_with("|--") && !head
        };
        for line in text.lines().filter(is_row) {
            assert!(tests(line).next().is_some(), "{path}: {line}");
        }
    }
}

#[test]
fn coverage__every_section_and_every_script_is_there() {
    let text = read("docs/coverage.md");
    for section in SECTIONS {
        let heading = format!("\n## §{section} ");
        assert!(text.contains(&heading), "no §{section}");
    }
    let named: BTreeSet<&str> = tests(&text).collect();
    let scripts = fs::read_dir(root().join("tests/packets")).expect("the scripts");
    let unnamed: BTreeSet<String> = scripts
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pkt"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .filter(|stem| !named.contains(stem.as_str()))
        .collect();
    assert_eq!(unnamed, BTreeSet::new());
}

/// The checks can fail.
#[test]
fn missing__finds_what_is_not_there() {
    let text = "`s11_no_such_script` `homa-core/tests/pair.rs::no__such_test` `homa-core/tests/none.rs::call__x` `Endpoint`";
    assert_eq!(missing(text).len(), 3);
    assert_eq!(
        missing("`s02_ids` `homa-core/tests/pair.rs::one_way__delivered_once`"),
        Vec::<&str>::new()
    );
}
