//! Nodes on an ideal link layer: who hears whom is a matrix, and a frame is lost by a draw.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::mesh::RplConfig;
use crate::mesh::rpl::{RplMessage, RplNode, Unroutable};
use crate::{Luck, NodeId, Span, Stream, Time};

/// The time of a frame.
const HOP: Span = Span::from_millis(5);
/// The number of transmissions of a frame that is not acknowledged.
const TRANSMISSIONS: u8 = 8;

/// A message under way: the moment of its arrival, its number, its sender and its receiver.
type MessageUnderWay = Reverse<(Time, u64, u32, u32)>;

/// The largest number of hops of a packet.
const MAX_HOPS: usize = 255;

/// The reason why a packet did not arrive.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A node had no next hop.
    Unroutable(usize, Unroutable),
    /// The next hop was out of reach.
    Lost,
    /// The packet took too many hops.
    TooFar,
}

pub(crate) struct TestLinks {
    pub(crate) nodes: Vec<RplNode>,
    pub(crate) hears: Vec<Vec<bool>>,
    pub(crate) alive: Vec<bool>,
    pub(crate) loss: f64,
    stream: Stream,
    pub(crate) now: Time,
    pub(crate) sent: Vec<RplMessage>,
    arrivals: BinaryHeap<MessageUnderWay>,
}

impl TestLinks {
    /// Returns nodes with these links. Node 0 is the root.
    pub(crate) fn new(
        config: &RplConfig,
        count: usize,
        seed: u64,
        linked: impl Fn(usize, usize) -> bool,
    ) -> Self {
        let luck = Luck::new(seed);
        let start = |id: usize| Time::ZERO + luck.stream("start").within(Span::from_secs(1), id as u64, 0, 0);
        let node = |id| RplNode::new(config, NodeId(id as u32), id == 0, luck.stream("rpl"), start(id));
        Self {
            nodes: (0..count).map(node).collect(),
            hears: (0..count).map(|a| (0..count).map(|b| a != b && linked(a, b)).collect()).collect(),
            alive: vec![true; count],
            loss: 0.0,
            stream: luck.stream("loss"),
            now: Time::ZERO,
            sent: Vec::new(),
            arrivals: BinaryHeap::new(),
        }
    }

    /// Returns nodes in a square grid. Each hears those beside, above and below it.
    pub(crate) fn grid(config: &RplConfig, side: usize, seed: u64) -> Self {
        Self::new(config, side * side, seed, |a, b| {
            (a / side).abs_diff(b / side) + (a % side).abs_diff(b % side) == 1
        })
    }

    pub(crate) fn set_link(&mut self, a: usize, b: usize, linked: bool) {
        self.hears[a][b] = linked;
        self.hears[b][a] = linked;
    }

    pub(crate) fn arrives(&self, from: usize, to: usize, attempt: u8) -> bool {
        let (number, link) = (self.sent.len() as u64, (from * self.nodes.len() + to) as u64);
        let lost = self.stream.unit(number, link, u64::from(attempt)) < self.loss;
        self.hears[from][to] && self.alive[to] && !lost
    }

    /// Schedules the arrival of a message that is sent now, after so many transmissions.
    pub(crate) fn deliver(&mut self, from: usize, to: usize, transmissions: u8) {
        let time = self.now + HOP * u64::from(transmissions);
        self.arrivals.push(Reverse((time, self.sent.len() as u64, from as u32, to as u32)));
    }

    /// Sends the messages of node `from`.
    pub(crate) fn transmit(&mut self, from: usize) {
        while let Some((to, message)) = self.nodes[from].poll_transmit() {
            match to {
                Some(neighbour) => {
                    let to = neighbour.0 as usize;
                    let arrived = (0..TRANSMISSIONS).find(|&attempt| self.arrives(from, to, attempt));
                    let transmissions = arrived.map_or(TRANSMISSIONS, |attempt| attempt + 1);
                    if arrived.is_some() {
                        self.deliver(from, to, transmissions);
                    }
                    self.nodes[from].on_sent(self.now, neighbour, arrived.is_some(), transmissions);
                }
                None => {
                    for to in 0..self.nodes.len() {
                        if self.arrives(from, to, 0) {
                            self.deliver(from, to, 1);
                        }
                    }
                }
            }
            self.sent.push(message);
        }
    }

    pub(crate) fn run(&mut self, until: Time) {
        for node in 0..self.nodes.len() {
            self.transmit(node);
        }
        loop {
            let awake = (0..self.nodes.len()).filter(|&node| self.alive[node]);
            let timer = awake.filter_map(|node| Some((self.nodes[node].poll_timeout()?, node))).min();
            let arrival = self.arrivals.peek().map(|arrival| arrival.0.0);
            let next = timer.map_or(Time::MAX, |timer| timer.0).min(arrival.unwrap_or(Time::MAX));
            if next > until {
                break;
            }
            // A deadline that passed while a node was off is due when it is switched on.
            let next = next.max(self.now);
            self.now = next;
            let node = if arrival.is_some_and(|arrival| arrival <= next) {
                let Some(Reverse((_, number, from, to))) = self.arrivals.pop() else { break };
                if !self.alive[to as usize] {
                    continue;
                }
                let message = self.sent[number as usize];
                self.nodes[to as usize].handle(next, NodeId(from), &message);
                to as usize
            } else if let Some((_, node)) = timer {
                self.nodes[node].handle_timeout(next);
                node
            } else {
                break;
            };
            self.transmit(node);
        }
        self.now = until;
    }

    /// Sends a packet. Returns the nodes that it passed, or the reason why it did not arrive.
    pub(crate) fn walk(&mut self, from: usize, to: usize) -> Result<Vec<usize>, Stop> {
        let (mut path, mut before, mut option) = (vec![from], None, None);
        let mut at = from;
        while at != to {
            let ahead = self.nodes[at].forward(self.now, before, NodeId(to as u32), option);
            let (next, ahead) = ahead.map_err(|why| Stop::Unroutable(at, why))?;
            let next_at = next.0 as usize;
            let reached = self.hears[at][next_at] && self.alive[next_at];
            self.nodes[at].on_sent(self.now, next, reached, if reached { 1 } else { TRANSMISSIONS });
            self.transmit(at);
            if !reached {
                return Err(Stop::Lost);
            }
            if path.len() > MAX_HOPS {
                return Err(Stop::TooFar);
            }
            (before, option, at) = (Some(NodeId(at as u32)), Some(ahead), next_at);
            path.push(at);
        }
        Ok(path)
    }

    /// Checks that packets arrive from every node that is alive at the root, and back.
    pub(crate) fn assert_all_reach(&mut self) {
        for node in (1..self.nodes.len()).filter(|&node| self.alive[node]).collect::<Vec<_>>() {
            let (up, down) = (self.walk(node, 0), self.walk(0, node));
            assert!(up.is_ok(), "{node} up: {up:?}");
            assert!(down.is_ok(), "{node} down: {down:?}");
        }
    }

    /// Returns the number of hops to the root, by the links alone.
    pub(crate) fn hops(&self) -> Vec<Option<usize>> {
        let mut hops = vec![None; self.nodes.len()];
        hops[0] = Some(0);
        let mut queue = VecDeque::from([0]);
        while let Some(at) = queue.pop_front() {
            for to in 0..self.nodes.len() {
                if self.hears[at][to] && self.alive[to] && hops[to].is_none() {
                    hops[to] = hops[at].map(|hops: usize| hops + 1);
                    queue.push_back(to);
                }
            }
        }
        hops
    }
}
