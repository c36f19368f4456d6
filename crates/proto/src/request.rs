//! The requests of the application, and the reasons for which the endpoint refuses them.

use core::fmt;

use crate::code::Code;
use crate::message::Token;

/// A request to send.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// True for a confirmable message, which is retransmitted until it is acknowledged. A non-confirmable one may still be sent
    /// as confirmable, see [`confirmable_every`](crate::Config::confirmable_every).
    pub confirmable: bool,
    /// The method: GET, PUT, … (constants in [`coap_numbers::code`]).
    pub code: Code,
    /// The token. Outstanding requests to one peer must have different tokens, unless NSTART is 1 and responses are
    /// piggybacked (RFC 7252 §5.3.1). If the mechanism [marks](crate#words) transmissions in the token, it needs one
    /// byte, and the token may have at most 7.
    pub token: Token,
    /// Options and payload, encoded.
    pub tail: &'a [u8],
    /// True if a server may execute the request more than once although its method or its options do not imply that. An example
    /// is a POST that only reads.
    ///
    /// GET may be executed again anyway. So may PUT, DELETE, FETCH and iPATCH, unless they have Block1, Q-Block1,
    /// If-Match or If-None-Match: the effect of a second copy then depends on the first.
    ///
    /// With a mechanism that uses [`Marking::FreshMessageId`](coapace_control::Marking::FreshMessageId), a server takes a
    /// retransmission for a new request. Only repeatable requests are marked in this way.
    pub repeatable: bool,
}

/// The reason why the endpoint refuses a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// [`max_exchanges`](crate::Config::max_exchanges) are outstanding or waiting.
    ExchangesFull,
    /// [`max_peers`](crate::Config::max_peers) peers have outstanding exchanges.
    PeersFull,
    /// [`max_observers`](crate::Config::max_observers) are registered.
    ObserversFull,
    /// [`max_listeners`](crate::Config::max_listeners) observations and requests to groups are open.
    ListenersFull,
    /// [`max_replies`](crate::Config::max_replies) replies are waiting to be sent.
    RepliesFull,
    /// The mechanism marks transmissions in the token, and the token has no byte left.
    TokenTooLong,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ExchangesFull => "too many exchanges are under way",
            Self::PeersFull => "exchanges with too many peers are under way",
            Self::ObserversFull => "too many observers",
            Self::ListenersFull => "too many observations and requests to groups open",
            Self::RepliesFull => "too many replies waiting to be sent",
            Self::TokenTooLong => "the mechanism adds a byte to the token, so it may have at most 7 bytes",
        })
    }
}

impl core::error::Error for SendError {}
