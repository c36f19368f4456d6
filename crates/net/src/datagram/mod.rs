//! Endpoints on UDP sockets, with DTLS or without.
//!
//! A [`Hub`](hub::Hub) is an endpoint with its [`Socket`](socket::Socket), its clock, and the tasks that wait for its
//! exchanges, behind one lock. A [`Driver`](driver::Driver) is the loop that receives for a hub and keeps its timers. It
//! waits with a [`SocketWatch`](watch::SocketWatch). Datagrams pass through a [`DatagramIo`](io::DatagramIo): one with each system call,
//! many ([`batch`]), or sealed into DTLS records.
//!
//! A server's driver hands requests to [`Serving`](serving::Serving). [`Answers`](answers::Answers) is the state of a hub
//! that only servers use, with the delayed responses to groups ([`leisure`]). `answering.rs` answers requests with it.
//! [`Rates`](rates::Rates) bounds the requests of each client.
mod answering;
pub(crate) mod answers;
#[cfg(target_os = "linux")]
pub(crate) mod batch;
pub(crate) mod driver;
#[cfg(target_os = "linux")]
mod family;
pub(crate) mod hub;
pub(crate) mod io;
mod leisure;
mod rates;
pub(crate) mod serving;
pub(crate) mod sets;
pub(crate) mod socket;
mod watch;
