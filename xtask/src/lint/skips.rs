//! `.ci/skips` lists the tests that may be skipped, each with its reason, and
//! only tests that exist.

use crate::repository::{Problem, Repository};
use crate::skips::{ALLOWED, entries};

pub(super) fn check(repository: &Repository) -> Vec<Problem> {
    let Some(file) = repository.file(ALLOWED) else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for (number, entry) in entries(&file.text) {
        let Some((name, _)) = entry else {
            let text = "a line is `name: why it may be skipped`";
            problems.push(Problem::new(ALLOWED, number, text));
            continue;
        };
        if seen.contains(&name) {
            problems.push(Problem::new(ALLOWED, number, format!("{name} again")));
        }
        if !repository.sources().any(|file| file.text.contains(name)) {
            let text = format!("nothing is called {name}");
            problems.push(Problem::new(ALLOWED, number, text));
        }
        seen.push(name);
    }
    problems
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use crate::repository::{File, of};

    fn problems(skips: &str) -> usize {
        let mut repository = of("a.rs", "fn raw__needs_root() {}");
        repository.files.push(File {
            path: ALLOWED.to_owned(),
            text: skips.to_owned(),
        });
        check(&repository).len()
    }

    #[test]
    fn check__lets_good_lines_be() {
        assert_eq!(
            problems("# tests\n\nraw__needs_root: needs CAP_NET_RAW\n"),
            0
        );
    }

    #[test]
    fn check__catches_a_line_without_a_reason_a_double_and_a_stranger() {
        assert_eq!(problems("raw__needs_root:\n"), 1);
        assert_eq!(problems("raw__needs_root\n"), 1);
        assert_eq!(problems("raw__needs_root: a\nraw__needs_root: a\n"), 1);
        assert_eq!(problems("no_such_test: a\n"), 1);
    }
}
