//! Placeholder of homa-cli.
