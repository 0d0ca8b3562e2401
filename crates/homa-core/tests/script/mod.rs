//! Runs packet scripts: text files that say what comes in and what must go
//! out, to the nanosecond. The language is described in
//! `tests/packets/README.md`.
//!
//! Strict on purpose: a packet or event that the script does not mention is an
//! error, and so is an input that is dropped without the script saying so.

mod config;
mod input;
mod machine;
mod output;
mod words;

use std::fmt;
use std::path::{Path, PathBuf};

use homa_core::Mechanisms;

pub(crate) use machine::Machine;
pub(crate) use words::Words;

/// One script, read but not run.
pub(crate) struct Script {
    pub(crate) path: PathBuf,
    lines: Vec<(usize, String)>,
    /// What it is about, by the names of [`Mechanisms::NAMES`].
    pub(crate) mechanisms: Vec<String>,
    /// Counters that must have moved when it has run.
    pub(crate) counters: Vec<String>,
}

/// What is wrong, and where.
#[derive(Debug)]
pub(crate) struct ScriptError {
    pub(crate) path: PathBuf,
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.text)
    }
}

/// The directory of the scripts.
pub(crate) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/packets")
}

/// Every script, in order of name.
pub(crate) fn all() -> Vec<Script> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(directory())
        .expect("the directory of scripts")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "pkt"))
        .collect();
    paths.sort();
    paths.into_iter().map(Script::read).collect()
}

impl Script {
    fn read(path: PathBuf) -> Self {
        let text = std::fs::read_to_string(&path).expect("a readable script");
        Self::parse(path, &text)
    }

    pub(crate) fn parse(path: PathBuf, text: &str) -> Self {
        let mut script = Self {
            path,
            lines: Vec::new(),
            mechanisms: Vec::new(),
            counters: Vec::new(),
        };
        for (index, line) in text.lines().enumerate() {
            let code = line.split('#').next().unwrap_or("").trim();
            let mut words = code.split_whitespace();
            match words.next() {
                None => {}
                Some("mechanism") => script.mechanisms.extend(words.map(String::from)),
                Some("counter") => script.counters.extend(words.map(String::from)),
                Some(_) => script.lines.push((index + 1, code.to_owned())),
            }
        }
        script
    }

    /// Runs the script with these mechanisms.
    pub(crate) fn run(&self, mechanisms: Mechanisms) -> Result<(), ScriptError> {
        let mut machine = Machine::new(mechanisms);
        let mut last = 0;
        self.block(&mut machine, 0, self.lines.len(), 0, &mut last)
            .and_then(|()| {
                machine.nothing_is_left()?;
                self.counters_moved(&machine)
            })
            .map_err(|text| ScriptError {
                path: self.path.clone(),
                line: last,
                text,
            })
    }

    fn counters_moved(&self, machine: &Machine) -> Result<(), String> {
        for name in &self.counters {
            if machine.counter(name)? == 0 {
                return Err(format!("counter {name} has not moved"));
            }
        }
        Ok(())
    }

    /// Runs lines `from..to`; `repeat N` … `end` is the only block there
    /// is; in it `$` stands for the number of the round, from 1.
    fn block(
        &self,
        machine: &mut Machine,
        from: usize,
        to: usize,
        round: u32,
        last: &mut usize,
    ) -> Result<(), String> {
        let mut at = from;
        while at < to {
            let (number, line) = &self.lines[at];
            *last = *number;
            let mut words = Words::new(&line.replace('$', &round.to_string()));
            if words.flag("repeat") {
                let times = words.number()?;
                words.finish()?;
                let end = (at..to)
                    .find(|&n| self.lines[n].1 == "end")
                    .ok_or("repeat without end")?;
                for round in 1..=times {
                    self.block(machine, at + 1, end, round, last)?;
                }
                at = end + 1;
                continue;
            }
            machine.line(words)?;
            at += 1;
        }
        Ok(())
    }
}
