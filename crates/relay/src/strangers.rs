//! Clients with unverified addresses (RFC 9175 §2.4), or strangers: the answers that they are sent, and their share of the
//! tables.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

use coapace_control::{Duration, Instant};
use coapace_proto::echo::{Echo, Gate};
use coapace_proto::{Allowance, Code, Message, Options, Responder};

use crate::{Face, Relay, RelayConfig};

/// The time that an address stays verified.
const FRESHNESS: Duration = Duration::from_secs(300);

/// The number of verified addresses that are remembered for each possible source.
const ADDRESSES: usize = 4;

/// A source may use at most 1/`SHARE` of the free exchanges.
const SHARE: usize = 16;

/// The bytes of a message before its token (RFC 7252 §3).
const HEAD: usize = 4;

/// The reason why a request is not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// The source of the request has used up its share of the tables.
    ForSource,
    /// All clients together, or all unverified clients together, have used up their share of the tables.
    ForAll,
}

/// Returns the gate that verifies the addresses of clients. The key of its Echo values is derived from `seed`.
pub(crate) fn gate(config: &RelayConfig, seed: u64) -> Gate<SocketAddr> {
    // The name keeps the key apart from the tokens, which are drawn from the same seed.
    let part = |number: u8| {
        let mut hasher = DefaultHasher::new();
        (seed, "Echo", number).hash(&mut hasher);
        hasher.finish().to_le_bytes()
    };
    let mut key = [0; 16];
    key[..8].copy_from_slice(&part(0));
    key[8..].copy_from_slice(&part(1));
    Gate::new(Echo::new(key, FRESHNESS), ADDRESSES * config.max_sources as usize)
}

/// Returns the network of a client: an IPv4 address, or an IPv6 prefix of 64 bits.
pub(crate) fn network(client: &SocketAddr) -> u64 {
    match client.ip().to_canonical() {
        IpAddr::V4(ip) => ip.to_bits().into(),
        IpAddr::V6(ip) => (ip.to_bits() >> 64) as u64,
    }
}

/// Returns the length of the answer to a request, in bytes of CoAP.
pub(crate) fn length(responder: &Responder<SocketAddr>, tail: &[u8]) -> usize {
    HEAD + responder.token().len() + tail.len()
}

impl Relay {
    /// Returns how many bytes may be sent to a client in answer to `message`; unlimited if the client is trusted or
    /// verified.
    pub(crate) fn allowance(&mut self, now: Instant, from: SocketAddr, message: &Message<'_>) -> Allowance {
        if !self.config.verify.concerns(from.ip()) || self.gate.verifies(now, from, message) {
            return Allowance::UNLIMITED;
        }
        Allowance::over(HEAD + message.token.len() + message.tail.len(), from.ip())
    }

    /// Checks whether a source may have another exchange at the face `there`, to which its request is forwarded.
    /// Unverified clients may use three quarters of the tables. A source may use a sixteenth of the free slots, or one
    /// if that is more, so that a source without exchanges finds a slot as long as one is free.
    pub(crate) fn has_room(&self, there: Face, source: SocketAddr, stranger: bool) -> Result<(), NoRoom> {
        let RelayConfig { max_exchanges, max_exchanges_of_source, .. } = self.config;
        let (most, taken) = (max_exchanges as usize, self.halves[there as usize].lines.len());
        let of_strangers = most - most / 4;
        let free = most.saturating_sub(taken);
        let free = if stranger { free.min(of_strangers.saturating_sub(self.strangers)) } else { free };
        let own = self.sources.lines(source) as usize;
        // Rounded up to 1, so that a source without exchanges finds a slot as long as there is one.
        let share = (free / SHARE).max(1).min(max_exchanges_of_source as usize);
        match own {
            0 if free == 0 => Err(NoRoom::ForAll),
            _ if free == 0 || own >= share => Err(NoRoom::ForSource),
            _ => Ok(()),
        }
    }

    /// Answers a request that is not forwarded, because the tables are full. An unverified client is asked for an Echo value,
    /// because verified clients have a larger share.
    pub(crate) fn turn_away(&mut self, now: Instant, face: Face, responder: Responder<SocketAddr>) {
        if responder.allowance().is_limited() {
            self.challenge(now, responder);
        } else {
            self.refuse(now, face, responder);
        }
    }

    /// Asks a client to repeat its request with an Echo value (RFC 9175 §2.3).
    fn challenge(&mut self, now: Instant, responder: Responder<SocketAddr>) {
        self.counts.challenged += 1;
        let tail = self.gate.challenge(now, responder.to);
        self.send(now, Face::Clients, responder, Code::UNAUTHORIZED, tail.as_bytes());
    }

    /// Answers an unverified client for which the response is too long. A GET or FETCH may be repeated, so the client
    /// is asked to do so with an Echo value. Another request may have had its effect: the answer is 5.02, with an Echo
    /// value for the next request.
    pub(crate) fn hold_back(&mut self, now: Instant, responder: Responder<SocketAddr>) {
        if matches!(responder.method, Code::GET | Code::FETCH) {
            return self.challenge(now, responder);
        }
        self.counts.challenged += 1;
        let value = self.gate.challenge(now, responder.to);
        let echo =
            Message { tail: value.as_bytes(), ..Message::empty(coapace_proto::Kind::NonConfirmable, 0) };
        let tail = Options::of(&echo).tail(b"done; the answer is too long").unwrap_or_default();
        // The explanation is left out if the client may be sent only the value.
        let fits = length(&responder, tail.as_bytes()) <= responder.allowance().room();
        let tail = if fits { &tail } else { &value };
        self.send(now, Face::Clients, responder, Code::BAD_GATEWAY, tail.as_bytes());
    }
}
