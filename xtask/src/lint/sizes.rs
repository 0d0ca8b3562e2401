//! A file is one idea: none is longer than can be kept in mind.

use crate::repository::{Problem, Repository};

const MOST_LINES: usize = 800;

pub(super) fn check(repository: &Repository) -> Vec<Problem> {
    let sizes = repository
        .sources()
        .map(|file| (&file.path, file.text.lines().count()));
    sizes
        .filter(|(_, lines)| *lines > MOST_LINES)
        .map(|(path, lines)| {
            let text = format!("{lines} lines; at most {MOST_LINES}: split it by idea");
            Problem::new(path, 0, text)
        })
        .collect()
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use crate::repository::of;

    #[test]
    fn check__catches_the_first_line_too_many() {
        assert!(check(&of("a.rs", &"\n".repeat(MOST_LINES))).is_empty());
        assert_eq!(check(&of("a.rs", &"\n".repeat(MOST_LINES + 1))).len(), 1);
        assert!(check(&of("a.csv", &"\n".repeat(MOST_LINES + 1))).is_empty());
    }
}
