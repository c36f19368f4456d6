//! The content of a report.

use coapace_lab::coexistence::Matrix;

use super::group::Group;

/// The content of the page.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The heading.
    pub title: String,
    /// The subject of the page, in a sentence.
    pub subtitle: String,
    /// The command that made the results.
    pub command: String,
    /// The commit of the program that made them.
    pub commit: String,
    /// The results. Mechanisms are compared within a group.
    pub groups: Vec<Group>,
    /// Every two mechanisms together. The groups are of each alone then, and what the page says first is of the pairs.
    pub coexistence: Option<Matrix>,
}
