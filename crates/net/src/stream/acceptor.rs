//! The layers between TCP and the messages of a server.

use std::io;
use std::sync::Arc;

use tokio::net::TcpStream;

use super::bytes::ByteWire;
use super::websocket::WebSocketWire;
use super::wire::{ByteStream, Wire};
use crate::identity::Identity;
use crate::secure::ServerTls;

/// The layers over the TCP connections of a server: TLS, a WebSocket, both or none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acceptor {
    pub(crate) tls: Option<ServerTls>,
    pub(crate) ws: bool,
}

impl Acceptor {
    /// Returns the scheme of the server's URIs.
    pub(crate) fn scheme(&self) -> &'static str {
        match (self.tls.is_some(), self.ws) {
            (false, false) => "coap+tcp",
            (true, false) => "coaps+tcp",
            (false, true) => "coap+ws",
            (true, true) => "coaps+ws",
        }
    }

    pub(super) async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<(Box<dyn Wire>, Option<Arc<Identity>>)> {
        // Each message is written at once, so Nagle's algorithm would only delay it.
        let _ = stream.set_nodelay(true);
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let _ = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT);
        let (stream, identity): (Box<dyn ByteStream>, _) = match &self.tls {
            None => (Box::new(stream), None),
            Some(tls) => tls.accept(stream).await?,
        };
        // The WebSocket is inside of TLS (RFC 8323 §8.4).
        if self.ws {
            return Ok((Box::new(WebSocketWire::accept(stream).await?), identity));
        }
        Ok((Box::new(ByteWire::new(stream)), identity))
    }
}

/// The maximum number of bytes of a connection that may be queued in the kernel before TCP sends them. Otherwise the
/// kernel would queue megabytes for a client that does not read, outside of any budget, and notifications would be old
/// when they arrive.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNSENT: u32 = 32 << 10;
