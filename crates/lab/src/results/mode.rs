//! Simulated or live.

use std::fmt;

/// The carrier of the packets of a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// The simulator.
    #[default]
    Simulated,
    /// Real sockets and the network of the scenario in real time.
    Live,
    /// Real sockets, and a server of another stack with this name.
    LiveWith(String),
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simulated => f.write_str("simulated"),
            Self::Live => f.write_str("live"),
            Self::LiveWith(peer) => write!(f, "live with {peer}"),
        }
    }
}
