//! Hops, the paths made of them, and the packets on them.

use crate::copies::Copies;
use crate::hop::{Entry, Line};
use crate::packet::Header;
use crate::route::{Path, Routes};
use crate::scattered::Scattered;
use crate::{
    Accounting, Arrival, Event, Happenings, Hop, HopError, HopId, Luck, Medium, Moment, NodeId, Outgoing,
    PathError, Record, Site, Tap, Time,
};

/// A network: hops, paths made of them, and the packets under way.
///
/// A star around a bottleneck is two sites with a path each way. Paths may share hops. A packet between sites without a
/// path is dropped.
#[derive(Debug)]
pub struct Network {
    luck: Luck,
    accounting: Accounting,
    names: Vec<String>,
    lines: Vec<Line>,
    routes: Routes,
    scattered: Scattered,
    copies: Copies,
}

impl Network {
    /// A network without hops.
    pub fn new(luck: Luck, accounting: Accounting) -> Self {
        Self {
            luck,
            accounting,
            names: Vec::new(),
            lines: Vec::new(),
            routes: Routes::default(),
            scattered: Scattered::default(),
            copies: Copies::default(),
        }
    }

    /// Adds a hop. Its name keys its draws, so hops of one name have the same luck.
    ///
    /// # Errors
    /// [`HopError`] says what is wrong with it.
    pub fn add_hop(&mut self, name: &str, hop: Hop) -> Result<HopId, HopError> {
        hop.check()?;
        let id = u16::try_from(self.lines.len()).map_err(|_| HopError::TooMany)?;
        self.lines.push(Line::new(&hop, self.accounting, self.luck, name));
        self.names.push(name.into());
        Ok(HopId(id))
    }

    /// Makes `hops`, in this order, the path from one site to another, in place of any there was.
    ///
    /// # Errors
    /// [`PathError`] says what is wrong with it.
    pub fn connect(&mut self, from: Site, to: Site, hops: &[HopId]) -> Result<(), PathError> {
        self.routes.connect(from, to, Path::new(hops, self.lines.len())?);
        Ok(())
    }

    /// The names of the hops, by [`HopId`].
    pub fn hop_names(&self) -> &[String] {
        &self.names
    }

    /// How it weighs packets.
    pub const fn accounting(&self) -> Accounting {
        self.accounting
    }

    /// Packets sent that are neither delivered nor dropped nor lost yet.
    pub fn in_flight(&self) -> usize {
        self.lines.iter().map(|line| line.fifo.len()).sum::<usize>() + self.scattered.len()
    }

    /// The packet at the head of a hop's line leaves it. If it has arrived it goes to `deliver`, and its receiver is
    /// returned.
    fn head_leaves<T: Tap>(
        &mut self,
        moment: &mut Moment<'_, T>,
        hop: HopId,
        deliver: impl FnOnce(Arrival<'_>),
    ) -> Option<NodeId> {
        let Self { lines, scattered, routes, accounting, .. } = self;
        let now = moment.now;
        let here = usize::from(hop.0);
        let line = lines.get_mut(here)?;
        let queue_bytes = line.queue_bytes(now);
        let (packet, bytes) = line.fifo.head()?;
        let mut receiver = None;
        if line.losses.lose(&packet) {
            let record = seen(*accounting, now, Event::Lost, &packet, bytes);
            moment.tap.record(&Record { hop: Some(hop), queue_bytes, ..record });
        } else if let Some(scatter) = &line.scatter {
            let due = scatter.due(now, &packet);
            moment.events.push(due, Happening::Scattered(scattered.insert(&packet, bytes)).encode());
        } else if let Some((next, packet)) = routes.next(packet) {
            // No path passes a hop twice, so these are two.
            if let Ok([line, next_line]) = lines.get_disjoint_mut([here, usize::from(next.0)])
                && let Some((_, bytes)) = line.fifo.head()
            {
                enter(next_line, scattered, moment, next, packet, bytes);
            }
        } else {
            moment.tap.record(&seen(*accounting, now, Event::Delivered, &packet, bytes));
            deliver(arrival(&packet, bytes));
            receiver = Some(packet.to());
        }
        let line = lines.get_mut(here)?;
        line.fifo.pop(packet.length());
        if let Some((next, _)) = line.fifo.head() {
            moment.events.push(next.due, Happening::Head(hop).encode());
        }
        receiver
    }

    /// A packet out of order leaves its hop. If it has arrived it goes to `deliver`, and its receiver is returned.
    fn scattered_leaves<T: Tap>(
        &mut self,
        moment: &mut Moment<'_, T>,
        index: u32,
        deliver: impl FnOnce(Arrival<'_>),
    ) -> Option<NodeId> {
        let (packet, bytes) = self.scattered.take(index);
        let mut receiver = None;
        if let Some((next, packet)) = self.routes.next(packet) {
            enter(&mut self.lines[usize::from(next.0)], &mut self.scattered, moment, next, packet, &bytes);
        } else {
            moment.tap.record(&seen(self.accounting, moment.now, Event::Delivered, &packet, &bytes));
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

    fn prepare(&mut self, _: &mut Happenings<'_>) {
        self.copies.reserve(self.routes.nodes());
    }

    fn send<T: Tap>(&mut self, moment: &mut Moment<'_, T>, from: NodeId, outgoing: Outgoing, bytes: &[u8]) {
        let Outgoing { to, mark, transport } = outgoing;
        let length = u16::try_from(bytes.len());
        let copy = self.copies.count(from, to, mark);
        let packet = Header::new(from, to, mark, transport, length.unwrap_or(u16::MAX), copy);
        let record = seen(self.accounting, moment.now, Event::Sent, &packet, bytes);
        moment.tap.record(&record);
        match self.routes.hop(&packet) {
            Some(hop) if length.is_ok() => {
                enter(&mut self.lines[usize::from(hop.0)], &mut self.scattered, moment, hop, packet, bytes);
            }
            _ => moment.tap.record(&Record { event: Event::Dropped, ..record }),
        }
    }

    fn happen<T: Tap>(
        &mut self,
        moment: &mut Moment<'_, T>,
        what: u32,
        deliver: impl FnOnce(Arrival<'_>),
    ) -> Option<NodeId> {
        match Happening::decode(what) {
            Happening::Head(hop) => self.head_leaves(moment, hop, deliver),
            Happening::Scattered(index) => self.scattered_leaves(moment, index, deliver),
        }
    }
}

fn arrival<'a>(packet: &Header, bytes: &'a [u8]) -> Arrival<'a> {
    Arrival { from: packet.from(), to: packet.to(), mark: packet.mark(), bytes }
}

/// A packet enters a hop.
#[inline]
fn enter<T: Tap>(
    line: &mut Line,
    scattered: &mut Scattered,
    moment: &mut Moment<'_, T>,
    hop: HopId,
    packet: Header,
    bytes: &[u8],
) {
    let now = moment.now;
    let record = Record { hop: Some(hop), ..seen(line.accounting, now, Event::Queued, &packet, bytes) };
    if let Some(scatter) = line.unordered() {
        moment.tap.record(&record);
        if line.losses.lose(&packet) {
            moment.tap.record(&Record { event: Event::Lost, ..record });
        } else {
            let due = scatter.due(now + line.delay_ns, &packet);
            moment.events.push(due, Happening::Scattered(scattered.insert(&packet, bytes)).encode());
        }
        return;
    }
    let was_empty = line.fifo.len() == 0;
    match line.enter(now, packet, bytes, record.wire_bytes) {
        Entry::Queued { due, wait_ns, queue_bytes } => {
            moment.tap.record(&Record { queue_bytes, wait_ns, ..record });
            if was_empty {
                moment.events.push(due, Happening::Head(hop).encode());
            }
        }
        Entry::Full { queue_bytes } => {
            moment.tap.record(&Record { event: Event::Dropped, queue_bytes, ..record });
        }
    }
}

/// What is seen of a packet at a node.
fn seen<'a>(
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
        wire_bytes: accounting.wire_bytes(packet.transport(), bytes.len()),
        queue_bytes: 0,
        wait_ns: 0,
        bytes,
    }
}

/// What a number in the queue of events stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Happening {
    /// The head of a hop's line leaves.
    Head(HopId),
    /// A packet out of order leaves its hop.
    Scattered(u32),
}

impl Happening {
    /// Packets out of order are marked with this bit.
    const SCATTERED: u32 = 1 << 30;

    fn encode(self) -> u32 {
        match self {
            Self::Head(hop) => u32::from(hop.0),
            Self::Scattered(index) => Self::SCATTERED | index,
        }
    }

    fn decode(code: u32) -> Self {
        if code & Self::SCATTERED == 0 {
            Self::Head(HopId(code as u16))
        } else {
            Self::Scattered(code & !Self::SCATTERED)
        }
    }
}
