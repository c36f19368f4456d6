//! The mechanism and parameters of an endpoint.

use coapace_control::{DefaultTimer, Mechanism, Tide};
use coapace_proto::Config;

/// A mechanism and the transmission parameters around it (RFC 7252 §4.8). Requests of one profile share an endpoint:
/// its port, its queues, and the mechanism's state for each destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The congestion control of single exchanges.
    pub mechanism: Mechanism,
    /// The congestion control for the blocks of a body, several of which are requested at once. `None` requests one block after
    /// the other, like single exchanges.
    pub bulk: Option<Mechanism>,
    /// The parameters.
    pub config: Config,
}

impl Default for Profile {
    /// Returns the congestion control of RFC 7252, `tide` for the blocks of a body, and limits suitable for a host: 4,096
    /// exchanges, 1,024 destinations, 4,096 observers, 1,024 observations, 32,768 remembered messages.
    ///
    /// Fewer messages are remembered than there are Message IDs. The requests of a client that reuses Message IDs within
    /// EXCHANGE_LIFETIME, against RFC 7252 §4.4, are thus not taken for duplicates.
    fn default() -> Self {
        let config = Config {
            max_exchanges: 4_096,
            max_peers: 1_024,
            max_observers: 4_096,
            max_listeners: 1_024,
            max_replies: 256,
            max_deduplicated: 32_768,
            ..Config::default()
        };
        Self {
            mechanism: Mechanism::Default(DefaultTimer::DEFAULT),
            bulk: Some(Mechanism::Tide(Tide::DEFAULT)),
            config,
        }
    }
}

impl From<Mechanism> for Profile {
    fn from(mechanism: Mechanism) -> Self {
        Self { mechanism, ..Self::default() }
    }
}
