//! Mechanisms of other crates behave like built-in ones.

use coapace_control::{
    BULK, BadName, Controller, Cue, DefaultTimer, Draw, Duration, Entry, Gauges, Instant, Limits, Marking,
    Mechanism, Mechanisms, Notes, Outcome, OwnMechanism, REGISTRY, Ratio, Sample, SetError, packed,
    parameters,
};

parameters! {
    /// A timer that starts from the longest timeout of the last exchange.
    pub struct Wary {
        /// ACK_TIMEOUT.
        ack_timeout: Duration = Duration::from_secs(2),
        /// ACK_RANDOM_FACTOR.
        ack_random_factor: Ratio = Ratio::new(3, 2),
    }
    presets {
        /// Twice as long, whatever it was.
        "slow" => |before| Self { ack_timeout: before.ack_timeout.doubled(), ..before },
    }
}

packed! {
    /// State of a destination.
    pub struct WaryState { rto: Duration, srtt: Option<Duration> }
}

packed! {
    /// State of an exchange.
    pub struct WaryExchange { timeout: Duration, begun: Instant }
}

impl Controller for Wary {
    type State = WaryState;
    type Exchange = WaryExchange;

    fn state(&self) -> WaryState {
        WaryState { rto: self.ack_timeout, srtt: None }
    }

    fn on_start(&self, state: &mut WaryState, cue: Cue) -> (WaryExchange, Duration) {
        let timeout = cue.draw.dither(state.rto, self.ack_random_factor);
        (WaryExchange { timeout, begun: cue.now }, timeout)
    }

    fn on_retransmit(&self, state: &mut WaryState, exchange: &mut WaryExchange, _: Cue) -> Duration {
        exchange.timeout = exchange.timeout.doubled();
        state.rto = exchange.timeout;
        exchange.timeout
    }

    fn on_end(&self, state: &mut WaryState, exchange: WaryExchange, outcome: Outcome, cue: Cue) {
        if let Outcome::Acked(_) = outcome {
            state.srtt = Some(cue.now.since(exchange.begun));
            state.rto = self.ack_timeout;
        }
    }

    fn max_span(&self, _: u8) -> Duration {
        Duration::MAX
    }

    fn limits(&self, state: &WaryState) -> Limits {
        Limits::with_gauges(self.gauges(state), Marking::None)
    }

    fn gauges(&self, state: &WaryState) -> Gauges {
        Gauges { rto: state.rto, srtt: state.srtt, ..Gauges::default() }
    }
}

const NOTES: Notes = Notes { status: "A test.", use_when: "Never.", avoid_when: "Always.", hazards: "None." };

impl OwnMechanism for Wary {
    const NAME: &'static str = "wary";
    const SUMMARY: &'static str = "remembers the last timeout";
    const SOURCE: &'static str = "this file";
    const NOTES: Notes = NOTES;
}

static OWN: [Entry; 1] = [Entry::own::<Wary>()];

fn own() -> Mechanisms {
    Mechanisms::with(&OWN).unwrap()
}

fn parse(text: &str) -> Mechanism {
    own().parse(text).unwrap()
}

fn at(ms: u64) -> Cue {
    Cue {
        now: Instant::from_millis(ms),
        draw: Draw::from_bits((ms as u32).wrapping_mul(77_777_777)),
        outstanding: 1,
    }
}

/// Returns timeouts and gauges of exchanges with losses.
fn steps<C: Controller>(controller: &C) -> Vec<(Duration, Gauges)> {
    let mut state = controller.state();
    let mut steps = Vec::new();
    for exchange in 0..20 {
        let begun = exchange * 10_000;
        let (mut kept, timeout) = controller.on_start(&mut state, at(begun));
        steps.push((timeout, controller.gauges(&state)));
        for retransmit in 0..exchange % 4 {
            let timeout = controller.on_retransmit(&mut state, &mut kept, at(begun + 1_000 * retransmit));
            steps.push((timeout, controller.gauges(&state)));
        }
        let sample = Sample::unmarked(Duration::from_secs(4), Duration::from_secs(1), 0);
        let outcome = if exchange % 3 == 0 { Outcome::Acked(sample) } else { Outcome::GivenUp };
        controller.on_end(&mut state, kept, outcome, at(begun + 4_000));
    }
    steps
}

#[test]
fn a_custom_mechanism_behaves_the_same_used_directly_or_by_name() {
    assert_eq!(steps(&parse("wary")), steps(&Wary::DEFAULT));
    let slow = Wary { ack_timeout: Duration::from_secs(5), ..Wary::DEFAULT };
    assert_eq!(steps(&parse("wary:ack_timeout=5s")), steps(&slow));
    assert_ne!(steps(&slow), steps(&Wary::DEFAULT));
}

#[test]
fn parameters_and_presets_of_a_custom_mechanism_are_set_shown_and_compared() {
    let mechanism = parse("wary:ack_random_factor=1.25,preset=slow");
    let names: Vec<_> = mechanism.parameters().iter().map(|parameter| parameter.name).collect();
    assert_eq!(names, ["ack_timeout", "ack_random_factor"]);
    assert_eq!(mechanism.get("ack_timeout").unwrap().to_string(), "4s");
    assert!(mechanism.get("max_rto").is_none());
    assert_eq!(mechanism, parse("wary:ack_timeout=4s,ack_random_factor=5/4"));
    assert_ne!(mechanism, parse("wary"));
    assert_eq!(parse("wary:ack_timeout=2s"), parse("wary"), "set to its default");
    assert_ne!(parse("wary"), Mechanism::Default(DefaultTimer::DEFAULT));
    assert_eq!(parse("wary").set("max_rto", "1s"), Err(SetError::UnknownParameter));
    assert_eq!(format!("{:?}", parse("wary")), "Own(Wary { ack_timeout: 2s, ack_random_factor: 1.5 })");
    assert_eq!((mechanism.state_bytes(), mechanism.exchange_bytes()), (17, 16));
}

#[test]
fn every_mechanism_is_displayed_as_the_text_that_it_is_parsed_from() {
    for entry in own().entries() {
        assert_eq!(entry.mechanism.to_string(), entry.name);
    }
    for text in [
        "cocoa:max_rto=10s",
        "default:ack_timeout=500ms,ack_random_factor=1.25",
        "wary:ack_timeout=500ms,ack_random_factor=1.25",
        "wary:ack_random_factor=1.25",
    ] {
        assert_eq!(parse(text).to_string(), text);
    }
}

#[test]
fn ambiguous_or_unwritable_names_of_custom_mechanisms_are_refused() {
    const fn named(name: &'static str) -> Entry {
        Entry { name, ..Entry::own::<Wary>() }
    }
    static TAKEN: [Entry; 1] = [named("fasor")];
    static TWICE: [Entry; 2] = [named("wary"), named("wary")];
    static ODD: [Entry; 1] = [named("wary:x")];
    static EMPTY: [Entry; 1] = [named("")];
    assert_eq!(Mechanisms::with(&TAKEN).unwrap_err(), BadName::Taken("fasor"));
    assert_eq!(Mechanisms::with(&TWICE).unwrap_err(), BadName::Taken("wary"));
    assert_eq!(Mechanisms::with(&ODD).unwrap_err(), BadName::Characters("wary:x"));
    assert_eq!(Mechanisms::with(&EMPTY).unwrap_err(), BadName::Characters(""));
    let error = Mechanisms::with(&TAKEN).unwrap_err().to_string();
    assert_eq!(error, "there is a mechanism called \"fasor\"; give yours another name");
}

#[test]
fn an_error_about_a_mechanism_names_the_mistake_and_suggests_a_correction() {
    let error = |text: &str| own().parse(text).unwrap_err().to_string();
    assert!(
        error("wry").starts_with("no mechanism is called \"wry\"; did you mean wary? There are default, ")
    );
    assert!(error("zzz").ends_with(" and wary"));
    assert_eq!(
        error("wary:ack-timeot=3s"),
        "no parameter of wary is called \"ack-timeot\"; did you mean ack_timeout? There are ack_timeout, \
         ack_random_factor and preset"
    );
    assert_eq!(
        error("wary:preset=slwo"),
        "no preset of wary is called \"slwo\"; did you mean slow? There is slow"
    );
    assert!(
        error("wary:ack_timeout=soon")
            .starts_with("ack_timeout of wary is a time above zero with its unit, such as ")
    );
    assert!(error("wary:ack_timeout").starts_with("\"ack_timeout\" is not parameter=value"));
    let unknown = "fasr".parse::<Mechanism>().unwrap_err().to_string();
    assert!(
        unknown.starts_with("no mechanism is called \"fasr\"; did you mean fasor? There are "),
        "{unknown}"
    );
    assert!(!unknown.contains("wary") && unknown.lines().count() == 1, "{unknown}");
}

#[test]
fn an_error_about_a_custom_mechanism_lists_the_names_to_choose_from() {
    static TAKEN: [Entry; 1] = [Entry { name: "newreno", ..Entry::own::<Wary>() }];
    let bulk = |text: &str| own().parse_bulk(text).map_err(|error| error.to_string());
    let names: Vec<_> = own().bulk_entries().map(|entry| entry.name).collect();
    assert_eq!(names[BULK.len()..], ["rtt-coap"]);
    let names = names.join(", ");
    assert_eq!(bulk("newreno:initial_window=4").unwrap().to_string(), "newreno:initial_window=4");
    assert_eq!(
        bulk("ebb:k=4").unwrap_err(),
        format!("ebb is a mechanism for single exchanges (--cc); bulk mechanisms: {names}")
    );
    assert!(
        bulk("newrno")
            .unwrap_err()
            .starts_with("no bulk mechanism is called \"newrno\"; did you mean newreno? There ")
    );
    assert!(
        bulk("newreno:window=4").unwrap_err().starts_with("no parameter of newreno is called \"window\"")
    );
    let single = own().parse("newreno").unwrap_err().to_string();
    assert!(
        single.starts_with(
            "newreno is a bulk mechanism (--bulk); mechanisms for single exchanges: default, fullbackoff1, "
        ),
        "{single}"
    );
    assert!(single.ends_with(", wary"), "{single}");
    assert_eq!(Mechanisms::with(&TAKEN).unwrap_err(), BadName::Taken("newreno"));
    assert!(BULK.iter().all(|entry| Entry::find(entry.name).is_none()));
}

#[test]
fn the_state_of_another_mechanism_does_not_cause_a_panic() {
    let cocoa: Mechanism = "cocoa".parse().unwrap();
    for (one, other) in [(parse("wary"), cocoa), (cocoa, parse("wary"))] {
        let mut state = other.state();
        let (mut exchange, _) = other.on_start(&mut state, at(0));
        assert_eq!(one.on_retransmit(&mut state, &mut exchange, at(1)), Duration::from_secs(3));
        one.on_end(&mut state, exchange, Outcome::Reset, at(2));
        assert_eq!(one.gauges(&state).rto, Duration::from_secs(2));
        let mut state = other.state();
        assert!(one.on_start(&mut state, at(0)).1 >= Duration::from_secs(2));
    }
}

#[test]
fn the_registry_does_not_find_custom_mechanisms() {
    assert!(Entry::find("wary").is_none() && own().find("wary").is_some());
    assert_eq!(own().entries().count(), REGISTRY.len() + 1);
}
