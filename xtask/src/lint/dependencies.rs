//! Every version is pinned in the root manifest, every dependency has a line
//! in docs/dependencies.md that says why it was chosen, and every pinned one
//! is used.

use crate::repository::{File, Origin, Problem, Repository};

const MANIFEST: &str = "Cargo.toml";
const REASONS: &str = "docs/dependencies.md";

pub(super) fn check(repository: &Repository) -> Vec<Problem> {
    let Some(manifest) = repository.file(MANIFEST) else {
        return Vec::new();
    };
    let reasons = repository.file(REASONS).map_or("", |file| &file.text);
    let pinned = pinned(&manifest.text);
    let listed = listed(reasons);
    let mut problems = Vec::new();
    for (number, name) in &pinned {
        if !listed.iter().any(|(_, listed)| listed == name) {
            let text = format!("{name} has no line in {REASONS}");
            problems.push(Problem::new(MANIFEST, *number, text));
        }
        let used = repository.packages.iter().any(|package| {
            let mut dependencies = package.dependencies.iter();
            dependencies.any(|dependency| dependency.name == *name)
        });
        if !used {
            let text = format!("no crate uses {name}");
            problems.push(Problem::new(MANIFEST, *number, text));
        }
    }
    for (number, name) in &listed {
        if !pinned.iter().any(|(_, pinned)| pinned == name) {
            let text = format!("{name} is not a dependency");
            problems.push(Problem::new(REASONS, *number, text));
        }
    }
    for package in &repository.packages {
        for dependency in &package.dependencies {
            let known = pinned.iter().any(|(_, name)| *name == dependency.name);
            if dependency.origin == Origin::Registry && !known {
                let text = format!("{} is not pinned in {MANIFEST}", dependency.name);
                problems.push(Problem::new(&package.name, 0, text));
            }
        }
    }
    let members = repository.files.iter();
    problems.extend(
        members
            .filter(|file| file.path.ends_with("/Cargo.toml"))
            .flat_map(own_versions),
    );
    problems
}

/// Names and lines in `[workspace.dependencies]`, without our own crates.
fn pinned(manifest: &str) -> Vec<(usize, &str)> {
    entries(manifest, |section| section == "workspace.dependencies")
        .filter(|(_, _, value)| !value.contains("path ="))
        .map(|(number, name, _)| (number, name))
        .collect()
}

/// A manifest that names a version itself.
fn own_versions(file: &File) -> Vec<Problem> {
    entries(&file.text, |section| section.ends_with("dependencies"))
        .filter(|(_, name, value)| {
            !(name.ends_with(".workspace") || value.contains("workspace = true"))
        })
        .map(|(number, name, _)| {
            let text = format!("{name} must be `workspace = true`");
            Problem::new(&file.path, number, text)
        })
        .collect()
}

/// Lines `name = value` of the sections that match.
fn entries(
    manifest: &str,
    matches: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (usize, &str, &str)> {
    let mut section = "";
    manifest
        .lines()
        .enumerate()
        .filter_map(move |(index, line)| {
            if let Some(name) = line.strip_prefix('[') {
                section = name.trim_end_matches(']');
                return None;
            }
            let (name, value) = line.split_once('=')?;
            (matches(section) && !line.starts_with('#'))
                .then(|| (index + 1, name.trim(), value.trim()))
        })
}

/// Names in the first column of the table.
fn listed(reasons: &str) -> Vec<(usize, &str)> {
    let lines = reasons.lines().enumerate();
    lines
        .filter_map(|(index, line)| {
            let (name, rest) = line.strip_prefix("| `")?.split_once('`')?;
            let reason = rest.rsplit('|').nth(1)?.trim();
            (!reason.is_empty()).then_some((index + 1, name))
        })
        .collect()
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use crate::repository::{Dependency, Package, Purpose};

    const GOOD_MANIFEST: &str = "[workspace.dependencies]\nhoma = { path = \"x\" }\n\nlibc = \"0.2\"\n[profile.dev]\ndebug = 1\n";
    const GOOD_REASONS: &str = "| crate | why |\n|---|---|\n| `libc` | sockets |\n";
    const GOOD_MEMBER: &str = "[dependencies]\nlibc.workspace = true\n";

    fn problems(manifest: &str, reasons: &str, member: &str, used: &str) -> Vec<Problem> {
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        check(&Repository {
            files: vec![
                file(MANIFEST, manifest),
                file(REASONS, reasons),
                file("crates/a/Cargo.toml", member),
            ],
            paths: Vec::new(),
            packages: vec![Package {
                name: "a".to_owned(),
                dependencies: vec![Dependency {
                    name: used.to_owned(),
                    purpose: Purpose::Product,
                    origin: Origin::Registry,
                }],
                roots: Vec::new(),
            }],
        })
    }

    #[test]
    fn check__lets_a_good_one_be() {
        let problems = problems(GOOD_MANIFEST, GOOD_REASONS, GOOD_MEMBER, "libc");
        assert_eq!(problems, []);
    }

    #[test]
    fn check__catches_a_dependency_without_a_reason() {
        for reasons in ["", "| `libc` | |\n"] {
            assert_eq!(
                problems(GOOD_MANIFEST, reasons, GOOD_MEMBER, "libc").len(),
                1
            );
        }
    }

    #[test]
    fn check__catches_a_reason_without_a_dependency() {
        let reasons = format!("{GOOD_REASONS}| `mio` | polling |\n");
        assert_eq!(
            problems(GOOD_MANIFEST, &reasons, GOOD_MEMBER, "libc").len(),
            1
        );
    }

    #[test]
    fn check__catches_versions_outside_of_the_root_manifest() {
        let member = "[dependencies]\nlibc = \"0.2\"\n";
        assert_eq!(
            problems(GOOD_MANIFEST, GOOD_REASONS, member, "libc").len(),
            1
        );
    }

    #[test]
    fn check__catches_unused_and_unpinned_dependencies() {
        assert_eq!(
            problems(GOOD_MANIFEST, GOOD_REASONS, GOOD_MEMBER, "mio").len(),
            2
        );
    }
}
