//! Which crate may use which: the arrows of ARCHITECTURE.md.

use crate::repository::{Origin, Package, Problem, Purpose, Repository};

struct Rule {
    package: &'static str,
    /// Crates of the workspace that it may use.
    below: &'static [&'static str],
    outside: Outside,
}

/// Which crates of others it may use.
enum Outside {
    Only(&'static [&'static str]),
    AnyBut(&'static [&'static str]),
}

use Outside::{AnyBut, Only};

const RULES: [Rule; 14] = [
    Rule {
        package: "homa-wire",
        below: &[],
        outside: Only(&["zerocopy"]),
    },
    Rule {
        package: "homa-core",
        below: &["homa-wire"],
        outside: Only(&[]),
    },
    Rule {
        package: "homa-datapath",
        below: &["homa-wire"],
        outside: AnyBut(&["tokio", "mio"]),
    },
    Rule {
        package: "homa-engine",
        below: &["homa-wire", "homa-core", "homa-datapath"],
        outside: AnyBut(&["tokio"]),
    },
    Rule {
        package: "homa",
        below: &["homa-wire", "homa-core", "homa-datapath", "homa-engine"],
        outside: AnyBut(&[]),
    },
    Rule {
        package: "homa-capture",
        below: &["homa-wire"],
        outside: AnyBut(&["tokio", "libc", "rustix"]),
    },
    Rule {
        package: "homa-workload",
        below: &[],
        outside: AnyBut(&["tokio", "mio", "libc", "rustix"]),
    },
    Rule {
        package: "homa-report",
        below: &[],
        outside: Only(&["maud"]),
    },
    Rule {
        package: "homa-sim",
        below: &["homa-wire", "homa-core", "homa-workload"],
        outside: AnyBut(&["tokio", "mio", "libc", "rustix"]),
    },
    Rule {
        package: "homa-bench",
        below: &[
            "homa",
            "homa-core",
            "homa-datapath",
            "homa-engine",
            "homa-wire",
            "homa-workload",
        ],
        outside: AnyBut(&["tokio"]),
    },
    Rule {
        package: "homa-cli",
        below: &[
            "homa",
            "homa-bench",
            "homa-capture",
            "homa-core",
            "homa-datapath",
            "homa-engine",
            "homa-report",
            "homa-sim",
            "homa-testbed",
            "homa-wire",
            "homa-workload",
        ],
        outside: AnyBut(&[]),
    },
    Rule {
        package: "homa-testbed",
        // Its tests are those of the whole, over its networks.
        below: &["homa", "homa-core", "homa-wire"],
        outside: AnyBut(&["tokio", "mio"]),
    },
    Rule {
        package: "homa-test",
        below: &[],
        outside: Only(&[]),
    },
    Rule {
        package: "xtask",
        below: &[],
        outside: AnyBut(&[]),
    },
];

/// What the tests of every crate may use besides.
const FOR_TESTS: &str = "homa-test";

pub(super) fn check(repository: &Repository) -> Vec<Problem> {
    let packages = repository.packages.iter();
    packages.flat_map(check_package).collect()
}

fn check_package(package: &Package) -> Vec<Problem> {
    let path = package.roots.first().map_or("Cargo.toml", String::as_str);
    let Some(rule) = RULES.iter().find(|rule| rule.package == package.name) else {
        let text = format!(
            "{} is not in the table of xtask/src/lint/edges.rs: say what it may use",
            package.name
        );
        return vec![Problem::new(path, 0, text)];
    };
    let dependencies = package.dependencies.iter().filter(|dependency| {
        let name = dependency.name.as_str();
        match (dependency.origin, dependency.purpose) {
            (Origin::Workspace, Purpose::Tests) if name == FOR_TESTS => false,
            (Origin::Workspace, _) => !rule.below.contains(&name),
            (Origin::Registry, Purpose::Tests) => false,
            (Origin::Registry, Purpose::Product) => match rule.outside {
                Only(allowed) => !allowed.contains(&name),
                AnyBut(forbidden) => forbidden.contains(&name),
            },
        }
    });
    dependencies
        .map(|dependency| {
            let text = format!("{} must not use {}", package.name, dependency.name);
            Problem::new(path, 0, text)
        })
        .collect()
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use crate::repository::Dependency;

    fn problems(package: &str, name: &str, origin: Origin, purpose: Purpose) -> usize {
        let name = name.to_owned();
        let dependency = Dependency {
            name,
            purpose,
            origin,
        };
        let package = Package {
            name: package.to_owned(),
            dependencies: vec![dependency],
            roots: Vec::new(),
        };
        check_package(&package).len()
    }

    #[test]
    fn check__catches_arrows_that_point_up() {
        use Origin::Workspace;
        use Purpose::{Product, Tests};
        for (package, name) in [
            ("homa-wire", "homa-core"),
            ("homa-core", "homa-datapath"),
            ("homa-datapath", "homa-core"),
            ("homa-engine", "homa"),
            ("homa", "homa-cli"),
            ("homa-sim", "homa-engine"),
            ("homa-bench", "homa-cli"),
            ("homa-capture", "homa-core"),
        ] {
            assert_eq!(problems(package, name, Workspace, Product), 1, "{package}");
            assert_eq!(problems(package, name, Workspace, Tests), 1, "{package}");
        }
        assert_eq!(problems("homa-core", "homa-wire", Workspace, Product), 0);
    }

    #[test]
    fn check__catches_crates_of_others_where_they_must_not_be() {
        use Origin::Registry;
        for (package, name) in [
            ("homa-core", "hashbrown"),
            ("homa-wire", "bytes"),
            ("homa-engine", "tokio"),
            ("homa-datapath", "tokio"),
        ] {
            assert_eq!(problems(package, name, Registry, Purpose::Product), 1);
            assert_eq!(problems(package, name, Registry, Purpose::Tests), 0);
        }
        assert_eq!(problems("homa", "tokio", Registry, Purpose::Product), 0);
    }

    #[test]
    fn check__lets_only_tests_use_the_crate_for_tests() {
        use Origin::Workspace;
        assert_eq!(problems("homa", FOR_TESTS, Workspace, Purpose::Tests), 0);
        assert_eq!(problems("homa", FOR_TESTS, Workspace, Purpose::Product), 1);
    }

    #[test]
    fn check__wants_every_crate_in_the_table() {
        assert_eq!(
            problems("homa-new", "libc", Origin::Registry, Purpose::Product),
            1
        );
    }
}
