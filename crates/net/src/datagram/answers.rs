//! The state that a server over datagrams needs to answer requests. Clients whose addresses may be forged are sent only
//! small answers.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use coapace_control::{Duration, Instant};
use coapace_proto::block::MAX_SZX;
use coapace_proto::echo::{Echo, Gate};
use coapace_proto::{Allowance, Code, Message, Responder, Sequence, Token};

use super::leisure::Leisure;
use super::sets::BodyRequests;
use crate::access::AccessLog;
use crate::address::Remote;
use crate::conversation::{Format, ResponseTransport, Terms, TransferBodies, length};
use crate::{Network, Requests, Resource, Response, ServerConfig};

/// The clients that must verify their address with an Echo option. Until then they are sent at most three times the bytes that
/// they sent (RFC 9175 §2.4, item 3). Headers of IP and UDP count, and so do copies of separate responses and notifications.
///
/// Without this rule, anyone could make a server send large responses to a forged address. It costs each client one
/// more round trip every five minutes. If a GET or FETCH has a large response, a client without Echo gets 4.01. Other
/// methods have already had their effect, so they are answered in smaller blocks instead, or with only the code if
/// their options are too long. An observer without Echo is sent a confirmable notification first, whose acknowledgement
/// also verifies the address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// No client, for networks without forged addresses.
    Nobody,
    /// All clients except those on this host, whose addresses cannot be forged from elsewhere. This is the default, which RFC
    /// 9175 §2.4 recommends.
    #[default]
    Strangers,
    /// All clients except those in these networks, from which nobody can send with a forged address.
    Outside(Arc<[Network]>),
    /// All clients.
    Everybody,
}

impl Verify {
    /// Returns whether this client must verify its address.
    pub fn concerns(&self, client: IpAddr) -> bool {
        match self {
            Self::Nobody => false,
            Self::Strangers => !client.to_canonical().is_loopback(),
            Self::Outside(networks) => !networks.iter().any(|network| network.contains(client)),
            Self::Everybody => true,
        }
    }
}

/// The time that an address stays verified.
const FRESHNESS: Duration = Duration::from_secs(300);

/// The part of a hub that only servers use, to answer requests.
#[derive(Debug)]
pub(crate) struct Answers {
    pub(super) verify: Verify,
    pub(super) gate: Gate<Remote>,
    pub(super) medium: ResponseTransport,
    /// The largest payload of a block, in bytes.
    block: usize,
    pub(crate) bodies: TransferBodies,
    /// The bodies that are being sent to clients in confirmable sets of blocks (Q-Block2).
    pub(super) sets: BodyRequests,
    /// The requests of observers. Observers with equal requests share one entry. The key is the number by which the
    /// endpoint knows the request.
    pub(super) observed: HashMap<u64, ObservedRequest>,
    /// The limit of the number of entries in `observed`.
    pub(super) max_observed: usize,
    pub(super) sequence: Sequence,
    /// The responses to groups that wait to be sent.
    pub(crate) leisure: Leisure,
    pub(crate) requests: Requests,
    /// The unanswered requests for the access log, by peer and token.
    pub(crate) access: AccessLog<(Remote, Token)>,
    /// The options and payload of the response that is being sent.
    pub(super) scratch: Vec<u8>,
}

/// A request of observers. All observers with this request are sent the same notifications.
#[derive(Debug)]
pub(super) struct ObservedRequest {
    pub(super) resource: Resource,
    /// The first observer with the request, and its options.
    pub(super) from: Remote,
    pub(super) tail: Vec<u8>,
    pub(super) terms: Terms,
    pub(super) format: Format,
    /// The version of the resource for which the handler was last called.
    pub(super) called: u64,
    pub(super) under_way: bool,
}

/// A handler that must be called for observers, because their resource has changed.
#[derive(Debug)]
pub(crate) struct DueHandler {
    pub(crate) number: u64,
    pub(crate) from: Remote,
    pub(crate) tail: Vec<u8>,
}

impl Answers {
    /// Returns the state of a server. `key` is the secret for its Echo values.
    pub(crate) fn of(config: &ServerConfig, key: [u8; 16], secure: bool) -> Self {
        let &ServerConfig { bodies, leisure, max_delayed, .. } = config;
        // The handshakes of DTLS sessions have verified the addresses of their clients.
        let verify = if secure { Verify::Nobody } else { config.verify.clone() };
        let config = config.of_each_core().config;
        Self {
            verify,
            // Verified addresses have the same bound as peers.
            gate: Gate::new(Echo::new(key, FRESHNESS), config.max_peers as usize),
            medium: ResponseTransport::Datagram { max_szx: bodies.max_szx },
            block: 16 << bodies.max_szx,
            bodies: TransferBodies::new(bodies),
            sets: BodyRequests::default(),
            observed: HashMap::new(),
            // When the table is full, at least half of its requests have no observers any more, and are removed.
            max_observed: 2 * config.max_observers as usize,
            sequence: Sequence::after(first_number()),
            leisure: Leisure::new(leisure.into(), max_delayed),
            requests: Requests::default(),
            access: AccessLog::default(),
            scratch: Vec::new(),
        }
    }

    /// Returns the size exponent of the largest block.
    pub(super) fn max_szx(&self) -> u8 {
        let ResponseTransport::Datagram { max_szx } = self.medium else { return MAX_SZX };
        max_szx
    }

    /// Returns how many bytes this client may be sent while it is unverified: without limit, if it need not verify its
    /// address.
    fn allowance(&self, client: Remote, request: &Message<'_>) -> Allowance {
        let ip = IpAddr::V6(client.ip);
        if self.verify.concerns(ip) {
            Allowance::over(length(request.token, request.tail.len()), ip)
        } else {
            Allowance::UNLIMITED
        }
    }

    /// Writes options and payload of a response to `scratch`, unless it needs blocks. Returns whether it needs none and is
    /// small enough even for an unverified client.
    pub(super) fn write_small(&mut self, to: Remote, request: &Message<'_>, response: &Response) -> bool {
        // The response goes in blocks, which depend on the terms of the request.
        if response.size() > self.block {
            return false;
        }
        self.scratch.clear();
        response.options.write(&response.payload, &mut self.scratch);
        length(request.token, self.scratch.len()) <= self.allowance(to, request).room()
    }

    /// Returns the terms of a request, with the client's address marked as verified or as possibly forged.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        from: Remote,
        message: &Message<'_>,
        mut terms: Terms,
    ) -> Terms {
        if self.verify == Verify::Nobody || self.gate.verifies(now, from, message) {
            return terms.verified();
        }
        // A trusted address has no limit, but is not verified: programs on its own host can forge it (decision 0032).
        terms.allowance = self.allowance(from, message);
        terms
    }

    /// Counts a request and logs its `response`, which is `None` if none is sent. `bytes` is the length of the
    /// response's options and payload.
    pub(crate) fn note_answer(
        &mut self,
        responder: &Responder<Remote>,
        response: Option<Code>,
        bytes: usize,
    ) {
        self.requests.count(responder.method, response);
        self.access.answered(&(responder.to, responder.token()), response, bytes);
    }

    /// Returns the handlers to be called because their resource has changed. A handler that is still running is left out,
    /// and called again when it has ended.
    pub(crate) fn due(&mut self) -> Vec<DueHandler> {
        let mut due = Vec::new();
        for (&number, observed) in self.observed.iter_mut().filter(|(_, observed)| !observed.under_way) {
            // Read before the handler is called, so that a change during the call makes it due again.
            let version = observed.resource.version();
            if std::mem::replace(&mut observed.called, version) != version {
                observed.under_way = true;
                due.push(DueHandler { number, from: observed.from, tail: observed.tail.clone() });
            }
        }
        due
    }
}

/// Returns the sequence number with which notifications begin: the time, in units of 8 ms. A server that sends fewer
/// than 125 notifications a second has newer numbers after a restart than before it (RFC 7641 §4.4).
fn first_number() -> u32 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // The sequence keeps 24 bits of this, which wrap around after 37 hours.
    (since.as_millis() / 8) as u32
}
