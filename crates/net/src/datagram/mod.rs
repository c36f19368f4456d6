//! Endpoints on UDP sockets, with DTLS or without.
//!
//! A [`Hub`](hub::Hub) is an endpoint with its [`Socket`](socket::Socket), its clock, and those who wait for its exchanges,
//! behind one lock. A [`Driver`](driver::Driver) is the loop that receives for a hub and keeps its timers;
//! [`Watch`](watch::Watch) is what it waits with. Datagrams pass through a [`DatagramIo`](io::DatagramIo): one for each call of
//! the system, many ([`batch`]), or sealed into records of DTLS.
//!
//! A server's driver hands requests to [`Serving`](serving::Serving). [`Answers`](answers::Answers) is the part of its hub
//! that only servers use, with the responses to groups that wait ([`leisure`]).
pub(crate) mod answers;
#[cfg(target_os = "linux")]
pub(crate) mod batch;
pub(crate) mod driver;
pub(crate) mod hub;
pub(crate) mod io;
mod leisure;
pub(crate) mod serving;
pub(crate) mod socket;
mod watch;
