//! Hosts for tests, and the bottleneck of Raitahila 2019 that they share.

use std::collections::VecDeque;

use coapace_sim::{
    Accounting, Hop, Jitter, Loss, Luck, Mark, Network, Node, NodeId, Outgoing, Rate, Site, Span, Tap, Time,
    Transport, World,
};

/// A packet that arrived: its time, sender, mark and bytes.
pub(crate) type Received = (Time, NodeId, Mark, Vec<u8>);

pub(crate) enum Host {
    /// Sends packets at given times, each filled with its number.
    Sender { to: NodeId, packets: VecDeque<(u64, usize)>, sent: u32 },
    /// Sends one packet several times.
    Repeater { to: NodeId, mark: Mark, left: u32 },
    /// Keeps the packets that arrive.
    Sink(Vec<Received>),
    /// Sends the next request when the last is answered, and again each 3 s.
    Client { mark: Mark, due: bool, deadline: Time },
    /// Answers each request.
    Server(VecDeque<(NodeId, Mark)>),
}

impl Host {
    /// Sends packets of these lengths at these times in nanoseconds.
    pub(crate) fn sender(to: NodeId, packets: impl IntoIterator<Item = (u64, usize)>) -> Self {
        let mut packets: Vec<_> = packets.into_iter().collect();
        packets.sort_by_key(|packet| packet.0);
        Self::Sender { to, packets: packets.into(), sent: 0 }
    }

    pub(crate) fn sink() -> Self {
        Self::Sink(Vec::new())
    }

    pub(crate) fn received(&self) -> &[Received] {
        if let Self::Sink(received) = self { received } else { &[] }
    }
}

impl Node for Host {
    fn handle_datagram(&mut self, now: Time, from: NodeId, mark: Mark, bytes: &[u8]) {
        match self {
            Self::Sink(received) => received.push((now, from, mark, bytes.to_vec())),
            Self::Client { mark: own, due, deadline } if own.exchange == mark.exchange => {
                *own = Mark { exchange: own.exchange + 1, transmission: 0 };
                (*due, *deadline) = (true, now + Span::from_secs(3));
            }
            Self::Server(answers) => answers.push_back((from, mark)),
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        if let Self::Client { mark, due, deadline } = self {
            mark.transmission += 1;
            (*due, *deadline) = (true, now + Span::from_secs(3));
        }
    }

    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        let transport = Transport::Udp;
        match self {
            Self::Sender { to, packets, sent } => {
                let &(at, length) = packets.front()?;
                if Time::from_nanos(at) > now {
                    return None;
                }
                packets.pop_front();
                buffer.resize(length, *sent as u8);
                let mark = Mark { exchange: *sent, transmission: 0 };
                *sent += 1;
                Some(Outgoing { to: *to, mark, transport })
            }
            Self::Repeater { to, mark, left } => {
                *left = left.checked_sub(1)?;
                Some(Outgoing { to: *to, mark: *mark, transport })
            }
            Self::Sink(_) => None,
            Self::Client { mark, due, .. } => {
                if !std::mem::take(due) {
                    return None;
                }
                // A CoAP message: CON, GET, Message ID, Uri-Path "abcde".
                let [high, low] = (mark.exchange as u16).to_be_bytes();
                buffer.extend_from_slice(&[0x40, 1, high, low, 0xb5]);
                buffer.extend_from_slice(b"abcde");
                Some(Outgoing { to: NodeId(0), mark: *mark, transport })
            }
            Self::Server(answers) => {
                let (to, mark) = answers.pop_front()?;
                // ACK, 2.05, Message ID, payload.
                let [high, low] = (mark.exchange as u16).to_be_bytes();
                buffer.extend_from_slice(&[0x60, 0x45, high, low, 0xff]);
                buffer.extend_from_slice(&[b'.'; 60]);
                Some(Outgoing { to, mark, transport })
            }
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        match self {
            Self::Sender { packets, .. } => packets.front().map(|packet| Time::from_nanos(packet.0)),
            Self::Client { deadline, .. } => Some(*deadline),
            _ => None,
        }
    }
}

/// The site of the clients of [`bottleneck`].
pub(crate) const FIELD: Site = Site(0);
/// The site of its server.
pub(crate) const ROOM: Site = Site(1);

/// Returns the bottleneck of Raitahila 2019: 60 kbit/s and 200 ms up, 30 kbit/s and 400 ms down, 10 to 20 ms of jitter each
/// way between the router and the server, a buffer and a loss on both links.
pub(crate) fn bottleneck(luck: Luck, accounting: Accounting, capacity_bytes: u64, loss: Loss) -> Network {
    let mut network = Network::new(luck, accounting);
    let mut link = |name, bits_per_second, ms: u64| {
        let rate = Some(Rate { bits_per_second, capacity_bytes });
        network.add_hop(name, Hop { rate, delay: Span::from_millis(ms), loss, ..Hop::default() }).unwrap()
    };
    let (up, down) = (link("up", 60_000, 200), link("down", 30_000, 400));
    let jitter = Some(Jitter { min: Span::from_millis(10), max: Span::from_millis(20) });
    let mut jitter = |name| network.add_hop(name, Hop { jitter, ..Hop::default() }).unwrap();
    let (to, from) = (jitter("to the server"), jitter("from the server"));
    network.connect(FIELD, ROOM, &[up, to]).unwrap();
    network.connect(ROOM, FIELD, &[from, down]).unwrap();
    network
}

/// Returns a world of that bottleneck between the server, node 0, and clients.
pub(crate) fn thesis<T: Tap>(
    seed: u64,
    capacity_bytes: u64,
    loss: Loss,
    clients: u32,
    tap: T,
) -> World<Host, T> {
    thesis_in(Accounting::Ipv4, seed, capacity_bytes, loss, clients, |_| tap)
}

/// Returns the world of [`thesis`] with other headers, and a tap that is made for the network.
pub(crate) fn thesis_in<T: Tap>(
    accounting: Accounting,
    seed: u64,
    capacity_bytes: u64,
    loss: Loss,
    clients: u32,
    tap: impl FnOnce(&Network) -> T,
) -> World<Host, T> {
    let network = bottleneck(Luck::new(seed), accounting, capacity_bytes, loss);
    let tap = tap(&network);
    let mut world = World::new(network, tap);
    world.add(ROOM, Host::Server(VecDeque::new()));
    for _ in 0..clients {
        world.add(FIELD, Host::Client { mark: Mark::default(), due: true, deadline: Time::from_secs(3) });
    }
    world.wake_all();
    world
}
