//! A case of an examination: what it sends and how it judges.

use std::net::SocketAddr;
use std::time::Duration;

use coapace_proto::Options;

use super::finding::Finding;
use super::packet::Packet;
use super::transcript::Transcript;

/// Which side the examined stack is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExaminedSide {
    /// The stack makes requests.
    Client,
    /// The stack answers requests.
    Server,
}

/// One case of an examination. Its functions depend only on their arguments, so they behave equally on sockets and in
/// tests.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The name, in lower case with hyphens.
    pub name: &'static str,
    /// The tested behaviour, in a few words.
    pub summary: &'static str,
    /// The clause of a specification that findings refer to, unless they name another.
    pub clause: &'static str,
    /// The longest duration of the case in seconds, in a quick and in a thorough examination.
    pub seconds: [u64; 2],
    /// The number of client processes that run concurrently, in a quick and in a thorough examination. A server is
    /// examined from one lane.
    pub lanes: [usize; 2],
    /// Whether a client process that has ended is started again, until the case has enough packets.
    pub restarts: bool,
    /// Whether the client must send its request to a multicast group instead of the examiner's address.
    pub asks_group: bool,
    /// Sends the first datagrams to a server. Not used for a client, which begins by itself.
    pub begin: fn(&ExaminationTarget, &mut DatagramSchedule),
    /// Reacts to a packet of the stack, which is the last in the transcript.
    pub react: fn(&ExaminationTarget, &Transcript, &Packet, &mut DatagramSchedule),
    /// Returns whether the case has enough packets for its verdict, so that it can end before
    /// [`seconds`](Self::seconds).
    pub is_enough: fn(&ExaminationTarget, &Transcript) -> bool,
    /// Returns the finding of a case that cannot be judged, because a request or a resource is missing; `None` if
    /// nothing is missing.
    pub lacks: fn(&ExaminationTarget, &Transcript) -> Option<Finding>,
    /// Judges the packets, if nothing is missing. An empty list means that nothing is wrong and nothing was measured.
    pub judge: fn(&ExaminationTarget, &Transcript) -> Vec<Finding>,
}

impl Case {
    /// Returns the longest duration of the case.
    pub fn lasts(&self, is_quick: bool) -> Duration {
        Duration::from_secs(self.seconds[usize::from(!is_quick)])
    }

    /// Returns the findings from the packets of the case.
    pub(crate) fn findings(&self, target: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
        (self.lacks)(target, transcript).map_or_else(|| (self.judge)(target, transcript), |lack| vec![lack])
    }

    pub(crate) fn lane_count(&self, is_quick: bool) -> usize {
        self.lanes[usize::from(!is_quick)]
    }
}

/// The resources of the examined stack, and how thorough the examination is.
#[derive(Clone, Debug, Default)]
pub struct ExaminationTarget {
    /// The options of the resource to read: Uri-Path and Uri-Query.
    pub resource: Options,
    /// An observable resource that changes about once a second.
    pub observable: Option<Options>,
    /// A slow resource: the stack must acknowledge a request for it before it can answer.
    pub slow: Option<Options>,
    /// A resource whose representation is too large for one datagram.
    pub large: Option<Options>,
    /// A resource that counts POST requests and answers each with the count.
    pub counter: Option<Options>,
    /// Whether the examination is short.
    pub is_quick: bool,
    /// The Message ID of the first request to a server. The Message IDs of later requests count up from it.
    pub first_message_id: u16,
    /// Whether a command starts the client, so that its exit is visible and each start makes a request.
    pub has_command: bool,
    /// Whether the client may send to a multicast group. Its requests leave the machine if the system routes the group
    /// to a network.
    pub may_ask_group: bool,
}

impl ExaminationTarget {
    /// Returns the `n`th Message ID of the examiner.
    pub(crate) fn id(&self, n: u16) -> u16 {
        self.first_message_id.wrapping_add(n)
    }

    /// Returns a token that is unique for each `n`.
    pub(crate) fn token(&self, n: u16) -> [u8; 4] {
        let [high, low] = self.id(n).to_be_bytes();
        [0xca, high, low, n as u8]
    }
}

/// Datagrams to be sent at given times.
#[derive(Debug, Default)]
pub struct DatagramSchedule {
    pub(crate) now: Duration,
    pub(crate) due: Vec<DueDatagram>,
}

/// A datagram that waits for the time at which it is sent.
#[derive(Clone, Debug)]
pub(crate) struct DueDatagram {
    pub(crate) at: Duration,
    pub(crate) lane: usize,
    /// The address to send to; `None` for the server that is examined.
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) bytes: Vec<u8>,
}

impl DatagramSchedule {
    /// Schedules a datagram to the examined server, to be sent after this many milliseconds.
    pub(crate) fn send(&mut self, after_ms: u64, bytes: Vec<u8>) {
        self.due.push(DueDatagram {
            at: self.now + Duration::from_millis(after_ms),
            lane: 0,
            peer: None,
            bytes,
        });
    }

    /// Schedules a datagram to the sender of a packet, to be sent after this many milliseconds.
    pub(crate) fn answer(&mut self, packet: &Packet, after_ms: u64, bytes: Vec<u8>) {
        let at = self.now + Duration::from_millis(after_ms);
        self.due.push(DueDatagram { at, lane: packet.lane, peer: Some(packet.peer), bytes });
    }
}

/// Returns how long the cases take at most, if `at_once` lanes are used concurrently.
pub fn planned(cases: &[&Case], is_quick: bool, at_once: usize) -> Duration {
    // Lanes become free in the order in which their cases end, as in the driver.
    let mut free = vec![Duration::ZERO; at_once.max(1)];
    for case in cases {
        let lanes = case.lane_count(is_quick).clamp(1, free.len());
        free.sort_unstable();
        // A case begins when the last of its lanes is free, and takes the lanes that are free first.
        let end = free[lanes - 1] + case.lasts(is_quick);
        free[..lanes].fill(end);
    }
    free.into_iter().max().unwrap_or_default()
}
