//! Division of 64-bit numbers with little code. A Cortex-M3 divides 32 bits; the compiler's routine for 64 bits takes a
//! kilobyte, with code for a panic on a zero divisor. Here small code is more important than speed: with a divisor of
//! more than 16 bits, each step finds one bit of the quotient.

use core::num::NonZeroU16;

const DIVIDES_64_BITS: bool = cfg!(target_pointer_width = "64");

/// Returns ⌊`value` / `divisor`⌋ for a divisor below 2⁶³; `u64::MAX` if the divisor is zero.
pub(crate) const fn by(value: u64, divisor: u64) -> u64 {
    if !DIVIDES_64_BITS {
        return by_bits(value, divisor);
    }
    match value.checked_div(divisor) {
        Some(quotient) => quotient,
        None => u64::MAX,
    }
}

/// Returns ⌊`value` / `divisor`⌋.
pub(crate) const fn by_u16(value: u64, divisor: NonZeroU16) -> u64 {
    if DIVIDES_64_BITS { value / divisor.get() as u64 } else { by_digits(value, divisor) }
}

/// Returns ⌊`value` / `divisor`⌋ by long division, one bit at a time. `quotient` holds the bits of the value that
/// remain, above the bits of the quotient found so far.
#[inline(never)]
const fn by_bits(value: u64, divisor: u64) -> u64 {
    let (mut rest, mut quotient, mut left) = (0, value, u64::BITS);
    loop {
        // `rest` stays below the divisor, so doubling it does not overflow.
        rest = (rest << 1) | (quotient >> 63);
        quotient <<= 1;
        // A divisor of 0 always fits, so all bits of the quotient are set.
        if let Some(less) = rest.checked_sub(divisor) {
            (rest, quotient) = (less, quotient + 1);
        }
        left -= 1;
        if left == 0 {
            return quotient;
        }
    }
}

/// Returns ⌊`value` / `divisor`⌋ by long division in digits of 16 bits. Each remainder and the next digit fit into 32
/// bits.
const fn by_digits(value: u64, divisor: NonZeroU16) -> u64 {
    let divisor = divisor.get() as u32;
    let (high, low) = ((value >> 32) as u32, value as u32);
    let middle = ((high % divisor) << 16) | (low >> 16);
    let least = ((middle % divisor) << 16) | (low & 0xffff);
    // The quotient of `middle` fits 16 bits, because the remainder from above is less than the divisor.
    (((high / divisor) as u64) << 32) | (((middle / divisor) << 16) | (least / divisor)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_division_for_small_processors_equals_a_division_of_64_bits(value: u64, divisor: u64, less in 0..64u32) {
            let short = (divisor >> 1 >> less).max(1);
            prop_assert_eq!(by_bits(value, short), value / short);
            prop_assert_eq!(by_bits(value >> less, divisor >> 1), by(value >> less, divisor >> 1));
            prop_assert_eq!(by_bits(value, 0), by(value, 0));
            let small = NonZeroU16::new(divisor as u16).unwrap_or(NonZeroU16::MIN);
            prop_assert_eq!(by_digits(value, small), value / u64::from(small.get()));
        }
    }
}
