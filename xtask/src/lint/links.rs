//! What the documents point to exists: relative links, and paths in backticks.

use crate::repository::{File, Problem, Repository};

/// A word in backticks that begins like this is a path of ours.
const DIRECTORIES: [&str; 7] = [
    "crates/",
    "docs/",
    "tests/",
    "xtask/",
    "workloads/",
    ".ci/",
    ".cargo/",
];

pub(super) fn check(repository: &Repository) -> Vec<Problem> {
    let files = repository.files.iter();
    files
        .filter(|file| file.has_extension("md"))
        .flat_map(|file| check_file(repository, file))
        .collect()
}

fn check_file(repository: &Repository, file: &File) -> Vec<Problem> {
    let exists = |path: &str| {
        let path = path.trim_end_matches('/');
        path.is_empty() || path.contains('*') || repository.paths.iter().any(|known| known == path)
    };
    let mut problems = Vec::new();
    let mut fenced = false;
    for (index, line) in file.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        let linked = links(line).map(|target| resolve(&file.path, target));
        let quoted = quoted(line)
            .filter(|word| DIRECTORIES.iter().any(|prefix| word.starts_with(prefix)))
            .map(str::to_owned);
        for target in linked.chain(quoted).filter(|target| !exists(target)) {
            let text = format!("`{target}` does not exist");
            problems.push(Problem::new(&file.path, index + 1, text));
        }
    }
    problems
}

/// Targets of `[text](target)` that are files.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split(')').next()?.split('#').next()?;
        (!target.is_empty() && !target.contains(':')).then_some(target)
    })
}

fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| !word.contains(char::is_whitespace) && !word.contains(['{', '<', '…', 'N']))
}

/// The target of a link in the file at `path`, from the root.
fn resolve(path: &str, target: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use crate::repository::of;

    fn problems(text: &str) -> usize {
        let mut repository = of("docs/a.md", text);
        repository.paths.push("README.md".to_owned());
        repository.paths.push("crates/homa/src".to_owned());
        check(&repository).len()
    }

    #[test]
    fn check__catches_dead_links_and_paths() {
        for bad in [
            "see [b](b.md)",
            "see [b](../a.md#x) and [c](../README.md)",
            "see `crates/homa/lib.rs`",
        ] {
            assert_eq!(problems(bad), 1, "{bad}");
        }
    }

    #[test]
    fn check__lets_what_exists_be() {
        for good in [
            "see [b](../README.md#c), [a](a.md), [w](https://example.com/x)",
            "see `crates/homa/src/` and `homa_core::Endpoint` and `crates/*/Cargo.toml`",
            "```\n`crates/none`\n```",
        ] {
            assert_eq!(problems(good), 0, "{good}");
        }
    }
}
