//! No file names a directory of somebody's machine.

use crate::repository::{Problem, Repository};

/// In two pieces, so that this file does not contain them.
const ROOTS: [(&str, &str); 4] = [
    ("/wo", "rk/"),
    ("/ro", "ot/"),
    ("/ho", "me/"),
    ("/Us", "ers/"),
];

pub(super) fn check(repository: &Repository) -> Vec<Problem> {
    let roots = ROOTS.map(|(first, second)| format!("{first}{second}"));
    let mut problems = Vec::new();
    for file in &repository.files {
        for (index, line) in file.text.lines().enumerate() {
            let found = roots.iter().find(|root| begins_a_path(line, root));
            if let Some(root) = found {
                let text = format!("`{root}` is a directory of one machine");
                problems.push(Problem::new(&file.path, index + 1, text));
            }
        }
    }
    problems
}

/// In `docs/home/` it does not.
fn begins_a_path(line: &str, root: &str) -> bool {
    line.match_indices(root).any(|(start, _)| {
        let before = line.get(..start).unwrap_or_default();
        !before.ends_with(|c: char| c.is_alphanumeric() || "._-$})".contains(c))
    })
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use crate::repository::of;

    #[test]
    fn check__catches_paths_of_one_machine() {
        for (first, second) in ROOTS {
            let bad = format!("see {first}{second}x/notes");
            assert_eq!(check(&of("a.md", &bad)).len(), 1, "{bad}");
            let good = format!("see docs{first}{second}x/notes");
            assert!(check(&of("a.md", &good)).is_empty(), "{good}");
        }
    }
}
