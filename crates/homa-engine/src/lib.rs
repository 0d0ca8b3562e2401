//! Placeholder of homa-engine.
