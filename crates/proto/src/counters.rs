//! The counts of an endpoint.

/// Counts since the endpoint was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams received.
    pub received: u64,
    /// Datagrams received that were not CoAP messages or had a format error.
    pub malformed: u64,
    /// Datagrams received that were copies of an earlier request or separate response.
    pub duplicates: u64,
    /// Copies of requests that were not answered because the answer may still have been under way
    /// ([`max_sluiced`](crate::Config::max_sluiced)). They do not count as duplicates.
    pub withheld: u64,
    /// Acknowledgements, Resets and responses received that belong to no exchange under way. In a client they
    /// are the sign of a retransmission that was not necessary.
    pub late_replies: u64,
    /// First transmissions of exchanges.
    pub started: u64,
    /// Retransmissions.
    pub retransmissions: u64,
    /// Exchanges that ended with a response or acknowledgement.
    pub completed: u64,
    /// Messages that left as confirmable although the application had asked for non-confirmable, because of
    /// [`confirmable_every`](crate::Config::confirmable_every).
    pub converted: u64,
    /// Exchanges given up after MAX_RETRANSMIT.
    pub given_up: u64,
    /// Exchanges that were acknowledged or non-confirmable and got no response within
    /// [`response_timeout`](crate::Config::response_timeout).
    pub timed_out: u64,
    /// Exchanges, other than pings, that the peer rejected with a Reset.
    pub rejected: u64,
    /// Representations of resources that departed to an observer. Retransmissions do not count.
    pub notifications: u64,
    /// Representations that did not depart to an observer because the resource had changed again before (RFC
    /// 7641 §4.5.2).
    pub notifications_replaced: u64,
    /// Observers removed because they rejected a notification with a Reset.
    pub observers_rejected: u64,
    /// Observers removed because a notification was given up.
    pub observers_given_up: u64,
    /// Observers of unverified addresses that were removed to admit others.
    pub observers_displaced: u64,
    /// Peers forgotten because [`max_peers`](crate::Config::max_peers) were remembered already.
    pub peers_evicted: u64,
    /// Replies not sent because [`max_replies`](crate::Config::max_replies) were waiting already.
    pub replies_dropped: u64,
    /// Received messages forgotten before their time because
    /// [`max_deduplicated`](crate::Config::max_deduplicated) were remembered already. A copy of one would be
    /// carried out again. Requests that may be carried out twice do not count.
    pub forgotten_early: u64,
    /// Requests that may be carried out twice, forgotten before their time because there was no room for
    /// more.
    pub repeatable_forgotten: u64,
}

/// The counts that every endpoint keeps. The others lie in the parts that only some endpoints have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EndpointTally {
    pub(crate) received: u64,
    pub(crate) late_replies: u64,
    pub(crate) started: u64,
    pub(crate) retransmissions: u64,
    pub(crate) completed: u64,
    pub(crate) given_up: u64,
}
