//! Any calls in any order to any mechanism, with any value of a parameter: nothing panics. With the parameters of its
//! presets, no timeout is zero and every exchange ends within `max_span`.
#![no_main]

use arbitrary::Arbitrary;
use coapace_control::{
    Answer, Controller, Cue, Draw, Duration, Exchange, Instant, Mechanism, Outcome, REGISTRY, Sample,
};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Script<'a> {
    mechanism: u8,
    /// The preset; 0 is none.
    preset: u8,
    /// A parameter, and a value for it. The value is ignored if the parameter does not accept it.
    setting: Option<(u8, &'a str)>,
    steps: Vec<(Step, u64, u32, u16)>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Step {
    Start,
    Retransmit(u8),
    Acked(u8, Facts),
    Reset(u8),
    Cancelled(u8),
    GivenUp(u8),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Facts {
    since_first: u64,
    since_last: u64,
    retransmits: u8,
    answered: Option<(u8, u64)>,
}

/// An open exchange, the number of its retransmissions, and the sum of its timeouts.
struct Open {
    exchange: Exchange,
    retransmits: u8,
    span: Duration,
}

impl Open {
    fn armed(&mut self, mechanism: &Mechanism, timeout: Duration, set: bool) {
        if set {
            return;
        }
        assert!(timeout > Duration::ZERO, "{mechanism:?}");
        self.span += timeout;
        let bound = mechanism.max_span(self.retransmits.saturating_add(1));
        assert!(self.span <= bound, "{mechanism:?}: {} is beyond {bound}", self.span);
    }
}

fn sample(facts: Facts) -> Sample {
    Sample {
        since_first: Duration::from_micros(facts.since_first),
        since_last: Duration::from_micros(facts.since_last),
        retransmits: facts.retransmits,
        answered: facts
            .answered
            .map(|(ordinal, since)| Answer { ordinal, since: Duration::from_micros(since) }),
    }
}

fuzz_target!(|script: Script<'_>| {
    let mut mechanism = REGISTRY[usize::from(script.mechanism) % REGISTRY.len()].mechanism;
    let presets = mechanism.presets();
    if let Some(preset) = usize::from(script.preset).checked_sub(1)
        && let Some(preset) = presets.get(preset % presets.len().max(1))
    {
        mechanism.set("preset", preset.name).expect("a preset that is listed");
    }
    let set = script.setting.is_some_and(|(parameter, value)| {
        let parameters = mechanism.parameters();
        mechanism.set(parameters[usize::from(parameter) % parameters.len()].name, value).is_ok()
    });

    let mut state = mechanism.state();
    let mut open: Vec<Open> = Vec::new();
    for (step, now, draw, outstanding) in script.steps {
        let cue = Cue { now: Instant::from_micros(now), draw: Draw::from_bits(draw), outstanding };
        let (place, outcome) = match step {
            Step::Start => {
                let (exchange, timeout) = mechanism.on_start(&mut state, cue);
                let mut started = Open { exchange, retransmits: 0, span: Duration::ZERO };
                started.armed(&mechanism, timeout, set);
                open.push(started);
                continue;
            }
            Step::Retransmit(place) => {
                let places = open.len().max(1);
                if let Some(again) = open.get_mut(usize::from(place) % places)
                    && again.retransmits < u8::MAX - 1
                {
                    again.retransmits += 1;
                    let timeout = mechanism.on_retransmit(&mut state, &mut again.exchange, cue);
                    again.armed(&mechanism, timeout, set);
                }
                continue;
            }
            Step::Acked(place, facts) => (place, Outcome::Acked(sample(facts))),
            Step::Reset(place) => (place, Outcome::Reset),
            Step::Cancelled(place) => (place, Outcome::Cancelled),
            Step::GivenUp(place) => (place, Outcome::GivenUp),
        };
        if !open.is_empty() {
            let ended = open.swap_remove(usize::from(place) % open.len());
            mechanism.on_end(&mut state, ended.exchange, outcome, cue);
        }
        let _ = (mechanism.limits(&state), mechanism.gauges(&state));
    }
});
