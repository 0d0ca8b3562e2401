//! The golden captures, as the tests of this crate read them. On purpose not
//! by `homa-capture`, which depends on this crate and has golden tests of its
//! own.

#![allow(dead_code, reason = "each test binary uses a part")]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use homa_wire::ip::{HomaBytes, Located, locate};
use pcap_parser::parse_pcap;

/// A golden capture.
pub(crate) struct Capture {
    /// File name without extension.
    pub(crate) name: String,
    /// The IP packet in each frame (Ethernet header taken off), in order.
    pub(crate) packets: Vec<Vec<u8>>,
}

/// All golden captures, in the order of their numbers.
pub(crate) fn captures() -> Vec<Capture> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let mut paths: Vec<PathBuf> = fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "pcap")
        })
        .collect();
    paths.sort();
    assert!(
        paths.len() >= 35,
        "golden captures are missing in {}",
        directory.display()
    );
    paths
        .into_iter()
        .map(|path| {
            let bytes = fs::read(&path).unwrap();
            let (rest, file) = parse_pcap(&bytes).unwrap();
            assert!(rest.is_empty(), "{}", path.display());
            let packets = file
                .blocks
                .iter()
                .map(|block| block.data[14..].to_vec())
                .collect();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            Capture { name, packets }
        })
        .collect()
}

/// The Homa packet in an IP packet of a golden capture, unless it is ICMP.
pub(crate) fn homa(packet: &[u8]) -> Option<HomaBytes<'_>> {
    match locate(packet, |_, _| panic!("no golden capture has UDP")) {
        Ok(Located::Homa(homa)) => Some(homa),
        Ok(Located::Other {
            protocol: 1 | 58, ..
        }) => None,
        other => panic!("{other:?}"),
    }
}

/// Every Homa packet of every golden capture, as its bytes.
pub(crate) fn homa_packets() -> Vec<Vec<u8>> {
    captures()
        .iter()
        .flat_map(|capture| &capture.packets)
        .filter_map(|packet| homa(packet).map(|homa| homa.packet.bytes.to_vec()))
        .collect()
}

/// How many packets of each type the `.txt` files next to the captures list.
pub(crate) fn types_in_decoded_captures() -> BTreeMap<String, i32> {
    let mut types = BTreeMap::new();
    for path in files("txt") {
        let text = fs::read_to_string(path).unwrap();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            // Number, time, host, version, "tos", its value, ports, type.
            let words: Vec<&str> = line.split_whitespace().collect();
            if words[4] == "tos" && words[7] != "SHORTDATA" {
                *types.entry(words[7].to_owned()).or_insert(0) += 1;
            }
        }
    }
    types
}

fn files(extension: &str) -> Vec<PathBuf> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let mut paths: Vec<PathBuf> = fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    paths.sort();
    assert!(
        paths.len() >= 35,
        "golden captures are missing in {}",
        directory.display()
    );
    paths
}
