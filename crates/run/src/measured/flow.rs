//! Counts of the messages of one flow in one run.

use serde::{Deserialize, Serialize};

use super::Delays;

/// The messages of one flow in one run. A message counts if it was offered after the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// The name of the flow.
    pub name: String,
    /// The number of clients that take part in the flow.
    pub clients: u32,
    /// Bytes of a CoAP message.
    pub message_bytes: u32,
    /// Bytes of the payload of a message.
    pub payload_bytes: u32,
    /// Messages that the application had to send, including messages that it dropped.
    pub offered: u64,
    /// Messages that the application dropped, because the client had too many messages open or waiting, or because no
    /// sink observed it.
    pub dropped: u64,
    /// Messages that reached the application of the sink before the run ended, each counted once.
    pub reached: u64,
    /// Confirmable messages whose exchange was completed.
    pub completed: u64,
    /// Confirmable messages that were given up, and messages that the endpoint had no space for.
    pub gave_up: u64,
    /// The delays of messages: the times from the offer of a message to its first arrival at the application of the
    /// sink. If flows have `delays_within`, only messages in these spans count.
    pub delays: Delays,
}
