//! Sequence numbers that can be compared to find the newer one, also after a restart (RFC 6550 §7.2).

/// The largest distance at which two numbers can be compared: SEQUENCE_WINDOW.
const WINDOW: u8 = 16;

/// A lollipop counter. It counts from 240 to 255 once, and then in a circle from 0 to 127.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LollipopCounter(u8);

impl LollipopCounter {
    /// The first number of a counter.
    pub const START: Self = Self(240);
    /// The first number of the circle. A counter that begins here is never mistaken for a restarted counter, however
    /// many of its numbers were missed.
    pub const CIRCLE: Self = Self(0);

    /// Returns the byte on the wire.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Returns the number after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        // 127 and 255 are both followed by 0, the first number of the circle.
        if self.0 < 128 { Self((self.0 + 1) & 127) } else { Self(self.0.wrapping_add(1)) }
    }

    /// Returns whether the two numbers can be compared and this one is newer.
    pub const fn is_newer_than(self, other: Self) -> bool {
        let (this, other) = (self.0, other.0);
        match (this < 128, other < 128) {
            // One number is before the circle, the other in it.
            (true, false) => this as u16 + 256 - other as u16 <= WINDOW as u16,
            (false, true) => other as u16 + 256 - this as u16 > WINDOW as u16,
            (false, false) => this > other && this - other <= WINDOW,
            (true, true) => {
                let ahead = this.wrapping_sub(other) & 127;
                0 < ahead && ahead <= WINDOW
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rpl_sequence_number_is_newer_than_the_previous_one() {
        let mut sequence = LollipopCounter::START;
        for _ in 0..1_000 {
            let next = sequence.next();
            assert!(next.is_newer_than(sequence), "{next:?} after {sequence:?}");
            assert!(!sequence.is_newer_than(next), "{next:?} after {sequence:?}");
            assert!(!next.is_newer_than(next));
            sequence = next;
        }
        assert!(sequence.get() < 128);
    }

    /// The examples of RFC 6550 §7.2.
    #[test]
    fn linear_and_circular_rpl_sequence_numbers_are_compared_by_distance() {
        assert!(LollipopCounter(5).is_newer_than(LollipopCounter(250)));
        assert!(!LollipopCounter(250).is_newer_than(LollipopCounter(5)));
        assert!(LollipopCounter(240).is_newer_than(LollipopCounter(5)));
        assert!(!LollipopCounter(5).is_newer_than(LollipopCounter(240)));
    }
}
