//! The numbers of packets in a capture.

use std::collections::BTreeMap;

use super::datagram::Skipped;

/// The packets of a capture, counted by what they contain or why they are skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All packets.
    pub packets: u64,
    /// CoAP messages.
    pub messages: u64,
    /// Datagrams of DTLS, which are encrypted.
    pub dtls: u64,
    /// Datagrams at a port of CoAP that cannot be read as CoAP messages.
    pub malformed: u64,
    /// Datagrams of other protocols.
    pub others: u64,
    /// Packets that are skipped, by the reason.
    pub skipped: BTreeMap<Skipped, u64>,
    /// Datagrams that are left out because the capture contains them a second time.
    pub again: u64,
    /// Messages that were unanswered when the clock stepped, and their copies after the step. They are left out.
    pub torn: u64,
    /// Messages that tshark read.
    pub by_tshark: u64,
    /// Messages that are left out because an internal table is full.
    pub left_out: u64,
    /// Acknowledgements, resets and responses without a request in the capture, such as notifications.
    pub unmatched: u64,
    /// Message IDs that a peer used again within EXCHANGE_LIFETIME for another message (RFC 7252 §4.4).
    pub reused_ids: u64,
}

impl Counts {
    /// Returns whether tshark may be able to read some of the skipped packets: packets in tunnels, or of unknown link
    /// types.
    pub fn needs_tshark(&self) -> bool {
        self.skipped.keys().any(|skipped| matches!(skipped, Skipped::Link(_) | Skipped::Tunnel))
    }
}
