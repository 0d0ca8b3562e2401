//! The Rust in README.md is the example of the crate `homa`, which the tests
//! compile and run; and the command to test with is where `.ci/run` finds it.

use crate::repository::{Problem, Repository};

const README: &str = "README.md";
const LIBRARY: &str = "crates/homa/src/lib.rs";
const MARKS: [&str; 2] = ["<!-- test-command -->", "<!-- /test-command -->"];

pub(super) fn check(repository: &Repository) -> Vec<Problem> {
    let Some(readme) = repository.file(README) else {
        return Vec::new();
    };
    let documentation = repository.file(LIBRARY).map_or("", |file| &file.text);
    let documented: Vec<&str> = documentation
        .lines()
        .filter_map(|line| line.strip_prefix("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    let mut problems = Vec::new();
    for (number, block) in rust_blocks(&readme.text) {
        let found = documented
            .windows(block.len().max(1))
            .any(|window| window == block);
        if !found {
            let text = format!("this example is not in {LIBRARY}, so nothing tests it");
            problems.push(Problem::new(README, number, text));
        }
    }
    for mark in MARKS {
        if readme.text.matches(mark).count() != 1 {
            let text = format!("`{mark}` must be there once");
            problems.push(Problem::new(README, 0, text));
        }
    }
    problems
}

/// The blocks of Rust, each with the number of its first line.
fn rust_blocks(text: &str) -> Vec<(usize, Vec<&str>)> {
    let mut blocks = Vec::new();
    let mut block: Option<(usize, Vec<&str>)> = None;
    for (index, line) in text.lines().enumerate() {
        match (&mut block, line) {
            (None, "```rust") => block = Some((index + 2, Vec::new())),
            (Some(_), "```") => blocks.extend(block.take()),
            (Some((_, lines)), line) => lines.push(line),
            (None, _) => {}
        }
    }
    blocks
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use crate::repository::{File, of};

    const GOOD: &str = "<!-- test-command -->\n<!-- /test-command -->\n```rust\na;\nb;\n```\n";

    fn problems(readme: &str, library: &str) -> usize {
        let mut repository = of(README, readme);
        repository.files.push(File {
            path: LIBRARY.to_owned(),
            text: library.to_owned(),
        });
        check(&repository).len()
    }

    #[test]
    fn check__catches_an_example_that_is_not_the_librarys() {
        assert_eq!(problems(GOOD, "//! x\n//! a;\n//! b;\n"), 0);
        assert_eq!(problems(GOOD, "//! a;\n//! c;\n"), 1);
        assert_eq!(problems(GOOD, "a;\nb;\n"), 1);
    }

    #[test]
    fn check__catches_missing_marks() {
        let bad = GOOD.replace("<!-- /test-command -->", "");
        assert_eq!(problems(&bad, "//! a;\n//! b;\n"), 1);
    }
}
