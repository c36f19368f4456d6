//! How long a network takes until an event has passed.

use serde::Serialize;

/// After an event the delay rises and falls again. The *settling time* of Betzler et al. 2015: from the event until the mean
/// delay over a sliding window of 20 s is at most 1.1 times what it was before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Settling {
    /// When the event was, in seconds of the run.
    pub event_s: f64,
    /// How long it took, in seconds: 0 if the delay never rose so far, `None` if it had not fallen when the run ended.
    pub time_s: Option<f64>,
}

/// The sliding window, in seconds.
const WINDOW_S: f64 = 20.0;

/// The delay that counts as settled, as a multiple of that before the event.
const SETTLED: f64 = 1.1;

impl Settling {
    /// Looks at messages that arrived until `end_s`: moment of arrival and delay, both in seconds, in the order of arrival.
    ///
    /// The delay before is the mean of all that arrived earlier than the event; `None` if nothing did. The window at t has
    /// what arrived in (t − 20 s, t]; its mean changes when a message arrives and when one leaves, and at each of these
    /// moments it is looked at. First it must be above the bound, and then the first moment at which it no longer is ends
    /// the time. A window with nothing in it is neither.
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
            // Summed anew: a running sum would keep the rounding errors of what has left.
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

    /// A message a second until 200 s; those that arrive in `slow` take 3 s, the others 1 s.
    fn arrivals(slow: std::ops::Range<u32>) -> Vec<(f64, f64)> {
        (1..=200).map(|at| (f64::from(at), if slow.contains(&at) { 3.0 } else { 1.0 })).collect()
    }

    fn time_s(arrivals: &[(f64, f64)]) -> Option<f64> {
        Settling::of(arrivals, 100.5, 200.0).unwrap().time_s
    }

    #[test]
    fn it_settles_when_the_window_holds_few_slow_messages_enough() {
        // 20 messages in a window: a mean of 1.1 s is one slow message among them. 110 to 114 are slow; 114 is alone in the
        // window when 113 leaves it, at 133 s.
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
        // One slow message at 105 s, the last of all: it is 5 times as slow, and fast ones are in the window with it, but
        // they leave first, and then it does.
        let mut few = arrivals(0..0);
        few.truncate(104);
        few.push((105.0, 5.0));
        assert_eq!(time_s(&few), None, "an empty window is not settled");
        few.push((124.5, 1.0));
        assert_eq!(time_s(&few), Some(125.0 - 100.5));
    }
}
