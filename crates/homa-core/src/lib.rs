//! Placeholder of homa-core.
