//! The laboratory: scenarios, runs, metrics, published figures, reports.

pub mod replay;
pub mod report;
pub mod results;
pub mod scenario;
