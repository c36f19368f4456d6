//! The settling time: how long the network needs after an event to be as before.

use serde::Serialize;

/// The *settling time* of Betzler et al. 2015 §4.2. A window of 20 s is shifted forward, starting at the event. The settling
/// time is the time from the event to the start of the first window whose mean delay is at most 1.1 times the delay before
/// the event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Settling {
    /// The time of the event, in seconds of the run.
    pub event_s: f64,
    /// The settling time in seconds: 0 if the delay did not rise, `None` if no window before the end of the run was
    /// settled.
    pub time_s: Option<f64>,
    /// The longest settling time that this run could show, in seconds: from the event to the start of the last whole
    /// window.
    #[serde(skip)]
    pub observed_s: f64,
}

/// Serialises all fields of [`Settling`] in a run. Rows of results have fewer fields.
pub(super) mod whole {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Settling;

    #[expect(clippy::ref_option, reason = "serde calls it with this type")]
    pub(crate) fn serialize<S: Serializer>(settling: &Option<Settling>, to: S) -> Result<S::Ok, S::Error> {
        settling.map(|Settling { event_s, time_s, observed_s }| (event_s, time_s, observed_s)).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Settling>, D::Error> {
        let settling = Option::<(f64, Option<f64>, f64)>::deserialize(from)?;
        Ok(settling.map(|(event_s, time_s, observed_s)| Settling { event_s, time_s, observed_s }))
    }
}

/// The length of the window, in seconds.
const WINDOW_S: f64 = 20.0;

/// A window is settled if its mean delay is at most this many times the mean delay before the event.
const SETTLED: f64 = 1.1;

impl Settling {
    /// Computes the settling time from the messages that arrived until `end_s`: times of arrival and delays in seconds, sorted
    /// by arrival.
    ///
    /// A delay belongs to the moment of arrival. The paper averages end-to-end delays in a window, and a sink knows a
    /// delay when the message arrives. If a delay belonged to the moment of departure, all messages of the event would
    /// be in the first window alone, however long the network needs for them.
    ///
    /// The delay before the event is the mean of all earlier arrivals; returns `None` if there were none. The window at t has
    /// the arrivals in (t, t + 20 s]. Its mean changes when a message enters and when one leaves, so it is compared with the
    /// bound at these moments. An empty window is not settled.
    pub(crate) fn of(arrivals: &[(f64, f64)], event_s: f64, end_s: f64) -> Option<Self> {
        let before = arrivals.partition_point(|&(at, _)| at < event_s);
        // Computed before the check: without arrivals it is NaN, and is not used.
        let bound = SETTLED * arrivals[..before].iter().map(|(_, delay)| delay).sum::<f64>() / before as f64;
        if before == 0 {
            return None;
        }
        // A window must end with the run, so the time in which it could settle is one window shorter.
        let settled = |time_s| Self { event_s, time_s, observed_s: (end_s - WINDOW_S - event_s).max(0.0) };
        // `first..next` is the window. Both ends only move forward, so all windows together take one pass.
        let (mut first, mut next) = (before, before);
        let mut start = event_s;
        while start + WINDOW_S <= end_s {
            while arrivals.get(next).is_some_and(|&(at, _)| at - WINDOW_S <= start) {
                next += 1;
            }
            while first < next && arrivals[first].0 <= start {
                first += 1;
            }
            // The sum is computed again, because a running sum would keep rounding errors.
            let window = &arrivals[first..next];
            let mean = window.iter().map(|(_, delay)| delay).sum::<f64>() / window.len() as f64;
            if mean <= bound {
                return Some(settled(Some(start - event_s)));
            }
            let enters = arrivals.get(next).map(|&(at, _)| at - WINDOW_S);
            let leaves = (first < next).then(|| arrivals[first].0);
            // If nothing enters or leaves any more, no later window has another mean.
            let Some(soonest) = enters.into_iter().chain(leaves).min_by(f64::total_cmp) else { break };
            start = soonest;
        }
        Some(settled(None))
    }

    /// Returns the settling time in seconds. If the network did not settle, returns the longest time that this run
    /// could show.
    pub fn restricted_s(self) -> f64 {
        self.time_s.unwrap_or(self.observed_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a message a second until 200 s. Those that arrive in `slow` have a delay of 3 s, the others 1 s.
    fn arrivals(slow: std::ops::Range<u32>) -> Vec<(f64, f64)> {
        (1..=200).map(|at| (f64::from(at), if slow.contains(&at) { 3.0 } else { 1.0 })).collect()
    }

    fn time_s(arrivals: &[(f64, f64)]) -> Option<f64> {
        Settling::of(arrivals, 100.5, 200.0).unwrap().time_s
    }

    #[test]
    fn a_network_has_settled_at_the_first_window_with_few_enough_slow_messages() {
        // A window has 20 messages, so a mean of 1.1 s means one slow message among them. Messages 101 to 114 are slow. The
        // window that begins with the arrival of 113 has only 114 of them.
        assert_eq!(time_s(&arrivals(101..115)), Some(113.0 - 100.5));
    }

    #[test]
    fn delays_that_never_rise_settle_at_once_and_delays_that_stay_high_never() {
        assert_eq!(time_s(&arrivals(0..0)), Some(0.0));
        assert_eq!(time_s(&arrivals(101..300)), None);
    }

    #[test]
    fn a_settling_window_must_end_within_the_run() {
        assert_eq!(time_s(&arrivals(101..180)), Some(178.0 - 100.5));
        assert_eq!(time_s(&arrivals(101..183)), None, "a window from 181 s on would end at 201 s");
    }

    #[test]
    fn a_run_that_did_not_settle_counts_until_its_last_complete_window() {
        let restricted_s =
            |slow| Settling::of(&arrivals(slow), 100.5, 200.0).map(Settling::restricted_s).unwrap();
        assert_eq!((restricted_s(101..115), restricted_s(101..300)), (113.0 - 100.5, 180.0 - 100.5));
    }

    #[test]
    fn settling_is_undefined_without_messages_before_the_event() {
        assert_eq!(Settling::of(&arrivals(0..0)[150..], 100.5, 200.0), None);
    }

    #[test]
    fn a_window_without_messages_has_not_settled() {
        // After one slow message at 105 s nothing arrives until 130 s.
        let mut few = arrivals(0..0);
        few.truncate(100);
        few.push((105.0, 5.0));
        assert_eq!(time_s(&few), None);
        few.push((130.0, 1.0));
        assert_eq!(time_s(&few), Some(110.0 - 100.5));
    }
}
