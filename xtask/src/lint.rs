//! The rules of the repository, as a test over its files.
//!
//! One file a rule; each is a function from a [`Repository`] to [`Problem`]s
//! and comes with an example that it must catch.

mod attributes;
mod changelog;
mod dependencies;
mod edges;
mod forbid;
mod links;
mod paths;
mod purity;
mod readme;
mod sizes;
mod skips;
mod unfinished;
mod words;

use std::error::Error;

use crate::command::Outcome;
use crate::repository::{Problem, Repository, root};

type Check = fn(&Repository) -> Vec<Problem>;

const CHECKS: [Check; 13] = [
    attributes::check,
    changelog::check,
    dependencies::check,
    edges::check,
    forbid::check,
    links::check,
    paths::check,
    purity::check,
    readme::check,
    sizes::check,
    skips::check,
    unfinished::check,
    words::check,
];

pub(crate) fn run() -> Outcome {
    let problems = problems()?;
    for problem in &problems {
        println!("{problem}");
    }
    match problems.len() {
        0 => {
            println!("lint: no problems");
            Ok(())
        }
        n => Err(format!("lint: {n} problems").into()),
    }
}

fn problems() -> Result<Vec<Problem>, Box<dyn Error>> {
    let repository = Repository::read(&root())?;
    Ok(CHECKS.iter().flat_map(|check| check(&repository)).collect())
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    #[test]
    fn problems__of_this_repository_are_none() {
        let problems = super::problems().unwrap();
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "\n{}", lines.join("\n"));
    }
}
