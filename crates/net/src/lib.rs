//! CoAP on real sockets: clients and servers for tokio, with a choice of congestion control.
//!
//! A [`Client`] sends requests. A [`Server`] answers requests with the handlers of its [`Router`]. Both use the endpoint of
//! [`coapace_proto`] with a mechanism of [`coapace_control`], which is chosen at run time by its name: `"fasor"`,
//! `"cocoa:max_rto=10s"`.
//!
//! ```
//! use coapace_net::{Client, Mechanism, Rejection, Request, Response, Router, Server};
//!
//! async fn temperature(_: Request) -> Result<Response, Rejection> {
//!     Ok(Response::content("21.5"))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::bind("127.0.0.1:0")?;
//! let uri = format!("coap://{}/temperature", server.local_addr()?);
//! tokio::spawn(server.serve(Router::new().get("/temperature", temperature)));
//!
//! let fasor: Mechanism = "fasor".parse()?;
//! let client = Client::builder().mechanism(fasor).build();
//! let response = client.get(&uri).await?;
//! assert_eq!(response.text(), "21.5");
//! # Ok(())
//! # }
//! ```
//!
//! # How it is built
//!
//! * `datagram/`: endpoints on UDP sockets. A *hub* is an endpoint with its socket, its clock and the tasks that wait for
//!   its exchanges, behind one lock. A *driver* is the loop that receives for a hub and keeps its timers. A task that makes
//!   a request sends it by itself, and the driver wakes the task when the response arrives. A server's driver calls handlers
//!   as it receives requests, and sends the responses of a batch with one system call.
//! * `stream/`: connections over TCP, TLS and WebSockets, with [`coapace_proto::stream`]. They have no retransmissions, no
//!   endpoint and no mechanism.
//! * `conversation/`: the part of a server that is common to datagrams and connections: block-wise transfers, Observe, the
//!   limit of waiting handlers.
//! * `secure/`: DTLS and TLS, with the feature `tls`. DTLS sessions are between an endpoint and its socket. A session is opened
//!   before the first request is sent, so that the handshake is not measured as part of a round trip.
//!
//! Servers of both kinds call handlers through the same [`Router`]. Requests of both kinds are made with the same [`Call`].
//!
//! A client has one endpoint, with one port, for each [`Profile`]. Towards one peer an endpoint has 65,536 Message IDs in
//! EXCHANGE_LIFETIME (RFC 7252 §4.4), which is 265 a second. A client that sends requests faster opens further endpoints.
//!
//! The crate runs on Unix. Only on Linux, a datagram is answered from the address it was sent to, servers [join
//! groups](Membership), a client receives ICMP errors, and a server transfers batches of datagrams with one system call.
//!
//! # Words
//!
//! A *stranger* is a client whose address is not verified. A *place* is one of a limited number of slots, such as the
//! slot of a waiting handler. The *tail* of a message is its options and payload. The *terms* of a request are
//! everything that its answer depends on other than the handler, such as the requested block. The *leisure* of a
//! response to a group is its delay (RFC 7252 §8.2). To *publish* is to send a notification to all observers of a
//! resource.
// Code that takes the types of `insecure.rs` is unreachable, because they have no values.
#![cfg_attr(not(feature = "tls"), allow(dead_code, unreachable_code, unused_variables))]

mod access;
mod address;
mod asker;
pub mod blocking;
mod budget;
mod call;
mod candidates;
mod carrier;
mod client;
mod clock;
mod closing;
mod conversation;
mod counter;
mod datagram;
mod destinations;
mod endpoints;
mod error;
mod exposition;
mod group;
mod handler;
mod holds;
mod identity;
mod inbox;
mod interceptor;
mod interface;
mod lock;
mod log;
mod membership;
mod metrics;
mod network;
mod observation;
mod probe;
mod profile;
mod receivers;
mod refusals;
mod rejection;
mod request;
mod resource;
mod response;
mod router;
mod salvage;
#[cfg(feature = "tls")]
mod secure;
#[cfg(not(feature = "tls"))]
#[path = "insecure.rs"]
mod secure;
mod server;
mod started;
mod stats;
mod stream;
mod subscription;
mod target;
mod turns;
mod undriven;
pub mod uri;

pub use budget::Budget;
pub use call::Call;
pub use client::{Client, ClientBuilder};
pub use coapace_control::Mechanism;
pub use coapace_proto::block::{Bounds, Partial, TransferError, Transferred};
pub use coapace_proto::group::least_leisure;
pub use coapace_proto::{BadOption, Code, Config, Histogram, Measures, Options, link_format};
pub use datagram::answers::Verify;
pub use destinations::Destination;
pub use error::{Error, Refused, TlsError};
pub use group::Group;
pub use handler::HandlerFunction;
pub use identity::{Certificate, Identity};
pub use interceptor::{Datagram, Direction, Interceptor};
pub use interface::{BadZone, addresses};
pub use membership::{
    ALL_COAP_NODES, ALL_COAP_NODES_LINK_LOCAL, ALL_COAP_NODES_SITE_LOCAL, Membership, NoGroup, NotJoined,
};
pub use metrics::Metrics;
pub use network::{Network, NoNetwork};
pub use observation::Observation;
pub use profile::Profile;
pub use rejection::Rejection;
pub use request::Request;
pub use resource::Resource;
pub use response::Response;
pub use router::Router;
pub use salvage::Salvage;
#[cfg(feature = "tls")]
pub use secure::{BadCertificate, Certificates, Dtls, DtlsSessions};
pub use server::{Server, ServerConfig, ServerHandle};
pub use started::Started;
pub use stats::{DtlsCounters, NetCounters, Requests, Stats, TcpCounters};
pub use uri::Uri;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
