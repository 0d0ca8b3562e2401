//! Offloads, all off: what crosses an emulated network are the packets that
//! would cross a real one, cut to the MTU and with their checksums filled in.

use std::io;

use crate::Error;
use crate::sys::Ethtool;

/// Turns every offload of a device of the calling thread's namespace off, and
/// looks whether they are.
pub(crate) fn turn_off(device: &str) -> Result<(), Error> {
    let left = try_turn_off(device).map_err(Error::system(format!(
        "turning the offloads of {device} off"
    )))?;
    if left.is_empty() {
        return Ok(());
    }
    Err(Error::Unavailable(format!(
        "the kernel does not turn {} of {device} off",
        left.join(", ")
    )))
}

/// Those that are still on.
fn try_turn_off(device: &str) -> io::Result<Vec<String>> {
    let ethtool = Ethtool::new(device)?;
    let names = ethtool.names()?;
    let wanted = |block: usize| {
        let names = names.iter().enumerate().skip(block * 32).take(32);
        names
            .filter(|(_, name)| changes_packets(name))
            .fold(0_u32, |bits, (index, _)| bits | 1 << (index % 32))
    };
    let before = ethtool.features(names.len())?;
    let change: Vec<u32> = before
        .iter()
        .enumerate()
        .map(|(index, block)| block.available & wanted(index))
        .collect();
    ethtool.turn_off(&change)?;
    let after = ethtool.features(names.len())?;
    let on = names.iter().enumerate().filter(|(index, name)| {
        changes_packets(name)
            && after
                .get(index / 32)
                .is_some_and(|block| block.active & (1 << (index % 32)) != 0)
    });
    Ok(on.map(|(_, name)| name.clone()).collect())
}

/// Whether with this feature other packets cross the network than without:
/// several joined to one, or with a checksum that is not filled in.
fn changes_packets(feature: &str) -> bool {
    feature.ends_with("-segmentation")
        || feature.starts_with("tx-checksum-")
        || ["rx-gro", "rx-gro-hw", "rx-gro-list", "rx-lro"].contains(&feature)
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn changes_packets__knows_the_kernel_names() {
        for name in [
            "tx-tcp-segmentation",
            "tx-generic-segmentation",
            "tx-udp-segmentation",
            "tx-checksum-ip-generic",
            "rx-gro",
        ] {
            assert!(changes_packets(name), "{name}");
        }
        for name in ["tx-scatter-gather", "highdma", "rx-vlan-filter"] {
            assert!(!changes_packets(name), "{name}");
        }
    }
}
