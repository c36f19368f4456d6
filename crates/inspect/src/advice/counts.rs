//! The packets of a capture, counted.

use std::collections::BTreeMap;

use super::datagram::Skipped;

/// The packets of a capture, by what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All packets.
    pub packets: u64,
    /// CoAP messages.
    pub messages: u64,
    /// Datagrams of DTLS, which are encrypted.
    pub dtls: u64,
    /// Datagrams at a port of CoAP that are not messages.
    pub malformed: u64,
    /// Datagrams of other protocols.
    pub others: u64,
    /// Packets that carry no datagram, by the reason.
    pub skipped: BTreeMap<Skipped, u64>,
    /// Datagrams that the capture shows a second time.
    pub again: u64,
    /// Messages that were open when the clock stepped, and copies of them behind it.
    pub torn: u64,
    /// Messages that tshark read.
    pub by_tshark: u64,
    /// Messages that are left out because a table is full.
    pub left_out: u64,
    /// Acknowledgements, resets and responses without a request in the capture, such as notifications.
    pub unmatched: u64,
    /// Message IDs that a peer used again within EXCHANGE_LIFETIME for another message (RFC 7252 §4.4).
    pub reused_ids: u64,
}

impl Counts {
    /// Returns whether tshark may be able to read some of the skipped packets: tunnels, and packets of unknown link types.
    pub fn needs_tshark(&self) -> bool {
        self.skipped.keys().any(|skipped| matches!(skipped, Skipped::Link(_) | Skipped::Tunnel))
    }
}
