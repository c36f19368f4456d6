//! The packets of one case, sorted by time.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use super::copies::MessageCopies;
use super::packet::Packet;

/// The maximum number of packets that are stored for a case. Further packets are ignored.
pub(crate) const MAX_PACKETS: usize = 20_000;

/// The exit of a client process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The lane of the client process.
    pub lane: usize,
    /// The time of the exit, since the examination began.
    pub at: Duration,
    /// The exit code; 128 plus the number of the signal if a signal ended the process.
    pub code: u8,
}

/// The packets and process exits of one case.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// The packets, sorted by time.
    pub packets: Vec<Packet>,
    /// The exits of the client processes.
    pub exits: Vec<Exit>,
    /// The time up to which the case has run, since the examination began.
    pub until: Duration,
}

impl Transcript {
    /// Adds a packet. Returns false if the transcript is full.
    pub fn add(&mut self, packet: Packet) -> bool {
        let has_room = self.packets.len() < MAX_PACKETS;
        if has_room {
            self.until = self.until.max(packet.at);
            self.packets.push(packet);
        }
        has_room
    }

    /// Returns the packets that the stack sent.
    pub(crate) fn received(&self) -> impl Iterator<Item = &Packet> {
        self.packets.iter().filter(|packet| packet.is_received())
    }

    /// Returns the packets that the examiner sent.
    pub(crate) fn sent(&self) -> impl Iterator<Item = &Packet> {
        self.packets.iter().filter(|packet| !packet.is_received())
    }

    /// Returns the number of copies of the message in this packet that the stack has sent so far, including this
    /// packet.
    pub(crate) fn copies_of(&self, packet: &Packet) -> usize {
        let id = packet.bytes.get(2..4);
        let is_copy = |other: &&Packet| {
            other.lane == packet.lane && other.peer == packet.peer && other.bytes.get(2..4) == id
        };
        self.received().filter(is_copy).filter(|other| other.at <= packet.at).count()
    }

    /// Returns those messages of the stack that `is_meant` selects, each with its copies.
    ///
    /// A message is identified by lane, address, type and Message ID. A packet whose Message ID was first sent more than
    /// EXCHANGE_LIFETIME (247 s, RFC 7252 §4.8.2) ago begins another message.
    pub(crate) fn messages(&self, is_meant: impl Fn(&Packet) -> bool) -> Vec<MessageCopies<'_>> {
        let mut places: HashMap<(usize, SocketAddr, [u8; 2], u8), usize> = HashMap::new();
        let mut all: Vec<MessageCopies<'_>> = Vec::new();
        for packet in self.received().filter(|packet| is_meant(packet)) {
            let Some(&[first, _, high, low]) = packet.bytes.get(..4) else { continue };
            let key = (packet.lane, packet.peer, [high, low], first >> 4 & 3);
            // A Message ID may be used again after EXCHANGE_LIFETIME (RFC 7252 §4.4).
            let place = places.get(&key).copied().filter(|&place| all[place].is_alive_at(packet.at));
            if let Some(place) = place {
                all[place].packets.push(packet);
            } else {
                places.insert(key, all.len());
                all.push(MessageCopies { packets: vec![packet] });
            }
        }
        all
    }

    /// Returns the requests of the stack, each with its copies.
    pub(crate) fn requests(&self) -> Vec<MessageCopies<'_>> {
        self.messages(Packet::is_request)
    }

    /// Returns the requests of the stack, each with its copies, which may have different Message IDs. A request with
    /// the token of an earlier unanswered request counts as a copy of the earlier one.
    pub(crate) fn exchanges(&self) -> Vec<MessageCopies<'_>> {
        let token =
            |copies: &MessageCopies<'_>| copies.message().map(|message| message.token).unwrap_or_default();
        let mut all: Vec<MessageCopies<'_>> = Vec::new();
        for copies in self.requests() {
            let first = copies.first();
            let is_continued = |one: &&mut MessageCopies<'_>| {
                !token(one).is_empty()
                    && token(one) == token(&copies)
                    && (one.first().lane, one.first().peer) == (first.lane, first.peer)
                    && one.is_alive_at(first.at)
                    && self.answers(one).all(|answer| answer.number > first.number)
            };
            // A token comes again in long examinations, so the latest exchange with it is meant.
            match all.iter_mut().rev().find(is_continued) {
                Some(one) => one.packets.extend(copies.packets),
                None => all.push(copies),
            }
        }
        all
    }

    /// Returns the answers that the examiner has sent to a message.
    pub(crate) fn answers(&self, copies: &MessageCopies<'_>) -> impl Iterator<Item = &Packet> {
        self.sent().filter(move |answer| copies.are_answered_by(answer))
    }

    /// Returns the time of the first process exit of a lane at or after `after`; `None` if there is none.
    pub(crate) fn exit_after(&self, lane: usize, after: Duration) -> Option<Duration> {
        self.exits.iter().filter(|exit| exit.lane == lane && exit.at >= after).map(|exit| exit.at).min()
    }
}
