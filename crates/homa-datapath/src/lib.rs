//! Placeholder of homa-datapath.
