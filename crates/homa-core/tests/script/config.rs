//! `config …`: the settings of the endpoint under test.

use homa_core::{Config, Extensions, IncomingCounts, Mechanisms};

use super::Words;
use super::words::{parse, time};

/// What scripts start from: the reference module's values, no extensions, no
/// pacing, and no FIFO grants unless the script asks for them.
pub(crate) fn defaults(mechanisms: Mechanisms) -> Config {
    Config {
        unscheduled_bytes: Some(40_000),
        max_incoming_bytes: Some(400_000),
        grant_fifo_permille: 0,
        max_rpcs: 1024,
        max_peers: 64,
        extensions: Extensions::Off,
        mechanisms,
        ..Config::default()
    }
}

pub(crate) fn change(config: &mut Config, words: &mut Words) -> Result<(), String> {
    while !words.is_empty() {
        let key = words.next()?;
        if key == "cutoffs" {
            let mut list = [0; 8];
            for entry in &mut list {
                *entry = words.number()?;
            }
            config.fixed_cutoffs = Some(list);
            continue;
        }
        let value = words.next()?;
        match key.as_str() {
            "unscheduled" => config.unscheduled_bytes = Some(parse(&value)?),
            "max_incoming" => config.max_incoming_bytes = Some(parse(&value)?),
            "window" => config.window_bytes = Some(parse(&value)?),
            "overcommit" => config.max_overcommit = parse(&value)?,
            "fifo" => config.grant_fifo_permille = parse(&value)?,
            "fifo_bytes" => config.fifo_grant_bytes = parse(&value)?,
            "priorities" => config.priorities = parse(&value)?,
            "resend" => config.resend_ns = Some(time(&value)?),
            "interval" => config.resend_interval_ns = Some(time(&value)?),
            "timeout" => config.timeout_ns = time(&value)?,
            "request_ack" => config.request_ack_ns = time(&value)?,
            "lifetime" => config.duplicate_lifetime_ns = time(&value)?,
            "rate" => config.link_rate_bps = Some(parse(&value)?),
            "backlog" => config.max_nic_backlog_ns = Some(time(&value)?),
            "pacer_fifo" => config.pacer_fifo_permille = parse(&value)?,
            "buffer" => config.buffer_bytes = parse(&value)?,
            "max_message" => config.max_message_bytes = parse(&value)?,
            "max_rpcs" => config.max_rpcs = parse(&value)?,
            "max_peers" => config.max_peers = parse(&value)?,
            "counts" => {
                config.incoming_counts = match value.as_str() {
                    "all" => IncomingCounts::All,
                    "managed" => IncomingCounts::Managed,
                    _ => return Err("counts is all or managed".into()),
                }
            }
            "extensions" => {
                config.extensions = match value.as_str() {
                    "on" => Extensions::On,
                    "off" => Extensions::Off,
                    _ => return Err("extensions is on or off".into()),
                }
            }
            other => return Err(format!("no setting {other}")),
        }
    }
    Ok(())
}
