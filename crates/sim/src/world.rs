//! The world: nodes, the medium between them, and time.

use crate::{
    Arrival, Ecn, Events, Medium, MediumContext, MediumEvents, Network, Node, NodeEvent, NodeId, Site, Tap,
    Time, TraceHash,
};

/// A simulated world: nodes, the medium between them, and a tap.
///
/// After a node has handled a packet or a deadline, the world fetches all packets that the node has to send, and then
/// its next deadline. A node must set a later deadline once its deadline has come, or simulated time stops there.
#[derive(Debug)]
pub struct World<N, T = (), M = Network> {
    nodes: Vec<N>,
    medium: M,
    tap: T,
    hash: TraceHash,
    events: Events,
    timers: Timers,
    now: Time,
    handled: u64,
    buffer: Vec<u8>,
}

/// The summary of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The time of the last event.
    pub ended_at: Time,
    /// The number of events since the world began: events of the medium, and deadlines of nodes.
    pub events: u64,
    /// The [`TraceHash`] of the run.
    pub hash: u64,
}

impl<N: Node, T: Tap, M: Medium> World<N, T, M> {
    /// Returns a world without nodes.
    pub fn new(medium: M, tap: T) -> Self {
        Self {
            nodes: Vec::new(),
            medium,
            tap,
            hash: TraceHash::new(),
            events: Events::new(),
            timers: Timers::default(),
            now: Time::ZERO,
            handled: 0,
            buffer: Vec::new(),
        }
    }

    /// Reserves memory for this number of further nodes.
    pub fn reserve(&mut self, nodes: usize) {
        self.nodes.reserve_exact(nodes);
        self.timers.armed.reserve_exact(nodes);
    }

    /// Adds a node, and returns its number. The first is number 0. A node sends nothing before [`wake`](Self::wake).
    ///
    /// # Panics
    /// At the 2³¹th node.
    pub fn add(&mut self, site: Site, node: N) -> NodeId {
        assert!(self.nodes.len() < MediumEvents::LIMIT as usize, "too many nodes");
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(node);
        self.medium.place(site);
        self.timers.armed.push(NEVER);
        id
    }

    /// Fetches the packets and the deadline of a node. Call it after a change to the node from outside.
    pub fn wake(&mut self, node: NodeId) {
        self.medium.prepare(&mut MediumEvents(&mut self.events));
        if (node.0 as usize) < self.nodes.len() {
            self.drain(node);
        }
    }

    /// Calls [`wake`](Self::wake) for all nodes, sorted by their numbers: the start of a run.
    pub fn wake_all(&mut self) {
        for node in 0..self.nodes.len() as u32 {
            self.wake(NodeId(node));
        }
    }

    /// Handles all events up to and including `until`, or until there are no more. Returns the summary of the run so
    /// far.
    pub fn run(&mut self, until: Time) -> Summary {
        while let Some((time, code)) = self.events.pop(until) {
            let medium = code & MediumEvents::LIMIT != 0;
            // Stale timers are skipped, and do not count as events.
            if !medium && !self.timers.fires(NodeId(code), time) {
                continue;
            }
            // The time moves only for an event that counts, so a run ends at its last real event.
            self.now = time;
            self.handled += 1;
            if !medium {
                self.deadline(NodeId(code));
                continue;
            }
            let nodes = &mut self.nodes;
            let mut moment = MediumContext {
                now: time,
                events: MediumEvents(&mut self.events),
                tap: (&mut self.hash, &mut self.tap),
            };
            // The medium lends the bytes to the node. They stay where they lie.
            let deliver = |arrival: Arrival<'_>| {
                if let Some(node) = nodes.get_mut(arrival.to.0 as usize) {
                    if arrival.ecn == Ecn::Congested {
                        node.congestion_experienced(arrival.from, arrival.mark);
                    }
                    node.handle_datagram(time, arrival.from, arrival.mark, arrival.bytes);
                }
            };
            let receiver = self.medium.handle_event(&mut moment, code & !MediumEvents::LIMIT, deliver);
            // The node may have an answer to send, and its deadline may have moved.
            if let Some(node) = receiver {
                self.drain(node);
            }
        }
        self.summary()
    }

    /// Handles all events up to and including `until`, and makes `until` the present moment, at which
    /// [`wake`](Self::wake) fetches packets. Use it for a world that follows a clock; after [`run`](Self::run) the
    /// present moment is the time of the last event.
    pub fn advance(&mut self, until: Time) -> Summary {
        let summary = self.run(until);
        self.now = self.now.max(until);
        summary
    }

    /// Returns the time of the next event, before which [`advance`](Self::advance) has nothing to do. `None` means that
    /// nothing happens until a node is woken.
    pub fn next_event(&mut self) -> Option<Time> {
        self.events.next_time()
    }

    /// Returns the summary of the run so far.
    pub fn summary(&self) -> Summary {
        Summary { ended_at: self.now, events: self.handled, hash: self.hash.value() }
    }

    /// Handles a timer of `node` that fired. The deadline may have moved since the timer was armed.
    fn deadline(&mut self, node: NodeId) {
        let Some(host) = self.nodes.get_mut(node.0 as usize) else { return };
        match host.poll_timeout() {
            Some(deadline) if deadline <= self.now => {
                host.handle_timeout(self.now);
                self.drain(node);
            }
            Some(deadline) => self.timers.arm(&mut self.events, node, deadline),
            None => {}
        }
    }

    /// Fetches the packets that a node has to send, and its deadline.
    fn drain(&mut self, node: NodeId) {
        let Some(host) = self.nodes.get_mut(node.0 as usize) else { return };
        let mut moment = MediumContext {
            now: self.now,
            events: MediumEvents(&mut self.events),
            tap: (&mut self.hash, &mut self.tap),
        };
        loop {
            self.buffer.clear();
            let Some(outgoing) = host.poll_transmit(self.now, &mut self.buffer) else { break };
            self.medium.send(&mut moment, node, outgoing, &self.buffer);
        }
        if let Some(deadline) = host.poll_timeout() {
            // A deadline in the past is due now: the queue must never go back in time.
            self.timers.arm(&mut self.events, node, deadline.max(self.now));
        }
        if self.tap.watches_nodes()
            && let Some(rto) = host.rto()
        {
            self.tap.node(self.now, node, NodeEvent::Rto(rto));
        }
    }
}

impl<N, T, M> World<N, T, M> {
    /// Returns the nodes, by their numbers.
    pub fn nodes(&self) -> &[N] {
        &self.nodes
    }

    /// Returns a node, to change it from outside; `None` for an unknown number. Call [`wake`](World::wake) after the
    /// change.
    pub fn node_mut(&mut self, node: NodeId) -> Option<&mut N> {
        self.nodes.get_mut(node.0 as usize)
    }

    /// Returns the tap.
    pub fn tap(&self) -> &T {
        &self.tap
    }

    /// Returns the tap, to change it.
    pub fn tap_mut(&mut self) -> &mut T {
        &mut self.tap
    }

    /// Returns the medium between the nodes.
    pub fn medium(&self) -> &M {
        &self.medium
    }

    /// Returns the nodes and the tap.
    pub fn into_parts(self) -> (Vec<N>, T) {
        (self.nodes, self.tap)
    }
}

/// The timers of the nodes, at most one armed for each.
///
/// Moving a deadline later costs nothing: the timer fires at the old time, finds the deadline in the future, and is
/// armed for it. Every answer that arrives in time moves a deadline this way. Moving a deadline earlier leaves a stale
/// event in the queue. When stale events outnumber the nodes, they are removed.
#[derive(Debug, Default)]
struct Timers {
    /// The time at which each node's timer fires, or `NEVER`.
    armed: Vec<Time>,
    stale: usize,
}

const NEVER: Time = Time::MAX;
const STALE_ALLOWANCE: usize = 1024;

impl Timers {
    fn arm(&mut self, events: &mut Events, node: NodeId, deadline: Time) {
        let armed = &mut self.armed[node.0 as usize];
        // An earlier timer finds out by itself that the deadline lies ahead.
        if deadline >= *armed || deadline >= Events::HORIZON {
            return;
        }
        if *armed != NEVER {
            self.stale += 1;
        }
        *armed = deadline;
        events.push(deadline, node.0);
        // The queue is searched rarely enough that the cost for each event stays constant.
        if self.stale > self.armed.len() + STALE_ALLOWANCE {
            self.stale = 0;
            events.retain(|time, code| {
                code & MediumEvents::LIMIT != 0 || self.armed.get(code as usize) == Some(&time)
            });
        }
    }

    /// Disarms the node's timer if the event is that timer. Returns false for a stale event.
    fn fires(&mut self, node: NodeId, time: Time) -> bool {
        let Some(armed) = self.armed.get_mut(node.0 as usize) else { return false };
        if *armed == time {
            *armed = NEVER;
            return true;
        }
        self.stale = self.stale.saturating_sub(1);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Accounting, Luck, Mark, Outgoing};

    /// A node with one deadline after the other. It keeps a list of the times at which it was called.
    struct Alarm {
        deadlines: Vec<Time>,
        deadline: Option<Time>,
        called: Vec<Time>,
    }

    impl Alarm {
        fn new(deadlines: &[u64]) -> Self {
            let mut deadlines: Vec<_> = deadlines.iter().rev().map(|&ns| Time::from_nanos(ns)).collect();
            Self { deadline: deadlines.pop(), deadlines, called: Vec::new() }
        }
    }

    impl Node for Alarm {
        fn handle_datagram(&mut self, _: Time, _: NodeId, _: Mark, _: &[u8]) {}
        fn handle_timeout(&mut self, now: Time) {
            self.called.push(now);
            self.deadline = self.deadlines.pop();
        }
        fn poll_transmit(&mut self, _: Time, _: &mut Vec<u8>) -> Option<Outgoing> {
            None
        }
        fn poll_timeout(&self) -> Option<Time> {
            self.deadline
        }
    }

    fn world(deadlines: &[u64]) -> World<Alarm> {
        let mut world = World::new(Network::new(Luck::new(1), Accounting::Ipv4), ());
        world.add(Site(0), Alarm::new(deadlines));
        world.wake_all();
        world
    }

    fn set(world: &mut World<Alarm>, deadline: Option<u64>) {
        world.nodes[0].deadline = deadline.map(Time::from_nanos);
        world.wake(NodeId(0));
    }

    fn called(world: &World<Alarm>) -> Vec<u64> {
        world.nodes[0].called.iter().map(|time| time.as_nanos()).collect()
    }

    #[test]
    fn a_deadline_of_a_node_is_met_to_the_nanosecond() {
        let mut world = world(&[5, 5, 7, 3]);
        world.run(Time::MAX);
        // The second 5 and the 3 have passed when they are asked for.
        assert_eq!(called(&world), [5, 5, 7, 7]);
    }

    #[test]
    fn a_deadline_that_moves_later_is_not_met_early() {
        let mut world = world(&[5]);
        set(&mut world, Some(9));
        assert_eq!(world.events.len(), 1);
        world.run(Time::MAX);
        assert_eq!(called(&world), [9]);
    }

    #[test]
    fn a_deadline_that_moves_earlier_is_met_once() {
        let mut world = world(&[9]);
        set(&mut world, Some(5));
        world.run(Time::MAX);
        assert_eq!(called(&world), [5]);
        assert_eq!(world.summary().ended_at, Time::from_nanos(5));
    }

    #[test]
    fn a_deadline_that_moves_earlier_and_back_is_met_once() {
        let mut world = world(&[9, 20]);
        set(&mut world, Some(5));
        set(&mut world, Some(9));
        world.run(Time::MAX);
        assert_eq!(called(&world), [9, 20]);
    }

    #[test]
    fn a_cancelled_deadline_does_not_fire() {
        let mut world = world(&[5]);
        set(&mut world, None);
        world.run(Time::MAX);
        assert!(called(&world).is_empty());
        set(&mut world, Some(7));
        world.run(Time::MAX);
        assert_eq!(called(&world), [7]);
    }

    #[test]
    fn a_simulation_driven_by_a_clock_is_at_the_time_it_was_advanced_to() {
        let mut world = world(&[5]);
        assert_eq!(world.next_event(), Some(Time::from_nanos(5)));
        world.advance(Time::from_nanos(3));
        assert_eq!((world.now, world.next_event()), (Time::from_nanos(3), Some(Time::from_nanos(5))));
        world.advance(Time::from_nanos(8));
        assert_eq!((world.now, world.next_event()), (Time::from_nanos(8), None));
        // A deadline that has passed is due at the present moment.
        set(&mut world, Some(6));
        assert_eq!(world.next_event(), Some(Time::from_nanos(8)));
        assert_eq!(
            world.advance(Time::from_nanos(7)).ended_at,
            Time::from_nanos(8),
            "time does not run back"
        );
        world.advance(Time::from_nanos(9));
        assert_eq!(called(&world), [5, 8]);
    }

    #[test]
    fn outdated_timers_do_not_accumulate() {
        let mut world = world(&[]);
        for n in 1..=100_000 {
            // The deadlines of a node between exchanges and in one: 247 s ahead, then 2 s.
            set(&mut world, Some(n * 3_000_000_000 + 247_000_000_000));
            set(&mut world, Some(n * 3_000_000_000 + 2_000_000_000));
            world.nodes[0].deadlines.push(Time::from_secs(n * 3 + 247));
            world.run(Time::from_secs(n * 3 + 2));
        }
        assert_eq!(called(&world).len(), 100_000);
        assert!(world.events.len() <= STALE_ALLOWANCE + 3, "{}", world.events.len());
    }
}
