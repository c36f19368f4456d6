//! A network: hops, the paths made of them, and the packets on them.

mod managed;

use crate::copies::RepetitionCounts;
use crate::hop::{ActiveHop, HopAdmission};
use crate::packet::Header;
use crate::route::{Path, Routes};
use crate::scattered::Scattered;
use crate::{
    Accounting, Arrival, Ecn, Event, Hop, HopError, HopId, Luck, Medium, MediumContext, MediumEvents, NodeId,
    Outgoing, PathError, Record, Site, Span, Tap, Time, Transport,
};

/// A network: hops, paths made of them, and the packets in flight.
///
/// A star around a bottleneck is two sites with a path each way. Paths may share hops. A packet between sites without a
/// path is dropped.
#[derive(Debug)]
pub struct Network {
    luck: Luck,
    accounting: Accounting,
    names: Vec<String>,
    hops: Vec<ActiveHop>,
    routes: Routes,
    scattered: Scattered,
    copies: RepetitionCounts,
    is_ecn_capable: bool,
}

impl Network {
    /// Returns a network without hops.
    pub fn new(luck: Luck, accounting: Accounting) -> Self {
        Self {
            luck,
            accounting,
            names: Vec::new(),
            hops: Vec::new(),
            routes: Routes::default(),
            scattered: Scattered::default(),
            copies: RepetitionCounts::default(),
            is_ecn_capable: false,
        }
    }

    /// Sets whether hosts send UDP datagrams as ECN-capable, ECT(0) (RFC 3168 §5). IP packets that a node writes itself
    /// keep the ECN field of their header. Packets of the simulated TCP are not ECN-capable.
    #[must_use]
    pub fn ecn_capable(self, is_ecn_capable: bool) -> Self {
        Self { is_ecn_capable, ..self }
    }

    /// Adds a hop. Its random numbers depend on its name, so two hops of the same name have equal random numbers.
    ///
    /// # Errors
    /// [`HopError`] names the field that is out of range.
    pub fn add_hop(&mut self, name: &str, hop: Hop) -> Result<HopId, HopError> {
        hop.check()?;
        let id = u16::try_from(self.hops.len()).map_err(|_| HopError::TooMany)?;
        self.hops.push(ActiveHop::new(&hop, self.accounting, self.luck, name));
        self.names.push(name.into());
        Ok(HopId(id))
    }

    /// Makes `hops`, in this sequence, the path from one site to another. It replaces an earlier path.
    ///
    /// # Errors
    /// [`PathError`] names the fault of the path.
    pub fn connect(&mut self, from: Site, to: Site, hops: &[HopId]) -> Result<(), PathError> {
        self.routes.connect(from, to, Path::new(hops, self.hops.len())?);
        Ok(())
    }

    /// Returns the names of the hops, by [`HopId`].
    pub fn hop_names(&self) -> &[String] {
        &self.names
    }

    /// Returns the headers that the network adds to datagrams.
    pub const fn accounting(&self) -> Accounting {
        self.accounting
    }

    /// Returns the number of packets that were sent and are not yet delivered, dropped or lost.
    pub fn in_flight(&self) -> usize {
        self.hops.iter().map(ActiveHop::packets).sum::<usize>() + self.scattered.len()
    }

    /// Removes the first packet from a hop's queue, and moves it on. If the packet has arrived, passes it to `deliver` and
    /// returns its receiver.
    fn head_leaves<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        hop: HopId,
        deliver: impl FnOnce(Arrival<'_>),
    ) -> Option<NodeId> {
        let Self { hops, scattered, routes, accounting, .. } = self;
        let now = moment.now;
        let here = usize::from(hop.0);
        let active = hops.get_mut(here)?;
        // The buffer is brought up to date first, because records show its length at this moment.
        let queue_bytes = active.queue_bytes(now);
        let (packet, bytes) = active.fifo.head()?;
        let mut receiver = None;
        // Loss comes after the link and the delay: a lost packet has taken its time on the link.
        if active.losses.lose(&packet) {
            let record = record_of(*accounting, now, Event::Lost, &packet, bytes);
            moment.tap.record(&Record { hop: Some(hop), queue_bytes, ..record });
        // The random delay comes last. From here on packets may overtake each other.
        } else if let Some(scatter) = &active.scatter {
            let due = scatter.due(now, &packet);
            moment.events.push(due, NetworkEvent::Scattered(scattered.insert(&packet, bytes)).encode());
        } else if let Some((next, packet)) = routes.next(packet) {
            // No path passes a hop twice, so these are two different hops.
            if let Ok([active, next_active]) = hops.get_disjoint_mut([here, usize::from(next.0)])
                && let Some((_, bytes)) = active.fifo.head()
            {
                enter(next_active, scattered, moment, next, packet, bytes);
            }
        } else {
            moment.tap.record(&record_of(*accounting, now, Event::Delivered, &packet, bytes));
            deliver(arrival(&packet, bytes));
            receiver = Some(packet.to());
        }
        let active = hops.get_mut(here)?;
        // The packet is removed only now, because its bytes were lent to the next hop or to the receiver.
        active.fifo.pop(packet.length());
        if let Some((next, _)) = active.fifo.head() {
            moment.events.push(next.due, NetworkEvent::Head(hop).encode());
        }
        receiver
    }

    /// Moves a packet on to its next hop after a random delay outside the queue. If the packet has arrived, passes it
    /// to `deliver` and returns its receiver.
    fn scattered_leaves<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        index: u32,
        deliver: impl FnOnce(Arrival<'_>),
    ) -> Option<NodeId> {
        // The bytes are moved out, because the next hop may scatter packets as well.
        let (packet, bytes) = self.scattered.take(index);
        let mut receiver = None;
        if let Some((next, packet)) = self.routes.next(packet) {
            enter(&mut self.hops[usize::from(next.0)], &mut self.scattered, moment, next, packet, &bytes);
        } else {
            moment.tap.record(&record_of(self.accounting, moment.now, Event::Delivered, &packet, &bytes));
            deliver(arrival(&packet, &bytes));
            receiver = Some(packet.to());
        }
        self.scattered.give_back(index, bytes);
        receiver
    }
}

impl Medium for Network {
    fn place(&mut self, site: Site) {
        self.routes.place(site);
    }

    fn prepare(&mut self, _: &mut MediumEvents<'_>) {
        self.copies.reserve(self.routes.nodes());
    }

    fn send<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        from: NodeId,
        outgoing: Outgoing,
        bytes: &[u8],
    ) {
        let Outgoing { to, mark, transport } = outgoing;
        let length = u16::try_from(bytes.len());
        let copy = self.copies.count(from, to, mark);
        let mut packet = Header::new(from, to, mark, transport, length.unwrap_or(u16::MAX), copy);
        match transport {
            Transport::Udp if self.is_ecn_capable => packet = packet.ecn_capable(),
            Transport::Udp => {}
            // A whole IP packet has the field in its own header.
            Transport::Ip => packet = packet.with_ecn(Ecn::of_ip(bytes)),
        }
        let record = record_of(self.accounting, moment.now, Event::Sent, &packet, bytes);
        moment.tap.record(&record);
        match self.routes.hop(&packet) {
            // A longer packet than 65,535 bytes fits no IP header, and is dropped.
            Some(hop) if length.is_ok() => {
                enter(&mut self.hops[usize::from(hop.0)], &mut self.scattered, moment, hop, packet, bytes);
            }
            _ => moment.tap.record(&Record { event: Event::Dropped, ..record }),
        }
    }

    fn handle_event<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        what: u32,
        deliver: impl FnOnce(Arrival<'_>),
    ) -> Option<NodeId> {
        match NetworkEvent::decode(what) {
            NetworkEvent::Head(hop) => self.head_leaves(moment, hop, deliver),
            NetworkEvent::Free(hop) => {
                managed::begin(&mut self.hops[usize::from(hop.0)], moment, hop);
                None
            }
            NetworkEvent::Scattered(index) => self.scattered_leaves(moment, index, deliver),
        }
    }
}

fn arrival<'a>(packet: &Header, bytes: &'a [u8]) -> Arrival<'a> {
    Arrival { from: packet.from(), to: packet.to(), mark: packet.mark(), ecn: packet.ecn(), bytes }
}

/// Lets a packet enter a hop, which queues, delays, drops or loses it. Records the event.
#[inline]
fn enter<T: Tap>(
    active: &mut ActiveHop,
    scattered: &mut Scattered,
    moment: &mut MediumContext<'_, T>,
    hop: HopId,
    packet: Header,
    bytes: &[u8],
) {
    let now = moment.now;
    let record =
        Record { hop: Some(hop), ..record_of(active.accounting, now, Event::Queued, &packet, bytes) };
    // Packets that overtake each other wait in no queue.
    if let Some(scatter) = active.unordered() {
        moment.tap.record(&record);
        if active.losses.lose(&packet) {
            moment.tap.record(&Record { event: Event::Lost, ..record });
        } else {
            let due = scatter.due(now + active.delay, &packet);
            moment.events.push(due, NetworkEvent::Scattered(scattered.insert(&packet, bytes)).encode());
        }
        return;
    }
    if active.managed.is_some() {
        managed::enter(active, moment, hop, packet, bytes, &record);
        return;
    }
    // Only the first packet of a hop has an event. When it leaves, the next one gets its own.
    let was_empty = active.fifo.len() == 0;
    match active.enter(now, packet, bytes, record.wire_bytes) {
        HopAdmission::Queued { due, wait, queue_bytes } => {
            moment.tap.record(&Record { queue_bytes, wait, ..record });
            if was_empty {
                moment.events.push(due, NetworkEvent::Head(hop).encode());
            }
        }
        HopAdmission::Full { queue_bytes } => {
            moment.tap.record(&Record { event: Event::Dropped, queue_bytes, ..record });
        }
    }
}

/// Returns the record of an event of a packet at a node.
fn record_of<'a>(
    accounting: Accounting,
    time: Time,
    event: Event,
    packet: &Header,
    bytes: &'a [u8],
) -> Record<'a> {
    Record {
        time,
        event,
        hop: None,
        from: packet.from(),
        to: packet.to(),
        mark: packet.mark(),
        transport: packet.transport(),
        ecn: packet.ecn(),
        wire_bytes: accounting.wire_bytes(packet.transport(), bytes.len()),
        queue_bytes: 0,
        wait: Span::ZERO,
        bytes,
    }
}

/// A network's event, which the queue of events stores as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NetworkEvent {
    /// The first packet of a hop's queue leaves the hop.
    Head(HopId),
    /// The link of a hop with queue management is free.
    Free(HopId),
    /// A packet leaves its hop after a random delay outside the queue.
    Scattered(u32),
}

impl NetworkEvent {
    /// The bit that marks the number of a [`Scattered`](Self::Scattered) event.
    const SCATTERED: u32 = 1 << 30;
    /// The bit that marks the number of a [`Free`](Self::Free) event.
    const FREE: u32 = 1 << 29;

    fn encode(self) -> u32 {
        match self {
            Self::Head(hop) => u32::from(hop.0),
            Self::Free(hop) => Self::FREE | u32::from(hop.0),
            // Far fewer than 2³⁰ packets fit into memory, so an index never reaches the bits of the kind.
            Self::Scattered(index) => Self::SCATTERED | index,
        }
    }

    fn decode(code: u32) -> Self {
        if code & Self::SCATTERED != 0 {
            Self::Scattered(code & !Self::SCATTERED)
        } else if code & Self::FREE != 0 {
            Self::Free(HopId(code as u16))
        } else {
            Self::Head(HopId(code as u16))
        }
    }
}
