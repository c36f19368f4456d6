//! Claims: the published results of one mechanism under one condition.

use crate::papers::Published;

/// What a paper claims about one mechanism under one condition.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    /// The name of the scenario, and the settings of the condition.
    pub(super) scenario: String,
    pub(super) settings: Vec<(String, String)>,
    /// The name of the mechanism in this program, which may differ from its name in the paper.
    pub(super) mechanism: String,
    /// The number of seeds of full runs, if it differs from the scenario's.
    pub(super) seeds: Option<u32>,
    pub(super) published: Published,
}
