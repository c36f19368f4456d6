//! A discrete-event network simulator. It contains no experiments: the caller brings the nodes, the network and the
//! taps.
//!
//! A [`Network`] is made of [`Hop`]s, each composed of effects (rate and buffer, delay, loss, jitter, reordering), and
//! of paths over them between [`Site`]s. A [`World`] puts [`Node`]s at the sites and lets time pass.
//!
//! # Words
//!
//! * **node**: a simulated host, which sends and receives packets.
//! * **site**: a location in a network. The nodes of a site share its paths.
//! * **medium**: whatever carries packets between nodes: a [`Network`], or a [`Mesh`](mesh::Mesh) of radios.
//! * **mark**: the exchange and transmission that a packet belongs to. It travels with the packet, outside its bytes.
//! * **luck**: the source of all random numbers of a run ([`Luck`]). A number depends on the seed, its purpose and its key
//!   alone, so two runs that differ in one thing have the same random numbers in all others.
//! * **tap**: an observer of a run, which sees every event and changes none ([`Tap`]).
//!
//! # Example
//!
//! ```
//! use coapace_sim::{Accounting, Hop, Jitter, Luck, Mark, Network, Node, NodeId, Outgoing, PacketCounters};
//! use coapace_sim::{Rate, Site, Span, Time, Transport, World};
//!
//! /// Sends one packet to node 1.
//! struct Host(Option<NodeId>);
//!
//! impl Node for Host {
//!     fn handle_datagram(&mut self, now: Time, _: NodeId, _: Mark, bytes: &[u8]) {
//!         // 38 bytes at 60 kbit/s, 200 ms and 10 ms.
//!         assert_eq!((now, bytes), (Time::from_nanos(215_066_667), &b"0123456789"[..]));
//!     }
//!     fn handle_timeout(&mut self, _: Time) {}
//!     fn poll_transmit(&mut self, _: Time, buffer: &mut Vec<u8>) -> Option<Outgoing> {
//!         let to = self.0.take()?;
//!         buffer.extend_from_slice(b"0123456789");
//!         Some(Outgoing { to, mark: Mark::default(), transport: Transport::Udp })
//!     }
//!     fn poll_timeout(&self) -> Option<Time> {
//!         None
//!     }
//! }
//!
//! const CLIENTS: Site = Site(0);
//! const SERVER: Site = Site(1);
//!
//! let mut network = Network::new(Luck::new(1), Accounting::Ipv4);
//! let rate = Some(Rate { bits_per_second: 60_000, capacity_bytes: 2_500 });
//! let up = network.add_hop("up", Hop { rate, delay: Span::from_millis(200), ..Hop::default() })?;
//! let jitter = Some(Jitter { min: Span::from_millis(10), max: Span::from_millis(10) });
//! let in_front = network.add_hop("in front of the server", Hop { jitter, ..Hop::default() })?;
//! network.connect(CLIENTS, SERVER, &[up, in_front])?;
//!
//! let mut world = World::new(network, PacketCounters::new());
//! world.add(CLIENTS, Host(Some(NodeId(1))));
//! world.add(SERVER, Host(None));
//! world.wake_all();
//! world.run(Time::from_secs(10));
//! assert_eq!(world.tap().delivered, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod accounting;
mod copies;
mod events;
mod fifo;
mod hop;
mod jitter;
mod loss;
mod luck;
mod medium;
pub mod mesh;
pub mod mobility;
mod named;
mod network;
mod node;
mod packet;
mod position;
mod queue;
mod rate;
mod route;
mod scattered;
mod span;
mod tap;
mod taps;
pub mod tcp;
mod time;
pub mod topology;
mod world;

pub use accounting::Accounting;
pub use events::Events;
pub use hop::{Hop, HopError, HopId};
pub use jitter::{Jitter, Reordering};
pub use loss::{Loss, Markov};
pub use luck::{Luck, Stream, fnv1a};
pub use medium::{Arrival, Medium, MediumContext, MediumEvents};
pub use network::Network;
pub use node::{Ecn, Mark, Node, NodeId, Outgoing, Transport};
pub use position::{Layout, Position, Waypoint};
pub use queue::{CodelConfig, FqCodelConfig, PieConfig, Queue, RedConfig};
pub use rate::Rate;
pub use route::{PathError, Site};
pub use span::Span;
pub use tap::{Event, NodeEvent, Record, Tap};
pub use taps::{
    CaptureFile, HopCounters, MeshPcapng, PacketCounters, Pcapng, QueueSeries, Trace, TraceHash, udp_packet,
};
pub use time::Time;
pub use world::{Summary, World};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
