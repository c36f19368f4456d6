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
    /// Exchanges that were acknowledged, or not confirmable, and whose response did not come within
    /// [`response_timeout`](crate::Config::response_timeout).
    pub timed_out: u64,
    /// Exchanges, other than pings, that the peer rejected with a Reset.
    pub rejected: u64,
    /// Representations of resources that departed to an observer; one transmitted again counts once.
    pub notifications: u64,
    /// Representations that an observer was not sent, because the resource had changed again before they could depart
    /// (RFC 7641 §4.5.2).
    pub notifications_replaced: u64,
    /// Observers removed because they rejected a notification with a Reset.
    pub observers_rejected: u64,
    /// Observers removed because a notification was given up.
    pub observers_given_up: u64,
    /// Observers of unverified addresses that made room for others.
    pub observers_displaced: u64,
    /// Peers forgotten because [`max_peers`](crate::Config::max_peers) were remembered already.
    pub peers_evicted: u64,
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
