//! Advice from captures: the findings about a network, and what each mechanism would have done on it.
//!
//! A *copy* is a transmission of a message; the first is one, too. A *fate* is what became of a copy: answered or lost. A *pair*
//! is a client and a server, each an address and a port.
//!
//! [`traffic::read`] reads the file. [`capture`] finds its packets, [`headers`] and [`lowpan`] their [datagrams](datagram), and [`message`]
//! the CoAP messages in these. [`exchanges`] joins messages, and [`lives`] finds the restarts of clients. A client with its server is a
//! [`pair`]. Datagrams that were seen twice, and the steps of the [`clock`], are left out. [`counts`] has the numbers of packets.
//! [`tshark`] reads packets that this crate cannot.
//!
//! [`fates`] pairs answers with copies. [`findings`] sums them up, and [`replay`] shows what mechanisms would have done. [`fit`] searches
//! the [`link`] on which a simulation of the [`workload`] has the [`measures`] of the capture. [`scenario_file`] writes it down, and
//! [`remarks`] names the numbers that are guesses.

pub mod capture;
pub mod clock;
pub mod counts;
pub mod datagram;
pub mod exchanges;
pub mod fates;
pub mod findings;
pub mod fit;
pub mod headers;
pub mod link;
pub mod lives;
pub mod lowpan;
pub mod measures;
pub mod message;
pub mod pair;
pub mod remarks;
pub mod replay;
pub mod scenario_file;
mod sightings;
pub mod simulated;
pub mod statistics;
pub mod timeouts;
pub mod traffic;
#[cfg(test)]
mod truth;
pub mod tshark;
pub mod workload;
