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
    /// The number of times that the node left its parent and had no other parent to choose, which begins a local
    /// repair.
    pub detachments: u32,
    /// Packets that arrived with a rank which does not fit their direction, and were forwarded with the rank error
    /// flag.
    pub rank_errors: u32,
    /// Loops found: packets dropped with a second rank error, and DAOs from the parent or from a node nearer to the root.
    pub loops: u32,
    /// Packets sent back because the node had no route down, or dropped when they came back.
    pub forwarding_errors: u32,
    /// DAOs refused because there was no room for their route.
    pub routes_full: u32,
    /// Neighbours ignored because there was no room in the table.
    pub neighbours_full: u32,
    /// Messages lost because the outbox was full of earlier messages.
    pub outbox_full: u32,
}
