//! The counters of an endpoint.

/// Counters since the creation of the endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams received.
    pub received: u64,
    /// Datagrams received that were not CoAP messages or had a format error.
    pub malformed: u64,
    /// Datagrams received that were copies of an earlier request or separate response.
    pub duplicates: u64,
    /// Copies of requests that were not answered because the answer may still have been travelling
    /// ([`max_sluiced`](crate::Config::max_sluiced)). They do not count as duplicates.
    pub withheld: u64,
    /// Acknowledgements, Resets and responses received that belong to no outstanding exchange. In a client they are the sign of
    /// a spurious retransmission.
    pub late_replies: u64,
    /// First transmissions of exchanges.
    pub started: u64,
    /// Retransmissions.
    pub retransmissions: u64,
    /// Exchanges that ended with a response or acknowledgement.
    pub completed: u64,
    /// Messages sent as confirmable although the application had requested non-confirmable, because of
    /// [`confirmable_every`](crate::Config::confirmable_every).
    pub converted: u64,
    /// Exchanges given up after MAX_RETRANSMIT.
    pub given_up: u64,
    /// Exchanges that were acknowledged or non-confirmable and got no response within
    /// [`response_timeout`](crate::Config::response_timeout).
    pub timed_out: u64,
    /// Exchanges, other than pings, that the peer rejected with a Reset.
    pub rejected: u64,
    /// Representations of resources sent to an observer. Retransmissions do not count.
    pub notifications: u64,
    /// Representations not sent to an observer because the resource changed again before they could depart (RFC 7641
    /// §4.5.2).
    pub notifications_replaced: u64,
    /// Observers removed because they rejected a notification with a Reset.
    pub observers_rejected: u64,
    /// Observers removed because a notification was given up.
    pub observers_given_up: u64,
    /// Observers with an unverified address that were removed to admit other observers.
    pub observers_displaced: u64,
    /// Peers dropped because [`max_peers`](crate::Config::max_peers) were already remembered.
    pub peers_evicted: u64,
    /// Replies not sent because [`max_replies`](crate::Config::max_replies) were already waiting.
    pub replies_dropped: u64,
    /// Received messages dropped from deduplication before their lifetime passed, because
    /// [`max_deduplicated`](crate::Config::max_deduplicated) were already remembered. A copy of such a message would be
    /// executed again. Requests that may be executed twice are counted separately.
    pub forgotten_early: u64,
    /// Requests that may be executed twice, dropped from deduplication before their lifetime passed because the table
    /// was full.
    pub repeatable_forgotten: u64,
}

/// The counters that every endpoint has. The other counters are in the parts that only some endpoints need, such as
/// [`Rare`](crate::rare::Rare).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EndpointTally {
    pub(crate) received: u64,
    pub(crate) late_replies: u64,
    pub(crate) started: u64,
    pub(crate) retransmissions: u64,
    pub(crate) completed: u64,
    pub(crate) given_up: u64,
}
