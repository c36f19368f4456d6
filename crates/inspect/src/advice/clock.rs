//! The clock of a capture. It may step when someone sets it, when captures are joined, or while nothing is captured.
//!
//! An *era* is a part of a capture within which times can be compared. A new era begins with a packet whose time is
//! earlier than the previous packet's, or later by more than EXCHANGE_LIFETIME. An earlier time shows a step of the
//! clock. A later time shows a pause of the clients, or a step. A pause counts as a step if a request before it is
//! answered after it, if it lasts longer than a week, or if it is the only pause and far longer than any other silence.
//! Times after a step are shifted, so that the step takes no time.

use coapace_sim::{Span, Time};
use serde::Serialize;

use crate::EXCHANGE_LIFETIME_S;

/// The largest time by which a packet may be earlier than the packet before without a step of the clock: packets of
/// several interfaces may be out of sequence.
const DISORDER: Span = Span::from_nanos(100_000_000);

/// The length of a silence that ends an era: EXCHANGE_LIFETIME (RFC 7252 §4.8.2).
const SILENCE: Span = Span::from_secs(EXCHANGE_LIFETIME_S);

/// A silence of this length always counts as a step.
const WEEK: Span = Span::from_secs(7 * 86_400);

/// A silence counts as a step if it is more than this many times as long as the longest silence within an era. The capture must
/// have at least [`USUAL`] packets, and no other pause.
const FAR_LONGER: f64 = 20.0;

/// The number of packets needed to judge how long silences usually are.
const USUAL: u64 = 50;

/// The maximum number of eras. Further packets belong to the last era: a clock that steps more often is not usable.
const MOST_ERAS: usize = 10_000;

/// A step of the clock of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClockStep {
    /// The time from the first packet to the step in seconds, with earlier steps removed.
    pub at_s: f64,
    /// How far the clock stepped, in seconds; negative if it went back.
    pub by_s: f64,
}

/// The clock of a capture while the packets are read.
#[derive(Debug, Default)]
pub(super) struct CaptureClock {
    eras: Vec<Era>,
    packets: u64,
    /// The longest silence within an era.
    longest: Span,
}

#[derive(Clone, Copy, Debug)]
struct Era {
    first: Time,
    last: Time,
    begins: Begin,
}

/// How an era begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    /// With the first packet of the capture, or after a pause.
    Pause,
    /// After a step.
    Step,
}

/// The clock of a capture after it was read, with the steps removed.
#[derive(Debug, Default)]
pub(super) struct Straightened {
    eras: Vec<Straight>,
    /// The steps that were removed, in sequence.
    pub(super) steps: Vec<ClockStep>,
}

/// An era of a corrected clock.
#[derive(Clone, Copy, Debug)]
struct Straight {
    /// The times of the era's first and last packet, as written in the file.
    first: Time,
    last: Time,
    /// The nanoseconds to add to times of the era, so that earlier steps are removed.
    shift: i64,
    /// The number of steps before the era.
    steps: u32,
    /// Whether the next era begins with a step.
    is_cut: bool,
}

impl CaptureClock {
    /// Records the time of a packet. Returns the number of the era to which the packet belongs.
    pub(super) fn tick(&mut self, at: Time) -> u32 {
        self.packets += 1;
        // At the bound all further packets belong to the last era.
        let can_begin = self.eras.len() < MOST_ERAS;
        let begins = match self.eras.last_mut() {
            None => Begin::Pause,
            Some(era) if can_begin && at + DISORDER < era.last => Begin::Step,
            Some(era) if can_begin && at > era.last + SILENCE => Begin::Pause,
            Some(era) => {
                self.longest = self.longest.max(at - era.last);
                // Packets of several interfaces may be out of order by up to `DISORDER`.
                (era.first, era.last) = (era.first.min(at), era.last.max(at));
                return self.eras.len() as u32 - 1;
            }
        };
        self.eras.push(Era { first: at, last: at, begins });
        self.eras.len() as u32 - 1
    }

    /// Returns whether the current era began with a backward step.
    pub(super) fn went_back(&self) -> bool {
        self.eras.last().is_some_and(|era| era.begins == Begin::Step)
    }

    /// Records that a message of `era` was answered in the next era. `sent` is the time of its last copy. If `era`
    /// ended within `patience` of that copy, the next era begins with a step.
    pub(super) fn crossed(&mut self, era: u32, sent: Time, patience: Span) {
        let era = era as usize;
        if let Some([before, next]) = self.eras.get_mut(era..era + 2)
            && sent + patience >= before.last
        {
            // The message was still open when the era ended, so the silence behind it was not real.
            next.begins = Begin::Step;
        }
    }

    /// Decides which eras begin with a step. Returns the clock with these steps removed.
    pub(super) fn straightened(mut self) -> Straightened {
        // A step back is not a silence: the difference of times does not fall below 0.
        let silences = || self.eras.windows(2).map(|pair| pair[1].first - pair[0].last);
        let pauses = self.eras.iter().skip(1).filter(|era| era.begins == Begin::Pause).count();
        // A pause that comes again is a habit of the clients. A single one may be the seam of two joined captures.
        let is_alone = pauses == 1 && self.packets >= USUAL;
        let steps: Vec<bool> = silences()
            .zip(self.eras.iter().skip(1))
            .map(|(silence, era)| {
                let is_lonely = is_alone && silence.as_secs_f64() > FAR_LONGER * self.longest.as_secs_f64();
                era.begins == Begin::Step || silence > WEEK || is_lonely
            })
            .collect();
        for (era, is_step) in self.eras.iter_mut().skip(1).zip(&steps) {
            era.begins = if *is_step { Begin::Step } else { Begin::Pause };
        }
        let mut straight = Straightened::default();
        let origin = self.eras.first().map_or(0, |era| nanoseconds(era.first));
        for era in &self.eras {
            let (mut shift, mut steps) = (0, 0);
            if let Some(before) = straight.eras.last_mut() {
                (shift, steps) = (before.shift, before.steps);
                if era.begins == Begin::Step {
                    // The shift removes the whole gap: the first packet behind a step gets the time of the last one before it.
                    // A damaged file may have any times, so the arithmetic saturates.
                    let by = nanoseconds(era.first).saturating_sub(nanoseconds(before.last));
                    shift = shift.saturating_sub(by);
                    steps += 1;
                    before.is_cut = true;
                    let at = nanoseconds(before.last).saturating_add(before.shift).saturating_sub(origin);
                    straight.steps.push(ClockStep { at_s: at as f64 / 1e9, by_s: by as f64 / 1e9 });
                }
            }
            straight.eras.push(Straight { first: era.first, last: era.last, shift, steps, is_cut: false });
        }
        straight
    }
}

impl Straightened {
    /// Returns the time `at` of an era with all earlier steps removed.
    pub(super) fn time(&self, era: u32, at: Time) -> Time {
        let shift = self.eras.get(era as usize).map_or(0, |era| era.shift);
        Time::from_nanos(at.as_nanos().saturating_add_signed(shift))
    }

    /// Returns the number of steps before an era.
    pub(super) fn steps_before(&self, era: u32) -> u32 {
        self.eras.get(era as usize).map_or(0, |era| era.steps)
    }

    /// Returns whether the clock steps within `patience` after the time `at` of an era.
    pub(super) fn is_cut(&self, era: u32, at: Time, patience: Span) -> bool {
        self.eras.get(era as usize).is_some_and(|era| era.is_cut && at + patience >= era.last)
    }

    /// Returns the times of the first and last packet with the steps removed. `first` and `last` are their times in the
    /// file.
    pub(super) fn span(&self, first: Time, last: Time) -> (Time, Time) {
        match self.eras.first() {
            Some(era) if !self.steps.is_empty() => {
                let ends = (0u32..).zip(&self.eras).map(|(number, era)| self.time(number, era.last));
                (era.first, ends.max().unwrap_or(last))
            }
            _ => (first, last),
        }
    }
}

fn nanoseconds(at: Time) -> i64 {
    i64::try_from(at.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records packets at these seconds. Returns the steps as whole seconds, and the time of the last packet with the steps
    /// removed.
    fn ticked(seconds: &[f64]) -> (Vec<(i64, i64)>, f64) {
        let mut clock = CaptureClock::default();
        let time =
            |s: f64| Time::from_nanos(std::time::Duration::from_secs_f64(s).as_nanos().try_into().unwrap());
        let eras: Vec<u32> = seconds.iter().map(|&s| clock.tick(time(s))).collect();
        let straight = clock.straightened();
        let steps = straight.steps.iter().map(|step| (step.at_s.round() as i64, step.by_s.round() as i64));
        let last = straight.time(*eras.last().unwrap(), time(*seconds.last().unwrap()));
        (steps.collect(), last.as_nanos() as f64 / 1e9)
    }

    #[test]
    fn steps_of_the_capture_clock_backwards_or_by_years_count_as_no_time() {
        assert_eq!(
            ticked(&[10.0, 11.0, 10.99, 12.0]),
            (vec![], 12.0),
            "interfaces are out of order by 10 ms"
        );
        assert_eq!(ticked(&[10.0, 12.0, 7.0, 8.0]), (vec![(2, -5)], 13.0));
        assert_eq!(ticked(&[10.0, 12.0, 1.3e8, 1.3e8 + 3.0]), (vec![(2, 129_999_988)], 15.0));
        assert_eq!(ticked(&[10.0, 12.0, 0.0, 14.0]), (vec![(2, -12)], 26.0), "14 s may be true");
    }

    #[test]
    fn a_single_long_silence_is_a_clock_step_and_a_repeated_one_is_a_pause() {
        let busy = |start: f64| (0..40).map(move |s| start + f64::from(s));
        let once: Vec<f64> = busy(0.0).chain(busy(3_639.0)).collect();
        assert_eq!(ticked(&once), (vec![(39, 3_600)], 78.0));
        let hourly: Vec<f64> = (0..50).map(|hour| f64::from(hour) * 3_600.0).collect();
        assert_eq!(ticked(&hourly), (vec![], 49.0 * 3_600.0));
        assert_eq!(ticked(&[0.0, 1.0, 3_601.0]), (vec![], 3_601.0), "too few to know the usual silence");
    }

    #[test]
    fn an_answer_after_a_long_silence_reveals_a_clock_step() {
        let mut clock = CaptureClock::default();
        let [sent, answered] = [1, 3_601].map(Time::from_secs);
        assert_eq!((clock.tick(sent), clock.tick(answered)), (0, 1));
        clock.crossed(0, sent, Span::from_secs(93));
        let straight = clock.straightened();
        assert_eq!(straight.steps, [ClockStep { at_s: 0.0, by_s: 3_600.0 }]);
        assert!(
            straight.is_cut(0, sent, Span::from_secs(93))
                && !straight.is_cut(1, answered, Span::from_secs(93))
        );
        assert_eq!((straight.time(1, answered), straight.steps_before(1)), (sent, 1));
    }
}
