//! Advice from captures: the findings about a network, and what each mechanism would have done on it.
//!
//! A *copy* is a transmission of a message; the first is one, too. A *fate* is what became of a copy: answered or lost. A *pair*
//! is a client and a server, each an address and a port.
//!
//! [`traffic::read`] reads the file: [`capture`] its packets, [`headers`] and [`lowpan`] their [datagrams](datagram), [`message`]
//! what is in these, [`exchanges`] what belongs together, [`lives`] when clients restarted. It tells apart each [`pair`], leaves out what was seen twice
//! and the steps of the [`clock`], and [counts](counts) all packets. [`tshark`] reads what this crate cannot. [`fates`] pairs answers with copies. [`findings`] are what is told of that,
//! [`replay`] what mechanisms would have done. [`fit`] searches the [`link`] on which a simulation of the [`workload`] has the
//! [`measures`] of the capture; [`scenario_file`] writes it down. [`told`] says which of its numbers are guesses.

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
