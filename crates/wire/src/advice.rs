//! What each mechanism would have done on the exchanges of a capture.

pub mod capture;
pub mod exchanges;
pub mod fates;
pub mod headers;
pub mod lowpan;
pub mod message;
pub mod statistics;
pub mod traffic;
