//! The changelog has the shape of Keep a Changelog, with what matters most
//! first.

use crate::repository::{Problem, Repository};

const PATH: &str = "CHANGELOG.md";
/// In this order; a section that would be empty is left out.
const SECTIONS: [&str; 8] = [
    "Safety",
    "Performance",
    "Added",
    "Changed",
    "Deprecated",
    "Removed",
    "Fixed",
    "Internals",
];

pub(super) fn check(repository: &Repository) -> Vec<Problem> {
    match repository.file(PATH) {
        Some(file) => check_text(&file.text),
        // A repository of one file, in another check's test, has none.
        None if repository.packages.is_empty() => Vec::new(),
        None => vec![Problem::new(PATH, 0, "is missing")],
    }
}

fn check_text(text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut say = |line: usize, text: String| problems.push(Problem::new(PATH, line, text));
    if text.lines().next() != Some("# Changelog") {
        say(1, "the first line is `# Changelog`".into());
    }
    let mut versions = 0;
    let mut section: Option<(usize, usize)> = None;
    let mut entries = 0;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let heading = line.starts_with("## ") || line.starts_with("### ");
        if heading && let Some((_, start)) = section.filter(|_| entries == 0) {
            say(start, "an empty section".into());
        }
        if let Some(version) = line.strip_prefix("## ") {
            versions += 1;
            section = None;
            if !(is_release(version) || versions == 1 && version == "[Unreleased]") {
                let shape = "a version is `[x.y.z] - yyyy-mm-dd`, the first may be `[Unreleased]`";
                say(number, shape.into());
            }
        } else if let Some(name) = line.strip_prefix("### ") {
            entries = 0;
            match SECTIONS.iter().position(|section| *section == name) {
                None => say(number, format!("sections are {}", SECTIONS.join(", "))),
                Some(place) => {
                    if section.is_some_and(|(before, _)| before >= place) {
                        say(number, format!("the order is {}", SECTIONS.join(", ")));
                    }
                    section = Some((place, number));
                }
            }
        } else if line.starts_with("- ") {
            entries += 1;
            if section.is_none() {
                say(number, "an entry outside of a section".into());
            }
        }
    }
    if let Some((_, start)) = section.filter(|_| entries == 0) {
        say(start, "an empty section".into());
    }
    if versions == 0 {
        say(0, "has no version".into());
    }
    problems
}

/// `[1.2.3] - 2026-01-31`
fn is_release(text: &str) -> bool {
    let Some((version, date)) = text.split_once(" - ") else {
        return false;
    };
    let version = version
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let numbers = |text: &str, separator, widths: &[usize]| {
        let parts: Vec<&str> = text.split(separator).collect();
        parts.len() == widths.len()
            && parts.iter().zip(widths).all(|(part, width)| {
                part.parse::<u32>().is_ok() && (*width == 0 || part.len() == *width)
            })
    };
    version.is_some_and(|version| numbers(version, '.', &[0, 0, 0]))
        && numbers(date, '-', &[4, 2, 2])
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    const GOOD: &str = "# Changelog\n\n## [Unreleased]\n### Safety\n- a\n### Added\n- b\n\
                        ## [0.1.0] - 2026-01-31\n### Safety\n- c\n";

    #[test]
    fn check__lets_a_good_one_be() {
        assert_eq!(check_text(GOOD), []);
    }

    #[test]
    fn check__catches_every_other_shape() {
        for (good, bad) in [
            ("# Changelog", "# Changes"),
            ("Unreleased", "Next"),
            ("2026-01-31", "31.1.2026"),
            ("### Added", "### News"),
            ("### Safety\n- a\n### Added", "### Added\n- a\n### Safety"),
            ("### Added\n- b", "### Added\n"),
            ("### Safety\n- c", "### Safety\n"),
            ("### Safety\n- c", "- c"),
        ] {
            let text = GOOD.replacen(good, bad, 1);
            assert_eq!(check_text(&text).len(), 1, "{text}");
        }
    }
}
