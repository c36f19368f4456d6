//! Ageing: the change of an RTO that no sample renews, by draft, paper and implementation.

use super::{Cocoa, CocoaState};
use crate::fine::Fine;
use crate::parameters::choice;
use crate::stamp::Stamp;
use crate::{Duration, Instant, Ratio, division};

choice! {
    /// The rule by which an RTO ages that no sample renews.
    pub enum Ageing {
        /// Below the band it is doubled after 16 RTO; above it becomes 1 s + RTO/2 after 4 RTO; as often as the time allows
        /// (draft-ietf-core-cocoa-03 §4.3).
        Draft03 = "draft-03" | "on",
        /// Below 1 s it becomes 1 s after 16 RTO (draft-bormann-core-cocoa-00).
        Cocoa0 = "cocoa-0",
        /// Like `cocoa-0`; above 2 s it becomes (2 s + RTO)/2 after more than 30 s (Betzler et al. 2015 §3).
        CocoaPlus = "cocoa-plus",
        /// Below 1 s it becomes 1 s after 16 RTO; above 3 s it becomes 1 s + RTO/2 after 4 RTO. Ageing does not restart the
        /// idle time, so this happens once at each start (er-cocoa).
        ErCocoa = "er-cocoa",
        /// Like the draft, but each step takes the time, and asks for the band, of the RTO that ageing began with. An RTO of
        /// 0.1 s becomes 409.6 s after 20 s, which the upper bound makes 32 s (Californium 1 and 2).
        Californium2 = "californium-2",
        /// Like the draft, but after the timeout was taken, so that the next exchange is the first to feel it (Californium 3).
        Californium3 = "californium-3",
        /// No ageing.
        Off = "off",
    }
}

/// The number of steps of [`Ageing::Californium2`] after which further ones change nothing within the resolution.
const MOST_STEPS: u64 = 63;

impl Cocoa {
    /// Ages the RTO by the time that has passed since it was renewed. There must have been a sample.
    pub(super) fn age(&self, state: &mut CocoaState, band: (Fine, Fine), now: Instant) {
        let mut idle = state.renewed.until(now);
        match self.ageing {
            Ageing::Off => {}
            Ageing::Draft03 => {
                while let Some((patience, aged)) = self.next_age(state.rto, band)
                    && idle > patience
                {
                    (idle, state.rto) = (idle - patience, aged);
                    // The rest of the idle time counts towards the next step.
                    state.renewed = Stamp::before(now, idle);
                }
            }
            Ageing::Californium3 => {
                while let Some((patience, aged)) = self.next_age(state.rto, band)
                    && idle > patience
                {
                    (idle, state.rto) = (idle - patience, aged);
                    state.renewed = Stamp::of(now);
                }
            }
            Ageing::Californium2 => {
                if let Some((patience, _)) = self.next_age(state.rto, band)
                    && idle > patience
                {
                    let rises = state.rto < band.0;
                    // A step takes more than its time: 32 RTO are one step of 16.
                    let steps = division::by(idle.as_micros() - 1, patience.as_micros());
                    for _ in 0..steps.min(MOST_STEPS) {
                        state.rto = if rises { state.rto.twice() } else { self.eased(state.rto) };
                    }
                    state.rto = state.rto.min(self.max_rto.into());
                    state.renewed = Stamp::of(now);
                }
            }
            Ageing::ErCocoa => {
                if let Some((patience, aged)) = self.next_age(state.rto, band)
                    && idle > patience
                {
                    state.rto = if aged > state.rto { seconds(1) } else { aged };
                }
            }
            Ageing::Cocoa0 | Ageing::CocoaPlus => {
                let adds_large = self.ageing == Ageing::CocoaPlus;
                state.rto = if state.rto < band.0 && idle > Duration::from(state.rto).times(16) {
                    seconds(1)
                } else if adds_large && state.rto > seconds(2) && idle > Duration::from_secs(30) {
                    (seconds(2) + state.rto).halved(1)
                } else {
                    return;
                };
                state.renewed = Stamp::of(now);
            }
        }
    }

    /// Returns the time after which this RTO ages unless it is renewed, and the RTO after that; `None` if it does not age
    /// (draft-ietf-core-cocoa-03 §4.3).
    fn next_age(&self, rto: Fine, (low, high): (Fine, Fine)) -> Option<(Duration, Fine)> {
        // A band that moves (`Band::Strong`) may lie out of reach: above the upper bound, or below the 2 s that 1 s + RTO/2
        // tends to. Ageing ends where it makes no progress.
        let (doubled, eased) = (rto.twice().min(self.max_rto.into()), self.eased(rto));
        let (times, aged) = if rto < low && doubled > rto {
            (16, doubled)
        } else if rto > high && eased < rto {
            (4, eased)
        } else {
            return None;
        };
        Some((Duration::from(rto).times(times), aged))
    }

    /// Returns 1 s + RTO/2.
    fn eased(&self, rto: Fine) -> Fine {
        Fine::fitting(seconds(1).units() + rto.by(Ratio::new(1, 2)).units()).floored(self.tick)
    }
}

const fn seconds(seconds: u64) -> Fine {
    Fine::from_duration(Duration::from_secs(seconds))
}
