//! Mobility: where nodes go.
