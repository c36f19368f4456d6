//! A case: what it does and how it judges.

use std::net::SocketAddr;
use std::time::Duration;

use coapace_proto::Options;

use super::finding::Finding;
use super::packet::Packet;
use super::transcript::Transcript;

/// The part that the examined stack plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExaminedSide {
    /// It makes requests.
    Client,
    /// It answers requests.
    Server,
}

/// One case. All that it knows comes from its arguments, so it behaves equally on sockets and in tests.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The name, in lower case with hyphens.
    pub name: &'static str,
    /// The subject of the test, in a few words.
    pub summary: &'static str,
    /// The clause that findings are judged by, unless they name another.
    pub clause: &'static str,
    /// The longest time that the case takes, seconds: quick and thorough.
    pub seconds: [u64; 2],
    /// The client processes that run side by side: quick and thorough. A server is examined from one lane.
    pub lanes: [usize; 2],
    /// Whether a client process that has ended is started again, until the case has seen enough.
    pub restarts: bool,
    /// Whether the client is to ask a group instead of the examiner's address.
    pub asks_group: bool,
    /// Sends the datagrams that begin the case, to a server. A client begins by itself.
    pub begin: fn(&ExaminationTarget, &mut DatagramSchedule),
    /// Reacts to a packet of the stack, which is the last in the transcript.
    pub react: fn(&ExaminationTarget, &Transcript, &Packet, &mut DatagramSchedule),
    /// Returns whether the case has seen all that it wants to.
    pub is_enough: fn(&ExaminationTarget, &Transcript) -> bool,
    /// Judges what happened. An empty list means that nothing is wrong and nothing was measured.
    pub judge: fn(&ExaminationTarget, &Transcript) -> Vec<Finding>,
}

impl Case {
    /// Returns the longest time that the case takes.
    pub fn lasts(&self, is_quick: bool) -> Duration {
        Duration::from_secs(self.seconds[usize::from(!is_quick)])
    }

    pub(crate) fn lane_count(&self, is_quick: bool) -> usize {
        self.lanes[usize::from(!is_quick)]
    }
}

/// The resources of the examined stack, and the extent of the examination.
#[derive(Clone, Debug, Default)]
pub struct ExaminationTarget {
    /// The options that name the resource to read: Uri-Path and Uri-Query.
    pub resource: Options,
    /// An observable resource that changes about once a second.
    pub observable: Option<Options>,
    /// A resource whose answer takes longer than the stack's acknowledgement may wait.
    pub slow: Option<Options>,
    /// A resource whose representation is larger than a datagram should be.
    pub large: Option<Options>,
    /// A resource that counts POST requests and answers with the number.
    pub counter: Option<Options>,
    /// Whether the examination is to be short.
    pub is_quick: bool,
    /// The Message ID of the first request to a server. Later ones count up from it.
    pub first_message_id: u16,
    /// Whether a command starts the client, so that its ends are seen and it asks with every start.
    pub has_command: bool,
    /// Whether the client may send to a group. Its requests leave the machine where the route of the group does.
    pub may_ask_group: bool,
}

impl ExaminationTarget {
    /// Returns the `n`th Message ID of the examiner.
    pub(crate) fn id(&self, n: u16) -> u16 {
        self.first_message_id.wrapping_add(n)
    }

    /// Returns a token that differs with `n`.
    pub(crate) fn token(&self, n: u16) -> [u8; 4] {
        let [high, low] = self.id(n).to_be_bytes();
        [0xca, high, low, n as u8]
    }
}

/// Datagrams to be sent, each at its time.
#[derive(Debug, Default)]
pub struct DatagramSchedule {
    pub(crate) now: Duration,
    pub(crate) due: Vec<DueDatagram>,
}

/// A datagram that waits for its time.
#[derive(Clone, Debug)]
pub(crate) struct DueDatagram {
    pub(crate) at: Duration,
    pub(crate) lane: usize,
    /// The address to send to; `None` for the server that is examined.
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) bytes: Vec<u8>,
}

impl DatagramSchedule {
    /// Sends a datagram to the examined server after this many milliseconds.
    pub(crate) fn send(&mut self, after_ms: u64, bytes: Vec<u8>) {
        self.due.push(DueDatagram {
            at: self.now + Duration::from_millis(after_ms),
            lane: 0,
            peer: None,
            bytes,
        });
    }

    /// Answers a packet after this many milliseconds.
    pub(crate) fn answer(&mut self, packet: &Packet, after_ms: u64, bytes: Vec<u8>) {
        let at = self.now + Duration::from_millis(after_ms);
        self.due.push(DueDatagram { at, lane: packet.lane, peer: Some(packet.peer), bytes });
    }
}

/// Returns the longest time that the cases take if this many lanes are in use at a time.
pub fn planned(cases: &[&Case], is_quick: bool, at_once: usize) -> Duration {
    // Lanes become free in the order in which their cases end, as in the driver.
    let mut free = vec![Duration::ZERO; at_once.max(1)];
    for case in cases {
        let lanes = case.lane_count(is_quick).clamp(1, free.len());
        free.sort_unstable();
        let end = free[lanes - 1] + case.lasts(is_quick);
        free[..lanes].fill(end);
    }
    free.into_iter().max().unwrap_or_default()
}
