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
    /// The network between clients and servers: hops that all of them share, or a mesh.
    pub struct NetworkTable completed by hopless, checked by hops_or_mesh {
        /// The version of IP. Headers have 20 bytes in IPv4, and 40 bytes in IPv6.
        ip: Ip, one_of() => Ip::V6;
        /// The largest IP packet in bytes, headers included.
        mtu: u32, Whole(68, 65_535) => 1_280;
        /// Whether hosts send datagrams as ECN-capable, ECT(0), so that a queue may mark them in place of dropping them
        /// (RFC 3168). The simulated TCP does not use ECN, and meshes do not mark.
        ecn_capable: bool, SWITCH => false;
        /// The hops from the clients to the servers, in the order that a packet passes them.
        up: Vec<Hop>, named(16, |hop: &Hop| &hop.name);
        /// The hops from the servers to the clients, in the order that a packet passes them.
        down: Vec<Hop>, named(16, |hop: &Hop| &hop.name);
        /// A mesh of radios in place of hops. Each radio hears some of the others.
        mesh: Option<Mesh>, Or("none", table()) => None;
    }
}

keys! {
    /// CoAP over TCP (RFC 8323), simulated with the TCP of smoltcp: for the mechanism `tcp`, and for transfers whose
    /// protocol is `tcp`.
    pub struct Tcp {
        /// Whether the clients of the workload `continuous` have connected and exchanged their capabilities before the
        /// clock starts. Clients of `random` always connect after it has started.
        connect_first: bool, SWITCH => true;
        /// Whether Nagle's algorithm is on (RFC 896).
        nagle: bool, SWITCH => true;
        /// The longest time for which an acknowledgement waits for data that it can travel with (RFC 9293 §3.8.6.3).
        /// With 0 s it is sent at once.
        delayed_ack: Span, TIME => Span::from_millis(200);
        /// The factor for the timeouts of SYN, in percent. With 100, the first is 1 s, doubling to 60 s; with 200, the
        /// first is 2 s, doubling to 120 s. Timeouts of data do not change: smoltcp's, 1 s to 60 s.
        handshake_timeout_percent: u32, Whole(100, 1_000) => 100;
        /// The ticks per second (HZ) of a Linux kernel since 4.8, which fires timers on a grid. With 250, the grid is
        /// 32 ms for timeouts below 2 s, 256 ms below 16 s, and 2.048 s below 129 s. With "none", timers fire exactly
        /// when they expire.
        timer_hz: Option<u32>, Or("none", Whole(100, 1_000)) => None;
    }
}

words! {
    /// The version of IP.
    pub enum Ip {
        /// IPv4, with a header of 20 bytes.
        V4 = "ipv4",
        /// IPv6, with a header of 40 bytes.
        V6 = "ipv6",
    }
}

impl Ip {
    /// Returns the length of the header in bytes.
    pub const fn header_bytes(self) -> u32 {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }
}

/// Adds empty lists of hops to a network that is a mesh, because `up` and `down` are required keys.
fn hopless(network: &Item) -> Item {
    let mut whole = network.clone();
    if let Some(at) = network.get("mesh").and_then(Item::place_of_table) {
        // Both keys are required, so a mesh gets empty lists. `hops_or_mesh` refuses these without a mesh.
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
        let problem = "cannot be combined with `network.mesh`: a network is hops or a mesh";
        Misfit::unless(!has_mesh || hops.is_empty(), way, problem)?;
    }
    Ok(())
}
