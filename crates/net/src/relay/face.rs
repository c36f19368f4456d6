//! The two faces of a relay, each with its endpoint.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use coapace_control::Mechanism;
use coapace_proto::{Endpoint, ExchangeId, Setup, Token};

use super::line::RelayedExchange;

/// A face of the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Face {
    /// Towards the clients.
    Clients = 0,
    /// Towards the server.
    Server = 1,
}

impl Face {
    pub(super) const BOTH: [Self; 2] = [Self::Clients, Self::Server];

    /// Returns the face at the other side.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Clients => Self::Server,
            Self::Server => Self::Clients,
        }
    }
}

/// The endpoint at a face, and the requests that it makes for the requests that arrived at the other face.
#[derive(Debug)]
pub(super) struct FaceEndpoint {
    pub(super) endpoint: Endpoint<Mechanism, SocketAddr>,
    /// The lines whose exchanges are at this face. A line of an observation stays as long as the observation.
    pub(super) lines: HashMap<ExchangeId, RelayedExchange>,
    /// The lines by peer and token at this face. No two have both in common.
    tokens: HashMap<(SocketAddr, Token), ExchangeId>,
    /// The lines of observations, by the observer and its token at the other face.
    observations: HashMap<(SocketAddr, Token), ExchangeId>,
}

impl FaceEndpoint {
    pub(super) fn new(setup: Arc<Setup<Mechanism>>, seed: u64) -> Self {
        Self {
            endpoint: Endpoint::new(setup, seed),
            lines: HashMap::new(),
            tokens: HashMap::new(),
            observations: HashMap::new(),
        }
    }

    /// Returns whether no line to this peer has the token.
    pub(super) fn is_free(&self, peer: SocketAddr, token: Token) -> bool {
        !self.tokens.contains_key(&(peer, token))
    }

    /// Returns the observation that was asked for from this address, with this token.
    pub(super) fn observation(&self, from: SocketAddr, token: Token) -> Option<ExchangeId> {
        self.observations.get(&(from, token)).copied()
    }

    /// Takes a token for an exchange that has no line.
    pub(super) fn take_token(&mut self, peer: SocketAddr, token: Token, exchange: ExchangeId) {
        self.tokens.insert((peer, token), exchange);
    }

    /// Frees a token that was taken.
    pub(super) fn free_token(&mut self, peer: SocketAddr, token: Token) {
        self.tokens.remove(&(peer, token));
    }

    pub(super) fn insert(&mut self, exchange: ExchangeId, line: RelayedExchange) {
        self.tokens.insert((line.peer, line.token), exchange);
        if line.observation.is_some() {
            self.observations.insert((line.responder.to, line.responder.token()), exchange);
        }
        self.lines.insert(exchange, line);
    }

    pub(super) fn remove(&mut self, exchange: ExchangeId) -> Option<RelayedExchange> {
        let line = self.lines.remove(&exchange)?;
        self.tokens.remove(&(line.peer, line.token));
        if line.observation.is_some() {
            self.observations.remove(&(line.responder.to, line.responder.token()));
        }
        Some(line)
    }
}
