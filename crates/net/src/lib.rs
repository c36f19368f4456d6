//! CoAP on real sockets: clients and servers for tokio, with the congestion control of one's choice.
//!
//! A [`Client`] asks, a [`Server`] answers what its [`Router`] leads to. Both run the endpoint of [`coapace_proto`] with
//! a mechanism of [`coapace_control`], named at run time: `"fasor"`, `"cocoa:max_rto=10s"`.
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
//! A *hub* is an endpoint with its socket, its clock and those who wait for its exchanges, behind one lock. A *driver*
//! is the loop that receives for a hub and keeps its timers. A client's task sends by itself, and is woken by the
//! driver; a server's driver calls handlers where it received, and answers whole batches with one call of the system.
//! Datagrams move through a *carrier*: one for each call of the system, or many.
//!
//! DTLS is a carrier whose datagrams are the plaintext of records; its sessions lie between the endpoint and the socket,
//! and begin before the first request is sent, so that no handshake is taken for a round trip. TCP, TLS and WebSockets have no
//! retransmissions here and no endpoint of this kind: their connections are over [`coapace_proto::stream`], with the same
//! [`Router`] before them and the same [`Call`] behind them, and no mechanism.
//!
//! A client has one port for each profile, as long as Message IDs last: towards one peer an endpoint has 65,536 of them in
//! EXCHANGE_LIFETIME (RFC 7252 §4.4), 265 a second. Whoever asks faster is given further ports, each an endpoint of its own.
//!
//! It runs on Unix. On Linux a datagram is answered from the address it came to, servers [join groups](Membership), ICMP ends requests that cannot arrive,
//! and the system is called for batches.
mod access;
mod address;
mod answers;
mod asker;
#[cfg(target_os = "linux")]
mod batch;
pub mod blocking;
mod budget;
mod call;
mod carrier;
#[cfg(feature = "tls")]
mod certificates;
mod client;
mod clock;
#[cfg(feature = "dtls")]
mod cookie;
mod driver;
#[cfg(feature = "dtls")]
mod dtls;
mod error;
mod exposition;
mod group;
mod handler;
mod hub;
mod identity;
mod inbox;
mod kept;
mod leisure;
mod limits;
mod log;
mod membership;
mod message_ids;
mod metrics;
mod observation;
mod profile;
mod progress;
mod rejection;
mod request;
mod requests;
mod resource;
mod response;
mod router;
mod server;
mod serving;
#[cfg(feature = "dtls")]
mod session;
#[cfg(feature = "dtls")]
mod session_table;
#[cfg(feature = "dtls")]
mod sessions;
mod socket;
mod stats;
#[cfg(feature = "tcp")]
mod stream;
mod tap;
mod target;
mod terms;
pub mod uri;
mod waiting;
mod watch;

pub use answers::Verify;
pub use budget::Budget;
pub use call::Call;
#[cfg(feature = "tls")]
pub use certificates::{BadCertificate, Certificates, TlsError};
pub use client::{Client, ClientBuilder};
pub use coapace_control::Mechanism;
pub use coapace_proto::block::{Bounds, TransferError, Transferred};
pub use coapace_proto::{Code, Config, Histogram, Measures, Options, link_format};
#[cfg(feature = "dtls")]
pub use dtls::{Dtls, DtlsCounters, Refused};
pub use error::Error;
pub use group::Group;
#[cfg(feature = "tls")]
pub use identity::Certificate;
pub use identity::Identity;
pub use membership::{
    ALL_COAP_NODES, ALL_COAP_NODES_LINK_LOCAL, ALL_COAP_NODES_SITE_LOCAL, Membership, NoGroup, NotJoined,
};
pub use metrics::Metrics;
pub use observation::Observation;
pub use profile::Profile;
pub use rejection::Rejection;
pub use request::Request;
pub use requests::Requests;
pub use resource::Resource;
pub use response::Response;
pub use router::Router;
pub use server::{Server, ServerConfig, ServerHandle};
pub use stats::{Destination, NetCounters, Stats};
#[cfg(feature = "tcp")]
pub use stream::TcpCounters;
pub use tap::{Datagram, Direction, Tap};
pub use uri::Uri;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
