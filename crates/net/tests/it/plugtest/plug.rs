//! Client, server, and the wire between them.

use std::future::IntoFuture;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use coapace_net::{Call, Client, Config, Direction, Profile, Response, Router, ServerConfig};

use super::resources::Contents;
use super::seen::Seen;
use super::wire::Wire;
use crate::common::{Running, receive, serve_again, serve_at};

/// The most time that an immediate answer may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// A case under way.
pub(crate) struct Plug {
    pub(crate) client: Client,
    pub(crate) state: Contents,
    pub(crate) wire: Arc<Wire>,
    server: Running,
    config: ServerConfig,
}

impl Drop for Plug {
    fn drop(&mut self) {
        self.wire.finish();
    }
}

impl Plug {
    /// Begins a case. `ack_timeout`, as in `100ms`, holds for both sides; ACK_RANDOM_FACTOR is 1.
    pub(crate) fn begin_with(case: &str, ack_timeout: &str, config: Config) -> Self {
        let timer = format!("default:ack_timeout={ack_timeout},ack_random_factor=1");
        let profile = Profile { mechanism: timer.parse().expect("a mechanism"), config, bulk: None };
        let wire = Arc::new(Wire::new(case));
        let client = Client::builder()
            .mechanism(profile.mechanism)
            .bulk(None)
            .config(profile.config)
            .interceptor(wire.clone())
            .build();
        let acknowledge_after = Duration::from_millis(50);
        let shutdown_timeout = Duration::ZERO;
        let config = ServerConfig {
            cores: 1,
            acknowledge_after,
            shutdown_timeout,
            profile,
            ..ServerConfig::default()
        };
        let state = Contents::default();
        let server = serve_at("127.0.0.1:0", state.router(), config.clone());
        Self { client, state, wire, server, config }
    }

    /// Begins a case with the timers of RFC 7252: they are not to fire.
    pub(crate) fn begin(case: &str) -> Self {
        Self::begin_with(case, "2s", Profile::default().config)
    }

    pub(crate) fn uri(&self, path: &str) -> String {
        self.server.uri(path)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address
    }

    pub(crate) fn get(&self, path: &str) -> Call {
        self.client.get(&self.uri(path))
    }

    /// A PUT of a text.
    pub(crate) fn put(&self, path: &str, text: &str) -> Call {
        self.client.put(&self.uri(path)).content_format(0).payload(text.to_owned())
    }

    /// A POST of a text.
    pub(crate) fn post(&self, path: &str, text: &str) -> Call {
        self.client.post(&self.uri(path)).content_format(0).payload(text.to_owned())
    }

    pub(crate) fn delete(&self, path: &str) -> Call {
        self.client.delete(&self.uri(path))
    }

    /// Returns the response that the client gets.
    pub(crate) async fn response(&self, call: Call) -> Response {
        tokio::time::timeout(PATIENCE, call.into_future()).await.expect("in time").expect("a response")
    }

    /// The next datagram is from the client, and of this name.
    pub(crate) async fn client_sends(&self, name: &str) -> Seen {
        self.passes(Direction::Sent, name).await
    }

    /// The next datagram is from the server, and of this name.
    pub(crate) async fn server_sends(&self, name: &str) -> Seen {
        self.passes(Direction::Received, name).await
    }

    async fn passes(&self, direction: Direction, name: &str) -> Seen {
        let next = self.wire.next(PATIENCE).await;
        let seen = next.unwrap_or_else(|| panic!("{name} does not come"));
        assert_eq!((seen.direction, &*seen.name()), (direction, name), "{seen:?}");
        seen
    }

    /// Nothing passes for this time.
    pub(crate) async fn is_silent(&self, time: Duration) {
        let seen = self.wire.next(time).await;
        assert!(seen.is_none(), "{seen:?}");
    }

    /// The server, which has an observer, is rebooted and has forgotten it.
    pub(crate) async fn reboot_server(&mut self) {
        let address = self.address().to_string();
        self.wire.server_is_off();
        self.server.crash().await;
        // As long as its handle is there, so is its socket.
        self.server = serve_at("127.0.0.1:0", Router::new(), self.config.clone());
        self.server = serve_again(&address, self.state.router(), self.config.clone()).await;
        self.wire.server_is_on(PATIENCE).await;
    }

    /// Sends a datagram that no client of ours would send, and returns what answers it.
    pub(crate) async fn ask_by_hand(&self, bytes: &[u8]) -> Vec<u8> {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        self.wire.note(Direction::Sent, bytes);
        socket.send_to(bytes, self.server.address).expect("sent");
        let answer = receive(&socket, PATIENCE).await.expect("a datagram");
        self.wire.note(Direction::Received, &answer);
        answer
    }
}
