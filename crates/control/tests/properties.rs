//! Properties of every mechanism and every preset, whatever an endpoint and a network do.

use coapace_control::{
    Answer, BULK, Controller, Cue, Draw, Duration, Exchange, Instant, Mechanism, Mechanisms, Outcome,
    REGISTRY, Sample, State, Value,
};
use proptest::prelude::*;

/// The longest time that a mechanism counts, 2^28 µs. A bound of 268 s or more means none.
const LONGEST: Duration = Duration::from_micros(1 << 28);

/// Returns the least and the greatest timeout that a mechanism may arm, which follow from its parameters. A mechanism keeps
/// these rules, or is an exception here.
fn bounds(mechanism: &Mechanism) -> (Duration, Duration) {
    let time =
        |name| Some(Duration::parse(&mechanism.get(name)?.to_string()).expect("a parameter that is a time"));
    if let Some(least) = time("non_receive_timeout") {
        return (least, least.times(16)); // doubled NON_MAX_RETRANSMIT times
    }
    let least = time("min_rto").or(time("ack_timeout")).expect("a mechanism has a least timeout");
    let bound = time("max_rto").max(time("max_timeout")).expect("a mechanism has a greatest timeout");
    let most = if bound < Duration::from_secs(268) { bound } else { LONGEST };
    match mechanism.kind() {
        // It keeps no time, so it counts longer ones, too (nRF Connect's for NB-IoT).
        "Default" => (least, bound),
        // A kept backoff at its bound is dithered like ACK_TIMEOUT: by half of it, with the factor of all presets.
        "FullBackoff" => (least, (most + Duration::from_micros(least.as_micros() / 2)).min(LONGEST)),
        // A first timeout is er-cocoa's, which multiplies it before the first measurement and dithers it (Contiki's CoCoA++).
        "CocoaPlusPlus" if mechanism.get("rule").is_some_and(|rule| rule.to_string() == "student") => {
            (least, LONGEST)
        }
        // The slow RTO follows from the time that an exchange took, which may be nothing.
        "Fasor" => (Duration::from_micros(1), most),
        _ => (least, most),
    }
}

/// Returns every entry of both lists, plain and with each of its presets, with its bounds.
fn mechanisms() -> Vec<(String, Mechanism, Duration, Duration)> {
    let mut all = Vec::new();
    for entry in REGISTRY.iter().chain(BULK) {
        let presets =
            entry.mechanism.presets().iter().map(|preset| format!("{}:preset={}", entry.name, preset.name));
        for name in std::iter::once(entry.name.to_owned()).chain(presets) {
            let known = Mechanisms::BUILT_IN;
            let mechanism =
                known.parse(&name).or(known.parse_bulk(&name)).expect("the lists name what can be parsed");
            let (least, most) = bounds(&mechanism);
            all.push((name, mechanism, least, most));
        }
    }
    all
}

/// A step of an endpoint. The number chooses one of the exchanges under way.
#[derive(Clone, Copy, Debug)]
enum Step {
    Start,
    Retransmit(usize),
    End(usize, Outcome),
}

/// Generates times of all magnitudes, with the extremes.
fn time() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0u64..120_000_000,
        2 => (0u32..64).prop_map(|bits| 1 << bits),
        1 => any::<u64>(),
        1 => Just(0),
        1 => Just(u64::MAX),
    ]
}

fn sample() -> impl Strategy<Value = Sample> {
    let answered = proptest::option::of((any::<u8>(), time())).prop_map(|answer| {
        answer.map(|(ordinal, since)| Answer { ordinal, since: Duration::from_micros(since) })
    });
    let retransmits = prop_oneof![3 => 0u8..4, 1 => any::<u8>()];
    (time(), time(), retransmits, answered).prop_map(|(first, last, retransmits, answered)| Sample {
        since_first: Duration::from_micros(first),
        since_last: Duration::from_micros(last),
        retransmits,
        answered,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![
        6 => sample().prop_map(Outcome::Acked),
        1 => Just(Outcome::Reset),
        1 => Just(Outcome::Cancelled),
        1 => Just(Outcome::GivenUp),
    ];
    prop_oneof![
        3 => Just(Step::Start),
        4 => any::<usize>().prop_map(Step::Retransmit),
        3 => (any::<usize>(), outcome).prop_map(|(place, outcome)| Step::End(place, outcome)),
    ]
}

fn cue() -> impl Strategy<Value = Cue> {
    let draw = prop_oneof![2 => any::<u32>(), 1 => Just(0), 1 => Just(u32::MAX)];
    (time(), draw, any::<u16>()).prop_map(|(now, draw, outstanding)| Cue {
        now: Instant::from_micros(now),
        draw: Draw::from_bits(draw),
        outstanding,
    })
}

/// Plays the steps with overlapping exchanges. Returns every armed timeout and the last state.
fn play(mechanism: &Mechanism, script: &[(Step, Cue)]) -> (Vec<Duration>, State) {
    let mut state = mechanism.state();
    let mut open: Vec<Exchange> = Vec::new();
    let mut armed = Vec::new();
    for &(step, cue) in script {
        match step {
            Step::Start => {
                let (exchange, timeout) = mechanism.on_start(&mut state, cue);
                open.push(exchange);
                armed.push(timeout);
            }
            Step::Retransmit(place) if !open.is_empty() => {
                let place = place % open.len();
                armed.push(mechanism.on_retransmit(&mut state, &mut open[place], cue));
            }
            Step::End(place, outcome) if !open.is_empty() => {
                let exchange = open.swap_remove(place % open.len());
                mechanism.on_end(&mut state, exchange, outcome, cue);
            }
            _ => {}
        }
        let _ = mechanism.limits(&state);
    }
    (armed, state)
}

#[test]
fn every_parameter_parses_back_from_its_displayed_text() {
    for (name, mechanism, ..) in mechanisms() {
        for parameter in mechanism.parameters() {
            let shown = mechanism.get(parameter.name).expect("a parameter that is listed").to_string();
            let mut again = mechanism;
            assert_eq!(again.set(parameter.name, &shown), Ok(()), "{name}:{}={shown}", parameter.name);
            assert_eq!(again, mechanism, "{name}:{}={shown}", parameter.name);
        }
    }
}

proptest! {
    #[test]
    fn every_armed_timeout_is_within_the_bounds_of_its_mechanism(script in prop::collection::vec((step(), cue()), 1..80)) {
        for (name, mechanism, low, high) in mechanisms() {
            let (armed, state) = play(&mechanism, &script);
            for timeout in armed {
                prop_assert!(low <= timeout && timeout <= high, "{name} armed {timeout}");
            }
            let rto = mechanism.gauges(&state).rto;
            prop_assert!(low <= rto && rto <= high, "{name} has an RTO of {rto}");
        }
    }

    #[test]
    fn equal_events_and_draws_arm_equal_timeouts(script in prop::collection::vec((step(), cue()), 1..40)) {
        for (name, mechanism, ..) in mechanisms() {
            prop_assert_eq!(play(&mechanism, &script).0, play(&mechanism, &script).0, "{}", name);
        }
    }

    #[test]
    fn no_exchange_takes_longer_than_the_span_of_its_mechanism(
        script in prop::collection::vec((step(), cue()), 0..40),
        cues in prop::collection::vec(cue(), 1..12),
    ) {
        for (name, mechanism, ..) in mechanisms() {
            let (_, mut state) = play(&mechanism, &script);
            let (mut exchange, mut timeout) = mechanism.on_start(&mut state, cues[0]);
            let mut span = Duration::ZERO;
            for (n, &cue) in cues.iter().enumerate() {
                prop_assert!(span <= mechanism.max_span(n as u8), "{} takes {} for {} retransmissions", name, span, n);
                span += timeout;
                timeout = mechanism.on_retransmit(&mut state, &mut exchange, cue);
            }
        }
    }

    #[test]
    fn no_accepted_value_of_a_parameter_causes_a_panic(
        place in any::<prop::sample::Index>(),
        parameter in any::<prop::sample::Index>(),
        value in prop_oneof!["0", "255", "1us", "65535/1", "1/65535", "18446744073709551615us", "0s", "off", "current"],
        script in prop::collection::vec((step(), cue()), 1..60),
    ) {
        let mut mechanism = place.get(&[REGISTRY, BULK].concat()).mechanism;
        let parameters = mechanism.parameters();
        if mechanism.set(parameter.get(parameters).name, &value).is_ok() {
            play(&mechanism, &script);
        }
    }

    #[test]
    fn fixed_point_estimates_are_within_a_microsecond_of_floating_point(
        samples in prop::collection::vec(1u64..40_000_000, 1..600),
    ) {
        let mechanism: Mechanism = "fasor:initial_k=4".parse().unwrap();
        let mut state = mechanism.state();
        let (mut srtt, mut rttvar) = (0.0, 0.0);
        let cue = Cue { now: Instant::ZERO, draw: Draw::ZERO, outstanding: 1 };
        for (n, &us) in samples.iter().enumerate() {
            let (exchange, _) = mechanism.on_start(&mut state, cue);
            let since = Duration::from_micros(us);
            mechanism.on_end(&mut state, exchange, Outcome::Acked(Sample::unmarked(since, since, 0)), cue);
            let rtt = us as f64;
            if n == 0 {
                (srtt, rttvar) = (rtt, rtt / 2.0);
            } else {
                rttvar += (f64::abs(srtt - rtt) - rttvar) / 4.0;
                srtt += (rtt - srtt) / 8.0;
            }
            let rto = (srtt + f64::max(1e3, 4.0 * rttvar)).clamp(50e3, 60e6);
            let gauges = mechanism.gauges(&state);
            for (measured, expected) in [(gauges.rto, rto), (gauges.srtt.unwrap(), srtt), (gauges.rttvar.unwrap(), rttvar)] {
                // Half a microsecond is the rounding of the gauge.
                prop_assert!((measured.as_micros() as f64 - expected).abs() < 0.51, "{measured}, not {expected} us");
            }
        }
    }
}
