//! Clients of another stack that take the place of ours.
//!
//! A client is a process, which is started again until all requests are made. It sends its datagrams to a socket here,
//! and a second socket passes them on to the network. So a client is one source of the network, whatever ports its
//! processes have. All measurements are read from its packets.

use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use coapace_proto::Message;
use coapace_run::measured::{RunResult, quantile};
use coapace_sim::{Span, Time};

use super::socket::{bind, receive_from};
use super::{Live, LiveError, PeerCommand};
use crate::emulation::waiting::EmulationClock;
use crate::program::Program;

/// The number of starts in a row without a request after which a client is not started again.
const MAX_SILENT_STARTS: u32 = 3;

/// The number of recent exchanges that are remembered for each client.
const REMEMBERED: usize = 32;

/// The time between two checks of a client whose last request was answered, so that its process will soon end.
const SOON: Duration = Duration::from_millis(2);

/// The time between two checks of the other clients.
const LATER: Duration = Duration::from_millis(100);

/// The clients of another stack in a run.
pub(super) struct Foreigners<'a> {
    peer: &'a PeerCommand,
    path: &'a str,
    /// The number of exchanges that each client is to make.
    wanted: u32,
    clients: Vec<Foreigner>,
    looked: Time,
    /// The times that clients took from an answer to their next request, in seconds.
    gaps: Vec<f64>,
}

/// A client of another stack.
struct Foreigner {
    /// The socket that the client's processes send requests to.
    inner: UdpSocket,
    /// The socket towards the network.
    outer: UdpSocket,
    process: Option<Program>,
    silent_starts: u32,
    recent: VecDeque<ForeignExchange>,
    first: Option<Time>,
    /// The time of the last answer that completed an exchange; `None` after the next request.
    answered: Option<Time>,
    done: Option<Time>,
    completed: u32,
    given_up: u64,
    requests: u64,
    retransmissions: u64,
    spurious: u64,
    /// The total time of the completed exchanges.
    busy: Span,
}

struct ForeignExchange {
    from: SocketAddr,
    message_id: u16,
    begun: Time,
    is_answered: bool,
}

impl<'a> Foreigners<'a> {
    /// Opens the sockets of the clients. `entrance` is the address at which the network takes their datagrams.
    pub(super) fn open(
        live: &'_ Live<'a>,
        peer: &'a PeerCommand,
        entrance: SocketAddr,
    ) -> Result<Self, LiveError> {
        let scenario = live.scenario;
        let client = |_| {
            let (inner, outer) = (bind()?, bind()?);
            outer.connect(entrance).map_err(LiveError::io("connect a socket"))?;
            Ok(Foreigner::new(inner, outer))
        };
        Ok(Self {
            peer,
            path: &scenario.clients.uri_path,
            wanted: scenario.workload.exchanges.unwrap_or(1),
            clients: (0..scenario.clients.count).map(client).collect::<Result<_, LiveError>>()?,
            looked: Time::ZERO,
            gaps: Vec::new(),
        })
    }

    /// Returns the sockets of all clients. The position of a socket is its number for [`receive`](Self::receive).
    pub(super) fn sockets(&self) -> impl Iterator<Item = &UdpSocket> {
        self.clients.iter().flat_map(|client| [&client.inner, &client.outer])
    }

    pub(super) fn are_done(&self) -> bool {
        self.clients.iter().all(|client| client.done.is_some())
    }

    /// Returns how many exchanges were completed or given up.
    pub(super) fn exchanges(&self) -> u64 {
        self.clients.iter().map(|client| u64::from(client.completed) + client.given_up).sum()
    }

    /// Starts a new process for each client whose process has ended before its last exchange. Returns the time until
    /// the next check.
    pub(super) fn attend(&mut self, now: Time) -> Result<Duration, LiveError> {
        // Each look is a system call for each process. Only those that have their answer are looked at more often.
        let looks =
            Duration::from_nanos((now - self.looked).as_nanos()) >= LATER || self.looked == Time::ZERO;
        if looks {
            self.looked = now;
        }
        let mut next = LATER;
        for client in self.clients.iter_mut().filter(|client| client.done.is_none()) {
            if looks || client.answered.is_some() {
                client.attend(now, self.wanted, self.peer, self.path)?;
            }
            if client.answered.is_some() {
                next = SOON;
            }
        }
        Ok(next)
    }

    /// Forwards the datagrams that have arrived at socket `number`: from a client's process to the network, or from the
    /// network to a process.
    pub(super) fn receive(
        &mut self,
        number: usize,
        clock: &EmulationClock,
        datagram: &mut [u8],
    ) -> Result<(), LiveError> {
        let Some(client) = self.clients.get_mut(number / 2) else { return Ok(()) };
        let is_inner = number.is_multiple_of(2);
        loop {
            let socket = if is_inner { &client.inner } else { &client.outer };
            let Some((length, from)) = receive_from(socket, datagram)? else { return Ok(()) };
            let bytes = &datagram[..length];
            if is_inner {
                self.gaps.extend(client.ask(clock.now(), from, bytes));
            } else {
                client.answer(clock.now(), bytes, self.wanted);
            }
        }
    }

    /// Overwrites the results of our own clients, which did nothing, with the measured results of the other stack.
    pub(super) fn report(&self, result: &mut RunResult) {
        let seconds = |from: Option<Time>, to: Option<Time>| Some((to? - from?).as_nanos() as f64 / 1e9);
        let sum = |count: fn(&Foreigner) -> u64| self.clients.iter().map(count).sum::<u64>();
        result.fct_s = { self.clients.iter() }
            // A client that gave up an exchange has no completion time, as in the simulator.
            .map(|client| seconds(client.first, client.done).filter(|_| client.given_up == 0))
            .collect();
        result.exchanges = self.clients.iter().map(|client| client.completed).collect();
        result.given_up = sum(|client| client.given_up);
        result.retransmissions = sum(|client| client.retransmissions);
        result.spurious = sum(|client| client.spurious);
        result.requests_sent = sum(|client| client.requests);
        // There is one population, because `PeerCommand::fits` refuses a mix of mechanisms.
        if let Some(population) = result.populations.first_mut() {
            population.clients = self.clients.len() as u32;
            population.exchanges = sum(|client| client.completed.into());
            population.requests_sent = result.requests_sent;
            population.retransmissions = result.retransmissions;
            population.exchange_time_us = sum(|client| client.busy.as_nanos() / 1_000);
        }
    }

    /// Returns a text with the times that the clients took from an answer to the next request, the start of processes
    /// included. Returns `None` if no request followed an answer.
    pub(super) fn words(mut self) -> Option<String> {
        self.gaps.sort_by(f64::total_cmp);
        let (median, most) = (quantile(&self.gaps, 0.5)?, quantile(&self.gaps, 0.95)?);
        Some(format!(
            "{} took {:.0} ms from an answer to the next request (median; 95 % within {:.0} ms), ours take none",
            self.peer.name(),
            median * 1e3,
            most * 1e3
        ))
    }
}

impl Foreigner {
    fn new(inner: UdpSocket, outer: UdpSocket) -> Self {
        Self {
            inner,
            outer,
            process: None,
            silent_starts: 0,
            recent: VecDeque::new(),
            first: None,
            answered: None,
            done: None,
            completed: 0,
            given_up: 0,
            requests: 0,
            retransmissions: 0,
            spurious: 0,
            busy: Span::ZERO,
        }
    }

    /// Starts a process if none runs and exchanges are missing.
    fn attend(&mut self, now: Time, wanted: u32, peer: &PeerCommand, path: &str) -> Result<(), LiveError> {
        if let Some(process) = &mut self.process {
            if !process.has_ended() {
                return Ok(());
            }
            if self.silent_starts >= MAX_SILENT_STARTS {
                return Err(peer.failed(&process.last_words()));
            }
            // A process that ends without its answer has given up.
            let open = self.recent.iter().filter(|exchange| !exchange.is_answered).count();
            self.given_up += open as u64;
            self.recent.retain(|exchange| exchange.is_answered);
            if self.end_if_done(now, wanted) {
                return Ok(());
            }
        }
        self.silent_starts += 1;
        self.process = None;
        let address = self.inner.local_addr().map_err(LiveError::io("open a socket"))?;
        self.process = Some(peer.start_client(address, path)?);
        Ok(())
    }

    /// Forwards a datagram of a process to the network. If the datagram begins an exchange after an answer, returns the
    /// seconds since the answer.
    fn ask(&mut self, now: Time, from: SocketAddr, bytes: &[u8]) -> Option<f64> {
        // A datagram that the system does not take is lost like one on the way.
        let _ = self.outer.send(bytes);
        let message = Message::parse(bytes).ok().filter(|message| message.code.is_request())?;
        self.requests += 1;
        // Only starts in a row without a request show a command that does not work.
        self.silent_starts = 0;
        let message_id = message.message_id;
        let is_copy = |exchange: &ForeignExchange| exchange.from == from && exchange.message_id == message_id;
        if self.recent.iter().any(is_copy) {
            self.retransmissions += 1;
            return None;
        }
        self.first.get_or_insert(now);
        if self.recent.len() >= REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(ForeignExchange { from, message_id, begun: now, is_answered: false });
        self.answered.take().map(|answered| (now - answered).as_nanos() as f64 / 1e9)
    }

    /// Forwards a datagram from the network to the process whose request it answers, and counts the answer.
    fn answer(&mut self, now: Time, bytes: &[u8], wanted: u32) {
        let Ok(message) = Message::parse(bytes) else { return };
        // Message IDs come again after a while, so the latest exchange with this one is meant.
        let is_answered = |exchange: &&mut ForeignExchange| exchange.message_id == message.message_id;
        let Some(exchange) = self.recent.iter_mut().rev().find(is_answered) else { return };
        // The process may have ended.
        let _ = self.inner.send_to(bytes, exchange.from);
        if !message.code.is_response() {
            return;
        }
        // A second answer shows that a copy reached the server although its answer, or an earlier one, arrived.
        if exchange.is_answered {
            self.spurious += 1;
            return;
        }
        exchange.is_answered = true;
        self.busy += now - exchange.begun;
        self.completed += 1;
        self.answered = Some(now);
        self.end_if_done(now, wanted);
    }

    /// Ends the process if the client has completed or given up all its exchanges. Returns whether it has.
    fn end_if_done(&mut self, now: Time, wanted: u32) -> bool {
        let is_done = u64::from(self.completed) + self.given_up >= wanted.into();
        if is_done {
            self.done.get_or_insert(now);
            self.process = None;
        }
        is_done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(message_id: u16) -> Vec<u8> {
        [&[0x40, 1][..], &message_id.to_be_bytes()].concat()
    }

    fn content(message_id: u16) -> Vec<u8> {
        [&[0x60, 0x45][..], &message_id.to_be_bytes()].concat()
    }

    #[test]
    fn clients_of_other_stacks_are_measured_by_their_packets() {
        let (inner, outer, process) = (bind().unwrap(), bind().unwrap(), bind().unwrap());
        outer.connect(outer.local_addr().unwrap()).unwrap();
        let from = process.local_addr().unwrap();
        let mut client = Foreigner::new(inner, outer);
        let at = Time::from_secs;
        assert_eq!(client.ask(at(1), from, &get(7)), None);
        assert_eq!(client.ask(at(4), from, &get(7)), None);
        client.answer(at(6), &content(7), 2);
        client.answer(at(9), &content(7), 2);
        client.answer(at(9), &content(8), 2);
        assert_eq!(client.ask(at(10), from, &get(8)), Some(4.0));
        assert_eq!(client.done, None);
        client.answer(at(12), &content(8), 2);
        assert_eq!((client.first, client.done), (Some(at(1)), Some(at(12))));
        assert_eq!((client.completed, client.requests), (2, 3));
        assert_eq!((client.retransmissions, client.spurious), (1, 1));
        assert_eq!(client.busy, Span::from_secs(7));
    }
}
