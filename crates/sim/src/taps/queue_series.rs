//! The length of every queue over time.

use crate::{Event, HopId, Record, Span, Tap, Time};

/// Samples of the queue of each hop. A sample is the longest queue that a packet caused or found within an interval of
/// time. Intervals without packets have no sample. The first intervals are a microsecond long. When a hop has too many
/// samples, the length of its intervals doubles, so the memory is bounded and a run of any length is covered evenly.
#[derive(Clone, Debug)]
pub struct QueueSeries {
    points: usize,
    hops: Vec<HopSeries>,
}

#[derive(Clone, Debug)]
struct HopSeries {
    interval: Span,
    /// The time and length of the longest queue of each interval.
    samples: Vec<(Time, u64)>,
}

impl QueueSeries {
    /// Returns a series of at most `points` samples for each hop, or two if `points` is less.
    pub fn new(points: usize) -> Self {
        Self { points: points.max(2), hops: Vec::new() }
    }

    /// Returns the samples of a hop: the time and the length of the queue in bytes on the wire.
    pub fn hop(&self, hop: HopId) -> &[(Time, u64)] {
        self.hops.get(usize::from(hop.0)).map_or(&[], |series| &series.samples)
    }
}

impl HopSeries {
    fn add(&mut self, time: Time, bytes: u64, points: usize) {
        self.merge(time, bytes);
        while self.samples.len() > points {
            // Samples of neighbouring intervals become one, and the longer queue stays.
            self.interval = self.interval * 2;
            for (time, bytes) in std::mem::take(&mut self.samples) {
                self.merge(time, bytes);
            }
        }
    }

    fn merge(&mut self, time: Time, bytes: u64) {
        let interval = |time: Time| time.as_nanos() / self.interval.as_nanos();
        match self.samples.last_mut() {
            Some(last) if interval(last.0) == interval(time) => {
                // The time stays with its length, so a peak is drawn where it was.
                if bytes > last.1 {
                    *last = (time, bytes);
                }
            }
            _ => self.samples.push((time, bytes)),
        }
    }
}

impl Tap for QueueSeries {
    fn record(&mut self, record: &Record<'_>) {
        let (Some(HopId(hop)), Event::Queued | Event::Dropped | Event::Discarded) =
            (record.hop, record.event)
        else {
            return;
        };
        let hop = usize::from(hop);
        if hop >= self.hops.len() {
            self.hops.resize(hop + 1, HopSeries { interval: Span::from_micros(1), samples: Vec::new() });
        }
        self.hops[hop].add(record.time, record.queue_bytes, self.points);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_series_stays_within_its_bound_and_keeps_its_peak() {
        let mut series = HopSeries { interval: Span::from_micros(1), samples: Vec::new() };
        for n in 0..100_000u64 {
            series.add(Time::from_nanos(n * 1_000_000), if n == 33_333 { 5_000 } else { n % 100 }, 500);
        }
        assert!((250..=500).contains(&series.samples.len()), "{}", series.samples.len());
        assert!(series.samples.contains(&(Time::from_nanos(33_333_000_000), 5_000)));
        assert!(series.samples.is_sorted());
    }
}
