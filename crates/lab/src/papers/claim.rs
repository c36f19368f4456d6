//! Claims: what a paper says of one mechanism under one condition.

use crate::results::Published;

/// The result of a paper for one mechanism under one condition.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    /// The name of the scenario, and what is set in it.
    pub(super) scenario: String,
    pub(super) settings: Vec<(String, String)>,
    /// Its name here, which is not always the paper's.
    pub(super) mechanism: String,
    pub(super) published: Published,
}
