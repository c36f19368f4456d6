//! An RTO that no sample renews loses its worth: how it ages, by draft, paper and implementation.

use super::{Cocoa, CocoaState};
use crate::fine::Fine;
use crate::parameters::choice;
use crate::stamp::Stamp;
use crate::{Duration, Instant, Ratio, division};

choice! {
    /// How an RTO ages that no sample renews.
    pub enum Ageing {
        /// Below the band doubled after 16 RTO, above it made 1 s + RTO/2 after 4 RTO, as often as the time allows
        /// (draft-ietf-core-cocoa-03 §4.3).
        Draft03 = "draft-03" | "on",
        /// Below 1 s made 1 s after 16 RTO (draft-bormann-core-cocoa-00).
        Cocoa0 = "cocoa-0",
        /// As `cocoa-0`, and above 2 s made (2 s + RTO)/2 after more than 30 s (Betzler et al. 2015 §3).
        CocoaPlus = "cocoa-plus",
        /// Once at each start, for ageing does not renew: below 1 s made 1 s after 16 RTO, above 3 s made 1 s + RTO/2 after
        /// 4 RTO (er-cocoa).
        ErCocoa = "er-cocoa",
        /// As the draft, but the time that is left and the band are those of the RTO that ageing began with: an RTO of
        /// 0.1 s is made 409.6 s by 20 s of idleness, which the upper bound makes 32 s (Californium 1 and 2).
        Californium2 = "californium-2",
        /// As the draft, but after the timeout was taken, so that the next exchange is the first to feel it (Californium 3).
        Californium3 = "californium-3",
        /// Not at all.
        Off = "off",
    }
}

/// Steps of [`Ageing::Californium2`], beyond which nothing changes within the resolution.
const MOST_STEPS: u64 = 63;

impl Cocoa {
    /// Ages an RTO that rests on a sample by the time that has passed since it was renewed.
    pub(super) fn age(&self, state: &mut CocoaState, band: (Fine, Fine), now: Instant) {
        let mut idle = state.renewed.until(now);
        match self.ageing {
            Ageing::Off => {}
            Ageing::Draft03 => {
                while let Some((patience, aged)) = self.next_age(state.rto, band)
                    && idle > patience
                {
                    (idle, state.rto) = (idle - patience, aged);
                    // What is left of the idle time counts towards the next step.
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
                    // As many as there is time for, strictly: 32 RTO are one step of 16.
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

    /// How long this RTO stands unless it is renewed, and what it is then; `None` if it stands for ever.
    /// draft-ietf-core-cocoa-03 §4.3.
    fn next_age(&self, rto: Fine, (low, high): (Fine, Fine)) -> Option<(Duration, Fine)> {
        // A band that moves may lie above the bound, or below the 2 s where easing ends: out of reach, there it ends too.
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

    /// 1 s + RTO/2.
    fn eased(&self, rto: Fine) -> Fine {
        Fine::fitting(seconds(1).units() + rto.by(Ratio::new(1, 2)).units()).floored(self.tick)
    }
}

const fn seconds(seconds: u64) -> Fine {
    Fine::from_duration(Duration::from_secs(seconds))
}
