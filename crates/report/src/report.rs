//! The content of a report.

use coapace_lab::coexistence::Matrix;
use coapace_lab::papers::{References, Sensitivity};
use coapace_lab::rank::Ranking;

use super::group::CellGroup;

/// The content of the page.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The heading.
    pub title: String,
    /// The subject of the page, in a sentence.
    pub subtitle: String,
    /// The command that made the results.
    pub command: String,
    /// The commit of the program that made the results.
    pub commit: String,
    /// The results. Mechanisms are compared within a group.
    pub groups: Vec<CellGroup>,
    /// The published results and the bounds that they are compared with.
    pub references: References,
    /// The results of every pair of mechanisms. If there are any, the page begins with the pairs, and the groups have
    /// the runs in which all clients have the same mechanism.
    pub coexistence: Option<Matrix>,
    /// The scores of a paper under other values of its unpublished conditions. If there are any, the page shows nothing else.
    pub sensitivity: Option<Sensitivity>,
    /// The ratios of mechanisms over many cells. If there are any, the page shows nothing else.
    pub ranking: Option<Ranking>,
}
