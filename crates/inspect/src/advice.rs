//! Advice from captures: the findings about a network, and the results that each mechanism would have had on it.
//!
//! A *copy* is a transmission of a message, including the first. The *fate* of a copy is to be answered or lost. A
//! [*pair*](pair) is a client and a server, each an address and a port.
//!
//! [`traffic::read`] reads a file in steps: [`capture`] finds its packets, [`headers`] and [`lowpan`] the
//! [datagrams](datagram) in the packets, and [`message`] the CoAP messages in the datagrams. [`exchanges`] joins
//! messages to exchanges, and [`lives`] finds the restarts of clients. Repeated datagrams and the steps of the
//! [`clock`] are removed. [`counts`] has the numbers of packets. [`tshark`] reads packets that this crate cannot.
//!
//! [`fates`] decides which copy each answer belongs to. [`findings`] summarises the traffic, and [`replay`] shows how
//! other mechanisms would have done. [`fit`] searches for the [`link`] on which a simulation of the [`workload`] has
//! the [`measures`] of the capture. [`scenario_file`] writes clients and link as a scenario, and [`remarks`] names the
//! numbers in it that are guesses. [`report`] prints everything as text.

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
pub mod report;
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
