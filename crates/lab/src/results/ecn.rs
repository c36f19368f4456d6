//! Counts of marks by queue management.

use std::ops::SubAssign;

/// Marks, and exchanges that carried them (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnResult {
    /// Packets marked.
    pub marks: u64,
    /// Exchanges of which a request reached its server with CE.
    pub requests: u64,
    /// Exchanges of which a response reached its client with CE.
    pub responses: u64,
}

/// Subtracts the counts of an earlier moment.
impl SubAssign for EcnResult {
    fn sub_assign(&mut self, earlier: Self) {
        self.marks -= earlier.marks;
        self.requests -= earlier.requests;
        self.responses -= earlier.responses;
    }
}
