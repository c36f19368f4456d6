//! The trend of the round-trip time: how much the smallest and the largest sample change from one interval to the next,
//! on average.

use crate::fine::Fine;
use crate::stamp::Stamp;
use crate::{Draw, Duration, Instant, division};

/// The number of gradients in the average: the window a of Hayes and Armitage 2011.
const WINDOW: u8 = 8;

/// The samples and the gradients of one destination. A gradient is the change of the smallest or of the largest sample
/// from one interval to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gradients {
    /// The smallest and largest sample of the open interval; both zero if none is open.
    open: Extremes,
    /// The smallest and largest sample of the last closed interval; both zero if none has closed.
    closed: Extremes,
    opened: Stamp,
    /// The number of gradients so far. After 2·[`WINDOW`] − 1 it continues at [`WINDOW`]. Modulo [`WINDOW`] it is the
    /// position of the next gradient.
    taken: u8,
    /// The last [`WINDOW`] changes of the smallest sample, in milliseconds.
    least: [Millis; WINDOW as usize],
    /// The last [`WINDOW`] changes of the largest sample, in milliseconds.
    greatest: [Millis; WINDOW as usize],
}

/// The smallest and the largest sample of an interval, in microseconds; both zero without a sample.
#[derive(Clone, Copy, Debug)]
struct Extremes {
    least: [u8; 4],
    greatest: [u8; 4],
}

/// A gradient in milliseconds, from −32.767 s to 32.767 s, in little-endian bytes.
type Millis = [u8; 2];

impl Extremes {
    const NONE: Self = Self { least: [0; 4], greatest: [0; 4] };

    fn is_some(self) -> bool {
        u32::from_le_bytes(self.greatest) > 0
    }

    fn with(self, us: u32) -> Self {
        if !self.is_some() {
            return Self { least: us.to_le_bytes(), greatest: us.to_le_bytes() };
        }
        let least = u32::from_le_bytes(self.least).min(us);
        let greatest = u32::from_le_bytes(self.greatest).max(us);
        Self { least: least.to_le_bytes(), greatest: greatest.to_le_bytes() }
    }
}

/// Returns the gradient from `old` to `new`, in milliseconds. Both samples are in microseconds.
fn gradient(new: [u8; 4], old: [u8; 4]) -> Millis {
    let (new, old) = (u32::from_le_bytes(new), u32::from_le_bytes(old));
    // To the nearest millisecond.
    let ms = i16::try_from(new.abs_diff(old).saturating_add(500) / 1_000).unwrap_or(i16::MAX);
    if new < old { -ms } else { ms }.to_le_bytes()
}

impl Gradients {
    pub(super) const NEW: Self = Self {
        open: Extremes::NONE,
        closed: Extremes::NONE,
        opened: Stamp::ZERO,
        taken: 0,
        least: [[0; 2]; WINDOW as usize],
        greatest: [[0; 2]; WINDOW as usize],
    };

    /// Adds a sample that arrived `now`. Returns the largest sample of the interval if this sample closes it, and
    /// `None` otherwise.
    pub(super) fn take(&mut self, rtt: Duration, now: Instant) -> Option<Fine> {
        // Zero marks an interval without a sample.
        let us = u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX).max(1);
        if !self.open.is_some() {
            self.opened = Stamp::of(now);
        }
        self.open = self.open.with(us);
        // An interval takes two round trips (see `mod.rs`).
        if self.opened.until(now) < Duration::from_micros(us.into()).doubled() {
            return None;
        }
        let before = core::mem::replace(&mut self.closed, self.open);
        self.open = Extremes::NONE;
        // A gradient needs two closed intervals.
        if before.is_some() {
            let place = usize::from(self.taken % WINDOW);
            self.least[place] = gradient(self.closed.least, before.least);
            self.greatest[place] = gradient(self.closed.greatest, before.greatest);
            self.taken = if self.taken + 1 == 2 * WINDOW { WINDOW } else { self.taken + 1 };
        }
        self.highest().map(Fine::from)
    }

    /// Returns the largest sample of the last closed interval; `None` if no interval has closed.
    pub(super) fn highest(&self) -> Option<Duration> {
        let highest = u32::from_le_bytes(self.closed.greatest);
        (highest > 0).then(|| Duration::from_micros(highest.into()))
    }

    /// Returns the mean change of the round-trip time from one interval to the next, or zero if it does not rise.
    /// Returns `None` before the first gradient.
    pub(super) fn trend(&self) -> Option<Duration> {
        let filled = self.taken.min(WINDOW);
        let mean = |gradients: &[Millis]| {
            let sum: i32 =
                gradients.iter().take(filled.into()).map(|&ms| i32::from(i16::from_le_bytes(ms))).sum();
            // A fall counts as no rise. The sum of eight gradients of 32.767 s fits 32 bits in microseconds, too.
            let us = u32::try_from(sum).unwrap_or(0) * 1_000 / u32::from(filled.max(1));
            Duration::from_micros(us.into())
        };
        let least = mean(&self.least);
        // Like in CDG, the greatest samples count only if the least ones do not rise.
        (filled > 0).then(|| if least > Duration::ZERO { least } else { mean(&self.greatest) })
    }
}

/// e^(−1/8) in units of 2⁻³².
const EIGHTH: u64 = 3_790_365_107;
/// e^(−i/8) in units of 2⁻¹⁶, up to i/8 = 5.
const EXPONENTIAL: [u16; 41] = {
    let mut table = [0; 41];
    // This is one less than 2³², so that its upper half fits 16 bits.
    let mut power: u64 = u32::MAX as u64;
    let mut i = 0;
    while i < table.len() {
        table[i] = (power >> 16) as u16;
        power = (power * EIGHTH) >> 32;
        i += 1;
    }
    table
};

/// Returns whether a trend counts as a rise. `draw` decides, with probability 1 − e^(−`trend`/`scaling`). A trend above
/// five times `scaling` always counts.
pub(super) fn rises(trend: Duration, scaling: Duration, draw: Draw) -> bool {
    if trend == Duration::ZERO {
        return false;
    }
    // In eighths of `scaling`, with eight more bits to interpolate between two entries of the table.
    let place = division::by(trend.as_micros().saturating_mul(8 << 8), scaling.as_micros());
    let (entry, between) = ((place >> 8).min(40) as usize, (place & 0xff) as u32);
    // e^(−5) is 0.007.
    if entry == 40 {
        return true;
    }
    let (here, next) = (u32::from(EXPONENTIAL[entry]), u32::from(EXPONENTIAL[entry + 1]));
    // Linear between two entries, with the eight bits below the eighth.
    let exponential = here - (((here - next) * between) >> 8);
    // 16 bits of the draw are as fine as the table.
    draw.to_bits() >> 16 < 0x1_0000 - exponential
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_approximated_probability_of_raising_the_rto_is_within_half_a_percent() {
        let scaling = Duration::from_micros(10_000);
        let probability = |us: u64| {
            let rising = |percent: &u32| {
                let draw = Draw::from_bits(u32::try_from(u64::from(*percent) * (1 << 32) / 1_000).unwrap());
                rises(Duration::from_micros(us), scaling, draw)
            };
            (0..1_000).filter(rising).count()
        };
        // 1 − e^(−x) for x = 0.05, 0.5, 1, 1.3, 3, 4.9, in thousandths.
        for (us, expected) in
            [(500, 49), (5_000, 393), (10_000, 632), (13_000, 727), (30_000, 950), (49_000, 993)]
        {
            assert!(probability(us).abs_diff(expected) <= 5, "{us} us: {} of {expected}", probability(us));
        }
        assert_eq!(probability(0), 0);
        assert_eq!(probability(50_000), 1_000);
    }

    #[test]
    fn the_delay_trend_is_the_mean_of_the_last_eight_gradients() {
        let mut gradients = Gradients::NEW;
        let mut now = Instant::ZERO;
        let mut interval = |ms: u64| {
            for _ in 0..3 {
                now = now + Duration::from_millis(ms);
                gradients.take(Duration::from_millis(ms), now);
            }
            gradients.trend()
        };
        assert_eq!(interval(100), None);
        assert_eq!(interval(180), Some(Duration::from_millis(80)));
        assert_eq!(interval(100), Some(Duration::ZERO));
        for _ in 0..6 {
            interval(100);
        }
        assert_eq!(interval(180), Some(Duration::ZERO), "a fall of 80 ms is still among the eight");
        assert_eq!(interval(180), Some(Duration::from_millis(10)));
    }
}
