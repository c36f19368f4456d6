//! Divisions of 64 bits on a processor that divides 32: a Cortex-M3 links a kilobyte for them otherwise, and code for a
//! panic should the divisor be zero. Small comes before fast: where the divisor has more than 16 bits it is one bit at a
//! time.

use core::num::NonZeroU16;

const DIVIDES_64_BITS: bool = cfg!(target_pointer_width = "64");

/// ⌊`value` / `divisor`⌋ of a divisor below 2⁶³; by zero as much as there is.
pub(crate) const fn by(value: u64, divisor: u64) -> u64 {
    if !DIVIDES_64_BITS {
        return by_bits(value, divisor);
    }
    match value.checked_div(divisor) {
        Some(quotient) => quotient,
        None => u64::MAX,
    }
}

/// ⌊`value` / `divisor`⌋.
pub(crate) const fn by_u16(value: u64, divisor: NonZeroU16) -> u64 {
    if DIVIDES_64_BITS { value / divisor.get() as u64 } else { by_digits(value, divisor) }
}

/// As on paper, in digits of one bit. The quotient moves up behind what is left of the value.
#[inline(never)]
const fn by_bits(value: u64, divisor: u64) -> u64 {
    let (mut rest, mut quotient, mut left) = (0, value, u64::BITS);
    loop {
        rest = (rest << 1) | (quotient >> 63);
        quotient <<= 1;
        if let Some(less) = rest.checked_sub(divisor) {
            (rest, quotient) = (less, quotient + 1);
        }
        left -= 1;
        if left == 0 {
            return quotient;
        }
    }
}

/// As on paper, in digits of 16 bits; what is left over from one digit and the next of them are 32 bits together.
const fn by_digits(value: u64, divisor: NonZeroU16) -> u64 {
    let divisor = divisor.get() as u32;
    let (high, low) = ((value >> 32) as u32, value as u32);
    let middle = ((high % divisor) << 16) | (low >> 16);
    let least = ((middle % divisor) << 16) | (low & 0xffff);
    // The quotient of the middle has 16 bits, for what is left over from above is less than the divisor.
    (((high / divisor) as u64) << 32) | (((middle / divisor) << 16) | (least / divisor)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quotients_are_those_of_a_processor_that_divides_64_bits(value: u64, divisor: u64, less in 0..64u32) {
            let short = (divisor >> 1 >> less).max(1);
            prop_assert_eq!(by_bits(value, short), value / short);
            prop_assert_eq!(by_bits(value >> less, divisor >> 1), by(value >> less, divisor >> 1));
            prop_assert_eq!(by_bits(value, 0), by(value, 0));
            let small = NonZeroU16::new(divisor as u16).unwrap_or(NonZeroU16::MIN);
            prop_assert_eq!(by_digits(value, small), value / u64::from(small.get()));
        }
    }
}
