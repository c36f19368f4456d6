//! Hosts over UDP, driven by the clock and by sockets.

use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use coapace_run::measured::RunResult;
use coapace_run::{Cast, completed, window};
use coapace_sim::{Mark, Node, NodeId, Time};

use super::foreign::Foreigners;
use super::marks::Marks;
use super::network::EmulatedNetwork;
use super::socket::{bind, receive_from};
use super::sources::ClientNumbers;
use super::{Health, Live, LiveError};
use crate::Lateness;
use crate::emulation::EmulationError;
use crate::emulation::waiting::{EmulationClock, EventWaiter};

/// The longest sleep before the next check for an interruption.
const PATIENCE: Duration = Duration::from_millis(100);

/// The number of the first descriptor of another stack's clients. The descriptors of our hosts are numbered
/// from 0.
const FOREIGN: u64 = 1 << 32;

/// The longest datagram.
const LONGEST: usize = 65_536;

/// Makes a run over UDP.
pub(super) fn run(live: &Live<'_>) -> Result<(RunResult, Health), LiveError> {
    let Live { scenario, contender, seed, observe, peer, .. } = *live;
    let cast = Cast::new(scenario, contender, seed, observe).map_err(LiveError::Unfit)?;
    let (nodes, first, home) = (cast.nodes(), cast.first_client(), cast.server());
    let (servant, asker) = (peer.filter(|peer| !peer.is_client()), peer.filter(|peer| peer.is_client()));
    // The server starts first, because the network needs its address.
    let other = servant.map(|peer| peer.start(scenario)).transpose()?;
    let (address, server) = if let Some(other) = &other {
        (other.address(), None)
    } else {
        let socket = bind()?;
        (socket.local_addr().map_err(LiveError::io("open a socket"))?, Some(socket))
    };
    let way = EmulatedNetwork::open(scenario, seed, address)?;
    let client = || {
        let socket = bind()?;
        socket.connect(way.entrance()).map_err(LiveError::io("connect a socket"))?;
        Ok(socket)
    };
    let foreign = asker.map(|peer| Foreigners::open(live, peer, way.entrance())).transpose()?;
    let own = if foreign.is_some() { first..first } else { first..nodes };
    let clients = own.map(|_| client()).collect::<Result<Vec<_>, LiveError>>()?;
    // Hosts that another stack replaces have no sockets here, and are not driven.
    let own = clients.iter().zip(first..).map(|(socket, node)| (NodeId(node), socket));
    let seats: Vec<(NodeId, &UdpSocket)> = server.iter().map(|socket| (home, socket)).chain(own).collect();
    // The clock starts last: opening the sockets and starting the server take none of the run's time.
    let mut driver = LiveDriver {
        cast,
        sources: ClientNumbers::new(first, nodes - first),
        marks: Marks::default(),
        foreign,
        seats: &seats,
        clock: EmulationClock::start(),
        deadlines: BTreeSet::new(),
        armed: vec![None; nodes as usize],
        busy: (first..nodes).collect(),
        lateness: Lateness::default(),
        unsent: 0,
        buffer: Vec::new(),
    };
    let outcome = driver.drive(live, &way);
    // If the network ended by itself, its own error says why, and the driver's only that it did.
    let network = way.close()?;
    let ended_at = outcome?;
    // A datagram that the system refused to send counts as lost on a link.
    let mut result = driver.cast.result(ended_at, network.dropped, network.lost + driver.unsent);
    let mut health = Health::of(driver.lateness, network);
    // Our clients had no sockets and did nothing. The counts of the other stack's clients take their place.
    if let Some(foreign) = driver.foreign {
        foreign.report(&mut result);
        completed(scenario, contender, None, ended_at, &mut result);
        health.complaints.extend(foreign.words());
    }
    Ok((result, health))
}

/// The hosts with their sockets and deadlines.
struct LiveDriver<'a> {
    cast: Cast<'a>,
    /// The numbers of the clients, by the addresses from which the server receives their datagrams.
    sources: ClientNumbers,
    marks: Marks,
    /// The clients of another stack that send requests in place of ours, if any.
    foreign: Option<Foreigners<'a>>,
    /// The sockets of our hosts, each with the host's node.
    seats: &'a [(NodeId, &'a UdpSocket)],
    clock: EmulationClock,
    deadlines: BTreeSet<(Time, usize)>,
    /// For each host, its deadline in `deadlines`; `None` if it has no deadline.
    armed: Vec<Option<Time>>,
    /// The clients that are not done.
    busy: BTreeSet<u32>,
    lateness: Lateness,
    /// The number of datagrams that the system did not accept.
    unsent: u64,
    buffer: Vec<u8>,
}

impl LiveDriver<'_> {
    /// Drives the hosts until the clients are done or the workload's time is over. Returns the time of the end.
    fn drive(&mut self, live: &Live<'_>, way: &EmulatedNetwork) -> Result<Time, LiveError> {
        let window = window(live.scenario, live.contender);
        let mut warm_up = window.map(|(from, _)| from).filter(|from| *from > Time::ZERO);
        let end = window.map(|(_, end)| end);
        let seats = self.seats;
        let mut waiting = EventWaiter::new().map_err(LiveError::io("wait for sockets"))?;
        for (place, (_, socket)) in seats.iter().enumerate() {
            waiting.add(socket, place as u64).map_err(LiveError::io("wait for sockets"))?;
        }
        for (number, socket) in self.foreign.iter().flat_map(Foreigners::sockets).enumerate() {
            // Both kinds of sockets share one space of numbers, and there are fewer than 2³² places.
            waiting.add(socket, FOREIGN + number as u64).map_err(LiveError::io("wait for sockets"))?;
        }
        let mut ready = Vec::new();
        let mut datagram = vec![0; LONGEST];
        // The first call sends what hosts have for the start, and arms their first deadlines.
        for place in 0..seats.len() {
            self.drain(place);
        }
        loop {
            let now = self.clock.now();
            // The drops and losses before this moment belong to the warm-up, and are subtracted at the end.
            if warm_up.is_some_and(|from| now >= from) {
                warm_up = None;
                let (drops, losses) = way.counts();
                self.cast.begin_measuring(drops, losses + self.unsent);
            }
            if end.is_some_and(|end| now >= end) || end.is_none() && self.busy.is_empty() {
                return Ok(now);
            }
            if way.has_ended() {
                return Err(EmulationError::Ended.into());
            }
            let exchanges = || self.foreign.as_ref().map_or(self.cast.exchanges(), Foreigners::exchanges);
            live.check(now, exchanges)?;
            self.fire();
            let mut longest = PATIENCE;
            if let Some(foreign) = &mut self.foreign {
                longest = foreign.attend(now)?;
            }
            let next = [self.deadlines.first().map(|(at, _)| *at), warm_up, end].into_iter().flatten().min();
            // The hosts' calls and the starts of processes took time, which does not lengthen the sleep.
            let now = self.clock.now();
            let sleep =
                next.map_or(longest, |next| Duration::from_nanos((next - now).as_nanos()).min(longest));
            waiting.wait(sleep, &mut ready).map_err(LiveError::io("wait for sockets"))?;
            for &place in &ready {
                match (&mut self.foreign, place.checked_sub(FOREIGN)) {
                    (Some(foreign), Some(number)) => {
                        foreign.receive(number as usize, &self.clock, &mut datagram)?;
                    }
                    _ => self.receive(place as usize, &mut datagram)?,
                }
            }
            if self.foreign.as_ref().is_some_and(Foreigners::are_done) {
                // The other stack's clients are done, and ours had nothing to do.
                self.busy.clear();
            }
        }
    }

    /// Calls the hosts whose deadline has come.
    fn fire(&mut self) {
        let begun = self.clock.now();
        // Deadlines that come during this loop wait for the next call, so that sockets are read in between.
        while let Some(&(at, place)) = self.deadlines.first()
            && at <= begun
        {
            self.deadlines.pop_first();
            self.armed[place] = None;
            let now = self.clock.now();
            let Some(host) = self.seats.get(place).and_then(|(node, _)| self.cast.host(*node)) else {
                continue;
            };
            // A deadline that has moved in the meantime is armed again.
            if host.poll_timeout().is_some_and(|deadline| deadline <= now) {
                self.lateness.add(now - at);
                host.handle_timeout(now);
            }
            self.drain(place);
        }
    }

    /// Passes the datagrams that have arrived at a socket to its host.
    fn receive(&mut self, place: usize, datagram: &mut [u8]) -> Result<(), LiveError> {
        let (node, socket) = self.seats[place];
        let (first, server) = (self.cast.first_client(), self.cast.server());
        while let Some((length, from)) = receive_from(socket, datagram)? {
            let now = self.clock.now();
            let bytes = &datagram[..length];
            let is_server = node.0 < first;
            // A client's socket is connected, so only the server has to find out who sent a datagram.
            let from = if is_server { self.sources.number(from) } else { Some(server) };
            let (Some(from), Some(host)) = (from, self.cast.host(node)) else { continue };
            // Only servers use marks, for their service times.
            let mark = if is_server { self.marks.of(from, bytes) } else { Mark::default() };
            host.handle_datagram(now, from, mark, bytes);
            self.drain(place);
        }
        Ok(())
    }

    /// Sends the datagrams that a host has ready, and arms its next deadline.
    fn drain(&mut self, place: usize) {
        let (node, socket) = self.seats[place];
        let is_server = node.0 < self.cast.first_client();
        let Some(host) = self.cast.host(node) else { return };
        let now = self.clock.now();
        loop {
            self.buffer.clear();
            let Some(outgoing) = host.poll_transmit(now, &mut self.buffer) else { break };
            let to: Option<SocketAddr> = if is_server { self.sources.address(outgoing.to) } else { None };
            // A datagram that cannot be sent is lost like one on the way: its exchange sends it again.
            let sent = match to {
                Some(to) => socket.send_to(&self.buffer, to),
                None => socket.send(&self.buffer),
            };
            self.unsent += u64::from(sent.is_err());
        }
        // Each transmission may arm a timeout, so the deadline is asked for behind the last one.
        let deadline = host.poll_timeout();
        if let Some(at) = self.armed[place].take() {
            self.deadlines.remove(&(at, place));
        }
        if let Some(at) = deadline {
            self.armed[place] = Some(at);
            self.deadlines.insert((at, place));
        }
        if !is_server && self.cast.is_done(node) {
            self.busy.remove(&node.0);
        }
    }
}
