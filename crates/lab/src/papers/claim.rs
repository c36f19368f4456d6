//! Claims: the published results of one mechanism under one condition.

use crate::papers::Published;

/// The result of a paper for one mechanism under one condition.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    /// The name of the scenario, and the settings of the condition.
    pub(super) scenario: String,
    pub(super) settings: Vec<(String, String)>,
    /// The name of the mechanism here, which is not always that of the paper.
    pub(super) mechanism: String,
    /// The number of seeds of full runs, if it is not that of the scenario.
    pub(super) seeds: Option<u32>,
    pub(super) published: Published,
}
