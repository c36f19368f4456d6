//! A client, which sends requests to any number of servers.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, SocketAddrV6, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};

use coapace_control::{Instant, Mechanism};
use coapace_proto::{Code, Config, Message, Responder, Setup};

use crate::address::Remote;
use crate::asker::{Blocks, szx};
use crate::call::Call;
use crate::datagram::driver::{Driver, Service};
use crate::datagram::hub::{Hub, Locked};
use crate::datagram::io::Single;
use crate::datagram::socket::Socket;
use crate::holds::Holds;
use crate::lock::lock;
use crate::secure::{Dtls, Sealed};
use crate::stream::Connections;
use crate::target::{LastTarget, Target};
use crate::undriven::Undriven;
use crate::uri::{BadUri, Host, Uri};
use crate::{Destination, Error, Interceptor, Metrics, Observation, Profile, Refused, Response, Stats};

/// A client. Clones are the same client. Any number of tasks may use it at once. NSTART and the mechanism bound the
/// exchanges with one destination (RFC 7252 §4.7), and further requests wait.
///
/// A server may answer 4.29 Too Many Requests (RFC 8516). Until the Max-Age of that response is over, at least one second and
/// at most a day, the client sends no request of the same method to the same path of that server: it waits and asks again
/// if that fits into the [timeout](Call::timeout) of the request. Otherwise the result is the response, and of further
/// requests [`Error::TooManyRequests`]. Up to 1,024 such paths are remembered.
///
/// A client needs a tokio runtime with I/O and time. It opens a socket with the first request of each [`Profile`] over IPv4,
/// and another with the first over IPv6.
///
/// ```no_run
/// # async fn example() -> Result<(), coapace_net::Error> {
/// let client = coapace_net::Client::new();
/// let response = client.get("coap://[::1]/temperature").await?;
/// println!("{} after {:?}", response.text(), response.elapsed);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Client(pub(crate) Arc<Inner>);

#[derive(Debug, Default)]
pub(crate) struct Inner {
    profile: Profile,
    /// The profiles of destinations that have one of their own, by the host of their URI and the port.
    destinations: BTreeMap<(String, u16), Profile>,
    blocks: Blocks,
    interceptor: Option<Arc<dyn Interceptor>>,
    pub(crate) dtls: Option<Dtls>,
    pub(crate) connections: Connections,
    last: LastTarget,
    pub(crate) holds: Holds,
    /// Set if the thread that waits for a response drives the endpoints. Otherwise tasks drive them.
    undriven: Option<Undriven>,
    hubs: Mutex<Vec<(Profile, Arc<Hub>)>>,
}

/// The most kinds of endpoints of a client. A kind is a profile, with or without DTLS, over IPv4 or IPv6.
const MAX_PROFILES: usize = 16;

/// The most endpoints of one kind. Each has a port and Message IDs of its own. With so many, one peer can be sent 25,000
/// requests a second for ever.
const MAX_PORTS: usize = 128;

/// Sets up a client.
#[derive(Debug, Default)]
pub struct ClientBuilder(pub(crate) Inner);

impl ClientBuilder {
    /// Sets the mechanism of requests that do not [name another](Call::mechanism).
    #[must_use]
    pub fn mechanism(mut self, mechanism: Mechanism) -> Self {
        self.0.profile.mechanism = mechanism;
        self
    }

    /// Sets the transmission parameters of requests that do not [name others](Call::config).
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.0.profile.config = config;
        self
    }

    /// Sets the profile of requests to one destination: the host of a URI, and a port.
    #[must_use]
    pub fn destination(mut self, host: &str, port: u16, profile: Profile) -> Self {
        self.0.destinations.insert((host.to_lowercase(), port), profile);
        self
    }

    /// Sets the largest block of a body that either side shall send, in bytes: 16 to 1024, rounded down to a power of two
    /// (RFC 7959 §2.2). The default is 1024.
    #[must_use]
    pub fn block_size(mut self, bytes: usize) -> Self {
        self.0.blocks.szx = szx(bytes);
        self
    }

    /// Sets the largest accepted body of a response, in bytes. A larger one is
    /// [`TransferError::TooLarge`](crate::TransferError::TooLarge). The default is 16 MiB.
    #[must_use]
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.0.blocks.max_body = bytes;
        self
    }

    /// Sets the interceptor, which sees the datagrams of this client and may drop them.
    #[must_use]
    pub fn interceptor(mut self, interceptor: Arc<dyn Interceptor>) -> Self {
        self.0.interceptor = Some(interceptor);
        self
    }

    /// Builds the client.
    pub fn build(self) -> Client {
        Client(Arc::new(self.0))
    }

    /// Builds a client whose endpoints no task drives: the thread that makes a request does.
    pub(crate) fn build_undriven(mut self) -> Client {
        self.0.undriven = Some(Undriven::default());
        self.build()
    }
}

macro_rules! methods {
    ($($name:ident = $code:ident, $what:literal;)+) => {
        $(
            #[doc = concat!($what, " to be awaited.")]
            pub fn $name(&self, uri: &str) -> Call {
                self.request(Code::$code, uri)
            }
        )+
    };
}

impl Client {
    /// Returns a client with RFC 7252's own congestion control.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a builder with the default settings.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    methods! {
        get = GET, "A GET of the resource at `uri`,";
        post = POST, "A POST to the resource at `uri`,";
        put = PUT, "A PUT to the resource at `uri`,";
        delete = DELETE, "A DELETE of the resource at `uri`,";
        fetch = FETCH, "A FETCH (RFC 8132 §2) of the resource at `uri`,";
        patch = PATCH, "A PATCH (RFC 8132 §3) of the resource at `uri`,";
        ipatch = IPATCH, "An iPATCH (RFC 8132 §3) of the resource at `uri`,";
    }

    /// A request of any method, to be awaited.
    pub fn request(&self, method: Code, uri: &str) -> Call {
        Call::new(self.clone(), method, uri)
    }

    /// A ping with an empty message (RFC 7252 §4.3), to be awaited. The path of `uri` has no effect. The response has the
    /// code 0.00.
    pub fn ping(&self, uri: &str) -> Call {
        self.request(Code::EMPTY, uri)
    }

    /// Observes the resource at `uri` (RFC 7641): [`Call::observe`] of a GET.
    ///
    /// # Errors
    /// The errors of any request, and [`Error::NotObserved`].
    pub async fn observe(&self, uri: &str) -> Result<Observation, Error> {
        self.get(uri).observe().await
    }

    pub(crate) fn target(&self, uri: &str) -> Result<Arc<Target>, BadUri> {
        self.0.last.target(uri)
    }

    /// Returns the state that the thread which drives the endpoints shares with its futures. `None` if tasks drive the
    /// endpoints.
    pub(crate) fn undriven(&self) -> Option<&Undriven> {
        self.0.undriven.as_ref()
    }

    pub(crate) fn blocks(&self) -> Blocks {
        self.0.blocks
    }

    /// Returns the counters, summed over all endpoints of this client.
    pub fn stats(&self) -> Stats {
        Stats::of(self.hubs().iter().map(|(_, hub)| hub))
    }

    /// Returns the metrics of this client, over all of its endpoints.
    pub fn metrics(&self) -> Metrics {
        Metrics::of(self.hubs().iter().map(|(_, hub)| hub))
    }

    /// Returns the destinations that exchanges have ended with, each with its profile.
    pub fn destinations(&self) -> Vec<(Profile, Destination)> {
        let mut known = Vec::new();
        for (profile, hub) in &*self.hubs() {
            let state = hub.lock();
            let each = state.destinations.estimated(|remote| state.endpoint.gauges(remote));
            known.extend(each.map(|destination| (*profile, destination)));
        }
        known
    }

    fn hubs(&self) -> std::sync::MutexGuard<'_, Vec<(Profile, Arc<Hub>)>> {
        lock(&self.0.hubs)
    }

    /// Returns the profile of requests to this URI that name none.
    pub(crate) fn profile_of(&self, uri: &Uri) -> &Profile {
        if self.0.destinations.is_empty() {
            return &self.0.profile;
        }
        let host = match &uri.host {
            Host::Address(address, _) => address.to_string(),
            Host::Name(name) => name.clone(),
        };
        self.0.destinations.get(&(host, uri.port)).unwrap_or(&self.0.profile)
    }

    /// Returns the address of the server that a URI names.
    pub(crate) async fn resolve(&self, uri: &Uri) -> Result<SocketAddr, Error> {
        match &uri.host {
            Host::Address(IpAddr::V6(address), Some(zone)) => match zone.parse() {
                Ok(scope) => Ok(SocketAddrV6::new(*address, uri.port, 0, scope).into()),
                // The resolver knows the names of interfaces.
                Err(_) => self.look_up(&format!("{address}%{zone}"), uri.port).await,
            },
            Host::Address(address, _) => Ok(SocketAddr::new(*address, uri.port)),
            Host::Name(name) => self.look_up(name, uri.port).await,
        }
    }

    async fn look_up(&self, host: &str, port: u16) -> Result<SocketAddr, Error> {
        if self.0.undriven.is_some() {
            return first(host, (host, port).to_socket_addrs());
        }
        first(host, Box::pin(tokio::net::lookup_host((host, port))).await)
    }

    /// Returns an endpoint of this profile for requests to `address`, and opens it if there is none. Its datagrams go
    /// through DTLS if `secure`.
    pub(crate) fn hub(
        &self,
        profile: &Profile,
        secure: bool,
        address: SocketAddr,
    ) -> Result<Arc<Hub>, Error> {
        let mut hubs = self.hubs();
        let kind = (profile, secure, address.is_ipv6());
        let serves = |open: &&(Profile, Arc<Hub>)| kind_of(open) == kind && !open.1.is_closing();
        // An endpoint whose Message IDs are used up is not used, because the peer remembers them. The Message IDs of another
        // port are new to the peer.
        if let Some((_, hub)) = hubs.iter().filter(serves).find(|(_, hub)| hub.has_message_ids(address)) {
            if let Some(undriven) = &self.0.undriven {
                undriven.drive(hub);
            }
            return Ok(hub.clone());
        }
        // Endpoints whose runtime has ended are closing.
        hubs.retain(|(_, hub)| !hub.is_closing());
        let first = hubs.iter().find(serves).map(|(_, hub)| hub.clone());
        match first {
            Some(first) if hubs.iter().filter(serves).count() >= MAX_PORTS => return Ok(first),
            None if kinds(&hubs) >= MAX_PROFILES => return Err(Error::TooManyProfiles),
            _ => {}
        }
        let mut socket = Socket::open(address).map_err(Error::Io)?;
        socket.interceptor.clone_from(&self.0.interceptor);
        let setup = Arc::new(Setup { controller: profile.mechanism, config: profile.config });
        let dtls = match &self.0.dtls {
            None if secure => return Err(Error::Session(Refused::NoKeys)),
            dtls => dtls.as_ref().filter(|_| secure),
        };
        let hub = Hub::new(socket, setup, dtls).map_err(Error::Io)?;
        match &self.0.undriven {
            Some(undriven) => undriven.drive(&hub),
            None => run(hub.clone()),
        }
        hubs.push((*profile, hub.clone()));
        Ok(hub)
    }
}

/// Returns the profile of an endpoint, and whether its socket has DTLS and IPv6.
fn kind_of((profile, hub): &(Profile, Arc<Hub>)) -> (&Profile, bool, bool) {
    (profile, hub.is_secure(), hub.socket.v6)
}

/// Returns the number of kinds of these endpoints.
fn kinds(hubs: &[(Profile, Arc<Hub>)]) -> usize {
    let is_first = |&at: &usize| !hubs[..at].iter().any(|before| kind_of(before) == kind_of(&hubs[at]));
    (0..hubs.len()).filter(is_first).count()
}

/// Spawns the driver of an endpoint.
fn run(hub: Arc<Hub>) {
    if let Some(sessions) = &hub.sessions {
        let driver = Driver::new(hub.clone(), Sealed::over(sessions), ClientService);
        tokio::spawn(driver.run());
        return;
    }
    tokio::spawn(Driver::new(hub, Single::default(), ClientService).run());
}

impl Drop for Inner {
    fn drop(&mut self) {
        let hubs = self.hubs.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (_, hub) in hubs {
            hub.close();
        }
    }
}

/// Returns the first address that the resolver found.
fn first(
    host: &str,
    found: std::io::Result<impl IntoIterator<Item = SocketAddr>>,
) -> Result<SocketAddr, Error> {
    let first = found.and_then(|found| found.into_iter().next().ok_or(std::io::ErrorKind::NotFound.into()));
    first.map_err(|error| Error::NotFound { host: host.into(), error })
}

/// The service of a client's driver. It answers every request 5.01.
#[derive(Debug)]
pub(crate) struct ClientService;

impl Service for ClientService {
    fn expects(&self, state: &Locked) -> bool {
        state.endpoint.exchanges() > 0 || !state.waiting.is_empty() || !state.groups.is_empty()
    }

    fn request(&mut self, hub: &Arc<Hub>, now: Instant, responder: Responder<Remote>, _: &Message<'_>) {
        let response = Response::new(Code::NOT_IMPLEMENTED);
        hub.lock().respond(now, responder, &response);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use coapace_control::Draw;

    use super::*;

    /// Answers 4.04 to whatever comes, and remembers ports and Message IDs. Fails if one comes twice.
    async fn remember(socket: tokio::net::UdpSocket, requests: usize) -> HashSet<u16> {
        let (mut known, mut ports) = (HashSet::new(), HashSet::new());
        let mut bytes = [0; 64];
        for _ in 0..requests {
            let (_, from) = socket.recv_from(&mut bytes).await.unwrap();
            assert!(known.insert((from.port(), [bytes[2], bytes[3]])), "a Message ID has come back");
            ports.insert(from.port());
            let mut answer = bytes[..4 + usize::from(bytes[0] & 15)].to_vec();
            (answer[0], answer[1]) = (0x60 | bytes[0] & 15, Code::NOT_FOUND.0);
            socket.send_to(&answer, from).await.unwrap();
        }
        ports
    }

    /// Uses up Message IDs towards a peer with pings, which are answered here.
    fn ping(hub: &Hub, to: Remote, count: usize) {
        let mut state = hub.lock();
        for _ in 0..count {
            let (now, mut ping) = (hub.clock.now(), Vec::new());
            state.endpoint.ping(now, to).unwrap();
            state.endpoint.poll_transmit(now, |_| Draw::ZERO, &mut ping).unwrap();
            state.endpoint.handle_datagram(now, to, &[0x70, 0, ping[2], ping[3]]);
        }
    }

    #[tokio::test]
    async fn a_peer_is_asked_from_another_port_before_message_ids_come_back() {
        let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let uri = format!("coap://{address}/x");
        let server = tokio::spawn(remember(socket, 50));
        let client = Client::new();
        for _ in 0..50 {
            client.get(&uri).await.unwrap();
            let hubs: Vec<_> = client.hubs().iter().map(|(_, hub)| hub.clone()).collect();
            let last = hubs.last().unwrap();
            ping(last, last.socket.remote(address), 4_000);
        }
        // Each port has 49,152 at least, and fewer than 65,536.
        let ports = server.await.unwrap().len();
        assert!((4..=5).contains(&ports), "200,050 messages from {ports} ports");
        let hubs = client.hubs();
        assert_eq!((hubs.len(), kinds(&hubs)), (ports, 1));
    }
}
