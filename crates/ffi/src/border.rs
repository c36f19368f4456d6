//! Tests of the functions that C calls. They decide like the mechanisms in Rust. A wrong argument returns a status, arms a
//! fallback timeout, and changes nothing else.

use core::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

use coapace_control::Controller;

use crate::listed::{COUNT, entries};
use crate::{
    Chosen, Cue, EXCHANGE_SIZE, End, Gauges, Limits, Outcome, Sample, Status, coapace_gauges, coapace_init,
    coapace_limits, coapace_max_span, coapace_name, coapace_on_end, coapace_on_retransmit, coapace_on_start,
    coapace_parse, coapace_set, coapace_source, coapace_state_init, coapace_state_size, coapace_strerror,
    coapace_summary, coapace_version,
};

static CUE: Cue = Cue { now_us: 1_000_000, draw: 1 << 31, outstanding: 1 };

/// The memory of a C program: a mechanism, a state and an exchange.
struct CallerMemory {
    mechanism: MaybeUninit<Chosen>,
    state: [u8; 64],
    exchange: [u8; EXCHANGE_SIZE],
    timeout_us: u64,
}

impl CallerMemory {
    /// Returns zeroed memory, as before the first call.
    fn zeroed() -> Self {
        let (mechanism, exchange) = (MaybeUninit::zeroed(), [0; EXCHANGE_SIZE]);
        Self { mechanism, state: [0; 64], exchange, timeout_us: 0 }
    }

    /// Returns the memory with an initialised mechanism and state. The box keeps it in place: a move would read the padding of
    /// a state as `u8`, and padding may be uninitialised.
    fn new(name: &CStr) -> Box<Self> {
        let mut kept = Box::new(Self::zeroed());
        assert_eq!(kept.parse(name), Status::Ok);
        assert_eq!(kept.state_init(64), Status::Ok);
        kept
    }

    /// Returns pointers to the mechanism, the state, the exchange and the timeout.
    fn places(&mut self) -> (*mut Chosen, *mut c_void, *mut c_void, *mut u64) {
        let (state, exchange) = (self.state.as_mut_ptr().cast(), self.exchange.as_mut_ptr().cast());
        (self.mechanism.as_mut_ptr(), state, exchange, &raw mut self.timeout_us)
    }

    fn parse(&mut self, text: &CStr) -> Status {
        // SAFETY: a place for a mechanism, and a text that ends.
        status(unsafe { coapace_parse(self.places().0, text.as_ptr()) })
    }

    fn set(&mut self, parameter: &CStr, value: &CStr) -> Status {
        // SAFETY: a mechanism that the library wrote, or zeros, and texts that end.
        status(unsafe { coapace_set(self.places().0, parameter.as_ptr(), value.as_ptr()) })
    }

    fn state_init(&mut self, size: usize) -> Status {
        assert!(size <= self.state.len());
        let (mechanism, state, ..) = self.places();
        // SAFETY: a mechanism that the library wrote, or zeros; `size` bytes of a state.
        status(unsafe { coapace_state_init(mechanism, state, size) })
    }

    fn start(&mut self) -> Status {
        let (mechanism, state, exchange, timeout_us) = self.places();
        // SAFETY: all of it is as the library wrote it, or zeros.
        status(unsafe { coapace_on_start(mechanism, state, exchange, &raw const CUE, timeout_us) })
    }

    fn retransmit(&mut self) -> Status {
        let (mechanism, state, exchange, timeout_us) = self.places();
        // SAFETY: all of it is as the library wrote it, or zeros.
        status(unsafe { coapace_on_retransmit(mechanism, state, exchange, &raw const CUE, timeout_us) })
    }

    fn end(&mut self, end: u8) -> Status {
        let sample = Sample { since_first_us: 600_000, since_last_us: 600_000, ..Sample::default() };
        let outcome = Outcome { sample, end };
        let (mechanism, state, exchange, _) = self.places();
        // SAFETY: all of it is as the library wrote it, or zeros.
        status(unsafe { coapace_on_end(mechanism, state, exchange, &raw const outcome, &raw const CUE) })
    }

    fn gauges(&mut self) -> (Status, Gauges) {
        let mut gauges = Gauges::default();
        let (mechanism, state, ..) = self.places();
        // SAFETY: all of it is as the library wrote it, or zeros.
        let code = unsafe { coapace_gauges(mechanism, state, &raw mut gauges) };
        (status(code), gauges)
    }

    fn limits(&mut self) -> (Status, Limits) {
        let mut limits = Limits::default();
        let (mechanism, state, ..) = self.places();
        // SAFETY: all of it is as the library wrote it, or zeros.
        let code = unsafe { coapace_limits(mechanism, state, &raw mut limits) };
        (status(code), limits)
    }
}

/// Returns the number that C uses for a position in the registry.
fn number(place: usize) -> c_int {
    place.try_into().unwrap()
}

/// Returns the status of this number.
fn status(number: c_int) -> Status {
    use Status::{
        BadExchange, BadMechanism, BadOutcome, BadState, BadValue, NoParameters, NotAnAssignment, NotText,
        NullPointer, Ok, TooSmall, UnknownMechanism, UnknownParameter, UnknownPreset,
    };
    let all = [
        Ok,
        NullPointer,
        UnknownMechanism,
        NoParameters,
        NotText,
        NotAnAssignment,
        UnknownParameter,
        UnknownPreset,
        BadValue,
        BadMechanism,
        BadState,
        BadExchange,
        BadOutcome,
        TooSmall,
    ];
    all.into_iter().find(|status| *status as c_int == number).expect("a status of the list")
}

fn text(pointer: *const core::ffi::c_char) -> String {
    assert!(!pointer.is_null(), "no text: was the mechanism left out of the features of Cargo.toml?");
    // SAFETY: the library returns null, or a text that ends and stays.
    unsafe { CStr::from_ptr(pointer) }.to_str().unwrap().to_owned()
}

#[test]
fn zeroed_memory_is_not_a_mechanism_and_a_timeout_of_3_s_is_returned() {
    let mut kept = CallerMemory::zeroed();
    assert_eq!(kept.start(), Status::BadMechanism);
    assert_eq!(kept.timeout_us, 3_000_000);
    assert_eq!(kept.state_init(64), Status::BadMechanism);
    assert_eq!(kept.set(c"max_rto", c"9s"), Status::BadMechanism);
    // SAFETY: zeros are a mechanism that is not initialised.
    assert_eq!(unsafe { coapace_state_size(kept.mechanism.as_ptr()) }, 0);

    kept.parse(c"cocoa");
    kept.timeout_us = 0;
    assert_eq!(kept.start(), Status::BadState);
    assert_eq!(kept.timeout_us, 3_000_000);
    assert_eq!(kept.gauges().0, Status::BadState);
    assert_eq!(kept.limits().0, Status::BadState);

    kept.state_init(64);
    kept.timeout_us = 0;
    assert_eq!(kept.retransmit(), Status::BadExchange);
    assert_eq!(kept.timeout_us, 3_000_000);
    assert_eq!(kept.end(End::Acked as u8), Status::BadExchange);
    assert_eq!(kept.gauges().1.has_srtt, 0, "nothing was learnt");
}

#[test]
fn a_failed_choice_of_a_mechanism_invalidates_the_previous_one() {
    for (wrong, problem) in [
        (c"", Status::UnknownMechanism),
        (c"tahoe", Status::UnknownMechanism),
        (c"cocoa:max_rto", Status::NotAnAssignment),
        (c"cocoa:max-rto=9s", Status::UnknownParameter),
        (c"cocoa:preset=none", Status::UnknownPreset),
        (c"cocoa:max_rto=soon", Status::BadValue),
        (c"\xff", Status::NotText),
    ] {
        let mut kept = CallerMemory::new(c"cocoa");
        assert_eq!(kept.parse(wrong), problem, "{wrong:?}");
        assert_eq!(kept.start(), Status::BadMechanism, "{wrong:?}");
    }
    for number in [-1, number(COUNT), c_int::MAX, c_int::MIN] {
        let mut kept = CallerMemory::new(c"cocoa");
        // SAFETY: a place for a mechanism.
        let code = unsafe { coapace_init(kept.mechanism.as_mut_ptr(), number) };
        assert_eq!(status(code), Status::UnknownMechanism);
        assert_eq!(kept.start(), Status::BadMechanism);
    }
}

#[test]
fn an_invalid_parameter_changes_nothing_and_a_valid_one_applies_at_once() {
    let mut kept = CallerMemory::new(c"cocoa");
    assert_eq!(kept.set(c"max_timeout", c"0"), Status::BadValue);
    assert_eq!(kept.set(c"", c""), Status::UnknownParameter);
    assert_eq!(kept.set(c"max_timeout", c"\xff"), Status::NotText);
    assert_eq!((kept.start(), kept.timeout_us), (Status::Ok, 2_500_000));
    assert_eq!(kept.set(c"ack_random_factor", c"1.2"), Status::Ok);
    assert_eq!((kept.start(), kept.timeout_us), (Status::Ok, 2_200_000));
}

#[test]
fn the_state_and_exchange_of_another_mechanism_are_refused_and_not_changed() {
    let mut kept = CallerMemory::new(c"default");
    assert_eq!((kept.start(), kept.timeout_us), (Status::Ok, 2_500_000));
    let before = kept.state;
    kept.parse(c"cocoa");
    assert_eq!(kept.retransmit(), Status::BadState);
    assert_eq!(kept.end(End::Acked as u8), Status::BadState);
    assert_eq!(kept.state, before);
    // The state of the new mechanism, the exchange of the old one.
    kept.state_init(64);
    assert_eq!(kept.retransmit(), Status::BadExchange);
    assert_eq!(kept.end(End::Acked as u8), Status::BadExchange);
    assert_eq!(kept.gauges().1.has_srtt, 0, "nothing was learnt");
    kept.parse(c"default");
    kept.state_init(64);
    assert_eq!((kept.retransmit(), kept.timeout_us), (Status::Ok, 5_000_000));
}

#[test]
fn an_exchange_cannot_be_ended_twice_from_c() {
    let mut kept = CallerMemory::new(c"cocoa");
    kept.start();
    assert_eq!(kept.end(0), Status::BadOutcome);
    assert_eq!(kept.end(5), Status::BadOutcome);
    assert_eq!(kept.end(End::Acked as u8), Status::Ok);
    assert_eq!(kept.gauges().1.srtt_us, 600_000);
    assert_eq!(kept.end(End::Acked as u8), Status::BadExchange);
    assert_eq!(kept.retransmit(), Status::BadExchange);
}

#[test]
fn an_exchange_that_failed_to_start_cannot_be_used() {
    let mut kept = CallerMemory::new(c"cocoa");
    kept.start();
    kept.state[0] = 0;
    assert_eq!(kept.start(), Status::BadState);
    kept.state_init(64);
    assert_eq!(kept.end(End::Acked as u8), Status::BadExchange);
}

#[test]
fn a_state_uses_exactly_its_reported_size_at_any_address() {
    for entry in entries() {
        let name = std::ffi::CString::new(entry.name).unwrap();
        let mut kept = CallerMemory::zeroed();
        kept.parse(&name);
        // SAFETY: a mechanism that the library wrote.
        let size = unsafe { coapace_state_size(kept.mechanism.as_ptr()) };
        assert_eq!(size, 1 + entry.mechanism.state_bytes());
        assert_eq!(kept.state_init(size - 1), Status::TooSmall);
        for place in 0..8 {
            let mut bytes = [0xa5; 80];
            let (guard, state) = bytes.split_at_mut(place);
            let at = state.as_mut_ptr().cast();
            let (mechanism, _, exchange, timeout_us) = kept.places();
            // SAFETY: more bytes than a state takes.
            unsafe {
                assert_eq!(coapace_state_init(mechanism, at, size), 0);
                assert_eq!(coapace_on_start(mechanism, at, exchange, &raw const CUE, timeout_us), 0);
            }
            assert!(guard.iter().chain(&state[size..]).all(|byte| *byte == 0xa5), "{}", entry.name);
        }
    }
}

#[test]
fn every_function_of_the_c_interface_reports_null_pointers() {
    let mut kept = CallerMemory::new(c"cocoa");
    kept.start();
    let (mechanism, state, exchange, timeout_us) = kept.places();
    let cue = &raw const CUE;
    let outcome = Outcome { sample: Sample::default(), end: End::Reset as u8 };
    let outcome = &raw const outcome;
    let (mut limits, mut gauges) = (Limits::default(), Gauges::default());
    // SAFETY: each pointer is null or points at a valid value.
    let codes = unsafe {
        vec![
            coapace_init(null_mut(), 0),
            coapace_parse(null_mut(), c"cocoa".as_ptr()),
            coapace_set(null_mut(), c"max_rto".as_ptr(), c"9s".as_ptr()),
            coapace_set(mechanism, null(), c"9s".as_ptr()),
            coapace_set(mechanism, c"max_rto".as_ptr(), null()),
            coapace_state_init(null(), state, 64),
            coapace_state_init(mechanism, null_mut(), 64),
            coapace_on_retransmit(null(), state, exchange, cue, timeout_us),
            coapace_on_retransmit(mechanism, null_mut(), exchange, cue, timeout_us),
            coapace_on_retransmit(mechanism, state, null_mut(), cue, timeout_us),
            coapace_on_retransmit(mechanism, state, exchange, null(), timeout_us),
            coapace_on_retransmit(mechanism, state, exchange, cue, null_mut()),
            coapace_on_end(null(), state, exchange, outcome, cue),
            coapace_on_end(mechanism, null_mut(), exchange, outcome, cue),
            coapace_on_end(mechanism, state, null_mut(), outcome, cue),
            coapace_on_end(mechanism, state, exchange, null(), cue),
            coapace_on_end(mechanism, state, exchange, outcome, null()),
            coapace_max_span(null(), 4, timeout_us),
            coapace_max_span(mechanism, 4, null_mut()),
            coapace_limits(null(), state, &raw mut limits),
            coapace_limits(mechanism, null(), &raw mut limits),
            coapace_limits(mechanism, state, null_mut()),
            coapace_gauges(null(), state, &raw mut gauges),
            coapace_gauges(mechanism, null(), &raw mut gauges),
            coapace_gauges(mechanism, state, null_mut()),
            // These come last, because they end the exchange.
            coapace_on_start(null(), state, exchange, cue, timeout_us),
            coapace_on_start(mechanism, null_mut(), exchange, cue, timeout_us),
            coapace_on_start(mechanism, state, null_mut(), cue, timeout_us),
            coapace_on_start(mechanism, state, exchange, null(), timeout_us),
            coapace_on_start(mechanism, state, exchange, cue, null_mut()),
            coapace_parse(mechanism, null()),
        ]
    };
    assert_eq!(codes, vec![Status::NullPointer as c_int; codes.len()]);
    // SAFETY: null is noticed.
    assert_eq!(unsafe { coapace_state_size(null()) }, 0);
}

#[test]
fn every_mechanism_gives_the_same_results_through_c_as_in_rust() {
    for (place, entry) in entries().enumerate() {
        let number = number(place);
        assert_eq!(text(coapace_name(number)), entry.name);
        assert_eq!(text(coapace_summary(number)), entry.summary);
        assert_eq!(text(coapace_source(number)), entry.source);
        let presets = entry.mechanism.presets().iter().map(|preset| Some(preset.name));
        for preset in std::iter::once(None).chain(presets) {
            let mut mechanism = entry.mechanism;
            let mut named = entry.name.to_owned();
            if let Some(preset) = preset {
                mechanism.set("preset", preset).unwrap();
                named.extend([":preset=", preset]);
            }
            // The same mechanism, chosen by its name, in the memory of a caller in C.
            let mut kept = CallerMemory::new(&std::ffi::CString::new(named.as_str()).unwrap());
            let mut state = mechanism.state();
            let (_, timeout) = mechanism.on_start(&mut state, CUE.into());
            assert_eq!((kept.start(), kept.timeout_us), (Status::Ok, timeout.as_micros()), "{named}");
            let (limits, c_limits) = (mechanism.limits(&state), kept.limits().1);
            assert_eq!(c_limits.next_confirmable_us, limits.next_confirmable.as_micros(), "{named}");
            assert_eq!(c_limits.non_gap_us, limits.non_gap.as_micros(), "{named}");
            assert_eq!((c_limits.has_nstart != 0).then_some(c_limits.nstart), limits.nstart, "{named}");
            assert_eq!(c_limits.marking != 0, limits.marking != coapace_control::Marking::None, "{named}");
            let (gauges, c_gauges) = (mechanism.gauges(&state), kept.gauges().1);
            assert_eq!(c_gauges.rto_us, gauges.rto.as_micros(), "{named}");
            assert_eq!(
                (c_gauges.has_rate != 0).then_some(c_gauges.rate_per_ks),
                gauges.rate_per_ks,
                "{named}"
            );
            let mut span_us = 0;
            // SAFETY: a mechanism that the library wrote.
            unsafe { coapace_max_span(kept.mechanism.as_ptr(), 4, &raw mut span_us) };
            assert_eq!(span_us, mechanism.max_span(4).as_micros(), "{named}");
        }
    }
}

#[test]
fn unknown_numbers_have_no_text_and_every_status_has_its_own() {
    for number in [-1, number(COUNT), c_int::MAX] {
        assert!(coapace_name(number).is_null());
        assert!(coapace_summary(number).is_null());
        assert!(coapace_source(number).is_null());
    }
    let mut texts: Vec<_> =
        (-1..=Status::TooSmall as c_int).map(|number| text(coapace_strerror(number))).collect();
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), Status::TooSmall as usize + 2);
    assert_eq!(text(coapace_strerror(99)), text(coapace_strerror(-1)));
    assert_eq!(text(coapace_version()), env!("CARGO_PKG_VERSION"));
}
