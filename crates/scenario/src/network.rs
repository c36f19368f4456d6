//! The keys of the network: hops or a mesh, under UDP and TCP.

use coapace_sim::Span;

use crate::hops::Hop;
use crate::mesh::Mesh;
use crate::schema::document::{Item, TomlValue};
use crate::schema::kind::Or;
use crate::schema::scalar::{SWITCH, TIME, Whole, one_of};
use crate::schema::table::{Misfit, keys, named, table};
use crate::schema::words::words;

keys! {
    /// The network: all clients at one end, the servers at the other, the same hops for everyone; or a mesh.
    pub struct NetworkTable completed by hopless, checked by hops_or_mesh {
        /// The version of IP: it decides the header, 20 or 40 bytes.
        ip: Ip, one_of() => Ip::V6;
        /// The largest IP packet in bytes, headers included.
        mtu: u32, Whole(68, 65_535) => 1_280;
        /// Whether hosts send datagrams as ECN-capable, ECT(0), so that a queue may mark them (RFC 3168). The simulated TCP does
        /// not know ECN, and meshes do not mark.
        ecn_capable: bool, SWITCH => false;
        /// The hops from the clients to the servers, in the order that a packet passes them.
        up: Vec<Hop>, named(16, |hop: &Hop| &hop.name);
        /// The hops from the servers to the clients, in the order that a packet passes them.
        down: Vec<Hop>, named(16, |hop: &Hop| &hop.name);
        /// A mesh of radios in place of hops. Each hears some of the others.
        mesh: Option<Mesh>, Or("none", table()) => None;
    }
}

keys! {
    /// CoAP over TCP (RFC 8323), simulated with the TCP of smoltcp. Used by the mechanism `tcp` only.
    pub struct Tcp {
        /// Whether the clients of the workload `continuous` have their connection, and the capabilities exchanged, before
        /// the clock starts. Those of `random` always connect within.
        connect_first: bool, SWITCH => true;
        /// Nagle's algorithm (RFC 896).
        nagle: bool, SWITCH => true;
        /// The time that an acknowledgement waits for data to travel with (RFC 9293 §3.8.6.3); 0 s delays none.
        delayed_ack: Span, TIME => Span::from_millis(200);
        /// The timeout of the first SYN is 1 s, doubling to 60 s; this multiplies it: 200 makes it 2 s, doubling to 120 s.
        /// Timeouts of data are smoltcp's, 1 s to 60 s.
        handshake_timeout_percent: u32, Whole(100, 1_000) => 100;
        /// The ticks per second of a Linux kernel since 4.8, whose timers fire on a grid: at 250, every 32 ms for timeouts below
        /// 2 s, every 256 ms below 16 s, every 2.048 s below 129 s. With "none" they fire when they expire.
        timer_hz: Option<u32>, Or("none", Whole(100, 1_000)) => None;
    }
}

words! {
    /// The version of IP.
    pub enum Ip {
        /// Header of 20 bytes.
        V4 = "ipv4",
        /// Header of 40 bytes.
        V6 = "ipv6",
    }
}

impl Ip {
    /// Bytes of the header.
    pub const fn header_bytes(self) -> u32 {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }
}

/// A mesh has no hops.
fn hopless(network: &Item) -> Item {
    let mut whole = network.clone();
    if let Some(at) = network.get("mesh").and_then(Item::place_of_table) {
        for way in ["up", "down"] {
            whole.get_or_insert(way, at, TomlValue::List(Vec::new()));
        }
    }
    whole
}

fn hops_or_mesh(network: &NetworkTable) -> Result<(), Misfit> {
    let has_mesh = network.mesh.is_some();
    for (way, hops) in [("up", &network.up), ("down", &network.down)] {
        let problem = "must be 1 to 16 tables, each with a `name` of its own, not none";
        Misfit::unless(has_mesh || !hops.is_empty(), way, problem)?;
        let problem = "does not go with `network.mesh`: a network is hops or a mesh";
        Misfit::unless(!has_mesh || hops.is_empty(), way, problem)?;
    }
    Ok(())
}
