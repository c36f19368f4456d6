//! `smooth`: a mechanism that learns. It waits for twice the smoothed round-trip time. docs/write-a-mechanism.md has it in C and
//! Python, too.

use coapace_control::{
    Controller, Cue, Duration, Gauges, Limits, Marking, Notes, Outcome, OwnMechanism, Ratio, packed,
    parameters,
};

parameters! {
    /// A timer that follows the mean round-trip time.
    pub(crate) struct Smooth {
        /// The RTO while nothing is measured.
        initial_rto: Duration = Duration::from_secs(2),
        /// The least RTO.
        min_rto: Duration = Duration::from_millis(200),
    }
    presets {}
}

packed! {
    /// What it knows of a destination: the smoothed round-trip time, zero before the first sample.
    pub(crate) struct SmoothState { srtt: Duration }
}

packed! {
    /// An exchange: the timeout in force.
    pub(crate) struct SmoothExchange { timeout: Duration }
}

impl Controller for Smooth {
    type State = SmoothState;
    type Exchange = SmoothExchange;

    fn state(&self) -> SmoothState {
        SmoothState { srtt: Duration::ZERO }
    }

    fn on_start(&self, state: &mut SmoothState, cue: Cue) -> (SmoothExchange, Duration) {
        let timeout = cue.draw.dither(self.rto(*state), Ratio::new(3, 2)).min(LONGEST);
        (SmoothExchange { timeout }, timeout)
    }

    fn on_retransmit(&self, _: &mut SmoothState, exchange: &mut SmoothExchange, _: Cue) -> Duration {
        exchange.timeout = exchange.timeout.doubled().min(LONGEST);
        exchange.timeout
    }

    fn on_end(&self, state: &mut SmoothState, _: SmoothExchange, outcome: Outcome, _: Cue) {
        // After a retransmission nobody knows which transmission was answered (Karn's algorithm).
        if let Outcome::Acked(sample) = outcome
            && let Some(rtt) = sample.unambiguous()
        {
            let (old, new) = (state.srtt.as_micros(), rtt.as_micros());
            let mean = if old == 0 { new } else { old.saturating_mul(7).saturating_add(new) / 8 };
            state.srtt = Duration::from_micros(mean);
        }
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        LONGEST.times(retransmits.into())
    }

    fn limits(&self, state: &SmoothState) -> Limits {
        Limits::with_gauges(self.gauges(state), Marking::None)
    }

    fn gauges(&self, state: &SmoothState) -> Gauges {
        let srtt = (state.srtt != Duration::ZERO).then_some(state.srtt);
        Gauges { rto: self.rto(*state), srtt, ..Gauges::default() }
    }
}

impl Smooth {
    fn rto(&self, state: SmoothState) -> Duration {
        if state.srtt == Duration::ZERO {
            self.initial_rto
        } else {
            state.srtt.doubled().max(self.min_rto).min(LONGEST)
        }
    }
}

/// The upper bound of timeouts (RFC 8085 §3.1.1).
const LONGEST: Duration = Duration::from_secs(60);

impl OwnMechanism for Smooth {
    const NAME: &'static str = "smooth";
    const SUMMARY: &'static str = "twice the smoothed round-trip time";
    const SOURCE: &'static str = "docs/write-a-mechanism.md";
    const NOTES: Notes = Notes {
        status: "An example.",
        use_when: "Learning how a mechanism learns.",
        avoid_when: "The round-trip time varies: nothing here follows its variation.",
        hazards: "A round-trip time that doubles at once is taken for losses, and no sample corrects it.",
    };
}
