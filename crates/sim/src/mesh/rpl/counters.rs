//! The counters of the RPL of a node.

/// Counts of the events of the RPL of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RplCounters {
    /// DIOs sent, to all neighbours or to one.
    pub dios: u32,
    /// DIOs that Trickle suppressed.
    pub dios_suppressed: u32,
    /// DISs sent.
    pub diss: u32,
    /// DAOs sent, for this node or passed on for others.
    pub daos: u32,
    /// Resets of Trickle to its shortest interval.
    pub trickle_resets: u32,
    /// Changes from one parent to another.
    pub parent_changes: u32,
    /// Losses of the last parent, which begin a local repair.
    pub detachments: u32,
    /// Packets forwarded with the mark that a rank on their way did not agree with their direction.
    pub rank_errors: u32,
    /// Loops found: packets dropped with a second rank error, and DAOs from the parent or for this node.
    pub loops: u32,
    /// Packets sent back because there was no route down, or dropped when they came back.
    pub forwarding_errors: u32,
    /// DAOs refused because there was no room for their route.
    pub routes_full: u32,
    /// Neighbours ignored because there was no room in the table.
    pub neighbours_full: u32,
    /// Messages lost because earlier ones were not fetched.
    pub outbox_full: u32,
}
