//! Random numbers without state: a number is a function of its purpose.
//!
//! A generator with a state returns its numbers in the sequence of the calls, so one packet more changes the numbers of all
//! packets after it. Here a number is a hash of (seed, stream, key). Two mechanisms that send the same transmission of the same
//! exchange have the same jitter and the same loss, whatever else differs between their runs.

use coapace_control::Draw;

use crate::Span;

/// The source of all random numbers of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Luck(u64);

impl Luck {
    /// Returns the source of random numbers of a run with this seed.
    pub const fn new(seed: u64) -> Self {
        // `scramble` maps 0 to 0. The constant, the fraction of √2, keeps seed 0 from that.
        Self(scramble(seed ^ 0x6a09_e667_f3bc_c908))
    }

    /// Returns the random numbers for one purpose, such as `"up/loss"`. Streams with different names are independent.
    pub fn stream(self, name: &str) -> Stream {
        // FNV-1a, scrambled, is enough for names, which are few and short.
        Stream(scramble(self.0.wrapping_add(scramble(fnv1a(name.bytes())))))
    }
}

/// The random numbers for one purpose. Each number has a key of three numbers, whose meaning the caller chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream(u64);

impl Stream {
    /// Returns 64 uniform bits.
    pub const fn bits(self, a: u64, b: u64, c: u64) -> u64 {
        // Two rounds are enough: the first mixes `a`, and `b` and `c` are multiplied by different odd numbers.
        let first = scramble(self.0 ^ a.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        scramble(
            first ^ b.wrapping_mul(0xd1b5_4a32_d192_ed03).wrapping_add(c.wrapping_mul(0x8cb9_2ba7_2f3d_8dd7)),
        )
    }

    /// Returns a number in [0, 1), drawn uniformly from multiples of 2⁻⁵³.
    pub const fn unit(self, a: u64, b: u64, c: u64) -> f64 {
        // An f64 holds 53 bits exactly. More would be rounded, and could give 1.
        (self.bits(a, b, c) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a random number for a congestion control mechanism.
    pub const fn draw(self, a: u64, b: u64, c: u64) -> Draw {
        Draw::from_bits((self.bits(a, b, c) >> 32) as u32)
    }

    /// Returns a whole number in 0..`bound`, uniform but for a bias of at most 2⁻⁶⁴·`bound`. Returns 0 if `bound` is 0.
    pub const fn below(self, bound: u64, a: u64, b: u64, c: u64) -> u64 {
        // A multiplication is faster than a remainder, and nearly free of bias (D. Lemire 2019).
        ((self.bits(a, b, c) as u128 * bound as u128) >> 64) as u64
    }

    /// Returns a span shorter than `bound`, uniform to the nanosecond, or zero if `bound` is zero.
    pub const fn within(self, bound: Span, a: u64, b: u64, c: u64) -> Span {
        Span::from_nanos(self.below(bound.as_nanos(), a, b, c))
    }
}

/// Returns the FNV-1a hash of bytes, 64 bits. Equal bytes have equal hashes; it does not protect against forgery.
pub fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Applies a bijection in which every input bit changes half of the output bits: the finaliser of SplitMix64 with the
/// constants of D. Stafford's variant 13.
pub(crate) const fn scramble(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the χ² of `counts` against equal shares.
    fn chi_square(counts: &[u32]) -> f64 {
        let expected = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
        counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum()
    }

    #[test]
    fn random_draws_are_uniform_along_each_part_of_the_key() {
        let stream = Luck::new(1).stream("test");
        let along: [fn(Stream, u64) -> u64; 3] = [
            |stream, i| stream.below(256, i, 7, 0),
            |stream, i| stream.below(256, 3 << 32, i, 0),
            |stream, i| stream.below(256, 3 << 32, 7, i),
        ];
        for draw in along {
            let mut counts = [0; 256];
            for i in 0..256_000 {
                counts[draw(stream, i) as usize] += 1;
            }
            // 255 degrees of freedom: mean 255, standard deviation 22.6; five of them either way.
            let chi = chi_square(&counts);
            assert!((142.0..368.0).contains(&chi), "{chi}");
        }
    }

    #[test]
    fn a_draw_from_0_to_1_uses_the_same_random_bits_as_an_integer_draw() {
        let stream = Luck::new(1).stream("test");
        for i in 0..10_000 {
            let unit = stream.unit(i, 0, 0);
            assert!((0.0..1.0).contains(&unit));
            assert!((unit - f64::from(stream.draw(i, 0, 0).to_bits()) / 4_294_967_296.0).abs() < 1e-9);
        }
    }

    #[test]
    fn the_low_bits_of_random_draws_are_as_uniform_as_the_high_ones() {
        let stream = Luck::new(2).stream("test");
        let mut counts = [0; 256];
        for i in 0..256_000 {
            counts[(stream.bits(i << 32 | 1, 256 * i, 0) & 255) as usize] += 1;
        }
        assert!((142.0..368.0).contains(&chi_square(&counts)));
    }

    #[test]
    fn random_draws_of_adjacent_keys_are_independent() {
        let stream = Luck::new(3).stream("test");
        // Pairs (clients, exchanges, transmissions next to each other) fill a 16 × 16 table evenly.
        let steps = [(1, 0, 0), (1 << 32, 0, 0), (0, 256, 0), (0, 1, 0), (0, 0, 1)];
        for (a, b, c) in steps {
            let mut counts = [0; 256];
            for i in 0..256_000u64 {
                let (x, y, z) = ((i % 400) << 32, (i / 400) << 8, 0);
                let first = stream.below(16, x, y, z);
                let second = stream.below(16, x + a, y + b, z + c);
                counts[(first * 16 + second) as usize] += 1;
            }
            let chi = chi_square(&counts);
            assert!((142.0..368.0).contains(&chi), "{chi} one step along {:?}", (a, b, c));
        }
    }

    #[test]
    fn random_draws_of_different_streams_and_seeds_are_independent() {
        let key = |i: u64| (i << 32, i << 8, 0);
        let pairs = [
            (Luck::new(1).stream("up"), Luck::new(2).stream("up")),
            (Luck::new(1).stream("up"), Luck::new(1).stream("down")),
        ];
        for (one, other) in pairs {
            let mut counts = [0; 256];
            for i in 0..256_000 {
                let (a, b, c) = key(i);
                counts[(one.below(16, a, b, c) * 16 + other.below(16, a, b, c)) as usize] += 1;
            }
            assert!((142.0..368.0).contains(&chi_square(&counts)));
        }
    }

    #[test]
    fn the_same_key_gives_the_same_random_number_on_every_machine() {
        let stream = Luck::new(42).stream("up/loss");
        assert_eq!(stream.bits(1, 2, 3), stream.bits(1, 2, 3));
        assert_eq!(stream.bits(1, 2, 3), PINNED);
    }

    /// The number that the stream must return for this key, so that results of earlier commits can be repeated.
    const PINNED: u64 = 195_400_261_455_695_187;
}
