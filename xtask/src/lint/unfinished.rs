//! Nothing unfinished is committed, and no test is put to sleep.

use crate::repository::{File, Problem, Repository};
use crate::source::{Source, identifiers};

/// In code and comments.
const MARKS: [&str; 3] = ["FIXME", "TODO", "XXX"];
/// In code, with the `!` behind.
const MACROS: [&str; 2] = ["todo!", "unimplemented!"];
const SLEEPING_TEST: &str = "#[ignore";

pub(super) fn check(repository: &Repository) -> Vec<Problem> {
    let mut problems: Vec<_> = repository.sources().flat_map(check_source).collect();
    let texts = repository.files.iter().filter(|file| {
        ["md", "toml", "sh", "yml"]
            .iter()
            .any(|extension| file.has_extension(extension))
            || file.path == ".ci/run"
    });
    for file in texts {
        for (index, line) in file.text.lines().enumerate() {
            problems.extend(mark(file, index + 1, line));
        }
    }
    problems
}

fn check_source(file: &File) -> Vec<Problem> {
    let source = Source::new(&file.path, &file.text);
    let mut problems = Vec::new();
    for (number, line) in source.unquoted_lines() {
        problems.extend(mark(file, number, line));
    }
    for (number, line) in source.lines() {
        for name in MACROS {
            if line.contains(name) {
                let text = format!("`{name}`: finish it");
                problems.push(Problem::new(&file.path, number, text));
            }
        }
        if line.contains(SLEEPING_TEST) {
            let text = "a test that never runs: repair it, or skip it with a reason in .ci/skips";
            problems.push(Problem::new(&file.path, number, text));
        }
    }
    problems
}

fn mark(file: &File, number: usize, line: &str) -> Option<Problem> {
    let found = identifiers(line).find(|word| MARKS.contains(word))?;
    let text = format!("`{found}`: finish it");
    Some(Problem::new(&file.path, number, text))
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use crate::repository::of;

    #[test]
    fn check__catches_what_is_unfinished() {
        for (path, bad) in [
            ("a.rs", "// FIXME later"),
            ("a.rs", "/* TODO: later */"),
            ("a.rs", "fn a() { todo!() }"),
            ("a.rs", "fn a() { unimplemented!(\"later\") }"),
            ("a.rs", "#[test]\n#[ignore = \"slow\"]\nfn a() {}"),
            ("a.md", "TODO: write this"),
        ] {
            assert_eq!(check(&of(path, bad)).len(), 1, "{bad}");
        }
    }

    #[test]
    fn check__lets_other_words_be() {
        for (path, good) in [
            ("a.rs", "let text = \"FIXME\"; // methodology"),
            ("a.pcap", "TODO"),
        ] {
            assert!(check(&of(path, good)).is_empty(), "{good}");
        }
    }
}
