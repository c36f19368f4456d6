//! The packets of one case, in the order in which they were sent and received.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use super::copies::MessageCopies;
use super::packet::Packet;

/// Packets that a case keeps. A stack that sends more is cut off.
pub(crate) const MAX_PACKETS: usize = 20_000;

/// The end of a client process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The lane of the process.
    pub lane: usize,
    /// The time since the examination began.
    pub at: Duration,
    /// The exit code: 128 and the number of the signal if one ended it.
    pub code: u8,
}

/// The packets and the ends of processes of one case.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// The packets, in the order of their times.
    pub packets: Vec<Packet>,
    /// The ends of the client processes.
    pub exits: Vec<Exit>,
    /// The moment at which the case ended.
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

    /// Returns the number of copies of this message that the stack has sent so far, this one included.
    pub(crate) fn copies_of(&self, packet: &Packet) -> usize {
        let id = packet.bytes.get(2..4);
        let is_copy = |other: &&Packet| {
            other.lane == packet.lane && other.peer == packet.peer && other.bytes.get(2..4) == id
        };
        self.received().filter(is_copy).filter(|other| other.at <= packet.at).count()
    }

    /// Returns the messages that the stack sent and `is_meant` selects, each with its copies.
    ///
    /// A message is known by lane, address, type and Message ID. A packet with the Message ID of one that was sent more than
    /// EXCHANGE_LIFETIME (247 s, RFC 7252 §4.8.2) ago begins another.
    pub(crate) fn messages(&self, is_meant: impl Fn(&Packet) -> bool) -> Vec<MessageCopies<'_>> {
        let mut places: HashMap<(usize, SocketAddr, [u8; 2], u8), usize> = HashMap::new();
        let mut all: Vec<MessageCopies<'_>> = Vec::new();
        for packet in self.received().filter(|packet| is_meant(packet)) {
            let Some(&[first, _, high, low]) = packet.bytes.get(..4) else { continue };
            let key = (packet.lane, packet.peer, [high, low], first >> 4 & 3);
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

    /// Returns the requests, each with its copies, which may have Message IDs of their own. A request with the token of an earlier
    /// one that nothing has answered yet is a copy of it.
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

    /// Returns the end of the process of a lane that came first after `after`.
    pub(crate) fn exit_after(&self, lane: usize, after: Duration) -> Option<Duration> {
        self.exits.iter().filter(|exit| exit.lane == lane && exit.at >= after).map(|exit| exit.at).min()
    }
}
