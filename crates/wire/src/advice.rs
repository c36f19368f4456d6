//! What each mechanism would have done on the exchanges of a capture.

pub mod capture;
pub mod exchanges;
pub mod fates;
pub mod fit;
pub mod headers;
pub mod link;
pub mod lowpan;
pub mod measures;
pub mod message;
pub mod simulated;
pub mod statistics;
pub mod traffic;
pub mod workload;
