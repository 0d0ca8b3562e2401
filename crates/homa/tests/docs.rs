//! What the documentation promises about itself.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail the test"
)]

use std::fs;
use std::path::Path;

/// The doc comment above line `at`.
fn doc_above(lines: &[&str], at: usize) -> String {
    let above = lines[..at].iter().rev();
    let doc: Vec<_> = above
        .map(|line| line.trim())
        .take_while(|line| line.starts_with("///") || line.starts_with("#["))
        .collect();
    doc.join("\n")
}

/// Whether a line begins something that is awaited: an async function, or one
/// whose result is a future.
fn is_awaited(lines: &[&str], at: usize) -> bool {
    const FUTURES: [&str; 4] = ["Call", "CallFuture", "OneWay", "OneWayFuture"];
    let line = lines[at].trim();
    if line.starts_with("pub async fn") {
        return true;
    }
    let end = lines.len().min(at + 8);
    let signature: String = lines[at..end].join(" ");
    let signature = signature.split('{').next().unwrap_or_default();
    line.starts_with("pub fn ")
        && !signature.contains("(mut self")
        && FUTURES.iter().any(|future| {
            signature.contains(&format!("-> {future} "))
                || signature.contains(&format!("Result<{future},"))
        })
}

#[test]
fn docs__every_async_method_says_what_dropping_its_future_does() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut seen = 0;
    let mut silent = Vec::new();
    for entry in fs::read_dir(source).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<_> = text.lines().collect();
        for at in 0..lines.len() {
            if path.ends_with("blocking.rs") || !is_awaited(&lines, at) {
                continue;
            }
            seen += 1;
            if !doc_above(&lines, at).contains("# Cancel safety") {
                silent.push(format!("{}:{}: {}", path.display(), at + 1, lines[at]));
            }
        }
    }
    assert!(seen >= 10, "only {seen} found");
    assert!(silent.is_empty(), "\n{}", silent.join("\n"));
}
