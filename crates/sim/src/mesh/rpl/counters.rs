//! What the RPL of a node has counted.

/// What happened to a node, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RplCounters {
    /// DIOs sent, to all or to one.
    pub dios: u32,
    /// DIOs that Trickle suppressed.
    pub dios_suppressed: u32,
    /// DISs sent.
    pub diss: u32,
    /// DAOs sent, its own and those it passes on.
    pub daos: u32,
    /// Times that Trickle began anew with its shortest interval.
    pub trickle_resets: u32,
    /// Times that one parent was left for another.
    pub parent_changes: u32,
    /// Times that no parent was left: local repairs.
    pub detachments: u32,
    /// Packets marked because their way and the ranks on it did not agree, and passed on.
    pub rank_errors: u32,
    /// Loops: packets dropped because that happened twice, and DAOs from one's own parent or of one's own.
    pub loops: u32,
    /// Packets sent back, or dropped when they came back, because there was no route down.
    pub forwarding_errors: u32,
    /// DAOs refused because there was no room for their route.
    pub routes_full: u32,
    /// Neighbours not taken note of because there was no room.
    pub neighbours_full: u32,
    /// Messages lost because nobody fetched those before.
    pub outbox_full: u32,
}
