//! Datagrams that a capture contains twice, because it was taken on two interfaces, on both sides of a bridge or over the air.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

use coapace_sim::{Span, Time};

use super::datagram::CapturedDatagram;

/// Equal datagrams at most this far apart count as one: no timer of CoAP fires so soon.
const AT_ONCE: Span = Span::from_nanos(1_000_000);

/// Equal datagrams with the same IPv4 Identification count as one if they are at most this far apart. The field
/// distinguishes packets (RFC 6864 §4.1).
const SOON: Span = Span::from_secs(1);

/// The maximum number of datagrams that are stored.
const MOST: usize = 1 << 16;

/// The maximum number of senders whose IPv4 Identifications are tracked.
const MOST_SENDERS: usize = 100_000;

/// The datagrams of the last second of a capture.
#[derive(Debug, Default)]
pub(super) struct Sightings {
    /// The time and the Identification of each datagram, by a hash of addresses and content.
    seen: HashMap<u64, (Time, u16)>,
    /// The datagrams in the sequence of the file.
    order: VecDeque<(Time, u64)>,
    senders: HashMap<IpAddr, Sender>,
}

/// The last datagram of a sender.
#[derive(Debug)]
struct Sender {
    content: u64,
    identification: u16,
    /// Whether two different consecutive datagrams had the same Identification, so that it identifies nothing.
    is_constant: bool,
}

impl Sightings {
    /// Records a datagram. Returns whether the capture has contained it before, so that it is not another transmission.
    pub(super) fn is_again(&mut self, at: Time, datagram: &CapturedDatagram<'_>) -> bool {
        let mut hasher = DefaultHasher::new();
        // A radio datagram is seen at its departure and at its arrival. These have different points, and both count.
        (datagram.from, datagram.to, datagram.point as u8, datagram.ip_bytes).hash(&mut hasher);
        datagram.payload.hash(&mut hasher);
        let content = hasher.finish();
        // This comes before the early return, because it learns from every datagram.
        let tells = self.tells(datagram, content);
        self.forget(at);
        if let Some(&(before, identification)) = self.seen.get(&content) {
            let since = apart(at, before);
            let is_same = tells && identification == datagram.identification;
            if since <= AT_ONCE || is_same && since <= SOON {
                return true;
            }
        }
        self.seen.insert(content, (at, datagram.identification));
        self.order.push_back((at, content));
        false
    }

    /// Returns whether the Identification of a datagram distinguishes it from other datagrams of the same sender.
    fn tells(&mut self, datagram: &CapturedDatagram<'_>, content: u64) -> bool {
        let (from, identification) = (datagram.from.ip(), datagram.identification);
        if let Some(sender) = self.senders.get_mut(&from) {
            sender.is_constant |= sender.content != content && sender.identification == identification;
            (sender.content, sender.identification) = (content, identification);
            // IPv6 has no identification, and an IPv4 packet that is never fragmented may have 0 (RFC 6864 §4.1).
            return !sender.is_constant && identification != 0;
        }
        // Nothing is known about the first datagram of a sender, so its identification does not count yet.
        if self.senders.len() < MOST_SENDERS {
            self.senders.insert(from, Sender { content, identification, is_constant: false });
        }
        false
    }

    /// Drops datagrams that are too old to be repeated, and the oldest if there are too many.
    fn forget(&mut self, now: Time) {
        while let Some(&(at, content)) = self.order.front() {
            if apart(now, at) <= SOON && self.order.len() < MOST {
                break;
            }
            self.order.pop_front();
            // A later datagram with this content stays.
            if self.seen.get(&content).is_some_and(|seen| seen.0 == at) {
                self.seen.remove(&content);
            }
        }
    }
}

/// Returns the time between two moments, of which either may be the earlier: packets of several interfaces may be out
/// of sequence.
fn apart(one: Time, other: Time) -> Span {
    (one - other).max(other - one)
}

#[cfg(test)]
mod tests {
    use super::super::headers::{datagram, tests::ip};
    use super::super::lowpan::Lowpan;
    use super::*;

    /// Records datagrams: microseconds, identification, content. Returns which of them were repeated.
    fn seen(datagrams: &[(u64, u16, &[u8])]) -> Vec<bool> {
        let mut sightings = Sightings::default();
        let again = datagrams.iter().map(|&(us, identification, content)| {
            let packet = ip("10.0.0.1:40000", "10.0.0.2:5683", content);
            let mut datagram = datagram(101, &packet, true, &mut Lowpan::default()).unwrap();
            datagram.identification = identification;
            sightings.is_again(Time::from_nanos(us * 1_000), &datagram)
        });
        again.collect()
    }

    #[test]
    fn a_packet_captured_twice_within_microseconds_counts_as_one_datagram() {
        assert_eq!(seen(&[(100, 0, b"a"), (145, 0, b"a"), (90, 0, b"a")]), [false, true, true]);
        assert_eq!(
            seen(&[(0, 0, b"a"), (10, 0, b"b"), (45, 0, b"a"), (50, 0, b"b")]),
            [false, false, true, true]
        );
        let slow = [(0, 7, &b"x"[..]), (9, 8, b"a"), (20_000, 8, b"a"), (2_000_000, 9, b"a")];
        assert_eq!(seen(&slow), [false, false, true, false]);
        assert_eq!(seen(&[(0, 8, b"a"), (2_000_000, 9, b"a"), (5_000_000, 9, b"a")]), [false; 3]);
    }

    #[test]
    fn equal_ip_identifications_of_all_packets_do_not_hide_retransmissions() {
        let constant = [(0, 7, &b"a"[..]), (10, 7, b"b"), (20, 7, b"a"), (400_000, 7, b"b")];
        assert_eq!(seen(&constant), [false, false, true, false]);
        assert_eq!(seen(&[(0, 0, b"a"), (400_000, 0, b"a")]), [false, false], "no identification at all");
    }
}
