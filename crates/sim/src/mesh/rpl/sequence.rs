//! Sequence numbers that say which of two is newer, also after a restart (RFC 6550 §7.2).

/// How far apart two numbers may be to be compared: SEQUENCE_WINDOW.
const WINDOW: u8 = 16;

/// A lollipop counter: from 240 up to 255 once, then round and round from 0 to 127.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sequence(u8);

impl Sequence {
    /// What a counter begins with.
    pub const START: Self = Self(240);

    /// The byte on the wire.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The number after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        if self.0 < 128 { Self((self.0 + 1) & 127) } else { Self(self.0.wrapping_add(1)) }
    }

    /// Whether this number is the newer one of two that can be compared.
    pub const fn is_newer_than(self, other: Self) -> bool {
        let (this, other) = (self.0, other.0);
        match (this < 128, other < 128) {
            // From the start of the lollipop to its circle, and back.
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
    fn each_of_many_numbers_is_newer_than_the_one_before_and_not_the_other_way() {
        let mut sequence = Sequence::START;
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
    fn the_start_of_the_lollipop_is_compared_with_its_circle_by_distance() {
        assert!(Sequence(5).is_newer_than(Sequence(250)));
        assert!(!Sequence(250).is_newer_than(Sequence(5)));
        assert!(Sequence(240).is_newer_than(Sequence(5)));
        assert!(!Sequence(5).is_newer_than(Sequence(240)));
    }
}
