//! The Message IDs of messages to one peer.

use alloc::boxed::Box;

use coapace_control::{Duration, Instant};

/// A source of 16-bit Message IDs that returns no ID twice within EXCHANGE_LIFETIME (RFC 7252 §4.4).
///
/// The IDs are returned in sequence. They belong to eight blocks. A block is used again when EXCHANGE_LIFETIME has
/// passed since its last ID was returned. The table of these times is created when the first block is used up.
#[derive(Clone, Debug)]
pub(crate) struct MessageIds {
    next: u16,
    left: Option<Box<[Instant; BLOCKS]>>,
}

const BLOCKS: usize = 8;
const BLOCK: u16 = 1 << 13;

impl MessageIds {
    /// Creates a source whose first ID is `first`.
    pub(crate) const fn from(first: u16) -> Self {
        Self { next: first, left: None }
    }

    /// Returns the time from which the next ID may be used.
    #[inline]
    pub(crate) fn free_at(&self, lifetime: impl FnOnce() -> Duration) -> Instant {
        match &self.left {
            // Within a block every ID is free: all of them were when the block was entered.
            Some(left) if self.next.is_multiple_of(BLOCK) => match left[usize::from(self.next / BLOCK)] {
                Instant::ZERO => Instant::ZERO,
                left => left + lifetime(),
            },
            _ => Instant::ZERO,
        }
    }

    /// Returns whether the block after the current one is free. If it is not, few IDs may be left.
    pub(crate) fn has_spare_block(&self, now: Instant, lifetime: impl FnOnce() -> Duration) -> bool {
        let Some(left) = &self.left else { return true };
        match left[(usize::from(self.next / BLOCK) + 1) % BLOCKS] {
            Instant::ZERO => true,
            left => left + lifetime() <= now,
        }
    }

    /// Returns the next ID, even if it is not [free](Self::free_at) yet.
    #[inline]
    pub(crate) fn take(&mut self, now: Instant) -> u16 {
        let id = self.next;
        self.next = id.wrapping_add(1);
        // `id` was the last one of its block.
        if self.next.is_multiple_of(BLOCK) {
            self.note_block(id / BLOCK, now);
        }
        id
    }

    #[cold]
    /// Records the time at which the last ID of a block was returned.
    fn note_block(&mut self, block: u16, now: Instant) {
        // `Instant::ZERO` marks a block that was never left.
        let now = now.max(Instant::from_micros(1));
        self.left.get_or_insert_default()[usize::from(block)] = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME: Duration = Duration::from_secs(247);

    #[test]
    fn a_message_id_is_reused_only_after_exchange_lifetime() {
        let mut ids = MessageIds::from(5_000);
        let mut used = alloc::vec![Instant::ZERO; 1 << 16];
        let mut now = Instant::from_secs(1);
        for count in 0..300_000u32 {
            now = now.max(ids.free_at(|| LIFETIME));
            let id = usize::from(ids.take(now));
            assert!(
                used[id] == Instant::ZERO || now.since(used[id]) >= LIFETIME,
                "{id} again after {count} messages"
            );
            used[id] = now;
            now = now + Duration::from_millis(1);
        }
        let least = 300_000 / 65_536 - 1;
        assert!(now >= Instant::from_secs(least * 247), "1,000 a second had to wait: {now:?}");
    }

    #[test]
    fn message_ids_are_reported_as_scarce_while_a_block_of_them_is_left() {
        let now = Instant::from_secs(1);
        for first in [0, 1, 5_000, 65_535] {
            let mut ids = MessageIds::from(first);
            let mut spare = 0;
            while ids.has_spare_block(now, || LIFETIME) {
                assert!(ids.free_at(|| LIFETIME) <= now);
                ids.take(now);
                spare += 1;
            }
            let left = (0..1 << 16)
                .take_while(|_| ids.free_at(|| LIFETIME) <= now && ids.take(now) < u16::MAX)
                .count();
            assert!(spare >= 6 * usize::from(BLOCK) && left >= 4_096, "{first}: {spare}, and {left} left");
            assert!(ids.has_spare_block(now + LIFETIME, || LIFETIME), "free again");
        }
    }

    #[test]
    fn a_slow_sender_never_waits_for_a_message_id() {
        let mut ids = MessageIds::from(65_000);
        let mut now = Instant::from_secs(1);
        for _ in 0..200_000 {
            assert!(ids.free_at(|| LIFETIME) <= now);
            ids.take(now);
            now = now + Duration::from_millis(5); // 200 a second; 265 is the most
        }
    }
}
