//! The endpoints and connections of a client, opened when requests need them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use coapace_control::Instant;
use coapace_proto::{Code, Kind, Message, Responder};

use crate::address::Remote;
use crate::asker::Blocks;
use crate::candidates::{AnsweredAddresses, Candidates};
use crate::datagram::driver::{Driver, EndpointRole};
use crate::datagram::hub::{Hub, LockedHub};
use crate::datagram::io::{ANY_DATAGRAM, Single};
use crate::datagram::socket::Socket;
use crate::holds::Holds;
use crate::lock::lock;
use crate::secure::{Dtls, Sealed};
use crate::stream::Connections;
use crate::target::LastTarget;
use crate::undriven::Undriven;
use crate::uri::{Host, Uri};
use crate::{Error, Interceptor, Profile, Refused, Response, interface};

/// The state of a client: its settings, and the endpoints and connections of its requests. The endpoints and
/// connections close when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Endpoints {
    pub(crate) profile: Profile,
    /// The profiles of single destinations, by the host and port of their URIs. Other destinations use `profile`.
    pub(crate) destinations: BTreeMap<(String, u16), Profile>,
    /// The configured addresses of names, which are used instead of the resolver's.
    pub(crate) names: BTreeMap<String, Vec<IpAddr>>,
    pub(crate) answered: AnsweredAddresses,
    /// Set if a network error ends a request at once.
    pub(crate) fails_fast: bool,
    pub(crate) blocks: Blocks,
    pub(crate) interceptor: Option<Arc<dyn Interceptor>>,
    pub(crate) dtls: Option<Dtls>,
    /// The proxy that all requests go to, if one is configured.
    pub(crate) proxy: Option<Uri>,
    pub(crate) connections: Connections,
    pub(crate) last: LastTarget,
    pub(crate) holds: Holds,
    /// Set if the thread that waits for a response drives the endpoints. Otherwise tasks drive them.
    pub(crate) undriven: Option<Undriven>,
    hubs: Mutex<Vec<Arc<Hub>>>,
}

/// The maximum number of kinds of endpoints of a client. A kind is a profile, with or without DTLS, over IPv4 or IPv6.
const MAX_PROFILES: usize = 16;

/// The maximum number of endpoints of one kind. Each has its own port and Message IDs. All of them together can send
/// one peer 25,000 requests a second for any length of time.
const MAX_PORTS: usize = 128;

impl Endpoints {
    pub(crate) fn hubs(&self) -> MutexGuard<'_, Vec<Arc<Hub>>> {
        lock(&self.hubs)
    }

    /// Returns the profile for requests to this URI, which applies unless a request specifies another.
    pub(crate) fn profile_of(&self, uri: &Uri) -> &Profile {
        // Most clients have one profile for all destinations, and need no key for the search.
        if self.destinations.is_empty() {
            return &self.profile;
        }
        self.destinations.get(&(uri.host.to_string(), uri.port)).unwrap_or(&self.profile)
    }

    /// Returns the addresses of a URI's server. If one of several has answered, returns only that one.
    pub(crate) async fn resolve(&self, uri: &Uri) -> Result<Candidates, Error> {
        let name = match &uri.host {
            Host::Address(ip, zone) => {
                return Ok(interface::scoped(*ip, zone.as_deref(), uri.port)?.into());
            }
            Host::Name(name) => name,
        };
        let found = if let Some(known) = self.names.get(name) {
            Candidates::new(known.iter().map(|&ip| SocketAddr::new(ip, uri.port)))
        } else {
            self.look_up(name, uri.port)
                .await
                .map_err(|error| Error::NotFound { host: name.clone(), error })?
        };
        let nothing = || Error::NotFound { host: name.clone(), error: std::io::ErrorKind::NotFound.into() };
        Ok(self.answered.prefer(name, uri.port, found.ok_or_else(nothing)?))
    }

    async fn look_up(&self, host: &str, port: u16) -> std::io::Result<Option<Candidates>> {
        // A blocking client has no runtime, so its own thread asks the resolver.
        if self.undriven.is_some() {
            return Ok(Candidates::new((host, port).to_socket_addrs()?));
        }
        Ok(Candidates::new(Box::pin(tokio::net::lookup_host((host, port))).await?))
    }

    /// Returns an endpoint that reaches all these addresses, and the addresses in the form for its socket.
    pub(crate) fn hub_for_all(
        &self,
        profile: &Profile,
        secure: bool,
        candidates: &Candidates,
    ) -> Result<(Arc<Hub>, Candidates), Error> {
        let all = candidates.in_one_family();
        match (self.hub(profile, secure, all.first), candidates.of_ipv4()) {
            // This host has no IPv6.
            (Err(Error::Io(_)), Some(v4)) => Ok((self.hub(profile, secure, v4.first)?, v4)),
            (hub, _) => Ok((hub?, all)),
        }
    }

    /// Returns an endpoint with this profile for requests to `address`, and opens it if there is none. If `secure`, its
    /// datagrams pass through DTLS.
    pub(crate) fn hub(
        &self,
        profile: &Profile,
        secure: bool,
        address: SocketAddr,
    ) -> Result<Arc<Hub>, Error> {
        let mut hubs = self.hubs();
        let kind = (profile, secure, address.is_ipv6());
        let serves = |hub: &&Arc<Hub>| kind_of(hub) == kind && !hub.closing.has_begun();
        // An endpoint whose Message IDs are used up is not used, because the peer remembers them. The Message IDs of another
        // port are new to the peer.
        if let Some(hub) = hubs.iter().filter(serves).find(|hub| hub.has_message_ids(address)) {
            // The blocked thread has to receive at this endpoint, and not at the one of its last request.
            if let Some(undriven) = &self.undriven {
                undriven.drive(hub);
            }
            return Ok(hub.clone());
        }
        // Endpoints whose runtime has ended are closing.
        hubs.retain(|hub| !hub.closing.has_begun());
        match hubs.iter().find(serves).cloned() {
            // The bound is reached. Requests wait for Message IDs of the first port.
            Some(first) if hubs.iter().filter(serves).count() >= MAX_PORTS => return Ok(first),
            None if kinds(&hubs) >= MAX_PROFILES => return Err(Error::TooManyProfiles),
            _ => {}
        }
        // The socket is of the family of its first destination, so the kinds differ by family.
        let mut socket = Socket::open(address).map_err(Error::Io)?;
        socket.interceptor.clone_from(&self.interceptor);
        let dtls = match &self.dtls {
            None if secure => return Err(Error::Session(Refused::NoKeys)),
            dtls => dtls.as_ref().filter(|_| secure),
        };
        let hub = Hub::new(socket, profile, dtls).map_err(Error::Io)?;
        hub.lock().fails_fast = self.fails_fast;
        match &self.undriven {
            Some(undriven) => undriven.drive(&hub),
            None => run(&hub),
        }
        hubs.push(hub.clone());
        Ok(hub)
    }
}

/// Returns the kind of an endpoint: its profile, whether it uses DTLS, and whether its socket is an IPv6 one.
fn kind_of(hub: &Hub) -> (&Profile, bool, bool) {
    (&hub.profile, hub.is_secure(), hub.socket.v6)
}

/// Returns how many different kinds of endpoints `hubs` has.
pub(crate) fn kinds(hubs: &[Arc<Hub>]) -> usize {
    let is_first = |&at: &usize| !hubs[..at].iter().any(|before| kind_of(before) == kind_of(&hubs[at]));
    (0..hubs.len()).filter(is_first).count()
}

/// Spawns the driver of an endpoint.
fn run(hub: &Arc<Hub>) {
    match &hub.sessions {
        // The transfer is a type, so that the driver has no branch for each datagram.
        Some(sessions) => tokio::spawn(Driver::new(hub.clone(), Sealed::over(sessions), ClientService).run()),
        None => tokio::spawn(Driver::new(hub.clone(), Single::taking(ANY_DATAGRAM), ClientService).run()),
    };
}

impl Drop for Endpoints {
    fn drop(&mut self) {
        let hubs = self.hubs.get_mut().unwrap_or_else(PoisonError::into_inner);
        for hub in hubs {
            hub.close();
        }
    }
}

/// The part of a client's driver that handles requests. It answers confirmable requests with 5.01, because they must be
/// answered or rejected (RFC 7252 §4.2). It ignores non-confirmable requests (§4.3): they may have come to a group,
/// whose members send no errors (§8.2), and for an answer the endpoint might have to forget a peer whose estimate it
/// has learned.
#[derive(Debug)]
pub(crate) struct ClientService;

impl EndpointRole for ClientService {
    fn expects(&self, state: &LockedHub) -> bool {
        state.endpoint.exchanges() > 0 || !state.waiting.is_empty() || !state.groups.is_empty()
    }

    fn request(&mut self, hub: &Arc<Hub>, now: Instant, responder: Responder<Remote>, message: &Message<'_>) {
        if message.kind == Kind::Confirmable {
            let response = Response::new(Code::NOT_IMPLEMENTED);
            hub.lock().respond(now, responder, &response);
        }
    }
}
