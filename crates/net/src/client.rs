//! A client, which sends requests to any number of servers.

use std::net::IpAddr;
use std::sync::Arc;

use coapace_control::Mechanism;
use coapace_proto::{Code, Config};

use crate::asker::szx;
use crate::call::Call;
use crate::endpoints::Endpoints;
use crate::uri::{BadUri, Uri};
use crate::{Destination, Error, Interceptor, Metrics, Observation, Profile, Stats};

/// A CoAP client. Clones are the same client. Any number of tasks may use it at once. NSTART and the mechanism limit
/// the exchanges with one destination (RFC 7252 §4.7), and further requests wait.
///
/// A server may answer 4.29 Too Many Requests (RFC 8516). For the Max-Age of that response, at least one second and at
/// most a day, the client sends no request of the same method to the same path of that server: a call waits and repeats
/// its request if that fits into its [timeout](Call::timeout). Otherwise its result is the 4.29 response, and further
/// calls fail with [`Error::TooManyRequests`]. Up to 1,024 such paths are remembered.
///
/// If a name has several addresses, requests try one after the other until one answers: over UDP after the first timeout or
/// ICMP error, over TCP after 250 ms or a refusal (RFC 8305 §5). Later requests go to the address that has answered.
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
pub struct Client(pub(crate) Arc<Endpoints>);

/// Configures a client.
#[derive(Debug, Default)]
pub struct ClientBuilder(pub(crate) Endpoints);

impl ClientBuilder {
    /// Sets the mechanism of all requests that do not choose [their own](Call::mechanism).
    #[must_use]
    pub fn mechanism(mut self, mechanism: Mechanism) -> Self {
        self.0.profile.mechanism = mechanism;
        self
    }

    /// Sets the mechanism for the blocks of a body, several of which are requested at once. The default is `tide`. `None`
    /// requests one block after the other, like single exchanges.
    #[must_use]
    pub fn bulk(mut self, mechanism: Option<Mechanism>) -> Self {
        self.0.profile.bulk = mechanism;
        self
    }

    /// Sets the transmission parameters of all requests that do not choose [their own](Call::config).
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.0.profile.config = config;
        self
    }

    /// Sets the profile of requests to one destination: the host of a URI, and a port.
    #[must_use]
    pub fn destination(mut self, host: &str, port: u16, profile: Profile) -> Self {
        // Hosts are compared without case (RFC 3986 §3.2.2). A parsed URI has them in lower case.
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

    /// Sets the largest accepted body of a response, in bytes. A larger body fails with
    /// [`TransferError::TooLarge`](crate::TransferError::TooLarge). The default is 16 MiB.
    #[must_use]
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.0.blocks.max_body = bytes;
        self
    }

    /// Sets the forward proxy (RFC 7252 §5.7.2) that all requests go to, such as `coap://[::1]:5683`. The scheme of
    /// this URI selects the transport to the proxy. The URI of a request names the resource. The proxy gets it as
    /// Proxy-Scheme and the parts of the URI, or as Proxy-Uri if the scheme is not CoAP's, such as
    /// `http://example.org/`. Pings go to the proxy itself, and every request uses the profile of the proxy.
    ///
    /// # Errors
    /// The reason why `uri` is not a URI, or [`BadUri::PathOfProxy`].
    pub fn proxy(mut self, uri: &str) -> Result<Self, BadUri> {
        let uri: Uri = uri.parse()?;
        // Each request has a path of its own, so a path of the proxy would be lost.
        if !uri.path.is_empty() || !uri.query.is_empty() {
            return Err(BadUri::PathOfProxy);
        }
        self.0.proxy = Some(uri);
        Ok(self)
    }

    /// Sets the interceptor, which sees the datagrams of this client and may drop them.
    #[must_use]
    pub fn interceptor(mut self, interceptor: Arc<dyn Interceptor>) -> Self {
        self.0.interceptor = Some(interceptor);
        self
    }

    /// Makes every request end at once if the network reports that its destination cannot be reached (ICMP), or the
    /// system refuses to send. Without this call, the error does not end the request, because a later datagram may
    /// arrive: the server may be starting. Requests are then retransmitted as if there were no error (RFC 7252 §4.2),
    /// and if they fail, the error is reported as the reason. Connections are not affected: a refused one always fails
    /// at once.
    #[must_use]
    pub fn fail_fast(mut self) -> Self {
        self.0.fails_fast = true;
        self
    }

    /// Sets the addresses of a name, which replace the addresses from the system's resolver.
    #[must_use]
    pub fn resolve(mut self, name: &str, addresses: &[IpAddr]) -> Self {
        self.0.names.insert(name.to_lowercase(), addresses.to_vec());
        self
    }

    /// Builds the client.
    pub fn build(self) -> Client {
        Client(Arc::new(self.0))
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
    /// Returns a client with RFC 7252's congestion control.
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

    /// Returns a request of any method, which is sent when it is awaited.
    pub fn request(&self, method: Code, uri: &str) -> Call {
        Call::new(self.0.clone(), method, uri)
    }

    /// Returns a ping with an empty message (RFC 7252 §4.3), which is sent when it is awaited. The path of `uri` has no
    /// effect. The response has the code 0.00.
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

    /// Returns the counters, summed over all endpoints of this client.
    pub fn stats(&self) -> Stats {
        Stats::of(self.0.hubs().iter())
    }

    /// Returns the metrics of this client, over all of its endpoints.
    pub fn metrics(&self) -> Metrics {
        Metrics::of(self.0.hubs().iter())
    }

    /// Returns the destinations of all ended exchanges, each with its profile.
    pub fn destinations(&self) -> Vec<(Profile, Destination)> {
        let mut known = Vec::new();
        // A destination of requests with two profiles is listed twice, because each has estimates of its own.
        for hub in &*self.0.hubs() {
            let state = hub.lock();
            let endpoint = &state.endpoint;
            let bulk = |remote| endpoint.bulk_limits(remote).zip(endpoint.bulk_gauges(remote));
            let each = state.destinations.estimated(|remote| endpoint.gauges(remote), bulk);
            known.extend(each.map(|destination| (hub.profile, destination)));
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use coapace_control::Draw;

    use super::*;
    use crate::address::Remote;
    use crate::datagram::hub::Hub;
    use crate::endpoints::kinds;

    /// Answers every request 4.04, and remembers ports and Message IDs. Fails if a Message ID of a port is repeated.
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
    async fn a_client_changes_its_port_before_message_ids_repeat() {
        let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let uri = format!("coap://{address}/x");
        let server = tokio::spawn(remember(socket, 50));
        let client = Client::new();
        for _ in 0..50 {
            client.get(&uri).await.unwrap();
            let hubs = client.0.hubs().clone();
            let last = hubs.last().unwrap();
            ping(last, last.socket.remote(address), 4_000);
        }
        // Each port has 49,152 at least, and fewer than 65,536.
        let ports = server.await.unwrap().len();
        assert!((4..=5).contains(&ports), "200,050 messages from {ports} ports");
        let hubs = client.0.hubs();
        assert_eq!((hubs.len(), kinds(&hubs)), (ports, 1));
    }
}
