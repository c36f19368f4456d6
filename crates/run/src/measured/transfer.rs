//! The results of one transfer in one run.

use coapace_scenario::{Direction, Transfer};
use coapace_sim::Time;
use coapace_sim::tcp::{TcpClient, TcpServer};
use serde::{Deserialize, Serialize};

use super::ratio;

/// All bodies that the clients of one entry of `[[workload.transfers]]` moved in one run. A body counts if its transfer
/// ended after the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransferResult {
    /// The name of the transfer.
    pub name: String,
    /// The number of clients that take part.
    pub clients: u32,
    /// Bytes of a body.
    pub body_bytes: u64,
    /// For each completed transfer, the time of its end and its duration, in seconds, sorted by the time of the end.
    pub completed_s: Vec<(f64, f64)>,
    /// Transfers that were given up, or whose body arrived changed.
    pub failed: u64,
    /// Bytes of bodies that arrived, incomplete transfers included; over TCP, including the headers of CoAP messages.
    pub arrived_bytes: u64,
    /// Blocks that were requested again, or sent again; over TCP, segments that either end sent again.
    pub blocks_again: u64,
    /// Blocks that arrived more than once; over TCP, segments that arrived more than once at either end.
    pub blocks_twice: u64,
    /// The time from the beginning of the first transfer to the end of the last, within the measured time, in seconds.
    pub active_s: f64,
    /// The rate of the slowest hop in the direction of the body, in bits of IP packets per second; `None` if no hop has
    /// a rate.
    pub capacity_bps: Option<u64>,
    /// True if clients upload bodies to the server.
    #[serde(skip)]
    is_up: bool,
    #[serde(skip)]
    began: Option<Time>,
    #[serde(skip)]
    ended: Time,
    /// True while a client's transfer is running.
    #[serde(skip)]
    is_open: bool,
    /// For each client over UDP, the bytes that it moved and the times of its transfers.
    #[serde(skip)]
    moved: Vec<Moved>,
}

/// The bytes of bodies that one client over UDP moved, and the times of its transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Moved {
    /// The number of the client's population.
    pub(crate) population: usize,
    /// Bytes of bodies, without failed transfers.
    pub(crate) bytes: u64,
    /// The beginning of the client's first transfer; `None` before it.
    pub(crate) began: Option<Time>,
    /// The end of the client's last transfer.
    pub(crate) ended: Time,
    /// True while a transfer of the client is running.
    pub(crate) is_open: bool,
}

impl Moved {
    /// Returns the end of the client's last transfer, or `end` if the transfer is still running or ended later.
    fn last(&self, end: Time) -> Time {
        if self.is_open { end } else { self.ended.min(end) }
    }

    /// Returns the client's rate in bit/s, over the part of its transfer time that lies between `from` and `end`.
    fn rate_bps(&self, (from, end): (Time, Time)) -> f64 {
        let own_s = self.began.map_or(0.0, |began| (self.last(end) - began.max(from)).as_secs_f64());
        ratio(self.bytes as f64 * 8.0, own_s).unwrap_or(0.0)
    }
}

impl TransferResult {
    /// Makes the result of a transfer that has not begun.
    pub(crate) fn new(keys: &Transfer) -> Self {
        let is_up = keys.direction == Direction::Up;
        Self { name: keys.name.clone(), body_bytes: keys.bytes, is_up, ..Self::default() }
    }

    /// Returns the share of the capacity that arriving bodies used while transfers were running, from 0 to 1; `None` if
    /// the capacity is not known or no transfer was running.
    pub fn link_share(&self) -> Option<f64> {
        ratio(self.arrived_bytes as f64 * 8.0, self.capacity_bps? as f64 * self.active_s)
    }

    /// Extends the time of this transfer by the transfers of a client. They last from `began` to `ended`, or are still
    /// running if `is_open` is true.
    fn lasted(&mut self, began: Option<Time>, ended: Time, is_open: bool) {
        self.began = self.began.into_iter().chain(began).min();
        self.ended = self.ended.max(ended);
        self.is_open |= is_open;
    }

    /// Adds the bytes and times of a client over UDP.
    pub(crate) fn add_moved(&mut self, client: Moved) {
        self.lasted(client.began, client.ended, client.is_open);
        self.moved.push(client);
    }

    /// Returns the rate of each client of a population, in bit/s, between two points in time.
    pub(crate) fn rates_bps(
        &self,
        population: usize,
        within: (Time, Time),
    ) -> impl Iterator<Item = f64> + Clone {
        let own = self.moved.iter().filter(move |client| client.population == population);
        own.map(move |client| client.rate_bps(within))
    }

    /// Returns the share of the capacity that the clients of a population used between two points in time, while any of
    /// their transfers was running; `None` if the capacity is not known or no transfer was running.
    pub(crate) fn link_share_of(&self, population: usize, (from, end): (Time, Time)) -> Option<f64> {
        let own = || self.moved.iter().filter(|client| client.population == population);
        let began = own().filter_map(|client| client.began).min()?;
        let last = own().map(|client| client.last(end)).max()?;
        let carried = self.capacity_bps? as f64 * (last - began.max(from)).as_secs_f64();
        ratio(own().map(|client| client.bytes).sum::<u64>() as f64 * 8.0, carried)
    }

    /// Adds the counts of a client over TCP.
    pub(crate) fn add_tcp_client(&mut self, client: &TcpClient) {
        let (plan, report) = (client.plan(), client.report());
        self.clients += 1;
        // The report has only the ends. A transfer begins when the pause after the one before is over.
        let mut began = plan.connect_at;
        for &end in &report.completions {
            self.completed_s.push((end.as_secs_f64(), (end - began).as_secs_f64()));
            began = end + plan.pause;
        }
        self.failed += u64::from(report.abandoned.is_some());
        // Only the receiving end counts arrivals. For an upload that is the server.
        if !self.is_up {
            self.arrived_bytes += report.received_bytes;
        }
        self.blocks_again += report.retransmitted_segments;
        self.blocks_twice += report.duplicate_segments;
        let ended = report.completions.last().copied().max(report.abandoned).unwrap_or_default();
        let has_begun = report.connections > 0;
        let is_over = report.finished.is_some() || report.abandoned.is_some();
        self.lasted(has_begun.then_some(plan.connect_at), ended, has_begun && !is_over);
    }

    /// Adds the counts of the server over TCP.
    pub(crate) fn add_tcp_server(&mut self, server: &TcpServer) {
        let counters = server.counters();
        if self.is_up {
            self.arrived_bytes += counters.received_bytes;
        }
        self.blocks_again += counters.retransmitted_segments;
        self.blocks_twice += counters.duplicate_segments;
    }

    /// Sorts the complete transfers by their ends.
    pub(crate) fn sort(&mut self) {
        self.completed_s.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    }

    /// Subtracts the counts that the same run had at an earlier time, the end of the warm-up.
    pub(super) fn leave_out(&mut self, earlier: &Self) {
        // Both lists are sorted by the ends, so the transfers of the warm-up come first.
        self.completed_s.drain(..earlier.completed_s.len().min(self.completed_s.len()));
        self.failed -= earlier.failed;
        self.arrived_bytes -= earlier.arrived_bytes;
        self.blocks_again -= earlier.blocks_again;
        self.blocks_twice -= earlier.blocks_twice;
        for (client, earlier) in self.moved.iter_mut().zip(&earlier.moved) {
            // A transfer of the warm-up may have failed since.
            client.bytes = client.bytes.saturating_sub(earlier.bytes);
        }
    }

    /// Sets how long transfers were running between two points in time, and the capacity.
    pub(crate) fn settle(&mut self, (from, end): (Time, Time), capacity_bps: Option<u64>) {
        let last = if self.is_open { end } else { self.ended.min(end) };
        self.active_s = self.began.map_or(0.0, |began| (last - began.max(from)).as_secs_f64());
        self.capacity_bps = capacity_bps;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_used_share_of_the_link_is_over_the_time_with_active_transfers() {
        let mut own = TransferResult { arrived_bytes: 10_000, ..TransferResult::default() };
        own.lasted(Some(Time::from_secs(5)), Time::from_secs(15), false);
        own.lasted(Some(Time::from_secs(7)), Time::from_secs(25), false);
        own.settle((Time::ZERO, Time::from_secs(100)), Some(8_000));
        assert_eq!((own.active_s, own.link_share()), (20.0, Some(0.5)));
        own.lasted(None, Time::ZERO, true);
        own.settle((Time::from_secs(10), Time::from_secs(30)), Some(8_000));
        assert_eq!(
            (own.active_s, own.link_share()),
            (20.0, Some(0.5)),
            "from the warm-up to the end of the run"
        );
        own.settle((Time::ZERO, Time::from_secs(100)), None);
        assert_eq!(own.link_share(), None);
    }

    #[test]
    fn the_goodput_of_a_population_uses_the_active_time_of_each_client() {
        let at = Time::from_secs;
        let moved = |population, began, ended, is_open, bytes| Moved {
            population,
            bytes,
            began: Some(at(began)),
            ended: at(ended),
            is_open,
        };
        let clients =
            [moved(0, 0, 20, false, 10_000), moved(1, 5, 0, true, 10_000), moved(0, 10, 50, false, 10_000)];
        let mut own = TransferResult::default();
        for client in clients {
            own.add_moved(client);
        }
        let within = (at(10), at(45));
        own.settle(within, Some(8_000));
        let rates = |population| own.rates_bps(population, within).collect::<Vec<_>>();
        assert_eq!((rates(0), rates(1)), (vec![8_000.0, 80_000.0 / 35.0], vec![80_000.0 / 35.0]));
        assert_eq!(own.link_share_of(0, within), Some(20_000.0 * 8.0 / (8_000.0 * 35.0)));
        assert_eq!(own.link_share_of(2, within), None, "nobody");

        let mut earlier = own.clone();
        (earlier.moved[0].bytes, earlier.moved[1].bytes, earlier.moved[2].bytes) = (4_000, 0, 12_000);
        own.leave_out(&earlier);
        let bytes: Vec<u64> = own.moved.iter().map(|client| client.bytes).collect();
        assert_eq!(bytes, [6_000, 10_000, 0], "a transfer of the warm-up failed since");
    }

    #[test]
    fn transfers_that_ended_in_the_warm_up_are_left_out() {
        let earlier = TransferResult { completed_s: vec![(10.0, 10.0)], ..TransferResult::default() };
        let mut own =
            TransferResult { completed_s: vec![(10.0, 10.0), (20.0, 20.0)], ..TransferResult::default() };
        own.leave_out(&earlier);
        assert_eq!(own.completed_s, [(20.0, 20.0)]);
    }
}
