//! Every packet type in every state of an RPC, at both roles: the table
//! `reactions.txt` beside this file, which is that of `docs/protocol.md` §11 as
//! this project does it. Each cell is one script.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(clippy::panic, reason = "a test fails by panicking")]
#![allow(
    dead_code,
    reason = "the runner of scripts is shared, and this needs part of it"
)]

mod script;

use std::collections::BTreeMap;

use homa_core::Mechanisms;
use homa_wire::PacketType;
use script::Script;

const TABLE: &str = include_str!("reactions.txt");

const GAUGES: [&str; 5] = [
    "client_outgoing",
    "client_incoming",
    "server_incoming",
    "server_in_service",
    "server_outgoing",
];

/// What leads to a state, and which gauge counts it.
struct State {
    name: String,
    gauge: String,
    lines: Vec<String>,
}

/// One cell: state before, state after, verdict, what follows.
struct Cell {
    before: String,
    after: String,
    verdict: String,
    then: Vec<String>,
}

struct Row {
    /// Lines that come first in every script of the row.
    config: Vec<String>,
    packet: String,
    cells: Vec<Cell>,
}

fn read() -> (Vec<State>, Vec<Row>) {
    let mut config: Vec<String> = Vec::new();
    let (mut states, mut rows): (Vec<State>, Vec<Row>) = (Vec::new(), Vec::new());
    for line in TABLE.lines() {
        let line = line.split('#').next().expect("a first part");
        let (indented, text) = (line.starts_with(' '), line.trim());
        if text.is_empty() {
            continue;
        }
        match (indented, rows.last_mut(), states.last_mut()) {
            (true, Some(row), _) => row.cells.push(cell(text)),
            (true, None, Some(state)) => state.lines.push(text.to_owned()),
            (true, None, None) => panic!("what is this about: {text}"),
            (false, ..) => match text.split_once(' ').expect("two words") {
                ("state", rest) => {
                    let (name, gauge) = rest.split_once(' ').expect("a gauge");
                    states.push(State {
                        name: name.into(),
                        gauge: gauge.into(),
                        lines: Vec::new(),
                    });
                }
                ("packet", packet) => rows.push(Row {
                    config: config.clone(),
                    packet: packet.into(),
                    cells: Vec::new(),
                }),
                // Settings come before peers.
                ("config", _) => config.insert(0, text.into()),
                _ => config.push(text.into()),
            },
        }
    }
    (states, rows)
}

fn cell(text: &str) -> Cell {
    let mut parts = text.split(';').map(str::trim);
    let head = parts.next().expect("a first part");
    let words: Vec<&str> = head.split_whitespace().collect();
    let [before, after, verdict @ ..] = words.as_slice() else {
        panic!("a cell is: state, state afterwards, verdict: {text}");
    };
    Cell {
        before: (*before).into(),
        after: (*after).into(),
        verdict: verdict.join(" "),
        then: parts.map(String::from).collect(),
    }
}

/// The script of a cell.
fn script(states: &BTreeMap<&str, &State>, row: &Row, cell: &Cell) -> String {
    let state = states[cell.before.as_str()];
    let mut lines = row.config.clone();
    lines.extend(state.lines.iter().cloned());
    lines.push(format!("in {} => {}", row.packet, cell.verdict));
    lines.extend(cell.then.iter().cloned());
    lines.extend(["no output".to_owned(), "no event".to_owned()]);
    let gauge = match cell.after.as_str() {
        "=" => &state.gauge,
        "gone" => "gone",
        other => &states[other].gauge,
    };
    for name in GAUGES {
        lines.push(format!("expect gauge {name} {}", u32::from(name == gauge)));
    }
    lines.join("\n")
}

#[test]
fn reactions__every_packet_in_every_state() {
    let (states, rows) = read();
    let by_name: BTreeMap<&str, &State> = states.iter().map(|s| (s.name.as_str(), s)).collect();
    let mut wrong = Vec::new();
    for row in &rows {
        for cell in &row.cells {
            let name = format!("{} in {}", row.packet, cell.before);
            let text = script(&by_name, row, cell);
            if let Err(error) = Script::parse(name.into(), &text).run(Mechanisms::ALL) {
                wrong.push(error.to_string());
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn reactions__no_cell_is_missing() {
    let (states, rows) = read();
    assert_eq!(states.len(), 13, "six of a client, seven of a server");
    let names: Vec<&str> = states.iter().map(|state| state.name.as_str()).collect();
    for row in &rows {
        let cells: Vec<&str> = row.cells.iter().map(|cell| cell.before.as_str()).collect();
        assert_eq!(cells, names, "{}", row.packet);
    }
    for packet_type in PacketType::ALL {
        let is_there = |row: &&Row| row.packet.split(' ').next() == Some(packet_type.name());
        assert!(rows.iter().any(|row| is_there(&row)), "{packet_type:?}");
    }
}

/// A wrong cell is found.
#[test]
fn reactions__can_fail() {
    let (states, mut rows) = read();
    let by_name: BTreeMap<&str, &State> = states.iter().map(|s| (s.name.as_str(), s)).collect();
    let row = rows.first_mut().expect("a row");
    for cell in &mut row.cells {
        cell.after = match cell.after.as_str() {
            "=" if by_name[cell.before.as_str()].gauge == "gone" => "client_waiting".into(),
            "=" => "gone".into(),
            _ => "=".into(),
        };
    }
    for cell in &row.cells {
        let text = script(&by_name, row, cell);
        let run = Script::parse("case".into(), &text).run(Mechanisms::ALL);
        assert!(run.is_err(), "{}", cell.before);
    }
}
