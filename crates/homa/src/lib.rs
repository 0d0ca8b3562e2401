//! Placeholder of homa.
