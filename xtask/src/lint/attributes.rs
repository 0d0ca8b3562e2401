//! Whoever switches a lint off says why.

use crate::repository::{File, Problem, Repository};
use crate::source::Source;

const SWITCHES: [&str; 4] = ["[allow(", "[expect(", ", allow(", ", expect("];

pub(super) fn check(repository: &Repository) -> Vec<Problem> {
    repository.sources().flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Problem> {
    let source = Source::new(&file.path, &file.text);
    let code = source.code();
    let mut problems = Vec::new();
    for switch in SWITCHES {
        for (start, _) in code.match_indices(switch) {
            let inside = code.get(start + switch.len()..).unwrap_or_default();
            if in_attribute(code, start) && !inside_parentheses(inside).contains("reason =") {
                let before = code.get(..start).unwrap_or_default();
                let number = before.matches('\n').count() + 1;
                let text = "a lint is switched off without `reason = \"...\"`";
                problems.push(Problem::new(&file.path, number, text));
            }
        }
    }
    problems
}

/// `a, allow(` is an attribute only behind `#[cfg_attr(`.
fn in_attribute(code: &str, start: usize) -> bool {
    let before = code.get(..=start).unwrap_or_default();
    before.ends_with("#[")
        || before.ends_with("#![")
        || before
            .rfind("cfg_attr(")
            .is_some_and(|attribute| !before.get(attribute..).unwrap_or("").contains(']'))
}

fn inside_parentheses(text: &str) -> &str {
    let mut depth = 1_u32;
    for (offset, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return text.get(..offset).unwrap_or(text);
        }
    }
    text
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use crate::repository::of;

    #[test]
    fn check__catches_a_switch_without_a_reason() {
        for bad in [
            "#[allow(dead_code)]\nfn a() {}",
            "#![allow(\n    clippy::panic,\n)]",
            "#[expect(unused)] // reason = \"none\"\nfn a() {}",
            "#[cfg_attr(test, allow(dead_code))]\nfn a() {}",
        ] {
            assert_eq!(check(&of("a.rs", bad)).len(), 1, "{bad}");
        }
    }

    #[test]
    fn check__lets_switches_with_a_reason_be() {
        for good in [
            "#[allow(dead_code, reason = \"a (good) one\")]\nfn a() {}",
            "#![allow(\n    clippy::panic,\n    reason = \"why\"\n)]",
            "f(a, allow(b))",
        ] {
            assert!(check(&of("a.rs", good)).is_empty(), "{good}");
        }
    }
}
