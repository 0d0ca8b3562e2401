//! The repository as the checks see it: its text files and its packages.
//!
//! Read once; after that the checks are functions of values, so that each can
//! be tested with a repository of three lines.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::command::{cargo, collect};

/// Files larger than this are data, not text to be read.
const LARGEST_TEXT_BYTES: u64 = 1 << 20;

pub(crate) struct Repository {
    pub(crate) files: Vec<File>,
    /// Every file and directory, text or not, by path.
    pub(crate) paths: Vec<String>,
    pub(crate) packages: Vec<Package>,
}

pub(crate) struct File {
    /// From the root of the repository, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A member of the workspace.
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) dependencies: Vec<Dependency>,
    /// The root files of its libraries and programs.
    pub(crate) roots: Vec<String>,
}

pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) purpose: Purpose,
    pub(crate) origin: Origin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Part of what users get.
    Product,
    /// Tests, examples and benches.
    Tests,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Workspace,
    Registry,
}

/// Something that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) path: String,
    /// From 1; 0 is the file as a whole.
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl Problem {
    pub(crate) fn new(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            text: text.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.text),
            line => write!(f, "{}:{line}: {}", self.path, self.text),
        }
    }
}

impl Repository {
    pub(crate) fn read(root: &Path) -> Result<Self, Box<dyn Error>> {
        let mut repository = Self {
            files: Vec::new(),
            paths: Vec::new(),
            packages: packages(root)?,
        };
        repository.walk(root, root)?;
        repository.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(repository)
    }

    fn walk(&mut self, root: &Path, directory: &Path) -> Result<(), Box<dyn Error>> {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name == ".git" || name.starts_with("target") || name.starts_with("callgrind.out") {
                continue;
            }
            let path = entry.path();
            let relative = relative(root, &path);
            self.paths.push(relative.clone());
            if entry.file_type()?.is_dir() {
                self.walk(root, &path)?;
            } else if entry.metadata()?.len() <= LARGEST_TEXT_BYTES
                && let Ok(text) = String::from_utf8(std::fs::read(&path)?)
            {
                let path = relative;
                self.files.push(File { path, text });
            }
        }
        Ok(())
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Rust files.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.has_extension("rs"))
    }
}

impl File {
    pub(crate) fn has_extension(&self, wanted: &str) -> bool {
        Path::new(&self.path)
            .extension()
            .is_some_and(|extension| extension == wanted)
    }
}

/// The root of the repository: the parent of this package.
pub(crate) fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let parent = here.as_deref().and_then(Path::parent);
    parent.map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

fn relative(root: &Path, path: &Path) -> String {
    let path = path.strip_prefix(root).unwrap_or(path);
    path.to_string_lossy().replace('\\', "/")
}

fn packages(root: &Path) -> Result<Vec<Package>, Box<dyn Error>> {
    let mut command = cargo();
    command
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root);
    let output = collect(&mut command)?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = list(&metadata, "packages").map(|package| Package {
        name: string(package, "name"),
        dependencies: list(package, "dependencies").map(dependency).collect(),
        roots: list(package, "targets")
            .filter(|target| {
                list(target, "kind").any(|kind| {
                    ["lib", "bin", "cdylib", "staticlib"].contains(&kind.as_str().unwrap_or(""))
                })
            })
            .map(|target| relative(root, Path::new(&string(target, "src_path"))))
            .collect(),
    });
    Ok(packages.collect())
}

fn dependency(value: &Value) -> Dependency {
    Dependency {
        name: string(value, "name"),
        purpose: match value.get("kind").and_then(Value::as_str) {
            Some("dev") => Purpose::Tests,
            _ => Purpose::Product,
        },
        origin: match value.get("path").and_then(Value::as_str) {
            Some(_) => Origin::Workspace,
            None => Origin::Registry,
        },
    }
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn string(value: &Value, key: &str) -> String {
    value
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// A repository of one file, for tests of checks.
#[cfg(test)]
pub(crate) fn of(path: &str, text: &str) -> Repository {
    Repository {
        files: vec![File {
            path: path.to_owned(),
            text: text.to_owned(),
        }],
        paths: vec![path.to_owned()],
        packages: Vec::new(),
    }
}
