//! The time after an event until the network is as before.

use serde::Serialize;

/// The *settling time* of Betzler et al. 2015: the time from an event until the mean delay over a sliding window of 20 s is at
/// most 1.1 times the delay before the event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Settling {
    /// The time of the event, in seconds of the run.
    pub event_s: f64,
    /// The settling time in seconds: 0 if the delay never rose so far, `None` if it had not fallen when the run ended.
    pub time_s: Option<f64>,
}

/// The sliding window, in seconds.
const WINDOW_S: f64 = 20.0;

/// The greatest delay that counts as settled, as a multiple of the delay before the event.
const SETTLED: f64 = 1.1;

impl Settling {
    /// Computes the settling time from messages that arrived until `end_s`: times of arrival and delays in seconds, in the
    /// order of arrival.
    ///
    /// The delay before the event is the mean of all earlier arrivals; returns `None` if there were none. The window at t has
    /// the arrivals in (t − 20 s, t]. Its mean changes when a message arrives and when one leaves, so it is compared with the
    /// bound at these moments. After it was above the bound, the first moment when it is not ends the settling time. An empty
    /// window is neither above nor below the bound.
    pub(crate) fn of(arrivals: &[(f64, f64)], event_s: f64, end_s: f64) -> Option<Self> {
        let before = arrivals.partition_point(|&(at, _)| at < event_s);
        let bound = SETTLED * arrivals[..before].iter().map(|(_, delay)| delay).sum::<f64>() / before as f64;
        if before == 0 {
            return None;
        }
        let (mut first, mut next) = (0, 0);
        let mut has_risen = false;
        let mut now = event_s;
        loop {
            while arrivals.get(next).is_some_and(|&(at, _)| at <= now) {
                next += 1;
            }
            while first < next && arrivals[first].0 <= now - WINDOW_S {
                first += 1;
            }
            // The sum is computed anew, because a running sum would keep rounding errors.
            let window = &arrivals[first..next];
            if !window.is_empty() {
                let mean = window.iter().map(|(_, delay)| delay).sum::<f64>() / window.len() as f64;
                if has_risen && mean <= bound {
                    return Some(Self { event_s, time_s: Some(now - event_s) });
                }
                has_risen |= mean > bound;
            }
            let arrives = arrivals.get(next).map(|&(at, _)| at);
            let leaves = (first < next).then(|| arrivals[first].0 + WINDOW_S);
            let soonest = arrives.into_iter().chain(leaves).filter(|&at| at > now && at <= end_s);
            match soonest.min_by(f64::total_cmp) {
                Some(at) => now = at,
                None => return Some(Self { event_s, time_s: (!has_risen).then_some(0.0) }),
            }
        }
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
    fn it_settles_when_the_window_holds_few_slow_messages_enough() {
        // A window has 20 messages, so a mean of 1.1 s means one slow message among them. Messages 110 to 114 are slow. 114 is
        // alone in the window when 113 leaves it, at 133 s.
        assert_eq!(time_s(&arrivals(110..115)), Some(133.0 - 100.5));
    }

    #[test]
    fn what_never_rises_has_settled_at_once_and_what_does_not_fall_never() {
        assert_eq!(time_s(&arrivals(0..0)), Some(0.0));
        assert_eq!(time_s(&arrivals(110..300)), None);
    }

    #[test]
    fn without_anything_before_the_event_there_is_nothing_to_settle_to() {
        assert_eq!(Settling::of(&arrivals(0..0)[150..], 100.5, 200.0), None);
    }

    #[test]
    fn messages_that_leave_the_window_settle_it_though_none_arrives() {
        // One slow message at 105 s is the last of all. Fast ones are in the window with it, but leave it first.
        let mut few = arrivals(0..0);
        few.truncate(104);
        few.push((105.0, 5.0));
        assert_eq!(time_s(&few), None, "an empty window ends nothing");
        few.push((124.5, 1.0));
        assert_eq!(time_s(&few), Some(125.0 - 100.5));
    }
}
