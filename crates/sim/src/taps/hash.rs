//! A hash of a whole run.

use crate::mesh::FrameRecord;
use crate::{Record, Tap};

/// A hash over every event of a run: its time, kind, hop, sender, receiver, mark, size and bytes. Runs with equal
/// hashes are equal, and the hash is the same on every machine. It protects against accidents, not against malice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceHash(u64);

impl TraceHash {
    /// Returns the hash of a run without events.
    pub const fn new() -> Self {
        Self(KEYS[0])
    }

    /// Returns the hash of all events so far.
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl Default for TraceHash {
    fn default() -> Self {
        Self::new()
    }
}

impl Tap for TraceHash {
    #[inline]
    fn record(&mut self, record: &Record<'_>) {
        let ends = u64::from(record.from.0) << 32 | u64::from(record.to.0);
        let hop = record.hop.map_or(0xffff_ffff, |hop| u64::from(hop.0));
        let step = u64::from(record.mark.exchange) << 32
            | u64::from(record.mark.transmission) << 8
            | record.event as u64;
        let size = (u64::from(record.wire_bytes) << 32 | hop) ^ record.queue_bytes.rotate_left(16);
        // Three products that do not wait for one another; only the last waits for the event before.
        let when = fold(record.time.as_nanos() ^ KEYS[1], ends ^ KEYS[2]);
        let what = fold(step ^ KEYS[3], size ^ KEYS[4]);
        self.0 = fold(self.0 ^ when, what ^ digest(record.bytes)).wrapping_add(KEYS[5]);
    }

    /// Hashes the headers of a frame. The bytes of its datagram are hashed where the datagram is sent and delivered.
    #[inline]
    fn frame(&mut self, record: &FrameRecord<'_>) {
        let frame = record.frame;
        let to = frame.to.map_or(u32::MAX, |to| to.0);
        let ends = u64::from(frame.from.0) << 32 | u64::from(to);
        let place = u64::from(record.node.0) << 32
            | u64::from(frame.bytes) << 16
            | u64::from(frame.sequence) << 8
            | record.event as u64;
        let option = frame.leg.option.map_or(0, |option| {
            // This bit keeps an option of zeros apart from no option.
            1 << 19
                | u64::from(option.sender_rank) << 3
                | u64::from(option.down) << 2
                | u64::from(option.rank_error) << 1
                | u64::from(option.forwarding_error)
        });
        let part = u64::from(frame.fragment) << 56
            | u64::from(frame.fragments) << 48
            | u64::from(frame.tag) << 32
            | u64::from(frame.leg.hop_limit) << 24
            | option;
        let when = fold(record.time.as_nanos() ^ KEYS[2], ends ^ KEYS[1]);
        let what = fold(place ^ KEYS[4], part ^ KEYS[3] ^ frame.kind as u64);
        self.0 = fold(self.0 ^ when, what).wrapping_add(KEYS[5]);
    }
}

/// Hashes bytes in blocks of sixteen. Each block is multiplied with keys that depend on its index, so that the products are
/// independent. The last block is the last sixteen bytes, which may overlap with the block before. A shorter packet is padded.
fn digest(bytes: &[u8]) -> u64 {
    let (blocks, tail) = bytes.as_chunks::<16>();
    let mut hash = bytes.len() as u64;
    let mut key = KEYS[6];
    for block in blocks {
        hash = hash.wrapping_add(product(*block, key));
        key = key.wrapping_add(KEYS[7]);
    }
    let last = bytes.last_chunk().copied().unwrap_or_else(|| {
        let mut last = [0; 16];
        last[..tail.len()].copy_from_slice(tail);
        last
    });
    hash.wrapping_add(product(last, key))
}

fn product(block: [u8; 16], key: u64) -> u64 {
    let block = u128::from_le_bytes(block);
    fold(block as u64 ^ key, (block >> 64) as u64 ^ !key)
}

/// Returns the exclusive or of the two halves of the 128-bit product of `a` and `b`.
const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

/// The first 64 bits of the fractional parts of the square roots of the first eight primes (FIPS 180-4).
const KEYS: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ecn, Event, HopId, Mark, NodeId, Span, Time, Transport};

    const RECORD: Record<'static> = Record {
        time: Time::from_nanos(5_066_667),
        event: Event::Queued,
        hop: Some(HopId(0)),
        from: NodeId(1),
        to: NodeId(0),
        mark: Mark { exchange: 0, transmission: 0 },
        transport: Transport::Udp,
        ecn: Ecn::NotCapable,
        wire_bytes: 38,
        queue_bytes: 0,
        wait: Span::ZERO,
        bytes: b"0123456789",
    };

    fn hash(records: &[Record<'_>]) -> u64 {
        let mut hash = TraceHash::new();
        for record in records {
            hash.record(record);
        }
        hash.value()
    }

    #[test]
    fn a_change_of_any_field_of_an_event_changes_the_trace_hash() {
        let others = [
            Record { time: Time::from_nanos(5_066_668), ..RECORD },
            Record { event: Event::Sent, ..RECORD },
            Record { hop: None, ..RECORD },
            Record { hop: Some(HopId(1)), ..RECORD },
            Record { from: NodeId(0), to: NodeId(1), ..RECORD },
            Record { mark: Mark { exchange: 1, transmission: 0 }, ..RECORD },
            Record { mark: Mark { exchange: 0, transmission: 1 }, ..RECORD },
            Record { wire_bytes: 39, ..RECORD },
            Record { queue_bytes: 38, ..RECORD },
            Record { bytes: b"0123456788", ..RECORD },
            Record { bytes: b"0123456789\0", ..RECORD },
            Record { bytes: b"1023456789", ..RECORD },
            Record { bytes: b"", ..RECORD },
            Record { bytes: &[0; 16], ..RECORD },
            Record { bytes: &[0; 32], ..RECORD },
        ];
        for other in others {
            assert_ne!(hash(&[RECORD]), hash(&[other]), "{other:?}");
        }
    }

    #[test]
    fn the_sequence_and_number_of_events_change_the_trace_hash() {
        let later = Record { time: Time::from_secs(1), ..RECORD };
        assert_ne!(hash(&[RECORD, later]), hash(&[later, RECORD]));
        assert_ne!(hash(&[RECORD]), hash(&[RECORD, RECORD]));
    }
}
