//! Conversion of values to bytes and back, because the state and exchange of a mechanism of another crate are stored as bytes.

use core::array;

use crate::{Draw, Duration, Instant, Ratio};

/// A value that can be written to bytes and read back.
///
/// [`packed!`](crate::packed) declares a struct of such values, [`choice!`](crate::choice) an enumeration and
/// [`parameters!`](crate::parameters!) a mechanism.
pub trait Packed: Copy {
    /// The length of a packed value in bytes.
    const BYTES: usize;

    /// Writes the value to the first [`BYTES`](Self::BYTES) of `bytes` and returns the remaining bytes. Writes nothing if
    /// `bytes` is shorter.
    fn pack(self, bytes: &mut [u8]) -> &mut [u8];

    /// Reads a value from the first [`BYTES`](Self::BYTES) of `bytes` and returns it with the remaining bytes. Any bytes give a
    /// value. Missing bytes count as zero.
    fn unpack(bytes: &[u8]) -> (Self, &[u8]);
}

/// Implements [`Packed`] for a type of integers, in little-endian order.
macro_rules! packed_number {
    ($($number:ident)+) => { $(
        impl Packed for $number {
            const BYTES: usize = size_of::<$number>();

            fn pack(self, bytes: &mut [u8]) -> &mut [u8] {
                if bytes.len() < Self::BYTES {
                    return bytes;
                }
                let (own, rest) = bytes.split_at_mut(Self::BYTES);
                own.copy_from_slice(&self.to_le_bytes());
                rest
            }

            fn unpack(bytes: &[u8]) -> (Self, &[u8]) {
                let (own, rest) = bytes.split_first_chunk().unwrap_or((&[0; size_of::<$number>()], &[]));
                ($number::from_le_bytes(*own), rest)
            }
        }
    )+ };
}

packed_number! { u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 }

/// Implements [`Packed`] for a type by converting it to and from another packed type.
macro_rules! packed_as {
    ($($type:ty as $packed:ty: $into:expr, $from:expr;)+) => { $(
        impl Packed for $type {
            const BYTES: usize = <$packed>::BYTES;

            fn pack(self, bytes: &mut [u8]) -> &mut [u8] {
                let packed: $packed = $into(self);
                packed.pack(bytes)
            }

            fn unpack(bytes: &[u8]) -> (Self, &[u8]) {
                let (packed, rest) = <$packed>::unpack(bytes);
                ($from(packed), rest)
            }
        }
    )+ };
}

packed_as! {
    bool as u8: u8::from, |byte| byte != 0;
    Duration as u64: Duration::as_micros, Duration::from_micros;
    Instant as u64: Instant::as_micros, Instant::from_micros;
    Draw as u32: Draw::to_bits, Draw::from_bits;
    Ratio as [u16; 2]: Ratio::terms, |[numerator, denominator]: [u16; 2]| Ratio::new(numerator, denominator);
}

impl<T: Packed, const N: usize> Packed for [T; N] {
    const BYTES: usize = N * T::BYTES;

    fn pack(self, bytes: &mut [u8]) -> &mut [u8] {
        self.into_iter().fold(bytes, |bytes, value| value.pack(bytes))
    }

    fn unpack(bytes: &[u8]) -> (Self, &[u8]) {
        let mut rest = bytes;
        let values = array::from_fn(|_| {
            let (value, after) = T::unpack(rest);
            rest = after;
            value
        });
        (values, rest)
    }
}

impl Packed for () {
    const BYTES: usize = 0;

    fn pack(self, bytes: &mut [u8]) -> &mut [u8] {
        bytes
    }

    fn unpack(bytes: &[u8]) -> (Self, &[u8]) {
        ((), bytes)
    }
}

/// Packs an option as one byte that says whether there is a value, then the bytes of the value.
impl<T: Packed> Packed for Option<T> {
    const BYTES: usize = 1 + T::BYTES;

    fn pack(self, bytes: &mut [u8]) -> &mut [u8] {
        let rest = self.is_some().pack(bytes);
        match self {
            Some(value) => value.pack(rest),
            // The place of the value is skipped, so that all values have one length.
            None => rest.get_mut(T::BYTES..).unwrap_or_default(),
        }
    }

    fn unpack(bytes: &[u8]) -> (Self, &[u8]) {
        let (is_some, rest) = bool::unpack(bytes);
        // The bytes behind the value are found only by reading it.
        let (value, rest) = T::unpack(rest);
        (is_some.then_some(value), rest)
    }
}

/// Declares a struct of [`Packed`] values: the state that a mechanism keeps for a destination, or for an exchange.
///
/// ```
/// use coapace_control::{Duration, Packed, packed};
///
/// packed! {
///     /// The state of a destination.
///     pub struct Remembered {
///         rto: Duration,
///         failures: u8,
///     }
/// }
/// assert_eq!(Remembered::BYTES, 9);
///
/// let mut bytes = [0; 9];
/// Remembered { rto: Duration::from_secs(3), failures: 2 }.pack(&mut bytes);
/// assert_eq!(Remembered::unpack(&bytes).0.failures, 2);
/// ```
#[macro_export]
macro_rules! packed {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident { $($(#[$field_meta:meta])* $field_visibility:vis $field:ident: $kind:ty),* $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        $visibility struct $name { $($(#[$field_meta])* $field_visibility $field: $kind,)* }

        $crate::packed_fields! { $name { $($field: $kind,)* } }
    };
}

/// Implements [`Packed`] for a struct by packing its fields one after another.
#[doc(hidden)]
#[macro_export]
macro_rules! packed_fields {
    ($name:ident { $($field:ident: $kind:ty,)* }) => {
        impl $crate::Packed for $name {
            const BYTES: usize = 0 $(+ <$kind as $crate::Packed>::BYTES)*;

            fn pack(self, bytes: &mut [u8]) -> &mut [u8] {
                $(let bytes = $crate::Packed::pack(self.$field, bytes);)*
                bytes
            }

            fn unpack(bytes: &[u8]) -> (Self, &[u8]) {
                $(let ($field, bytes) = <$kind as $crate::Packed>::unpack(bytes);)*
                (Self { $($field,)* }, bytes)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Marking;

    packed! {
        #[derive(PartialEq)]
        struct Everything {
            number: u16,
            time: Duration,
            moment: Option<Instant>,
            draw: Draw,
            factor: Ratio,
            marking: Marking,
            sign: bool,
            gain: f64,
            raw: [u8; 3],
            nothing: (),
        }
    }

    const EVERYTHING: Everything = Everything {
        number: 0xfedc,
        time: Duration::from_micros(u64::MAX - 1),
        moment: Some(Instant::from_secs(7)),
        draw: Draw::from_bits(0x8000_0001),
        factor: Ratio::new(13, 10),
        marking: Marking::FreshMessageId,
        sign: true,
        gain: 0.125,
        raw: [1, 2, 3],
        nothing: (),
    };

    #[test]
    fn unpacking_a_packed_value_gives_the_same_value() {
        for value in [EVERYTHING, Everything { moment: None, ..EVERYTHING }] {
            let mut bytes = [0; Everything::BYTES + 2];
            assert_eq!(value.pack(&mut bytes).len(), 2);
            let (unpacked, rest) = Everything::unpack(&bytes);
            assert_eq!((unpacked, rest.len()), (value, 2));
        }
    }

    #[test]
    fn unpacking_too_few_bytes_does_not_panic() {
        for room in 0..Everything::BYTES {
            let mut bytes = [0xff; Everything::BYTES];
            EVERYTHING.pack(&mut bytes[..room]);
            let _ = Everything::unpack(&bytes[..room]);
        }
    }

    #[test]
    fn any_bytes_unpack_to_a_value() {
        for byte in 0..=u8::MAX {
            let (value, _) = Everything::unpack(&[byte; Everything::BYTES]);
            assert_eq!(value.moment.is_some(), byte != 0);
        }
    }
}
