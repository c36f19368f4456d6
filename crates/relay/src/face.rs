//! The two sides (faces) of a relay, each with its endpoint.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use coapace_control::Mechanism;
use coapace_proto::{Endpoint, ExchangeId, Setup, Token};

use crate::line::RelayedExchange;

/// A side of the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Face {
    /// Towards the clients.
    Clients = 0,
    /// Towards the server.
    Server = 1,
}

impl Face {
    pub(crate) const BOTH: [Self; 2] = [Self::Clients, Self::Server];

    /// Returns the opposite side.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Clients => Self::Server,
            Self::Server => Self::Clients,
        }
    }
}

/// The endpoint on one side, and its lines. A line links an exchange of this endpoint to the request on the other side
/// that the exchange forwards.
#[derive(Debug)]
pub(crate) struct FaceEndpoint {
    pub(crate) endpoint: Endpoint<Mechanism, SocketAddr>,
    /// The lines, by their exchanges on this side. The line of an observation stays as long as the
    /// observation.
    pub(crate) lines: HashMap<ExchangeId, RelayedExchange>,
    /// The exchanges on this side by peer and token. A token has one exchange with each peer.
    tokens: HashMap<(SocketAddr, Token), ExchangeId>,
    /// The exchanges of observations, by the observer's address and token on the other side.
    observations: HashMap<(SocketAddr, Token), ExchangeId>,
}

impl FaceEndpoint {
    pub(crate) fn new(setup: Arc<Setup<Mechanism>>, seed: u64) -> Self {
        Self {
            endpoint: Endpoint::new(setup, seed),
            lines: HashMap::new(),
            tokens: HashMap::new(),
            observations: HashMap::new(),
        }
    }

    /// Returns whether no exchange with this peer uses the token.
    pub(crate) fn is_free(&self, peer: SocketAddr, token: Token) -> bool {
        !self.tokens.contains_key(&(peer, token))
    }

    /// Returns the exchange of the observation that was registered from this address with this token.
    pub(crate) fn observation(&self, from: SocketAddr, token: Token) -> Option<ExchangeId> {
        self.observations.get(&(from, token)).copied()
    }

    /// Reserves a token for an exchange that no message of a client has begun, such as a request for a block that is read
    /// ahead.
    pub(crate) fn take_token(&mut self, peer: SocketAddr, token: Token, exchange: ExchangeId) {
        self.tokens.insert((peer, token), exchange);
    }

    /// Frees a reserved token.
    pub(crate) fn free_token(&mut self, peer: SocketAddr, token: Token) {
        self.tokens.remove(&(peer, token));
    }

    pub(crate) fn insert(&mut self, exchange: ExchangeId, line: RelayedExchange) {
        self.tokens.insert((line.peer, line.token), exchange);
        // An earlier observation with the same token was ended before this line began.
        if line.observation.is_some() {
            self.observations.insert((line.responder.to, line.responder.token()), exchange);
        }
        self.lines.insert(exchange, line);
    }

    pub(crate) fn remove(&mut self, exchange: ExchangeId) -> Option<RelayedExchange> {
        let line = self.lines.remove(&exchange)?;
        self.tokens.remove(&(line.peer, line.token));
        if line.observation.is_some() {
            self.observations.remove(&(line.responder.to, line.responder.token()));
        }
        Some(line)
    }
}
