//! `unsafe` lives in the crates listed here, and the compiler forbids it in
//! all others.

use crate::repository::{Package, Problem, Repository};
use crate::source::Source;

/// Sockets need it, and namespaces.
const MAY_BE_UNSAFE: [&str; 2] = ["homa-datapath", "homa-testbed"];

pub(super) fn check(repository: &Repository) -> Vec<Problem> {
    let packages = repository.packages.iter();
    packages
        .filter(|package| !MAY_BE_UNSAFE.contains(&package.name.as_str()))
        .flat_map(|package| check_package(repository, package))
        .collect()
}

fn check_package(repository: &Repository, package: &Package) -> Vec<Problem> {
    let roots = package.roots.iter();
    roots
        .filter(|root| {
            repository.file(root).is_none_or(|file| {
                let source = Source::new(&file.path, &file.text);
                !source
                    .lines()
                    .any(|(_, line)| line.trim() == "#![forbid(unsafe_code)]")
            })
        })
        .map(|root| Problem::new(root, 1, "#![forbid(unsafe_code)] is missing"))
        .collect()
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use crate::repository::of;

    fn problems(package: &str, text: &str) -> usize {
        let mut repository = of("src/lib.rs", text);
        repository.packages.push(Package {
            name: package.to_owned(),
            dependencies: Vec::new(),
            roots: vec!["src/lib.rs".to_owned()],
        });
        check(&repository).len()
    }

    #[test]
    fn check__catches_a_crate_without_the_attribute() {
        assert_eq!(problems("homa-core", "#![forbid(unsafe_code)]\n"), 0);
        assert_eq!(problems("homa-core", "// #![forbid(unsafe_code)]\n"), 1);
        assert_eq!(problems("homa-core", "#![deny(unsafe_code)]\n"), 1);
        assert_eq!(problems("homa-datapath", ""), 0);
    }
}
