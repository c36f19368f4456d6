//! What an endpoint has counted.

/// Counts since the endpoint was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams received.
    pub received: u64,
    /// Of these, no CoAP message, or one with a format error.
    pub malformed: u64,
    /// Of these, copies of a request or separate response seen before.
    pub duplicates: u64,
    /// Of these, acknowledgements, resets and responses to no exchange under way: for a client, the sign of a
    /// retransmission that was not necessary.
    pub late_replies: u64,
    /// First transmissions of exchanges.
    pub started: u64,
    /// Retransmissions.
    pub retransmissions: u64,
    /// Exchanges that ended with a response or acknowledgement.
    pub completed: u64,
    /// Messages that were to be non-confirmable and left as confirmable, because of
    /// [`confirmable_every`](crate::Config::confirmable_every).
    pub converted: u64,
    /// Exchanges given up after MAX_RETRANSMIT.
    pub given_up: u64,
    /// Replies not sent because [`max_replies`](crate::Config::max_replies) were waiting already.
    pub replies_dropped: u64,
    /// Received messages forgotten before their time because
    /// [`max_deduplicated`](crate::Config::max_deduplicated) were remembered already.
    pub forgotten_early: u64,
}

/// What every endpoint counts. The rest is counted with what only some endpoints have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) received: u64,
    pub(crate) late_replies: u64,
    pub(crate) started: u64,
    pub(crate) retransmissions: u64,
    pub(crate) completed: u64,
    pub(crate) given_up: u64,
}
